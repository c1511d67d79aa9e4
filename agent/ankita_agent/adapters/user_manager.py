"""Where the service manager of this user listens, whatever the environment says, and why it does not.

The problem: XDG_RUNTIME_DIR is missing under cron, su and sudo, and after `sudo -E` it names another user's directory.
The rule: the directory is /run/user/UID (pam_systemd(8)) by the uid we run as, and what is there is tried, not
believed. systemctl(1) asks the manager's own socket there too, which is up before the user's bus and needs none.
Rejected: $DBUS_SESSION_BUS_ADDRESS, which may lead to a bus without a manager; a connection that is closed without a
word, of which the manager complains in the user's journal each time ("Failed to start new connection bus").
`tests/unit/test_user_manager.py` holds it, and `tests/systemd/test_journal_lines.py`.
"""

import errno
import os
import pwd
import shlex
import shutil
import socket
import sys
from collections.abc import Mapping
from typing import Final, NoReturn

from ankita_agent.core.elsewhere import VARIABLES
from ankita_agent.core.errors import ManagerUnreachable
from ankita_agent.core.reaching import Address, Means, Place, unreachable
from ankita_agent.core.service import Unreachable

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin"
_BOOTED: Final = "/run/systemd/system"
_NOBODY_LISTENS: Final = (errno.ENOENT, errno.ENOTDIR, errno.ECONNREFUSED)
_CONTAINERS: Final = {"/.dockerenv": "docker", "/run/.containerenv": "podman"}


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What systemctl(1) and loginctl(1) get: nothing that leads to another manager or another language.

    PATH is that of `environment` and then the usual directories: under cron it may be short, and empty elsewhere.
    """
    return {"PATH": ":".join(filter(None, (environment.get("PATH"), _PATH))), "LANG": "C.UTF-8"}


def find_program(name: str, environment: Mapping[str, str]) -> str | None:
    """The path of a program that `child_environment` finds; None when there is none."""
    return shutil.which(name, path=child_environment(environment)["PATH"])


class UserManager:
    """The whereabouts of the manager of the user `uid`.

    `environment` is that of the command, for what people are told alone. `root` is where the file tree begins.
    """

    def __init__(self, environment: Mapping[str, str], uid: int, root: str = "") -> None:
        self._environment = environment
        self._uid = uid
        self._root = root

    def locate(self) -> Address:
        """Where the manager listens now. Raises ManagerUnreachable; never waits.

        That somebody listens does not mean that anybody answers: a stopped manager still has its socket.
        """
        directory = f"{self._root}/run/user/{self._uid}"
        self._check_directory(directory)
        path = f"{directory}/systemd/private"
        fault = _try(path)
        if fault is None:
            return Address(directory, path)
        reason = Unreachable.NO_SOCKET if fault.errno in _NOBODY_LISTENS else Unreachable.REFUSED
        raise self._unreachable(reason, f"{path}: {fault.strerror}")

    def locate_without_program(self) -> NoReturn:
        """In place of `locate` where nothing is installed to ask a manager with. Raises ManagerUnreachable."""
        self.locate()
        path = child_environment(self._environment)["PATH"]
        raise self._unreachable(Unreachable.NO_PROGRAM, f"there is no systemctl in {path}")

    def describe_place(self) -> Place:
        """Where we are, for what people are told."""
        user = _name_of(self._uid)
        means = frozenset(each for each in Means if find_program(each, self._environment))
        return Place(
            user,
            self._uid,
            sudo_user=self._environment.get("SUDO_USER"),
            remote="SSH_CONNECTION" in self._environment,
            container=self._container(),
            wsl="microsoft" in _first_line(f"{self._root}/proc/sys/kernel/osrelease").lower(),
            lingers=os.path.exists(f"{self._root}/var/lib/systemd/linger/{user}"),
            means=means,
            program=_program(self._environment),
            directories=tuple(
                (name, os.path.abspath(self._environment[name])) for name in VARIABLES if self._environment.get(name)
            ),
        )

    def _check_directory(self, directory: str) -> None:
        try:
            found = os.stat(directory)
        except FileNotFoundError:
            reason, fact = Unreachable.NO_RUNTIME_DIRECTORY, f"{directory} is not there"
        except OSError as error:
            reason, fact = Unreachable.REFUSED, f"{directory}: {error.strerror}"
        else:
            if found.st_uid == self._uid:
                return
            reason, fact = Unreachable.FOREIGN_RUNTIME_DIRECTORY, f"{directory} belongs to {_name_of(found.st_uid)}"
        raise self._unreachable(reason, fact)

    def _unreachable(self, reason: Unreachable, fact: str) -> ManagerUnreachable:
        """Without systemd, what is missing of it is no news. Source: sd_booted(3)."""
        if not os.path.isdir(self._root + _BOOTED):
            reason, fact = Unreachable.NO_SYSTEMD, f"this system was not booted with systemd; {_BOOTED} is not there"
        return unreachable(reason, self.describe_place(), fact)

    def _container(self) -> str | None:
        """Source: https://systemd.io/CONTAINER_INTERFACE/ for the first; the others are what their programs make."""
        told = _first_line(f"{self._root}/run/systemd/container") or self._environment.get("container")
        return told or next((name for path, name in _CONTAINERS.items() if os.path.exists(self._root + path)), None)


def _try(path: str) -> OSError | None:
    """Why nobody can be reached at the socket; None when somebody can. Whoever listens does not notice.

    A socket of datagrams cannot be connected to one of streams, and the kernel says so (EPROTOTYPE) only where the path
    may be written to and leads to a socket that is open: connect(2), unix(7).
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(path)
        except OSError as error:
            return None if error.errno == errno.EPROTOTYPE else error
    return None


def _program(environment: Mapping[str, str]) -> str:
    """How a shell, or cron, starts this program."""
    found = find_program("ankita-agent", environment)
    return shlex.quote(found) if found else f"{shlex.quote(sys.executable)} -m ankita_agent"


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""
