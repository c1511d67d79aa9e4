"""Durations as people write them: `90s`, `2h`, `1h30m`, `1d`."""

import re
from typing import Final

from ankita_agent.core.instants import DAY, HOUR, MILLISECOND, MINUTE, SECOND, Duration

LONGEST: Final = Duration(366 * DAY)
"""No duration of a routine is longer; a longer one is taken for a slip of the finger."""

_UNITS: Final = {"d": DAY, "h": HOUR, "m": MINUTE, "s": SECOND, "ms": MILLISECOND}
_PART: Final = re.compile(r"(\d{1,12})(ms|[dhms])")  # more digits are longer than a year in any unit
_WHOLE: Final = re.compile(r"(?:\d{1,12}(?:ms|[dhms])\s*)+")


def parse_duration(text: str) -> Duration:
    """The duration that `text` writes as numbers with units, `1h30m`; zero is allowed, a sign is not.

    Raises ValueError with what is wrong and an example. A bare number is refused: nobody can tell whether
    90 means seconds or minutes.
    """
    stripped = text.strip()
    if stripped.isdigit():
        raise ValueError(f"{stripped} has no unit; write {stripped}s, {stripped}m or {stripped}h")
    if stripped.startswith("-"):
        raise ValueError(f"{stripped!r} is negative; a duration is zero or more, as in 90s")
    if not _WHOLE.fullmatch(stripped):
        raise ValueError(f"{stripped!r} is not a duration; write a number and a unit: 90s, 30m, 2h, 1d or 1h30m")
    total = sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(stripped))
    if total > LONGEST:
        raise ValueError(f"{stripped!r} is longer than a year; the longest is {format_duration(LONGEST)}")
    return Duration(total)


def format_duration(span: int) -> str:
    """The shortest exact text that `parse_duration` reads back, down to milliseconds: `1h30m`, `0s`."""
    sign, left, parts = ("-" if span < 0 else ""), abs(span), []
    for unit, size in _UNITS.items():
        number, left = divmod(left, size)
        if number:
            parts.append(f"{number}{unit}")
    return sign + ("".join(parts) or "0s")


def approximate(span: int) -> str:
    """A span for a person, its two largest units: `2h 5m`, `3d 4h`, `12s`, `350ms`."""
    sign, left, parts = ("-" if span < 0 else ""), abs(span), []
    for unit, size in _UNITS.items():
        number, left = divmod(left, size)
        if number:
            parts.append(f"{number}{unit}")
        if len(parts) == 2 or (parts and unit == "s"):
            break
    return sign + (" ".join(parts) or "0s")
