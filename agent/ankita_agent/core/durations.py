"""Durations as people write them: `90s`, `2h`, `1h30m`, `1d`."""

import re
from typing import Final

from ankita_agent.core.instants import DAY, HOUR, MILLISECOND, MINUTE, SECOND, Duration
from ankita_agent.core.wording import any_of, shown, write

LONGEST: Final = Duration(366 * DAY)
"""No duration of a routine is longer; a longer one is taken for a slip of the finger."""

_UNITS: Final = {"d": DAY, "h": HOUR, "m": MINUTE, "s": SECOND, "ms": MILLISECOND}
_PART: Final = re.compile(r"(\d{1,12})(ms|[dhms])")  # more digits are longer than a year in any unit
_SPOKEN: Final = re.compile(
    r"(\d{1,9}(?:\.\d{1,3})?)\s*"
    r"(?:(?P<ms>ms|millis(?:econds?)?)|(?P<s>s|secs?|seconds?)|(?P<m>m|mins?|minutes?)|(?P<h>h|hrs?|hours?)|(?P<d>d|days?))"
    r"(?![a-z])[\s,]*(?:and\s+)?",
    re.IGNORECASE,
)
_WHOLE: Final = re.compile(r"(?:\d{1,12}(?:ms|[dhms])\s*)+")


def parse_duration(text: str) -> Duration:
    """The duration that `text` writes as numbers with units, `1h30m`; zero is allowed, a sign is not.

    Raises ValueError with what is wrong and an example. A bare number is refused: nobody can tell whether
    90 means seconds or minutes.
    """
    stripped = text.strip()
    if stripped.isdigit():
        raise ValueError(f"{shown(stripped)} has no unit; {write(*(f'{stripped}{unit}' for unit in 'smh'))}")
    if stripped.startswith("-"):
        raise ValueError(f"{shown(stripped)} is negative; {_positive(stripped)}")
    if not _WHOLE.fullmatch(stripped):
        raise ValueError(f"{shown(stripped)} is not a duration; {_meant(stripped)}")
    total = sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(stripped))
    if total > LONGEST:
        raise ValueError(f"{shown(stripped)} is longer than a year; {write(format_duration(LONGEST))} or less")
    return Duration(total)


def _positive(text: str) -> str:
    rest = text.lstrip("-")
    return write(rest) if _WHOLE.fullmatch(rest) else f"a duration is zero or more: {_meant(rest)}"


def _meant(text: str) -> str:
    """What to write for `5 minutes`, `1.5h`, `2 hours and 30 minutes`; examples for anything else."""
    if text and len(text) < 60 and not _SPOKEN.sub("", text):
        total = sum(round(float(part[1]) * _UNITS[part.lastgroup or ""]) for part in _SPOKEN.finditer(text))
        if 0 < total <= LONGEST:
            return write(format_duration(total))
    return f"write a number and a unit, as in {any_of(('90s', '30m', '2h', '1d', '1h30m'))}"


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
