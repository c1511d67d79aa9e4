"""Agents as people run them: child processes with directories of their own, watched through what they show.

A `Place` is a state and a configuration directory. It starts agents and commands there, reads the ledger as
any other reader would, and ends whatever it started: agents by their pid, and attempts that outlived their
agent by the files below the place that they hold open.
"""

import json
import os
import pickle
import re
import select
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Self

from ankita_agent.adapters.sqlite_ledger import open_reader
from ankita_agent.core.instants import SECOND, Duration, Instant
from ankita_agent.core.outcomes import Outcome
from ankita_agent.core.rows import HistoryRow
from ankita_agent.ports.ledger import LedgerReader
from tests.real.waiting import until

ROOT: Final = Path(__file__).parents[2]
COMMAND: Final = (sys.executable, "-m", "ankita_agent")

SEATED: Final = "owner of term"
"""What an agent says when it owns."""

ROWS: Final = """
import pickle, sys
from ankita_agent.adapters.sqlite_ledger import open_reader
reader = open_reader(sys.argv[1])
rows = reader.history(sys.argv[2] or None, 1_000_000)[::-1] if reader else []
sys.stdout.buffer.write(pickle.dumps(rows))
"""
"""Prints the rows of the ledger that is named."""

STARTED: Final = " started, pid "
"""What it says of each run that begins."""

STANDBY: Final = "standby; the owner is"
"""What an agent says when it waits."""


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, as a document."""
        return json.loads(self.out)


class Agent:
    """One agent process. What it says goes to a file, so that it never waits for the test to read."""

    def __init__(self, process: subprocess.Popen[bytes], said: Path) -> None:
        self.process = process
        self._said = said

    @property
    def pid(self) -> int:
        """Its pid."""
        return self.process.pid

    @property
    def said(self) -> str:
        """All that it has said."""
        return self._said.read_text(encoding="utf-8", errors="replace")

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def says(self, text: str, times: int = 1) -> str:
        """Wait until it has said `text` so many times; all that it has said. Fails when it ends before."""

        def found() -> bool:
            ended = not self.alive  # before the look: what it said last counts
            enough = self.said.count(text) >= times
            assert enough or not ended, f"it ended with {self.process.returncode} and said:\n{self.said}"
            return enough

        try:
            until(found, text)
        except AssertionError as error:
            raise AssertionError(f"never said {text!r}, but:\n{self.said}") from error
        return self.said

    def send(self, number: int) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def ended(self) -> int:
        """Wait for its end; its exit status, negative for a signal."""
        until(lambda: not self.alive, f"its end, after it said:\n{self.said}")
        return self.process.returncode

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Signal it and wait for its end; its exit status."""
        self.send(number)
        return self.ended()

    def kill(self) -> None:
        """End it with SIGKILL."""
        self.stop(signal.SIGKILL)


class Place:
    """The directories of one user, and all agents that run over them. Use it in a `with` statement.

    `inside` are words that go before every command, such as those that enter a mount namespace.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = root / "state"
        self.config = root / "config"
        self.file = self.config / "routines.yaml"
        self.config.mkdir()
        self.inside: tuple[str, ...] = ()
        self._agents: list[Agent] = []
        self._commands: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End everything that was started here and everything that it left."""
        for agent in self._agents:
            if agent.alive:
                agent.kill()
        for child in self._commands:
            child.kill()
            child.wait()
        self.end_attempts()

    def write(self, routines: str) -> None:
        """Save the file of routines, in place."""
        self.file.write_text(routines, encoding="utf-8")

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """What agents and commands are started with."""
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT / "agent"),
            "ANKITA_STATE_DIR": str(self.state),
            "ANKITA_CONFIG_DIR": str(self.config),
            **(more or {}),
        }

    def begin(
        self,
        *arguments: str,
        before: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        **popen: Any,
    ) -> Agent:
        """Start `ankita-agent run ARGUMENTS` with the words `before` before it, and wait for nothing."""
        said = self.root / f"said-{len(self._agents)}"
        options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "start_new_session": True} | popen
        with said.open("wb") as talk:
            process = _begin(
                [*self.inside, *before, *COMMAND, "run", *arguments],
                env=self.environment(environment),
                cwd=self.root,
                **({"stdout": talk, "stderr": talk} | options),
            )
        agent = Agent(process, said)
        self._agents.append(agent)
        return agent

    def start(self, *arguments: str, says: str = " in force", **how: Any) -> Agent:
        """Start one and wait until it owns and has its routines."""
        agent = self.begin(*arguments, **how)
        agent.says(says)
        return agent

    def stand_by(self, **how: Any) -> Agent:
        """Start one that waits for ownership, and wait until it does."""
        return self.start("--standby", says=STANDBY, **how)

    def command(self, *arguments: str, before: Sequence[str] = (), given: str = "") -> Done:
        """Run `ankita-agent ARGUMENTS` to its end."""
        done = subprocess.run(
            [*self.inside, *before, *COMMAND, *arguments],
            input=given,
            env=self.environment(),
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def background(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start `ankita-agent ARGUMENTS` beside the test; it ends with the place."""
        with (self.root / f"said-{len(self._commands)}-background").open("wb") as talk:
            child = subprocess.Popen(
                [*COMMAND, *arguments],
                env=self.environment(),
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=talk,
                stderr=talk,
            )
        self._commands.append(child)
        return child

    def status(self) -> dict[str, Any]:
        """The document of `status --json`."""
        document: dict[str, Any] = self.command("status", "--json").json
        return document

    def degraded(self) -> str:
        """All reasons for which the agent is degraded, one a line."""
        return "\n".join(self.status()["degraded"])

    @contextmanager
    def ledger(self) -> Iterator[LedgerReader]:
        """The ledger, to ask it."""
        reader = open_reader(str(self.state / "ledger.db"))
        assert reader is not None, "there is no ledger yet"
        with closing(reader):
            yield reader

    def rows(self, routine: str | None = None) -> list[HistoryRow]:
        """All rows of the ledger, oldest first; none before there is one."""
        if self.inside:
            return self._rows_from_inside(routine)
        reader = open_reader(str(self.state / "ledger.db"))
        if reader is None:
            return []
        with closing(reader):
            return reader.history(routine, 1_000_000)[::-1]

    def until_row(self, routine: str, *outcomes: Outcome | None, count: int = 1) -> list[HistoryRow]:
        """Wait until the routine has so many rows with one of the outcomes (None: still open); those, oldest
        first.
        """

        def found() -> list[HistoryRow]:
            rows = [row for row in self.rows(routine) if row.outcome in outcomes]
            return rows if len(rows) >= count else []

        return until(found, f"{count} rows of {routine} that {' or '.join(map(str, outcomes))}")

    def open_fires(self) -> list[str]:
        """The routines whose fires are open."""
        return [row.routine for row in self.rows() if row.outcome is None]

    def processes(self) -> list[int]:
        """Every process that holds a file below the place open, other than this one."""
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and self._holds(name)]

    def end_attempts(self) -> None:
        """End every process that is left here, and wait until none is."""

        def none_left() -> bool:
            left = self.processes()
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            return not left

        until(none_left, "the end of what the agents started")

    def _rows_from_inside(self, routine: str | None) -> list[HistoryRow]:
        """The rows as a process inside reads them: SQLite looks through the links of /proc into a namespace."""
        command = [*self.inside, sys.executable, "-c", ROWS, str(self.state / "ledger.db"), routine or ""]
        done = subprocess.run(command, env=self.environment(), cwd=self.root, capture_output=True, check=True)
        rows: list[HistoryRow] = pickle.loads(done.stdout)
        return rows

    def _holds(self, pid: str) -> bool:
        if int(pid) == os.getpid():
            return False
        try:
            links = [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")]
        except OSError:  # ended meanwhile, or another user's
            return False
        return any(link.startswith(f"{self.root}/") for link in links)


def _begin(command: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, **how)


def wait_at_most(agent: Agent, seconds: float) -> None:
    """Let an agent live so long, or less when it ends: for tests that hit it at a random moment."""
    descriptor = os.pidfd_open(agent.pid)
    try:
        select.select([descriptor], [], [], seconds)
    finally:
        os.close(descriptor)


def every_second(*names: str, run: str = "true", settings: str = "settle: 1s, stop_drain: 1s", more: str = "") -> str:
    """A file with routines that are due at each second; `more` is YAML for each, on one line."""
    keys = f"schedule: every 1s, run: {json.dumps(run)}" + (f", {more}" if more else "")
    return f"agent: {{{settings}}}\nroutines:\n" + "".join(f"  {name}: {{{keys}}}\n" for name in names)


def noting(path: Path) -> str:
    """A shell command that appends its routine and slot to a file as one write, and does no more."""
    return f'echo "$ANKITA_ROUTINE $ANKITA_SLOT" >> {shlex.quote(str(path))}'


def noted(path: Path) -> list[tuple[str, str]]:
    """What such commands noted: (routine, slot), in their order."""
    if not path.exists():
        return []
    pairs = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    return [(routine, slot) for routine, slot in pairs]


def unaccounted(rows: Sequence[HistoryRow], period: Duration = SECOND) -> list[str]:
    """What is wrong with the account of one routine that is due each period: gaps, doubles, miscounts.

    Every slot from the first row to the last must be in exactly one of them; manual runs are left out.
    """
    slots = sorted((row for row in rows if row.request is None), key=lambda row: row.slot)
    miscounted = [row for row in slots if (row.until - row.slot) // period + 1 != row.count]
    torn = [pair for pair in pairwise(slots) if pair[1].slot != pair[0].until + period]
    return [f"{_words(row)} counts {row.count}" for row in miscounted] + [
        f"{_words(following)} comes after {_words(row)}" for row, following in torn
    ]


def _words(row: HistoryRow) -> str:
    return f"{row.routine} {_seconds(row.slot)}-{_seconds(row.until)} {row.outcome} {row.reason or ''}"


def _seconds(instant: Instant) -> float:
    return instant / SECOND


def lines_of(said: str, pattern: str) -> list[str]:
    """The lines in which the pattern is found."""
    return [line for line in said.splitlines() if re.search(pattern, line)]
