"""What people write first where a schedule should stand, and what they are told."""

import pytest

from ankita_agent.core.schedule import ScheduleError, parse_schedule
from ankita_agent.core.schedule_slips import FORMS
from ankita_agent.core.wording import as_value


def refusal(text: str) -> ScheduleError:
    with pytest.raises(ScheduleError) as refused:
        parse_schedule(text)
    return refused.value


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        # days and a time, said in another way
        ("8:30", "daily 08:30"),
        ("08:30:00", "daily 08:30"),
        ("8.30 p.m.", "daily 20:30"),
        ("8am", "daily 08:00"),
        ("noon", "daily 12:00"),
        ("at 8", "daily 08:00"),
        ("every day at 8", "daily 08:00"),
        ("every day at 8:30pm", "daily 20:30"),
        ("each morning at 7", "daily 07:00"),
        ("daily at 08:00", "daily 08:00"),
        ("dayly 08:00", "daily 08:00"),
        ("every weekday at 8:30", "weekdays 08:30"),
        ("weekday 8:30", "weekdays 08:30"),
        ("mondays at noon", "monday 12:00"),
        ("every tues at 9", "tuesday 09:00"),
        ("every monday", "monday 08:00"),
        ("friday", "friday 08:00"),
        ("every day", "daily 08:00"),
        # intervals
        ("5m", "every 5m"),
        ("every 5 minutes", "every 5m"),
        ("Every 2 Hours", "every 2h"),
        ("30 sec", "every 30s"),
        ("every 2 weeks", "every 14d"),
        ("every minute", "every 1m"),
        ("every month", "@monthly"),
        ("@every 5m", "every 5m"),
        # one field, one number, one word
        ("*/5", "*/5 * * * *"),
        ("*", "* * * * *"),
        ("5", "every 5m"),
        ("hourly", "@hourly"),
        ("@dialy", "@daily"),
        ("reboot", "@reboot"),
        # OnCalendar=
        ("Mon..Fri 08:00", "weekdays 08:00"),
        ("Sat..Sun *-*-* 10:00:00", "weekends 10:00"),
        ("*-*-* 02:30:00", "daily 02:30"),
        ("Mon *-*-* 00:00:00", "monday 00:00"),
        ("Mon,Wed *-*-* 08:30:00", "30 8 * * 1,3"),
        ("minutely", "every 1m"),
        ("weekly", "monday 00:00"),
        ("quarterly", "0 0 1 1,4,7,10 *"),
        ("*-*-01 04:00:00", "0 4 1 * *"),
        ("*-02-29", "0 0 29 2 *"),
        ("*-*~01 03:00", "0 3 L * *"),
        ("*:0/15", "*/15 * * * *"),
        ("*:5/15", "5-50/15 * * * *"),
        ("*-*-* 08..18/2:00", "0 8-18/2 * * *"),
        ("08,20:00", "0 8,20 * * *"),
        ("Mon..Fri", "weekdays 00:00"),
        ("Mon..Fri 08:00 Europe/Berlin", "weekdays 08:00"),
    ],
)
def test_a_slip_is_answered_with_the_schedule_that_was_meant(text: str, meant: str) -> None:
    fix = refusal(text).fix
    assert fix.startswith(f"write `{as_value(meant)}`")
    assert parse_schedule(meant)


@pytest.mark.parametrize(
    ("text", "problem", "fix"),
    [
        ("", "the schedule is empty", FORMS),
        ("  \n", "the schedule is empty", FORMS),
        ("0", "'0' is a number, not a schedule",
         "write `every 30m` to repeat, or as in `daily 08:00` a time of day"),
        ("every 5", "'every 5' has no unit", "write `every 5s`, `every 5m` or `every 5h`"),
        ("every 400d", "'400d' is longer than a year", "write `every 366d` or less"),
        ("every 500ms", "'500ms' is not a whole number of seconds from 1s up", "write `every 1s` or longer"),
        ("every 1500ms", "'1500ms' is not a whole number of seconds from 1s up", "write `every 1s` or longer"),
        ("every 0s", "'0s' is not a whole number of seconds from 1s up", "write `every 1s` or longer"),
        ("every other day", "'every other day' is not a schedule", FORMS),
        ("daily 8", "'8' is not a time of day", "write `daily 08:00` or `daily 8am`"),
        ("daily 20", "'20' is not a time of day", "write `daily 20:00` or `daily 8pm`"),
        ("daily 24:00", "the hour must be 0 to 23, got '24'", "write `daily 00:00` for midnight"),
        ("daily 8:60", "the minute must be 0 to 59, got '60'", "write hour and minute, as in `daily 08:30`"),
        ("daily 8:5", "'8:5' is not a time of day", "write `daily 08:05` or `daily 08:50`"),
        ("daily 13pm", "with pm the hour must be 1 to 12, got '13'", "write `daily 13:00`"),
        ("daily 0am", "with am the hour must be 1 to 12, got '0'", "write `daily 00:00`"),
        ("daily 08:00:00", "'08:00:00' is not a time of day", "write `daily 08:00`: a time of day has no seconds"),
        ("daily 08:00, 18:00", "'08:00, 18:00' is more than one time", 'write `"0 8,18 * * *"`'),
        ("weekdays 08:00 Europe/Berlin", "'08:00 Europe/Berlin' is not a time of day",
         "write `weekdays 08:00`, and the zone under the key 'timezone'"),
        ("TZ=Europe/Berlin 0 8 * * *", "'TZ=Europe/Berlin 0 8 * * *' names its zone",
         "write `0 8 * * *`, and the zone under the key 'timezone'"),
        ("2026-01-01", "'2026-01-01' is OnCalendar= text of systemd and has no equivalent here", FORMS),
        ("Fri *-*-13 00:00", "'Fri *-*-13 00:00' is OnCalendar= text of systemd and has no equivalent here", FORMS),
        ("*-*-* *:*:0/10", "'*-*-* *:*:0/10' is OnCalendar= text of systemd and has no equivalent here", FORMS),
        ("*-*-* 25:00", "'*-*-* 25:00' is OnCalendar= text of systemd and has no equivalent here", FORMS),
        ("monthly 08:00", "'monthly 08:00' is not a schedule", FORMS),
        ("run at eight", "'run at eight' is not a schedule", FORMS),
        ("PT5M", "'PT5M' is not a schedule", FORMS),
        ("{0} {problem}", "'{0} {problem}' is not a schedule", FORMS),
    ],
)  # fmt: skip
def test_a_text_without_an_equivalent_is_answered_with_what_is_wrong(text: str, problem: str, fix: str) -> None:
    error = refusal(text)
    assert (error.problem, error.fix) == (problem, fix)


def test_the_offset_points_at_what_is_wrong() -> None:
    for text, wrong in (
        ("  weekdays  25:00", "25:00"),
        (" every  1.5h ", "1.5h"),
        ("  @dialy", "@dialy"),
        ("  0 8 * 13 *", "13"),
        ("  Mon..Fri 08:00", "Mon..Fri 08:00"),
    ):
        error = refusal(text)
        assert (error.value, text[error.offset : error.offset + len(wrong)]) == (wrong, wrong)


def test_no_slip_is_made_of_a_schedule_that_is_one() -> None:
    for text in ("0 8 * * *", "12 12 12 12 *", "* * * * *", "Sat,Sun 10:00", "every 5m", "@daily", "1 2 3 4 5"):
        assert parse_schedule(text)
