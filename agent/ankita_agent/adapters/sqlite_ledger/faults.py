"""What SQLite and the disk report, told in our words.

The rule: corrupt or no database is LedgerDamaged; what may pass by itself or by a person's hand (full,
read-only, I/O, busy, cannot open) is LedgerUnavailable; anything else, such as a broken constraint, is our
own fault. Source: https://www.sqlite.org/rescode.html; the low byte of an extended code is its class.
"""

import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Final

from ankita_agent.core.errors import (
    AnkitaError,
    Fenced,
    LedgerDamaged,
    LedgerTooNew,
    LedgerUnavailable,
    OurFault,
)


class Doing(StrEnum):
    """What was being done to the ledger."""

    OPENED = "opened"
    READ = "read"
    WRITTEN = "written"


_NOW: Final = {
    Doing.OPENED: "nothing was changed, and nothing fires without a ledger",
    Doing.READ: "nothing was changed",
    Doing.WRITTEN: "nothing was recorded, so nothing was fired",
}
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_NO_TEXT: Final = "Could not decode to UTF-8"  # of Python's own module, about a value that says it is text
_PASSING: Final = {
    sqlite3.SQLITE_FULL: "free some space there; the agent goes on by itself",
    sqlite3.SQLITE_READONLY: "make the file and its directory writable again; the agent goes on by itself",
    sqlite3.SQLITE_IOERR: "look at the disk: dmesg, journalctl -k",
    sqlite3.SQLITE_BUSY: "end what else has the file open, such as a sqlite3 shell in a transaction",
    sqlite3.SQLITE_LOCKED: "end what else has the file open, such as a sqlite3 shell in a transaction",
    sqlite3.SQLITE_PROTOCOL: "try again",
    sqlite3.SQLITE_CANTOPEN: "look at it: ls -la {directory}",
    sqlite3.SQLITE_PERM: "look at it: ls -la {directory}",
    sqlite3.SQLITE_AUTH: "look at it: ls -la {directory}",
    sqlite3.SQLITE_NOMEM: "free some memory",
    sqlite3.SQLITE_INTERRUPT: "try again",
}


@contextmanager
def told(path: str, doing: Doing) -> Iterator[None]:
    """Raise what SQLite or the disk reports within as one of our errors.

    A number that is too large for SQLite comes of one in the ledger that nobody can have written: we only add to them.
    """
    try:
        yield
    except OverflowError as error:
        raise damaged(path, "a number in it is so large that no other can follow") from error
    except sqlite3.Error as error:
        raise fault_of(error, path, doing) from error
    except OSError as error:
        raise unavailable(path, doing, error.strerror or str(error)) from error


def fault_of(error: sqlite3.Error, path: str, doing: Doing) -> AnkitaError:
    """Our error for one of SQLite's."""
    code = getattr(error, "sqlite_errorcode", None)  # missing when Python's own module raised it
    fact = f"{error} ({getattr(error, 'sqlite_errorname', type(error).__name__)})"
    kind = None if code is None else code & 0xFF
    if kind in _DAMAGED or (kind is None and _NO_TEXT in str(error)):
        return damaged(path, fact)
    if kind in _PASSING:
        return unavailable(path, doing, fact, _PASSING[kind])
    return OurFault(f"the ledger {path} could not be {doing}", fact=fact, now=_NOW[doing], do="please report this")


def unavailable(path: str, doing: Doing, fact: str, do: str = "look at it: ls -la {directory}") -> LedgerUnavailable:
    """It cannot be used just now, and why."""
    directory = shlex.quote(path.rpartition("/")[0] or ".")
    return LedgerUnavailable(
        f"the ledger {path} could not be {doing}",
        fact=fact,
        now=_NOW[doing],
        do=do.replace("{directory}", directory),
    )


def damaged(path: str, fact: str) -> LedgerDamaged:
    """It is no sound database."""
    return LedgerDamaged(
        f"the ledger {path} is damaged",
        fact=fact,
        now="it was left as it is",
        do="an agent that owns sets it aside beside itself and begins a new one: ankita-agent run",
    )


def too_new(path: str, found: int, known: int, copy: str | None) -> LedgerTooNew:
    """A newer version wrote it; `copy` is what that version left for going back."""
    back = f", or go back to the copy that it made: mv {shlex.quote(copy)} {shlex.quote(path)}" if copy else ""
    return LedgerTooNew(
        f"the ledger {path} is too new",
        fact=f"its schema is version {found}, and this ankita-agent knows versions up to {known}",
        now="it was left as it is",
        do=f"use the newer ankita-agent{back}",
    )


def fenced(term: int, newest: int | None) -> Fenced:
    """Another ownership has begun since."""
    return Fenced(
        f"term {term} does not own the ledger any more",
        fact=f"the newest term in it is {newest}",
        now="nothing was recorded, so nothing was fired",
        do="see who owns it: ankita-agent status",
    )
