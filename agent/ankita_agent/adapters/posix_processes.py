"""Starting, watching and ending the processes of attempts.

The problem: signals are addressed by numbers that the kernel gives out again, and a family of processes does
its best to scatter.

The rule: a number is signalled only while it cannot mean anybody else. The pid of a child of ours is safe until
*we* reap it; the number of its group as long as the group has had members at every look since. Every other
process is signalled through a pidfd (pidfd_open(2)) whose start ticks were compared after it was opened. A group
is signalled in one step (kill(2)), because processes that fork and end faster than /proc can be read are never
caught one by one; and a family counts as gone only when nobody ended during the look that found nobody.
tests/real/test_attempts.py holds it.

Whose an orphan is, two marks tell that it cannot shake off by chance: the variables that its attempt was given
(`env -i` wipes those), and the lock that it inherited: an exclusive flock(2) belongs to one open file, and
fdinfo (proc(5)) shows it only with a descriptor of that very one. Whoever opened the same file itself has no lock.

Rejected: `preexec_fn` (it forbids vfork, which makes a start three times as slow, and runs Python between
fork and exec); posix_spawn (no working directory, and descriptors that nobody named stay open).
"""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass, field

from ankita_agent.adapters.launch_faults import explain
from ankita_agent.core.descent import descendants, kin
from ankita_agent.core.environment import FIRE_VARIABLE
from ankita_agent.core.identity import ProcessFacts, Verdict, judge
from ankita_agent.core.rows import ProcessId
from ankita_agent.ports.processes import Ended, Holder, Launch, LaunchFailed, Observed

if sys.platform == "darwin":
    from ankita_agent.adapters.darwin_process_table import DarwinProcessTable as ProcessTable
    from ankita_agent.adapters.darwin_process_table import LockFile
else:
    from ankita_agent.adapters.linux_process_table import LinuxProcessTable as ProcessTable
    from ankita_agent.adapters.linux_process_table import LockFile

_GROUP = 1 << 2  # PIDFD_SIGNAL_PROCESS_GROUP, linux/pidfd.h, since Linux 6.9


@dataclass(frozen=True, slots=True)
class _Marks:
    """What everything that comes of an attempt has from it: a variable, and open locks."""

    variable: bytes | None
    locks: tuple[LockFile, ...]


@dataclass(slots=True)
class _Leader:
    """A process that we started.

    `relatives` are pids seen as its kin, with the ticks that say which they were. `group_lived`: at every look
    so far its process group has had members, so the number has not been given out again.
    """

    process: ProcessId
    marks: "_Marks"
    relatives: dict[int, int] = field(default_factory=dict)
    group_lived: bool = True


class PosixProcesses:
    """ports.processes.Processes over vfork, setsid(2), /proc or sysctl, pidfds and a subreaper.

    The first start makes this process a subreaper. A child inherits which signals are blocked and ignored here
    (execve(2)): whoever waits for signals has undone what this process was started with. `umask` is what attempts
    get, whatever the agent's is.
    """

    def __init__(self, umask: int) -> None:
        self._umask = umask
        self._table = ProcessTable()
        self._adopts: bool | None = None  # not known before the first start
        self._nothing = -1  # /dev/null, from the first start on
        self._launches: dict[int, Launch] = {}  # of children that are not identified yet
        self._leaders: dict[ProcessId, _Leader] = {}
        self._unreaped: dict[int, ProcessId] = {}

    def this_process(self) -> ProcessId:
        """Who we are."""
        return self._identified(os.getpid())

    def start(self, launch: Launch) -> int:
        """Start it. Raises LaunchFailed when no process came to be."""
        if self._adopts is None:
            self._nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            self._adopts = self._table.adopt_orphans()
        try:
            child = subprocess.Popen(
                launch.argv,
                env=launch.environment,
                cwd=launch.directory,
                stdin=self._nothing,
                stdout=launch.output,
                stderr=launch.output,
                pass_fds=launch.keep,
                start_new_session=True,
                umask=self._umask,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            cause = error if isinstance(error, OSError | ValueError) else OSError(0, str(error))
            raise LaunchFailed(explain(cause, launch)) from None
        child.returncode = 0  # we reap it ourselves, by number; its object must not try
        self._launches[child.pid] = launch
        return child.pid

    def identify(self, pid: int) -> ProcessId:
        """Who a child is that was started."""
        process = self._identified(pid)  # safe: nobody reaps it before us
        self._leaders[process] = _Leader(process, self._marks_of(self._launches.pop(pid)))
        self._unreaped[pid] = process
        return process

    def reap(self) -> list[Ended]:
        """Collect every child that has ended, adopted ones too. Never waits."""
        ended = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            code = os.waitstatus_to_exitcode(status)
            ended.append(Ended(pid, code, None) if code >= 0 else Ended(pid, None, -code))
            self._unreaped.pop(pid, None)
        return ended

    def family(self, leader: ProcessId) -> list[int]:
        """Live pids that belong to the attempt of that leader."""
        return self.families((leader,))[leader]

    def families(self, leaders: Collection[ProcessId]) -> dict[ProcessId, list[int]]:
        """`family` for each, from one look."""
        known = [self._leaders[leader] for leader in leaders if leader in self._leaders]
        found: dict[ProcessId, list[int]] = {leader: [] for leader in leaders}
        if known and not (self._adopts and _childless()):
            table = self._candidates()
            changing = self._changing(table)
            for leader in known:
                members = sorted(self._kin(leader, table))
                found[leader.process] = members or ([leader.process.pid] if changing else [])
                self._group_lives(leader)
        return found

    def forget(self, leader: ProcessId) -> None:
        """We are done with that attempt."""
        self._leaders.pop(leader, None)

    def signal_group(self, leader: ProcessId, signal: int) -> None:
        """Signal the process group of an attempt that we started."""
        self._signal(leader, signal, beyond_group=False)

    def signal_family(self, leader: ProcessId, signal: int) -> None:
        """Signal every process of `family`, each once."""
        self._signal(leader, signal, beyond_group=True)

    def observe(self, process: ProcessId) -> Observed:
        """What is left of a recorded process."""
        seen = self._table.facts(process.pid)
        match judge(process, self._table.place, seen):
            case Verdict.ALIVE:
                stopped = isinstance(seen, ProcessFacts) and seen.stopped
                return Observed.STOPPED if stopped else Observed.RUNNING
            case Verdict.GONE:
                return Observed.GONE
            case Verdict.UNKNOWN:
                return Observed.UNKNOWN

    def signal_recorded(self, process: ProcessId, signal: int) -> bool:
        """Signal the group of a recorded process, only while its identity still matches."""
        descriptor = _pidfd(process.pid)
        try:
            if self.observe(process) not in (Observed.RUNNING, Observed.STOPPED):
                return False
            if descriptor is not None and _send_to_group(descriptor, signal):
                return True
            # The leader was there a moment ago, so its number still means its group: the kernel keeps it
            # taken while any member lives.
            return _kill_group(process.pid, signal)
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def holders(self, lock: int) -> list[Holder]:
        """Who else keeps the flock on that open file held."""
        place, file, us = self._table.place, self._table.lock_file(lock), os.getpid()
        found = []
        for pid, facts in self._table.all().items():
            taker = None if pid == us or facts.dead else self._table.taker(pid, file)
            if taker is not None:
                process = ProcessId(pid, facts.ticks, place.boot, place.namespace)
                found.append(Holder(process, facts.group, self._table.name(pid), taker))
        return found

    def signal_one(self, process: ProcessId, signal: int) -> None:
        """Signal one process, only while it is that very one."""
        self._signal_one(process.pid, process.ticks, signal)

    def allow_descriptors(self, count: int) -> bool:
        """Whether we may have that many descriptors; the soft limit is raised where it is in the way."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY or count <= soft:
            return True
        if hard != resource.RLIM_INFINITY and count > hard:
            return False
        try:  # in steps, so that most attempts see the same limit
            limit = 2 * count if hard == resource.RLIM_INFINITY else min(2 * count, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        except (OSError, ValueError):  # setrlimit(2): macOS refuses more than kern.maxfilesperproc
            return False
        return True

    def _identified(self, pid: int) -> ProcessId:
        """The identity of us or of a child that is not reaped; with ticks 0 it is like nothing."""
        place = self._table.place
        return ProcessId(pid, self._table.ticks_of_child(pid), place.boot, place.namespace)

    def _marks_of(self, launch: Launch) -> _Marks:
        fire = launch.environment.get(FIRE_VARIABLE)
        variable = None if fire is None else f"{FIRE_VARIABLE}={fire}".encode()
        return _Marks(variable, tuple(map(self._table.lock_file, launch.keep)))

    def _candidates(self) -> dict[int, ProcessFacts]:
        """Who may be kin of an attempt: our descendants, or everybody where orphans are not ours."""
        table = self._table.all()
        if not self._adopts:
            return table
        return {pid: table[pid] for pid in descendants((os.getpid(),), table)}

    def _kin(self, leader: _Leader, table: dict[int, ProcessFacts]) -> set[int]:
        marked = {pid for pid, ticks in leader.relatives.items() if pid in table and table[pid].ticks == ticks}
        if self._adopts:
            us = os.getpid()
            orphans = [pid for pid, facts in table.items() if facts.parent == us and pid not in self._unreaped]
            marked.update(pid for pid in orphans if self._bears(pid, leader.marks))
        members = kin(leader.process.pid, leader.process.ticks, marked, table)
        leader.relatives = {pid: table[pid].ticks for pid in members}
        return members

    def _bears(self, pid: int, marks: _Marks) -> bool:
        """Whether an orphan shows that it comes of the attempt with these marks."""
        if marks.variable is not None and self._table.carries(pid, marks.variable):
            return True
        return any(self._table.taker(pid, lock) == os.getpid() for lock in marks.locks)

    def _changing(self, table: dict[int, ProcessFacts]) -> bool:
        """Whether an orphan ended during the look, and so may have had a child that the look did not see.

        Who is born after /proc was listed is not in the table. Its parent, or the nearest ancestor that was
        listed, either is in it alive, or ended meanwhile; then it waits to be reaped, by us and nobody else.
        """
        us = os.getpid()
        return any(facts.dead and facts.parent == us and facts.pid not in self._unreaped for facts in table.values())

    def _group_lives(self, leader: _Leader) -> bool:
        """Whether the number of the leader's group still means that group.

        It does until we reap the leader, and from then on as long as the group has members: pids are given out
        in turn, so none comes round between two looks.
        """
        if leader.group_lived and self._unreaped.get(leader.process.pid) != leader.process:
            leader.group_lived = _group_exists(leader.process.pid)
        return leader.group_lived

    def _signal(self, leader: ProcessId, number: int, *, beyond_group: bool) -> None:
        known = self._leaders.get(leader)
        if known is None:
            return
        members: dict[int, ProcessFacts] = {}
        if beyond_group:
            table = self._candidates()
            members = {pid: table[pid] for pid in self._kin(known, table)}
        if self._group_lives(known):
            _kill_group(leader.pid, number)
        for pid, facts in members.items():
            if facts.group != leader.pid:
                self._signal_one(pid, facts.ticks, number)

    def _signal_one(self, pid: int, ticks: int, number: int) -> None:
        descriptor = _pidfd(pid)
        try:
            seen = self._table.facts(pid)
            if not isinstance(seen, ProcessFacts) or seen.ticks != ticks:
                return
            if sys.platform == "linux" and descriptor is not None:
                signal.pidfd_send_signal(descriptor, number)
            else:
                os.kill(pid, number)
        except (ProcessLookupError, PermissionError):  # ended, or another user's: the family still shows it
            pass
        finally:
            if descriptor is not None:
                os.close(descriptor)


def _group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's, or on macOS a zombie
        pass
    return True


def _childless() -> bool:
    """Whether we have no child, not even a zombie; then we have no descendant either."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _pidfd(pid: int) -> int | None:
    """A descriptor that means this process for ever, or None where the kernel or its sandbox has none."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _send_to_group(descriptor: int, number: int) -> bool:
    if sys.platform != "linux":
        return False
    try:
        signal.pidfd_send_signal(descriptor, number, None, _GROUP)
    except OSError:  # an older kernel, or nobody is left
        return False
    return True


def _kill_group(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
