"""Our slots against cronsim, which has Debian's semantics, at every change of the clocks in ten years.

Intended differences, each with a test of its own here:

* cronsim looks for the next hour in leaps of an hour of real time, so after a change by half an hour (Lord
  Howe) or by an odd number of minutes (Casey, 2020) it leaps over matches of a rhythm. There we are compared
  with a walk over each minute instead.
* asked from within the second pass of a repeated hour, cronsim answers a fixed-time expression with the first
  pass, which is over.
* it reads `5-5/10` as 5-59/10; to crontab(5) and to us that is 5.
* it reads `*/7` as day of week, `5/10` and a sixth field; our grammar refuses them (test_cron_grammar.py).
"""

import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from cronsim import CronSim
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ankita_agent.core.instants import DAY, HOUR, MINUTE, Instant, instant_of, parse_instant, utc_datetime
from ankita_agent.core.schedule import ScheduleError, Timetable, parse_schedule
from ankita_agent.core.zones import zone_named

ZONES = """
    Africa/Cairo Africa/Casablanca Africa/El_Aaiun Africa/Juba America/Adak America/Asuncion America/Godthab
    America/Havana America/Mexico_City America/New_York America/Sao_Paulo America/Santiago America/St_Johns
    America/Scoresbysund Antarctica/Casey Antarctica/Troll Asia/Amman Asia/Beirut Asia/Gaza Asia/Jerusalem
    Asia/Kolkata Asia/Tehran Atlantic/Azores Australia/Adelaide Australia/Lord_Howe Australia/Sydney
    Europe/Berlin Europe/Chisinau Europe/Dublin Europe/Lisbon Europe/London Europe/Volgograd Pacific/Apia
    Pacific/Auckland Pacific/Chatham Pacific/Easter Pacific/Fiji UTC
""".split()  # noqa: SIM905
FIXED = (
    *("30 2 * * *", "0 0 * * *", "0,30 0-3 * * *", "30 1-4 * * *", "0 3,4 * * *", "59 23 * * 6,0"),
    *("10 1 L * *", "5-59/20 0-23 * * sun", "0 0-23 1,15 * fri"),
)
RHYTHMS = ("*/30 * * * *", "*/30 2 * * *", "15 */2 * * *", "*/20 0 * * *", "7 * * * *", "30 */3 * * 0-6")
NOT_WHOLE_HOURS = ("Australia/Lord_Howe", "Antarctica/Casey")


def changes_of(key: str, start: str = "2020-01-01T00:00:00Z", end: str = "2030-01-01T00:00:00Z") -> Iterator[Instant]:
    zone = zone_named(key)
    segment = zone.segment_at(parse_instant(start))
    while segment.end < parse_instant(end):
        following = zone.segment_at(segment.end)
        if following.offset != segment.offset:
            yield following.start
        segment = following


def cronsims_slots(text: str, key: str, after: Instant, until: Instant) -> list[Instant]:
    slots = []
    for moment in CronSim(text, utc_datetime(after).astimezone(zoneinfo.ZoneInfo(key))):
        slot = instant_of(moment.astimezone(UTC))
        if slot > until:
            break
        slots.append(slot)
    return slots


def walked_slots(text: str, key: str, after: Instant, until: Instant) -> list[Instant]:
    """Each minute whose local reading matches: what a rhythm is."""
    fields = CronSim(text, datetime(2026, 1, 1))
    slots = []
    for instant in range(after // MINUTE * MINUTE + MINUTE, until + 1, MINUTE):
        local = utc_datetime(Instant(instant)).astimezone(zoneinfo.ZoneInfo(key))
        in_time = local.minute in fields.minutes and local.hour in fields.hours
        if in_time and local.month in fields.months and fields.match_day(local):
            slots.append(Instant(instant))
    return slots


def our_slots(text: str, key: str, after: Instant, until: Instant) -> list[Instant]:
    """Ours, listed; that by searching forwards and backwards and by counting they are the same is asserted."""
    table = Timetable(parse_schedule(text), zone_named(key))
    listed = list(table.slots_between(after, until))
    assert table.count_between(after, until) == len(listed)
    forwards, slot = [], table.next_after(after)
    while slot is not None and slot <= until:
        forwards.append(slot)
        slot = table.next_after(slot)
    assert forwards == listed
    backwards, slot = [], table.latest_until(until)
    while slot is not None and slot > after:
        backwards.append(slot)
        slot = table.latest_until(Instant(slot - 1))
    assert backwards[::-1] == listed
    return listed


@pytest.mark.parametrize("key", ZONES)
def test_slots_around_each_change_of_the_clocks_are_cronsims(key: str) -> None:
    texts = FIXED if key in NOT_WHOLE_HOURS else FIXED + RHYTHMS
    for number, change in enumerate(changes_of(key)):
        after, until = Instant(change - 7 * HOUR), Instant(change + 26 * HOUR)
        for text in texts[number % 3 :: 3]:
            assert our_slots(text, key, after, until) == cronsims_slots(text, key, after, until), text


@pytest.mark.parametrize("key", [*NOT_WHOLE_HOURS, "Antarctica/Troll", "America/Havana", "Europe/Dublin"])
def test_a_rhythm_around_a_change_of_the_clocks_is_each_minute_that_matches(key: str) -> None:
    for change in list(changes_of(key))[:6]:
        after, until = Instant(change - 5 * HOUR), Instant(change + 5 * HOUR)
        for text in (*RHYTHMS, "* * * * *"):
            assert our_slots(text, key, after, until) == walked_slots(text, key, after, until), text


def test_the_zones_shift_by_half_an_hour_an_hour_and_two_and_by_other_minutes() -> None:
    shifts = set()
    for key in ZONES:
        zone = zone_named(key)
        for change in changes_of(key):
            shifts.add(abs(zone.segment_at(change).offset - zone.segment_at(Instant(change - 1)).offset) // MINUTE)
    assert {30, 60, 120} <= shifts
    assert len(ZONES) > 30


def test_the_day_that_samoa_skipped_is_cronsims_too() -> None:
    after, until = parse_instant("2011-12-28T00:00:00Z"), parse_instant("2012-01-02T00:00:00Z")
    for text in (*FIXED, *RHYTHMS, "0 8 * * *", "0 8 30 * *", "0 8 * * fri"):
        ours = our_slots(text, "Pacific/Apia", after, until)
        assert ours == cronsims_slots(text, "Pacific/Apia", after, until), text


def test_from_within_the_second_pass_cronsim_goes_back_to_the_first_and_we_do_not() -> None:
    second_pass = parse_instant("2026-10-25T01:10:00Z")
    until = parse_instant("2026-10-26T12:00:00Z")
    theirs = cronsims_slots("30 2 * * *", "Europe/Berlin", second_pass, until)
    ours = our_slots("30 2 * * *", "Europe/Berlin", second_pass, until)
    assert theirs == [parse_instant("2026-10-25T00:30:00Z"), parse_instant("2026-10-26T01:30:00Z")]
    assert ours == theirs[1:]


def values(low: int, high: int) -> st.SearchStrategy[str]:
    """A field: `*`, a step on it, or a list of values, ranges and ranges with a step."""
    number = st.integers(low, high)
    pair = st.tuples(number, number).map(sorted)
    step = st.integers(1, high - low)
    items = st.one_of(
        number.map(str),
        pair.map(lambda ends: f"{ends[0]}-{ends[1]}"),
        st.tuples(pair, step)
        .filter(lambda drawn: drawn[0][0] < drawn[0][1])
        .map(lambda drawn: f"{drawn[0][0]}-{drawn[0][1]}/{drawn[1]}"),
    )
    lists = st.lists(items, min_size=1, max_size=3).map(",".join)
    star = st.one_of(st.just("*"), step.map(lambda every: f"*/{every}"))
    return st.one_of(star, lists, st.tuples(star, lists).map(",".join))


WEEKDAYS = st.one_of(
    values(0, 6),
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["fri", "0", "7", "tue"]), st.integers(1, 5)).map(lambda d: f"{d[0]}#{d[1]}"),
            st.integers(0, 7).map(lambda day: f"{day}L"),
            st.integers(0, 7).map(str),
        ),
        min_size=1,
        max_size=3,
    ).map(",".join),
)
MONTH_DAYS = st.one_of(values(1, 31), st.just("L"), values(1, 31).map(lambda days: f"{days},L"))
EXPRESSIONS = st.tuples(values(0, 59), values(0, 23), MONTH_DAYS, values(1, 12), WEEKDAYS).map(" ".join)


def first_slots(text: str, key: str, after: Instant) -> tuple[list[Instant], list[Instant]]:
    """Our first four slots and cronsim's, or a rejected example when the expression never comes."""
    try:
        table = Timetable(parse_schedule(text), zone_named(key))
    except ScheduleError as refused:
        assert "never comes" in refused.problem  # noqa: PT017
        assume(False)
    ours: list[Instant] = []
    for _ in range(4):
        slot = table.next_after(ours[-1] if ours else after)
        assert slot is not None
        ours.append(slot)
    theirs = CronSim(text, utc_datetime(after).astimezone(zoneinfo.ZoneInfo(key)))
    return ours, [instant_of(next(theirs).astimezone(UTC)) for _ in ours]


@settings(derandomize=True, database=None, deadline=None, max_examples=400)
@given(text=EXPRESSIONS, start=st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC)))
def test_any_expression_has_cronsims_slots_where_no_clock_is_changed(text: str, start: datetime) -> None:
    ours, theirs = first_slots(text, "UTC", instant_of(start))
    assert ours == theirs


ALL_CHANGES = [(key, at) for key in ZONES if key not in NOT_WHOLE_HOURS for at in changes_of(key)]


@settings(derandomize=True, database=None, deadline=None, max_examples=400)
@given(
    text=st.one_of(
        EXPRESSIONS,
        st.tuples(values(0, 59), values(0, 4), st.sampled_from(["* * *", "* * sun", "1-7 * */2"])).map(" ".join),
    ),
    change=st.sampled_from(ALL_CHANGES),
    before=st.integers(4 * HOUR, 2 * DAY),
)
def test_any_expression_has_cronsims_slots_where_clocks_are_changed(
    text: str, change: tuple[str, Instant], before: int
) -> None:
    key, at = change
    ours, theirs = first_slots(text, key, Instant(at - before))
    assert ours == theirs


@settings(derandomize=True, database=None, deadline=None, max_examples=150)
@given(text=EXPRESSIONS, start=st.integers(0, 130 * 366 * DAY).map(Instant))
def test_any_expression_is_counted_over_years_as_it_is_walked(text: str, start: Instant) -> None:
    try:
        table = Timetable(parse_schedule(text), zone_named("Europe/Berlin"))
    except ScheduleError:
        assume(False)
    slots = [start]
    for _ in range(25):
        slot = table.next_after(slots[-1])
        assert slot is not None
        slots.append(slot)
    assert table.count_between(start, slots[-1]) == 25
    assert table.latest_until(Instant(slots[-1] - 1)) == slots[-2]
