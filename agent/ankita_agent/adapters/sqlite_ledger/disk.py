"""The ledger's files by name: made, looked at, set aside.

The rule: no code of ours opens the database or its -wal, -shm or -journal once a connection may exist, not
even to read. SQLite's locks are POSIX record locks, and a process loses all of its locks on a file when it
closes *any* descriptor of it (https://www.sqlite.org/howtocorrupt.html, 2.2). So everything here goes by name
(lstat, rename), with one exception: `create_empty` makes the file with O_EXCL, so that its inode did not
exist before and nothing in this process can hold a lock on it. Why not let SQLite make it: it would follow a
symbolic link, and its mode would depend on the umask.
"""

import os
import stat
from typing import Final
from urllib.parse import quote

from ankita_agent.adapters.sqlite_ledger.faults import Doing, damaged, told, unavailable

COMPANIONS: Final = ("-journal", "-wal", "-shm")


def size_of(path: str) -> int | None:
    """Bytes of the file that bears this name, or None. LedgerUnavailable when it is no plain file."""
    try:
        facts = os.lstat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(facts.st_mode):
        kind = "symbolic link" if stat.S_ISLNK(facts.st_mode) else "directory or a device"
        raise unavailable(path, Doing.OPENED, f"{path} is a {kind} and not a plain file")
    return facts.st_size


def files_of(path: str) -> dict[str, tuple[int, int] | None]:
    """Which files (device and inode) bear the names of the database and its log now, None where none does."""
    return {name: _file_of(name) for name in (path, f"{path}-wal")}


def look(path: str) -> int | None:
    """Bytes of the ledger, None when there is none. Raises LedgerUnavailable for what is not to be opened.

    Raises LedgerDamaged for a missing or empty database beside a log that holds something: SQLite would take
    the log for a leftover and delete it, and the rows in it would be gone without a word.
    """
    with told(path, Doing.OPENED):
        size = size_of(path)
        beside = {companion: size_of(path + companion) for companion in COMPANIONS}
    if not size and beside["-wal"]:
        raise damaged(path, f"it is {'empty' if size == 0 else 'gone'}, and its log {path}-wal is not")
    return size


def uri_of(path: str, mode: str) -> str:
    """SQLite's name for a file: every byte of the path that means something to it, or is no UTF-8, is quoted.

    Source: https://www.sqlite.org/uri.html. Mode `ro` opens the database read-only for the kernel too, and
    none of the modes used here makes one.
    """
    return f"file://{quote(os.fsencode(os.path.abspath(path)))}?mode={mode}"


def create_empty(path: str) -> None:
    """Make an empty file, 0600. Only before any connection to it exists; see the module."""
    with told(path, Doing.OPENED):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))


def set_aside(path: str, stamp: str) -> str | None:
    """Rename a damaged ledger, all its files, to `PATH.damaged-STAMP…`; return the new path. Deletes nothing.

    None when there is no file of it any more.

    Every connection of this process to it must be closed, and the caller must own. The database goes first:
    were its log to go first and the rest to fail, what is left would open as a sound ledger that has
    forgotten its newest fires. A log that stays behind alone is refused by `look`, so a second call can end
    what one began. Raises LedgerUnavailable when a rename fails.
    """
    with told(path, Doing.OPENED):
        aside = _free_name(f"{path}.damaged-{stamp}")
        there = [suffix for suffix in ("", *COMPANIONS) if os.path.lexists(path + suffix)]
        for suffix in there:
            os.rename(path + suffix, aside + suffix)
        sync_directory(path)
    return aside if there else None


def copies_before(path: str) -> dict[int, str]:
    """The copies made before a migration, by the version that each was made for."""
    directory, base = os.path.split(path)
    start = f"{base}.before-v"
    with told(path, Doing.OPENED):
        names = [name for name in os.listdir(directory or ".") if name.startswith(start)]
    numbers = {name: name.removeprefix(start) for name in names}
    return {int(n): os.path.join(directory, name) for name, n in numbers.items() if n.isascii() and n.isdigit()}


def sync_directory(path: str) -> None:
    """Make new names beside `path` durable."""
    descriptor = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _file_of(name: str) -> tuple[int, int] | None:
    try:
        facts = os.lstat(name)
    except FileNotFoundError:
        return None
    return facts.st_dev, facts.st_ino


def _free_name(wanted: str) -> str:
    """`wanted`, or with a number behind it, so that nothing that was set aside earlier is overwritten."""
    number, name = 1, wanted
    while any(os.path.lexists(name + suffix) for suffix in ("", *COMPANIONS)):
        number += 1
        name = f"{wanted}-{number}"
    return name
