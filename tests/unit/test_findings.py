"""Every finding there is, each at least once: its words are whole, and its command can be typed as it stands."""

import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest

from ankita_agent.core.advice import is_command
from ankita_agent.core.agent_diagnosis import AgentSeen, Doing, Led, judge_agent
from ankita_agent.core.elsewhere import Elsewhere
from ankita_agent.core.environment import UserFacts
from ankita_agent.core.errors import CannotWriteState, LedgerDamaged
from ankita_agent.core.findings import Finding, FindingId
from ankita_agent.core.install_plan import Change, FileChange, judge_file
from ankita_agent.core.instants import SECOND, Duration
from ankita_agent.core.machine_diagnosis import DiskSeen, MachineSeen, MessagesSeen, judge_machine
from ankita_agent.core.problems import Problem
from ankita_agent.core.problems import Severity as Refusal
from ankita_agent.core.reaching import Place, silent, unreachable
from ankita_agent.core.reckoning import Discrepancy, Mistake, Reckoning
from ankita_agent.core.routines_diagnosis import CommandSeen, RoutinesSeen, judge_routines
from ankita_agent.core.service import Activity, UnitState, Unreachable
from ankita_agent.core.service_diagnosis import judge_service
from ankita_agent.core.session_diagnosis import Session, judge_session, judge_whose
from ankita_agent.core.state_diagnosis import judge_account, judge_state
from ankita_agent.core.unit_diagnosis import ServiceSeen, UnitCopy
from ankita_agent.core.unit_file import ServiceFacts, render_service
from tests.ledgers import at

HOME: Final = '/home/An na\'s "50%" $HOME'
FILE: Final = f"{HOME}/.local/share/systemd/user/ankita-agent.service"
CONFIG: Final = f"{HOME}/.config/ankita-agent/routines.yaml"
STATE: Final = f"{HOME}/.local/state/ankita-agent"
ANN: Final = Place("ann", 4242)
NEW: Final = ("/opt/py/bin/python", "-m", "ankita_agent", "run")
TEMPLATE: Final = "[Unit]\nDescription=x\n\n[Service]\nExecStart=x\n"
BESIDE: Final = (Elsewhere("ANKITA_STATE_DIR", STATE, f"{HOME}/clone/.run/state", True),)


def unit(version: str = "0.1", program: tuple[str, ...] = NEW) -> str:
    """A unit file that some version wrote."""
    return render_service(TEMPLATE, ServiceFacts(program, {}, version, 252))


UP: Final = UnitState("loaded", "enabled", Activity.ACTIVE, "running", FILE, (), False, 7, 0, "success", None, "")
SEEN: Final = ServiceSeen(
    UP, judge_file(FILE, unit(), unit()), (), True, NEW, journal="journalctl --user -u ankita-agent -n 30 --no-pager"
)
HERE: Final = Led(STATE, f"{HOME}/.config/ankita-agent")
AGENT: Final = AgentSeen(HERE, HERE, 7, Doing.WELL, 7, ())
DROP_IN: Final = f"{HOME}/.config/systemd/user/ankita-agent.service.d/x y.conf"


def of_sessions() -> Iterator[Finding]:
    """Those of the way to the manager."""
    yield from judge_whose(Place("root", 0, sudo_user="ann"), has_agent=False)
    session = Session(ANN, "/run/user/4242", {}, False, None, True)
    for reason in Unreachable:
        for place in (ANN, replace(ANN, lingers=True), replace(ANN, remote=True), replace(ANN, container="docker")):
            yield from judge_session(replace(session, place=place, fault=unreachable(reason, place, "it is so")))
    yield from judge_session(replace(session, fault=silent("state", Duration(2 * SECOND))))
    yield from judge_session(replace(session, foreign={"XDG_RUNTIME_DIR": "/run/user/0"}))
    yield from judge_session(replace(session, unset=True, lingers=False))
    yield from judge_session(replace(session, lingers=None))


def of_services() -> Iterator[Finding]:
    """Those of the service, in shells of its own directories and of others."""
    copies = (UnitCopy("/etc/systemd/user/ankita-agent.service", False, "/x"), UnitCopy(FILE + "x", True))
    missing = replace(UP, load="not-found", file="", fragment="", activity=Activity.INACTIVE)
    gone, bad = judge_file(FILE, None, unit()), replace(UP, load="bad-setting")
    failed = replace(UP, activity=Activity.FAILED, result="exit-code", exit_status=203)
    states = [
        replace(SEEN, copies_before=copies, copies_behind=copies, system_copies=copies),
        replace(SEEN, file=gone, copies_behind=copies, state=replace(UP, fragment=copies[0].path)),
        *(replace(SEEN, state=replace(UP, file=word)) for word in ("masked", "masked-runtime", "disabled")),
        replace(SEEN, state=missing),
        replace(SEEN, state=missing, file=gone),
        replace(SEEN, state=replace(missing, activity=Activity.ACTIVE), file=gone),
        replace(SEEN, file=gone),
        replace(SEEN, file=gone, state=replace(UP, activity=Activity.INACTIVE)),
        replace(SEEN, state=bad, complaints=("Service has more than one ExecStart= setting. Refusing.",)),
        replace(SEEN, state=bad, file=judge_file(FILE, unit() + "x", unit())),
        replace(SEEN, state=bad, file=judge_file(FILE, unit("0.0.9"), unit())),
        replace(SEEN, state=replace(bad, fragment="/etc/systemd/user/ankita-agent.service")),
        replace(SEEN, state=replace(bad, drop_ins=(DROP_IN,)), complaints=("Refusing.",)),
        replace(SEEN, state=replace(bad, drop_ins=(DROP_IN, "/b.conf")), own_drop_ins=frozenset({DROP_IN})),
        replace(SEEN, program_there=False),
        replace(SEEN, file=judge_file(FILE, unit() + "x", unit())),
        replace(SEEN, file=judge_file(FILE, unit(program=("/old/python",)), unit())),
        replace(SEEN, file=judge_file(FILE, unit("0.0.9"), unit())),
        replace(SEEN, others=(FileChange(f"{HOME}/app.slice", None, "x", Change.NEW),)),
        replace(SEEN, state=replace(UP, needs_reload=True)),
        replace(SEEN, state=failed),
        replace(SEEN, state=replace(failed, exit_status=78)),
        replace(SEEN, state=replace(failed, exit_status=9, by_signal=True, result="signal")),
        replace(SEEN, state=replace(failed, exit_status=None, result="timeout")),
        *(
            replace(SEEN, state=replace(failed, activity=Activity.ACTIVATING, sub="auto-restart", restarts=restarts))
            for restarts in (0, 1, 9)
        ),
        replace(SEEN, state=replace(UP, activity=Activity.INACTIVE)),
        replace(SEEN, state=replace(UP, restarts=3, drop_ins=(DROP_IN,)), controllers=frozenset()),
    ]
    for seen in states:
        yield from judge_service(seen, "0.0.9", "0.1")
        yield from judge_service(replace(seen, elsewhere=BESIDE), "0.1", "0.1")


def of_agents() -> Iterator[Finding]:
    """Those of the agent and of the places of shell and service."""
    yield from judge_agent(AgentSeen(HERE, None, None, Doing.NOBODY, None, ()))
    for doing in Doing:
        for pid in (7, 8):
            yield from judge_agent(replace(AGENT, doing=doing, pid=pid))
    yield from judge_agent(replace(AGENT, degraded=("the disk is full", "/x: bad; they stay; see: ankita-agent check")))
    for variables in ((), ("ANKITA_STATE_DIR",), ("XDG_STATE_HOME",)):
        for config in (HERE.config, "/other"):
            led = Led(f"{HOME}/clone/.run/state", config, variables)
            yield from judge_agent(replace(AGENT, shell=led, pid=9))
            yield from judge_agent(replace(AGENT, shell=led, pid=None, doing=Doing.NOBODY))


def of_routines() -> Iterator[Finding]:
    """Those of the file of routines."""
    user = UserFacts(HOME, "ann", "/bin/sh", None, None)
    error = Problem(4, 1, "schedule: '*/5 * * *' has 4 fields", "write `*/5 * * * *`")
    unsafe = Problem(0, 0, f"{CONFIG!r} may be written to by everybody", "close it: chmod o-w '/x'")
    warning = replace(error, severity=Refusal.WARNING)
    seen = RoutinesSeen(CONFIG, True, copy=f"{STATE}/last-good.yaml")
    for before in ((), ("backup",), ("a", "b", "c", "d", "e", "f")):
        for stay in (False, True):
            yield from judge_routines(replace(seen, there=False, before=before, stay=stay), user)
        for problems in ((error,), (unsafe,), (warning, warning)):
            yield from judge_routines(replace(seen, problems=problems, before=before), user)
    yield from judge_routines(replace(seen, commands=(CommandSeen("a", "brief", f"{HOME}/bin"),)), user)


def of_states() -> Iterator[Finding]:
    """Those of the state directory, the ledger and the account."""
    closed = CannotWriteState(
        f"will not use {STATE!r}", fact="its mode is 0755", do=f"close it: chmod 700 {shlex.quote(STATE)}"
    )
    damaged = LedgerDamaged("the ledger /x is damaged", fact="x", do="an owner begins a new one: ankita-agent run")
    yield from judge_state(closed, damaged, "ankita-agent restart")
    for mistake in Mistake:
        wrong = Reckoning(at(0), at(9), 1, Discrepancy(at(5), mistake, 2, 1))
        yield from judge_account([("briefing", at(0))], {"backup": wrong})


def of_machines() -> Iterator[Finding]:
    """Those of the machine."""
    for messages in MessagesSeen:
        for ours in (False, True):
            yield from judge_machine(MachineSeen(DiskSeen(STATE, 0, 0, True), messages, False, ours))


EVERY: Final = [
    *of_sessions(),
    *of_services(),
    *of_agents(),
    *of_routines(),
    *of_states(),
    *of_machines(),
]


def test_every_finding_is_among_them() -> None:
    assert {each.id for each in EVERY} == set(FindingId)


@pytest.mark.parametrize("finding", EVERY, ids=lambda each: each.id)
def test_its_words_are_whole_and_its_command_can_be_typed_as_it_stands(finding: Finding) -> None:
    assert finding.what
    for text in (finding.what, finding.fact, finding.do):
        assert text == text.strip()
        assert not text.endswith((":", ";", ",", ".:"))
        assert "None" not in text
    if finding.command:
        assert is_command(finding.command)
        assert finding.command not in finding.do.replace(f"`{finding.command}`", "")
        for part in finding.command.split(" && "):
            assert is_command(part)
            assert shlex.split(part)[-1][-1] not in ":;,."
        assert finding.do


@pytest.mark.parametrize("finding", EVERY, ids=lambda each: each.id)
def test_what_matters_says_what_to_do(finding: Finding) -> None:
    if finding.matters and finding.id is not FindingId.AGENT_DEGRADED:
        assert finding.command or finding.do
    if finding.mend is not None:
        assert finding.command
