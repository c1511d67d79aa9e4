"""Each finding of doctor: the facts that give it, those that do not, and the command that it names."""

import shlex
from dataclasses import replace
from typing import Final

import pytest

from ankita_agent.core.diagnosis import ServiceSeen, Session, UnitCopy, judge_service, judge_session
from ankita_agent.core.environment import UserFacts
from ankita_agent.core.errors import AnkitaError, CannotWriteState, LedgerDamaged
from ankita_agent.core.findings import Finding, FindingId, Mend, Severity
from ankita_agent.core.install_plan import Change, FileChange, judge_file
from ankita_agent.core.instants import SECOND, Duration
from ankita_agent.core.problems import Problem
from ankita_agent.core.problems import Severity as Refusal
from ankita_agent.core.reaching import Place, silent, unreachable
from ankita_agent.core.reckoning import Discrepancy, Reckoning
from ankita_agent.core.service import Activity, UnitState, Unreachable
from ankita_agent.core.state_diagnosis import (
    AgentSeen,
    CommandSeen,
    DiskSeen,
    Doing,
    Led,
    MachineSeen,
    MessagesSeen,
    RoutinesSeen,
    judge_account,
    judge_agent,
    judge_machine,
    judge_routines,
    judge_state,
    program_of,
)
from ankita_agent.core.unit_file import ServiceFacts, render_service
from tests.ledgers import at

HOME: Final = "/home/ann"
PATH: Final = f"{HOME}/.local/share/systemd/user/ankita-agent.service"
PROGRAM: Final = ("/opt/py/bin/python", "-P", "-m", "ankita_agent", "run", "--standby")
TEMPLATE: Final = "[Unit]\nDescription=x\n\n[Service]\nExecStart=x\n\n[Install]\nWantedBy=default.target\n"
ANN: Final = Place("ann", 4242)
SESSION: Final = Session(ANN, "/run/user/4242", {}, False, None, True)
UP: Final = UnitState(
    load="loaded",
    file="enabled",
    activity=Activity.ACTIVE,
    sub="running",
    fragment=PATH,
    drop_ins=(),
    needs_reload=False,
    main_pid=7,
    restarts=0,
    result="success",
    exit_status=None,
    status_text="",
)


def unit(version: str = "0.1", program: tuple[str, ...] = PROGRAM) -> str:
    """A unit file that some version wrote."""
    return render_service(TEMPLATE, ServiceFacts(program, {}, version, 252))


WELL: Final = ServiceSeen(
    state=UP,
    file=judge_file(PATH, unit(), unit()),
    others=(),
    program_there=True,
    program=PROGRAM,
    controllers=frozenset({"cpu", "memory"}),
)


def of_service(seen: ServiceSeen = WELL, behind: str | None = None, **state: object) -> dict[FindingId, Finding]:
    """What is found of a service in that state."""
    changed = replace(seen, state=replace(seen.state, **state))  # type: ignore[arg-type]
    return {each.id: each for each in judge_service(changed, behind, "0.1")}


def of_session(session: Session) -> dict[FindingId, Finding]:
    """What is found of a session."""
    return {each.id: each for each in judge_session(session)}


# --- the session --------------------------------------------------------------------------------------


def test_an_ordinary_session_and_a_service_that_is_well_give_no_findings() -> None:
    assert of_session(SESSION) == {}
    assert of_service() == {}
    assert of_service(behind="0.1") == {}


def test_root_by_sudo_is_told_and_root_itself_is_not() -> None:
    by_sudo = of_session(replace(SESSION, place=Place("root", 0, sudo_user="ann")))
    assert list(by_sudo) == [FindingId.ROOT_BY_SUDO]
    assert "not about that of ann" in by_sudo[FindingId.ROOT_BY_SUDO].what
    for place in (Place("root", 0), Place("root", 0, sudo_user="root"), Place("ann", 4242, sudo_user="bob")):
        assert of_session(replace(SESSION, place=place)) == {}


@pytest.mark.parametrize("reason", [each for each in Unreachable if each is not Unreachable.NO_SYSTEMD])
def test_a_manager_that_cannot_be_asked_is_an_error_with_its_command(reason: Unreachable) -> None:
    fault = unreachable(reason, ANN, "no socket")
    found = of_session(replace(SESSION, fault=fault))[FindingId.MANAGER_UNREACHABLE]
    assert (found.severity, found.fact, found.do) == (Severity.ERROR, "no socket", fault.do)
    assert found.command in fault.do


def test_no_systemd_at_all_is_a_note_that_says_what_works() -> None:
    found = of_session(replace(SESSION, fault=unreachable(Unreachable.NO_SYSTEMD, ANN, "x"), lingers=None))
    assert list(found) == [FindingId.MANAGER_UNREACHABLE]
    assert found[FindingId.MANAGER_UNREACHABLE].severity is Severity.NOTE
    assert "ankita-agent run" in found[FindingId.MANAGER_UNREACHABLE].do


def test_a_manager_that_does_not_answer_is_an_error() -> None:
    found = of_session(replace(SESSION, fault=silent("state", Duration(2 * SECOND))))
    assert list(found) == [FindingId.MANAGER_SILENT]
    assert found[FindingId.MANAGER_SILENT].severity is Severity.ERROR


def test_variables_of_another_user_are_told_with_unset_and_not_what_they_lack() -> None:
    foreign = {"XDG_RUNTIME_DIR": "/run/user/0", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/0/bus"}
    found = of_session(replace(SESSION, foreign=foreign, unset=True))
    assert list(found) == [FindingId.FOREIGN_SESSION]
    assert found[FindingId.FOREIGN_SESSION].command == "unset XDG_RUNTIME_DIR DBUS_SESSION_BUS_ADDRESS"
    assert "XDG_RUNTIME_DIR=/run/user/0" in found[FindingId.FOREIGN_SESSION].what


def test_a_shell_without_a_runtime_directory_is_a_note_where_there_is_a_manager() -> None:
    found = of_session(replace(SESSION, unset=True))
    assert found[FindingId.SESSION_UNSET].command == "export XDG_RUNTIME_DIR=/run/user/4242"
    assert not found[FindingId.SESSION_UNSET].matters
    without = replace(SESSION, unset=True, fault=unreachable(Unreachable.NO_SOCKET, ANN, "x"))
    assert FindingId.SESSION_UNSET not in of_session(without)


@pytest.mark.parametrize("reason", [None, *Unreachable])
def test_lingering_that_is_off_is_told_where_it_would_help(reason: Unreachable | None) -> None:
    fault = None if reason is None else unreachable(reason, ANN, "x")
    found = of_session(replace(SESSION, fault=fault, lingers=False))
    helps = reason in (None, Unreachable.NO_RUNTIME_DIRECTORY, Unreachable.NO_SOCKET)
    assert (FindingId.LINGERING_OFF in found) == helps
    if helps:
        finding = found[FindingId.LINGERING_OFF]
        assert (finding.command, finding.mend) == ("loginctl enable-linger ann", Mend.LINGER)


def test_lingering_that_nobody_can_tell_is_a_note() -> None:
    found = of_session(replace(SESSION, lingers=None))
    assert [(each.id, each.severity) for each in found.values()] == [(FindingId.NOT_ASKED, Severity.NOTE)]


# --- the service --------------------------------------------------------------------------------------


def changed(before: str | None, after: str, **seen: object) -> ServiceSeen:
    """The service with that unit file, where this version would write another."""
    return replace(WELL, file=judge_file(PATH, before, after), **seen)  # type: ignore[arg-type]


NOT_LOADED: Final = {"load": "not-found", "file": "", "fragment": "", "activity": Activity.INACTIVE}


def test_a_service_that_is_not_installed_is_told_alone() -> None:
    found = of_service(changed(None, unit()), **NOT_LOADED)
    assert list(found) == [FindingId.NOT_INSTALLED]
    assert (found[FindingId.NOT_INSTALLED].command, found[FindingId.NOT_INSTALLED].mend) == (
        "ankita-agent install",
        Mend.INSTALL,
    )


def test_a_unit_file_that_was_never_read_needs_a_reload_alone() -> None:
    found = of_service(WELL, **NOT_LOADED)
    assert list(found) == [FindingId.NOT_READ_AGAIN]
    assert found[FindingId.NOT_READ_AGAIN].command == "systemctl --user daemon-reload"
    assert found[FindingId.NOT_READ_AGAIN].mend is Mend.RELOAD


def test_a_masked_service_is_told_alone_and_never_unmasked_by_itself() -> None:
    for state in ({"load": "masked"}, {"file": "masked-runtime"}):
        found = of_service(WELL, activity=Activity.INACTIVE, **state)
        assert list(found) == [FindingId.MASKED]
        assert found[FindingId.MASKED].command == "systemctl --user unmask ankita-agent"
        assert found[FindingId.MASKED].mend is None


def test_a_unit_that_systemd_cannot_use_is_told_and_not_that_it_does_not_run() -> None:
    found = of_service(load="bad-setting", activity=Activity.INACTIVE)
    assert list(found) == [FindingId.UNIT_UNUSABLE]
    assert found[FindingId.UNIT_UNUSABLE].mend is Mend.INSTALL


@pytest.mark.parametrize(
    ("seen", "id_", "mend"),
    [
        (changed(unit("0.0.9"), unit()), FindingId.UNIT_OUTDATED, Mend.INSTALL),
        (changed(unit() + "# mine\n", unit()), FindingId.UNIT_EDITED, None),
        (changed("[Service]\nExecStart=/opt/py/bin/python\n", unit()), FindingId.UNIT_EDITED, None),
        (changed(unit(program=("/old/python",)), unit()), FindingId.PROGRAM_OTHER, None),
        (changed(unit(program=("/old/python",)), unit(), program_there=False), FindingId.PROGRAM_GONE, Mend.INSTALL),
        (changed(unit() + "# mine\n", unit(), program_there=False), FindingId.PROGRAM_GONE, Mend.INSTALL),
        (
            replace(WELL, others=(FileChange("/x/app-ankita.slice", None, "x", Change.NEW),)),
            FindingId.UNIT_OUTDATED,
            Mend.INSTALL,
        ),
    ],
)
def test_a_unit_file_that_is_not_as_it_should_be_gives_one_finding(
    seen: ServiceSeen, id_: FindingId, mend: Mend | None
) -> None:
    found = of_service(seen, needs_reload=True)
    assert list(found) == [id_]
    assert (found[id_].command, found[id_].mend) == ("ankita-agent install", mend)


def test_a_unit_file_that_was_changed_since_systemd_read_it_needs_a_reload() -> None:
    found = of_service(needs_reload=True)
    assert list(found) == [FindingId.NOT_READ_AGAIN]
    by_others = of_service(changed(None, unit()), needs_reload=True, fragment="/usr/lib/systemd/user/x.service")
    assert list(by_others) == [FindingId.NOT_READ_AGAIN]


@pytest.mark.parametrize(("own", "command"), [(True, "mv"), (False, "sudo mv")])
def test_a_copy_that_counts_for_more_is_told_with_what_puts_it_aside(own: bool, command: str) -> None:
    copy = UnitCopy("/etc/a b/ankita-agent.service", own)
    found = of_service(replace(WELL, copies_before=(copy,)), fragment=copy.path)
    assert list(found) == [FindingId.SECOND_COPY]
    assert found[FindingId.SECOND_COPY].command == (
        f"{command} '/etc/a b/ankita-agent.service' '/etc/a b/ankita-agent.service.aside' "
        "&& systemctl --user daemon-reload"
    )


def test_a_copy_that_systemd_found_and_could_not_read_is_told_in_place_of_a_reload() -> None:
    seen = replace(WELL, copies_before=(UnitCopy("/etc/systemd/user/ankita-agent.service", False),))
    assert list(of_service(seen, **NOT_LOADED)) == [FindingId.SECOND_COPY]


def test_a_copy_that_counts_for_less_is_a_note_and_a_link_of_ours_or_a_mask_is_none() -> None:
    found = of_service(replace(WELL, copies_behind=(UnitCopy("/usr/lib/systemd/user/ankita-agent.service", False),)))
    assert [(each.id, each.severity) for each in found.values()] == [(FindingId.SECOND_COPY, Severity.NOTE)]
    for link in (PATH, "/dev/null"):
        assert of_service(replace(WELL, copies_before=(UnitCopy("/x/ankita-agent.service", True, link),))) == {}


def test_a_unit_that_somebody_else_installed_is_a_note() -> None:
    path = "/usr/lib/systemd/user/ankita-agent.service"
    seen = replace(changed(None, unit()), copies_behind=(UnitCopy(path, False),))
    found = of_service(seen, fragment=path)
    assert [(each.id, each.matters) for each in found.values()] == [(FindingId.UNIT_OF_OTHERS, False)]


def test_a_system_service_of_the_name_is_told() -> None:
    copy = UnitCopy("/etc/systemd/system/ankita-agent.service", False)
    found = of_service(replace(WELL, system_copies=(copy,)))
    assert list(found) == [FindingId.SYSTEM_COPY]
    assert found[FindingId.SYSTEM_COPY].command.startswith("sudo systemctl disable --now ankita-agent && sudo mv ")


@pytest.mark.parametrize("word", ["disabled", "linked", "linked-runtime"])
def test_a_service_that_is_not_enabled_is_told(word: str) -> None:
    found = of_service(file=word)
    assert list(found) == [FindingId.NOT_ENABLED]
    assert (found[FindingId.NOT_ENABLED].command, found[FindingId.NOT_ENABLED].mend) == (
        "systemctl --user enable ankita-agent",
        Mend.ENABLE,
    )


@pytest.mark.parametrize("word", ["enabled", "enabled-runtime", "static", "generated"])
def test_a_service_that_starts_by_itself_or_by_another_is_not_told_to_be_enabled(word: str) -> None:
    assert of_service(file=word) == {}


def test_a_service_that_does_not_run_is_told_with_start() -> None:
    found = of_service(activity=Activity.INACTIVE, sub="dead", main_pid=None)
    assert [(each.id, each.command, each.mend) for each in found.values()] == [
        (FindingId.NOT_ACTIVE, "ankita-agent start", Mend.START)
    ]


@pytest.mark.parametrize(
    ("result", "status", "by_signal", "fact", "mend"),
    [
        ("exit-code", 1, False, "exit-code, exit status 1", Mend.START),
        ("exit-code", 203, False, "could not be executed", Mend.START),
        ("signal", 9, True, "killed by signal 9", Mend.START),
        ("signal", 78, True, "killed by signal 78", Mend.START),
        ("timeout", None, False, "systemd says timeout", Mend.START),
        ("exit-code", 78, False, "exit status 78", None),
    ],
)
def test_a_failed_service_is_told_with_how_it_ended(
    result: str, status: int | None, by_signal: bool, fact: str, mend: Mend | None
) -> None:
    found = of_service(activity=Activity.FAILED, result=result, exit_status=status, by_signal=by_signal)
    assert list(found) == [FindingId.FAILED]
    assert fact in found[FindingId.FAILED].fact
    assert found[FindingId.FAILED].mend is mend
    assert found[FindingId.FAILED].command.endswith("ankita-agent start")


def test_a_service_that_ends_again_and_again_is_an_error_and_one_that_starts_is_none() -> None:
    found = of_service(activity=Activity.ACTIVATING, sub="auto-restart", restarts=9, result="exit-code", exit_status=1)
    assert list(found) == [FindingId.RESTARTING]
    assert "9 times" in found[FindingId.RESTARTING].what
    assert of_service(activity=Activity.ACTIVATING, sub="start") == {}


@pytest.mark.parametrize(("restarts", "told"), [(0, False), (2, False), (3, True)])
def test_a_service_that_was_brought_back_often_is_a_note(restarts: int, told: bool) -> None:
    found = of_service(restarts=restarts)
    assert (FindingId.BROUGHT_BACK in found) == told
    assert not any(each.matters for each in found.values())


def test_an_agent_of_another_version_than_the_installed_one_is_told_with_restart() -> None:
    found = of_service(behind="0.0.9")
    assert [(each.id, each.command, each.mend) for each in found.values()] == [
        (FindingId.VERSION_BEHIND, "ankita-agent restart", None)
    ]


def test_each_drop_in_is_a_note() -> None:
    found = list(judge_service(replace(WELL, state=replace(UP, drop_ins=("/a/x.conf", "/a/y z.conf"))), None, "0.1"))
    assert [(each.id, each.command) for each in found] == [
        (FindingId.DROP_IN, "cat /a/x.conf"),
        (FindingId.DROP_IN, "cat '/a/y z.conf'"),
    ]
    assert not any(each.matters for each in found)


@pytest.mark.parametrize(("controllers", "told"), [(None, False), (frozenset(), True), (frozenset({"cpu"}), True)])
def test_limits_on_memory_that_have_no_effect_are_a_note(controllers: frozenset[str] | None, told: bool) -> None:
    found = of_service(replace(WELL, controllers=controllers))
    assert (FindingId.LIMITS_WITHOUT_EFFECT in found) == told
    assert not any(each.matters for each in found.values())


# --- the agent and its state --------------------------------------------------------------------------

HERE: Final = Led("/s", "/c")
AGENT: Final = AgentSeen(HERE, HERE, 7, Doing.WELL, 7, ())


def of_agent(seen: AgentSeen) -> dict[FindingId, Finding]:
    """What is found of an agent."""
    return {each.id: each for each in judge_agent(seen)}


def test_an_agent_that_is_well_gives_no_finding_be_it_service_or_not() -> None:
    assert of_agent(AGENT) == {}
    assert of_agent(replace(AGENT, service=None, service_pid=None)) == {}
    assert of_agent(replace(AGENT, service_pid=8)) == {}  # the service is a standby of the owner
    assert of_agent(replace(AGENT, doing=Doing.NOBODY, pid=None)) == {}  # a standby that has not owned yet


def test_nobody_at_all_is_told_with_run() -> None:
    found = of_agent(AgentSeen(HERE, None, None, Doing.NOBODY, None, ()))
    assert [(each.id, each.command) for each in found.values()] == [(FindingId.NO_AGENT, "ankita-agent run")]


def test_a_shell_that_looks_elsewhere_is_told_how_to_look_where_the_service_does() -> None:
    led = replace(AGENT, shell=Led("/other", "/c", ("ANKITA_STATE_DIR",)), doing=Doing.NOBODY, pid=None)
    found = of_agent(led)
    assert [(each.id, each.command) for each in found.values()] == [(FindingId.OTHER_PLACES, "unset ANKITA_STATE_DIR")]
    assert "/other (the service: /s)" in found[FindingId.OTHER_PLACES].what
    other = of_agent(replace(AGENT, service=Led("/my state", "/c"), doing=Doing.NOBODY, pid=None))
    export = "export ANKITA_STATE_DIR='/my state' ANKITA_CONFIG_DIR=/c"
    assert other[FindingId.OTHER_PLACES].command == export


def test_two_owners_are_told_only_where_there_are_two() -> None:
    elsewhere = replace(AGENT, shell=Led("/other", "/c"), pid=9)
    found = of_agent(elsewhere)
    assert list(found) == [FindingId.OTHER_PLACES, FindingId.TWO_OWNERS]
    assert found[FindingId.TWO_OWNERS].command == "kill 9"
    for one in (replace(elsewhere, pid=None), replace(elsewhere, service_pid=None), replace(elsewhere, pid=7)):
        assert FindingId.TWO_OWNERS not in of_agent(one)


@pytest.mark.parametrize(
    ("doing", "id_", "command"),
    [
        (Doing.STOPPED, FindingId.AGENT_STOPPED, "kill -CONT 7"),
        (Doing.WEDGED, FindingId.AGENT_WEDGED, "kill -ABRT 7"),
    ],
)
def test_an_owner_that_does_nothing_is_an_error(doing: Doing, id_: FindingId, command: str) -> None:
    found = of_agent(replace(AGENT, doing=doing))
    assert [(each.id, each.severity, each.command) for each in found.values()] == [(id_, Severity.ERROR, command)]


def test_each_reason_why_the_agent_is_degraded_is_told() -> None:
    found = list(judge_agent(replace(AGENT, degraded=("the disk is full", "stuck"))))
    assert [each.id for each in found] == [FindingId.AGENT_DEGRADED] * 2
    assert "the disk is full" in found[0].what


USER: Final = UserFacts(HOME, "ann", "/bin/sh", None, None)


def of_routines(seen: RoutinesSeen) -> list[Finding]:
    """What is found of a file of routines."""
    return list(judge_routines(seen, USER))


def test_a_good_file_of_routines_gives_no_finding_and_none_at_all_a_note() -> None:
    assert of_routines(RoutinesSeen("/c/routines.yaml", True)) == []
    assert [(each.id, each.matters) for each in of_routines(RoutinesSeen("/c/r", False))] == [
        (FindingId.ROUTINES_ABSENT, False)
    ]


def test_a_bad_file_of_routines_is_an_error_and_warnings_are_warnings() -> None:
    warning = Problem(3, 2, "odd", "write it otherwise", Refusal.WARNING)
    error = Problem(4, 1, "bad", "write `x`")
    refused = of_routines(RoutinesSeen("/c/r", True, (warning, error)))
    assert [(each.id, each.severity) for each in refused] == [(FindingId.ROUTINES_REFUSED, Severity.ERROR)]
    assert refused[0].what == "/c/r:4:1: bad"
    warned = of_routines(RoutinesSeen("/c/r", True, (warning, warning)))
    assert [(each.id, each.command) for each in warned] == [(FindingId.ROUTINES_WARNED, "ankita-agent check")]
    assert warned[0].what == "/c/r:3:2: odd, and 1 more"


def test_a_command_that_only_the_shell_finds_is_told_with_both_ways_to_write_it() -> None:
    [found] = of_routines(RoutinesSeen("/c/r", True, (), (CommandSeen("a", "brief", "/opt/x"),)))
    assert found.id is FindingId.COMMAND_NOT_FOUND
    assert "`/opt/x/brief`" in found.do
    assert '`defaults: {env: {PATH: "/opt/x:/home/ann/.local/bin:' in found.do


@pytest.mark.parametrize(
    ("argv", "program"),
    [
        (("/bin/sh", "-c", "brief --short | mail"), "brief"),
        (("/bin/sh", "-c", "brief"), "brief"),
        (("brief", "-x"), "brief"),
        (("/bin/sh", "-c", "~/bin/brief"), None),
        (("/bin/sh", "-c", "X=1 brief"), None),
        (("/bin/sh", "-c", "(brief)"), None),
        (("/bin/sh", "-c", "$BRIEF"), None),
        (("/bin/sh", "-c", "  "), None),
        (("/usr/bin/brief",), None),
        (("/bin/bash", "-c", "brief"), None),
    ],
)
def test_the_program_is_told_where_a_path_decides_which_it_is(argv: tuple[str, ...], program: str | None) -> None:
    assert program_of(argv, "/bin/sh") == program


def test_a_state_directory_or_a_ledger_that_cannot_be_used_is_an_error_with_the_command_in_its_fault() -> None:
    assert list(judge_state(None, None)) == []
    state: AnkitaError = CannotWriteState("will not use '/s'", fact="its mode is 0755", do="close it: chmod 700 /s")
    ledger: AnkitaError = LedgerDamaged("damaged", fact="no database", do="start the agent: it sets it aside")
    found = list(judge_state(state, ledger))
    assert [each.id for each in found] == [FindingId.STATE_UNUSABLE, FindingId.LEDGER_UNREADABLE]
    assert (found[0].do, found[0].command) == ("close it", "chmod 700 /s")


def test_doubled_and_left_out_slots_are_errors_that_name_routine_and_slot() -> None:
    right = Reckoning(at(0), at(9), 1, None)
    assert list(judge_account([], {"backup": right})) == []
    out = replace(right, wrong=Discrepancy(at(5), True, 2, 1))
    more = replace(right, wrong=Discrepancy(at(5), False, 1, 2))
    found = list(judge_account([("briefing", at(0))], {"out": out, "more": more}))
    assert [(each.id, each.severity) for each in found] == [
        (FindingId.SLOT_DOUBLED, Severity.ERROR),
        (FindingId.SLOT_LEFT_OUT, Severity.ERROR),
        (FindingId.SLOT_DOUBLED, Severity.ERROR),
    ]
    assert "briefing" in found[0].what
    assert "2026-01-01T08:00:00Z" in found[0].what
    assert "2026-01-01T08:05:00Z" in found[1].what


# --- the machine --------------------------------------------------------------------------------------

SPACE: Final = DiskSeen("/s", 10**12, 10**6, False)
MACHINE: Final = MachineSeen(SPACE, MessagesSeen.KEPT, True)


def of_machine(seen: MachineSeen) -> dict[FindingId, Finding]:
    """What is found of a machine."""
    return {each.id: each for each in judge_machine(seen)}


@pytest.mark.parametrize(
    "seen",
    [
        MACHINE,
        MachineSeen(None, MessagesSeen.NONE, None),
        replace(MACHINE, disk=replace(SPACE, inodes=None)),
    ],
)
def test_a_machine_that_is_well_or_tells_nothing_gives_no_finding(seen: MachineSeen) -> None:
    assert of_machine(seen) == {}


@pytest.mark.parametrize(
    ("seen", "id_", "severity"),
    [
        (replace(MACHINE, disk=replace(SPACE, read_only=True)), FindingId.READ_ONLY, Severity.ERROR),
        (replace(MACHINE, disk=replace(SPACE, free=10**6)), FindingId.DISK_NEARLY_FULL, Severity.WARNING),
        (replace(MACHINE, disk=replace(SPACE, inodes=9)), FindingId.INODES_NEARLY_USED_UP, Severity.WARNING),
        (replace(MACHINE, messages=MessagesSeen.VOLATILE), FindingId.JOURNAL_VOLATILE, Severity.NOTE),
        (replace(MACHINE, messages=MessagesSeen.UNREADABLE), FindingId.JOURNAL_UNREADABLE, Severity.NOTE),
        (replace(MACHINE, clock=False), FindingId.CLOCK_UNSYNCHRONISED, Severity.WARNING),
        (replace(MACHINE, clock=False, ours=False), FindingId.CLOCK_UNSYNCHRONISED, Severity.NOTE),
    ],
)
def test_what_is_the_matter_with_a_machine_is_told(seen: MachineSeen, id_: FindingId, severity: Severity) -> None:
    found = of_machine(seen)
    assert [(each.id, each.severity) for each in found.values()] == [(id_, severity)]
    assert found[id_].command or found[id_].do


def test_every_command_is_one_that_a_shell_can_read() -> None:
    found = [
        *of_service(behind="0.0.9", drop_ins=("/it's/x.conf",)).values(),
        *of_machine(replace(MACHINE, disk=DiskSeen("/it's", 0, 0, True))).values(),
        *of_agent(replace(AGENT, service=Led("/it's", "/c"))).values(),
        *of_session(replace(SESSION, lingers=False)).values(),
    ]
    assert len(found) >= 7
    assert all(shlex.split(each.command) for each in found)
