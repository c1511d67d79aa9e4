"""The service of this user: installing it, taking it away, starting and stopping it."""

import os
import sys
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.adapters.system_clock import SystemClock
from ankita_agent.app.places import FILE, UnitPlaces, find_places, find_unit_places
from ankita_agent.core.instants import Duration, in_seconds
from ankita_agent.wiring.managers import login_manager, service_manager
from ankita_agent.wiring.outlook import look_at_processes
from ankita_agent.wiring.user import ThisUser

if TYPE_CHECKING:
    from ankita_agent.app.installation import Installation, Shipped, Whereto
    from ankita_agent.app.removal import Removal
    from ankita_agent.app.service import Service
    from ankita_agent.app.service_words import View, Words
    from ankita_agent.app.unit_files import UnitFiles


def service_program() -> tuple[str, ...]:
    """The command line of the service: this Python, by the path that it was called by.

    A virtual environment's own link to it survives an upgrade of what it leads to. -P: the service begins in the
    home, and a click.py there is none of ours.
    """
    return (os.path.abspath(sys.executable), "-P", "-m", "ankita_agent", "run", "--standby")


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

    def pause(span: Duration) -> None:
        time.sleep(in_seconds(span))

    return Service(service_manager(user), look_at_processes(), SystemClock(), view, pause, tell, words, within)


def make_installation(user: ThisUser, tell: Callable[[str], None]) -> "Installation":
    """Installing the service of this user; `tell` is given a line for people about each step."""
    from ankita_agent.app.installation import Installation

    units = find_unit_places(user.environment, user.home)
    manager, lingering = service_manager(user), login_manager(user)
    return Installation(manager, lingering, unit_files(), shipped_texts(), unit_paths(user, units), tell)


def make_removal(user: ThisUser, tell: Callable[[str], None]) -> "Removal":
    """Taking that service away."""
    from ankita_agent.app.removal import Removal

    units = find_unit_places(user.environment, user.home)
    return Removal(service_manager(user), unit_files(), shipped_texts(), unit_paths(user, units), units.own, tell)


def unit_files() -> "UnitFiles":
    """The files of units on this machine."""
    from ankita_agent.adapters.routine_files import judge_directory
    from ankita_agent.app.unit_files import UnitFiles

    return UnitFiles(PosixFiles(), judge_directory, os.path.realpath)


def unit_paths(user: ThisUser, units: UnitPlaces) -> "Whereto":
    """Where installing writes."""
    from ankita_agent.app.installation import Whereto

    return Whereto(units.packages, user.places.routines)


def shipped_texts() -> "Shipped":
    """The texts that the package carries for installing."""
    from ankita_agent.app.installation import HARDENING, SCHEMA, SLICE, Shipped
    from ankita_agent.core.service import UNIT
    from ankita_agent.shipped import shipped_text

    service, of_slice, hardening = (shipped_text("units", name) for name in (UNIT, SLICE, HARDENING))
    return Shipped(service, of_slice, hardening, shipped_text("config", FILE), shipped_text("config", SCHEMA))
