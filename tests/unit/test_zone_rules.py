"""The rules of a zone as a text: the same where it has the same, another one where it has others."""

import pytest

from ankita_agent.core.instants import Instant, parse_instant
from ankita_agent.core.zone_rules import AHEAD, Ruled, renewed, ruled, rules_of
from ankita_agent.core.zones import LATEST, start_of

BERLIN = "2026-2026 1767225600+3600 1774746000+7200 1792890000+3600"
NOW = parse_instant("2026-11-30T00:00:00Z")


def test_the_rules_are_the_years_and_each_change_of_the_offset_in_them() -> None:
    assert rules_of("Europe/Berlin", 2026, 2026) == BERLIN
    assert rules_of("UTC", 2026, 2028) == "2026-2028 1767225600+0"
    assert rules_of("Asia/Kolkata", 1969, 1969) == "1969-1969 -31536000+19800"
    assert rules_of("Mars/Olympus", 2026, 2026) is None


def test_a_text_of_these_rules_is_about_its_years() -> None:
    assert ruled("Europe/Berlin", BERLIN) == Ruled(start_of(2026), start_of(2027))


@pytest.mark.parametrize(
    ("timezone", "rules"),
    [
        ("America/New_York", BERLIN),
        ("Mars/Olympus", BERLIN),
        ("Europe/Berlin", BERLIN.replace("1774746000", "1774746001")),
        ("Europe/Berlin", BERLIN.replace("2026-2026", "2026-2027")),
        ("Europe/Berlin", BERLIN.replace("2026-2026", "2027-2026")),
        ("Europe/Berlin", f"{BERLIN} "),
        ("Europe/Berlin", f"{BERLIN}\n"),
        ("Europe/Berlin", ""),
        ("Europe/Berlin", "abc"),
        ("Europe/Berlin", "0000-9999 0+0"),
        ("Europe/Berlin", "1801-9898 0+0"),
        ("Europe/Berlin", "9899-9899 0+0"),
    ],
)
def test_other_rules_and_what_is_none_are_about_nothing(timezone: str, rules: str) -> None:
    assert ruled(timezone, rules) is None


def test_rules_that_are_still_so_go_on_and_keep_a_year_that_is_past() -> None:
    first, goes_on = renewed("Europe/Berlin", "", NOW)
    assert (first, goes_on) == (rules_of("Europe/Berlin", 2026, 2026 + AHEAD), False)
    assert renewed("Europe/Berlin", first, NOW) == (first, True)
    later = parse_instant("2027-02-01T00:00:00Z")
    assert renewed("Europe/Berlin", first, later) == (rules_of("Europe/Berlin", 2026, 2027 + AHEAD), True)
    latest = parse_instant("2028-02-01T00:00:00Z")
    assert renewed("Europe/Berlin", first, latest) == (rules_of("Europe/Berlin", 2027, 2028 + AHEAD), True)


@pytest.mark.parametrize("now", ["1975-01-01T00:00:00Z", "2025-12-31T23:59:59Z", "2029-01-01T00:00:00Z"])
def test_rules_that_say_nothing_about_now_do_not_go_on(now: str) -> None:
    first, _ = renewed("Europe/Berlin", "", NOW)
    assert renewed("Europe/Berlin", first, parse_instant(now))[1] is False


@pytest.mark.parametrize("now", [Instant(-(10**30)), Instant(0), LATEST, Instant(10**30)])
def test_a_clock_that_is_far_off_still_has_rules(now: Instant) -> None:
    rules, _ = renewed("Europe/Berlin", "", now)
    assert rules_of("Europe/Berlin", int(rules[:4]), int(rules[5:9])) == rules


def test_a_zone_that_is_not_known_here_has_no_rules_to_keep() -> None:
    assert renewed("Mars/Olympus", "", NOW) == ("", False)
