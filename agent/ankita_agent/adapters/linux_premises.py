"""ports.premises.Premises on Linux: files, statvfs(3) and adjtimex(2), and no program and no bus is asked.

Why adjtimex and not timedatectl(1): that starts a service by way of the system bus, which may be slow or not there, and
in the end makes the same call. Why not /run/systemd/timesync/synchronized: chrony and ntpd do not make it.
"""

import ctypes
import os
import shutil
import stat
from collections.abc import Mapping
from typing import ClassVar, Final

from ankita_agent.core.machine_diagnosis import DiskSeen, MessagesSeen
from ankita_agent.core.unit_diagnosis import UnitCopy

UNSYNCHRONISED: Final = 16_000_000
"""Microseconds of error from which on a clock counts as nobody's care, as systemd's timedated(8) has it."""

_FIRST_PERSON: Final = 1000  # users below it have no part of the journal of their own
_BEHIND_IT: Final = 512  # bytes; more than struct timex(2) has behind what is asked of it


class _Timex(ctypes.Structure):
    """The beginning of struct timex, adjtimex(2), with room for the rest."""

    _fields_: ClassVar = [
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("frequency", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("rest", ctypes.c_byte * _BEHIND_IT),
    ]


class LinuxPremises:
    """Looks at the machine it runs on. `root` is where its directories are, for tests."""

    def __init__(self, root: str = "") -> None:
        self._root = root

    def find_program(self, name: str, path: str) -> str | None:
        """The directory of a PATH in which a program of that name can be executed; None when in none."""
        found = shutil.which(name, path=path)
        return None if found is None else os.path.dirname(os.path.abspath(found))

    def can_execute(self, path: str) -> bool:
        """Whether there is a file at this whole path that we may execute."""
        return os.path.isfile(path) and os.access(path, os.X_OK)

    def unit_at(self, path: str) -> UnitCopy | None:
        """The unit file at a path, a link that leads nowhere included; None when there is none."""
        try:
            link = os.readlink(path) if stat.S_ISLNK(os.lstat(path).st_mode) else None
        except OSError:
            return None
        return UnitCopy(path, os.access(os.path.dirname(path), os.W_OK), link)

    def same_directory(self, one: str, other: str) -> bool:
        """Whether both paths lead to one directory."""
        return os.path.realpath(one) == os.path.realpath(other)

    def owner_of(self, path: str) -> int | None:
        """The uid of the owner of what a path leads to."""
        try:
            return os.stat(path).st_uid
        except (OSError, ValueError):
            return None

    def environment_of(self, pid: int) -> Mapping[str, str] | None:
        """The variables with which a process of ours was started (proc(5))."""
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                variables = file.read().split(b"\0")
        except OSError:
            return None
        pairs = (os.fsdecode(each).partition("=") for each in variables if each)
        return {name: value for name, _, value in pairs}

    def disk(self, path: str) -> DiskSeen | None:
        """The file system of a path, or of the nearest directory above it that is there."""
        above = path
        while not os.path.isdir(above) and above != os.path.dirname(above):
            above = os.path.dirname(above)
        try:
            seen = os.statvfs(above)
        except OSError:
            return None
        inodes = seen.f_favail if seen.f_files else None  # Btrfs and others have no table of them
        return DiskSeen(path, seen.f_bavail * seen.f_frsize, inodes, bool(seen.f_flag & os.ST_RDONLY))

    def messages(self) -> MessagesSeen:
        """What becomes of what is said in the journal."""
        if not os.path.isdir(f"{self._root}/run/systemd/journal"):
            return MessagesSeen.NONE
        kept = f"{self._root}/var/log/journal"
        if not os.path.isdir(kept):
            return MessagesSeen.VOLATILE
        if os.getuid() < _FIRST_PERSON or self._may_read_own_part(kept):
            return MessagesSeen.KEPT
        return MessagesSeen.UNREADABLE

    def _may_read_own_part(self, kept: str) -> bool:
        try:
            with open(f"{self._root}/etc/machine-id", encoding="ascii") as file:
                mine = f"{kept}/{file.read().strip()}/user-{os.getuid()}.journal"
        except (OSError, UnicodeDecodeError):
            return True
        return not os.path.exists(mine) or os.access(mine, os.R_OK)

    def clock_synchronised(self) -> bool | None:
        """Whether something keeps the clock right; a container that may not ask does not know."""
        try:
            call = ctypes.CDLL(None, use_errno=True).adjtimex
        except (AttributeError, OSError):
            return None
        asked = _Timex()
        return None if call(ctypes.byref(asked)) < 0 else bool(asked.maxerror < UNSYNCHRONISED)

    def controllers(self) -> frozenset[str] | None:
        """The controllers of cgroups(7) that this user's service manager may use."""
        uid = os.getuid()
        place = f"{self._root}/sys/fs/cgroup/user.slice/user-{uid}.slice/user@{uid}.service/cgroup.controllers"
        try:
            with open(place, encoding="ascii") as file:
                return frozenset(file.read().split())
        except (OSError, UnicodeDecodeError):
            return None
