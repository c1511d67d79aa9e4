"""Values that nobody can have written: whatever stands in a column, a question is answered or the ledger is damaged."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

import pytest

from ankita_agent.adapters.sqlite_ledger import SqliteLedger, memory_ledger
from ankita_agent.adapters.sqlite_ledger.values import Unfit, fitting, shape
from ankita_agent.app.account import take_account
from ankita_agent.core.errors import Fenced, LedgerDamaged, LedgerUnavailable
from ankita_agent.core.instants import Instant
from ankita_agent.ports.ledger import LedgerReader
from tests.ledgers import AGENT, BOOT, at, claim, fire_now, missed, routine, seated, start, success

VALUES: Final = ("'abc'", "''", "1.5", "x'ff'", "CAST(x'ff' AS TEXT)", "NULL", "-1", "9223372036854775807", "0", "'[]'")

QUESTIONS: Final[dict[str, Callable[[LedgerReader], object]]] = {
    "newest_term": lambda ledger: ledger.newest_term(),
    "accounts": lambda ledger: ledger.accounts(),
    "open_fires": lambda ledger: ledger.open_fires(),
    "summaries": lambda ledger: ledger.summaries(),
    "history": lambda ledger: ledger.history(None, 99),
    "history of one": lambda ledger: ledger.history("backup", 99),
    "fire_of_request": lambda ledger: ledger.fire_of_request("r1"),
    "accounted_in_boot": lambda ledger: ledger.accounted_in_boot(BOOT),
    "row": lambda ledger: ledger.row(1),
    "doubled": lambda ledger: ledger.doubled(9),
    "covered": lambda ledger: ledger.covered("backup", at(-99)),
    "the account": take_account,
}


@pytest.fixture
def ledger() -> Iterator[SqliteLedger]:
    """A ledger with rows of every kind, in which SQLite checks nothing."""
    ledger = memory_ledger()
    term = seated(ledger, routine(schedule="*/5 * * * *", timezone="Europe/Berlin"))
    fire = fire_now(ledger, term, claim(0))
    ledger.record([start(fire)], [success(fire)])
    ledger.settle_pass(term, at(20), [claim(20)], [missed(5, 15, 3)], {"backup": at(20)})
    ledger.settle_pass(term, at(21), [claim(7, request="r1"), claim(8, boot=BOOT)], [], {})
    ledger.record([start(3, 20)], [])
    ledger._connection.execute("PRAGMA ignore_check_constraints = ON")
    yield ledger
    ledger.close()


def columns_of(ledger: SqliteLedger) -> list[tuple[str, str]]:
    """Every column of every table."""
    tables = ["terms", "routines", "marks", "zones", "history", "sqlite_sequence"]
    return [
        (table, row[1])
        for table in tables
        for row in ledger._connection.execute(f"PRAGMA table_info({table})").fetchall()
    ]


def ask_everything(ledger: SqliteLedger) -> set[str]:
    """Put every question; which of them met damage."""
    met = set()
    for name, question in QUESTIONS.items():
        try:
            question(ledger)
        except LedgerDamaged:
            met.add(name)
    return met


def test_a_sound_ledger_answers_everything(ledger: SqliteLedger) -> None:
    assert ask_everything(ledger) == set()
    assert take_account(ledger).right


@pytest.mark.parametrize("value", VALUES)
def test_every_question_is_answered_or_meets_damage_whatever_stands_in_a_column(
    ledger: SqliteLedger, value: str
) -> None:
    for table, column in columns_of(ledger):
        ledger._connection.execute("SAVEPOINT before")
        with suppress(sqlite3.Error):
            ledger._connection.execute(f'UPDATE {table} SET "{column}" = {value}')
        ask_everything(ledger)
        ledger._connection.execute("ROLLBACK TO before")
        ledger._connection.execute("RELEASE before")
    assert ask_everything(ledger) == set()


@pytest.mark.parametrize(
    ("change", "met"),
    [
        ("UPDATE marks SET reckoned_since = 'abc'", {"accounts", "summaries", "the account"}),
        ("UPDATE marks SET reckoned_since = 9223372036854775807", {"accounts", "summaries", "the account"}),
        ("UPDATE terms SET seen_until = 'abc'", {"newest_term", "the account"}),
        ("UPDATE routines SET schedule = x'00'", {"accounts", "summaries", "the account"}),
        ("UPDATE routines SET meaning = 'abc'", {"accounts", "summaries", "the account"}),
        ('UPDATE routines SET meaning = \'{"stale_after": "1h"}\'', {"accounts", "summaries", "the account"}),
        ("DELETE FROM marks", {"accounts", "summaries", "the account"}),
        (
            "UPDATE history SET count = 0 WHERE count = 3",
            {"summaries", "history", "history of one", "covered", "the account"},
        ),
        ("UPDATE zones SET rules = 5.5", set()),  # as text it is no rule
    ],
)
def test_what_a_damaged_value_keeps_from_being_answered(ledger: SqliteLedger, change: str, met: set[str]) -> None:
    ledger._connection.execute(change)
    assert ask_everything(ledger) == met


@pytest.mark.parametrize("value", VALUES)
def test_an_owner_takes_no_value_for_a_fault_of_its_own(ledger: SqliteLedger, value: str) -> None:
    writes: list[Callable[[], object]] = [
        lambda: ledger.begin_term(0, "two", AGENT, at(30)),
        lambda: ledger.settle_pass(1, at(30), [claim(30)], [missed(25)], {"backup": at(30)}),
        lambda: ledger.lower_marks(1, at(3), lambda name, after, until: 1),
        lambda: ledger.put_in_force(1, [routine(schedule="every 6m")], at(40), BOOT),
        lambda: ledger.prune(1, Instant(at(50))),
        ledger.newest_number,
    ]
    for table, column in columns_of(ledger):
        for write in writes:
            content = ledger._connection.serialize()
            with suppress(sqlite3.Error):
                ledger._connection.execute(f'UPDATE {table} SET "{column}" = {value}')
            with suppress(LedgerDamaged, LedgerUnavailable, Fenced):
                write()
            ledger._connection.deserialize(content)


def test_what_is_unfit_is_named_and_cut_short() -> None:
    with pytest.raises(Unfit, match=r"a value of slot is 'x{59}…"):
        fitting(("backup", "x" * 999), shape("routine:str slot:int"))
    with pytest.raises(Unfit, match="a value of slot is NULL"):
        fitting(("backup", None), shape("routine:str slot:int"))
    assert fitting(("backup", None), shape("routine:str slot:int?")) == ("backup", None)
    with pytest.raises(Unfit, match="a value of slot is True"):
        fitting((True,), shape("slot:int"))
