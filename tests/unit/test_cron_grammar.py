"""Our cron grammar: what it reads, what it refuses, and what it says then."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ankita_agent.core.cron import ScheduleError, parse_cron, write_cron
from ankita_agent.core.fields import LAST


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("*/5 * * * *", "*/5 * * * *"),
        ("*/1 * * * *", "* * * * *"),
        ("0,1,2,3,4 8 * * *", "0-4 8 * * *"),
        ("5-55/10 * * * *", "5-55/10 * * * *"),
        ("05 08 01 01 *", "5 8 1 1 *"),
        ("0 8 * JAN,feb Mon-Fri", "0 8 * 1,2 1-5"),
        ("0 8 * * 7", "0 8 * * 0"),
        ("0 8 * * 5-7", "0 8 * * 0,5,6"),
        ("0 8 * * 0-7", "0 8 * * 0-6"),
        ("0 8 * * sun,7,0", "0 8 * * 0"),
        ("0 8 L * *", "0 8 L * *"),
        ("0 8 l,15 * *", "0 8 15,L * *"),
        ("0 8 * * 5L", "0 8 * * 5L"),
        ("0 8 * * friL,mon", "0 8 * * 1,5L"),
        ("0 8 * * fri#2,5#4", "0 8 * * 5#2,5#4"),
        ("*/20,7 8 * * *", "*/20,7 8 * * *"),
        ("7,*/20 8 * * *", "0,7,20,40 8 * * *"),
        ("\t0   8 * *\n*  ", "0 8 * * *"),
    ],
)
def test_an_expression_has_one_canonical_text(text: str, canonical: str) -> None:
    assert write_cron(parse_cron(text)) == canonical
    assert parse_cron(canonical) == parse_cron(text)


def test_a_leading_star_has_a_meaning_of_its_own() -> None:
    assert parse_cron("*/30 2 * * *") != parse_cron("0,30 2 * * *")
    assert not parse_cron("*/30 2 * * *").fixed_time
    assert not parse_cron("30 */2 * * *").fixed_time
    assert parse_cron("0,30 2 * * *").fixed_time
    assert parse_cron("0-59 0-23 * * *").fixed_time


@pytest.mark.parametrize(
    ("text", "both"),
    [
        ("0 0 13 * fri", False),
        ("0 0 1-31 * fri", False),
        ("0 0 * * fri", True),
        ("0 0 13 * *", True),
        ("0 0 */2 * fri", True),
        ("0 0 13 * */2", True),
        ("0 0 L * fri#2", False),
    ],
)
def test_a_day_must_match_both_day_fields_only_when_one_begins_with_a_star(text: str, both: bool) -> None:
    assert parse_cron(text).days.both is both


def test_last_and_numbered_weekdays_are_kept_apart_from_plain_ones() -> None:
    days = parse_cron("0 0 L * mon,fri#2,0L").days
    assert (days.last_day, days.weekday.values, days.nth) == (True, (1,), ((0, LAST), (5, 2)))


REFUSED = [
    # text, field, value, offset, problem, fix
    ("61 * * * *", "minute", "61", 0, "minute must be 0 to 59, got '61'", "write a number from 0 to 59"),
    ("0 24 * * *", "hour", "24", 2, "hour must be 0 to 23, got '24'", "write `0 0 * * *`: hours are counted from 0"),
    ("0 0 0 * *", "day of month", "0", 4, "day of month must be 1 to 31, got '0'", "write a number from 1 to 31"),
    ("0 0 1 13 *", "month", "13", 6, "month must be 1 to 12 or jan to dec, got '13'", "write a number from 1 to 12"),
    (
        "0 0 * *  8",
        "day of week",
        "8",
        9,
        "day of week must be 0 to 7 or sun to sat, got '8'",
        "write a number from 0 to 7",
    ),
    (
        "0 0 * * 1,monday",
        "day of week",
        "monday",
        10,
        "day of week must be 0 to 7 or sun to sat, got 'monday'",
        'write `"0 0 * * 1,mon"`',
    ),
    ("-5 * * * *", "minute", "-5", 0, "minute must be 0 to 59, got '-5'", "write a number from 0 to 59"),
    ("5- * * * *", "minute", "", 2, "minute must be 0 to 59, got nothing", "write a number from 0 to 59"),
    ("*5 * * * *", "minute", "*5", 0, "minute must be 0 to 59, got '*5'", 'write `"*/5 * * * *"` for every so many'),
    ("٣ * * * *", "minute", "٣", 0, "minute must be 0 to 59, got '٣'", "write a number from 0 to 59"),
    ("0,,5 * * * *", "minute", "0,,5", 0, "minute '0,,5' has an empty item", 'write `"0,5 * * * *"`'),
    ("1-2-3 * * * *", "minute", "1-2-3", 0, "'1-2-3' is not a range", "write `1-3 * * * *`"),
    ("0 22-2 * * *", "hour", "22-2", 2, "hour range '22-2' runs backwards", 'write `"0 0-2,22,23 * * *"`'),
    (
        "0 0 * * fri-sun",
        "day of week",
        "fri-sun",
        8,
        "day of week range 'fri-sun' runs backwards",
        'write `"0 0 * * 0,5,6"`',
    ),
    (
        "5/10 * * * *",
        "minute",
        "5/10",
        0,
        "minute '5/10' has a step on a single value",
        "write `5-59/10 * * * *` to count on from 5",
    ),
    ("*/0 * * * *", "minute", "*/0", 0, "the step of minute must be 1 to 59, got '0'", "write a step from 1 to 59"),
    (
        "*/90 * * * *",
        "minute",
        "*/90",
        0,
        "the step of minute must be 1 to 59, got '90'",
        "write `every 90m` to repeat after that time",
    ),
    (
        "0 0 */100,1-7 * mon",
        "day of month",
        "*/100",
        4,
        "the step of day of month must be 1 to 30, got '100'",
        "for the first Monday of a month name it as the day of week, as in `0 8 * * mon#1`",
    ),
    (
        "*/5/2 * * * *",
        "minute",
        "*/5/2",
        0,
        "'*/5/2' is not a step",
        'write a number behind one slash, as in `"*/5 * * * *"`',
    ),
    ("0 0 ? * *", "day of month", "?", 4, "day of month '?' is not understood here", "write `0 0 * * *`"),
    (
        "0 0 15W * *",
        "day of month",
        "15W",
        4,
        "day of month '15W' is not understood here",
        "name a day of week, as in `0 8 * * mon#1` for the first Monday of a month",
    ),
    (
        "H * * * *",
        "minute",
        "H",
        0,
        "minute 'H' is not understood here",
        "write `0 * * * *`; 'jitter' spreads starts, and the same way each day",
    ),
    (
        "R(0-30) * * * *",
        "minute",
        "R(0-30)",
        0,
        "minute 'R(0-30)' is not understood here",
        "write `0 * * * *`; 'jitter' spreads starts, and the same way each day",
    ),
    (
        "0~30 * * * *",
        "minute",
        "0~30",
        0,
        "minute '0~30' is not understood here",
        "write `0 * * * *`; 'jitter' spreads starts, and the same way each day",
    ),
    ("0 0 * * L5", "day of week", "L5", 8, "day of week 'L5' is not understood here", "write `0 0 * * 5L`"),
    (
        "0 0 * * fri#6",
        "day of week",
        "fri#6",
        8,
        "the number after # must be 1 to 5, got '6'",
        "write `0 0 * * fri#1` for the first of a month",
    ),
    (
        "mon * * * *",
        "minute",
        "mon",
        0,
        "minute must be 0 to 59, got 'mon'",
        "write the five fields in their order: minute, hour, day of month, month, day of week",
    ),
]


@pytest.mark.parametrize(("text", "field", "value", "offset", "problem", "fix"), REFUSED)
def test_a_refusal_names_the_place_the_value_and_what_to_write(
    text: str, field: str, value: str, offset: int, problem: str, fix: str
) -> None:
    with pytest.raises(ScheduleError) as refused:
        parse_cron(text)
    error = refused.value
    assert (error.field, error.value, error.offset) == (field, value, offset)
    assert (error.problem, error.fix, str(error)) == (problem, fix, f"{problem}; {fix}")
    assert text[offset : offset + len(value)] == value


@pytest.mark.parametrize(
    ("text", "value", "fix"),
    [
        ("0 */5 * * * *", "0", 'write `"*/5 * * * *"`, without the first field (seconds)'),
        ("0 0 12 * * ?", "0", "write `0 12 * * *`, without the first field (seconds)"),
        (
            "0 0 12 ? * MON-FRI *",
            "0",
            "write `0 12 * * MON-FRI`, without the first field (seconds) and the last field (year)",
        ),
        ("0 8 * * 1 2026", "2026", "write `0 8 * * 1`, without the last field (year)"),
        ("*/10 * * * * *", "*/10", "write `every 10s`"),
        ("30 4 * * * root /usr/bin/backup", "root", "write `30 4 * * *`; the command belongs to the key 'run'"),
        ("0 8 * * * Europe/Berlin", "Europe/Berlin", "write `0 8 * * *`; the zone belongs to the key 'timezone'"),
        ("1 2 3 4 x y", "y", "write five, as in `30 8 * * *`"),
        ("* * * *", "* * * *", "write all five, as in `30 8 * * *`, or words, as in `daily 08:30`"),
    ],
)
def test_a_wrong_number_of_fields_is_answered_with_the_ones_that_were_meant(text: str, value: str, fix: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        parse_cron(text)
    assert (refused.value.fix, refused.value.value) == (fix, value)
    assert text[refused.value.offset :].startswith(value)


@pytest.mark.parametrize(
    ("text", "months"),
    [
        ("0 0 31 2 *", "Feb"),
        ("0 0 30 2 *", "Feb"),
        ("0 0 30,31 feb *", "Feb"),
        ("0 0 31 4,6 *", "Apr or Jun"),
        ("0 0 */30 2 fri#2", "Feb"),
        ("0 0 */30 * fri#2", "month"),
        ("0 0 10-31 * */2,fri#1", None),
        ("0 0 1-7 * */6,mon#2", None),
    ],
)
def test_an_expression_that_never_comes_is_refused_at_once(text: str, months: str | None) -> None:
    started = time.process_time()
    if months is None:  # one of its weekdays does come
        assert parse_cron(text).rules
    else:
        with pytest.raises(ScheduleError, match=f"never comes: no {months} has such a day"):
            parse_cron(text)
    assert time.process_time() - started < 0.1


@pytest.mark.parametrize(
    "text", ["0 0 29 2 *", "0 0 29 2 */2", "0 0 29 feb 5#5", "0 0 31 2 mon", "0 0 31,L 2 *", "0 0 30 2 fri#5"]
)
def test_an_expression_that_comes_seldom_is_no_error(text: str) -> None:
    assert parse_cron(text).rules


@settings(derandomize=True, database=None, deadline=None, max_examples=500)
@given(st.text(st.sampled_from("0123456789*,-/#lLfrimonjan ?hwRH~@"), max_size=30))
def test_any_text_is_read_or_refused_with_its_place_and_a_fix(text: str) -> None:
    try:
        fields = parse_cron(text)
    except ScheduleError as refused:
        complete = refused.problem and refused.fix and 0 <= refused.offset <= len(text)
        if not complete:
            pytest.fail(f"{text!r}: {vars(refused)}")
        return
    assert parse_cron(write_cron(fields)) == fields
