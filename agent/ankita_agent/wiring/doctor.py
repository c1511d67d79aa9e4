"""Puts doctor together for this machine, as `wiring` does the rest. No logic."""

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from ankita_agent import __version__
from ankita_agent.adapters.linux_premises import LinuxPremises
from ankita_agent.adapters.machine import user_facts
from ankita_agent.adapters.routine_files import LastGoodFile
from ankita_agent.adapters.state_directory import examine_state_directory
from ankita_agent.adapters.user_manager import UserManager
from ankita_agent.adapters.yaml_files import LARGEST
from ankita_agent.app.doctor import Mending
from ankita_agent.app.examination import Examination, examine
from ankita_agent.app.inspection import NOBODY, look
from ankita_agent.app.installation import Installation, Wanted, refuse_unstartable
from ankita_agent.app.patient import Asked, Patient, StateSeen
from ankita_agent.app.places import find_unit_places
from ankita_agent.app.service_facts import plan_for_the_unit
from ankita_agent.core.elsewhere import Elsewhere
from ankita_agent.core.errors import AnkitaError, CannotWriteState
from ankita_agent.core.findings import Mend
from ankita_agent.core.install_plan import Plan
from ankita_agent.core.service import UNIT, UnitState
from ankita_agent.wiring.elsewhere import find_bearings
from ankita_agent.wiring.managers import login_manager, service_manager
from ankita_agent.wiring.outlook import Outlook, look_at_processes, looking
from ankita_agent.wiring.routines import routine_judge, routine_source
from ankita_agent.wiring.service import (
    find_complaints,
    find_program_fault,
    service_program,
    service_variables,
    shipped_texts,
    unit_files,
    unit_paths,
)
from ankita_agent.wiring.user import ThisUser, find_this_user


def find_patient(variables: Mapping[str, str]) -> tuple[ThisUser, AnkitaError | None]:
    """The user we run as, and what is wrong with the variables that lead to their things.

    Where something is, those are left out.
    """
    try:
        return find_this_user(dict(variables)), None
    except AnkitaError as fault:
        others = {name: value for name, value in variables.items() if not name.startswith("ANKITA_")}
        return find_this_user(others), fault


def examine_user(user: ThisUser, misled: AnkitaError | None = None) -> Examination:
    """Look for what is the matter with the agent of this user: nothing is made, locked or changed."""
    patient, asked = _patient(user), _asked(user)
    examined = misled or examine_state_directory(user.places.state)
    with ExitStack() as open_ones:
        try:
            outlook = open_ones.enter_context(looking(user.places))
        except CannotWriteState as fault:
            return examine(patient, asked, StateSeen(examined=examined or fault))
        seen = NOBODY
        if outlook.state is not None:
            seen = look(outlook.files, outlook.state, look_at_processes(), outlook.clock.awake())
        before, copy = _before(user, outlook)
        return examine(patient, asked, StateSeen(seen, outlook.ledger, examined, outlook.problem, before, copy))


def _before(user: ThisUser, outlook: Outlook) -> tuple[bytes | None, str]:
    """The copy of the file that was in force last, as far as it can be read, and its path."""
    if outlook.state is None:
        return None, ""
    kept = LastGoodFile(outlook.files, outlook.state, user.places.state, LARGEST)
    try:
        return kept.read(), kept.path
    except CannotWriteState:
        return None, kept.path


def mending(user: ThisUser, tell: Callable[[str], None]) -> Callable[[Mend], None]:
    """What does what `doctor --fix` may do; it raises AnkitaError where that fails."""
    installation = _installation(user, tell, quick=False)

    def plan() -> Plan:
        refuse_unstartable(find_program_fault(user))
        return plan_for_the_unit(lambda variables: _plan_of(user, variables, installation))

    return Mending(service_manager(user), installation, plan, service_program()).do


def _patient(user: ThisUser) -> Patient:
    uid = os.getuid()
    place = UserManager(user.environment, uid).describe_place()
    unit = f"{find_unit_places(user.home).packages}/{UNIT}"
    runtime, program = f"/run/user/{uid}", service_program()
    return Patient(place, runtime, user_facts(), user.places, user.environment, __version__, program, unit)


def _asked(user: ThisUser) -> Asked:
    installation = _installation(user, lambda _: None, quick=True)

    def plan(variables: Mapping[str, str] | None) -> Plan:
        return _plan_of(user, variables, installation)

    premises, manager, lingering = LinuxPremises(), service_manager(user, quick=True), login_manager(user)
    source, complaints = routine_source(user.places), lambda: find_complaints(user, UNIT)

    def elsewhere(unit: UnitState) -> tuple[Elsewhere, ...]:
        return find_bearings(user, unit).elsewhere

    return Asked(premises, manager, lingering, source, routine_judge(), plan, elsewhere, complaints)


def _installation(user: ThisUser, tell: Callable[[str], None], *, quick: bool) -> Installation:
    """Installing where the service manager looks, wherever the variables of this shell lead."""
    manager, paths = service_manager(user, quick=quick), unit_paths(user, find_unit_places(user.home))
    lingering, said = login_manager(user), lambda unit: find_complaints(user, unit)
    return Installation(manager, lingering, unit_files(), shipped_texts(), paths, tell, complaints=said)


def _plan_of(user: ThisUser, variables: Mapping[str, str] | None, installation: Installation) -> Plan:
    given = service_variables(user) if variables is None else dict(variables)
    return installation.plan(Wanted(service_program(), given, __version__, linger=False))
