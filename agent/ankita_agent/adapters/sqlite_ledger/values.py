"""Rows as SQLite gives them, made into the values of `core.rows`.

The problem: a column takes any type of value (https://www.sqlite.org/datatype3.html), and a file that a person or a
failing disk has changed may hold any. The rule: nothing leaves here that is not of the type and kind that its place
has; Unfit is told as a damaged ledger by whoever asked. The shapes name the columns in the order of reading.sql.
tests/unit/test_ledger_values.py holds it, for each column. Rejected: STRICT tables (SQLite 3.37, see schema.sql).
"""

import json
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from ankita_agent.core.instants import Instant
from ankita_agent.core.outcomes import Outcome, Reason, Trigger
from ankita_agent.core.rows import Account, Covered, HistoryRow, InForce, OpenFire, ProcessId, TermRecord

Columns = tuple[Any, ...]
"""One row as sqlite3 gives it: anything in each place."""

Shape = tuple[tuple[str, frozenset[type]], ...]
"""The columns of a row: what each is called, and of which types it may be."""

Standing = tuple[Instant | None, Instant | None, int]
"""When the last success ended, the slot of that, and how many slots since then had none."""

_T = TypeVar("_T")

_OUTCOMES: Final[Mapping[str | None, Outcome | None]] = {None: None, **{each.value: each for each in Outcome}}
_REASONS: Final[Mapping[str | None, Reason | None]] = {None: None, **{each.value: each for each in Reason}}
_TRIGGERS: Final[Mapping[str, Trigger]] = {each.value: each for each in Trigger}
_LONGEST_SHOWN: Final = 60


class Unfit(ValueError):
    """The ledger holds a value that nobody can have written there; says which."""


def shape(columns: str) -> Shape:
    """Columns as `name:int` or `name:str`, with a `?` behind what may be NULL."""
    types: dict[str, set[type]] = {"int": {int}, "str": {str}, "int?": {int, type(None)}, "str?": {str, type(None)}}
    pairs = (column.split(":") for column in columns.split())
    return tuple((name, frozenset(types[kind])) for name, kind in pairs)


def fitting(columns: Columns, of: Shape) -> Columns:
    """The same columns when each is of a type of its shape; raises Unfit."""
    for value, (name, types) in zip(columns, of, strict=True):
        if type(value) not in types:
            raise _unfit(name, value)
    return columns


_HISTORY: Final = shape(
    "fire:int routine:str slot:int until:int count:int trigger:str outcome:str? reason:str? quiet:int claimed_at:int? "
    "started_at:int? ended_at:int? exit_code:int? signal:int? attempts:int term:int log:str? request:str? "
    "blocked_by:int? detail:str"
)
_OPEN_FIRE: Final = shape(
    "fire:int routine:str slot:int trigger:str term:int token:str claimed_at:int started_at:int? attempts:int log:str? "
    "pid:int? ticks:int? process_boot:str? namespace:int?"
)
_ACCOUNT: Final = shape(
    "routine:str schedule:str timezone:str jitter:int enabled:int description:str meaning:str accounted_until:int "
    "relived_until:int? known_since_boot:str reckoned_since:int zone_rules:str"
)
_TERM: Final = shape(
    "term:int token:str started_at:int seen_until:int ended_at:int? pid:int ticks:int boot:str namespace:int"
)
_COVERED: Final = shape("slot:int until:int count:int")
_SLOT: Final = shape("routine:str slot:int")
_STANDING: Final = shape("routine:str ended_at:int? slot:int? count:int")
_NAME: Final = shape("routine:str")
_NUMBER: Final = shape("number:int")
_ZONE: Final = shape("timezone:str rules:str")
_CUT: Final = shape("fire:int routine:str slot:int")


def history_row(columns: Columns) -> HistoryRow:
    """One row of the history."""
    fire, routine, slot, until, count, trigger, outcome, reason, quiet, *rest = fitting(columns, _HISTORY)
    _check_stretch(slot, until, count)
    return HistoryRow(
        fire,
        routine,
        slot,
        until,
        count,
        _member(_TRIGGERS, "trigger", trigger),
        _member(_OUTCOMES, "outcome", outcome),
        _member(_REASONS, "reason", reason),
        bool(quiet),
        *rest,
    )


def open_fire(columns: Columns) -> OpenFire:
    """One fire without an outcome."""
    fire, routine, slot, trigger, term, token, claimed_at, started_at, attempt, log, *process = fitting(
        columns, _OPEN_FIRE
    )
    if started_at is not None and None in process:
        raise _unfit("started_at", started_at, "and no process")
    return OpenFire(
        fire,
        routine,
        slot,
        _member(_TRIGGERS, "trigger", trigger),
        term,
        token,
        claimed_at,
        started_at,
        ProcessId(*process) if started_at is not None else None,
        attempt,
        log,
    )


def account(columns: Columns) -> Account:
    """One routine in force with its mark."""
    routine, schedule, timezone, jitter, enabled, description, meaning, *mark = fitting(columns, _ACCOUNT)
    accounted_until, relived_until, _, reckoned_since, _ = mark
    if reckoned_since > max(accounted_until, relived_until or accounted_until):
        raise _unfit("reckoned_since", reckoned_since, f"above the mark of {routine}")
    _check_meaning(meaning)
    return Account(InForce(routine, schedule, timezone, jitter, bool(enabled), description, meaning), *mark)


def term_record(columns: Columns) -> TermRecord:
    """One ownership."""
    term, token, started_at, seen_until, ended_at, *process = fitting(columns, _TERM)
    return TermRecord(term, token, ProcessId(*process), started_at, seen_until, ended_at)


def covered(columns: Columns) -> Covered:
    """What one row covers."""
    slot, until, count = fitting(columns, _COVERED)
    _check_stretch(slot, until, count)
    return Covered(slot, until, count)


def slot_of(columns: Columns) -> tuple[str, Instant]:
    """A routine and a slot."""
    routine, slot = fitting(columns, _SLOT)
    return routine, slot


def standing(columns: Columns) -> tuple[str, Standing]:
    """A routine, and how it stands."""
    routine, ended_at, slot, count = fitting(columns, _STANDING)
    return routine, (ended_at, slot, count)


def name(columns: Columns) -> str:
    """The name of a routine."""
    (found,) = fitting(columns, _NAME)
    return str(found)


def number(columns: Columns) -> int:
    """A number."""
    (found,) = fitting(columns, _NUMBER)
    return int(found)


def zone(columns: Columns) -> tuple[str, str]:
    """A time zone and its rules."""
    timezone, rules = fitting(columns, _ZONE)
    return timezone, rules


def cut(columns: Columns) -> tuple[int, str, Instant]:
    """A row that may have to be cut: its number, its routine and its first slot."""
    fire, routine, slot = fitting(columns, _CUT)
    return fire, routine, slot


def _check_stretch(slot: int, until: int, count: int) -> None:
    if count < 1 or until < slot or (count == 1) != (until == slot):
        raise _unfit("count", count, f"of the slots from {slot} to {until}")


def _check_meaning(meaning: str) -> None:
    try:
        found = json.loads(meaning)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or type(found.get("stale_after")) not in (int, type(None)):
        raise _unfit("meaning", meaning)


def _member(members: Mapping[Any, _T], name: str, value: object) -> _T:
    if value not in members:
        raise _unfit(name, value)
    return members[value]


def _unfit(name: str, value: object, where: str = "") -> Unfit:
    text = "NULL" if value is None else ascii(value)
    shown = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
    return Unfit(f"a value of {name} is {shown}{where and f' {where}'}")
