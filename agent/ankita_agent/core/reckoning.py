"""The account of a routine: its schedule's slots counted against the rows of the ledger.

The problem: "none was doubled and none left out" is easily said. It is a sum that must come out at every row: as
many slots from the beginning to the end of that row as the rows up to it cover.

The rule: the sum is made where it can be told, and its beginning is part of the answer. It begins where the present
schedule came into force, or behind a clock that was set back (`Account.reckoned_since`); not before what pruning may
have taken; and behind a row that reaches over that beginning, of which nobody knows how many slots lie on which side.
It ends with the mark, or before a row that reaches over it. Slots are counted, never iterated.

tests/unit/test_reckoning.py holds it. Rejected: one sum for each routine (a slot left out and one doubled cancel out).
A limit: where a routine has more rows than sums may be made, the sum is made at that many of them, evenly.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from ankita_agent.core.instants import Instant
from ankita_agent.core.rows import Covered
from ankita_agent.core.schedule import Timetable


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """The first place where the sum does not come out: so many slots by the schedule, so many by the rows.

    `left_out` when `slot` has no row; else its row covers more slots than the schedule has there.
    """

    slot: Instant
    left_out: bool
    by_schedule: int
    by_rows: int


@dataclass(frozen=True, slots=True)
class Reckoning:
    """The account of one routine: `slots` after `since`, up to and including `until`.

    `wrong` is None when the sum comes out.
    """

    since: Instant
    until: Instant
    slots: int
    wrong: Discrepancy | None


def reckon(timetable: Timetable, since: Instant, until: Instant, rows: Sequence[Covered], most_sums: int) -> Reckoning:
    """Count the slots in (since, until] against the rows, which are in order and of which none overlap."""
    begin = max([since, *(row.until for row in rows if row.slot <= since + 1 and since < row.until)])
    end = max([begin, min([until, *(Instant(row.slot - 1) for row in rows if row.slot <= until < row.until)])])
    inside = [row for row in rows if row.slot > begin and row.until <= end]
    sums = list(accumulate((row.count for row in inside), initial=0))
    good = 0

    def is_wrong(number: int) -> bool:
        """Whether the rows behind the good ones, up to that one, cover anything but just the slots up to its end."""
        start, last = inside[good - 1].until if good else begin, inside[number - 1].until
        is_slot = timetable.count_between(Instant(last - 1), last) == 1
        return not is_slot or timetable.count_between(start, last) != sums[number] - sums[good]

    for number in _checkpoints(len(inside), most_sums):
        if is_wrong(number):
            wrong = bisect_left(range(number), True, lo=good + 1, key=is_wrong)
            return Reckoning(begin, end, sums[-1], _wrong_at(timetable, begin, inside, wrong))
        good = number
    start = inside[-1].until if inside else begin
    left = timetable.count_between(start, end)
    missing = timetable.next_after(start) if left else None
    return Reckoning(begin, end, sums[-1], None if missing is None else Discrepancy(missing, True, left, 0))


def _checkpoints(rows: int, most: int) -> list[int]:
    """Up to how many rows to make the sum: after each, or after as many as may be, the last among them."""
    step = -(-rows // most) or 1
    return sorted({*range(step, rows + 1, step), rows} - {0})


def _wrong_at(timetable: Timetable, begin: Instant, rows: Sequence[Covered], number: int) -> Discrepancy:
    """What is wrong with a row up to which the sum does not come out, while it does up to the one before."""
    row = rows[number - 1]
    before = rows[number - 2].until if number > 1 else begin
    by_schedule = timetable.count_between(before, row.until)
    first = timetable.next_after(before)
    left_out = by_schedule > row.count or (first is not None and first < row.slot)
    return Discrepancy(first if left_out and first is not None else row.slot, left_out, by_schedule, row.count)
