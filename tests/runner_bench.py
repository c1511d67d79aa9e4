"""A bench for runners: one on a fake machine with a fake clock, over real locks, files and outputs."""

from pathlib import Path
from signal import SIGTERM
from typing import Any

from ankita_agent.adapters.attempt_outputs import AttemptOutputs
from ankita_agent.adapters.posix_env_files import PosixEnvFiles
from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.app.attempt import Surroundings
from ankita_agent.app.runner import Order, Runner
from ankita_agent.core.instants import Duration, Instant
from ankita_agent.core.outcomes import Outcome, Reason, Trigger
from ankita_agent.core.routine import Routine
from ankita_agent.core.rows import End, OpenFire, ProcessId, Start
from ankita_agent.core.schedule import parse_schedule
from ankita_agent.testing.clocks import FakeClock
from ankita_agent.testing.processes import FakeProcesses, Program

DEAF = Program(ignores=frozenset({SIGTERM}))
UNKILLABLE = Program(unkillable=True)


def routine(name: str = "backup", **fields: Any) -> Routine:
    """A routine whose program bears its name."""
    given = {"schedule": parse_schedule("daily 08:00"), "timezone": "UTC", "run": (name,)}
    return Routine(name=name, **{**given, **fields})


class Bench:
    """A runner on a machine of its own: fake processes and clock, real locks and files."""

    def __init__(self, state: Path) -> None:
        (state / "run").mkdir()
        self.state = state
        self.machine = FakeProcesses()
        self.clock = FakeClock()
        self.files = PosixFiles()
        self.runs = self.files.open_directory(str(state / "run"))
        self.runner = self.another_runner()
        self.fires = 0

    def another_runner(self) -> Runner:
        return Runner(
            self.machine,
            AttemptOutputs(self.files.open_directory(str(self.state))),
            self.files,
            self.clock,
            self.files.open_directory_at(self.files.open_directory(str(self.state)), "run"),
            Surroundings({"PATH": "/bin"}, "/home/ann", PosixEnvFiles()),
        )

    def order(self, of: Routine) -> Order:
        self.fires += 1
        return Order(of, self.fires, self.clock.now(), Trigger.SCHEDULE, 1, 1, None, 0)

    def launch(self, of: Routine) -> Start | End:
        reservation = self.runner.reserve(of.name)
        assert reservation is not None
        (come,) = self.runner.launch([(self.order(of), reservation)])
        return come

    def start(self, of: Routine | None = None) -> ProcessId:
        started = self.launch(of or routine())
        assert isinstance(started, Start)
        return started.process

    def end(self) -> End:
        (end,) = self.runner.collect()
        return end

    def later(self, span: int) -> list[End]:
        self.clock.pass_time(Duration(span))
        return self.runner.collect()

    def locked(self, name: str = "backup") -> bool:
        other = self.another_runner().reserve(name)
        if other is None:
            return True
        self.files.close(other.descriptor)
        return False


def told(end: End) -> tuple[Outcome, Reason | None]:
    return end.outcome, end.reason


def opened(bench: Bench, process: ProcessId, *, started: int = 0) -> OpenFire:
    at = Instant(bench.clock.now() - started)
    return OpenFire(9, "backup", at, Trigger.SCHEDULE, 1, "token", at, at, process, 1, None)
