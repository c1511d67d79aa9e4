"""The five fields of a cron expression as sets, and the readings of a wall clock that they match.

Everything here is about readings: a clock that never jumps. `wall_clock` maps them to instants.

The search for the next and the previous match is croniter's, with `day_or=False` and on plain readings,
where it agrees with cronsim (tests/unit/test_schedule_against_cronsim.py). It never sees what a person
wrote, and not the whole of it at once: croniter takes `1 * fri#2` for *both* where cron says *either*,
refuses `mon,fri#2`, and versions before 7 miss the last of a short month in `30,L`. So the days are taken
apart into rules that croniter reads as we do, and the earliest of their matches is ours. Counting is done
here, a month at a time, because a count must not take longer the more there is to count.
"""

from bisect import bisect_left
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from itertools import pairwise, product
from typing import TYPE_CHECKING, Final

from ankita_agent.core.instants import DAY, HOUR, MINUTE, SECOND, Duration
from ankita_agent.core.zones import EARLIEST, LATEST, Reading

if TYPE_CHECKING:
    from croniter import croniter

LAST: Final = -1
"""In place of 1 to 5: the last such weekday of a month."""

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_MINUTES_A_DAY: Final = 24 * 60
_EVERY_MONTH_SHAPE: Final = tuple(product((28, 29, 30, 31), range(7)))
_LONGEST_GAP_DAYS: Final = 366
_FURTHEST: Final = 2 * DAY  # more than any clock is away from UTC


@dataclass(frozen=True, slots=True)
class Field:
    """The values of one field, ascending; `star`: written with a leading `*`, which has a meaning."""

    values: tuple[int, ...]
    star: bool


ANY_MONTH_DAY: Final = Field(tuple(range(1, 32)), True)
ANY_WEEKDAY: Final = Field(tuple(range(7)), True)


@dataclass(frozen=True, slots=True)
class Days:
    """Which days of a month: by their number, by their weekday (0 is Sunday), or by both.

    `last_day` is `L`; `nth` holds (weekday, 1 to 5 or LAST). A day must match both sides when one of them was
    written with a leading `*`, else either side. Source: crontab(5) of Debian; entry.c of Vixie cron.
    """

    month_day: Field
    last_day: bool
    weekday: Field
    nth: tuple[tuple[int, int], ...]

    @property
    def both(self) -> bool:
        """Whether a day must match by its number and by its weekday."""
        return self.month_day.star or self.weekday.star

    def mask(self, length: int, first: int) -> int:
        """The matching days of a month with `length` days whose 1st is weekday `first`: bit 0 is the 1st."""
        by_number = sum(1 << (day - 1) for day in self.month_day.values if day <= length)
        if self.last_day:
            by_number |= 1 << (length - 1)
        by_weekday = 0
        for weekday in self.weekday.values:
            by_weekday |= _EACH_WEEK << (weekday - first) % 7
        for weekday, nth in self.nth:
            day = (weekday - first) % 7
            day += (length - 1 - day) // 7 * 7 if nth == LAST else (nth - 1) * 7
            by_weekday |= 1 << day
        matching = by_number & by_weekday if self.both else by_number | by_weekday
        return matching & ((1 << length) - 1)

    def parts(self) -> Iterator["Days"]:
        """The same days as a union of simpler ones, in each of which a day must match both sides."""
        numbers = [(Field(self.month_day.values, True), False)] if self.month_day.values else []
        if self.last_day:
            numbers.append((Field((), True), True))
        weekdays: list[tuple[Field, tuple[tuple[int, int], ...]]] = []
        if self.weekday.values:
            weekdays.append((Field(self.weekday.values, True), ()))
        if self.nth:
            weekdays.append((Field((), True), self.nth))
        if self.both:
            pairs = list(product(numbers, weekdays))
        else:
            pairs = [(number, (ANY_WEEKDAY, ())) for number in numbers]
            pairs += [((ANY_MONTH_DAY, False), weekday) for weekday in weekdays]
        for (month_day, last_day), (weekday, nth) in pairs:
            yield Days(month_day, last_day, weekday, nth)

    def come_in(self, months: tuple[int, ...]) -> bool:
        """Whether one of these months ever has such a day. Exact: each has every shape within 400 years."""
        lengths = {length for month in months for length in _LENGTHS[month]}
        return any(self.mask(length, first) for length, first in _EVERY_MONTH_SHAPE if length in lengths)


_EACH_WEEK: Final = sum(1 << day for day in range(0, 31, 7))
_LENGTHS: Final = {month: {monthrange(year, month)[1] for year in (2023, 2024)} for month in range(1, 13)}


@dataclass(frozen=True, slots=True)
class CronFields:
    """A cron expression by its meaning. Equal expressions are equal values."""

    minute: Field
    hour: Field
    days: Days
    month: Field
    rules: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """What croniter is asked, one expression each; empty when the expression never comes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(self._rules()))

    @property
    def fixed_time(self) -> bool:
        """Whether it names times of day, as against a rhythm: neither minute nor hour begins with `*`."""
        return not (self.minute.star or self.hour.star)

    @property
    def times_a_day(self) -> int:
        """How many slots a matching day has where no clock is changed."""
        return len(self.minute.values) * len(self.hour.values)

    def reading_after(self, after: Reading) -> Reading | None:
        """The first match later than `after`, or None when it lies well after the last instant."""
        seconds = after // SECOND
        found = min(_search(rule).get_next(float, start_time=seconds) for rule in self.rules)
        reading = Reading(int(found) * SECOND)
        return reading if reading < LATEST + _FURTHEST else None

    def reading_until(self, until: Reading) -> Reading | None:
        """The last match not later than `until`, or None when it lies well before the first instant."""
        seconds = until // SECOND + 1  # get_prev gives what is strictly earlier
        found = max(_search(rule).get_prev(float, start_time=seconds) for rule in self.rules)
        reading = Reading(int(found) * SECOND)
        return reading if reading >= EARLIEST - _FURTHEST else None

    def count(self, start: Reading, end: Reading) -> int:
        """How many matches there are from `start`, inclusive, to `end`, exclusive."""
        if end <= start:
            return 0
        first_day, first_minute = divmod(-(-start // MINUTE), _MINUTES_A_DAY)
        last_day, last_minute = divmod(-(-end // MINUTE), _MINUTES_A_DAY)
        whole_days = self._days_between(first_day, last_day) * self.times_a_day
        return whole_days + self._in_day(last_day, last_minute) - self._in_day(first_day, first_minute)

    def matches(self, start: Reading, end: Reading) -> Iterator[Reading]:
        """The matches from `start`, inclusive, to `end`, exclusive, in order: far faster than as many searches."""
        for day in self._days(start // DAY, -(-end // DAY)):
            for hour in self.hour.values:
                begin = day * DAY + hour * HOUR
                if begin + HOUR <= start:
                    continue
                for minute in self.minute.values:
                    reading = begin + minute * MINUTE
                    if reading >= end:
                        return
                    if reading >= start:
                        yield Reading(reading)

    def shortest_gap(self) -> Duration:
        """The shortest time between two matches; when that is over a year, a year."""
        times = [hour * 60 + minute for hour in self.hour.values for minute in self.minute.values]
        over_night = self._shortest_day_gap() * _MINUTES_A_DAY - (times[-1] - times[0])
        minutes = min([over_night, *(later - earlier for earlier, later in pairwise(times))])
        return Duration(minutes * MINUTE)

    def _rules(self) -> Iterator[str]:
        minute, hour = _listed(self.minute.values, 60), _listed(self.hour.values, 24)
        month = _listed(self.month.values, 12)
        for part in self.days.parts():
            if part.come_in(self.month.values):
                day = "L" if part.last_day else _listed(part.month_day.values, 31)
                nth = ",".join(f"L{day}" if nth == LAST else f"{day}#{nth}" for day, nth in part.nth)
                yield f"{minute} {hour} {day} {month} {nth or _listed(part.weekday.values, 7)}"

    def _mask(self, year: int, month: int) -> int:
        if month not in self.month.values:
            return 0
        monday_based, length = monthrange(year, month)
        return self.days.mask(length, (monday_based + 1) % 7)

    def _days_between(self, start: int, end: int) -> int:
        """How many days match from `start`, inclusive, to `end`, exclusive, as days since 1970-01-01."""
        return sum(mask.bit_count() for _, _, mask in self._months(start, end))

    def _days(self, start: int, end: int) -> Iterator[int]:
        """Which days match from `start`, inclusive, to `end`, exclusive, as days since 1970-01-01."""
        for first, days, mask in self._months(start, end):
            if mask:
                yield from (first + day for day in range(days) if mask >> day & 1)

    def _months(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """What of each month lies from `start` to `end`: its first day, how many, and a mask of those that match."""
        at = start
        while at < end:
            day = date.fromordinal(at + _EPOCH_DAY)
            days = min(monthrange(day.year, day.month)[1] - (day.day - 1), end - at)
            yield at, days, self._mask(day.year, day.month) >> (day.day - 1) & ((1 << days) - 1)
            at += days

    def _in_day(self, day: int, before: int) -> int:
        """Matches on that day before minute `before` of it."""
        if not before or not self._days_between(day, day + 1):
            return 0
        hour, minute = divmod(before, 60)
        whole_hours = bisect_left(self.hour.values, hour) * len(self.minute.values)
        return whole_hours + (bisect_left(self.minute.values, minute) if hour in self.hour.values else 0)

    def _shortest_day_gap(self) -> int:
        # 28 years hold every shape of a year beside every other that can follow it (1901 to 2099).
        days, shift = 0, 0
        for year, month in product(range(2001, 2029), range(1, 13)):
            days |= self._mask(year, month) << shift
            shift += monthrange(year, month)[1]
        gaps = (gap for gap in range(1, _LONGEST_GAP_DAYS) if days & (days >> gap))
        return next(gaps, _LONGEST_GAP_DAYS)


def _listed(values: tuple[int, ...], all_of_them: int) -> str:
    return "*" if len(values) == all_of_them else ",".join(map(str, values))


@lru_cache(maxsize=256)
def _search(rule: str) -> "croniter":
    # Imported at the first search, because it takes longer than the rest of a command that searches nothing.
    # Kept, because making one takes longer than a search; few, because ten thousand would be megabytes. Each
    # search starts from its own time, so nothing is carried over; but two threads must not search at once.
    from croniter import croniter

    return croniter(rule, 0.0, day_or=False)
