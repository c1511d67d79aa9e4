"""What is so of this machine and this user, read once at start."""

import os
import pwd
import socket
from collections.abc import Mapping

from ankita_agent.core.environment import UserFacts

_ZONE_FOLDERS = "/zoneinfo/"


def machine_name() -> str:
    """A text that stays the same for this machine: its machine-id(5), else its host name. For jitter alone."""
    try:
        with open("/etc/machine-id", encoding="ascii") as file:
            return file.read().strip() or socket.gethostname()
    except (OSError, UnicodeDecodeError):
        return socket.gethostname()


def local_zone() -> str:
    """The IANA name of the machine's time zone; UTC when it does not tell.

    From /etc/localtime (localtime(5)), else /etc/timezone. TZ is not asked: it may differ between a shell and
    the service, and the routines must not.
    """
    try:
        target = os.path.realpath("/etc/localtime")
        if _ZONE_FOLDERS in target:
            return target.split(_ZONE_FOLDERS, 1)[1].removeprefix("posix/").removeprefix("right/")
        with open("/etc/timezone", encoding="ascii") as file:
            return file.read().strip() or "UTC"
    except (OSError, UnicodeDecodeError):
        return "UTC"


def home_of_user() -> str:
    """The home directory of the user we run as, by the user database and not by HOME, which may be another's."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a uid without an entry, as in some containers
        return os.environ.get("HOME") or "/"


def user_facts() -> UserFacts:
    """Facts of the user we run as, for the environment of attempts."""
    uid = os.getuid()
    try:
        entry = pwd.getpwuid(uid)
        name, shell = entry.pw_name, entry.pw_shell
    except KeyError:
        name, shell = str(uid), "/bin/sh"
    runtime = f"/run/user/{uid}"
    bus = f"{runtime}/bus"
    return UserFacts(
        home=home_of_user(),
        name=name,
        shell=shell or "/bin/sh",
        runtime_directory=runtime if os.path.isdir(runtime) else None,
        bus=bus if os.path.exists(bus) else None,
    )


def manager_of(environment: Mapping[str, str]) -> str | None:
    """The service manager that started us, as far as its variables tell; for people."""
    if environment.get("NOTIFY_SOCKET") or environment.get("INVOCATION_ID"):
        return "systemd"
    return None
