"""Starting, stopping and restarting the agent as its user's service.

The problem: a manager says of a stop that it goes on, and not for whom; a person who waits wants to know which runs
they wait for, and one who does not wait must not leave it undone. The rule: the job is handed to the manager at once,
so that it is done whatever becomes of the command; then the runs are named and seen off; then the manager is asked
how it ended. Facts come in as a `View` and a `UnitState`; what is said of them is in `app.service_words`.
`tests/unit/test_service.py` holds it, and `tests/systemd/test_stop.py` with a real manager.

Rejected: sending the second wish through the manager, which signals whatever is the main process by then: after a quick
restart that would be the agent that has just come up. It goes to the process that was asked to stop, or to none.
"""

import signal
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Final, Literal

from ankita_agent.app import service_words as words
from ankita_agent.app.service_words import Answer, View, Words
from ankita_agent.core.errors import ManagerRefused, ManagerSilent, ManagerUnreachable
from ankita_agent.core.instants import MILLISECOND, SECOND, Duration, Monotonic
from ankita_agent.core.service import UNIT, Activity, JobEnd, UnitState, Unreachable
from ankita_agent.core.service_view import FilesSeen, ServiceView
from ankita_agent.ports.clock import Clock
from ankita_agent.ports.processes import Observed, Processes
from ankita_agent.ports.service_manager import ServiceManager

START_AT_MOST: Final = Duration(95 * SECOND)
"""What a start can take: DefaultTimeoutStartSec= of systemd-user.conf(5), and a little."""

STOP_AT_MOST: Final = Duration(105 * SECOND)
"""What a stop can take: TimeoutStopSec=, TimeoutAbortSec=, TimeoutStopSec= again after SIGKILL, and a little."""

_AT_ONCE: Final = Duration(0)
_LOOK_EVERY: Final = Duration(50 * MILLISECOND)
_SHOWS_ITSELF_WITHIN: Final = Duration(2 * SECOND)


def look_at_service(
    manager: ServiceManager, look_at_files: Callable[[UnitState], FilesSeen], lines: str
) -> ServiceView:
    """How the service is, for status; a manager that cannot be asked is part of the answer. `lines` as in the view."""
    try:
        unit = manager.state(UNIT)
        unread = unit.needs_reload or unit.load not in ("loaded", "masked", "not-found")
        return ServiceView(manager.name, unit, files=look_at_files(unit) if unread else FilesSeen(), lines=lines)
    except ManagerUnreachable as fault:
        known = None if fault.reason is Unreachable.NO_SYSTEMD else manager.name
        return ServiceView(known, None, fault.fact or fault.what)
    except (ManagerSilent, ManagerRefused) as fault:
        return ServiceView(manager.name, None, fault.what)


class Service:
    """The service of one user. Used for one command; `tell` takes a line for people about what goes on.

    `view` looks at the agents and runs of the state directory, and at the ends of the runs that it is given; `within`
    is the run that this command is part of, if any; `pause` waits. `refuse` raises WrongUse for a service that is not
    this shell's, and `look_at_files` looks at the unit's files on disk. The public methods raise WrongUse with nothing
    done, ServiceNotUp where the service did not do as asked in time, and what the manager raises; a job that it was
    given goes on then.
    """

    def __init__(
        self,
        manager: ServiceManager,
        processes: Processes,
        clock: Clock,
        view: Callable[[Collection[int]], View],
        pause: Callable[[Duration], None],
        tell: Callable[[str], None],
        lines: Words,
        within: int | None,
        refuse: Callable[[str, UnitState], None],
        look_at_files: Callable[[UnitState], FilesSeen],
    ) -> None:
        self._manager = manager
        self._processes = processes
        self._clock = clock
        self._view = view
        self._pause = pause
        self._tell = tell
        self._lines = lines
        self._within = within
        self._refuse = refuse
        self._look_at_files = look_at_files
        self._asked = self._is_asking = False

    @property
    def asked(self) -> bool:
        """Whether the manager has something to do by this command, which goes on whatever becomes of that.

        A call that was cut short, by Ctrl-C, may have asked or not: then the unit shows it.
        """
        if not self._is_asking:
            return self._asked
        try:
            activity = self._manager.state(UNIT).activity
        except (ManagerUnreachable, ManagerSilent):
            return False
        return activity in (Activity.ACTIVATING, Activity.DEACTIVATING)

    def start(self, patience: Duration) -> Answer:
        """Start it, and wait until it is ready. No harm in one that is up."""
        with self._saying_what_is_so("start"):
            unit = self._manager.state(UNIT)
            self._refuse("start", unit)
            if unit.activity.up:
                return Answer(self._lines.up(unit, self._view(()), already=True))
            unit = self._read_again(unit)
            words.refuse(unit, "start", self._look_at_files)
            if unit.sub == "auto-restart":
                self._tell(words.comes_back(unit))
            elif unit.activity is Activity.DEACTIVATING:
                self._tell("it is still stopping; it starts when that is done")
            with self._asking():
                end = self._manager.start(UNIT, patience)
            return self._up_after(end, patience)

    def stop(self, patience: Duration, *, now: bool) -> Answer:
        """Stop it, and see off what it still runs: its agent stops that after a while, or with `now` at once."""
        with self._saying_what_is_so("stop"):
            unit, before = self._manager.state(UNIT), self._view(())
            self._refuse("stop", unit)
            if unit.activity in (Activity.INACTIVE, Activity.FAILED):
                return words.was_down(unit, before)
            end = self._deadline(patience)
            enclosing = self._hand_over("stop", unit, before, now=now)
            if enclosing:
                return Answer(f"the service stops; {enclosing}")
            self._see_off(unit, before, end)
            return self._down_after(unit, patience, end)

    def restart(self, patience: Duration, *, now: bool) -> Answer:
        """Stop it as `stop` does, and start it again; one that does not run is started."""
        with self._saying_what_is_so("restart"):
            unit, before = self._manager.state(UNIT), self._view(())
            self._refuse("restart", unit)
            unit = self._read_again(unit)
            words.refuse(unit, "restart", self._look_at_files)
            end = self._deadline(patience)
            enclosing = self._hand_over("restart", unit, before, now=now)
            if enclosing:
                return Answer(f"the service restarts; {enclosing}")
            self._see_off(unit, before, end)
            # a start joins the restart that goes on, and ends with it
            return self._up_after(self._manager.start(UNIT, self._left(end)), patience)

    # -- inside

    @contextmanager
    def _saying_what_is_so(self, verb: str) -> Iterator[None]:
        """A manager that cannot be asked is no reason to know nothing: the agents show themselves."""
        try:
            yield
        except (ManagerUnreachable, ManagerSilent) as fault:
            begun = self._asked or self._is_asking
            done, view = fault.now if begun else "Nothing was done.", self._view(())
            fault.now = f"{done} {self._lines.so_now(view)}"
            if isinstance(fault, ManagerUnreachable):
                fault.do = words.without_manager(verb, fault, view)
            raise

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Around the call that gives the manager its job. It stays as it is where that is cut short."""
        self._is_asking = True
        yield
        self._is_asking, self._asked = False, True

    def _read_again(self, unit: UnitState) -> UnitState:
        """What is started is what the unit's files say by now, and so they are judged."""
        if not unit.needs_reload:
            return unit
        self._manager.reload()
        return self._manager.state(UNIT)

    def _hand_over(self, verb: Literal["stop", "restart"], unit: UnitState, before: View, *, now: bool) -> str:
        """Give the manager the job; why there can be no waiting for it, empty when there can."""
        runs = words.runs_of(unit, before)
        if unit.main_pid is not None and before.card(unit.main_pid) is None:
            self._tell(words.UNSEEN)
        for run in runs:
            self._tell(self._lines.goes_on(run, now=now))
        with self._asking():
            (self._manager.stop if verb == "stop" else self._manager.restart)(UNIT, _AT_ONCE)
        if now and runs:
            self._hurry(unit, before)
        enclosing = words.enclosing(self._within, runs)
        if runs and not now and not enclosing:
            self._tell(words.patience_with(runs, verb))
        return enclosing

    def _hurry(self, unit: UnitState, before: View) -> None:
        """The second wish. After the first: the manager shows that it stops as soon as it has sent SIGTERM."""
        card, end = before.card(unit.main_pid), self._deadline(_SHOWS_ITSELF_WITHIN)
        while self._manager.state(UNIT).activity.up and self._left(end):
            self._pause(_LOOK_EVERY)
        if card is not None and words.runs_of(unit, self._view(())):
            self._processes.signal_one(card.process, signal.SIGINT)

    def _see_off(self, unit: UnitState, before: View, end: Monotonic) -> None:
        """Say how each run ended, until the last one has, its agent is gone, or the time is up."""
        left, card = {run.fire: run for run in words.runs_of(unit, before)}, before.card(unit.main_pid)
        while left and card is not None and self._left(end):
            lives = self._processes.observe(card.process) is not Observed.GONE  # before the look: what it wrote counts
            for row in self._view(left).ended:
                del left[row.fire]
                self._tell(words.ended(row))
            if not lives:
                for run in left.values():
                    self._tell(words.unknown_end(run))
                return
            if left:
                self._pause(_LOOK_EVERY)

    def _up_after(self, end: JobEnd, patience: Duration) -> Answer:
        """What is so after a job to bring it up."""
        unit = self._manager.state(UNIT)
        if not unit.activity.up:
            raise words.not_up(unit, end, patience, self._lines.lines)
        shown = self._deadline(_SHOWS_ITSELF_WITHIN)
        while not (view := self._view(())).settled(unit.main_pid) and self._left(shown):
            self._pause(_LOOK_EVERY)
        return Answer(self._lines.up(unit, view))

    def _down_after(self, before: UnitState, patience: Duration, end: Monotonic) -> Answer:
        """What is so after the runs are seen off; the rest is the manager's."""
        unit = self._manager.state(UNIT)
        if unit.main_pid in (before.main_pid, None):
            self._manager.stop(UNIT, self._left(end))  # joins the stop that goes on
            unit = self._manager.state(UNIT)
        if unit.activity in (Activity.INACTIVE, Activity.FAILED):
            return words.down(unit, self._view(()), self._lines.lines)
        if unit.main_pid not in (before.main_pid, None):
            return words.started_again(unit)
        raise words.not_down(unit, patience)

    def _deadline(self, patience: Duration) -> Monotonic:
        return Monotonic(self._clock.awake() + patience)

    def _left(self, end: Monotonic) -> Duration:
        return Duration(max(0, end - self._clock.awake()))
