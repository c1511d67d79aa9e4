"""Whether the installed service is that of this shell's directories, on this machine."""

import os
from dataclasses import dataclass

from ankita_agent.adapters.unit_texts import read_texts
from ankita_agent.app.places import Places, find_places
from ankita_agent.core.elsewhere import VARIABLES, Elsewhere, served, serves_elsewhere
from ankita_agent.core.service import UnitState
from ankita_agent.wiring.user import ThisUser


@dataclass(frozen=True, slots=True)
class Bearings:
    """What differs between the service and this shell (nothing: it is this shell's), and the variables set here."""

    elsewhere: tuple[Elsewhere, ...]
    set_here: frozenset[str]


def find_bearings(user: ThisUser, unit: UnitState) -> Bearings:
    """Compare the service as its manager shows it with this shell; one without a unit file differs in nothing."""
    set_here = frozenset(name for name in VARIABLES if user.environment.get(name))
    if not unit.fragment or unit.masked:
        return Bearings((), set_here)
    usual = find_places({}, user.home, os.getcwd)
    service = served(read_texts((unit.fragment, *unit.drop_ins)), user.home)
    return Bearings(serves_elsewhere(service, _by_variable(user.places), _by_variable(usual)), set_here)


def _by_variable(places: Places) -> dict[str, str]:
    return dict(zip(VARIABLES, (places.state, places.config), strict=True))
