"""Our cron grammar: five fields to `CronFields`, or a ScheduleError that says what to write instead.

Numbers, names (`jan`, `mon`; any case), lists, ascending ranges, steps on `*` or a range, `L` (the last day
of the month), `5L` (its last Friday) and `fri#2`. 0 and 7 are Sunday. What other crons give a meaning to
and we do not (`R`, `H`, `~`, `?`, `W`, `5/10`, a sixth field) is refused rather than guessed at: `5/10`
alone is 5 to Vixie, who stops reading there, and 5-59/10 to others. Source: crontab(5) of Debian; entry.c
of Vixie cron.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ankita_agent.core.fields import LAST, CronFields, Days, Field
from ankita_agent.core.wording import as_value, shown, write


class ScheduleError(ValueError):
    """A text that is no schedule: the `problem`, and the `fix`, which says what to write instead, as YAML.

    `value` is the offending part as written and `offset` counts the characters before it, from 0; `field`
    names the cron field that it stands in, or is empty.
    """

    def __init__(self, problem: str, fix: str, *, value: str = "", offset: int = 0, field: str = "") -> None:
        super().__init__(f"{problem}; {fix}")
        self.problem, self.fix, self.value, self.offset, self.field = problem, fix, value, offset, field


@dataclass(frozen=True, slots=True)
class _Kind:
    """What one of the five fields may hold; `accepts` is the highest number, when it is not `high`."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    accepts: int | None = None

    @property
    def top(self) -> int:
        return self.high if self.accepts is None else self.accepts


WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

_MINUTE: Final = _Kind("minute", 0, 59)
_HOUR: Final = _Kind("hour", 0, 23)
_MONTH_DAY: Final = _Kind("day of month", 1, 31)
_MONTH: Final = _Kind("month", 1, 12, ("", *MONTHS))
_WEEKDAY: Final = _Kind("day of week", 0, 6, WEEKDAYS, accepts=7)
_KINDS: Final = (_MINUTE, _HOUR, _MONTH_DAY, _MONTH, _WEEKDAY)
ORDER: Final = "minute, hour, day of month, month, day of week"

_SPREAD: Final = "; 'jitter' spreads starts, and the same way each day"
_FOREIGN_PART: Final = re.compile(r"\?|.*~.*|[hr](?:\(.*\))?(?:/.*)?|\d+w|w\d+|lw", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of the text, where it stands, and the field that it belongs to."""

    kind: _Kind
    text: str
    offset: int

    def refuse(self, problem: str, fix: str) -> ScheduleError:
        return ScheduleError(problem, fix, value=self.text, offset=self.offset, field=self.kind.name)

    def replace(self, problem: str, instead: str, why: str = "") -> "_Replaceable":
        return _Replaceable(self, problem, instead, why)

    def split(self, separator: str) -> list["_Part"]:
        parts, offset = [], self.offset
        for text in self.text.split(separator):
            parts.append(_Part(self.kind, text, offset))
            offset += len(text) + len(separator)
        return parts


class _Replaceable(ScheduleError):
    """A part for which it is known what was meant; `within` gives the whole expression with it."""

    def __init__(self, part: _Part, problem: str, instead: str, why: str) -> None:
        super().__init__(problem, write(instead) + why, value=part.text, offset=part.offset, field=part.kind.name)
        self._instead, self._why = instead, why

    def within(self, text: str) -> ScheduleError:
        """The error for the expression `text`, with the whole of it to write."""
        whole = text[: self.offset] + self._instead + text[self.offset + len(self.value) :]
        fix = write(as_value(" ".join(whole.split()))) + self._why
        return ScheduleError(self.problem, fix, value=self.value, offset=self.offset, field=self.field)


@dataclass(slots=True)
class _Found:
    """What the items of one field name together."""

    values: set[int]
    nth: set[tuple[int, int]]
    last_day: bool = False


def parse_cron(text: str) -> CronFields:
    """The fields that the text writes. Raises ScheduleError, also for an expression that never comes."""
    words = [(match.group(), match.start()) for match in re.finditer(r"\S+", text)]
    if len(words) != len(_KINDS):
        raise _wrong_number(words)
    parts = [_Part(kind, word, offset) for kind, (word, offset) in zip(_KINDS, words, strict=True)]
    try:
        minute, hour, month_day, month, weekday = (_read_field(part) for part in parts)
    except _Replaceable as wrong:
        raise wrong.within(text) from None
    stars = [part.text.startswith("*") for part in parts]
    fields = CronFields(
        minute=Field(tuple(sorted(minute.values)), stars[0]),
        hour=Field(tuple(sorted(hour.values)), stars[1]),
        days=Days(
            month_day=Field(tuple(sorted(month_day.values)), stars[2]),
            last_day=month_day.last_day,
            weekday=Field(tuple(sorted(weekday.values)), stars[4]),
            nth=tuple(sorted(weekday.nth)),
        ),
        month=Field(tuple(sorted(month.values)), stars[3]),
    )
    if not fields.rules:
        raise _never(text, fields, parts[2])
    return fields


def write_cron(fields: CronFields) -> str:
    """The text of the fields that `parse_cron` reads back, the same for equal fields."""
    days = fields.days
    month_day = [_write_field(_MONTH_DAY, days.month_day), "L" if days.last_day else ""]
    nth = [f"{day}L" if nth == LAST else f"{day}#{nth}" for day, nth in days.nth]
    weekday = [_write_field(_WEEKDAY, days.weekday), *nth]
    written = (
        _write_field(_MINUTE, fields.minute),
        _write_field(_HOUR, fields.hour),
        ",".join(filter(None, month_day)),
        _write_field(_MONTH, fields.month),
        ",".join(filter(None, weekday)),
    )
    return " ".join(written)


def uneven_steps(fields: CronFields) -> list[tuple[str, int, int]]:
    """The steps on `*` in minute and hour that leave a rest of the hour or day: field name, step, rest."""
    found = []
    for kind, field in ((_MINUTE, fields.minute), (_HOUR, fields.hour)):
        step = _star_step(kind, field)
        if field == Field(tuple(range(kind.low, kind.high + 1, step)), True) and (kind.high + 1) % step:
            found.append((kind.name, step, (kind.high + 1) % step))
    return found


def _read_field(part: _Part) -> _Found:
    found = _Found(set(), set())
    for item in part.split(","):
        if not item.text:
            instead = ",".join(filter(None, part.text.split(","))) or "*"
            raise part.replace(f"{part.kind.name} {shown(part.text)} has an empty item", instead)
        if not _read_special(item, found):
            found.values.update(value % 7 if part.kind is _WEEKDAY else value for value in _read_item(item))
    return found


def _read_special(item: _Part, found: _Found) -> bool:
    """Note `L`, `5L` and `fri#2`; False when the item is none of them. Raises ScheduleError."""
    text = item.text.lower()
    if _FOREIGN_PART.fullmatch(text):
        raise _foreign(item, text)
    if item.kind is _MONTH_DAY and text == "l":
        found.last_day = True
        return True
    if item.kind is not _WEEKDAY:
        return False
    day, hash_, nth = item.text.partition("#")
    if hash_:
        if not re.fullmatch("[1-5]", nth):
            problem = f"the number after # must be 1 to 5, got {shown(nth)}"
            raise item.replace(problem, f"{day}#1", " for the first of a month")
        found.nth.add((_read_value(_Part(item.kind, day, item.offset)) % 7, int(nth)))
        return True
    if re.fullmatch("l[0-9]*", text):
        raise item.replace(f"day of week {shown(item.text)} is not understood here", f"{text[1:] or 5}L")
    if text.endswith("l"):
        found.nth.add((_read_value(_Part(item.kind, item.text[:-1], item.offset)) % 7, LAST))
        return True
    return False


def _read_item(item: _Part) -> Sequence[int]:
    """`*`, a value or a range, with or without a step, as its values. Raises ScheduleError."""
    base, *steps = item.split("/")
    kind = item.kind
    if base.text == "*":
        low, high = kind.low, kind.high
    elif "-" in base.text[1:]:
        low, high = _read_range(base)
    else:
        low = high = _read_value(base)
        if steps:
            raise item.replace(
                f"{kind.name} {shown(item.text)} has a step on a single value",
                f"{low}-{kind.high}/{steps[0].text}",
                f" to count on from {low}",
            )
    if not steps:
        return range(low, high + 1)
    return range(low, high + 1, _read_step(item, steps))


def _read_range(base: _Part) -> tuple[int, int]:
    ends = base.split("-")
    if len(ends) != 2:
        raise base.replace(f"{shown(base.text)} is not a range", f"{ends[0].text}-{ends[-1].text}")
    low, high = (_read_value(end) for end in ends)
    if low > high:
        kind = base.kind
        around = {*range(low, kind.high + 1), *range(kind.low, high + 1)}
        if kind is _WEEKDAY:
            around = {value % 7 for value in around}
        raise base.replace(f"{kind.name} range {shown(base.text)} runs backwards", _write_values(sorted(around)))
    return low, high


def _read_step(item: _Part, steps: list[_Part]) -> int:
    kind, longest = item.kind, item.kind.high - item.kind.low
    text = steps[0].text
    if len(steps) > 1 or not re.fullmatch("[0-9]+", text):
        example = as_value(" ".join("*/5" if each is kind else "*" for each in _KINDS))
        raise item.refuse(f"{shown(item.text)} is not a step", f"write a number behind one slash, as in `{example}`")
    if len(text) > 4 or not 1 <= int(text) <= longest:
        fix = f"write a step from 1 to {longest}"
        if kind in (_MINUTE, _HOUR) and text.strip("0"):
            fix = f"{write(f'every {text}{kind.name[0]}')} to repeat after that time"
        elif kind is _MONTH_DAY and text.strip("0"):
            fix = "for the first Monday of a month name it as the day of week, as in `0 8 * * mon#1`"
        raise item.refuse(f"the step of {kind.name} must be 1 to {longest}, got {shown(text)}", fix)
    return int(text)


def _read_value(part: _Part) -> int:
    """A number or a name. Raises ScheduleError with the value and what is allowed."""
    kind, text = part.kind, part.text.lower()
    if text and text in kind.names:
        return kind.names.index(text)
    if re.fullmatch("[0-9]{1,4}", text) and kind.low <= int(text) <= kind.top:
        return int(text)
    allowed = f"{kind.low} to {kind.top}"
    if kind.names:
        allowed += f" or {kind.names[kind.low]} to {kind.names[kind.high]}"
    problem = f"{kind.name} must be {allowed}, got {shown(part.text) if part.text else 'nothing'}"
    if text[:3] in kind.names and len(text) > 3:
        raise part.replace(problem, text[:3])
    if (kind, text) in ((_HOUR, "24"), (_MINUTE, "60")):
        raise part.replace(problem, "0", f": {kind.name}s are counted from 0")
    if re.fullmatch(r"\*[0-9]+", text):
        raise part.replace(problem, f"*/{text[1:]}", " for every so many")
    if text[:3] in MONTHS or text[:3] in WEEKDAYS:
        raise part.refuse(problem, f"write the five fields in their order: {ORDER}")
    raise part.refuse(problem, f"write a number from {kind.low} to {kind.top}")


def _foreign(item: _Part, text: str) -> ScheduleError:
    """The error for what only other crons understand."""
    problem = f"{item.kind.name} {shown(item.text)} is not understood here"
    mark = next(mark for mark in "?~whr" if mark in text)
    if mark == "?":
        return item.replace(problem, "*")
    if mark == "w":
        return item.refuse(problem, "name a day of week, as in `0 8 * * mon#1` for the first Monday of a month")
    step = re.fullmatch("[hr](?:/([1-9][0-9]*))", text)
    return item.replace(problem, f"*/{step[1]}" if step else str(item.kind.low), _SPREAD)


def _wrong_number(words: list[tuple[str, int]]) -> ScheduleError:
    """The error for other than five words; for more, it shows the five that were meant."""
    five, texts = len(_KINDS), [word for word, _ in words]
    problem = f"a cron expression has five fields ({ORDER}), this has {len(texts)}"
    if len(texts) < five:
        fix = "write all five, as in `30 8 * * *`, or words, as in `daily 08:30`"
        return ScheduleError(problem, fix, value=" ".join(texts), offset=words[0][1] if words else 0)
    # Quartz and its kin put seconds first and a year last, and write ? for a day field that is not used.
    first_five, next_five = (" ".join(texts[at : at + five]).replace("?", "*") for at in (0, 1))
    sixth, surplus = texts[five], five
    year_last = len(texts) == five + 1 and bool(re.fullmatch(r"\d{4}(?:-\d{4})?", sixth))
    fix = "write five, as in `30 8 * * *`"
    if _is_cron(first_five) and not (year_last or _is_cron(f"* * * * {sixth.replace('?', '*')}")):
        zone = len(texts) == five + 1 and re.fullmatch(r"UTC|[A-Z]\w*/[\w/+-]+", sixth)
        problem = f"{shown(sixth)} follows the five fields"
        belongs = "the zone belongs to the key 'timezone'" if zone else "the command belongs to the key 'run'"
        fix = f"{write(as_value(first_five))}; {belongs}"
    elif _is_cron(next_five) and not year_last:
        surplus = 0
        seconds = re.fullmatch(r"\*(?:/([1-9]\d?))?", texts[0])
        also = " and the last field (year)" if len(texts) > five + 1 else ""
        fix = f"{write(as_value(next_five))}, without the first field (seconds){also}"
        if seconds and next_five == "* * * * *":
            fix = write(f"every {seconds[1] or 1}s")
    elif _is_cron(first_five):
        fix = f"{write(as_value(first_five))}, without the last field (year)"
    return ScheduleError(problem, fix, value=texts[surplus], offset=words[surplus][1])


def _is_cron(text: str) -> bool:
    try:
        return len(text.split()) == len(_KINDS) and bool(parse_cron(text))
    except ScheduleError:
        return False


def _never(text: str, fields: CronFields, month_day: _Part) -> ScheduleError:
    """The error for 31 February and its like."""
    months = [MONTHS[month - 1].capitalize() for month in fields.month.values]
    named = " or ".join(months) if len(months) < len(MONTHS) else "month"
    return month_day.replace(
        f"{shown(text.strip())} never comes: no {named} has such a day",
        "L",
        " for the last day of a month",
    ).within(text)


def _write_field(kind: _Kind, field: Field) -> str:
    values = set(field.values)
    if not field.star:
        return _write_values(field.values)
    step = _star_step(kind, field)
    rest = values - set(range(kind.low, kind.high + 1, step))
    star = "*" if step == 1 else f"*/{step}"
    return f"{star},{_write_values(sorted(rest))}" if rest else star


def _star_step(kind: _Kind, field: Field) -> int:
    """The smallest step on `*` whose values the field holds; 1 where there is none."""
    values = set(field.values)
    steps = range(1, kind.high - kind.low + 1)
    return next((step for step in steps if values.issuperset(range(kind.low, kind.high + 1, step))), 1)


def _write_values(values: Sequence[int]) -> str:
    """Ascending values as a list of ranges, or as one range with a step: `1-5,8`, `10-50/20`."""
    steps = {later - earlier for earlier, later in pairwise(values)}
    if len(values) > 2 and len(steps) == 1 and steps != {1}:
        return f"{values[0]}-{values[-1]}/{steps.pop()}"
    written: list[str] = []
    start = 0
    for at in range(1, len(values) + 1):
        if at == len(values) or values[at] != values[at - 1] + 1:
            run = values[start:at]
            written += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run)
            start = at
    return ",".join(written)
