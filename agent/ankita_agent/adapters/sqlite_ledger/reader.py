"""The questions anybody may ask the ledger."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, TypeVar

from ankita_agent.adapters.sqlite_ledger.faults import Doing, damaged, told
from ankita_agent.adapters.sqlite_ledger.values import (
    Columns,
    Unfit,
    account,
    covered,
    history_row,
    name,
    open_fire,
    slot_of,
    standing,
    term_record,
)
from ankita_agent.core.instants import Instant
from ankita_agent.core.rows import Account, Covered, HistoryRow, OpenFire, RoutineSummary, TermRecord

_T = TypeVar("_T")

RECENT_SLOTS: Final = 3
"""How many slots `RoutineSummary.recent` reaches back."""


class SqliteLedgerReader:
    """`ports.ledger.LedgerReader` on one connection; for one thread.

    Every answer is one moment of the ledger: what takes several queries runs in one read transaction.
    """

    def __init__(self, connection: sqlite3.Connection, path: str, reading: Mapping[str, str]) -> None:
        self._connection = connection
        self._path = path
        self._reading = reading

    def one_moment(self) -> AbstractContextManager[None]:
        """Within it every answer is of one moment: one read transaction. It may be nested."""
        return nullcontext() if self._connection.in_transaction else self._read_transaction()

    def newest_term(self) -> TermRecord | None:
        """The newest ownership, or None before the first."""
        found = self._ask("newest_term", term_record)
        return found[0] if found else None

    def accounts(self) -> dict[str, Account]:
        """The routines in force by name, in the order of their file."""
        return {each.in_force.routine: each for each in self._ask("accounts", account)}

    def open_fires(self) -> list[OpenFire]:
        """Every fire without an outcome, oldest first."""
        return self._ask("open_fires", open_fire)

    def summaries(self) -> list[RoutineSummary]:
        """The routines in force with how they are doing, in the order of their file."""
        with self.one_moment():
            accounts = self.accounts()
            running = {fire.routine: fire for fire in self.open_fires()}
            standings = dict(self._ask("standings", standing))
            newest = self._ask("newest_of_each", history_row, slots=RECENT_SLOTS)
        rows: defaultdict[str, list[HistoryRow]] = defaultdict(list)
        for row in newest:
            rows[row.routine].append(row)
        return [
            _summary(each, rows[routine], running.get(routine), *standings[routine])
            for routine, each in accounts.items()
        ]

    def history(self, routine: str | None, limit: int) -> list[HistoryRow]:
        """The newest `limit` rows, newest first; of one routine when it is named."""
        limit = max(limit, 0)  # SQLite takes a negative one for "all"
        if routine is None:
            return self._ask("history", history_row, limit=limit)
        return self._ask("history_of_routine", history_row, routine=routine, limit=limit)

    def fire_of_request(self, request: str) -> HistoryRow | None:
        """The row of a manual request, or None while nobody has taken it up."""
        found = self._ask("row_of_request", history_row, request=request)
        return found[0] if found else None

    def accounted_in_boot(self, boot: str) -> set[str]:
        """The `@reboot` routines that have their row for a boot."""
        return set(self._ask("accounted_in_boot", name, boot=boot))

    def row(self, fire: int) -> HistoryRow | None:
        """One row by its number."""
        found = self._ask("row", history_row, fire=fire)
        return found[0] if found else None

    def doubled(self, limit: int) -> list[tuple[str, Instant]]:
        """Routines and slots that more than one row ends: at most `limit` of them. There must be none."""
        return self._ask("doubled", slot_of, limit=max(limit, 0))

    def covered(self, routine: str, after: Instant) -> list[Covered]:
        """What the routine's rows of slots cover that end after `after`, in order; no boots, no manual runs."""
        return self._ask("covered", covered, routine=routine, after=after)

    def close(self) -> None:
        """Let go of the file. Idempotent."""
        with told(self._path, Doing.READ):
            self._connection.close()

    @contextmanager
    def _read_transaction(self) -> Iterator[None]:
        with told(self._path, Doing.READ):
            self._connection.execute("BEGIN")
        try:
            yield
        finally:
            if self._connection.in_transaction:  # an I/O error has ended it already
                with told(self._path, Doing.READ):
                    self._connection.execute("ROLLBACK")

    def _ask(self, query: str, make: Callable[[Columns], _T], **values: object) -> list[_T]:
        """All rows at once: an answer that is read bit by bit would hold its read transaction open."""
        with told(self._path, Doing.READ):
            return self._made(self._connection.execute(self._reading[query], values), make)

    def _made(self, found: sqlite3.Cursor, make: Callable[[Columns], _T]) -> list[_T]:
        try:
            return [make(columns) for columns in found.fetchall()]
        except Unfit as unfit:
            raise damaged(self._path, str(unfit)) from unfit


def _summary(
    account: Account,
    rows: list[HistoryRow],
    running: OpenFire | None,
    succeeded_at: Instant | None,
    succeeded_slot: Instant | None,
    unsuccessful: int,
) -> RoutineSummary:
    """`rows` newest first: at least the newest, the newest fire and the newest slots that have an outcome."""
    recent: list[HistoryRow] = []
    slots = 0
    for row in rows:
        if slots >= RECENT_SLOTS:
            break
        if row.request is None:
            recent.append(row)
            slots += row.count
    return RoutineSummary(
        account=account,
        last=rows[0] if rows else None,
        last_run=next((row for row in rows if row.claimed_at is not None), None),
        last_success=succeeded_at,
        last_success_slot=succeeded_slot,
        running=running,
        recent=tuple(recent),
        unsuccessful_slots=unsuccessful,
    )
