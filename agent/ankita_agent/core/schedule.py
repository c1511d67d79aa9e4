"""Schedules as people write them, and their slots in a time zone.

Five forms: cron (see `cron`), the `@` aliases, `@reboot`, `every 90s`, and words with a time, `weekdays
8:30am`. The words and the aliases are short for cron expressions and equal to them. `every` is a true
interval: its slots are the multiples of the span since 1970-01-01T00:00:00Z, whatever the zone and whenever
the agent started.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Final, assert_never

from ankita_agent.core.cron import WEEKDAYS, ScheduleError, parse_cron, uneven_steps, write_cron
from ankita_agent.core.durations import format_duration, parse_duration
from ankita_agent.core.fields import CronFields, Field
from ankita_agent.core.instants import MINUTE, SECOND, Duration, Instant
from ankita_agent.core.schedule_slips import explain_slip
from ankita_agent.core.schedule_words import cron_of_words, words_of_cron
from ankita_agent.core.wall_clock import WallClock, is_shown_again
from ankita_agent.core.wording import any_of, as_value, shown, write
from ankita_agent.core.zones import EARLIEST, LATEST, Reading, Zone

__all__ = [
    "Every",
    "Reboot",
    "Schedule",
    "ScheduleError",
    "Timetable",
    "joined_schedule",
    "parse_schedule",
    "warnings_of",
]


@dataclass(frozen=True, slots=True)
class Every:
    """A slot at each multiple of the span since 1970-01-01T00:00:00Z."""

    span: Duration


@dataclass(frozen=True, slots=True)
class Reboot:
    """Once for each boot: no slot that a clock could tell."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The rule that yields slots, in no zone yet.

    `text` is canonical: `parse_schedule` reads it back to an equal schedule, and equal schedules have equal
    texts, so `0 8 * * mon-fri` and `weekdays 08:00` are one schedule.
    """

    text: str
    rule: CronFields | Every | Reboot = field(compare=False, repr=False)

    @property
    def is_reboot(self) -> bool:
        """Whether it is `@reboot`."""
        return isinstance(self.rule, Reboot)


_ALIASES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = re.compile(r"every\s+([0-9].*)", re.IGNORECASE | re.DOTALL)
_WEEKS: Final = {tuple(range(day, day + 7)): number for number, day in enumerate((1, 8, 15, 22), start=1)}
_CHANGE_HOURS: Final = frozenset(range(4))  # in which nearly every zone changes its clocks


def parse_schedule(text: str) -> Schedule:
    """The schedule that the text writes. Raises ScheduleError, which says what to write instead."""
    stripped = text.strip()
    if stripped.startswith("@"):
        return _of_alias(text, stripped)
    if every := _EVERY.fullmatch(stripped):
        return _of_interval(text, every[1])
    cron = cron_of_words(text)
    if cron is not None:
        return _of_days_and_time(text, cron)
    if slip := explain_slip(text):
        raise slip
    return _of_cron(parse_cron(text))


def warnings_of(schedule: Schedule) -> list[tuple[str, str]]:
    """Shapes that seldom mean what they say: what the schedule does, and what to write for what was meant."""
    if not isinstance(schedule.rule, CronFields):
        return []
    fields = schedule.rule
    return [*_uneven(fields), *_star_minute_at_night(fields), *_either_day(fields)]


@dataclass(frozen=True, slots=True)
class Timetable:
    """The slots of a schedule in a zone, from the year 1800 to 9899.

    Nothing is kept between questions: an idle timetable is two references. `@reboot` has no slots here.
    """

    schedule: Schedule
    zone: Zone

    @property
    def is_reboot(self) -> bool:
        """Whether the slots are boots, of which a clock knows nothing."""
        return self.schedule.is_reboot

    def next_after(self, after: Instant) -> Instant | None:
        """The first slot later than `after`; None when there is none."""
        if after >= LATEST:
            return None
        after = Instant(max(after, EARLIEST - 1))
        match self.schedule.rule:
            case CronFields() as fields:
                slot = WallClock(fields, self.zone).next_after(after)
            case Every(span):
                slot = Instant((after // span + 1) * span)
            case Reboot():
                slot = None
            case never:
                assert_never(never)
        return slot if slot is not None and slot < LATEST else None

    def latest_until(self, until: Instant) -> Instant | None:
        """The last slot not later than `until`; None when there is none."""
        if until < EARLIEST:
            return None
        until = Instant(min(until, LATEST - 1))
        match self.schedule.rule:
            case CronFields() as fields:
                slot = WallClock(fields, self.zone).latest_until(until)
            case Every(span):
                slot = Instant(until // span * span)
            case Reboot():
                slot = None
            case never:
                assert_never(never)
        return slot if slot is not None and slot >= EARLIEST else None

    def count_between(self, after: Instant, until: Instant) -> int:
        """How many slots are later than `after` and not later than `until`.

        From the fields, a month at a time: a year of `* * * * *` costs no more than a year of Mondays.
        """
        after, until = Instant(max(after, EARLIEST - 1)), Instant(min(until, LATEST - 1))
        if until <= after:
            return 0
        match self.schedule.rule:
            case CronFields() as fields:
                return WallClock(fields, self.zone).count(Instant(after + 1), Instant(until + 1))
            case Every(span):
                return until // span - after // span
            case Reboot():
                return 0
            case never:
                assert_never(never)

    def slots_between(self, after: Instant, until: Instant) -> Iterator[Instant]:
        """The slots later than `after` and not later than `until`, in order; a small part of a search for each."""
        after, until = Instant(max(after, EARLIEST - 1)), Instant(min(until, LATEST - 1))
        match self.schedule.rule:
            case CronFields() as fields:
                return WallClock(fields, self.zone).slots(Instant(after + 1), Instant(until + 1))
            case Every(span):
                return map(Instant, range((after // span + 1) * span, until + 1, span))
            case Reboot():
                return iter(())
            case never:
                assert_never(never)

    def shortest_gap(self) -> Duration | None:
        """The shortest time between two neighbouring slots where no clock is changed; None for `@reboot`.

        At most a year. When clocks are changed, fixed-time slots may come closer than this.
        """
        match self.schedule.rule:
            case CronFields() as fields:
                return fields.shortest_gap()
            case Every(span):
                return span
            case Reboot():
                return None
            case never:
                assert_never(never)

    def local(self, instant: Instant) -> str:
        """What the clocks show then, for people: `2026-10-25 02:30 CEST`, with seconds when there are any."""
        moment = self.zone.datetime_at(instant)
        return moment.strftime("%Y-%m-%d %H:%M:%S %Z" if moment.second else "%Y-%m-%d %H:%M %Z")

    def note(self, slot: Instant) -> str:
        """What a change of the clocks does to a slot, for people; empty when it does nothing."""
        if isinstance(self.schedule.rule, CronFields):
            skipped = WallClock(self.schedule.rule, self.zone).skipped_at(slot)
            if skipped:
                first, last = (_time_of(reading) for reading in skipped)
                times = f"{first} does not exist" if first == last else f"{first} to {last} do not exist"
                return f"clocks go forward: {times}"
        segment = self.zone.segment_at(slot)
        if segment.reading_at(slot) < segment.read_until:
            return "clocks go back: second pass"
        return "clocks go back: first pass" if is_shown_again(self.zone, slot) else ""


def _of_cron(fields: CronFields) -> Schedule:
    text = write_cron(fields)
    return Schedule(words_of_cron(text) or text, fields)


def _of_days_and_time(text: str, cron: str) -> Schedule:
    try:
        return _of_cron(parse_cron(cron))
    except ScheduleError as wrong:
        problem, offset = wrong.problem, len(text) - len(text.lstrip())
        raise ScheduleError(problem, wrong.fix, value=text.strip(), offset=offset, field=wrong.field) from None


def joined_schedule(texts: Sequence[str]) -> str | None:
    """One schedule with the slots of all of these, if they differ in the hour, or in the day of week, alone."""
    try:
        rules = [parse_schedule(text).rule for text in texts]
    except ScheduleError:
        return None
    fields = [rule for rule in rules if isinstance(rule, CronFields)]
    if not fields or len(fields) != len(rules):
        return None
    first = fields[0]
    hours = Field(tuple(sorted({hour for each in fields for hour in each.hour.values})), first.hour.star)
    weekdays = Field(
        tuple(sorted({day for each in fields for day in each.days.weekday.values})), first.days.weekday.star
    )
    at_all_hours = {replace(each, hour=hours) for each in fields}
    on_all_days = {replace(each, days=replace(each.days, weekday=weekdays)) for each in fields}
    joined = next((alike for alike in (at_all_hours, on_all_days) if len(alike) == 1), None)
    return _of_cron(joined.pop()).text if joined else None


def _of_alias(text: str, alias: str) -> Schedule:
    name = alias.lower()
    if name == "@reboot":
        return Schedule(name, Reboot())
    if name in _ALIASES:
        return _of_cron(parse_cron(_ALIASES[name]))
    known = sorted([*_ALIASES, "@reboot"])
    fix = f"write an alias, as in {any_of(map(as_value, known))}"
    if name.startswith("@every "):
        fix = write(as_value(f"every {alias.split(maxsplit=1)[1]}"))
    elif near := get_close_matches(name, known, n=1):
        fix = write(as_value(near[0]))
    raise ScheduleError(f"{shown(alias)} is not an alias", fix, value=alias, offset=text.index("@"))


def _of_interval(text: str, written: str) -> Schedule:
    offset = len(text.rstrip()) - len(written)
    try:
        span = parse_duration(written)
    except ValueError as wrong:
        problem, _, fix = str(wrong).rpartition("; ")
        fix = fix.replace("`", "`every ", 1) if fix.startswith("write `") else "write an interval, as in `every 90s`"
        raise explain_slip(text) or ScheduleError(problem, fix, value=written, offset=offset) from None
    if span < SECOND or span % SECOND:
        raise ScheduleError(
            f"{shown(written)} is not a whole number of seconds from 1s up",
            f"{write('every 1s')} or longer",
            value=written,
            offset=offset,
        )
    return Schedule(f"every {format_duration(span)}", Every(span))


def _uneven(fields: CronFields) -> Iterator[tuple[str, str]]:
    """`*/35` starts over with each hour: 35 minutes, then 25."""
    days = fields.days
    if (len(days.month_day.values), len(days.weekday.values), len(fields.month.values)) != (31, 7, 12):
        return
    for name, step, left in uneven_steps(fields):
        goes_on, starts_over = (len(fields.hour.values) == 24, "hour")
        if name == "hour":
            goes_on, starts_over = (len(fields.minute.values) == 1, "day")
        if goes_on:
            yield (
                f"*/{step} starts over with each {starts_over}: the last gap is {left} {name}s, not {step}",
                f"{write(f'every {step}{name[0]}')} for an even rhythm",
            )


def _star_minute_at_night(fields: CronFields) -> Iterator[tuple[str, str]]:
    """`*/30 2 * * *` is a rhythm to cron, not a time of day."""
    if fields.minute.star and not fields.hour.star and _CHANGE_HOURS.intersection(fields.hour.values):
        spelled = CronFields(Field(fields.minute.values, False), fields.hour, fields.days, fields.month)
        yield (
            "a minute that begins with * makes a rhythm: when the clocks change it is skipped or comes twice",
            f"{write(as_value(write_cron(spelled)))} to run once on each day",
        )


def _either_day(fields: CronFields) -> Iterator[tuple[str, str]]:
    """`0 0 13 * fri` runs on each 13th and on each Friday."""
    days = fields.days
    if days.both:
        return
    minute, hour, month_day, month, weekday = write_cron(fields).split()
    week = _WEEKS.get(days.month_day.values)
    one, other = f"{minute} {hour} {month_day} {month} *", f"{minute} {hour} * {month} {weekday}"
    fix = f"{write(as_value(one), as_value(other))} for one of them"
    if week and not days.last_day and len(days.weekday.values) == 1 and not days.nth:
        name = WEEKDAYS[days.weekday.values[0]]
        fix = f"{write(as_value(f'{minute} {hour} * {month} {name}#{week}'))} for that day of week only"
    yield (
        f"runs on day of month {month_day} and also on day of week {weekday}, not only where both match",
        fix,
    )


def _time_of(reading: Reading) -> str:
    hour, minute = divmod(reading // MINUTE % (24 * 60), 60)
    return f"{hour:02}:{minute:02}"
