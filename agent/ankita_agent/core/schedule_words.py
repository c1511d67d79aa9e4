"""Schedules in words: `daily 08:00`, `weekdays 8:30am`, `mon,thu 18:15`, each short for a cron expression."""

import re
from difflib import get_close_matches
from typing import Final

from ankita_agent.core.cron import WEEKDAYS, ScheduleError
from ankita_agent.core.wording import as_value, shown, write

_DAY_NAMES: Final = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_DAYS: Final = {"daily": "*", "weekdays": "1-5", "weekends": "0,6"}
_DAYS_AND_TIME: Final = re.compile(r"([a-z]+(?:\s*[,-]\s*[a-z]+)*)\s+([0-9].*)", re.IGNORECASE | re.DOTALL)
_TIME: Final = re.compile(r"([0-9]{1,2})(?::([0-9]{2}))?\s*([ap]m)?", re.IGNORECASE)
_BETWEEN_TIMES: Final = re.compile(r"\s*(?:[,;&]|\band\b)+\s*|\s+(?=[0-9])")
_WRITTEN: Final = {days: word for word, days in _DAYS.items()} | dict(zip("0123456", _DAY_NAMES, strict=True))


def cron_of_words(text: str) -> str | None:
    """The cron expression that the words are short for, or None when the text is not days and a time.

    Raises ScheduleError when it is, and the days or the time are wrong.
    """
    match = _DAYS_AND_TIME.fullmatch(text.strip())
    if not match:
        return None
    days, time = "".join(match[1].lower().split()), match[2]
    if days in _DAYS:
        days = _DAYS[days]
    else:
        names = re.split("([,-])", days)
        if not all(name in _DAY_NAMES or name in WEEKDAYS for name in names[::2]):
            return None
        days = "".join(name[:3] for name in names)
    offset = text.index(time, text.index(match[1]) + len(match[1]))
    if several := several_times(time):
        problem = f"{shown(time)} is more than one time"
        raise ScheduleError(problem, at_several(days, several), value=time, offset=offset)
    hour, minute = parse_time_of_day(time, offset, "".join(match[1].split()))
    return f"{minute} {hour} * * {days}"


def several_times(text: str) -> list[tuple[int, int]]:
    """Hour and minute of each time in `8am, 5pm` or `8:00 and 17:30`; empty when it is not several times."""
    pieces = _BETWEEN_TIMES.split(text.strip())
    times = []
    for piece in pieces if len(pieces) > 1 else ():
        try:
            times.append(parse_time_of_day(f"{piece}:00" if piece.isdigit() else piece))
        except ScheduleError:
            return []
    return sorted(set(times))


def at_several(days: str, times: list[tuple[int, int]]) -> str:
    """What to write to run on `days` (a cron field) at each of these times."""
    minutes = {minute for _, minute in times}
    if len(minutes) > 1:
        each = " and ".join(f"`{as_value(_words(f'{minute} {hour} * * {days}'))}`" for hour, minute in times)
        return f"a schedule has one minute: write a routine for each time, with {each}"
    hours = ",".join(str(hour) for hour, _ in times)
    return write(as_value(_words(f"{minutes.pop()} {hours} * * {days}")))


def _words(expression: str) -> str:
    return words_of_cron(expression) or expression


def words_of_cron(expression: str) -> str | None:
    """The words for an expression as `write_cron` gives it, or None when it is more than days and a time."""
    match = re.fullmatch(r"([0-9]+) ([0-9]+) \* \* (\S+)", expression)
    if not match or match[3] not in _WRITTEN:
        return None
    return f"{_WRITTEN[match[3]]} {int(match[2]):02}:{int(match[1]):02}"


def parse_time_of_day(text: str, offset: int = 0, days: str = "daily") -> tuple[int, int]:
    """Hour and minute of `08:00`, `8:30`, `8:30am` or `8am`.

    Raises ScheduleError with what to write for these `days`.
    """
    match = _TIME.fullmatch(text)
    hour, minute = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
    half = (match[3] or "").lower() if match else ""
    problem, fix = f"{shown(text)} is not a time of day", f"write hour and minute, as in `{days} 08:30`"
    if match and minute > 59:
        problem = f"the minute must be 0 to 59, got {shown(match[2])}"
    elif match and half and not 1 <= hour <= 12:
        problem = f"with {half} the hour must be 1 to 12, got {shown(match[1])}"
        fix = write(as_value(f"{days} {hour:02}:{minute:02}")) if hour < 24 else fix
    elif match and hour > 23:
        problem = f"the hour must be 0 to 23, got {shown(match[1])}"
        fix = write(as_value(f"{days} 00:00")) + " for midnight" if (hour, minute) == (24, 0) else fix
    elif match and not half and match[2] is None:
        fix = write(
            as_value(f"{days} {hour:02}:00"), as_value(f"{days} {hour % 12 or 12}{'pm' if hour > 11 else 'am'}")
        )
    elif match:
        return (hour % 12 + (12 if half == "pm" else 0), minute) if half else (hour, minute)
    elif seconds := re.fullmatch(r"([0-9]{1,2}:[0-9]{2}):[0-9]{2}", text):
        fix = f"{write(as_value(f'{days} {seconds[1]}'))}: a time of day has no seconds"
    elif zone := re.fullmatch(r"(.*[0-9apm])\s+(?:UTC|[A-Z]\w*/\S+)", text):
        fix = f"{write(as_value(f'{days} {zone[1]}'))}, and the zone under the key 'timezone'"
    elif digit := re.fullmatch(r"([0-9]{1,2}):([0-9])", text):
        fix = write(
            as_value(f"{days} {int(digit[1]):02}:0{digit[2]}"), as_value(f"{days} {int(digit[1]):02}:{digit[2]}0")
        )
    raise ScheduleError(problem, fix, value=text, offset=offset)


def nearest_days(word: str) -> str | None:
    """The word for days that is most like this one: `weekday` gives `weekdays`, `tues` gives `tuesday`."""
    for name in _DAY_NAMES:
        if len(word) >= 3 and name.startswith(word.removesuffix("s")):
            return name
    return next(iter(get_close_matches(word, (*_DAYS, *_DAY_NAMES), n=1, cutoff=0.75)), None)
