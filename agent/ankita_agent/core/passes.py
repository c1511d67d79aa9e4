"""What a pass decides for one routine: facts in, claims and entries out.

The problem: at any moment a routine may have no slot due, one, or thousands (the machine slept, the agent was
down, the loop stalled, the clock jumped), while an earlier run is in the way or there is no room. Every slot
must end in exactly one row, and at most the newest may still start.

The rule, for the due slots above the routine's mark:

* the newest may start if it is within its grace; the older never do;
* a slot that passed during an *absence* (nobody was there to fire it: asleep, off, not running, clock, ledger)
  ends as `missed` with that reason, unless it is the newest and `catch_up: latest` lets it start late: after
  the settle time, one routine after another;
* an older slot outside of any absence is `skipped(superseded)`: the owner was up and only late;
* the newest is `skipped(overlap)` while an earlier run of the routine is in the way;
* a newest slot that must wait (settling, its turn, room) stays above the mark: a crash forgets nothing.

tests/unit/test_passes.py holds it. Rejected: one "last run" stamp per routine (it cannot tell an absence from
a stall, and a crash after the stamp loses the slot); iterating over the slots of a long absence (a year of
minutes is half a million).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from ankita_agent.core.instants import DAY, MINUTE, SECOND, Duration, Instant
from ankita_agent.core.outcomes import Outcome, Reason, Trigger
from ankita_agent.core.routine import CatchUp, Routine
from ankita_agent.core.rows import Claim, Entry
from ankita_agent.core.schedule import Timetable

PROMPT = MINUTE
"""An absence shorter than this is none: its slots are only late."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What deciding needs of a routine."""

    routine: Routine
    timetable: Timetable
    jitter: Duration

    @property
    def name(self) -> str:
        """The routine's name."""
        return self.routine.name

    def due_after(self, mark: Instant) -> Instant | None:
        """When the first slot above `mark` is due to start: the slot and its jitter."""
        slot = self.timetable.next_after(mark)
        return None if slot is None else Instant(slot + self.jitter)

    def grace_of(self, slot: Instant) -> Duration:
        """How late the slot may start: as written but at least a second, or one period but at most a day."""
        if self.routine.grace is not None:
            return Duration(max(self.routine.grace, SECOND))  # every start is late by milliseconds
        following = self.timetable.next_after(slot)
        return DAY if following is None else Duration(min(following - slot, DAY))


@dataclass(frozen=True, slots=True)
class Absence:
    """A stretch (since, until] in which no owner could fire, and why."""

    since: Instant
    until: Instant
    reason: Reason

    def covers(self, instant: Instant) -> bool:
        """Whether a slot at that instant passed in it."""
        return self.since < instant <= self.until


@dataclass(frozen=True, slots=True)
class Standing:
    """What is in the way of a start right now.

    `blocked` when an earlier run of the routine still lives, with its fire where it is known; `room` when the
    concurrency allows one more; `turn` when no other catch-up runs and the settle time is over.
    """

    blocked: bool
    blocked_by: int | None
    room: bool
    settling: bool
    turn: bool


class Wait(StrEnum):
    """What a due slot waits for, in the words that status shows."""

    SETTLE = "settle"
    TURN = "turn"
    ROOM = "room"


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be written for the routine, and whether it starts or waits.

    `accounted` is the new mark, None when nothing moves. At most one of `claim` and `wait` is set. `expires` is
    when a waiting slot has used up its grace. `missed` counts the slots above the mark that did not run.
    """

    entries: tuple[Entry, ...] = ()
    accounted: Instant | None = None
    claim: Claim | None = None
    wait: Wait | None = None
    expires: Instant | None = None
    missed: int = 0


NOTHING = Decision()

OVERTAKEN = (Outcome.SKIPPED, Reason.SUPERSEDED)
"""How slots end that were due while an owner was there, and gave way to a newer one or to an edit."""

_LATE = (Outcome.MISSED, Reason.GRACE)


def decide(plan: Plan, mark: Instant, now: Instant, absences: Sequence[Absence], standing: Standing) -> Decision:
    """Decide the routine's slots above `mark` that are due at `now`."""
    newest = plan.timetable.latest_until(Instant(now - plan.jitter))
    if newest is None or newest <= mark:
        return NOTHING
    before = Instant(newest - 1)
    excuse = _reason_at(newest, absences)
    late = now - newest - plan.jitter
    grace = plan.grace_of(newest)

    if late > grace or (excuse is not None and plan.routine.catch_up is CatchUp.NONE):
        entries = tuple(ended_slots(plan.name, plan.timetable, mark, newest, absences, _LATE))
        return Decision(entries, newest)

    older = tuple(ended_slots(plan.name, plan.timetable, mark, before, absences, OVERTAKEN))
    passed = sum(entry.count for entry in older)
    wait = _what_to_wait_for(excuse is not None, standing)
    if wait is not None:
        settled = older[-1].until if older else None
        return Decision(older, settled, wait=wait, expires=Instant(newest + plan.jitter + grace + 1))
    trigger = Trigger.SCHEDULE if excuse is None else Trigger.CATCH_UP
    if standing.blocked:
        skipped = Entry(plan.name, newest, newest, 1, Outcome.SKIPPED, Reason.OVERLAP, trigger, standing.blocked_by)
        return Decision((*older, skipped), newest)
    return Decision(older, newest, claim=Claim(plan.name, newest, trigger), missed=passed)


def decide_reboot(plan: Plan, boot: str, booted_at: Instant, now: Instant, standing: Standing) -> Decision:
    """Decide the one slot of an `@reboot` routine that was in force before this boot; its key is the boot."""
    if now - booted_at > plan.grace_of(booted_at):
        late = Entry(
            plan.name,
            booted_at,
            booted_at,
            1,
            Outcome.MISSED,
            Reason.NOT_RUNNING,
            Trigger.SCHEDULE,
            boot=boot,
        )
        return Decision((late,))
    if standing.blocked:
        return Decision(
            (
                Entry(
                    plan.name,
                    booted_at,
                    booted_at,
                    1,
                    Outcome.SKIPPED,
                    Reason.OVERLAP,
                    Trigger.SCHEDULE,
                    standing.blocked_by,
                    boot=boot,
                ),
            )
        )
    if not standing.room:
        return Decision(wait=Wait.ROOM)
    return Decision(claim=Claim(plan.name, booted_at, Trigger.SCHEDULE, boot=boot))


def _what_to_wait_for(catching_up: bool, standing: Standing) -> Wait | None:
    if catching_up and standing.settling:
        return Wait.SETTLE
    if standing.blocked:
        return None  # an overlap is decided at once, it does not queue
    if catching_up and not standing.turn:
        return Wait.TURN
    return None if standing.room else Wait.ROOM


def _reason_at(slot: Instant, absences: Sequence[Absence]) -> Reason | None:
    return next((absence.reason for absence in reversed(absences) if absence.covers(slot)), None)


def ended_slots(
    name: str,
    timetable: Timetable,
    after: Instant,
    until: Instant,
    absences: Sequence[Absence],
    otherwise: tuple[Outcome, Reason],
) -> Iterator[Entry]:
    """Entries for the slots of a routine in (after, until]: missed where an absence covers them, else as given."""
    edges = {after, until}
    for absence in absences:
        edges.update(edge for edge in (absence.since, absence.until) if after < edge < until)
    for start, end in pairwise(sorted(edges)):
        count = timetable.count_between(start, end)
        if not count:
            continue
        first = timetable.next_after(start)
        last = timetable.latest_until(end)
        assert first is not None
        assert last is not None
        absent = _reason_at(end, absences)
        outcome, reason = otherwise if absent is None else (Outcome.MISSED, absent)
        yield Entry(name, first, last, count, outcome, reason)
