"""What doctor gathers of the service, its files and the places that it has: facts from the ports, nothing judged."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ankita_agent.app.inspection import Seen
from ankita_agent.app.patient import Asked, Patient
from ankita_agent.core.agent_diagnosis import Led
from ankita_agent.core.elsewhere import VARIABLES, Elsewhere
from ankita_agent.core.errors import AnkitaError, ManagerSilent, ManagerUnreachable
from ankita_agent.core.findings import Finding, FindingId, Severity
from ankita_agent.core.install_plan import Change, FileChange, Plan
from ankita_agent.core.journal import is_system_account, lines_command
from ankita_agent.core.service import UNIT, UnitState
from ankita_agent.core.unit_diagnosis import ServiceSeen, UnitCopy
from ankita_agent.core.unit_file import read_unit_file
from ankita_agent.ports.premises import Premises

_STATE_VARIABLES: Final = ("ANKITA_STATE_DIR", "XDG_STATE_HOME")
_CONFIG_VARIABLES: Final = ("ANKITA_CONFIG_DIR", "XDG_CONFIG_HOME")

_SYSTEM_UNITS: Final = ("/etc", "/run", "/usr/local/lib", "/usr/lib")
"""Above systemd/system: systemd.unit(5), "System Unit Search Path"."""


@dataclass(slots=True)
class ServiceFacts:
    """What the manager and the unit's files tell, gathered until somebody does not answer."""

    file: FileChange
    fault: AnkitaError | None = None
    state: UnitState | None = None
    plan: Plan | None = None
    silent: list[Finding] = field(default_factory=list)
    elsewhere: tuple[Elsewhere, ...] = ()


def plan_for_the_unit(plan: Callable[[Mapping[str, str] | None], Plan]) -> Plan:
    """What installing would change, with the variables that the unit has: those of a shell are none of its business."""
    found = plan(None)
    written = _unit_of(found)
    return found if written.before is None else plan(read_unit_file(written.before, "").environment)


def _unit_of(plan: Plan) -> FileChange:
    return next(each for each in plan.units if each.path.endswith(f"/{UNIT}"))


def gather(patient: Patient, asked: Asked) -> ServiceFacts:
    """Ask the manager, and look at the files."""
    found = ServiceFacts(FileChange(patient.unit_path, None, None, Change.UNCHANGED))
    try:
        found.state = asked.manager.state(UNIT)
        found.elsewhere = asked.elsewhere(found.state)
        if not found.state.masked:
            found.plan = plan_for_the_unit(asked.plan)
            found.file = _unit_of(found.plan)
    except (ManagerUnreachable, ManagerSilent) as fault:
        found.fault = fault
    except AnkitaError as fault:
        found.silent.append(Finding(FindingId.NOT_ASKED, Severity.WARNING, fault.what, fault.fact, fault.do))
    return found


def service_seen(patient: Patient, asked: Asked, facts: ServiceFacts, state: UnitState) -> ServiceSeen:
    """The service as it is judged."""
    premises, plan, file = asked.premises, facts.plan, facts.file
    program = read_unit_file(file.before or "", patient.user.home).program
    before, behind = _copies(patient, premises)
    usable = state.load in ("loaded", "not-found") or state.masked
    return ServiceSeen(
        state,
        file,
        tuple(each for each in plan.units if each is not file) if plan else (),
        bool(program) and premises.can_execute(program[0]),
        patient.program,
        tuple(before),
        tuple(behind),
        tuple(_found_units(premises, [f"{above}/systemd/system" for above in _SYSTEM_UNITS])),
        premises.controllers(),
        plan is not None,
        () if usable else tuple(asked.complaints()),
        frozenset(path for path in state.drop_ins if _own(premises, path)),
        facts.elsewhere,
        frozenset(name for name in VARIABLES if patient.variables.get(name)),
        _journal(patient),
        plan is None or not plan.enable,
    )


def _own(premises: Premises, path: str) -> bool:
    found = premises.unit_at(path)
    return found is not None and found.own


def _journal(patient: Patient) -> str:
    uid = patient.place.uid
    return f"{'sudo ' if uid != 0 and is_system_account(uid) else ''}{lines_command(uid, '-n 30 --no-pager')}"


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


def _found_units(premises: Premises, directories: Iterable[str]) -> list[UnitCopy]:
    units = (premises.unit_at(f"{directory}/{UNIT}") for directory in directories)
    return [unit for unit in units if unit is not None]


def version_behind(seen: Seen, state: UnitState) -> str | None:
    """The version of the owner where that is the service; None where it is not."""
    owner = seen.owner
    if owner is None or state.main_pid is None or owner.claim.card.process.pid != state.main_pid:
        return None
    return owner.claim.card.version


def compare_places(patient: Patient, asked: Asked, facts: ServiceFacts) -> tuple[Led, Led | None]:
    """Where the shell and the service keep their things; None without a service."""
    mine, service = patient.places, _service_places(patient, asked, facts)
    shell = Led(mine.state, mine.config)
    return (shell if service is None else replace(shell, variables=_leading(patient, service))), service


def _service_places(patient: Patient, asked: Asked, facts: ServiceFacts) -> Led | None:
    """By its process while it runs, else by its unit."""
    state = facts.state
    if state is None or (state.load in ("not-found", "masked") and not state.activity.up):
        return None
    variables: Mapping[str, str] | None = None
    if state.main_pid is not None:
        variables = asked.premises.environment_of(state.main_pid)
    if variables is None:
        if facts.plan is None:  # nobody could read the unit
            return None
        variables = read_unit_file(facts.file.before or "", patient.user.home).environment
    places = patient.places_by(variables)
    return None if places is None else Led(places.state, places.config)


def _leading(patient: Patient, service: Led) -> tuple[str, ...]:
    """The variables of the shell without which it would look where the service does; none when that is not why."""
    differing = _STATE_VARIABLES if patient.places.state != service.state else ()
    if patient.places.config != service.config:
        differing = (*differing, *_CONFIG_VARIABLES)
    leading = tuple(name for name in differing if patient.variables.get(name))
    without = patient.places_by({name: value for name, value in patient.variables.items() if name not in leading})
    same = without is not None and (without.state, without.config) == (service.state, service.config)
    return leading if same else ()
