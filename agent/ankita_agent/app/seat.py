"""From holding the locks to firing: open the ledger, begin a term, recover, put the routines in force.

The order matters: the term is durable in the ledger before it is in a file, so a file can only be ahead of a
ledger that was restored from a backup or replaced; and the ledger before the claim, so that who reads the claim
finds its term. The file of the term comes last, for the claim says it too. Every open fire of a dead agent and
every slot that passed get their rows before the first pass.

A ledger that lost rows must fire nothing from before now. A term grows only at a start, so it finds out no
backup of the same term and no log that was removed; the number of the newest fire, kept in own/fired, does. And
a new term hides the loss from the next start, so own/behind says it until everything is written off.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ankita_agent.app.desk import Desk
from ankita_agent.app.owner import Owner
from ankita_agent.app.recovery import (
    OpenFires,
    absences_since,
    boot_written_off,
    ended_under_the_old_schedule,
    rerun_of,
    written_off,
)
from ankita_agent.app.timekeeping import LEAP, Timekeeper
from ankita_agent.app.told import Lines, Tell
from ankita_agent.core.instants import Instant
from ankita_agent.core.jitter import delay_of
from ankita_agent.core.outcomes import Reason, Trigger
from ankita_agent.core.passes import Plan
from ankita_agent.core.routine import Routine, RoutineFile, in_force
from ankita_agent.core.rows import End, Entry, ProcessId, TermRecord
from ankita_agent.core.schedule import Timetable
from ankita_agent.core.zones import zone_named
from ankita_agent.ports.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Opened:
    """A ledger opened by the owner. `set_aside` is where a damaged one went that stood in its place."""

    ledger: Ledger
    set_aside: str | None


@dataclass(frozen=True, slots=True)
class Term:
    """A term that has begun. `previous` is the ownership before it; `behind` when the ledger lost rows."""

    number: int
    previous: TermRecord | None
    behind: bool


def begin_term(owner: Owner, opened: Opened, process: ProcessId, now: Instant) -> Term:
    """Begin a term, durable in ledger and files, and publish the claim. The owner must hold the locks."""
    known, fired = owner.known_term(), owner.known_fire()
    previous = opened.ledger.newest_term()
    fewer = known > (previous.term if previous else 0) or fired > opened.ledger.newest_number()
    behind = fewer or opened.set_aside is not None or owner.doubts_ledger()
    if behind:
        owner.doubt_ledger()
    number = opened.ledger.begin_term(known, owner.token, process, now, fired)
    owner.seat(number, now)
    return Term(number, previous, behind)


def plan_of(routine: Routine, machine: str) -> Plan:
    """The plan of a routine on this machine; `machine` is any text that stays the same for it."""
    timetable = Timetable(routine.schedule, zone_named(routine.timezone))
    return Plan(routine, timetable, delay_of(machine, routine.name, routine.jitter))


class Seat:
    """Puts routines in force for one term, at its start and at each reload."""

    def __init__(
        self,
        ledger: Ledger,
        term: Term,
        desk: Desk,
        open_fires: OpenFires,
        timekeeper: Timekeeper,
        process: ProcessId,
        token: str,
        machine: str,
        tell: Tell,
        lines: Lines,
    ) -> None:
        self._ledger = ledger
        self._term = term
        self._desk = desk
        self._open_fires = open_fires
        self._timekeeper = timekeeper
        self._process = process
        self._token = token
        self._machine = machine
        self._tell = tell
        self._lines = lines
        self.plans: dict[str, Plan] = {}

    def take_over(self, file: RoutineFile) -> None:
        """Account for what happened before this term, then put the routines in force."""
        reading = self._timekeeper.reading
        previous = self._term.previous
        if previous is not None:
            away = absences_since(previous, self._process.boot, self._timekeeper.booted_at(), reading.now)
            for absence in away:
                self._timekeeper.be_absent(absence.since, absence.reason, absence.until)
            if previous.seen_until > reading.now + LEAP:
                self._timekeeper.doubt(previous.seen_until)
        self._timekeeper.restart_settling()
        self._open_fires.take(self._ledger.open_fires())
        summaries = self._ledger.summaries()
        self._desk.last_success = {
            summary.account.in_force.routine: summary.last_success_slot
            for summary in summaries
            if summary.last_success_slot is not None
        }
        self.put_in_force(file)
        if self._term.behind:
            self._write_off(reading.now)
            self.refresh(file.agent.concurrency)
        self.close_lost()
        accounted = self._ledger.accounted_in_boot(self._process.boot)
        self._desk.reboots = {
            name
            for name, account in self._ledger.accounts().items()
            if name in self.plans
            and name not in accounted
            and self.plans[name].timetable.is_reboot
            and account.known_since_boot != self._process.boot
        }

    def put_in_force(self, file: RoutineFile) -> None:
        """Make these the routines in force. Raises Fenced or LedgerUnavailable; the old ones stand then."""
        now = self._timekeeper.reading.now
        plans = {routine.name: self._plan(routine) for routine in file.routines}
        self._account_for_what_goes(plans, now)
        self._ledger.put_in_force(
            self._term.number, [in_force(plan.routine) for plan in plans.values()], now, self._process.boot
        )
        self.plans = plans
        self.refresh(file.agent.concurrency)

    def refresh(self, concurrency: int) -> None:
        """Take the marks from the ledger again."""
        marks = {name: account.accounted_until for name, account in self._ledger.accounts().items()}
        self._desk.put(self.plans, marks, concurrency)

    def count(self, routine: str, after: Instant, until: Instant) -> int:
        """How many slots a routine in force has in (after, until]; 0 for one that is not."""
        plan = self.plans.get(routine)
        return 0 if plan is None else plan.timetable.count_between(after, until)

    def close_lost(self) -> list[End]:
        """Give an end to the fires of agents that are dead; re-run those whose routine asks for it."""
        ended = self._open_fires.settle(self.plans, self._timekeeper.reading.now)
        if not ended:
            return []
        self._ledger.record((), [end for _, end in ended])
        for fire, end in ended:
            self._tell(self._lines.lost(fire), warning=True)
            plan = self.plans.get(fire.routine)
            # only what is proven gone, and by a ledger that knows; and what is lost twice may be what kills its agent
            proven = end.reason is Reason.OWNER_KILLED and not self._term.behind
            again = proven and fire.trigger is not Trigger.RETRY
            if plan is not None and plan.routine.rerun_lost and again:
                self._desk.reruns.append(rerun_of(fire, self._token))
        return [end for _, end in ended]

    def _plan(self, routine: Routine) -> Plan:
        known = self.plans.get(routine.name)
        if known is not None and known.routine == routine:
            return known
        return plan_of(routine, self._machine)

    def _account_for_what_goes(self, plans: Mapping[str, Plan], now: Instant) -> None:
        entries: list[Entry] = []
        accounted: dict[str, Instant] = {}
        for name, account in self._ledger.accounts().items():
            ended = ended_under_the_old_schedule(account, plans.get(name), now, self._timekeeper.absences)
            entries += ended
            if ended:
                accounted[name] = ended[-1].until
        if entries:
            self._ledger.settle_pass(self._term.number, now, (), entries, accounted)
            for entry in entries:
                self._tell(self._lines.without_fire(entry), warning=not entry.outcome.success)

    def _write_off(self, now: Instant) -> None:
        boot, booted_at = self._process.boot, self._timekeeper.booted_at()
        entries = []
        for name, account in self._ledger.accounts().items():
            plan = self.plans[name]
            if not plan.routine.enabled:
                continue
            if plan.timetable.is_reboot:
                entry = boot_written_off(account, boot, booted_at)
            else:
                entry = written_off(account, plan.timetable, now)
            if entry is not None:
                entries.append(entry)
        if entries:
            accounted = {entry.routine: now for entry in entries}
            self._ledger.settle_pass(self._term.number, now, (), entries, accounted)
            for entry in entries:
                self._tell(self._lines.without_fire(entry), warning=not entry.outcome.success)
