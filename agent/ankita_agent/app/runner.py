"""Attempts: start them, watch them, stop them, and say how their fires ended.

What to do at each moment of an attempt's life is the table in core/supervise.py; here its events are gathered
and its effects done. A fire's end is returned as soon as the leader has ended, so that its row is closed and
its outcome final; the attempt itself is over, and its routine free to start again, only when nothing that it
left runs any more. Until then it is among `running()`.

Nothing here waits: `collect` looks, acts and returns, and `deadline` says when it must be called again.
tests/unit/test_runner.py holds it on fakes, tests/real/test_attempts.py on real processes.
"""

import signal
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, assert_never

from ankita_agent.app.attempt import (
    SOONEST_LOOK,
    Launched,
    Order,
    Reservation,
    RunningAttempt,
    Surroundings,
    begun,
)
from ankita_agent.core.errors import CannotWriteState
from ankita_agent.core.instants import SECOND, Duration, Monotonic
from ankita_agent.core.outcomes import Outcome, Reason
from ankita_agent.core.routine import Routine
from ankita_agent.core.rows import End, OpenFire, Start
from ankita_agent.core.supervise import Effect, Event, Phase, StopReason, advance, judge_end, outcome_of_stop
from ankita_agent.ports.clock import Clock
from ankita_agent.ports.files import Descriptor, Files
from ankita_agent.ports.outputs import Output, Outputs
from ankita_agent.ports.processes import Holder, LaunchFailed, Observed, Processes

__all__ = ["Order", "Reservation", "Runner", "RunningAttempt", "StopReason", "Surroundings"]

LOWEST_LOCK: Final = 210
"""Lowest descriptor of a lock: above what scripts use (3 to 9, 200), below the limit of macOS (256)."""

KILL_AGAIN: Final = Duration(5 * SECOND)
"""How long after a SIGKILL a process that is still there is reported, and killed again."""

ADOPTED_KILL_AFTER: Final = Duration(10 * SECOND)
"""`kill_after` of an attempt whose routine's word for it died with its agent."""

DESCRIPTORS_OF_THE_AGENT: Final = 32
"""Open files that the agent itself may need, starting an attempt included; each attempt keeps two more, for good
measure counted as three.
"""


class Runner:
    """The attempts of one agent, and those it adopted."""

    def __init__(
        self,
        processes: Processes,
        outputs: Outputs,
        files: Files,
        clock: Clock,
        run_directory: Descriptor,
        surroundings: Surroundings,
    ) -> None:
        self._processes = processes
        self._outputs = outputs
        self._files = files
        self._clock = clock
        self._run_directory = run_directory
        self._surroundings = surroundings
        self._attempts: dict[int, RunningAttempt] = {}
        self._running: dict[str, RunningAttempt] = {}
        self._ends: list[End] = []
        self._reserved = 0

    # -- starting

    def reserve(self, routine: str) -> Reservation | None:
        """Take the routine's lock; None while an earlier run of it, of any agent, or a straggler holds it.

        The file is made when it is not there, and never removed. Raises CannotWriteState, with nothing held, when it
        cannot be opened or when so many attempts run that one more could not be started for want of descriptors.
        """
        if routine in self._running:
            return None
        self._have_room(routine)
        try:
            descriptor = self._files.open_file(self._run_directory, f"{routine}.lock")
            if not self._files.try_lock(descriptor):
                self._files.close(descriptor)
                return None
            self._reserved += 1
            return Reservation(routine, self._files.raised(descriptor, LOWEST_LOCK))
        except OSError as error:
            raise CannotWriteState(
                f"cannot open the lock of routine {routine!r}",
                fact=error.strerror or str(error),
                now="it was not started, and no other routine was disturbed",
                do="look at the run directory of the state directory, and at the limits: ulimit -n",
            ) from None

    def release(self, reservation: Reservation) -> None:
        """Give back a reservation that no launch used."""
        self._reserved -= 1
        self._files.close(reservation.descriptor)

    def holders(self, routine: str) -> list[Holder]:
        """The processes that keep the routine's lock held, for people: they inherited it from an agent.

        Looks at every process; ask only when `reserve` has said None and nothing of the routine is in `running()`.
        Empty does not mean that it is free: processes of other users and of other PID namespaces are not seen.
        """
        try:
            lock = self._files.open_file(self._run_directory, f"{routine}.lock")
        except OSError:
            return []
        try:
            return self._processes.holders(lock)
        finally:
            self._files.close(lock)

    def launch(self, orders: Iterable[tuple[Order, Reservation]]) -> list[Start | End]:
        """Start the attempts of claimed fires; for each its start, or `failed(spawn)` when no process came to be.

        Uses up the reservations either way. An attempt inherits its lock, so it outlives this agent. What can wait
        until all have started waits.
        """
        launched = [self._launch(order, reservation) for order, reservation in orders]
        return [each if isinstance(each, End) else self._watch(each) for each in launched]

    def _launch(self, order: Order, reservation: Reservation) -> Launched | End:
        try:
            output = self._open_output(order)
            try:
                pid = self._processes.start(self._surroundings.launch_of(order, output, reservation))
            except LaunchFailed:
                self._outputs.discard(output)
                raise
        except LaunchFailed as failure:
            self.release(reservation)
            now = self._clock.now()
            return End(order.fire, Outcome.FAILED, Reason.SPAWN, now, detail=str(failure))
        return Launched(order, reservation, output, pid, self._clock.now(), self._clock.awake())

    def _watch(self, launched: Launched) -> Start:
        attempt = begun(launched, self._processes.identify(launched.pid))
        self._add(attempt)
        return Start(attempt.fire, attempt.process, attempt.started_at, attempt.attempt, launched.output.log)

    def adopt(self, fire: OpenFire, routine: Routine | None) -> None:
        """Look after a living attempt that a dead agent started, until it ends; its status cannot be known.

        Its timeout goes on from what is known: the time since its start, less all that the machine ever
        slept, so it is never stopped too early. What it leaves is stopped where the lock of its routine, which it
        inherited, proves whose it is; nothing is stopped for a routine that is no more (None). Adopting it twice
        changes nothing.
        """
        assert fire.process is not None
        if fire.fire in self._attempts:
            return
        awake = self._clock.awake()
        started_at = self._clock.now() if fire.started_at is None else fire.started_at
        slept = self._clock.since_boot() - awake
        spent = max(0, self._clock.now() - started_at - slept)
        timeout = None if routine is None else routine.timeout
        takers = (each.taker for each in self.holders(fire.routine) if each.process == fire.process)
        attempt = RunningAttempt(
            routine=fire.routine,
            fire=fire.fire,
            process=fire.process,
            started_at=started_at,
            attempt=fire.attempt,
            log=fire.log,
            adopted=True,
            leave_running=routine is None or routine.leave_running,
            kill_after=ADOPTED_KILL_AFTER,
            success_exit_status=(),
            quiet_output=None,
            keep_logs=0,
            output=self._reopened(fire.log),
            reservation=None,
            deadline=None if timeout is None else Monotonic(awake + max(0, timeout - spent)),
            next_look=Monotonic(awake + SOONEST_LOOK),
            taker=next(takers, None),
        )
        self._add(attempt)

    # -- watching

    def collect(self) -> list[End]:
        """Reap, take the stop steps whose time has come, cut outputs; returns the fires that are over.

        Each is returned once. Call it when a child has ended and when `deadline` has come. Never waits.
        """
        self._notice_ends()
        self._notice_empty_families()
        now = self._clock.awake()
        for attempt in list(self._attempts.values()):
            if attempt.deadline is not None and now >= attempt.deadline:
                self._happen(attempt, Event.TIME_UP, StopReason.TIMEOUT)
            if now >= attempt.next_look and attempt.phase is not Phase.OVER:
                self._look(attempt, now)
        ends, self._ends = self._ends, []
        return ends

    def deadline(self) -> Monotonic | None:
        """When `collect` must be called again even if no child ends; None without attempts."""
        if self._ends:
            return self._clock.awake()
        moments = [attempt.next_look for attempt in self._attempts.values()]
        moments += [attempt.deadline for attempt in self._attempts.values() if attempt.deadline is not None]
        return min(moments, default=None)

    def running(self) -> Mapping[str, RunningAttempt]:
        """The attempts that are not over, by routine. A view: it changes as they do."""
        return MappingProxyType(self._running)

    def stuck(self) -> list[RunningAttempt]:
        """Those that SIGKILL did not end. They keep their routine from starting, and nothing else."""
        return [attempt for attempt in self._attempts.values() if attempt.stuck]

    # -- stopping

    def stop(self, routine: str, reason: StopReason) -> bool:
        """Begin the stop sequence of a routine's attempt; False when none of it is running.

        An attempt whose leader has ended by now keeps its own outcome.
        """
        self._notice_ends()
        found = [attempt for attempt in self._attempts.values() if attempt.routine == routine]
        for attempt in found:
            self._happen(attempt, Event.STOP_ASKED, reason)
        return bool(found)

    def stop_all(self, reason: StopReason) -> None:
        """Begin the stop sequence of every attempt."""
        self._notice_ends()
        for attempt in list(self._attempts.values()):
            self._happen(attempt, Event.STOP_ASKED, reason)

    # -- inside

    def _have_room(self, routine: str) -> None:
        """Raises CannotWriteState when this process cannot have the descriptors of one more attempt."""
        attempts = 1 + max(self._reserved, len(self._attempts))
        if not self._processes.allow_descriptors(DESCRIPTORS_OF_THE_AGENT + 3 * attempts):
            raise CannotWriteState(
                f"no room to start routine {routine!r}",
                fact=f"{attempts - 1} run already, and the limit on open files allows no more",
                now="it waits until one of them has ended",
                do="raise the hard limit (ulimit -Hn; LimitNOFILE= of the unit), or lower agent.concurrency",
            )

    def _kept_by(self, attempt: RunningAttempt) -> list[Holder]:
        """What an adopted attempt is or left, and keeps its routine from starting: those with the lock it inherited.

        Who took the lock tells it from a lock that another agent has taken since.
        """
        if attempt.leave_running or attempt.taker is None:
            return []
        return [holder for holder in self.holders(attempt.routine) if holder.taker == attempt.taker]

    def _open_output(self, order: Order) -> Output:
        try:
            return self._outputs.open(order.routine.name, order.slot, order.fire)
        except OSError as error:
            raise LaunchFailed(f"cannot open a file for its output: {error.strerror or error}") from None

    def _reopened(self, log: str | None) -> Output | None:
        if log is None:
            return None
        try:
            return self._outputs.reopen(log)
        except OSError:  # gone; the attempt lives on without anybody to cut its output
            return None

    def _add(self, attempt: RunningAttempt) -> None:
        self._attempts[attempt.fire] = attempt
        self._running[attempt.routine] = attempt

    def _notice_ends(self) -> None:
        """See which leaders have ended; comes before any stop, so that their ends stay their own."""
        reaped = {ended.pid: ended for ended in self._processes.reap()}
        living = [attempt for attempt in self._attempts.values() if attempt.phase.leader_lives]
        ended = [attempt for attempt in living if not attempt.adopted and attempt.process.pid in reaped]
        families = self._processes.families([each.process for each in ended if not each.leave_running])
        for attempt in ended:
            attempt.ended = reaped[attempt.process.pid]
            left = families.get(attempt.process)
            self._happen(attempt, Event.ENDED_LEAVING if left else Event.ENDED_ALONE)
        for attempt in living:
            if attempt.adopted and self._processes.observe(attempt.process) is Observed.GONE:
                self._happen(attempt, Event.ENDED_LEAVING if self._kept_by(attempt) else Event.ENDED_ALONE)

    def _notice_empty_families(self) -> None:
        clearing = [each for each in self._attempts.values() if not each.phase.leader_lives]
        families = self._processes.families([attempt.process for attempt in clearing])
        for attempt in clearing:
            if not (self._kept_by(attempt) if attempt.adopted else families[attempt.process]):
                self._happen(attempt, Event.FAMILY_GONE)

    def _look(self, attempt: RunningAttempt, now: Monotonic) -> None:
        written = attempt.written
        if attempt.output is not None:
            try:
                written = self._outputs.trim(attempt.output)
            except OSError:  # the disk is in trouble; the next look tries again
                pass
        attempt.looked_at(now, written)

    def _happen(self, attempt: RunningAttempt, event: Event, reason: StopReason | None = None) -> None:
        attempt.phase, effects = advance(attempt.phase, event)
        for effect in effects:
            match effect:
                case Effect.NOTE_REASON:
                    attempt.stop_reason = reason
                case Effect.END:
                    self._ends.append(self._end_of(attempt))
                case Effect.TERMINATE:
                    self._signal(attempt, signal.SIGTERM)
                    self._signal(attempt, signal.SIGCONT)  # SIGTERM waits for a stopped process to go on
                    attempt.deadline = Monotonic(self._clock.awake() + attempt.kill_after)
                case Effect.KILL:
                    self._signal(attempt, signal.SIGKILL)
                    attempt.deadline = Monotonic(self._clock.awake() + KILL_AGAIN)
                case Effect.STUCK:
                    attempt.stuck = True
                case Effect.LET_GO:
                    self._let_go(attempt)
                case _:
                    assert_never(effect)

    def _signal(self, attempt: RunningAttempt, number: int) -> None:
        if attempt.adopted:
            group = attempt.process.pid if self._processes.signal_recorded(attempt.process, number) else None
            for holder in self._kept_by(attempt):
                if holder.group != group:
                    self._processes.signal_one(holder.process, number)
        elif attempt.leave_running:
            self._processes.signal_group(attempt.process, number)
        else:
            self._processes.signal_family(attempt.process, number)

    def _end_of(self, attempt: RunningAttempt) -> End:
        now = self._clock.now()
        if attempt.ended is None:  # adopted: somebody else reaped it
            stopped = attempt.stop_reason
            outcome, reason = outcome_of_stop(stopped) if stopped else (Outcome.LOST, Reason.STATUS_UNKNOWN)
            return End(attempt.fire, outcome, reason, now)
        status = attempt.ended
        outcome, why = judge_end(attempt.stop_reason, status.exit_code, attempt.success_exit_status)
        quiet = outcome.success and self._was_quiet(attempt)
        return End(attempt.fire, outcome, why, now, status.exit_code, status.signal, quiet)

    def _was_quiet(self, attempt: RunningAttempt) -> bool:
        if attempt.quiet_output is None or attempt.output is None:
            return False
        try:
            return self._outputs.says(attempt.output, attempt.quiet_output)
        except OSError:
            return False

    def _let_go(self, attempt: RunningAttempt) -> None:
        self._processes.forget(attempt.process)
        if attempt.reservation is not None:
            self._reserved -= 1
            if attempt.leave_running:  # what it left inherited the lock, and must not keep the routine from running
                self._files.unlock(attempt.reservation.descriptor)
            self._files.close(attempt.reservation.descriptor)
        if attempt.output is not None:
            self._outputs.finish(attempt.output)
        del self._attempts[attempt.fire]
        del self._running[attempt.routine]
        self._running.update((each.routine, each) for each in self._attempts.values())
        if attempt.adopted:
            return
        try:
            self._outputs.prune(attempt.routine, attempt.keep_logs, {each.fire for each in self._attempts.values()})
        except OSError:  # the next run of the routine tries again
            pass
