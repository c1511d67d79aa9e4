"""Rows as SQLite gives them, made into the values of `core.rows`. The order of columns is that of
reading.sql.
"""

from collections.abc import Mapping
from typing import Any, Final

from ankita_agent.core.outcomes import Outcome, Reason, Trigger
from ankita_agent.core.rows import Account, HistoryRow, InForce, OpenFire, ProcessId, TermRecord

Columns = tuple[Any, ...]
"""One row as sqlite3 gives it: int, str or None in each place."""

_OUTCOMES: Final[Mapping[str | None, Outcome | None]] = {None: None, **{each.value: each for each in Outcome}}
_REASONS: Final[Mapping[str | None, Reason | None]] = {None: None, **{each.value: each for each in Reason}}
_TRIGGERS: Final[Mapping[str, Trigger]] = {each.value: each for each in Trigger}


def history_row(columns: Columns) -> HistoryRow:
    """One row of the history."""
    fire, routine, slot, until, count, trigger, outcome, reason, quiet, *rest = columns
    return HistoryRow(
        fire,
        routine,
        slot,
        until,
        count,
        _TRIGGERS[trigger],
        _OUTCOMES[outcome],
        _REASONS[reason],
        bool(quiet),
        *rest,
    )


def open_fire(columns: Columns) -> OpenFire:
    """One fire without an outcome."""
    fire, routine, slot, trigger, term, token, claimed_at, started_at, attempt, log, *process = columns
    return OpenFire(
        fire,
        routine,
        slot,
        _TRIGGERS[trigger],
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
    routine, schedule, timezone, jitter, enabled, description, meaning, *mark = columns
    return Account(InForce(routine, schedule, timezone, jitter, bool(enabled), description, meaning), *mark)


def term_record(columns: Columns) -> TermRecord:
    """One ownership."""
    term, token, started_at, seen_until, ended_at, *process = columns
    return TermRecord(term, token, ProcessId(*process), started_at, seen_until, ended_at)
