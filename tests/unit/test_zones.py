"""Zones as segments: every change of the offset, and nothing but changes."""

import zoneinfo
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ankita_agent.core.instants import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Instant,
    format_instant,
    instant_of,
    parse_instant,
)
from ankita_agent.core.zones import EARLIEST, LATEST, Segment, UnknownZone, zone_named


def segments(key: str, start: str, end: str) -> list[Segment]:
    zone, at, found = zone_named(key), parse_instant(start), []
    while at < parse_instant(end):
        found.append(zone.segment_at(at))
        at = found[-1].end
    return found


def changes(key: str, start: str, end: str) -> list[tuple[str, int]]:
    """(instant, seconds by which the clocks are put forward) of each change between the two instants."""
    found = segments(key, start, end)
    return [
        (format_instant(after.start), (after.offset - before.offset) // SECOND)
        for before, after in pairwise(found)
        if after.offset != before.offset
    ]


@pytest.mark.parametrize(
    ("key", "year", "expected"),
    [
        ("Europe/Berlin", 2026, [("2026-03-29T01:00:00Z", 3600), ("2026-10-25T01:00:00Z", -3600)]),
        ("Australia/Lord_Howe", 2026, [("2026-04-04T15:00:00Z", -1800), ("2026-10-03T15:30:00Z", 1800)]),
        ("Antarctica/Troll", 2026, [("2026-03-29T01:00:00Z", 7200), ("2026-10-25T01:00:00Z", -7200)]),
        ("Africa/Casablanca", 2026, [("2026-02-15T02:00:00Z", -3600), ("2026-03-22T02:00:00Z", 3600)]),
        ("Europe/Dublin", 2026, [("2026-03-29T01:00:00Z", 3600), ("2026-10-25T01:00:00Z", -3600)]),
        ("Pacific/Apia", 2011, [
            ("2011-04-02T14:00:00Z", -3600), ("2011-09-24T14:00:00Z", 3600), ("2011-12-30T10:00:00Z", 86_400),
        ]),
        ("America/Recife", 2000, [
            ("2000-02-27T02:00:00Z", -3600), ("2000-10-08T03:00:00Z", 3600), ("2000-10-15T02:00:00Z", -3600),
        ]),
        ("Africa/Monrovia", 1972, [("1972-01-07T00:44:30Z", 2670)]),
        ("Europe/Paris", 1911, [("1911-03-10T23:50:39Z", -561)]),
        ("Asia/Tokyo", 2026, []),
        ("UTC", 2026, []),
    ],
)  # fmt: skip
def test_every_change_of_the_clocks_is_found_to_the_second(
    key: str, year: int, expected: list[tuple[str, int]]
) -> None:
    assert changes(key, f"{year}-01-01T00:00:00Z", f"{year + 1}-01-01T00:00:00Z") == expected


def test_a_segment_knows_which_readings_are_skipped_and_which_are_shown_again() -> None:
    zone = zone_named("Europe/Berlin")
    spring = zone.segment_at(parse_instant("2026-03-29T01:00:00Z"))
    assert spring.read_until == spring.reading_at(spring.start) - HOUR == parse_instant("2026-03-29T02:00:00Z")
    autumn = zone.segment_at(parse_instant("2026-10-25T01:00:00Z"))
    assert autumn.read_until == autumn.first + HOUR == parse_instant("2026-10-25T03:00:00Z")
    winter = zone.segment_at(parse_instant("2027-01-01T00:00:00Z"))
    assert winter.read_until == winter.first


def test_segments_follow_each_other_without_hole_or_overlap() -> None:
    found = segments("Africa/Casablanca", "1900-01-01T00:00:00Z", "2200-01-01T00:00:00Z")
    assert all(before.end == after.start for before, after in pairwise(found))
    assert all(before.end + before.offset <= after.read_until for before, after in pairwise(found))


@pytest.mark.parametrize("key", ["Europe/Riga", "Africa/Freetown", "Asia/Gaza", "America/Boa_Vista"])
def test_two_changes_are_never_so_close_that_a_day_could_hold_both(key: str) -> None:
    starts = [parse_instant(at) for at, _ in changes(key, "1900-01-01T00:00:00Z", "2090-01-01T00:00:00Z")]
    assert min(later - earlier for earlier, later in pairwise(starts)) > 3 * DAY


@settings(derandomize=True, database=None, deadline=None, max_examples=300)
@given(
    key=st.sampled_from(sorted(zoneinfo.available_timezones())),
    moment=st.datetimes(datetime(1850, 1, 1), datetime(2250, 1, 1), timezones=st.just(UTC)),
)
def test_the_offset_of_a_segment_is_zoneinfos_at_its_edges_and_within(key: str, moment: datetime) -> None:
    instant = instant_of(moment)
    segment = zone_named(key).segment_at(instant)
    assert segment.start <= instant < segment.end
    for at in (segment.start, instant, segment.end - SECOND):
        local = datetime.fromtimestamp(at // SECOND, zoneinfo.ZoneInfo(key))
        reading = segment.reading_at(Instant(at)) // SECOND * SECOND
        assert reading == parse_instant(f"{local:%Y-%m-%dT%H:%M:%S}Z")


@pytest.mark.parametrize("instant", [-(10**22), EARLIEST - 1, EARLIEST, 0, LATEST - 1, LATEST, 10**22])
def test_any_instant_however_far_is_in_a_segment(instant: int) -> None:
    segment = zone_named("America/New_York").segment_at(Instant(instant))
    assert segment.start <= instant < segment.end
    assert -6 * HOUR < segment.offset < -3 * HOUR


def test_utc_is_known_and_a_zone_is_made_once() -> None:
    assert zone_named("UTC").segment_at(Instant(0)).offset == 0
    assert zone_named("Europe/Berlin") is zone_named("Europe/Berlin")
    assert zone_named("Europe/Berlin").key == "Europe/Berlin"


@pytest.mark.parametrize(
    ("key", "fix"),
    [
        ("Europe/Berln", "write `Europe/Berlin`"),
        ("europe/berlin", "write `Europe/Berlin`"),
        ("Berlin", "write `Europe/Berlin`"),
        ("new york", "write `America/New_York`"),
        ("utc", "write `UTC`"),
        (" Europe/Berlin", "write `Europe/Berlin`"),
        ("UTC+2", "a zone is named after a place, not after its offset: write `Europe/Berlin`"),
        ("+02:00", "a zone is named after a place, not after its offset: write `Europe/Berlin`"),
        ("qqq", "write a name of the IANA database, as in `Europe/Berlin` or `UTC`"),
    ],
)
def test_an_unknown_zone_is_answered_with_the_nearest(key: str, fix: str) -> None:
    with pytest.raises(UnknownZone) as refused:
        zone_named(key)
    assert (refused.value.problem, refused.value.fix) == (f"no time zone is named {key!r}", fix)


NOT_ZONES = (
    *(".", "..", "../x", "/etc/passwd", "Europe", "Europe/", "Europe//Berlin", "Europe/../UTC", "Zürich", ""),
    *("right/Europe/Berlin", "posix/UTC", "tzdata.zi", "zone.tab", "a\0b", "x" * 5000, "Europe/Berlin\n"),
)


@pytest.mark.parametrize("key", NOT_ZONES)
def test_a_name_that_is_no_zones_is_refused_and_opens_nothing(key: str) -> None:
    with pytest.raises(UnknownZone, match="no time zone is named"):
        zone_named(key)


def test_local_time_for_people_names_the_abbreviation() -> None:
    moment = zone_named("Europe/Berlin").datetime_at(Instant(parse_instant("2026-10-25T00:30:00Z") + 5 * MINUTE))
    assert f"{moment:%H:%M %Z}" == "02:35 CEST"
