"""Durations as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ankita_agent.core.durations import LONGEST, approximate, format_duration, parse_duration
from ankita_agent.core.instants import DAY, HOUR, MILLISECOND, MINUTE, SECOND


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("90s", 90 * SECOND),
        ("30m", 30 * MINUTE),
        ("2h", 2 * HOUR),
        ("1d", DAY),
        ("1h30m", 90 * MINUTE),
        ("1h 30m", 90 * MINUTE),
        ("250ms", 250 * MILLISECOND),
        ("0s", 0),
    ],
)
def test_numbers_with_units_are_read(text: str, span: int) -> None:
    assert parse_duration(text) == span


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("90", "write `90s`, `90m` or `90h`"),
        ("-5m", "negative"),
        ("5 minutes", "not a duration"),
        ("", "not a duration"),
        ("1.5h", "not a duration"),
        ("5M", "not a duration"),
        ("400d", "longer than a year"),
        ("9" * 5000 + "d", "not a duration"),
        ("999999999999d", "longer than a year"),
    ],
)
def test_everything_else_is_refused_with_what_to_write(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        parse_duration(text)


@given(st.integers(0, LONGEST // MILLISECOND))
def test_what_is_written_reads_back_as_the_same(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds * MILLISECOND)) == milliseconds * MILLISECOND


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (0, "0s"),
        (350 * MILLISECOND, "350ms"),
        (12 * SECOND + 350 * MILLISECOND, "12s"),
        (2 * HOUR + 5 * MINUTE + 7 * SECOND, "2h 5m"),
        (3 * DAY + 4 * HOUR, "3d 4h"),
        (-90 * SECOND, "-1m 30s"),
    ],
)
def test_a_span_is_told_by_its_two_largest_units(span: int, text: str) -> None:
    assert approximate(span) == text
