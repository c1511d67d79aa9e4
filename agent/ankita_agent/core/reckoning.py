"""The account of a routine: its schedule's slots against the rows of the ledger, one by one.

The problem: "none was doubled and none left out" is easily said. Sums do not prove it: a slot left out and one told of
that never was cancel out, and a row that moved a second is no slot at all.

The rule: walk. Each row must begin with the first slot behind the row before it and end with a slot, have as many
slots as it says, and none may lie behind the last of them up to the mark, above which there is no row. That is asked
of every row, and what is not asked is not said. It begins where it can be told, and its beginning is part of the
answer: where the present schedule came into force under the present rules of its zone, behind a clock that was set
back and behind what was pruned (`Account.reckoned_since`); and behind a row that reaches over that beginning, of
which nobody knows how many slots lie before it.

A limit: a row that was changed to reach over the beginning is not found by that; less is told then, and its beginning
says so. And it is about slots alone: how a slot ended, only its row says.

tests/unit/test_reckoning.py holds it, against an account that is taken by search for any damage. Rejected: sums at some
of the rows (see above); asking the calendar about each row (a search costs a hundred times more than the next slot).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Final

from ankita_agent.core.instants import Instant
from ankita_agent.core.rows import Covered
from ankita_agent.core.schedule import Timetable

_WALKED: Final = 100
"""Slots up to which a stretch is walked through; those of a longer one are counted, which costs the same for any."""


class Mistake(StrEnum):
    """What is wrong with a row, or with where one should be."""

    LEFT_OUT = "left_out"  # no row tells of the slot
    TOO_FEW = "too_few"  # a stretch tells of fewer slots than there are in it
    TOO_MANY = "too_many"  # a stretch tells of more slots than there are in it
    TWICE = "twice"  # two rows tell of the slot
    NO_SLOT = "no_slot"  # a row begins or ends where the schedule has none
    ABOVE = "above"  # a row tells of a slot above the mark, up to which all of them are decided


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """The first place where rows and schedule differ: the slot, and how many slots the schedule and the row have there.

    `slot` is where a row tells of one for NO_SLOT, and the first of the row for TOO_FEW and TOO_MANY.
    """

    slot: Instant
    mistake: Mistake
    by_schedule: int
    by_rows: int

    @property
    def left_out(self) -> bool:
        """Whether a slot that must have a row has none."""
        return self.mistake in (Mistake.LEFT_OUT, Mistake.TOO_FEW)


@dataclass(frozen=True, slots=True)
class Reckoning:
    """The account of one routine: its rows tell of `slots` after `since`, up to and including `until`.

    `wrong` is None when they are just those of the schedule, each once.
    """

    since: Instant
    until: Instant
    slots: int
    wrong: Discrepancy | None


def reckon(timetable: Timetable, since: Instant, until: Instant, rows: Sequence[Covered]) -> Reckoning:
    """Hold the slots in (since, until] against the rows that end after `since`, in the order of their ends."""
    # right behind the beginning: there a stretch is cut that met rows of a clock that was set back
    over = [row for row in rows if row.slot <= since + 1]
    inside = [row for row in rows if row.slot > since + 1]
    begin = max([since, *(row.until for row in over)])
    end = Instant(max(begin, until))
    wrong = _wrong_over(timetable, since, until, over) or _first_wrong(timetable, begin, end, inside)
    return Reckoning(begin, end, sum(row.count for row in inside), wrong)


def _wrong_over(timetable: Timetable, since: Instant, until: Instant, over: Sequence[Covered]) -> Discrepancy | None:
    """What is wrong with a row that reaches over the beginning: it has at least the slots from there to its end."""
    for row in over:
        count = timetable.count_between(since, row.until)
        if row.until > until:
            return Discrepancy(row.until, Mistake.ABOVE, 0, row.count)
        if not _is_slot(timetable, row.until):
            return Discrepancy(row.until, Mistake.NO_SLOT, count, row.count)
        if row.count < count:
            return Discrepancy(row.slot, Mistake.TOO_FEW, count, row.count)
    return None


def _first_wrong(timetable: Timetable, begin: Instant, end: Instant, rows: Sequence[Covered]) -> Discrepancy | None:
    slots = timetable.slots_between(begin, end)
    before = begin
    for row in rows:
        if row.count <= _WALKED:
            told = list(islice(slots, row.count))
            fits = len(told) == row.count and told[0] == row.slot and told[-1] == row.until
        else:
            fits = next(slots, None) == row.slot and row.until <= end and _is_slot(timetable, row.until)
            fits = fits and timetable.count_between(before, row.until) == row.count
            slots = timetable.slots_between(row.until, end)
        if not fits:
            return _wrong_with(timetable, before, end, row)
        before = row.until
    left = next(slots, None)
    if left is None:
        return None
    return Discrepancy(left, Mistake.LEFT_OUT, timetable.count_between(before, end), 0)


def _wrong_with(timetable: Timetable, before: Instant, end: Instant, row: Covered) -> Discrepancy:
    """What is wrong with a row that does not fit behind the one that ends at `before`."""
    first = timetable.next_after(before)
    count = timetable.count_between(Instant(max(before, row.slot - 1)), row.until)
    if row.slot <= before:
        return Discrepancy(row.slot, Mistake.TWICE, count, row.count)
    if first is not None and first <= end and first < row.slot:
        return Discrepancy(first, Mistake.LEFT_OUT, timetable.count_between(before, Instant(row.slot - 1)), 0)
    if row.until > end:
        return Discrepancy(row.until, Mistake.ABOVE, 0, row.count)
    for edge in (row.slot, row.until):
        if not _is_slot(timetable, edge):
            return Discrepancy(edge, Mistake.NO_SLOT, count, row.count)
    return Discrepancy(row.slot, Mistake.TOO_FEW if row.count < count else Mistake.TOO_MANY, count, row.count)


def _is_slot(timetable: Timetable, instant: Instant) -> bool:
    return timetable.count_between(Instant(instant - 1), instant) == 1
