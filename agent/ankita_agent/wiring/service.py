"""The service of this user: installing it, taking it away, starting and stopping it."""

import os
import sys
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.adapters.state_directory import examine_state_directory
from ankita_agent.adapters.system_clock import SystemClock
from ankita_agent.app.places import FILE, UnitPlaces, find_places, find_unit_places
from ankita_agent.core.elsewhere import refuse_elsewhere, refuse_taking_over
from ankita_agent.core.errors import AnkitaError
from ankita_agent.core.instants import Duration, in_seconds
from ankita_agent.core.service import UNIT
from ankita_agent.wiring.elsewhere import find_bearings
from ankita_agent.wiring.managers import login_manager, service_manager
from ankita_agent.wiring.outlook import look_at_processes
from ankita_agent.wiring.user import ThisUser

if TYPE_CHECKING:
    from ankita_agent.app.installation import Installation, Shipped, Whereto
    from ankita_agent.app.removal import Removal
    from ankita_agent.app.service import Service
    from ankita_agent.app.service_words import View, Words
    from ankita_agent.app.unit_files import UnitFiles
    from ankita_agent.core.service import UnitState
    from ankita_agent.core.service_view import FilesSeen


def service_program() -> tuple[str, ...]:
    """The command line of the service: this Python, by the path that it was called by.

    A virtual environment's own link to it survives an upgrade of what it leads to. -P: the service begins in the
    home, and a click.py there is none of ours.
    """
    return (*_this_program(), "run", "--standby")


def _this_program() -> tuple[str, ...]:
    return (os.path.abspath(sys.executable), "-P", "-m", "ankita_agent")


def find_program_fault(user: ThisUser) -> str:
    """What the program of the service says when it cannot begin as the service does; empty when it can."""
    from ankita_agent.adapters.machine import user_facts
    from ankita_agent.adapters.program_trial import find_fault
    from ankita_agent.core.environment import service_environment

    return find_fault((*_this_program(), "--version"), service_environment(user_facts()) | {"HOME": user.home})


def service_variables(user: ThisUser) -> dict[str, str]:
    """What the service has to be told, to find the same directories as this shell."""
    default, mine = find_places({}, user.home, os.getcwd), user.places
    differ = {"ANKITA_STATE_DIR": (mine.state, default.state), "ANKITA_CONFIG_DIR": (mine.config, default.config)}
    return {name: path for name, (path, by_default) in differ.items() if path != by_default}


def make_service(
    user: ThisUser,
    view: "Callable[[Collection[int]], View]",
    tell: Callable[[str], None],
    words: "Words",
    within: int | None,
) -> "Service":
    """Starting and stopping the service of this user; the arguments are those of `app.service.Service`."""
    from ankita_agent.app.service import Service

    def refuse(verb: str, unit: "UnitState") -> None:
        bearings = find_bearings(user, unit)
        refuse_elsewhere(verb, bearings.elsewhere, bearings.set_here)

    manager, processes = service_manager(user), look_at_processes()
    return Service(manager, processes, SystemClock(), view, _pause, tell, words, within, refuse, unit_file_look(user))


def _pause(span: Duration) -> None:
    time.sleep(in_seconds(span))


def make_installation(user: ThisUser, tell: Callable[[str], None]) -> "Installation":
    """Installing the service of this user; `tell` is given a line for people about each step."""
    from ankita_agent.app.installation import Installation

    def refuse(unit: "UnitState") -> None:
        bearings = find_bearings(user, unit)
        refuse_taking_over(bearings.elsewhere, bearings.set_here)

    manager, lingering, paths = (
        service_manager(user),
        login_manager(user),
        unit_paths(user, find_unit_places(user.home)),
    )
    return Installation(
        manager, lingering, unit_files(), shipped_texts(), paths, tell, refuse, lambda unit: find_complaints(user, unit)
    )


def unit_file_look(user: ThisUser) -> "Callable[[UnitState], FilesSeen]":
    """What looks at the files of the unit as they are on disk by now, which its manager may not have read yet."""
    from ankita_agent.core.service_view import seen_files

    def look(unit: "UnitState") -> "FilesSeen":
        gone = bool(unit.fragment) and not os.path.lexists(unit.fragment)
        return seen_files([] if gone else find_complaints(user, UNIT), gone=gone)

    return look


def find_complaints(user: ThisUser, unit: str) -> list[str]:
    """What is said against a unit of this user's that its manager does not take; nothing where nobody says it."""
    from ankita_agent.adapters.unit_check import find_complaints as ask
    from ankita_agent.adapters.user_manager import child_environment, find_program

    analyze = find_program("systemd-analyze", user.environment)
    if analyze is None:
        return []
    mine = {"HOME": user.home, "XDG_RUNTIME_DIR": f"/run/user/{os.getuid()}"}
    return ask(analyze, unit, child_environment(user.environment) | mine)


def make_removal(user: ThisUser, tell: Callable[[str], None]) -> "Removal":
    """Taking that service away."""
    from ankita_agent.app.removal import Removal

    paths = unit_paths(user, find_unit_places(user.home))
    return Removal(service_manager(user), unit_files(), shipped_texts(), paths, SystemClock(), _pause, tell)


def refuse_unusable_state(user: ThisUser) -> None:
    """Raise why an agent would refuse the state directory, before it is made to try so each second."""
    fault = examine_state_directory(user.places.state)
    if fault is not None:
        raise fault


def look_halfway(user: ThisUser) -> "tuple[bool, UnitState | None]":
    """Whether the unit file is there, and the unit as its manager shows it at once; None where it does not."""
    written = os.path.lexists(unit_paths(user, find_unit_places(user.home)).service)
    try:
        return written, service_manager(user, quick=True).state(UNIT)
    except AnkitaError:
        return written, None


def unit_files() -> "UnitFiles":
    """The files of units on this machine."""
    from ankita_agent.adapters.routine_files import judge_directory
    from ankita_agent.app.unit_files import UnitFiles

    return UnitFiles(PosixFiles(), judge_directory, os.path.realpath)


def unit_paths(user: ThisUser, units: UnitPlaces) -> "Whereto":
    """Where installing writes."""
    from ankita_agent.app.installation import Whereto

    return Whereto(units.packages, user.places.routines, units.own, f"/run/user/{os.getuid()}/systemd/user")


def shipped_texts() -> "Shipped":
    """The texts that the package carries for installing."""
    from ankita_agent.app.installation import HARDENING, SCHEMA, SLICE, Shipped
    from ankita_agent.shipped import shipped_text

    service, of_slice, hardening = (shipped_text("units", name) for name in (UNIT, SLICE, HARDENING))
    return Shipped(service, of_slice, hardening, shipped_text("config", FILE), shipped_text("config", SCHEMA))
