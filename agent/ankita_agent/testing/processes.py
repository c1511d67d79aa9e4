"""A machine with processes, as far as an agent can see and touch them.

It knows what makes supervision hard: zombies, pids that are given out again, orphans that the agent adopts,
programs that ignore SIGTERM, stopped ones for which it stays pending, ones that not even SIGKILL ends. Who is kin
of whom is decided by the very function that the real adapter uses.
"""

import os
import signal
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from ankita_agent.core.descent import descendants, kin
from ankita_agent.core.environment import FIRE_VARIABLE
from ankita_agent.core.identity import Place, ProcessFacts, Unseen, Verdict, judge
from ankita_agent.core.rows import ProcessId
from ankita_agent.ports.processes import Ended, Holder, Launch, LaunchFailed, Observed

AGENT = 100
"""The pid of the agent on this machine."""

OTHER_AGENT = 50
"""The pid of an agent before it, which is dead."""

_INIT = 1
_CATCHABLE = frozenset(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}


@dataclass(frozen=True, slots=True)
class Program:
    """How a program behaves: what it ignores, whether SIGKILL ends it, why it cannot be started at all."""

    ignores: frozenset[int] = frozenset()
    unkillable: bool = False
    fault: str | None = None


@dataclass(slots=True)
class _Process:
    facts: ProcessFacts
    program: Program
    mark: str | None
    descriptors: list[int] = field(default_factory=list)  # its output, then the locks that it inherited
    taker: int = OTHER_AGENT  # of those locks
    pending: list[int] = field(default_factory=list)
    ended: Ended | None = None


class FakeProcesses:
    """ports.processes.Processes on a machine of its own, with the agent as the only subreaper.

    A process inherits duplicates of the descriptors of its launch and closes them when it ends, so real locks
    and files behave as they do for real attempts. `programs` says how the program of that name behaves; one
    that is not in it does what signals tell it. `sent` lists (pid, signal), in order; `descriptors` is how many the
    agent may have open.
    """

    def __init__(self, programs: dict[str, Program] | None = None, *, reuse_pids: bool = False) -> None:
        self.programs = programs or {}
        self.sent: list[tuple[int, int]] = []
        self.launches: list[Launch] = []
        self.descriptors = 1024
        self.place = Place("boot-1", 4026531836)
        self._reuse_pids = reuse_pids
        self._next_pid = AGENT + 1
        self._ticks = 1000
        self._table: dict[int, _Process] = {}
        self._leaders: dict[ProcessId, dict[int, int]] = {}
        self._marks: dict[ProcessId, tuple[str | None, list[tuple[int, int]]]] = {}
        self._add(_Process(ProcessFacts(AGENT, "S", _INIT, AGENT, AGENT, self._ticks, AGENT), Program(), None))

    # -- what tests and simulations do to the machine

    def end(self, pid: int, *, exit_code: int | None = None, by_signal: int | None = None) -> None:
        """The process ends; its children become the agent's, and it is a zombie until its parent reaps it."""
        process = self._table[pid]
        code = 0 if exit_code is None and by_signal is None else exit_code
        process.ended = Ended(pid, code, by_signal)
        for descriptor in process.descriptors:
            os.close(descriptor)
        process.descriptors.clear()
        for child in [each for each in self._table.values() if each.facts.parent == pid]:
            child.facts = replace(child.facts, parent=AGENT)
        process.facts = replace(process.facts, state="Z")
        if process.facts.parent != AGENT:
            del self._table[pid]

    def fork(self, parent: int, *, new_session: bool = False, program: Program | None = None) -> int:
        """The process makes a child, which inherits its group, session, variables and descriptors."""
        above = self._table[parent]
        pid = self._free_pid()
        group, session = (pid, pid) if new_session else (above.facts.group, above.facts.session)
        facts = ProcessFacts(pid, "S", parent, group, session, self._tick(), pid)
        inherited = [os.dup(descriptor) for descriptor in above.descriptors]
        self._add(_Process(facts, program or above.program, above.mark, inherited, above.taker))
        return pid

    def forget_mark(self, pid: int) -> None:
        """The process wipes its variables, as `env -i` does."""
        self._table[pid].mark = None

    def close_locks(self, pid: int) -> None:
        """The process closes every descriptor that it inherited, but its output."""
        process = self._table[pid]
        for descriptor in process.descriptors[1:]:
            os.close(descriptor)
        del process.descriptors[1:]

    def write(self, pid: int, content: bytes) -> None:
        """The process writes to its output."""
        os.write(self._table[pid].descriptors[0], content)

    def stranger(
        self, program: Program | None = None, inherits: Collection[int] = (), taker: int = OTHER_AGENT
    ) -> ProcessId:
        """A process that another agent started: leader of a group of its own, and no child of ours.

        It inherits those descriptors: its output, then locks that the process `taker` took.
        """
        pid = self._free_pid()
        facts = ProcessFacts(pid, "S", _INIT, pid, pid, self._tick(), pid)
        inherited = [os.dup(descriptor) for descriptor in inherits]
        self._add(_Process(facts, program or Program(), None, inherited, taker))
        return self._identity(pid)

    def lives(self, pid: int) -> bool:
        """Whether there is such a process, zombies excluded."""
        return pid in self._table and not self._table[pid].facts.dead

    def signal(self, pid: int, number: int) -> None:
        """Somebody on the machine signals one process."""
        process = self._table.get(pid)
        if process is None or process.facts.dead:
            return
        if number == signal.SIGSTOP:
            process.facts = replace(process.facts, state="T")
        elif number == signal.SIGCONT:
            process.facts = replace(process.facts, state="S")
            pending, process.pending = process.pending, []
            for waiting in pending:
                self.signal(pid, waiting)
        elif number in _CATCHABLE and process.facts.stopped:
            process.pending.append(number)
        elif number in process.program.ignores or number == 0 or process.program.unkillable:
            pass
        else:
            self.end(pid, by_signal=number)

    # -- the port

    def this_process(self) -> ProcessId:
        """Who we are."""
        return self._identity(AGENT)

    def start(self, launch: Launch) -> int:
        """Start it, unless its program has a fault."""
        program = self.programs.get(launch.argv[0], Program())
        if program.fault is not None:
            raise LaunchFailed(program.fault)
        pid = self._free_pid()
        mark = launch.environment.get(FIRE_VARIABLE)
        inherited = [os.dup(descriptor) for descriptor in (launch.output, *launch.keep)]
        facts = ProcessFacts(pid, "S", AGENT, pid, pid, self._tick(), pid)
        self._add(_Process(facts, program, mark, inherited, AGENT))
        self.launches.append(launch)
        return pid

    def identify(self, pid: int) -> ProcessId:
        """Who a child is that was started."""
        process = self._identity(pid)
        self._leaders[process] = {}
        started = self._table[pid]
        self._marks[process] = started.mark, _files(started.descriptors[1:])
        return process

    def reap(self) -> list[Ended]:
        """Collect every child that has ended."""
        zombies = [each for each in self._table.values() if each.facts.parent == AGENT and each.ended]
        for zombie in zombies:
            del self._table[zombie.facts.pid]
        return [zombie.ended for zombie in zombies if zombie.ended]

    def family(self, leader: ProcessId) -> list[int]:
        """Live pids that belong to the attempt of that leader."""
        if leader not in self._leaders:
            return []
        everybody = {pid: process.facts for pid, process in self._table.items()}
        ours = {pid: everybody[pid] for pid in descendants((AGENT,), everybody)}
        marked = {pid for pid, ticks in self._leaders[leader].items() if pid in ours and ours[pid].ticks == ticks}
        started = {each.pid for each in self._leaders if self._is(each)}
        orphans = {pid for pid, facts in ours.items() if facts.parent == AGENT and pid not in started}
        marked |= {pid for pid in orphans if self._bears(self._table[pid], *self._marks[leader])}
        members = kin(leader.pid, leader.ticks, marked, ours)
        self._leaders[leader] = {pid: ours[pid].ticks for pid in members}
        return sorted(members)

    def families(self, leaders: Collection[ProcessId]) -> dict[ProcessId, list[int]]:
        """`family` for each."""
        return {leader: self.family(leader) for leader in leaders}

    def forget(self, leader: ProcessId) -> None:
        """We are done with that attempt."""
        self._leaders.pop(leader, None)
        self._marks.pop(leader, None)

    def signal_group(self, leader: ProcessId, signal: int) -> None:
        """Signal the process group of an attempt that we started."""
        for pid in self.family(leader):
            if self._table[pid].facts.group == leader.pid:
                self._send(pid, signal)

    def signal_family(self, leader: ProcessId, signal: int) -> None:
        """Signal every process of `family`, each once."""
        for pid in self.family(leader):
            self._send(pid, signal)

    def observe(self, process: ProcessId) -> Observed:
        """What is left of a recorded process."""
        found = self._table.get(process.pid)
        seen = Unseen.ABSENT if found is None else found.facts
        match judge(process, self.place, seen):
            case Verdict.ALIVE:
                stopped = isinstance(seen, ProcessFacts) and seen.stopped
                return Observed.STOPPED if stopped else Observed.RUNNING
            case Verdict.GONE:
                return Observed.GONE
            case Verdict.UNKNOWN:
                return Observed.UNKNOWN

    def signal_recorded(self, process: ProcessId, signal: int) -> bool:
        """Signal the group of a recorded process, only while its identity still matches."""
        if self.observe(process) not in (Observed.RUNNING, Observed.STOPPED):
            return False
        for pid, each in list(self._table.items()):
            if each.facts.group == process.pid:
                self._send(pid, signal)
        return True

    def holders(self, lock: int) -> list[Holder]:
        """Who keeps the lock on that open file held."""
        (file,) = _files([lock])
        return [
            Holder(self._identity(pid), process.facts.group, "program", process.taker)
            for pid, process in self._table.items()
            if file in _files(process.descriptors[1:])
        ]

    def signal_one(self, process: ProcessId, signal: int) -> None:
        """Signal one process, only while it is that very one."""
        if self._is(process):
            self._send(process.pid, signal)

    def allow_descriptors(self, count: int) -> bool:
        """Whether the agent may have that many descriptors."""
        return count <= self.descriptors

    # -- inside

    def _bears(self, process: _Process, mark: str | None, locks: list[tuple[int, int]]) -> bool:
        held = _files(process.descriptors[1:]) if process.taker == AGENT else []
        return (mark is not None and process.mark == mark) or any(lock in held for lock in locks)

    def _send(self, pid: int, number: int) -> None:
        self.sent.append((pid, number))
        self.signal(pid, number)

    def _is(self, process: ProcessId) -> bool:
        found = self._table.get(process.pid)
        return found is not None and found.facts.ticks == process.ticks

    def _identity(self, pid: int) -> ProcessId:
        return ProcessId(pid, self._table[pid].facts.ticks, self.place.boot, self.place.namespace)

    def _add(self, process: _Process) -> None:
        self._table[process.facts.pid] = process

    def _tick(self) -> int:
        self._ticks += 1
        return self._ticks

    def _free_pid(self) -> int:
        """The next pid, or with `reuse_pids` the lowest that nobody uses as pid, group or session."""
        if not self._reuse_pids:
            self._next_pid += 1
            return self._next_pid - 1
        used = {
            number for each in self._table.values() for number in (each.facts.pid, each.facts.group, each.facts.session)
        }
        return next(pid for pid in range(AGENT + 1, AGENT + 2 + len(used) * 3) if pid not in used)


def _files(descriptors: Collection[int]) -> list[tuple[int, int]]:
    """Which files those are open on."""
    return [(status.st_dev, status.st_ino) for status in map(os.fstat, descriptors)]
