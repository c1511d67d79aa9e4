"""What makes a process the same process, and the verdict over one that was recorded.

The problem: a pid is reused, a host name and the wall clock change, a process may be invisible. Whoever takes
"cannot see it" for "dead" kills a stranger or runs something twice.

The rule: a process is the same only while boot, PID namespace, pid and raw start ticks are all equal; it is
gone only on proof; everything that cannot be seen or read is *unknown*, which means that it may well live.
tests/unit/test_identity.py holds the table.

Rejected, because each has called a live process dead: age, host name, machine id, the boot *time*, `ps`, and
`psutil.create_time`, which moves when the clock is set.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Final

from ankita_agent.core.rows import ProcessId

INITIAL_TIME_NAMESPACE: Final = 0xEFFFFFFA
"""The inode of the time namespace that every process starts in (PROC_TIME_INIT_INO, linux/proc_ns.h)."""

_DEAD: Final = frozenset("ZXx")
_STOPPED: Final = frozenset("Tt")


class Verdict(StrEnum):
    """Whether a recorded process still is. Unknown is an answer of its own and means: it may well live."""

    ALIVE = "alive"
    GONE = "gone"
    UNKNOWN = "unknown"


class Unseen(Enum):
    """Why there are no facts about a pid."""

    ABSENT = auto()  # kill(2) says ESRCH: no such process
    FORBIDDEN = auto()  # kill(2) says EPERM: it is there, and another user's
    UNREADABLE = auto()  # anything else: no /proc, hidden, torn, not understood


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """What the kernel says of a pid. `ticks` are raw; `thread_group` differs from `pid` for a mere thread."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    ticks: int
    thread_group: int

    @property
    def dead(self) -> bool:
        """A zombie: it has ended, holds no descriptor and no lock, and only waits to be reaped."""
        return self.state in _DEAD

    @property
    def stopped(self) -> bool:
        """Stopped by a signal or a debugger: alive, and not to blame for standing still."""
        return self.state in _STOPPED


@dataclass(frozen=True, slots=True)
class Place:
    """Where the observer stands. `own_proc` is false when /proc shows another PID namespace than ours."""

    boot: str
    namespace: int
    own_proc: bool = True


def parse_stat(content: bytes) -> ProcessFacts:
    """The facts in /proc/PID/stat; `thread_group` is set to the pid until status says otherwise.

    The name of the program is in brackets and may hold spaces, brackets and newlines, so fields are counted
    from the last bracket. Raises ValueError when it is not such a line. Source: proc(5).
    """
    head, bracket, tail = content.rpartition(b")")
    fields = tail.split()
    if not bracket or len(fields) < 20:
        raise ValueError(f"not a line of /proc/PID/stat: {content[:80]!r}")
    pid = int(head.partition(b" ")[0])
    return ProcessFacts(
        pid=pid,
        state=fields[0].decode("ascii"),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        ticks=int(fields[19]),
        thread_group=pid,
    )


def parse_thread_group(status: bytes) -> int:
    """The Tgid line of /proc/PID/status. Raises ValueError when there is none. Source: proc(5)."""
    for line in status.splitlines():
        if line.startswith(b"Tgid:"):
            return int(line[5:])
    raise ValueError("no Tgid line in /proc/PID/status")


def number_of_namespace(pid_namespace: int, time_namespace: int | None) -> int:
    """One number for the namespaces in which a pid and start ticks mean something.

    Ticks are shifted by the time namespace of whoever reads them (time_namespaces(7)), so they can be
    compared only within one. In the initial time namespace it is the inode of the PID namespace.
    """
    if time_namespace is None or time_namespace == INITIAL_TIME_NAMESPACE:
        return pid_namespace
    return (time_namespace & 0x3FFFFFFF) << 32 | pid_namespace


def judge(recorded: ProcessId, here: Place, seen: ProcessFacts | Unseen) -> Verdict:
    """The verdict over a recorded process, from where we stand and what its pid shows now."""
    if not recorded.boot or not here.boot:
        return Verdict.UNKNOWN
    if recorded.boot != here.boot:
        return Verdict.GONE
    if recorded.namespace != here.namespace or not here.own_proc or recorded.ticks <= 0:
        return Verdict.UNKNOWN
    if isinstance(seen, ProcessFacts):
        same = seen.pid == seen.thread_group == recorded.pid and seen.ticks == recorded.ticks
        return Verdict.ALIVE if same and not seen.dead else Verdict.GONE
    match seen:
        case Unseen.ABSENT:
            return Verdict.GONE
        case Unseen.FORBIDDEN:
            return Verdict.ALIVE
        case Unseen.UNREADABLE:
            return Verdict.UNKNOWN
