"""A time zone as stretches of constant offset, so that slots are reckoned on instants only.

The problem: Python compares and subtracts aware datetimes of one zone by what their clocks show (PEP 495),
so the two passes of an autumn hour look equal, and an hour that spring skips looks real. The rule: a zone
is asked one thing only, its offset at an instant, and everything else follows from its segments. Held by
tests/unit/test_zones.py. Rejected: the transition lists inside zoneinfo (private, and they end in 2037);
dateutil and pytz (another database than the rest of the system uses).
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import Final, NewType
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from ankita_agent.core.instants import DAY, SECOND, Duration, Instant
from ankita_agent.core.wording import shown, write

Reading = NewType("Reading", int)
"""What a wall clock shows: nanoseconds since it showed 1970-01-01 00:00. Readings repeat and are skipped."""

FIRST_YEAR: Final = 1800
LAST_YEAR: Final = 9899
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_FOREVER: Final = 10**30
# Other trees of the same names; `right` counts leap seconds, which our clock does not.
_ELSEWHERE: Final = ("posix/", "right/")
_FURTHEST: Final = 3  # letters too many or too few in a name that was meant
_OFFSET: Final = re.compile(r"(?:utc|gmt|z)?[+-]\d{1,2}(?::?\d\d)?", re.IGNORECASE)


class UnknownZone(ValueError):
    """No zone has that name; `problem` says so, `fix` names the nearest one."""

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(f"{problem}; {fix}")
        self.problem, self.fix = problem, fix


@dataclass(frozen=True, slots=True)
class Segment:
    """Instants from `start`, inclusive, to `end`, exclusive, in which local time is `offset` ahead of UTC.

    The clocks had shown every reading below `read_until` when the segment began. So with `first` as the
    reading at `start`: the clocks were put forward when `read_until < first` (what lies between was
    skipped) and back when `read_until > first` (what lies between is shown a second time).
    """

    start: Instant
    end: Instant
    offset: Duration
    read_until: Reading

    @property
    def first(self) -> Reading:
        """What the clocks show at `start`."""
        return self.reading_at(self.start)

    def reading_at(self, instant: Instant) -> Reading:
        """What the clocks show at an instant of this segment."""
        return Reading(instant + self.offset)

    def instant_of(self, reading: Reading) -> Instant:
        """When the clocks show this, if they do so within this segment."""
        return Instant(reading - self.offset)


class Zone:
    """A time zone of the IANA database, by its segments.

    Exact for the years 1800 to 9899; before and after them the offset stays what it is at that edge. A year
    is computed when it is first asked for and kept. Limit: two changes of the offset within one day would
    be seen as one (the database holds none less than three days apart), and a database that is updated
    while the process lives is read by the next process.
    """

    __slots__ = ("_years", "_zone", "key")

    def __init__(self, key: str, zone: tzinfo) -> None:
        self.key = key
        self._zone = zone
        self._years: dict[int, tuple[Segment, ...]] = {}

    def __repr__(self) -> str:
        return f"Zone({self.key!r})"

    def segment_at(self, instant: Instant) -> Segment:
        """The segment that holds the instant. Segments also end where a year ends, offset changed or not."""
        year = year_of(instant)
        segments = self._years.get(year)
        if segments is None:
            segments = self._years[year] = self._segments_of(year)
        for segment in segments:
            if instant < segment.end:
                return segment
        raise AssertionError("the segments of a year cover it")

    def datetime_at(self, instant: Instant) -> datetime:
        """The aware local datetime, for showing and not for reckoning, cut to the second."""
        return datetime.fromtimestamp(instant // SECOND, self._zone)

    def _offset_at(self, instant: int) -> Duration:
        offset = datetime.fromtimestamp(instant // SECOND, self._zone).utcoffset()
        assert offset is not None
        return Duration((offset.days * 86_400 + offset.seconds) * SECOND)

    def _segments_of(self, year: int) -> tuple[Segment, ...]:
        start, end = start_of(year), start_of(year + 1)
        # Two days early: a second pass that runs over the year's end has to be known for one.
        edge = Instant(start - 2 * DAY)
        offset = self._offset_at(edge)
        read_until = Reading(edge + offset)
        segments = []
        for change in [*self._changes(edge, end, start), end]:
            if change > edge:
                segments.append(Segment(edge, change, offset, read_until))
            read_until = Reading(max(read_until, change + offset))
            edge, offset = change, self._offset_at(change)
        within = [segment for segment in segments if segment.start >= start]
        return _opened(within, year)

    def _changes(self, start: Instant, end: Instant, also: Instant) -> list[Instant]:
        """The instants after `start` and before `end` at which the offset changes, and `also`, in order."""
        changes = {also}
        offset = self._offset_at(start)
        for day in range(start + DAY, end + DAY, DAY):
            later = self._offset_at(day)
            if later != offset:
                low, high = day - DAY, day
                while high - low > SECOND:
                    middle = (low + high) // 2 // SECOND * SECOND
                    if self._offset_at(middle) == offset:
                        low = middle
                    else:
                        high = middle
                changes.add(Instant(high))
                offset = later
        return sorted(change for change in changes if change < end)


@cache
def zone_named(key: str) -> Zone:
    """The zone of that IANA name, exactly as written there; the same object each time. `UTC` is always known.

    Raises UnknownZone. Nothing outside the zone database is opened, whatever the name (zoneinfo refuses it).
    """
    if key == "UTC":
        return Zone(key, UTC)
    try:
        if key.startswith(_ELSEWHERE):
            raise ZoneInfoNotFoundError(key)
        return Zone(key, ZoneInfo(key))
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise _unknown(key) from None


def _unknown(key: str) -> UnknownZone:
    problem = f"no time zone is named {shown(key)}"
    if _OFFSET.fullmatch(key.strip()):
        return UnknownZone(problem, f"a zone is named after a place, not after its offset: {write('Europe/Berlin')}")
    near = _nearest(key)
    if near is not None:
        return UnknownZone(problem, write(near))
    return UnknownZone(problem, "write a name of the IANA database, as in `Europe/Berlin` or `UTC`")


@lru_cache(maxsize=1024)
def _nearest(key: str) -> str | None:
    """The name that is most like this one. Kept, for a wrong name often stands in every routine of a file."""
    wanted = key.strip().lower().replace(" ", "_")
    for known in _known_names():
        exact = known.get(wanted)
        if exact is not None:
            return exact
    # Very unlike lengths are sorted out first: a comparison costs a hundred times more.
    for known in _known_names():
        likely = [name for name in known if abs(len(name) - len(wanted)) <= _FURTHEST and name[0] == wanted[:1]]
        for near in get_close_matches(wanted, likely, n=1, cutoff=0.75):
            return known[near]
    return None


@cache
def _known_names() -> tuple[dict[str, str], dict[str, str]]:
    """Every name by its lower case, and by its place alone (`berlin`).

    Etc/GMT+2 is never proposed: it lies *behind* UTC.
    """
    names = {name.lower(): name for name in sorted(available_timezones() | {"UTC"}) if not name.startswith("Etc/")}
    return names, {name.rsplit("/", 1)[-1]: whole for name, whole in reversed(names.items())}


def start_of(year: int) -> Instant:
    """When a year begins in UTC."""
    return Instant((date(year, 1, 1).toordinal() - _EPOCH_DAY) * DAY)


EARLIEST: Final = start_of(FIRST_YEAR)
LATEST: Final = start_of(LAST_YEAR + 1)
"""The instants between which slots are looked for: 1800 inclusive to 9900 exclusive."""


def year_of(instant: Instant) -> int:
    """The year in UTC; the outermost one for what lies outside of EARLIEST to LATEST."""
    within = min(max(instant, EARLIEST), LATEST - SECOND)
    return datetime.fromtimestamp(within // SECOND, UTC).year


def _opened(segments: list[Segment], year: int) -> tuple[Segment, ...]:
    """The segments of a year, made to reach to the beginning or the end of time in the outermost years."""
    if year == FIRST_YEAR:
        first = segments[0]
        start = Instant(-_FOREVER)
        segments[0] = Segment(start, first.end, first.offset, Reading(start + first.offset))
    if year == LAST_YEAR:
        last = segments[-1]
        segments[-1] = Segment(last.start, Instant(_FOREVER), last.offset, last.read_until)
    return tuple(segments)
