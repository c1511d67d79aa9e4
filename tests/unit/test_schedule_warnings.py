"""Schedules that are valid and seldom what was meant."""

import pytest

from ankita_agent.core.schedule import parse_schedule, warnings_of


@pytest.mark.parametrize(
    ("text", "problem", "fix"),
    [
        ("*/35 * * * *", "*/35 starts over with each hour: the last gap is 25 minutes, not 35",
         "write `every 35m` for an even rhythm"),
        ("*/45 * * * *", "*/45 starts over with each hour: the last gap is 15 minutes, not 45",
         "write `every 45m` for an even rhythm"),
        ("0 */5 * * *", "*/5 starts over with each day: the last gap is 4 hours, not 5",
         "write `every 5h` for an even rhythm"),
        ("*/30 2 * * *",
         "a minute that begins with * makes a rhythm: when the clocks change it is skipped or comes twice",
         'write `"0,30 2 * * *"` to run once on each day'),
        ("0 0 13 * fri", "runs on day of month 13 and also on day of week 5, not only where both match",
         "write `0 0 13 * *` or `0 0 * * 5` for one of them"),
        ("0 9 8-14 * tue", "runs on day of month 8-14 and also on day of week 2, not only where both match",
         "write `0 9 * * tue#2` for that day of week only"),
    ],
)  # fmt: skip
def test_a_shape_that_seldom_means_what_it_says_is_warned_of(text: str, problem: str, fix: str) -> None:
    assert warnings_of(parse_schedule(text)) == [(problem, fix)]


@pytest.mark.parametrize(
    "text",
    ["*/15 * * * *", "* * * * *", "0 */6 * * *", "*/35 8 * * *", "*/30 9-17 * * *", "0,30 2 * * *",
     "30 */2 * * *", "0 0 13 * *", "0 0 * * fri", "0 0 */2 * fri", "every 35m", "@reboot", "weekdays 02:30"],
)  # fmt: skip
def test_a_plain_schedule_is_not_warned_of(text: str) -> None:
    assert warnings_of(parse_schedule(text)) == []
