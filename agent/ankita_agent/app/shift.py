"""One term of ownership: the passes from the seat to the end of it.

A pass, in order: are we still the owner; which attempts ended; what did the clocks do; did the file of routines
change; what is due; write the ends; show progress. The watchdog is pinged only after a pass that finished in
order, so a loop that hangs is seen, and one that is merely busy is not. A ledger that cannot be written, a full
queue, a process that cannot be killed make the agent *degraded*: it says so, fires nothing that it cannot
record, and goes on when that is mended.
"""

from collections.abc import Callable

from ankita_agent.app.book import Book
from ankita_agent.app.claim import Role
from ankita_agent.app.desk import Desk, Served
from ankita_agent.app.owner import Owner
from ankita_agent.app.patience import Patience
from ankita_agent.app.recovery import OpenFires
from ankita_agent.app.reporter import Reporter
from ankita_agent.app.requests import Requests
from ankita_agent.app.routines import Loaded, Routines
from ankita_agent.app.runner import Runner
from ankita_agent.app.seat import Opened, Seat, begin_term
from ankita_agent.app.timekeeping import Timekeeper
from ankita_agent.app.world import Manner, World
from ankita_agent.core.durations import approximate
from ankita_agent.core.errors import AnkitaError, LedgerDamaged, LedgerUnavailable
from ankita_agent.core.instants import DAY, MILLISECOND, SECOND, Duration, Instant, Monotonic
from ankita_agent.core.routine import NO_ROUTINES
from ankita_agent.ports.wakeups import Happened

LONGEST_WAIT = Duration(30 * SECOND)
"""No wait is longer, so that a clock set by hand is noticed and progress is shown."""

FILE_SETTLE = Duration(150 * MILLISECOND)
"""How long the file of routines must have been left alone before it is read: editors write in steps."""

FILE_SETTLED_BY = Duration(SECOND)
"""A directory in which something changes all the time does not put the reading off for longer."""

POLL = Duration(5 * SECOND)
"""How often what cannot be watched is looked at."""

KEEP_ROWS = Duration(90 * DAY)
"""How long the ledger remembers how slots ended."""

PRUNE_EVERY = Duration(DAY)

CONFIG, REQUESTS = "config", "requests"


class Shift:
    """The owner at work. Made when the locks are held; every method may raise Fenced or LedgerDamaged."""

    def __init__(
        self,
        world: World,
        manner: Manner,
        owner: Owner,
        runner: Runner,
        routines: Routines,
        requests: Requests,
        reporter: Reporter,
        book: Book,
        patience: Patience,
        opened: Opened,
        load: Callable[[], Loaded],
    ) -> None:
        self._world = world
        self._owner = owner
        self._runner = runner
        self._routines = routines
        self._reporter = reporter
        self._tell = reporter.tell
        self._book = book
        self._patience = patience
        self._ledger = opened.ledger
        self._role = Role.OWNER
        self._reload_at: Monotonic | None = None
        self._changed_at: Monotonic | None = None
        self._read_at = world.clock.awake()
        self._look_for_requests = True
        self._failed_at: Instant | None = None
        self._retry_after = Duration(SECOND)
        self._told = ""
        self._directories: tuple[str, ...] = ()
        self._pruned_at: Monotonic | None = None

        process = world.processes.this_process()
        self._timekeeper = Timekeeper(world.clock, NO_ROUTINES.agent.settle)
        term = begin_term(owner, opened, process, self._timekeeper.reading.now)
        self._term = term.number
        self._tell(f"owner of term {term.number}, pid {process.pid}")
        owner.keep_term()
        loaded = self._load(load)
        self._file = loaded.file
        self._timekeeper.settle_time = loaded.file.agent.settle
        self._desk = Desk(
            self._ledger,
            term.number,
            runner,
            requests,
            self._timekeeper,
            process.boot,
            owner.check,
            owner.note_fire,
        )
        self._open_fires = OpenFires(owner.lives, self._open_now, world.processes, runner.adopt, book.adopted)
        self._seat = Seat(
            self._ledger,
            term,
            self._desk,
            self._open_fires,
            self._timekeeper,
            process,
            owner.token,
            manner.machine,
            self._tell,
            reporter.lines,
        )
        self._seat.take_over(loaded.file)
        owner.trust_ledger()
        self._requests, self._requests_directory = requests, manner.requests_directory
        self._watching: dict[str, bool] = {}
        self._watch_requests()
        self._show_routines(loaded)
        world.readiness.ready(self.status())
        self.show_progress()

    def _load(self, load: Callable[[], Loaded]) -> Loaded:
        """The routines. After the claim: reading very many takes a second, for which nobody would own."""
        try:
            return load()
        except AnkitaError:
            self.hand_back()
            self.close()
            raise

    def _open_now(self) -> set[int]:
        return {fire.fire for fire in self._ledger.open_fires()}

    @property
    def stop_drain(self) -> Duration:
        """How long running attempts have to end by themselves when the agent is told to stop."""
        return self._file.agent.stop_drain

    def work(self, happened: Happened) -> None:
        """One pass."""
        self._check_ownership()
        self.collect()
        self._look_at_clocks()
        self._heed(happened)
        self._reload_if_due()
        try:
            self._serve()
            self._prune()
        except LedgerUnavailable as fault:
            self._ledger_failed(fault)
        self._report()
        self.show_progress()

    def reload_soon(self) -> None:
        """Read the file of routines at the next pass."""
        self._reload_at = self._world.clock.awake()

    def longest_wait(self) -> Duration:
        """How long the loop may wait when nothing happens."""
        awake = self._world.clock.awake()
        waits: list[int] = [LONGEST_WAIT]
        held, settling = self._timekeeper.held, self._timekeeper.settling
        if held is not None:
            waits.append(held)
        elif self._failed_at is not None:
            waits.append(self._retry_after)
        else:
            due = self._desk.dues.next_due()
            if due is not None:
                waits.append(due - self._world.clock.now())
            if self._desk.dues.line and settling is not None:
                waits.append(settling)
        deadlines = (self._runner.deadline(), self._reload_at)
        waits += [deadline - awake for deadline in deadlines if deadline is not None]
        if self._open_fires.waiting or not all(self._watching.values()):
            waits.append(POLL)
        watchdog = self._world.readiness.watchdog
        if watchdog is not None:
            waits.append(watchdog // 4)
        return Duration(max(0, min(waits)))

    def status(self) -> str:
        """One line for the manager: what it owns, what runs, what comes next."""
        running = self._runner.running()
        doing = f"running {', '.join(sorted(running))}" if running else "idle"
        following = self._desk.dues.next()
        if following is None:
            return f"owner, term {self._term}; {doing}; nothing is due"
        plan, slot = following
        return f"owner, term {self._term}; {doing}; next {plan.name} at {plan.timetable.local(slot)}"

    def collect(self) -> None:
        """Take note of the attempts that ended."""
        for end in self._runner.collect():
            self._desk.ended(self._book.ended(end), end)

    def write(self) -> None:
        """Record what attempts did; what cannot be recorded now is kept, and said."""
        try:
            self._book.write(self._ledger)
        except (LedgerUnavailable, LedgerDamaged) as fault:
            self._reporter.degrade("ledger", f"ends are not recorded yet: {fault.fact or fault.what}")

    def hand_back(self) -> None:
        """The end of the term in good order: ownership is free from here on."""
        self.write()
        try:
            self._ledger.end_term(self._term, self._world.clock.now())
        except (LedgerUnavailable, LedgerDamaged) as fault:
            self._reporter.degrade("ledger", f"the end of the term is not recorded: {fault.fact or fault.what}")
        self._owner.release()
        self._role = Role.STOPPING
        self.show_progress()

    def close(self) -> None:
        """Let go of the ledger."""
        self._ledger.close()

    def show_progress(self) -> None:
        """A pass finished in order."""
        self._patience.progress(self._role, busy=bool(self._runner.running()), trouble=self._reporter.trouble)

    def _check_ownership(self) -> None:
        try:
            if self._owner.check():
                self._tell("the claim was gone or torn and has been written again")
            self._reporter.mend("claim")
        except OSError as error:
            self._reporter.degrade("claim", f"the claim cannot be checked or written: {error.strerror}")

    def _heed(self, happened: Happened) -> None:
        if CONFIG in happened.changed:
            awake = self._timekeeper.reading.awake
            self._changed_at = awake if self._changed_at is None else self._changed_at
            self._reload_at = Monotonic(min(awake + FILE_SETTLE, self._changed_at + FILE_SETTLED_BY))
        elif self._reload_at is None and self._must_look_at_file():
            self._reload_at = self._timekeeper.reading.awake
        if REQUESTS in happened.changed or not self._watching[REQUESTS]:
            self._look_for_requests = True
            self._watch_requests()  # the directory may be another by now

    def _watch_requests(self) -> None:
        try:
            self._requests.reopen()
        except OSError:  # a full or broken disk; the poll tries again
            self._watching[REQUESTS] = False
            return
        self._watching[REQUESTS] = self._world.wakeups.watch(REQUESTS, self._requests_directory)

    def _must_look_at_file(self) -> bool:
        """Whether to read the file though no watch spoke: there is none, or a directory above it may be another."""
        unseen = self._timekeeper.reading.awake - self._read_at
        return unseen >= (POLL if not self._watching[CONFIG] else LONGEST_WAIT)

    def _serve(self) -> None:
        """Everything of a pass that needs the ledger."""
        if self._open_fires.waiting:
            self._seat.close_lost()
        self._timekeeper.without_ledger(self._failed_at)
        served = self._desk.serve(self._owner.token, look_for_requests=self._look_for_requests)
        self._look_for_requests = served.requests_left
        self._note(served)
        self._book.write(self._ledger)
        if self._failed_at is not None:
            self._failed_at, self._retry_after = None, Duration(SECOND)
            self._reporter.mend("ledger")

    def _note(self, served: Served) -> None:
        if served.hindrance:
            self._reporter.degrade("starts", f"not everything that is asked for can start: {served.hindrance}")
        else:
            self._reporter.mend("starts")
        for entry in served.entries:
            self._tell(self._reporter.lines.without_fire(entry), warning=not entry.outcome.success)
        for start, routine, slot in served.starts:
            self._book.started(start, routine, slot)
        for end, routine in served.ends:
            self._desk.ended(self._book.ended(end, routine), end)

    def _prune(self) -> None:
        reading = self._timekeeper.reading
        if self._pruned_at is not None and reading.awake - self._pruned_at < PRUNE_EVERY:
            return
        if self._timekeeper.held is None:
            self._ledger.prune(self._term, Instant(reading.now - KEEP_ROWS))
            self._pruned_at = reading.awake

    def _look_at_clocks(self) -> None:
        noticed = self._timekeeper.look()
        if noticed.slept:
            self._tell("the machine slept; looking at what passed")
        if abs(noticed.stepped) >= SECOND:
            self._tell(f"the clock was set by {approximate(noticed.stepped)}")
        if self._timekeeper.held is not None:
            self._reporter.degrade("clock", "the clock leapt, so nothing fires until it has stood for 10 minutes")
        else:
            self._reporter.mend("clock")
        if noticed.lowered:
            self._lower_marks()

    def _lower_marks(self) -> None:
        try:
            self._ledger.lower_marks(self._term, self._timekeeper.reading.now, self._seat.count)
            self._seat.refresh(self._file.agent.concurrency)
        except LedgerUnavailable as fault:
            self._ledger_failed(fault)

    def _reload_if_due(self) -> None:
        reading, held = self._timekeeper.reading, self._timekeeper.held
        if self._reload_at is None or reading.awake < self._reload_at:
            return
        if held is not None:  # a clock that may be wrong must not move marks
            self._reload_at = Monotonic(reading.awake + held)
            return
        self._read_at = reading.awake
        self._reload_at = self._changed_at = None
        self._world.readiness.reloading()
        loaded = self._routines.reload()
        try:
            if loaded.file != self._file:
                self._seat.put_in_force(loaded.file)
                self._file = loaded.file
                self._timekeeper.settle_time = loaded.file.agent.settle
        except LedgerUnavailable as fault:
            self._reload_at = Monotonic(self._timekeeper.reading.awake + SECOND)
            self._ledger_failed(fault)
            return
        self._show_routines(loaded)
        self._world.readiness.ready(self.status())

    def _show_routines(self, loaded: Loaded) -> None:
        if loaded.told != self._told:
            self._told = loaded.told
            self._tell(loaded.told, warning=bool(loaded.error))
        self._reporter.configured(loaded.path, loaded.error)
        if loaded.error:
            self._reporter.degrade("routines.yaml", loaded.error, told=True)
        else:
            self._reporter.mend("routines.yaml")
        if loaded.directories != self._directories:
            self._world.wakeups.forget(CONFIG)
            self._directories = loaded.directories
            # what was saved between the read and the watch is seen by one more read
            self._reload_at = Monotonic(self._timekeeper.reading.awake + FILE_SETTLE)
        watched = [self._world.wakeups.watch(CONFIG, directory) for directory in loaded.directories]
        self._watching[CONFIG] = bool(watched) and all(watched)

    def _ledger_failed(self, fault: LedgerUnavailable) -> None:
        if self._failed_at is None:
            self._failed_at = self._timekeeper.reading.now
        else:
            self._retry_after = Duration(min(2 * self._retry_after, LONGEST_WAIT))
        self._reporter.degrade("ledger", f"nothing fires, for the ledger cannot be written: {fault.fact or fault.what}")

    def _report(self) -> None:
        stuck = [f"{attempt.routine} (pid {attempt.process.pid})" for attempt in self._runner.stuck()]
        if stuck:
            self._reporter.degrade("stuck", f"SIGKILL did not end: {', '.join(stuck)}")
        else:
            self._reporter.mend("stuck")
        if self._desk.held:
            self._reporter.degrade("held", "; ".join(self._desk.held.values()))
        else:
            self._reporter.mend("held")
        self._reporter.publish(self._desk.dues, self._timekeeper.woke_at, self.status())
