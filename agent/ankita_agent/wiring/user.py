"""Who runs a command, and where their things are."""

import os
from collections.abc import MutableMapping
from dataclasses import dataclass

from ankita_agent.adapters.machine import home_of_user
from ankita_agent.app.places import Places, find_places


@dataclass(frozen=True, slots=True)
class ThisUser:
    """Who runs the command, and where their things are."""

    places: Places
    home: str
    environment: MutableMapping[str, str]


def find_this_user(environment: MutableMapping[str, str]) -> ThisUser:
    """The user we run as, with a copy of the environment that may be taken apart."""
    home = home_of_user()
    return ThisUser(find_places(environment, home, os.getcwd), home, environment)
