"""Looking for what is the matter: facts from the ports, judgement from core.

Looking takes no lock and writes nothing. Whoever does not answer, or must not be asked, is told as a finding of its
own, and everything else is looked at all the same.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from ankita_agent.app.account import AccountTold, take_account
from ankita_agent.app.inspection import NOBODY, OwnerState, Seen
from ankita_agent.app.places import Places, find_places
from ankita_agent.core.diagnosis import ServiceSeen, Session, UnitCopy, judge_service, judge_session
from ankita_agent.core.environment import UserFacts, service_environment
from ankita_agent.core.errors import AnkitaError, ManagerSilent, ManagerUnreachable
from ankita_agent.core.findings import Finding, FindingId, Severity
from ankita_agent.core.install_plan import Change, FileChange, Plan
from ankita_agent.core.reaching import Place
from ankita_agent.core.routine import Routine
from ankita_agent.core.routine_file import Judgement
from ankita_agent.core.service import UNIT, UnitState, Unreachable
from ankita_agent.core.state_diagnosis import (
    AgentSeen,
    CommandSeen,
    Doing,
    Led,
    MachineSeen,
    RoutinesSeen,
    judge_account,
    judge_agent,
    judge_machine,
    judge_routines,
    judge_state,
    program_of,
)
from ankita_agent.core.unit_file import read_unit_file
from ankita_agent.ports.ledger import LedgerReader
from ankita_agent.ports.lingering import Lingering
from ankita_agent.ports.premises import Premises
from ankita_agent.ports.routine_source import Absent, RoutineSource, Unusable
from ankita_agent.ports.service_manager import ServiceManager

_STATE_VARIABLES: Final = ("ANKITA_STATE_DIR", "XDG_STATE_HOME")
_CONFIG_VARIABLES: Final = ("ANKITA_CONFIG_DIR", "XDG_CONFIG_HOME")
_RUNTIME: Final = "XDG_RUNTIME_DIR"
_BUS: Final = "DBUS_SESSION_BUS_ADDRESS"

_SYSTEM_UNITS: Final = ("/etc", "/run", "/usr/local/lib", "/usr/lib")
"""Above systemd/system: systemd.unit(5), "System Unit Search Path"."""

_WHY_NO_SERVICE: Final = frozenset(
    {
        FindingId.NOT_INSTALLED,
        FindingId.NOT_READ_AGAIN,
        FindingId.SECOND_COPY,
        FindingId.MASKED,
        FindingId.UNIT_UNUSABLE,
    }
)
"""Findings after which it is no news that no agent runs."""

_DOING: Final = {
    OwnerState.BUSY: Doing.WELL,
    OwnerState.IDLE: Doing.WELL,
    OwnerState.STOPPED: Doing.STOPPED,
    OwnerState.WEDGED: Doing.WEDGED,
}


@dataclass(frozen=True, slots=True)
class Patient:
    """Whose agent is looked at, and from where.

    `runtime_directory` is where the user's manager listens; `variables` are those of the shell; `program` is what this
    installation would have the service start, and `unit_path` where it would write its unit.
    """

    place: Place
    runtime_directory: str
    user: UserFacts
    places: Places
    variables: Mapping[str, str]
    version: str
    program: tuple[str, ...]
    unit_path: str


@dataclass(frozen=True, slots=True)
class Asked:
    """Whom doctor asks.

    `plan` is what installing would change, with the variables that the unit is to have, or None for those of the shell.
    """

    premises: Premises
    manager: ServiceManager
    lingering: Lingering
    source: RoutineSource
    judge: Callable[[bytes], Judgement]
    plan: Callable[[Mapping[str, str] | None], Plan]


@dataclass(frozen=True, slots=True)
class StateSeen:
    """What was seen of the state directory. `examined` and `problem` are faults of the directory and of its ledger."""

    seen: Seen = NOBODY
    ledger: LedgerReader | None = None
    examined: AnkitaError | None = None
    problem: AnkitaError | None = None


@dataclass(frozen=True, slots=True)
class Examination:
    """What is the matter, and the account; None where there is no ledger to take it from."""

    findings: tuple[Finding, ...]
    account: AccountTold | None

    @property
    def healthy(self) -> bool:
        """Whether there is nothing to mend."""
        return not any(finding.matters for finding in self.findings)


@dataclass(slots=True)
class _Service:
    """What the manager and the unit's files tell, gathered until somebody does not answer."""

    fault: AnkitaError | None = None
    state: UnitState | None = None
    plan: Plan | None = None
    silent: list[Finding] = field(default_factory=list)


def examine(patient: Patient, asked: Asked, state: StateSeen) -> Examination:
    """Look at everything once. Never raises for what it finds."""
    service = _ask_manager(asked)
    findings = list(judge_session(_session(patient, asked, service.fault)))
    findings += service.silent
    file = _service_file(patient, service)
    if service.state is not None:
        seen = _service_seen(patient, asked, service.state, service.plan, file)
        findings += judge_service(seen, _version_behind(state.seen, service.state), patient.version)
    findings += judge_agent(_agent_seen(patient, asked, state.seen, service.state, file))
    findings += judge_routines(_routines_seen(patient, asked), patient.user)
    told, problem = (None, state.problem) if state.ledger is None else _account(state.ledger)
    findings += judge_state(state.examined, state.problem or problem)
    if told is not None:
        findings += judge_account(told.doubled, told.reckonings)
    premises = asked.premises
    ours = patient.place.container is None and not patient.place.wsl and not _lacks_systemd(service.fault)
    machine = MachineSeen(premises.disk(patient.places.state), premises.messages(), premises.clock_synchronised(), ours)
    findings += judge_machine(machine)
    return Examination(tuple(_without_repetition(findings, patient.places.routines)), told)


def plan_for_the_unit(plan: Callable[[Mapping[str, str] | None], Plan]) -> Plan:
    """What installing would change, with the variables that the unit has: those of a shell are none of its business."""
    found = plan(None)
    written = _unit_of(found)
    return found if written.before is None else plan(read_unit_file(written.before, "").environment)


def _ask_manager(asked: Asked) -> _Service:
    found = _Service()
    try:
        found.state = asked.manager.state(UNIT)
        if not found.state.masked:
            found.plan = plan_for_the_unit(asked.plan)
    except (ManagerUnreachable, ManagerSilent) as fault:
        found.fault = fault
    except AnkitaError as fault:
        where = FindingId.NOT_ASKED
        found.silent.append(Finding(where, Severity.WARNING, fault.what, fault.fact, fault.do))
    return found


def _unit_of(plan: Plan) -> FileChange:
    return next(each for each in plan.units if each.path.endswith(f"/{UNIT}"))


def _lacks_systemd(fault: AnkitaError | None) -> bool:
    return isinstance(fault, ManagerUnreachable) and fault.reason is Unreachable.NO_SYSTEMD


def _service_file(patient: Patient, service: _Service) -> FileChange:
    if service.plan is None:
        return FileChange(patient.unit_path, None, None, Change.UNCHANGED)
    return _unit_of(service.plan)


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


def _service_seen(patient: Patient, asked: Asked, state: UnitState, plan: Plan | None, file: FileChange) -> ServiceSeen:
    premises = asked.premises
    program = read_unit_file(file.before or "", patient.user.home).program
    others = tuple(each for each in plan.units if each is not file) if plan else ()
    before, behind = _copies(patient, premises)
    return ServiceSeen(
        state,
        file,
        others,
        bool(program) and premises.can_execute(program[0]),
        patient.program,
        tuple(before),
        tuple(behind),
        tuple(_found_units(premises, [f"{above}/systemd/system" for above in _SYSTEM_UNITS])),
        premises.controllers(),
    )


def _copies(patient: Patient, premises: Premises) -> tuple[list[UnitCopy], list[UnitCopy]]:
    """The user units of our name that count for more, and for less, than our own.

    Source: systemd.unit(5), "User Unit Search Path".
    """
    home, ours = patient.user.home, patient.unit_path.rpartition("/")[0]
    before = (f"{home}/.config", "/etc/xdg", "/etc", patient.runtime_directory, "/run")
    behind = ("/usr/local/share", "/usr/share", "/usr/local/lib", "/usr/lib")
    found: list[list[UnitCopy]] = []
    known = [ours]
    for group in (before, behind):
        fresh: list[str] = []
        for directory in [f"{above}/systemd/user" for above in group]:
            if not any(premises.same_directory(directory, each) for each in known):
                fresh.append(directory)
                known.append(directory)
        found.append(_found_units(premises, fresh))
    return found[0], found[1]


def _found_units(premises: Premises, directories: list[str]) -> list[UnitCopy]:
    units = (premises.unit_at(f"{directory}/{UNIT}") for directory in directories)
    return [unit for unit in units if unit is not None]


def _version_behind(seen: Seen, state: UnitState) -> str | None:
    owner = seen.owner
    if owner is None or state.main_pid is None or owner.claim.card.process.pid != state.main_pid:
        return None
    return owner.claim.card.version


def _agent_seen(patient: Patient, asked: Asked, seen: Seen, state: UnitState | None, file: FileChange) -> AgentSeen:
    owner, report = seen.owner, seen.report
    degraded = list(report.degraded) if report else []
    if owner is not None and owner.trouble and not any(each.startswith(owner.trouble) for each in degraded):
        degraded.append(owner.trouble)
    places = patient.places
    up = state is not None and state.activity.up
    service = _service_places(patient, asked, state, file)
    shell = Led(places.state, places.config, _leading(patient, service) if service else ())
    return AgentSeen(
        shell,
        service,
        state.main_pid if state is not None and up else None,
        Doing.NOBODY if owner is None else _DOING[owner.state],
        None if owner is None else owner.claim.card.process.pid,
        tuple(degraded),
    )


def _service_places(patient: Patient, asked: Asked, state: UnitState | None, file: FileChange) -> Led | None:
    """Where the service keeps its things: by its process while it runs, else by its unit; None without a service."""
    if state is None or state.load != "loaded":
        return None
    variables: Mapping[str, str] | None = None
    if state.main_pid is not None:
        variables = asked.premises.environment_of(state.main_pid)
    if variables is None:
        variables = read_unit_file(file.before or "", patient.user.home).environment
    places = _places_of(variables, patient)
    return None if places is None else Led(places.state, places.config)


def _places_of(variables: Mapping[str, str], patient: Patient) -> Places | None:
    try:
        return find_places(variables, patient.user.home, lambda: patient.user.home)
    except AnkitaError:  # a unit that somebody edited: the service itself says what is wrong with it
        return None


def _leading(patient: Patient, service: Led) -> tuple[str, ...]:
    """The variables of the shell without which it would look where the service does; none when that is not why."""
    differing = _STATE_VARIABLES if patient.places.state != service.state else ()
    if patient.places.config != service.config:
        differing = (*differing, *_CONFIG_VARIABLES)
    leading = tuple(name for name in differing if patient.variables.get(name))
    without = _places_of({name: value for name, value in patient.variables.items() if name not in leading}, patient)
    same = without is not None and (without.state, without.config) == (service.state, service.config)
    return leading if same else ()


def _routines_seen(patient: Patient, asked: Asked) -> RoutinesSeen:
    seen, path = asked.source.read(), asked.source.path
    if isinstance(seen, Absent):
        return RoutinesSeen(path, False)
    if isinstance(seen, Unusable):
        return RoutinesSeen(path, True, (seen.problem,))
    judgement = asked.judge(seen.content)
    routines = judgement.file.routines if judgement.file else ()
    commands = (_command_seen(each, patient, asked.premises) for each in routines if each.enabled)
    return RoutinesSeen(path, True, judgement.problems, tuple(each for each in commands if each is not None))


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
        if finding.id is FindingId.NO_AGENT and ids & _WHY_NO_SERVICE:
            continue
        told_by_check = finding.id is FindingId.AGENT_DEGRADED and routines in finding.what
        if told_by_check and FindingId.ROUTINES_REFUSED in ids:
            continue
        yield finding
