"""Where slots become fires: decide, claim in one transaction, check once more, spawn.

Reading order of a fire: `Desk.serve` asks `core.passes.decide` for every routine with something due, reserves
the routine's lock for each that may start, writes all decisions and claims in one durable transaction, checks
ownership once more, and only then starts the processes of the claims that won. Whatever fails on the way leaves
a slot unfired: a claim that lost, a ledger that cannot be written, an ownership that went. A fault before the
writing puts every routine back in its place; after it, nothing may stand between a claim and an end.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ankita_agent.app.dues import Dues
from ankita_agent.app.requests import Request, Requests, Waiting
from ankita_agent.app.runner import Order, Reservation, Runner
from ankita_agent.app.timekeeping import Timekeeper
from ankita_agent.core.errors import CannotWriteState, Fenced
from ankita_agent.core.instants import Instant
from ankita_agent.core.outcomes import Outcome, Reason, Trigger
from ankita_agent.core.passes import Decision, Plan, Standing, Wait, decide, decide_reboot
from ankita_agent.core.rows import Claim, End, Entry, Start
from ankita_agent.ports.ledger import Ledger


@dataclass(slots=True)
class Batch:
    """All that one pass writes and starts."""

    entries: list[Entry] = field(default_factory=list)
    accounted: dict[str, Instant] = field(default_factory=dict)
    orders: list[tuple[Claim, Plan, Reservation, int]] = field(default_factory=list)
    starting: set[str] = field(default_factory=set)
    due: list[Plan] = field(default_factory=list)
    decisions: list[tuple[Plan, Decision]] = field(default_factory=list)
    reboots: list[str] = field(default_factory=list)
    taken: list[Request] = field(default_factory=list)
    requests_left: bool = False
    hindrance: str = ""

    def order(self, claim: Claim, plan: Plan, reservation: Reservation, missed: int) -> None:
        """Start this one if its claim wins."""
        self.orders.append((claim, plan, reservation, missed))
        self.starting.add(plan.name)


@dataclass(frozen=True, slots=True)
class Served:
    """What came of a pass.

    Attempts that started, with routine and slot; fires that ended at once, with their routine; rows written
    without a fire; whether requests are left that wait for room; what keeps this machine from starting more.
    """

    starts: tuple[tuple[Start, str, Instant], ...]
    ends: tuple[tuple[End, str], ...]
    entries: tuple[Entry, ...]
    requests_left: bool
    hindrance: str


class Desk:
    """Decides, claims and starts for one term of ownership."""

    def __init__(
        self,
        ledger: Ledger,
        term: int,
        runner: Runner,
        requests: Requests,
        timekeeper: Timekeeper,
        boot: str,
        still_ours: Callable[[], object],
        note_fire: Callable[[int], None],
    ) -> None:
        self._ledger = ledger
        self._term = term
        self._runner = runner
        self._requests = requests
        self._timekeeper = timekeeper
        self._boot = boot
        self._still_ours = still_ours
        self._note_fire = note_fire
        self._plans: Mapping[str, Plan] = {}
        self._concurrency = 1
        self._catching_up: set[str] = set()
        self._schedule_first = False
        self.dues = Dues()
        self.reboots: set[str] = set()
        self.reruns: list[Request] = []
        self.held: dict[str, str] = {}
        self.last_success: dict[str, Instant] = {}
        self._slots: dict[int, Instant] = {}

    def put(self, plans: Mapping[str, Plan], marks: dict[str, Instant], concurrency: int) -> None:
        """Make these the routines in force, with their marks as the ledger has them."""
        self._plans, self._concurrency = plans, concurrency
        self.reboots &= plans.keys()
        self.held = {name: words for name, words in self.held.items() if name in plans}
        self.dues.put(plans.values(), marks)

    def ended(self, routine: str, end: End) -> None:
        """A fire is over: the next run of its routine is told of the newest success."""
        slot = self._slots.pop(end.fire, None)
        if end.outcome.success and slot is not None:
            self.last_success[routine] = max(slot, self.last_success.get(routine, slot))

    def serve(self, token: str, *, look_for_requests: bool) -> Served:
        """One pass over everything due. Raises Fenced or LedgerUnavailable; nothing was started then."""
        batch = Batch()
        now = self._timekeeper.reading.now
        try:
            asked = look_for_requests or bool(self.reruns)
            if asked and not self._schedule_first:
                self._take_requests(batch, token)
            if self._timekeeper.held is None:
                self._take_reboots(batch, now)
                self._take_dues(batch, now)
            if asked and self._schedule_first:
                self._take_requests(batch, token)
            claims = [claim for claim, *_ in batch.orders]
            fires = self._ledger.settle_pass(self._term, now, claims, batch.entries, batch.accounted)
        except BaseException:
            self._put_back(batch, now)
            raise
        try:
            unsure = self._check_again(batch, fires) if claims else ""
            return self._start(batch, fires, unsure)
        finally:  # last: to find the next slots of many schedules takes as long as to start them
            self._note(batch, now)

    def _check_again(self, batch: Batch, fires: list[int | None]) -> str:
        """The machine may have slept between the claim and here; fires that must not start any more are closed.

        Then the number of the newest is noted beside the ledger, so that one without these rows is found out.
        Returns why nobody can say whether we still own, or will know: in doubt nothing starts. Empty when all
        is well.
        """
        won = [fire for fire in fires if fire is not None]
        try:
            self._still_ours()
            if won:
                self._note_fire(max(won))
        except OSError as error:
            return f"cannot check the ownership: {error.strerror or error}"
        except Fenced:
            for _, _, reservation, _ in batch.orders:
                self._runner.release(reservation)
            now = self._timekeeper.reading.now
            ends = [End(fire, Outcome.STOPPED, Reason.FENCED, now) for fire in won]
            self._ledger.record((), ends)
            raise
        return ""

    def _room(self, batch: Batch) -> bool:
        return len(self._runner.running()) + len(batch.orders) < self._concurrency

    def _take_dues(self, batch: Batch, now: Instant) -> None:
        settling = self._timekeeper.settling is not None
        self._catching_up &= self._runner.running().keys()
        batch.due = self.dues.due(now, revisit=self._revisit(batch, settling))
        for plan in batch.due:
            mark = self.dues.mark(plan.name)
            standing = self._standing(plan.name, batch, settling)
            decision = decide(plan, mark, now, self._timekeeper.absences, standing)
            if decision.claim is not None:
                obstacle = self._order(batch, plan, decision.claim, standing, decision.missed)
                if obstacle is not None:
                    decision = decide(plan, mark, now, self._timekeeper.absences, obstacle)
            batch.entries.extend(decision.entries)
            if decision.accounted is not None:
                batch.accounted[plan.name] = decision.accounted
            batch.decisions.append((plan, decision))
            if decision.claim is not None and decision.claim.trigger is Trigger.CATCH_UP:
                self._catching_up.add(plan.name)

    def _order(self, batch: Batch, plan: Plan, claim: Claim, standing: Standing, missed: int = 0) -> Standing | None:
        """Reserve the routine for a claim; None when that is done, else the standing with what is in the way.

        That is a run of another agent, or what it left; or the machine itself, which then has no room.
        """
        try:
            reservation = self._runner.reserve(plan.name)
        except CannotWriteState as fault:
            batch.hindrance = f"{fault.what}: {fault.fact}"
            return replace(standing, room=False)
        if reservation is None:
            self._note_holders(plan.name)
            return replace(standing, blocked=True)
        self.held.pop(plan.name, None)
        batch.order(claim, plan, reservation, missed)
        return None

    def _note_holders(self, routine: str) -> None:
        """Find, once, who keeps a routine of which nothing runs here from starting: it looks at every process."""
        if routine in self._runner.running() or routine in self.held:
            return
        holders = ", ".join(f"pid {each.process.pid} ({each.name})" for each in self._runner.holders(routine))
        self.held[routine] = f"{routine} is held up by {holders or 'a process that cannot be seen'}"

    def _revisit(self, batch: Batch, settling: bool) -> frozenset[Wait]:
        waits = set()
        if not settling:
            waits.add(Wait.SETTLE)
            if not self._catching_up:
                waits.add(Wait.TURN)
        if self._room(batch):
            waits.add(Wait.ROOM)
        return frozenset(waits)

    def _standing(self, name: str, batch: Batch, settling: bool) -> Standing:
        running = self._runner.running().get(name)
        return Standing(
            blocked=running is not None or name in batch.starting,
            blocked_by=running.fire if running else None,
            room=self._room(batch),
            settling=settling,
            turn=not self._catching_up,
        )

    def _take_reboots(self, batch: Batch, now: Instant) -> None:
        for name in sorted(self.reboots):
            plan = self.dues.plan(name)
            if plan is None:
                self.reboots.discard(name)
                continue
            standing = self._standing(name, batch, settling=False)
            booted_at = self._timekeeper.booted_at()
            decision = decide_reboot(plan, self._boot, booted_at, now, standing)
            if decision.claim is not None:
                obstacle = self._order(batch, plan, decision.claim, standing)
                if obstacle is not None:
                    decision = decide_reboot(plan, self._boot, booted_at, now, obstacle)
            if decision.wait is None:
                batch.reboots.append(name)
            batch.entries.extend(decision.entries)

    def _take_requests(self, batch: Batch, token: str) -> None:
        for request in (*self.reruns, *self._asked_for(batch)):
            plan = self._plans.get(request.routine)
            if plan is None:
                batch.taken.append(request)
                continue
            if request.trigger is Trigger.MANUAL and request.addressed_to != token:
                batch.entries.append(_ended_request(request, Outcome.MISSED, Reason.NOT_RUNNING))
                batch.taken.append(request)
                continue
            standing = self._standing(plan.name, batch, settling=False)
            obstacle: Standing | None = standing
            if standing.room and not standing.blocked:
                claim = Claim(plan.name, request.slot, request.trigger, request=request.id)
                obstacle = self._order(batch, plan, claim, standing)
            if obstacle is not None and not obstacle.blocked:
                batch.requests_left = True
                continue
            batch.taken.append(request)
            if obstacle is not None:
                batch.entries.append(_ended_request(request, Outcome.SKIPPED, Reason.OVERLAP, obstacle.blocked_by))

    def _asked_for(self, batch: Batch) -> list[Request]:
        try:
            waiting = self._requests.waiting()
        except OSError as error:
            waiting = Waiting([], f"cannot read the requests: {error.strerror or error}")
        if waiting.unread:
            batch.hindrance = waiting.unread
            batch.requests_left = True
        return waiting.requests

    def _put_back(self, batch: Batch, now: Instant) -> None:
        for _, _, reservation, _ in batch.orders:
            self._runner.release(reservation)
        self._catching_up &= self._runner.running().keys()
        self.dues.undecided(batch.due, now)

    def _note(self, batch: Batch, now: Instant) -> None:
        if batch.orders or batch.taken:  # in turns: neither people nor schedules may keep the others out
            self._schedule_first = bool(batch.taken)
        for plan, decision in batch.decisions:
            self.dues.decided(plan, decision, now)
        self.reboots.difference_update(batch.reboots)
        for request in batch.taken:
            if request in self.reruns:
                self.reruns.remove(request)
                continue
            try:
                self._requests.withdraw(request.id)
            except OSError:  # it stays, and its row refuses it a second fire
                pass
        if not self.dues.line and self._timekeeper.settling is None and self._timekeeper.held is None:
            self._timekeeper.absences.clear()  # every slot in them has its row now

    def _start(self, batch: Batch, fires: list[int | None], unsure: str) -> Served:
        ends: list[tuple[End, str]] = []
        orders: list[tuple[Order, Reservation]] = []
        for (claim, plan, reservation, missed), fire in zip(batch.orders, fires, strict=True):
            if fire is None:  # fired before, by whoever owned then: never again
                self._runner.release(reservation)
                continue
            if unsure:
                self._runner.release(reservation)
                now = self._timekeeper.reading.now
                ends.append((End(fire, Outcome.FAILED, Reason.SPAWN, now, detail=unsure), plan.name))
                continue
            order = Order(
                routine=plan.routine,
                fire=fire,
                slot=claim.slot,
                trigger=claim.trigger,
                attempt=1,
                term=self._term,
                last_success=self.last_success.get(plan.name),
                missed=missed,
            )
            orders.append((order, reservation))
        starts: list[tuple[Start, str, Instant]] = []
        for (order, _), come in zip(orders, self._runner.launch(orders), strict=True):
            if isinstance(come, End):
                ends.append((come, order.routine.name))
            else:
                self._slots[order.fire] = order.slot
                starts.append((come, order.routine.name, order.slot))
        return Served(tuple(starts), tuple(ends), tuple(batch.entries), batch.requests_left, batch.hindrance)


def _ended_request(request: Request, outcome: Outcome, reason: Reason, blocked_by: int | None = None) -> Entry:
    return Entry(
        request.routine,
        request.slot,
        request.slot,
        1,
        outcome,
        reason,
        request.trigger,
        blocked_by,
        request=request.id,
    )
