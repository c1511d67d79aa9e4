"""Slots held against rows: where that can be done, and the first place where they differ."""

from dataclasses import replace
from itertools import islice
from random import Random
from time import process_time
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ankita_agent.core.instants import DAY, MINUTE, SECOND, Instant, parse_instant
from ankita_agent.core.reckoning import Discrepancy, Mistake, Reckoning, reckon
from ankita_agent.core.rows import Covered
from ankita_agent.core.schedule import Timetable, parse_schedule
from ankita_agent.core.zones import zone_named
from tests.ledgers import at

EVERY_FIVE = Timetable(parse_schedule("every 5m"), zone_named("UTC"))


def row(slot: int, until: int | None = None, count: int = 1) -> Covered:
    """A row from one minute to another."""
    return Covered(at(slot), at(slot if until is None else until), count)


def reckoned(rows: list[Covered], since: int = -1, until: int = 100) -> Reckoning:
    """The reckoning of those rows."""
    return reckon(EVERY_FIVE, at(since), at(until), rows)


def wrong(slot: int, mistake: Mistake, by_schedule: int, by_rows: int) -> Discrepancy:
    """A discrepancy at that minute."""
    return Discrepancy(at(slot), mistake, by_schedule, by_rows)


GOOD: Final = [row(0), row(5, 20, 4), row(25), row(30, 100, 15)]
LONG: Final = [row(0), row(5, 5 * 300, 300), row(5 * 301)]


def test_rows_that_cover_each_slot_once_come_out() -> None:
    assert reckoned(GOOD) == Reckoning(at(-1), at(100), 21, None)
    assert reckoned(LONG, until=5 * 301) == Reckoning(at(-1), at(5 * 301), 302, None)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (GOOD[1:], wrong(0, Mistake.LEFT_OUT, 1, 0)),
        ([GOOD[0], *GOOD[2:]], wrong(5, Mistake.LEFT_OUT, 4, 0)),
        (GOOD[:2] + GOOD[3:], wrong(25, Mistake.LEFT_OUT, 1, 0)),
        (GOOD[:3], wrong(30, Mistake.LEFT_OUT, 15, 0)),
        ([], wrong(0, Mistake.LEFT_OUT, 21, 0)),
        ([row(0), row(5, 20, 3), *GOOD[2:]], wrong(5, Mistake.TOO_FEW, 4, 3)),
        ([row(0), row(5, 20, 5), *GOOD[2:]], wrong(5, Mistake.TOO_MANY, 4, 5)),
        ([row(0), row(3), *GOOD[1:]], wrong(3, Mistake.NO_SLOT, 0, 1)),
        ([row(0), row(6), row(10, 100, 19)], wrong(5, Mistake.LEFT_OUT, 1, 0)),
        ([*GOOD[:3], row(30, 95, 15)], wrong(30, Mistake.TOO_MANY, 14, 15)),
        ([row(0), row(25, 50, 10), row(55, 100, 10)], wrong(5, Mistake.LEFT_OUT, 4, 0)),
        ([row(0), row(4, 20, 4), *GOOD[2:]], wrong(4, Mistake.NO_SLOT, 4, 4)),
        ([row(0), row(5, 21, 4), *GOOD[2:]], wrong(21, Mistake.NO_SLOT, 4, 4)),
        ([row(0), row(5, 20, 4), row(15, 25, 3), row(30, 100, 15)], wrong(15, Mistake.TWICE, 1, 3)),
        ([*GOOD, row(105)], wrong(105, Mistake.ABOVE, 0, 1)),
        ([*GOOD[:3], row(30, 105, 16)], wrong(105, Mistake.ABOVE, 0, 16)),
    ],
)
def test_the_first_place_that_does_not_come_out_is_named(rows: list[Covered], found: Discrepancy) -> None:
    assert reckoned(rows).wrong == found


@pytest.mark.parametrize(
    ("stretch", "mistake"),
    [
        (row(5, 1500, 299), Mistake.TOO_FEW),
        (row(5, 1500, 301), Mistake.TOO_MANY),
        (row(4, 1500, 300), Mistake.NO_SLOT),
        (row(5, 1501, 300), Mistake.NO_SLOT),
        (row(10, 1500, 299), Mistake.LEFT_OUT),
        (row(5, 1495, 299), Mistake.LEFT_OUT),
        (row(5, 9000, 1800), Mistake.ABOVE),
    ],
)
def test_a_stretch_that_is_too_long_to_walk_is_held_to_the_same(stretch: Covered, mistake: Mistake) -> None:
    found = reckoned([LONG[0], stretch, LONG[2]], until=5 * 301).wrong
    assert found is not None
    assert found.mistake is mistake


def test_a_row_over_the_beginning_moves_it() -> None:
    assert reckoned([row(-20, 10, 99), row(15)], since=0, until=15) == Reckoning(at(10), at(15), 1, None)


def test_a_row_right_behind_the_beginning_may_have_slots_from_before_it() -> None:
    cut = Covered(Instant(at(0) + 1), at(10), 99)
    assert reckoned([cut, row(15)], since=0, until=15) == Reckoning(at(10), at(15), 1, None)


@pytest.mark.parametrize(
    ("over", "found"),
    [
        (row(-20, 10, 1), wrong(-20, Mistake.TOO_FEW, 2, 1)),
        (row(-20, 11, 9), wrong(11, Mistake.NO_SLOT, 2, 9)),
        (row(-20, 200, 99), wrong(200, Mistake.ABOVE, 0, 99)),
    ],
)
def test_a_row_over_the_beginning_has_at_least_what_lies_behind_it(over: Covered, found: Discrepancy) -> None:
    assert reckoned([over], since=0, until=100).wrong == found


@pytest.mark.parametrize(("since", "until"), [(50, 50), (60, 50)])
def test_an_account_that_has_not_begun_has_no_slots_and_no_rows(since: int, until: int) -> None:
    assert reckoned([], since=since, until=until) == Reckoning(at(since), at(since), 0, None)
    assert reckoned([row(65)], since=since, until=until).wrong == wrong(65, Mistake.ABOVE, 0, 1)


# --- random lives with random damage ------------------------------------------------------------------

SCHEDULES: Final = [
    ("every 7m", "UTC"),
    ("*/20 * * * *", "Europe/Berlin"),
    ("30 */2 * * *", "America/New_York"),
    ("15,45 0-4 * * *", "Europe/Berlin"),
    ("0,30 0-5 * * *", "Australia/Lord_Howe"),
    ("30 2 * * *", "Europe/Berlin"),
    ("5 0 * * *", "Asia/Beirut"),
]
DAYS: Final = [parse_instant(f"2026-{day}T00:00:00Z") for day in ("03-07", "03-28", "04-04", "10-03", "10-24", "10-31")]


def told_once(timetable: Timetable, since: Instant, until: Instant, random: Random) -> list[Covered]:
    """Rows that tell of each slot once, found by search: single ones and stretches."""
    rows, slot = [], timetable.next_after(since)
    while slot is not None and slot <= until:
        told, most = [slot], random.choice([1, 1, 1, 2, 5, 40, 140])
        slot = timetable.next_after(slot)
        while slot is not None and slot <= until and len(told) < most:
            told.append(slot)
            slot = timetable.next_after(slot)
        rows.append(Covered(told[0], told[-1], len(told)))
    return rows


def damaged(rows: list[Covered], random: Random) -> list[Covered]:
    """The same after something was done to a row or two, with what the schema forbids left out."""
    rows = list(rows)
    for _ in range(random.choice([1, 1, 2])):
        number = random.randrange(len(rows))
        each, span = rows[number], random.choice([1, SECOND, MINUTE, 5 * MINUTE, 7 * MINUTE, 60 * MINUTE, 2 * DAY])
        by = random.choice([-span, span])
        other = rows[random.randrange(len(rows))]
        changed = random.choice(
            [
                None,
                Covered(Instant(each.slot + by), Instant(each.until + by), each.count),
                replace(each, slot=Instant(each.slot + by)),
                replace(each, until=Instant(each.until + by)),
                replace(each, count=each.count + random.choice([-2, -1, 1, 2])),
                replace(each, until=other.until),
                replace(each, slot=other.slot, count=other.count),
                Covered(each.slot, other.until, each.count + other.count),
            ]
        )
        if random.random() < 0.2 and changed is not None:
            rows.append(changed)
        else:
            rows[number : number + 1] = [] if changed is None else [changed]
        if not rows:
            break
    sound = [each for each in rows if each.count >= 1 and (each.count == 1) == (each.slot == each.until)]
    return sorted((each for each in sound if each.slot <= each.until), key=lambda each: (each.until, each.slot))


def comes_out(timetable: Timetable, since: Instant, until: Instant, rows: list[Covered]) -> bool:
    """Whether the rows tell of each slot once, found by search and by the definition."""
    before = since
    for each in rows:
        slots, slot = [], timetable.next_after(before)
        while slot is not None and slot <= each.until:
            slots.append(slot)
            slot = timetable.next_after(slot)
        if not slots or (slots[0], slots[-1], len(slots)) != (each.slot, each.until, each.count):
            return False
        before = each.until
    left = timetable.next_after(before)
    return before <= until and (left is None or left > until)


@settings(max_examples=60)
@given(st.sampled_from(SCHEDULES), st.sampled_from(DAYS), st.integers(0, 3600), st.randoms(use_true_random=False))
def test_all_damage_is_found_and_nothing_else(
    schedule: tuple[str, str], day: Instant, later: int, random: Random
) -> None:
    timetable = Timetable(parse_schedule(schedule[0]), zone_named(schedule[1]))
    since = Instant(day + later * SECOND)
    until = Instant(since + random.choice([1, 3, 5]) * DAY)
    rows = told_once(timetable, since, until, random)
    assert reckon(timetable, since, until, rows) == Reckoning(since, until, sum(each.count for each in rows), None)
    for _ in range(10):
        broken = [each for each in damaged(rows, random) if each.until > since]
        if any(each.slot <= since + 1 for each in broken):
            continue
        found = reckon(timetable, since, until, broken).wrong
        assert (found is None) == comes_out(timetable, since, until, broken), (broken, found)


@settings(max_examples=20)
@given(st.randoms(use_true_random=False))
def test_many_rows_that_moved_are_found_wherever_they_lie(random: Random) -> None:
    rows = [Covered(slot, slot, 1) for slot in islice(EVERY_FIVE.slots_between(at(-1), at(10**6)), 5000)]
    number = random.randrange(5000)
    moved = Instant(rows[number].slot + random.choice([-1, 1, SECOND, -SECOND, 5 * MINUTE // 2]))
    rows[number] = Covered(moved, moved, 1)
    found = reckon(EVERY_FIVE, at(-1), at(5 * 4999), rows).wrong
    assert found is not None
    assert found.slot in (moved, at(5 * number))


@pytest.mark.parametrize("schedule", [("* * * * *", "Europe/Berlin"), ("every 1m", "UTC")])
def test_a_hundred_thousand_rows_take_little_time(schedule: tuple[str, str]) -> None:
    timetable = Timetable(parse_schedule(schedule[0]), zone_named(schedule[1]))
    slots = list(islice(timetable.slots_between(DAYS[0], Instant(DAYS[0] + 90 * DAY)), 100_000))
    rows = [Covered(slot, slot, 1) for slot in slots]
    began = process_time()
    assert reckon(timetable, DAYS[0], slots[-1], rows).slots == 100_000
    assert process_time() - began < 1
