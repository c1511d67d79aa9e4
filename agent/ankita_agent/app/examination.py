"""Looking for what is the matter: facts from the ports, judgement from core.

Looking takes no lock and writes nothing. Whoever does not answer, or must not be asked, is told as a finding of its
own, and everything else is looked at all the same. Nothing of a service is mended in a shell that has other
directories, or by root for somebody else: it is hardly the one that is meant.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from ankita_agent.app.account import AccountTold, take_account
from ankita_agent.app.inspection import OwnerState
from ankita_agent.app.patient import Asked, Patient, StateSeen
from ankita_agent.app.routines import EMPTY
from ankita_agent.app.service_facts import (
    ServiceFacts,
    compare_places,
    gather,
    service_seen,
    version_behind,
)
from ankita_agent.core.advice import as_root
from ankita_agent.core.agent_diagnosis import AgentSeen, Doing, Led, judge_agent
from ankita_agent.core.environment import service_environment
from ankita_agent.core.errors import AnkitaError, ManagerUnreachable
from ankita_agent.core.findings import Finding, FindingId
from ankita_agent.core.machine_diagnosis import MachineSeen, judge_machine
from ankita_agent.core.routine import Routine
from ankita_agent.core.routines_diagnosis import CommandSeen, RoutinesSeen, judge_routines, program_of
from ankita_agent.core.service import Unreachable
from ankita_agent.core.service_diagnosis import judge_service
from ankita_agent.core.session_diagnosis import Session, judge_session, judge_whose
from ankita_agent.core.state_diagnosis import judge_account, judge_state
from ankita_agent.ports.ledger import LedgerReader
from ankita_agent.ports.premises import Premises
from ankita_agent.ports.routine_source import Absent, Unusable

_RUNTIME: Final = "XDG_RUNTIME_DIR"
_BUS: Final = "DBUS_SESSION_BUS_ADDRESS"

_WHY_NO_AGENT: Final = frozenset(
    {
        FindingId.NOT_INSTALLED,
        FindingId.NOT_READ_AGAIN,
        FindingId.SECOND_COPY,
        FindingId.MASKED,
        FindingId.UNIT_UNUSABLE,
        FindingId.DROP_IN_UNUSABLE,
        FindingId.STATE_UNUSABLE,
    }
)
"""Findings after which it is no news that no agent runs, or nobody can tell."""

_TOLD_BETTER: Final = {
    FindingId.NO_AGENT: _WHY_NO_AGENT,
    FindingId.LINGERING_OFF: frozenset({FindingId.NOT_INSTALLED}),
    FindingId.ROUTINES_ABSENT: frozenset({FindingId.NOT_INSTALLED}),
}
"""What need not be told beside which others: installing does for it, or it follows from them."""

_DOING: Final = {
    OwnerState.BUSY: Doing.WELL,
    OwnerState.IDLE: Doing.WELL,
    OwnerState.STOPPED: Doing.STOPPED,
    OwnerState.WEDGED: Doing.WEDGED,
}


@dataclass(frozen=True, slots=True)
class Examination:
    """What is the matter, and the account; None where there is no ledger to take it from."""

    findings: tuple[Finding, ...]
    account: AccountTold | None

    @property
    def healthy(self) -> bool:
        """Whether there is nothing to mend."""
        return not any(finding.matters for finding in self.findings)


def examine(patient: Patient, asked: Asked, state: StateSeen) -> Examination:
    """Look at everything once. Never raises for what it finds."""
    facts = gather(patient, asked)
    has_agent = (facts.state is not None and facts.state.load != "not-found") or state.ledger is not None
    whose = tuple(judge_whose(patient.place, has_agent=has_agent))
    if whose and not has_agent:
        return Examination(_for_user(whose, patient), None)
    shell, service = compare_places(patient, asked, facts)
    findings = [*whose, *judge_session(_session(patient, asked, facts.fault)), *facts.silent]
    if facts.state is not None:
        seen = service_seen(patient, asked, facts, facts.state)
        findings += judge_service(seen, version_behind(state.seen, facts.state), patient.version)
    findings += judge_agent(_agent_seen(patient, state, facts, shell, service))
    routines = _routines_seen(patient, asked, state, facts)
    if not routines.there and service is not None and service.state == shell.state and service.config != shell.config:
        routines = replace(routines, before=())  # those are of the file of the service
    findings += judge_routines(routines, patient.user)
    told, problem = (None, state.problem) if state.ledger is None else _account(state.ledger)
    findings += judge_state(state.examined, state.problem or problem, _beginning(patient, facts))
    if told is not None:
        findings += judge_account(told.doubled, told.reckonings)
    premises = asked.premises
    ours = patient.place.container is None and not patient.place.wsl and not _lacks_systemd(facts.fault)
    machine = MachineSeen(premises.disk(patient.places.state), premises.messages(), premises.clock_synchronised(), ours)
    findings += judge_machine(machine)
    if facts.elsewhere or whose:
        findings = [replace(each, mend=None) for each in findings]
    return Examination(_for_user(_without_repetition(findings, patient.places.routines), patient), told)


def _for_user(findings: Iterable[Finding], patient: Patient) -> tuple[Finding, ...]:
    """Root has no use for sudo(8), and often does not have it."""
    if patient.place.uid != 0:
        return tuple(findings)
    return tuple(replace(each, do=as_root(each.do), command=as_root(each.command)) for each in findings)


def _beginning(patient: Patient, facts: ServiceFacts) -> str:
    """The command with which an agent begins to own the state directory of this shell."""
    state = facts.state
    if facts.elsewhere or state is None or state.load != "loaded" or state.masked:
        return f"{patient.place.program} run"
    return f"ankita-agent {'restart' if state.activity.up else 'start'}"


def _lacks_systemd(fault: AnkitaError | None) -> bool:
    return isinstance(fault, ManagerUnreachable) and fault.reason is Unreachable.NO_SYSTEMD


def _session(patient: Patient, asked: Asked, fault: AnkitaError | None) -> Session:
    variables = patient.variables
    paths = {_RUNTIME: variables.get(_RUNTIME, ""), _BUS: _bus_path(variables.get(_BUS, ""))}
    foreign = {
        name: variables[name] for name, path in paths.items() if path and _is_foreign(path, patient, asked.premises)
    }
    lingers, unset = asked.lingering.lingers(), not variables.get(_RUNTIME)
    return Session(patient.place, patient.runtime_directory, foreign, unset, fault, lingers)


def _bus_path(address: str) -> str:
    """The path of the first socket of a D-Bus address; empty when it has none."""
    for part in address.split(";")[0].removeprefix("unix:").split(","):
        if part.startswith("path="):
            return part.removeprefix("path=")
    return ""


def _is_foreign(path: str, patient: Patient, premises: Premises) -> bool:
    if path == patient.runtime_directory or path.startswith(f"{patient.runtime_directory}/"):
        return False
    first, run, user, uid, *_ = [*path.split("/"), "", "", "", ""]
    if (first, run, user) == ("", "run", "user") and uid.isdigit():
        return True
    return premises.owner_of(path) not in (None, patient.place.uid)


def _agent_seen(patient: Patient, state: StateSeen, facts: ServiceFacts, shell: Led, service: Led | None) -> AgentSeen:
    owner, report, unit = state.seen.owner, state.seen.report, facts.state
    degraded = list(report.degraded) if report else []
    if owner is not None and owner.trouble and not any(each.startswith(owner.trouble) for each in degraded):
        degraded.append(owner.trouble)
    return AgentSeen(
        shell,
        service,
        unit.main_pid if unit is not None and unit.activity.up else None,
        Doing.NOBODY if owner is None else _DOING[owner.state],
        None if owner is None else owner.claim.card.process.pid,
        tuple(degraded),
        f"{patient.place.program} run",
    )


def _routines_seen(patient: Patient, asked: Asked, state: StateSeen, facts: ServiceFacts) -> RoutinesSeen:
    found, path = asked.source.read(), asked.source.path
    before = None if state.before is None else asked.judge(state.before).file
    installed = facts.plan is not None and facts.file.before is not None and not facts.elsewhere
    seen = RoutinesSeen(
        path,
        there=not isinstance(found, Absent),
        before=() if before is None else tuple(routine.name for routine in before.routines),
        copy=state.copy,
        stay=_stay(state),
        none=state.seen.owner is not None and not _stay(state),
        installed=installed,
    )
    if isinstance(found, Absent):
        return seen
    if isinstance(found, Unusable):
        return replace(seen, problems=(found.problem,))
    if not found.content.strip() and seen.before:
        return replace(seen, problems=(EMPTY,))
    judgement = asked.judge(found.content)
    routines = judgement.file.routines if judgement.file else ()
    commands = (_command_seen(each, patient, asked.premises) for each in routines if each.enabled)
    return replace(seen, problems=judgement.problems, commands=tuple(each for each in commands if each is not None))


def _stay(state: StateSeen) -> bool:
    """Whether a living owner has routines in force, whatever became of their file."""
    if state.seen.owner is None:
        return False
    try:
        return state.ledger is None or bool(state.ledger.accounts())
    except AnkitaError:
        return True


def _command_seen(routine: Routine, patient: Patient, premises: Premises) -> CommandSeen | None:
    program = program_of(routine.run, routine.shell)
    if program is None or routine.env_file is not None:  # whose PATH only a run reads
        return None
    path = routine.env.get("PATH", service_environment(patient.user)["PATH"])
    if premises.find_program(program, path) is not None:
        return None
    directory = premises.find_program(program, patient.variables.get("PATH", ""))
    return None if directory is None else CommandSeen(routine.name, program, directory)


def _account(ledger: LedgerReader) -> tuple[AccountTold | None, AnkitaError | None]:
    try:
        return take_account(ledger), None
    except AnkitaError as fault:
        return None, fault


def _without_repetition(findings: list[Finding], routines: str) -> Iterator[Finding]:
    """Leave out what another finding tells better."""
    ids = {finding.id for finding in findings}
    for finding in findings:
        if ids & _TOLD_BETTER.get(finding.id, frozenset()):
            continue
        of_file = finding.id is FindingId.AGENT_DEGRADED and routines in finding.what
        if of_file and ids & {FindingId.ROUTINES_REFUSED, FindingId.ROUTINES_GONE}:
            continue
        yield finding
