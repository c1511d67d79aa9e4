"""Slots counted against rows: where the sum can be made, and where it does not come out."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ankita_agent.core.instants import MINUTE, Instant
from ankita_agent.core.reckoning import Discrepancy, Reckoning, reckon
from ankita_agent.core.rows import Covered
from ankita_agent.core.schedule import Timetable, parse_schedule
from ankita_agent.core.zones import zone_named
from tests.ledgers import at

EVERY_FIVE = Timetable(parse_schedule("every 5m"), zone_named("UTC"))


def row(slot: int, until: int | None = None, count: int = 1) -> Covered:
    """A row from one minute to another."""
    return Covered(at(slot), at(slot if until is None else until), count)


def reckoned(rows: list[Covered], since: int = -1, until: int = 100, most: int = 1000) -> Reckoning:
    """The reckoning of those rows."""
    return reckon(EVERY_FIVE, at(since), at(until), rows, most)


def wrong(slot: int, left_out: bool, by_schedule: int, by_rows: int) -> Discrepancy:
    """A discrepancy at that minute."""
    return Discrepancy(at(slot), left_out, by_schedule, by_rows)


GOOD = [row(0), row(5, 20, 4), row(25), row(30, 100, 15)]


def test_rows_that_cover_each_slot_once_come_out() -> None:
    assert reckoned(GOOD) == Reckoning(at(-1), at(100), 21, None)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (GOOD[1:], wrong(0, True, 5, 4)),
        ([GOOD[0], *GOOD[2:]], wrong(5, True, 5, 1)),
        (GOOD[:2] + GOOD[3:], wrong(25, True, 16, 15)),
        (GOOD[:3], wrong(30, True, 15, 0)),
        ([], wrong(0, True, 21, 0)),
        ([row(0), row(5, 20, 3), *GOOD[2:]], wrong(5, True, 4, 3)),
        ([row(0), row(5, 20, 5), *GOOD[2:]], wrong(5, False, 4, 5)),
        ([row(0), row(3), *GOOD[1:]], wrong(3, False, 0, 1)),
        ([row(0), row(6), row(10, 100, 19)], wrong(5, True, 1, 1)),
        ([*GOOD[:3], row(30, 95, 15)], wrong(30, False, 14, 15)),
    ],
)
def test_the_first_slot_that_does_not_come_out_is_named(rows: list[Covered], found: Discrepancy) -> None:
    assert reckoned(rows).wrong == found


def test_a_row_over_the_beginning_moves_it_and_one_over_the_end_moves_that() -> None:
    found = reckoned([row(-20, 10, 99), row(15), row(20, 40, 99)], since=0, until=30)
    assert found == Reckoning(at(10), Instant(at(20) - 1), 1, None)


def test_a_row_right_behind_the_beginning_may_have_slots_from_before_it() -> None:
    cut = Covered(Instant(at(0) + 1), at(10), 99)
    assert reckoned([row(0), cut, row(15)], since=0, until=15) == Reckoning(at(10), at(15), 1, None)


def test_what_lies_before_the_beginning_or_behind_the_end_does_not_count() -> None:
    assert reckoned([row(-7), row(0), row(5), row(11), row(12)], since=-1, until=9).wrong is None


@pytest.mark.parametrize(("since", "until"), [(50, 50), (60, 50)])
def test_an_account_that_has_not_begun_has_no_slots(since: int, until: int) -> None:
    assert reckoned([row(55)], since=since, until=until) == Reckoning(at(since), at(since), 0, None)


def test_a_row_over_the_whole_account_leaves_nothing_to_reckon() -> None:
    assert reckoned([row(-20, 200, 3)]).slots == 0


@settings(max_examples=30)
@given(st.integers(0, 299), st.integers(1, 400))
def test_a_row_that_is_missing_among_many_is_found_by_few_sums(missing: int, most: int) -> None:
    rows = [row(5 * number) for number in range(300) if number != missing]
    found = reckoned(rows, until=5 * 299, most=most).wrong
    assert found is not None
    assert (found.slot, found.left_out) == (at(5 * missing), True)


@settings(max_examples=20)
@given(
    st.sets(st.integers(0, 59), min_size=1, max_size=12),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Tehran"]),
)
def test_slots_over_a_change_of_the_clocks_come_out(minutes: set[int], zone: str) -> None:
    text = f"{','.join(map(str, sorted(minutes)))} */2 * * *"
    timetable = Timetable(parse_schedule(text), zone_named(zone))
    start = Instant(1_792_800_000 * 1_000_000_000)  # 2026-10-24, before the change
    slots = list(timetable.slots_between(start, Instant(start + 3 * 24 * 60 * MINUTE)))
    rows = [Covered(slot, slot, 1) for slot in slots]
    assert reckon(timetable, start, slots[-1], rows, 50).wrong is None
