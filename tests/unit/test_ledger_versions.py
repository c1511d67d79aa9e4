"""The schema of the ledger, its versions, and how SQLite's faults are told."""

import os
import re
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from ankita_agent.adapters.sqlite_ledger import memory_ledger, open_owner, open_reader
from ankita_agent.adapters.sqlite_ledger.connection import NEWEST, READING
from ankita_agent.adapters.sqlite_ledger.faults import Doing, fault_of
from ankita_agent.adapters.sqlite_ledger.queries import named_queries, read_sql
from ankita_agent.adapters.sqlite_ledger.versions import Migration, shipped_migrations
from ankita_agent.core.errors import LedgerDamaged, LedgerTooNew, LedgerUnavailable, OurFault
from ankita_agent.core.outcomes import REASONS, Outcome, Reason, Trigger
from tests.ledgers import at, claim, failure, fire_now, missed, routine, seated

NEXT = NEWEST + 1
NEXT_VERSION = Migration(NEXT, "ALTER TABLE history ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm';")
BROKEN_VERSION = Migration(NEXT, "ALTER TABLE history ADD COLUMN mood TEXT; CREATE TABLE terms (broken);")


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where a ledger of the newest version stands that was used and closed."""
    path = str(tmp_path / "ledger.db")
    with closing(open_owner(path)) as ledger:
        fire_now(ledger, seated(ledger), claim(0))
    return path


def facts_of(connection: sqlite3.Connection) -> tuple[object, ...]:
    """Everything that a schema consists of, comments and spacing aside."""
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name").fetchall()
    plain = [(*names, re.findall(r"\w+|[^\w\s]", re.sub(r"--.*", "", sql or ""))) for *names, sql in rows]
    return (*plain, connection.execute("PRAGMA application_id").fetchall())


def version_at(path: str) -> tuple[int, list[str]]:
    """The version that a file has, and the columns of its history."""
    with closing(sqlite3.connect(path)) as connection:
        ((version,),) = connection.execute("PRAGMA user_version").fetchall()
        return version, [row[1] for row in connection.execute("PRAGMA table_info(history)").fetchall()]


def test_all_migrations_together_give_the_schema_that_is_there_to_be_read(tmp_path: Path) -> None:
    open_owner(str(tmp_path / "ledger.db")).close()
    with (
        closing(sqlite3.connect(tmp_path / "ledger.db")) as made,
        closing(sqlite3.connect(":memory:")) as shown,
    ):
        shown.executescript(read_sql("schema.sql"))
        assert facts_of(made) == facts_of(shown)


def test_there_are_questions_for_every_version() -> None:
    versions = [migration.version for migration in shipped_migrations()]
    assert list(READING) == versions
    assert versions[-1] == NEWEST
    assert all(named_queries(file).keys() == named_queries(READING[NEWEST]).keys() for file in READING.values())


def test_a_new_ledger_is_private_and_durable(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    before = os.umask(0)
    try:
        ledger = open_owner(path)
    finally:
        os.umask(before)
    seated(ledger)
    modes = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in os.listdir(tmp_path)}
    assert modes == {"ledger.db": 0o600, "ledger.db-wal": 0o600, "ledger.db-shm": 0o600}
    assert ledger._connection.execute("PRAGMA synchronous").fetchall() == [(2,)]
    assert ledger._connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
    ledger.close()
    assert os.listdir(tmp_path) == ["ledger.db"]


def test_a_migration_keeps_the_rows_and_leaves_a_copy_of_what_was_before(path: str) -> None:
    with closing(open_owner(path, migrations=[*shipped_migrations(), NEXT_VERSION])) as ledger:
        assert len(ledger.history(None, 9)) == 1
    version, columns = version_at(path)
    assert (version, columns[-1]) == (NEXT, "mood")
    assert sorted(os.listdir(os.path.dirname(path))) == ["ledger.db", f"ledger.db.before-v{NEXT}"]
    version, columns = version_at(f"{path}.before-v{NEXT}")
    assert (version, columns[-1]) == (NEWEST, "detail")
    assert stat.S_IMODE(os.stat(f"{path}.before-v{NEXT}").st_mode) == 0o600


def test_a_migration_that_fails_leaves_the_version_before_and_can_be_tried_again(path: str) -> None:
    before = version_at(path)
    for _ in range(2):
        with pytest.raises(OurFault, match="already exists"):
            open_owner(path, migrations=[*shipped_migrations(), BROKEN_VERSION])
    assert version_at(path) == before
    open_owner(path).close()
    open_owner(path, migrations=[*shipped_migrations(), NEXT_VERSION]).close()
    assert version_at(path)[0] == NEXT


def test_migrations_before_a_failing_one_stay(path: str) -> None:
    after_it = Migration(NEXT + 1, "SELECT nothing FROM nowhere;")
    with pytest.raises(OurFault):
        open_owner(path, migrations=[*shipped_migrations(), NEXT_VERSION, after_it])
    assert version_at(path)[0] == NEXT


def test_a_migration_is_applied_once(path: str) -> None:
    for _ in range(2):
        open_owner(path, migrations=[*shipped_migrations(), NEXT_VERSION]).close()
    assert version_at(path)[0] == NEXT


def test_a_ledger_of_a_newer_version_is_refused_with_both_versions_and_the_way_back(path: str) -> None:
    open_owner(path, migrations=[*shipped_migrations(), NEXT_VERSION]).close()
    untouched = Path(path).read_bytes()
    for refused in (open_owner, open_reader):
        with pytest.raises(LedgerTooNew) as fault:
            refused(path)
        assert f"version {NEXT}" in fault.value.fact
        assert f"up to {NEWEST}" in fault.value.fact
        assert f"mv {path}.before-v{NEXT} {path}" in fault.value.do
    assert Path(path).read_bytes() == untouched
    os.rename(f"{path}.before-v{NEXT}", f"{path}.before-v{NEWEST}")  # one of its own, older than what is lost by it
    with pytest.raises(LedgerTooNew) as fault:
        open_reader(path)
    assert "mv " not in fault.value.do


def test_the_copy_that_is_named_opens_under_the_older_version(path: str) -> None:
    open_owner(path, migrations=[*shipped_migrations(), NEXT_VERSION]).close()
    os.replace(f"{path}.before-v{NEXT}", path)
    with closing(open_owner(path)) as ledger:
        assert len(ledger.history(None, 9)) == 1


def test_a_reader_never_migrates(path: str) -> None:
    untouched = Path(path).read_bytes()
    reader = open_reader(path)
    assert reader is not None
    assert len(reader.history(None, 9)) == 1
    reader.close()
    assert Path(path).read_bytes() == untouched
    assert not os.path.exists(f"{path}.before-v{NEXT}")


@pytest.fixture
def first_version(tmp_path: Path) -> str:
    """A ledger of version 1 in which `backup` is accounted for up to minute 10, and `relived` was set back to it."""
    path = str(tmp_path / "old.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(read_sql("migrations/0001_ledger.sql"))
        connection.execute("PRAGMA user_version = 1")
        for number, (name, relived) in enumerate([("backup", None), ("relived", at(50))]):
            connection.execute(
                "INSERT INTO routines VALUES (?, ?, 'every 5m', 'UTC', 0, 1, '', '{}')",
                (name, number),
            )
            connection.execute("INSERT INTO marks VALUES (?, ?, ?, 'boot')", (name, at(10), relived))
        connection.commit()
    return path


def test_rows_of_a_first_ledger_are_reckoned_from_where_it_became_a_second(first_version: str) -> None:
    reader = open_reader(first_version)
    assert reader is not None
    with closing(reader), closing(open_owner(first_version)) as owner:
        since = {name: account.reckoned_since for name, account in owner.accounts().items()}
        assert since == {"backup": at(10), "relived": at(50)}
        assert (reader.doubled(9), reader.covered("backup", at(0))) == ([], [])


def test_a_reader_reads_a_first_ledger_as_it_is(first_version: str) -> None:
    reader = open_reader(first_version)
    assert reader is not None
    with closing(reader):
        assert {name: each.reckoned_since for name, each in reader.accounts().items()} == {
            "backup": at(10),
            "relived": at(50),
        }
    with closing(sqlite3.connect(first_version)) as connection:
        assert connection.execute("PRAGMA user_version").fetchall() == [(1,)]


def test_the_checks_of_the_schema_know_every_outcome_with_its_reasons_and_every_trigger() -> None:
    schema = read_sql("schema.sql")
    found = {
        outcome: set(re.findall(r"'(\w+)'", text))
        for outcome, text in re.findall(r"WHEN '(\w+)' THEN (.*?)(?=WHEN|ELSE)", schema, re.DOTALL)
    }
    assert found == {outcome.value: {reason.value for reason in REASONS[outcome]} for outcome in Outcome}
    (triggers,) = re.findall(r"\"trigger\" IN \((.*?)\)", schema)
    assert set(re.findall(r"\w+", triggers)) == {trigger.value for trigger in Trigger}


@pytest.mark.parametrize(
    "change",
    [
        "outcome = 'failed'",  # without a reason
        "outcome = 'failed', ended_at = 5",
        "outcome = 'failed', ended_at = 5, reason = 'asleep'",
        "outcome = 'succeeded', ended_at = 5, reason = 'exit_status'",
        "outcome = 'great', ended_at = 5",
        "reason = 'asleep'",
        "ended_at = 5",
        "quiet = 1",
        "count = 0",
        "count = 2",
        "until = slot + 1",
        "until = slot + 1, count = 2",  # a fire is no stretch
        "claimed_at = NULL",
        "boot = 'b', request = 'r'",
        "exit_code = 256",
        "exit_code = 0, signal = 9",
        "\"trigger\" = 'whim'",
    ],
)
def test_a_row_that_contradicts_itself_is_refused_by_the_schema_itself(change: str) -> None:
    ledger = memory_ledger()
    fire_now(ledger, seated(ledger), claim(0))
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        ledger._connection.execute(f"UPDATE history SET {change}")
    ledger.close()


def test_people_can_read_the_rows_with_sqlite3() -> None:
    ledger = memory_ledger()
    term = seated(ledger)
    fire = fire_now(ledger, term, claim(0))
    ledger.settle_pass(term, at(20), [claim(15)], [missed(5, 10, 2)], {})
    ledger.record([], [failure(fire)])
    rows = ledger._connection.execute("SELECT slot, until, count, outcome, reason, ended_at FROM readable").fetchall()
    assert rows == [
        ("2026-01-01T08:15:00Z", None, 1, "claimed", None, None),
        ("2026-01-01T08:05:00Z", "2026-01-01T08:10:00Z", 2, "missed", "asleep", "2026-01-01T08:20:00Z"),
        ("2026-01-01T08:00:00Z", None, 1, "failed", "exit_status", "2026-01-01T08:01:00Z"),
    ]
    ledger.close()


def test_only_the_daily_pruning_and_the_look_for_doubles_read_the_whole_history() -> None:
    ledger = memory_ledger()
    scanning = set()
    for name, sql in {**named_queries("reading.sql"), **named_queries("owning.sql")}.items():
        values = dict.fromkeys(re.findall(r":(\w+)", sql))
        plan = ledger._connection.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall()
        if any(re.match(r"SCAN history(?! USING INDEX history_(time|open))", step[3]) for step in plan):
            scanning.add(name)
    assert scanning == {"prune_terms", "doubled"}
    ledger.close()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (sqlite3.SQLITE_CORRUPT, LedgerDamaged),
        (sqlite3.SQLITE_NOTADB, LedgerDamaged),
        (sqlite3.SQLITE_CORRUPT_INDEX, LedgerDamaged),
        (sqlite3.SQLITE_FULL, LedgerUnavailable),
        (sqlite3.SQLITE_READONLY, LedgerUnavailable),
        (sqlite3.SQLITE_READONLY_DBMOVED, LedgerUnavailable),
        (sqlite3.SQLITE_IOERR, LedgerUnavailable),
        (sqlite3.SQLITE_IOERR_FSYNC, LedgerUnavailable),
        (sqlite3.SQLITE_BUSY, LedgerUnavailable),
        (sqlite3.SQLITE_BUSY_RECOVERY, LedgerUnavailable),
        (sqlite3.SQLITE_LOCKED, LedgerUnavailable),
        (sqlite3.SQLITE_CANTOPEN, LedgerUnavailable),
        (sqlite3.SQLITE_CONSTRAINT_CHECK, OurFault),
        (sqlite3.SQLITE_ERROR, OurFault),
        (None, OurFault),
    ],
)
def test_what_sqlite_reports_is_told_with_its_cause(code: int | None, expected: type[Exception]) -> None:
    error = sqlite3.OperationalError("what it says")
    if code is not None:
        error.sqlite_errorcode = code
        error.sqlite_errorname = "SQLITE_NAME"
    fault = fault_of(error, "/state/ledger.db", Doing.WRITTEN)
    assert type(fault) is expected
    assert "/state/ledger.db" in fault.what
    assert "what it says" in fault.fact
    assert fault.now
    assert fault.do


def test_a_broken_constraint_is_our_fault_and_leaves_no_transaction_behind() -> None:
    ledger = memory_ledger()
    term = seated(ledger)
    with pytest.raises(OurFault, match="CHECK"):
        ledger.settle_pass(term, at(9), [claim(5)], [missed(0, 0, 2)], {"backup": at(9)})
    assert ledger.history(None, 9) == []
    assert not ledger._connection.in_transaction
    fire_now(ledger, term, claim(5))
    ledger.close()


def test_an_exception_inside_a_transaction_leaves_nothing_written() -> None:
    class Interrupted(BaseException):
        """As KeyboardInterrupt, which may come anywhere."""

    def count(name: str, after: int, until: int) -> int:
        raise Interrupted

    ledger = memory_ledger()
    term = seated(ledger, routine())
    ledger.settle_pass(term, at(60), [], [missed(0, 60, 13, reason=Reason.CLOCK)], {"backup": at(60)})
    with pytest.raises(Interrupted):
        ledger.lower_marks(term, at(30), count)
    assert ledger.accounts()["backup"].accounted_until == at(60)
    assert not ledger._connection.in_transaction
    ledger.close()
