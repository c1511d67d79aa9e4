"""Opening the ledger: for its owner, for everybody else, and in memory for tests.

The owner's connection is WAL with synchronous=FULL: a commit that returned is on the disk
(https://www.sqlite.org/pragma.html#pragma_synchronous), and readers neither wait for it nor hold it up. On
macOS that takes `fullfsync` as well, because fsync(2) there stops at the drive's cache.

A reader's connection is `mode=ro`: SQLite then never writes to the database, not even to move the log into it
when it is the last to close. It still makes -shm (and an empty -wal) when they are not there, as every reader
of a WAL database must (https://www.sqlite.org/wal.html#read_only_databases); after a crash it reads the log
that was left and leaves it for the owner. Rejected: `mode=rw` with `query_only`, whose close writes;
`immutable=1`, which ignores the log.

Soundness: a file without a database header, one cut short and one of another program are refused by what
every open reads anyway. `PRAGMA quick_check` reads the whole file (0.1 s for 100 000 rows), so it runs only
when there is cause for doubt: the last term has no end and began in another boot (the machine may have lost
power), or a migration is due. An owner that was killed leaves no doubt: what it wrote is in the kernel. Damage
that shows later is LedgerDamaged from the call that met it.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Final

from ankita_agent.adapters.sqlite_ledger.disk import create_empty, look, size_of, uri_of
from ankita_agent.adapters.sqlite_ledger.faults import Doing, damaged, told, unavailable
from ankita_agent.adapters.sqlite_ledger.owner import SqliteLedger
from ankita_agent.adapters.sqlite_ledger.queries import named_queries
from ankita_agent.adapters.sqlite_ledger.reader import SqliteLedgerReader
from ankita_agent.adapters.sqlite_ledger.versions import Migration, migrate, shipped_migrations, version_of
from ankita_agent.core.instants import SECOND, Duration, in_seconds

READING: Final[Mapping[int, str]] = {1: "reading_1.sql", 2: "reading.sql"}
"""The questions for each version of the schema. A migration that changes what they read leaves the old file
here under its old number, so that a newer command reads an older ledger as it is."""

NEWEST: Final = max(READING)

LARGEST_LOG: Final = 4 * 1024 * 1024
"""Bytes to which the log is cut back when it starts again, after one long reader has made it grow. It is about
what SQLite lets it grow to by itself (1000 pages: https://www.sqlite.org/pragma.html#pragma_wal_autocheckpoint).
"""

PATIENCE: Final = Duration(2 * SECOND)
"""How long a call waits for another connection before it is LedgerUnavailable."""


def open_owner(
    path: str,
    *,
    boot: str | None = None,
    patience: Duration = PATIENCE,
    migrations: Sequence[Migration] | None = None,
) -> SqliteLedger:
    """Open the ledger to write it; make it (0600) when there is none, bring it to the newest version.

    For the owner alone, who holds the guard; `boot` is the id of this boot, when it is known. Raises
    LedgerUnavailable, LedgerDamaged (see `set_aside`) and LedgerTooNew; the file is then as it was, and no
    connection is left open.
    """
    migrations = migrations or shipped_migrations()
    size = look(path)
    if size is None:
        create_empty(path)
    with told(path, Doing.OPENED), ExitStack() as looking:
        if size and not size_of(f"{path}-journal"):  # one that died while it was made has that to roll back first
            looking.enter_context(_inspected(path, patience, migrations[-1].version, boot))
        connection = _connect(uri_of(path, "rw"), patience)
        try:
            return _made_ready(connection, path, migrations)
        except BaseException:
            connection.close()
            raise


def open_reader(path: str, *, patience: Duration = PATIENCE) -> SqliteLedgerReader | None:
    """Open the ledger to ask it; None when there is none yet. Never makes, migrates or mends one.

    Raises LedgerUnavailable, LedgerDamaged, LedgerTooNew.
    """
    if not look(path):
        return None
    with told(path, Doing.OPENED):
        connection = _connect(uri_of(path, "ro"), patience)
        try:
            version = version_of(connection, path, NEWEST)
        except BaseException:
            connection.close()
            raise
    if not version:  # its owner is making it just now
        connection.close()
        return None
    return SqliteLedgerReader(connection, path, named_queries(READING[version]))


def memory_ledger() -> SqliteLedger:
    """A ledger that lives as long as the object: the real one, for tests of whoever needs a ledger."""
    return _made_ready(_connect("file::memory:", PATIENCE), ":memory:", shipped_migrations())


def _connect(uri: str, patience: Duration) -> sqlite3.Connection:
    return sqlite3.connect(uri, timeout=in_seconds(patience), isolation_level=None, uri=True)


@contextmanager
def _inspected(path: str, patience: Duration, newest: int, boot: str | None) -> Iterator[None]:
    """Refuse what is not to be written, through a connection that cannot: closing one that can writes the log
    into a damaged database and deletes it. Open until the other is, it spares that the reading of the log.
    """
    with closing(_connect(uri_of(path, "ro"), patience)) as connection:
        version = version_of(connection, path, newest)
        if version and (version < newest or _may_have_lost_power(connection, boot)):
            ((found,),) = connection.execute("PRAGMA quick_check(1)").fetchall()
            if found != "ok":
                raise damaged(path, found)
        yield


def _made_ready(connection: sqlite3.Connection, path: str, migrations: Sequence[Migration]) -> SqliteLedger:
    version = version_of(connection, path, migrations[-1].version)
    ((mode,),) = connection.execute("PRAGMA journal_mode = WAL").fetchall()
    if mode not in ("wal", "memory"):
        raise unavailable(path, Doing.OPENED, f"SQLite has no write-ahead log here, only {mode!r}")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute(f"PRAGMA journal_size_limit = {LARGEST_LOG}")
    migrate(connection, path, version, migrations)
    return SqliteLedger(connection, path, named_queries(READING[NEWEST]))


def _may_have_lost_power(connection: sqlite3.Connection, boot: str | None) -> bool:
    newest = connection.execute("SELECT ended_at, boot FROM terms ORDER BY term DESC LIMIT 1").fetchall()
    return any(ended_at is None and (not boot or boot != of_term) for ended_at, of_term in newest)
