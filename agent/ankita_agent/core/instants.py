"""Points and spans of time, and the only place that reads or writes them as text.

Everything is a whole number of nanoseconds, as the kernel's clocks give them (clock_gettime(2)). The
clocks are different types, so mypy refuses to subtract one from another: wall time decides *what is due*,
awake time decides *how long*.
"""

from datetime import UTC, datetime
from typing import NewType

Instant = NewType("Instant", int)
"""Wall time: nanoseconds since 1970-01-01T00:00:00Z (CLOCK_REALTIME). Moves when somebody sets the clock."""

Monotonic = NewType("Monotonic", int)
"""Awake time: nanoseconds of CLOCK_MONOTONIC. Stands still while the machine sleeps; means nothing after a reboot."""

Boottime = NewType("Boottime", int)
"""Nanoseconds since boot, sleep included (CLOCK_BOOTTIME)."""

Duration = NewType("Duration", int)
"""A span in nanoseconds."""

SECOND = Duration(1_000_000_000)
MILLISECOND = Duration(1_000_000)
MINUTE = Duration(60 * SECOND)
HOUR = Duration(60 * MINUTE)
DAY = Duration(24 * HOUR)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_instant(text: str) -> Instant:
    """The instant that an RFC 3339 text names; a text without an offset is refused.

    Raises ValueError. Source: RFC 3339 section 5.6.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no offset; write it as 2026-10-25T01:30:00Z")
    return instant_of(moment)


def instant_of(moment: datetime) -> Instant:
    """The instant of an aware datetime, exact to the microsecond that it holds."""
    span = moment - _EPOCH
    return Instant(((span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds) * 1_000)


def utc_datetime(instant: Instant) -> datetime:
    """The aware UTC datetime of an instant, cut to the microsecond."""
    whole, rest = divmod(instant, SECOND)
    return datetime.fromtimestamp(whole, UTC).replace(microsecond=rest // 1_000)


def format_instant(instant: Instant) -> str:
    """RFC 3339 in UTC: whole seconds as `2026-10-25T01:30:00Z`, others with milliseconds."""
    moment = utc_datetime(instant)
    unit = "seconds" if instant % SECOND == 0 else "milliseconds"
    return moment.isoformat(timespec=unit).replace("+00:00", "Z")


def in_seconds(span: int) -> float:
    """A span of nanoseconds as seconds, for JSON and for the standard library's waits."""
    return span / SECOND
