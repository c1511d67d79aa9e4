"""One attempt: the order it comes from, what it is given, and what is known of it while it runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ankita_agent.core.environment import FireFacts, attempt_environment, parse_env_file
from ankita_agent.core.instants import MILLISECOND, SECOND, Duration, Instant, Monotonic
from ankita_agent.core.outcomes import Trigger
from ankita_agent.core.routine import Routine, expand_home
from ankita_agent.core.rows import ProcessId
from ankita_agent.core.supervise import Phase, StopReason
from ankita_agent.ports.env_files import EnvFiles
from ankita_agent.ports.files import Descriptor
from ankita_agent.ports.outputs import Output
from ankita_agent.ports.processes import Ended, Launch, LaunchFailed

SOONEST_LOOK: Final = Duration(50 * MILLISECOND)
LATEST_LOOK: Final = SECOND
"""How often an attempt is looked at: often while its output grows fast, seldom while it is quiet."""

FAST_GROWTH: Final = 1024 * 1024
"""Bytes between two looks from which an output grows fast."""


@dataclass(frozen=True, slots=True)
class Order:
    """A fire that was claimed, to be started. `missed` counts the slots before it that did not run."""

    routine: Routine
    fire: int
    slot: Instant
    trigger: Trigger
    attempt: int
    term: int
    last_success: Instant | None
    missed: int


@dataclass(frozen=True, slots=True)
class Reservation:
    """The lock of a routine, held: nobody else can start it, whichever agent they belong to."""

    routine: str
    descriptor: Descriptor


@dataclass(frozen=True, slots=True)
class Launched:
    """An attempt with a process that is not identified yet."""

    order: Order
    reservation: Reservation
    output: Output
    pid: int
    at: Instant
    awake: Monotonic


@dataclass(slots=True)
class RunningAttempt:
    """One attempt, from its start until nothing is left of it. Read it; only the runner changes it.

    `phase` tells whether its fire is still open (`phase.leader_lives`); `stuck` that SIGKILL did not end it;
    `adopted` that an agent which is dead now started it; `taker` is then the pid of who took the routine's lock
    that it inherited, None when it does not hold it.
    """

    routine: str
    fire: int
    process: ProcessId
    started_at: Instant
    attempt: int
    log: str | None
    adopted: bool
    leave_running: bool
    kill_after: Duration
    success_exit_status: tuple[int, ...]
    quiet_output: str | None
    keep_logs: int
    output: Output | None
    reservation: Reservation | None
    deadline: Monotonic | None  # of the phase: the timeout, then the stop steps
    next_look: Monotonic
    pace: Duration = SOONEST_LOOK
    written: int = 0
    phase: Phase = Phase.RUNNING
    stop_reason: StopReason | None = None
    stuck: bool = False
    ended: Ended | None = None
    taker: int | None = None

    def looked_at(self, now: Monotonic, written: int) -> None:
        """Note how much output there is, and how soon to look again."""
        fast = written - self.written > FAST_GROWTH
        self.written = written
        self.pace = SOONEST_LOOK if fast else Duration(min(self.pace * 2, LATEST_LOOK))
        self.next_look = Monotonic(now + self.pace)


def begun(launched: Launched, process: ProcessId) -> RunningAttempt:
    """An attempt of ours that has just been launched, as it is watched from now on."""
    order, routine = launched.order, launched.order.routine
    return RunningAttempt(
        routine=routine.name,
        fire=order.fire,
        process=process,
        started_at=launched.at,
        attempt=order.attempt,
        log=launched.output.log,
        adopted=False,
        leave_running=routine.leave_running,
        kill_after=routine.kill_after,
        success_exit_status=routine.success_exit_status,
        quiet_output=routine.quiet_output,
        keep_logs=routine.keep_logs,
        output=launched.output,
        reservation=launched.reservation,
        deadline=None if routine.timeout is None else Monotonic(launched.awake + routine.timeout),
        next_look=Monotonic(launched.awake + SOONEST_LOOK),
    )


class Surroundings:
    """What attempts are given, the same for all: base environment, home directory, their env files."""

    def __init__(self, base: Mapping[str, str], home: str, env_files: EnvFiles) -> None:
        self._base = dict(base)
        self._home = home
        self._env_files = env_files

    def launch_of(self, order: Order, output: Output, reservation: Reservation) -> Launch:
        """The process to start for an order. Raises LaunchFailed when its env file cannot be used."""
        routine = order.routine
        facts = FireFacts(
            routine=routine.name,
            fire=order.fire,
            slot=order.slot,
            trigger=order.trigger,
            attempt=order.attempt,
            term=order.term,
            last_success=order.last_success,
            missed=order.missed,
        )
        return Launch(
            argv=routine.run,
            environment=attempt_environment(self._base, routine.env, self._env_file(routine), facts),
            directory=expand_home(routine.cwd, self._home),
            output=output.descriptor,
            keep=(reservation.descriptor,),
        )

    def _env_file(self, routine: Routine) -> list[tuple[str, str]]:
        if routine.env_file is None:
            return []
        path = expand_home(routine.env_file, self._home)
        try:
            return parse_env_file(self._env_files.read(path))
        except OSError as error:
            raise LaunchFailed(f"cannot read env_file {path!r}: {error.strerror or error}") from None
        except ValueError as error:
            raise LaunchFailed(f"cannot use env_file {path!r}: {error}") from None
