"""The agent: wait for ownership, then one wait and one pass, again and again, until asked to stop.

Signals: SIGTERM is a wish of the machine to stop, SIGINT and the hang-up of a terminal are a person's; a
hang-up without a terminal reloads; SIGTSTP is refused, since a stopped owner holds every routine up. SIGINT after
another wish, or together with SIGTERM in either order, is the second wish: what runs is stopped at once.
"""

import signal
import threading
from collections.abc import Callable

from ankita_agent.app.book import Book
from ankita_agent.app.claim import Role
from ankita_agent.app.owner import Owner
from ankita_agent.app.patience import Patience, patient_ledger
from ankita_agent.app.reporter import Reporter
from ankita_agent.app.requests import Requests
from ankita_agent.app.routines import Routines
from ankita_agent.app.runner import Runner, StopReason
from ankita_agent.app.seat import Opened
from ankita_agent.app.shift import LONGEST_WAIT, Shift
from ankita_agent.app.world import Manner, World
from ankita_agent.core.errors import AnkitaError, Fenced, LedgerDamaged, SomeoneElseOwns
from ankita_agent.core.instants import MINUTE, SECOND, Duration, Monotonic
from ankita_agent.ports.wakeups import Happened

TRIES = 10
"""Tries to own, a tenth of a second apart: a cleaner of temporary files may hold the lock for a moment."""


class Agent:
    """One agent process from start to exit status. `run` is called once.

    `open_ledger` opens the ledger that is there, or, when told that it is damaged, sets it aside and begins another.
    """

    def __init__(
        self,
        world: World,
        manner: Manner,
        owner: Owner,
        runner: Runner,
        routines: Routines,
        requests: Requests,
        reporter: Reporter,
        patience: Patience,
        open_ledger: Callable[[bool], Opened],
    ) -> None:
        self._world = world
        self._manner = manner
        self._owner = owner
        self._runner = runner
        self._routines = routines
        self._requests = requests
        self._reporter = reporter
        self._patience = patience
        patience.stamp = owner.stamp
        self._open_ledger = open_ledger
        self._tell = reporter.tell
        self._book = Book(reporter.tell, reporter.lines)
        self._shift: Shift | None = None
        self._begun_anew_at: Monotonic | None = None

    def run(self) -> int:
        """Own, serve, drain; the exit status. Raises AnkitaError where the agent cannot begin."""
        try:
            self._owner.announce()
            if not self._wait_to_own():
                return 0
            try:
                self._drain(*self._serve(self._begin()))
            except Fenced as fault:
                return self._give_way(fault)
            except (AnkitaError, OSError):
                self._end_runs()
                raise
            return 0
        finally:
            self._owner.leave()
            if self._shift is not None:
                self._shift.close()

    def _wait_to_own(self) -> bool:
        """Take the locks, now or (as a standby) when they are free; False when asked to stop before."""
        for left in reversed(range(TRIES)):
            if self._owner.try_acquire():
                return True
            if self._manner.standby:
                return self._stand_by()
            if left and self._wishes(self._world.wakeups.wait(Duration(SECOND // 10)), None):
                return False
        raise self._refusal()

    def _stand_by(self) -> bool:
        claim = self._owner.claim()
        status = "standby; the owner is " + (self._reporter.lines.owner(claim) if claim else "not known yet")
        self._tell(status)
        poke = self._world.wakeups.poke()
        over = threading.Event()
        faults: list[BaseException] = []

        def wait_in_the_kernel() -> None:
            try:
                self._owner.wait()
            except BaseException as fault:  # noqa: BLE001 - raised again where somebody hears of it
                faults.append(fault)
            over.set()
            poke()

        threading.Thread(target=wait_in_the_kernel, name="standby", daemon=True).start()
        self._world.readiness.ready(status)
        while not over.is_set():
            self._patience.progress(Role.STANDBY, busy=False)
            if self._wishes(self._world.wakeups.wait(self._longest_wait()), None):
                self._tell("the standby ends")
                return False
        for fault in faults:
            raise fault
        return True

    def _longest_wait(self) -> Duration:
        watchdog = self._world.readiness.watchdog
        return LONGEST_WAIT if watchdog is None else Duration(min(LONGEST_WAIT, watchdog // 4))

    def _refusal(self) -> SomeoneElseOwns:
        claim = self._owner.claim()
        who = f"the owner is {self._reporter.lines.owner(claim)}" if claim else "its owner has not said yet who it is"
        return SomeoneElseOwns(
            "another agent owns this state directory",
            fact=who,
            now="nothing was started here; the routines go on there",
            do="look: ankita-agent status    or wait for it: ankita-agent run --standby",
        )

    def _begin(self) -> Shift:
        try:
            return self._take_up(damaged=False)
        except LedgerDamaged as fault:
            return self._begin_anew(fault)

    def _begin_anew(self, fault: LedgerDamaged) -> Shift:
        """Whatever call met the damage: to open it again need not find it again. Raises it when it was just done."""
        awake = self._world.clock.awake()
        if self._begun_anew_at is not None and awake - self._begun_anew_at < MINUTE:
            raise self._damaged_again(fault)
        self._begun_anew_at = awake
        self._tell(f"{fault.what}: {fault.fact}", warning=True)
        if self._shift is not None:
            self._shift.close()
        self._book.forget()
        try:
            return self._take_up(damaged=True)
        except LedgerDamaged as again:
            raise self._damaged_again(again) from fault

    def _damaged_again(self, fault: LedgerDamaged) -> LedgerDamaged:
        return LedgerDamaged(
            fault.what,
            fact=f"{fault.fact}; and it was new, for one before it was set aside within the last minute",
            now="both are kept, and nothing fires until an agent begins another",
            do="look at the disk (dmesg, journalctl -k) and at what else writes there; then: ankita-agent run",
        )

    def _take_up(self, *, damaged: bool) -> Shift:
        with self._patience.waiting():
            opened = self._open_ledger(damaged)
        opened = Opened(patient_ledger(opened.ledger, self._patience.waiting), opened.set_aside)
        if opened.set_aside:
            self._tell(f"the ledger was damaged and is kept as {opened.set_aside}; a new one was begun", warning=True)
        try:
            self._shift = Shift(
                self._world,
                self._manner,
                self._owner,
                self._runner,
                self._routines,
                self._requests,
                self._reporter,
                self._book,
                self._patience,
                opened,
                self._routines.reload,  # the first time, that is its start
            )
        except BaseException:
            opened.ledger.close()
            raise
        return self._shift

    def _serve(self, shift: Shift) -> tuple[StopReason, bool]:
        """Pass after pass, until somebody wishes us to stop: the wish, and whether it is to be at once."""
        happened = Happened(child=True)
        while True:
            try:
                shift.work(happened)
            except LedgerDamaged as fault:
                self._owner.check()  # where the whole directory went, it is not the ledger that is damaged
                shift = self._begin_anew(fault)
            happened = self._world.wakeups.wait(shift.longest_wait())
            wishes = self._wishes(happened, shift)
            if wishes:
                return wishes[0], {signal.SIGTERM, signal.SIGINT} <= set(happened.signals)

    def _wishes(self, happened: Happened, shift: Shift | None) -> list[StopReason]:
        """The wishes to stop among the signals; the other signals are seen to."""
        reasons = []
        for number in happened.signals:
            if number == signal.SIGINT or (number == signal.SIGHUP and self._manner.in_terminal):
                reasons.append(StopReason.PERSON)
            elif number == signal.SIGTERM:
                reasons.append(StopReason.SHUTDOWN)
            elif number == signal.SIGHUP and shift is not None:
                shift.reload_soon()
            elif number == signal.SIGTSTP:
                self._tell(
                    "Ctrl-Z is refused: a stopped agent would hold every routine up; Ctrl-C ends it "
                    "(if the shell says Stopped: fg)"
                )
        return reasons

    def _drain(self, wish: StopReason, at_once: bool) -> None:
        """Give up ownership at once, then see the running attempts to their end, or stop them."""
        assert self._shift is not None
        shift = self._shift
        self._world.readiness.stopping("stopping")
        shift.hand_back()
        running = sorted(self._runner.running())
        if running:
            more = "; Ctrl-C again stops them" if wish is StopReason.PERSON and not at_once else ""
            doing = "stopping" if at_once else "waiting for"
            self._tell(f"handed back: nothing more starts here; {doing} {', '.join(running)}{more}")
        if at_once:
            self._runner.stop_all(StopReason.PERSON)
        self._see_to_the_end(shift, shift.stop_drain if wish is StopReason.SHUTDOWN else None)
        self._tell("ended")

    def _see_to_the_end(self, shift: Shift, patience: Duration | None) -> None:
        """Wait for the running attempts; after `patience` (awake time; None: without end) stop them."""
        clock = self._world.clock
        give_up = None if patience is None else Monotonic(clock.awake() + patience)
        while self._runner.running():
            awake = clock.awake()
            if give_up is not None and awake >= give_up:
                self._runner.stop_all(StopReason.SHUTDOWN)
                give_up = None
            deadlines = [when - awake for when in (give_up, self._runner.deadline()) if when is not None]
            happened = self._world.wakeups.wait(Duration(max(0, min([self._longest_wait(), *deadlines]))))
            wishes = self._wishes(happened, None)
            if signal.SIGINT in happened.signals:  # not a hang-up: kernel and shell both send one when a window closes
                self._runner.stop_all(StopReason.PERSON)
            elif StopReason.SHUTDOWN in wishes and give_up is None:
                give_up = Monotonic(clock.awake() + shift.stop_drain)
            shift.collect()
            shift.write()
            shift.show_progress()
        shift.write()

    def _give_way(self, fault: Fenced) -> int:
        """Ownership went: stop what runs, say why, and ask to be brought back."""
        self._tell(str(fault), warning=True)
        self._owner.release()
        self._runner.stop_all(StopReason.FENCE)
        if self._shift is not None:
            self._see_to_the_end(self._shift, None)
        return fault.exit_code

    def _end_runs(self) -> None:
        """Stop what runs when no ledger can be had any more: nothing goes on that nobody watches."""
        if self._runner.running():
            self._world.readiness.stopping("stopping what runs, for the agent cannot go on")
        self._runner.stop_all(StopReason.SHUTDOWN)
        while self._runner.running():
            deadline = self._runner.deadline()
            assert deadline is not None
            self._world.wakeups.wait(Duration(max(0, deadline - self._world.clock.awake())))
            self._runner.collect()
