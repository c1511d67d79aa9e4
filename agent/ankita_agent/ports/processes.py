"""Starting, watching and ending the processes of attempts."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from ankita_agent.core.rows import ProcessId


@dataclass(frozen=True, slots=True)
class Launch:
    """One process to start.

    `argv` is executed as it stands, found through the PATH of `environment`; `directory` must exist; output
    and errors are appended to the open descriptor `output`; the descriptors `keep` are inherited at the same
    numbers, every other is closed; a lock that is held through one (flock(2)) marks all that inherited it. stdin is
    /dev/null.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    directory: str
    output: int
    keep: tuple[int, ...] = ()


class LaunchFailed(Exception):
    """No process was started; the text is one line for a person: what failed, the fact, what to do."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A child of ours was reaped: exactly one of the two is set."""

    pid: int
    exit_code: int | None
    signal: int | None


class Observed(StrEnum):
    """What the kernel shows of a recorded process, seen now. Unknown means: it may well live."""

    RUNNING = "running"
    STOPPED = "stopped"
    GONE = "gone"  # ended, a zombie, another process under its pid, or of another boot
    UNKNOWN = "unknown"  # another PID namespace, unreadable /proc, unparseable facts


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that keeps a lock held, because it has the very open file through which the lock was taken.

    `group` is its process group and `name` its command, for people. `taker` is the pid of who took the lock, 0
    when that cannot be told any more: an agent, of which the holder inherited it.
    """

    process: ProcessId
    group: int
    name: str
    taker: int


class Processes(Protocol):
    """Processes of this machine, as far as this agent may touch them.

    Promise: `start` gives the process a session and process group of its own, and every descendant that loses
    its parent is adopted by this agent where the kernel can (subreaper, prctl(2)) and so seen by `reap` and
    `family`. Limit: a descendant that makes its own session and is adopted by another subreaper escapes, and
    so does one that makes its own session, loses its parent, has wiped its environment and closed every lock
    that it inherited before anybody looked; under a service manager its control group still holds it. This
    process must start no other children that outlive the call that starts them: `reap` would take their status.
    """

    def this_process(self) -> ProcessId:
        """Who we are."""
        ...

    def start(self, launch: Launch) -> int:
        """Start it; its pid. Raises LaunchFailed when no process came to be (not found, not executable, no memory).

        `identify` must follow, before the next `reap`.
        """
        ...

    def identify(self, pid: int) -> ProcessId:
        """Who a child is that `start` returned; all else is asked by that.

        Apart from `start`, because the kernel lets who asks wait while a process becomes its program (execve(2)):
        of 200 starts in a row it took a third of the time. So whoever starts several asks when all have started.
        """
        ...

    def reap(self) -> list[Ended]:
        """Collect every child that has ended, adopted ones too; empty when none has. Never waits."""
        ...

    def family(self, leader: ProcessId) -> list[int]:
        """Live pids, zombies excluded, that belong to the attempt whose leader `start` returned.

        By session, by process group, and by descent from the leader or from processes of it that this agent
        has adopted. The leader itself is included while it lives and is not a zombie. Empty for a leader that
        this agent did not start, or has forgotten. Empty means that nobody is left: while orphans wait to be
        reaped, the look may have missed a child of theirs, and the leader's pid stands for it. So reap first.
        """
        ...

    def families(self, leaders: Collection[ProcessId]) -> dict[ProcessId, list[int]]:
        """`family` for each of several leaders, from one look at the machine."""
        ...

    def forget(self, leader: ProcessId) -> None:
        """We are done with that attempt; what still runs of it, if anything, is nobody's. Idempotent."""
        ...

    def signal_group(self, leader: ProcessId, signal: int) -> None:
        """Signal the process group of an attempt that we started; a group that is gone is no error."""
        ...

    def signal_family(self, leader: ProcessId, signal: int) -> None:
        """Signal every process of `family`, each once: the leader's process group in one step, which no fork
        can slip through, and every other by a descriptor that cannot mean another process.
        """
        ...

    def holders(self, lock: int) -> list[Holder]:
        """Who, other than us, keeps the exclusive flock(2) held on the file that this descriptor is open on.

        The descriptor need not hold the lock. Looks at every process, so ask only when it matters. Limit: Linux
        only, and processes of other users and PID namespaces are not seen; empty does not mean that it is free.
        """
        ...

    def signal_one(self, process: ProcessId, signal: int) -> None:
        """Signal one process and not its group, only while it is that very one; one that is gone is no error."""
        ...

    def allow_descriptors(self, count: int) -> bool:
        """Whether this process may have that many descriptors open.

        Its soft limit (RLIMIT_NOFILE, getrlimit(2)) is raised towards the hard one where it is too low, and only
        then: attempts inherit it, and some programs do badly with a huge one.
        """
        ...

    def observe(self, process: ProcessId) -> Observed:
        """What is left of a process that we or an earlier agent recorded."""
        ...

    def signal_recorded(self, process: ProcessId, signal: int) -> bool:
        """Signal the group of a recorded process, only while its identity still matches; whether it did."""
        ...
