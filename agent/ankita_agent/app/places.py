"""Where things are: the state and configuration directories of this user, the same for service and shell."""

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ankita_agent.core.errors import BadConfiguration, CannotWriteState

_Fault = type[CannotWriteState] | type[BadConfiguration]

FILE = "routines.yaml"
LEDGER = "ledger.db"
NAME = "ankita-agent"
"""Of both directories, unless they are named."""


@dataclass(frozen=True, slots=True)
class Places:
    """Absolute paths; none of them need exist."""

    state: str
    config: str

    @property
    def ledger(self) -> str:
        """The ledger's file."""
        return f"{self.state}/{LEDGER}"

    @property
    def routines(self) -> str:
        """The file of routines."""
        return f"{self.config}/{FILE}"


@dataclass(frozen=True, slots=True)
class UnitPlaces:
    """Directories of a user's units, of which `own` wins: systemd.unit(5), "User Unit Search Path".

    `packages` is for what was installed into the home, `own` for what the user writes; links of `enable` are there.
    """

    packages: str
    own: str


def find_unit_places(home: str) -> UnitPlaces:
    """Where the manager of this user looks for units, wherever the XDG variables of a shell lead: it has not got them.

    Limit: a manager with an XDG_DATA_HOME of its own, as from pam_env(8), looks elsewhere; installing says so.
    """
    top = home.rstrip("/")
    return UnitPlaces(f"{top}/.local/share/systemd/user", f"{top}/.config/systemd/user")


def find_places(environment: Mapping[str, str], home: str, find_here: Callable[[], str]) -> Places:
    """Resolve both directories: ANKITA_STATE_DIR and ANKITA_CONFIG_DIR, else XDG's, else below the home.

    A relative path in an XDG variable is ignored, as the XDG base directory specification asks; one of ours is
    taken from the current directory, which `find_here` tells or raises OSError. Raises CannotWriteState or
    BadConfiguration for a path that can be none.
    """
    state = _ours(environment, "ANKITA_STATE_DIR", find_here, CannotWriteState)
    config = _ours(environment, "ANKITA_CONFIG_DIR", find_here, BadConfiguration)
    return Places(
        state or f"{_xdg(environment, 'XDG_STATE_HOME', home, '.local/state', CannotWriteState)}/{NAME}",
        config or f"{_xdg(environment, 'XDG_CONFIG_HOME', home, '.config', BadConfiguration)}/{NAME}",
    )


def _ours(environment: Mapping[str, str], name: str, find_here: Callable[[], str], fault: _Fault) -> str | None:
    path = environment.get(name, "")
    if not path:
        return None
    _refuse_controls(name, path, fault)
    if path == "~" or path.startswith("~/"):
        raise fault(
            f"{name}={path} begins with ~, which only an unquoted shell word expands",
            now="nothing was changed",
            do=f'write {name}="$HOME{path[1:]}"',
        )
    if path.startswith("/"):
        return posixpath.normpath(path)
    try:
        return posixpath.normpath(posixpath.join(find_here(), path))
    except OSError as error:
        raise fault(
            f"{name}={path} is a relative path",
            fact=f"the current directory cannot be found: {error.strerror}",
            now="nothing was changed",
            do=f"give {name} a whole path, or go to a directory that is there: cd",
        ) from None


def _xdg(environment: Mapping[str, str], name: str, home: str, default: str, fault: _Fault) -> str:
    path = environment.get(name, "")
    if not path.startswith("/"):
        return f"{home.rstrip('/')}/{default}"
    _refuse_controls(name, path, fault)
    return path.rstrip("/")


def _refuse_controls(name: str, path: str, fault: _Fault) -> None:
    """No unit file and no line for people can hold such a path."""
    if any(letter < " " or "\x7f" <= letter < "\xa0" for letter in path):
        what = "a line break" if "\n" in path else "a control character"
        raise fault(f"{name} holds {what}", now="nothing was changed", do=f"give {name} the path of a directory")
