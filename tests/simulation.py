"""An agent on a simulated machine: fake clock, processes and file of routines; real locks and a real ledger.

Time passes only here, so a week is simulated in a moment and every run of a test is the same.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ankita_agent.adapters.attempt_outputs import AttemptOutputs
from ankita_agent.adapters.posix_env_files import PosixEnvFiles
from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.adapters.sqlite_ledger import SqliteLedger, memory_ledger
from ankita_agent.adapters.yaml_files import read_document
from ankita_agent.app.book import Book
from ankita_agent.app.claim import Card
from ankita_agent.app.owner import OWN, Owner
from ankita_agent.app.patience import Patience
from ankita_agent.app.report import Report, write_report
from ankita_agent.app.reporter import Reporter
from ankita_agent.app.requests import Requests
from ankita_agent.app.routines import Routines
from ankita_agent.app.runner import Runner, Surroundings
from ankita_agent.app.seat import Opened
from ankita_agent.app.shift import CONFIG, REQUESTS, Shift
from ankita_agent.app.told import Lines
from ankita_agent.app.world import Manner, World
from ankita_agent.core.identity import Place
from ankita_agent.core.instants import SECOND, Duration, Instant, format_instant
from ankita_agent.core.routine_file import judge
from ankita_agent.core.rows import HistoryRow
from ankita_agent.ports.files import Descriptor
from ankita_agent.ports.ledger import Ledger
from ankita_agent.ports.wakeups import Happened
from ankita_agent.testing.clocks import START, FakeClock
from ankita_agent.testing.processes import FakeProcesses
from ankita_agent.testing.readiness import RecordedReadiness
from ankita_agent.testing.routine_files import KeptCopy, WrittenFile

LINES = Lines(format_instant)


class NoWait:
    """ports.wakeups.Wakeups of a machine on which time passes by hand."""

    def watch(self, name: str, directory: str) -> bool:
        """Watched."""
        return True

    def forget(self, name: str) -> None:
        """Forgotten."""

    def wait(self, at_most: Duration) -> Happened:
        """Nothing happens."""
        return Happened()

    def poke(self) -> Callable[[], None]:
        """Nobody waits."""
        return lambda: None

    def close(self) -> None:
        """Nothing to close."""


class KnownFiles(PosixFiles):
    """Real files that know what is open, so that an agent which dies here loses its descriptors as a process does."""

    def __init__(self) -> None:
        self.open: set[Descriptor] = set()

    def open_directory(self, path: str) -> Descriptor:
        """Open a directory."""
        return self._known(super().open_directory(path))

    def open_directory_at(self, parent: Descriptor, name: str) -> Descriptor:
        """Open a directory inside an open one."""
        return self._known(super().open_directory_at(parent, name))

    def open_file(self, directory: Descriptor, name: str) -> Descriptor:
        """Open a file."""
        return self._known(super().open_file(directory, name))

    def raised(self, descriptor: Descriptor, lowest: int) -> Descriptor:
        """The same at another number."""
        self.open.discard(descriptor)
        return self._known(super().raised(descriptor, lowest))

    def close(self, descriptor: Descriptor) -> None:
        """Close it."""
        self.open.discard(descriptor)
        super().close(descriptor)

    def close_all(self) -> None:
        """Close what is open."""
        for descriptor in list(self.open):
            self.close(descriptor)

    def _known(self, descriptor: Descriptor) -> Descriptor:
        self.open.add(descriptor)
        return descriptor


class Machine:
    """A machine with a state directory, on which agents come and go. `run_for` is how long attempts run."""

    def __init__(self, path: Path, text: str, *, ledger: Callable[[], Ledger] | None = None) -> None:
        self.path = path
        self.file = WrittenFile(text)
        self.kept = KeptCopy()
        self.clock = FakeClock(Instant(START + 30 * SECOND))  # between two slots
        self.processes = FakeProcesses()
        self.ledger: SqliteLedger = memory_ledger()
        self.lines: list[str] = []
        self.warnings: list[str] = []
        self.run_for = Duration(SECOND)
        self.shift: Shift | None = None
        self._open_ledger = ledger or (lambda: self.ledger)
        self._owner: Owner | None = None
        self._agents = 0
        self._files = KnownFiles()
        self._ending: dict[int, Instant] = {}

    def begin(self) -> Shift:
        """An agent starts and owns."""
        self._agents += 1
        files = self._files = KnownFiles()
        state = files.open_directory(str(self.path))
        card = Card(f"agent-{self._agents}", self.processes.this_process(), 0, "0.1", None, "host")
        owner = Owner(files, state, str(self.path), card)
        own = files.open_directory_at(state, OWN)
        owner.announce()
        assert owner.try_acquire()
        files.make_directory(state, "run")
        runner = Runner(
            self.processes,
            AttemptOutputs(state),
            files,
            self.clock,
            files.open_directory_at(state, "run"),
            Surroundings({"PATH": "/bin"}, "/", PosixEnvFiles()),
        )

        def publish(report: Report) -> None:
            write_report(files, own, report)

        readiness = self.readiness = RecordedReadiness(Duration(120 * SECOND))
        routines = Routines(self.file, self.kept, lambda content: judge(read_document(content), "UTC"), self.clock)
        self._owner = owner
        self.runner = runner
        self.requests = Requests(files, state)
        self.shift = Shift(
            World(self.clock, NoWait(), self.processes, readiness),
            Manner(standby=False, in_terminal=False, machine="m", requests_directory=str(self.path)),
            owner,
            runner,
            routines,
            self.requests,
            Reporter(self.tell, LINES, publish, readiness, card.token, "0.1", inherits_environment=False),
            Book(self.tell, LINES),
            Patience(self.clock, readiness),
            Opened(self._open_ledger(), None),
            routines.start,
        )
        return self.shift

    def tell(self, line: str, /, *, warning: bool = False) -> None:
        """What the agent says."""
        self.lines.append(line)
        if warning:
            self.warnings.append(line)

    @property
    def token(self) -> str:
        """The token of the agent that owns."""
        assert self._owner is not None
        return self._owner.token

    def kill(self, *, attempts_too: bool = True) -> None:
        """The agent dies as by SIGKILL: its locks go, nothing is written."""
        assert self._owner is not None
        if attempts_too:
            for attempt in list(self.runner.running().values()):
                if self.processes.lives(attempt.process.pid):
                    self.processes.end(attempt.process.pid, by_signal=9)
            self.processes.reap()
            self._ending.clear()
        self._owner.leave()
        for attempt in list(self.runner.running().values()):
            if attempt.output is not None:
                os.close(attempt.output.descriptor)
        self._files.close_all()
        self.shift = self._owner = None

    def reboot(self) -> None:
        """The agent and its attempts are gone, and the next boot has another id."""
        self.kill()
        self.processes.place = Place(f"{self.processes.place.boot}'", self.processes.place.namespace)

    def save(self, text: str) -> None:
        """A person saves the file, and the agent sees that it changed."""
        self.file.text = text
        self.work(Happened(changed=frozenset({CONFIG})))

    def work(self, happened: Happened | None = None) -> None:
        """One pass."""
        assert self.shift is not None
        self.shift.work(happened or Happened(child=True, changed=frozenset({REQUESTS})))
        self._begin_to_run()

    def live(self, span: int) -> None:
        """Time passes, the agent waits and works as its loop does, and attempts end when their time is up."""
        end = Instant(self.clock.now() + span)
        self.work()
        while (left := end - self.clock.now()) > 0:
            assert self.shift is not None
            wait = min(left, max(self.shift.longest_wait(), SECOND // 1000))
            next_end = min(self._ending.values(), default=None)
            if next_end is not None:
                wait = min(wait, max(0, next_end - self.clock.now()))
            self.clock.pass_time(Duration(wait))
            self._end_attempts()
            self.work()

    def rows(self, routine: str | None = None) -> list[HistoryRow]:
        """The rows of the ledger, oldest first."""
        return self.ledger.history(routine, 1_000_000)[::-1]

    def ends(self, routine: str | None = None) -> list[str]:
        """How slots ended, oldest first: `succeeded`, `missed asleep x5`."""
        return [_in_words(row) for row in self.rows(routine)]

    def _begin_to_run(self) -> None:
        for attempt in self.runner.running().values():
            if attempt.process.pid not in self._ending and self.processes.lives(attempt.process.pid):
                self._ending[attempt.process.pid] = Instant(self.clock.now() + self.run_for)

    def _end_attempts(self) -> None:
        for pid, end in list(self._ending.items()):
            if self.clock.now() >= end:
                del self._ending[pid]
                if self.processes.lives(pid):
                    self.processes.end(pid, exit_code=0)


@contextmanager
def machine(path: Path, text: str) -> Iterator[Machine]:
    """A machine that is put away afterwards."""
    made = Machine(path, text)
    try:
        yield made
    finally:
        if made.shift is not None:
            made.kill()
        made.ledger.close()


def _in_words(row: HistoryRow) -> str:
    words = [row.outcome.value if row.outcome else "open"]
    if row.reason is not None:
        words.append(row.reason.value)
    if row.count > 1:
        words.append(f"x{row.count}")
    if row.trigger.value != "schedule":
        words.append(f"[{row.trigger.value}]")
    return " ".join(words)
