"""What macOS says of processes: sysctl(3), because libproc answers ESRCH for a zombie."""

import ctypes
import ctypes.util
import errno
import os
import struct
from dataclasses import dataclass

import psutil

from ankita_agent.core.identity import Place, ProcessFacts, Unseen

# sys/sysctl.h and sys/proc.h: mib {CTL_KERN, KERN_PROC, KERN_PROC_PID, pid}; struct kinfo_proc begins with
# the start time (seconds: 8 bytes, microseconds: 4) and holds p_stat at 36, p_pid at 40, e_ppid at 560 and
# e_pgid at 564.
_KERN_PROC_PID = (1, 14, 1)
_KINFO_SIZE = 648
_STATES = {1: "I", 2: "R", 3: "S", 4: "T", 5: "Z"}


@dataclass(frozen=True, slots=True)
class LockFile:
    """A file that is locked with flock(2); this kernel shows nothing of such locks."""


class DarwinProcessTable:
    """The processes of this machine. Start "ticks" are microseconds, fixed at fork."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
        self.place = Place(self._boot_session(), 0)

    def adopt_orphans(self) -> bool:
        """The kernel has no subreaper: orphans go to launchd."""
        return False

    def facts(self, pid: int) -> ProcessFacts | Unseen:
        """What is known of `pid`."""
        name = (ctypes.c_int * 4)(*_KERN_PROC_PID, pid)
        record = ctypes.create_string_buffer(_KINFO_SIZE)
        size = ctypes.c_size_t(_KINFO_SIZE)
        if self._libc.sysctl(name, 4, record, ctypes.byref(size), None, 0) != 0:
            return Unseen.ABSENT if ctypes.get_errno() == errno.ESRCH else Unseen.UNREADABLE
        if size.value == 0:  # a pid that is not there: success, with nothing
            return Unseen.ABSENT
        try:
            return parse_kinfo(record.raw[: size.value], _session(pid))
        except (ValueError, struct.error):
            return Unseen.UNREADABLE

    def ticks_of_child(self, pid: int) -> int:
        """When a child that is not reaped started. 0 when not seen."""
        seen = self.facts(pid)
        return seen.ticks if isinstance(seen, ProcessFacts) else 0

    def all(self) -> dict[int, ProcessFacts]:
        """Every process that can be seen, by pid."""
        seen = (self.facts(pid) for pid in psutil.pids())
        return {facts.pid: facts for facts in seen if isinstance(facts, ProcessFacts)}

    def carries(self, _pid: int, _variable: bytes) -> bool:
        """Nothing is adopted, so nobody asks."""
        return False

    def lock_file(self, _descriptor: int) -> LockFile:
        """Nothing can be found by it."""
        return LockFile()

    def taker(self, _pid: int, _file: LockFile) -> int | None:
        """The kernel does not show who keeps a lock held."""
        return None

    def name(self, _pid: int) -> str:
        """Nobody is found, so nobody is named."""
        return ""

    def _boot_session(self) -> str:
        text = ctypes.create_string_buffer(64)
        size = ctypes.c_size_t(64)
        failed = self._libc.sysctlbyname(b"kern.bootsessionuuid", text, ctypes.byref(size), None, 0)
        return "" if failed else text.value.decode("ascii", "replace")


def parse_kinfo(record: bytes, session: int) -> ProcessFacts:
    """The facts in a struct kinfo_proc. Raises struct.error or ValueError for anything shorter or strange."""
    seconds, microseconds = struct.unpack_from("<qi", record, 0)
    state = _STATES.get(record[36], "?")
    (pid,) = struct.unpack_from("<i", record, 40)
    parent, group = struct.unpack_from("<ii", record, 560)
    if pid <= 0 or seconds <= 0:
        raise ValueError("an empty struct kinfo_proc")
    return ProcessFacts(pid, state, parent, group, session, seconds * 1_000_000 + microseconds, pid)


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0
