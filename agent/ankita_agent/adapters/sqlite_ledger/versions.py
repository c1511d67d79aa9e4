"""The schema's versions: which one a file has, and how the owner brings it to the newest.

The number is `PRAGMA user_version`; it changes in the same transaction as the schema, so a migration that
fails leaves the version before, whole. Only the owner migrates, after a copy by SQLite's own backup (a plain
copy would drop its locks and miss the log); a reader reads what is there. A file with a higher number is
refused.
"""

import functools
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from ankita_agent.adapters.sqlite_ledger.disk import copies_before, create_empty, sync_directory, uri_of
from ankita_agent.adapters.sqlite_ledger.faults import Doing, damaged, told, too_new
from ankita_agent.adapters.sqlite_ledger.queries import migration_files, read_sql

APPLICATION_ID: Final = 0x616E6B69
"""Says whose database it is (https://www.sqlite.org/pragma.html#pragma_application_id)."""


@dataclass(frozen=True, slots=True)
class Migration:
    """What makes a schema of version `version` out of the one before."""

    version: int
    sql: str


@functools.cache
def shipped_migrations() -> tuple[Migration, ...]:
    """All of them, from the first ledger on: migrations/NNNN_what.sql."""
    found = [Migration(int(name.split("/")[-1][:4]), read_sql(name)) for name in migration_files()]
    assert [each.version for each in found] == list(range(1, len(found) + 1))
    return tuple(found)


def version_of(connection: sqlite3.Connection, path: str, newest: int) -> int:
    """The schema's version of an open database, 0 for an empty one.

    Raises LedgerTooNew above `newest`, LedgerDamaged for somebody else's database; sqlite3.Error.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchall()[0]
    (whose,) = connection.execute("PRAGMA application_id").fetchall()[0]
    (objects,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()[0]
    if whose != APPLICATION_ID and (whose or version or objects):
        raise damaged(path, "it is a database of another program")
    if version > newest:
        raise too_new(path, version, newest, copies_before(path).get(newest + 1))
    return int(version)


def migrate(connection: sqlite3.Connection, path: str, version: int, migrations: Sequence[Migration]) -> None:
    """Apply what is newer than `version`, each in one transaction, after a copy of what was there.

    Raises sqlite3.Error; the database is then of the newest version that was reached.
    """
    pending = [migration for migration in migrations if migration.version > version]
    if pending and version:
        _copy(connection, path, f"{path}.before-v{pending[0].version}")
    for migration in pending:
        try:
            connection.executescript(
                f"BEGIN IMMEDIATE;\n{migration.sql}\nPRAGMA user_version = {migration.version};\nCOMMIT;"
            )
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _copy(connection: sqlite3.Connection, path: str, target: str) -> None:
    """Copy under a temporary name, then rename: `target` is never half a copy.

    It bears the number of the first version that it does not have, so that an older ankita-agent, meeting a
    ledger too new for it, finds the newest copy that it can open.
    """
    with told(path, Doing.OPENED):
        temporary = f"{target}.new"
        if os.path.lexists(temporary):  # an earlier try that ended half-way
            os.unlink(temporary)
        create_empty(temporary)
        with closing(sqlite3.connect(uri_of(temporary, "rw"), uri=True)) as copy:
            connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, with no log beside it
        os.rename(temporary, target)
        sync_directory(path)
