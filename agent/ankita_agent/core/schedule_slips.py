"""What people write first, or bring from elsewhere, in place of a schedule; each with what to write here.

Nothing here accepts anything: every answer is an error to raise. OnCalendar= text is read as systemd.time(7),
"Calendar Events", has it, and gets the schedule with the same slots, where there is one (but for the days on
which clocks are changed: systemd has other rules there).
"""

import re
from collections.abc import Callable
from typing import Final

from ankita_agent.core.cron import ScheduleError, parse_cron, write_cron
from ankita_agent.core.schedule_words import (
    at_several,
    cron_of_words,
    nearest_days,
    parse_time_of_day,
    several_times,
    words_of_cron,
)
from ankita_agent.core.wording import any_of, as_value, shown, write

_EXAMPLES: Final = ("daily 08:30", "weekdays 8:30am", "mon,thu 18:15", "every 30m", "30 8 * * 1-5", "@reboot")
FORMS: Final = f"write a schedule, as in {any_of(map(as_value, _EXAMPLES))}"

_ALONE: Final = {
    "minutely": "every 1m",
    "hourly": "@hourly",
    "daily": "daily 00:00",
    "weekly": "monday 00:00",
    "monthly": "@monthly",
    "quarterly": "0 0 1 1,4,7,10 *",
    "semiannually": "0 0 1 1,7 *",
    "yearly": "@yearly",
    "annually": "@yearly",
    "midnight": "daily 00:00",
    "noon": "daily 12:00",
    "reboot": "@reboot",
    "every minute": "every 1m",
    "every hour": "@hourly",
    "every week": "monday 08:00",
    "every month": "@monthly",
    "every year": "@yearly",
}
_INTERVAL: Final = re.compile(
    r"(?:every )?([0-9]{1,9}) ?"
    r"(?:(s)(?:ecs?|econds?)?|(m)(?:ins?|inutes?)?|(h)(?:rs?|ours?)?|(d)(?:ays?)?|(w)(?:eeks?)?)"
)
_FILLERS: Final = frozenset({"every", "each", "on", "at"})
_ALL_DAYS: Final = frozenset({"day", "days", "everyday", "morning", "evening", "night"})
_CLOCK_WORDS: Final = frozenset({"noon", "midnight"})
_SPOKEN_TIMES: Final = tuple(
    (re.compile(spoken), written)
    for spoken, written in (
        ("noon", "12:00"),
        ("midnight", "00:00"),
        (r"([ap])\.m\.?$", r"\1m"),
        ("^([0-9]{1,2})[.h]([0-9]{2})", r"\1:\2"),
        ("^([0-9]{1,2})h?$", r"\1:00"),
        ("^([0-9]{1,2}:[0-9]{2}):[0-9]{2}$", r"\1"),
    )
)
_DAY: Final = r"(?:sun(?:day)?|mon(?:day)?|tue(?:sday)?|wed(?:nesday)?|thu(?:rsday)?|fri(?:day)?|sat(?:urday)?)"
_DAY_LIST: Final = re.compile(rf"{_DAY}(?:(?:\.\.|,){_DAY})*")
_DATE: Final = re.compile(r"(?:([0-9*.,/]+)-)?([0-9*.,/]+)([-~])([0-9*.,/]+)")
_CLOCK: Final = re.compile(r"([0-9*.,/]+):([0-9*.,/]+)(?::([0-9*.,/]+))?")
_PLACE: Final = re.compile(r"utc|[a-z_]+(?:/[a-z0-9_+-]+)+")


def explain_slip(text: str) -> ScheduleError | None:
    """The error for a text that is a known slip, or None when it is none (and perhaps cron)."""
    said = " ".join(text.split())
    for explain in _EXPLANATIONS:
        if found := explain(said.lower()):
            problem, fix = found
            offset = len(text) - len(text.lstrip())
            return ScheduleError(problem.format(shown(said)), fix, value=said, offset=offset)
    return None


def _explain_single(said: str) -> tuple[str, str] | None:
    """Nothing, one word, one number, one field."""
    if not said:
        return "the schedule is empty", FORMS
    if said in _ALONE:
        return "{} is not a schedule here", write(as_value(_ALONE[said]))
    if re.fullmatch("[0-9]{1,9}", said):
        every = write(f"every {int(said) or 30}m")
        return "{} is a number, not a schedule", f"{every} to repeat, or as in `daily 08:00` a time of day"
    if re.fullmatch(r"\*(?:/[0-9]+)?", said):
        return "{} is one field of five", write(as_value(f"{said} * * * *"))
    if re.fullmatch("every [0-9]+", said):
        return "{} has no unit", write(*(f"{said}{unit}" for unit in "smh"))
    if " " not in said.removeprefix("every ") and (days := _days_said(said.removeprefix("every "))):
        return "{} has no time of day", write(f"{days} 08:00")
    return None


def _explain_interval(said: str) -> tuple[str, str] | None:
    """`5m`, `every 5 minutes`, `2 hours`."""
    match = _INTERVAL.fullmatch(said)
    if not match:
        return None
    number, unit = int(match[1]), next(filter(None, match.groups()[1:]))
    span = f"{number * 7}d" if unit == "w" else f"{number}{unit}"
    if said == f"every {span}":
        return None
    return "{} is not how an interval is written", write(f"every {span}")


def _explain_spoken(said: str) -> tuple[str, str] | None:
    """Days and a time in another way: `8:30`, `every day at 8`, `mondays at noon`, `weekday 8.30 a.m.`."""
    words = [word for word in said.split() if word not in _FILLERS]
    days: str | None = "daily"
    if words and words[0].isalpha() and words[0] not in _CLOCK_WORDS:
        days = _days_said(words.pop(0))
    rest = " ".join(words)
    if days and re.search("[:a-z]", rest) and (times := several_times(rest)):
        field = (cron_of_words(f"{days} 00:00") or "").rpartition(" ")[2]
        return "{} is more than one time", at_several(field, times)
    time = "".join(words)
    for spoken, written in _SPOKEN_TIMES:
        time = spoken.sub(written, time)
    try:
        hour, minute = parse_time_of_day(time)
    except ScheduleError:
        return None
    if days is None:
        return None
    return "{} is not how days and a time are written here", write(f"{days} {hour:02}:{minute:02}")


def _explain_calendar(said: str) -> tuple[str, str] | None:
    """OnCalendar= text: `Mon..Fri 08:00`, `*-*-* 02:30:00`, `2026-01-01`."""
    parts = said.split()
    zone = parts.pop() if len(parts) > 1 and _PLACE.fullmatch(parts[-1]) else ""
    days = parts.pop(0) if _DAY_LIST.fullmatch(parts[0]) else ""
    date = _DATE.fullmatch(parts[0]) if parts else None
    clock = _CLOCK.fullmatch(parts[-1]) if parts else None
    if len(parts) != bool(date) + bool(clock) or not (parts or ".." in days):
        return None
    cron = _cron_of_calendar(days, date, clock)
    if cron is None:
        return "{} is OnCalendar= text of systemd and has no equivalent here", FORMS
    also = ", and the zone under the key 'timezone'" if zone else ""
    return "{} is OnCalendar= text of systemd", write(as_value(words_of_cron(cron) or cron)) + also


def _cron_of_calendar(days: str, date: re.Match[str] | None, clock: re.Match[str] | None) -> str | None:
    """The expression with the same slots; None for a year, seconds, or a day that has to be a weekday too."""
    year, month, from_end, day = date.groups() if date else (None, "*", "-", "*")
    hour, minute, second = clock.groups() if clock else ("0", "0", None)
    if year not in (None, "*") or (second or "0").strip("0"):
        return None
    if from_end == "~":
        day = "L" if re.fullmatch("0*1", day) else "none"
    if days and day != "*":
        return None
    weekday = re.sub(r"([a-z]{3})[a-z]*", r"\1", days.replace("..sun", "-7").replace("..", "-")) or "*"
    components = ((minute, 0, 59), (hour, 0, 23), (day, 1, 31), (month, 1, 12))
    try:
        return write_cron(parse_cron(" ".join([*(_field_of_calendar(*each) for each in components), weekday])))
    except ScheduleError:
        return None


def _field_of_calendar(component: str, low: int, high: int) -> str:
    """A component of a calendar event as a cron field: `0/15` gives `*/15`, and `1..5` gives `1-5`."""
    items = []
    for item in component.split(","):
        value, slash, step = item.partition("/")
        if slash and value.isdigit():
            value = "*" if int(value) == low else f"{value}-{high}"
        items.append(value.replace("..", "-") + slash + step)
    return ",".join(items)


def _days_said(word: str) -> str | None:
    if word in _ALL_DAYS:
        return "daily"
    return nearest_days(word)


def _explain_zone(said: str) -> tuple[str, str] | None:
    """`TZ=Europe/Berlin 0 8 * * *`, as a crontab or a Go program has it."""
    first, _, rest = said.partition(" ")
    if first.startswith(("tz=", "cron_tz=")):
        return "{} names its zone", f"{write(as_value(rest))}, and the zone under the key 'timezone'"
    return None


def _explain_prose(said: str) -> tuple[str, str] | None:
    """Whatever else is neither an interval nor looks like fields."""
    if re.match("every [0-9]", said):
        return None
    if said.startswith(("every", "each")) or (len(said.split()) < 5 and re.search(r"[^0-9*,/# -]", said)):
        return "{} is not a schedule", FORMS
    return None


_EXPLANATIONS: Final[tuple[Callable[[str], tuple[str, str] | None], ...]] = (
    _explain_single,
    _explain_zone,
    _explain_interval,
    _explain_spoken,
    _explain_calendar,
    _explain_prose,
)
