"""Processes that use a ledger and come to harm: `python -m tests.real.ledger_children WHAT ARGUMENTS…`.

Each says on stdout what it has done, one line at a time: a test waits for a line and never for a time.
"""

import itertools
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Final

from ankita_agent.adapters.sqlite_ledger import open_owner, open_reader
from ankita_agent.core.errors import LedgerUnavailable
from ankita_agent.core.outcomes import Reason, Trigger
from ankita_agent.core.rows import Claim
from tests.ledgers import at, claim, missed, routine, seated

ROOT: Final = Path(__file__).parents[2]
BATCH: Final = 20
"""Claims of one pass of `write_on_and_on`."""

NAMES: Final = tuple(f"routine-{number}" for number in range(BATCH))


@contextmanager
def child_of(what: str, *arguments: object, before: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[str]]:
    """Run one of them beside the test; `before` is put before its command. Killed when the test leaves."""
    path = os.pathsep.join((str(ROOT / "agent"), str(ROOT)))
    command = [*before, sys.executable, "-m", "tests.real.ledger_children", what, *map(str, arguments)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def outcome_of(what: str, *arguments: object, before: tuple[str, ...] = ()) -> list[str]:
    """Run one of them to its end and return its lines."""
    with child_of(what, *arguments, before=before) as child:
        out, _ = child.communicate(timeout=60)
    assert child.returncode == 0, out
    return out.splitlines()


def said(child: subprocess.Popen[str]) -> str:
    """Its next line."""
    stream: IO[str] | None = child.stdout
    assert stream is not None
    return stream.readline().strip()


def tell(*words: object) -> None:
    """Say a line at once."""
    print(*words, flush=True)


def write_on_and_on(path: str) -> None:
    """Passes of BATCH claims each without end, each told when it is durable."""
    ledger = open_owner(path)
    term = seated(ledger, *map(routine, NAMES))
    for number in itertools.count():
        claims = [claim(number, name) for name in NAMES]
        ledger.settle_pass(term, at(number), claims, [], dict.fromkeys(NAMES, at(number)))
        tell(number)


def stop_in_a_transaction(path: str) -> None:
    """Write a stretch, then stand still in the middle of the transaction that would lower the marks."""

    def wait(name: str, after: int, until: int) -> int:
        tell("inside")
        return len(sys.stdin.read())

    ledger = open_owner(path)
    term = seated(ledger)
    ledger.settle_pass(term, at(60), [], [missed(0, 60, 13, reason=Reason.CLOCK)], {"backup": at(60)})
    ledger.lower_marks(term, at(30), wait)


def crash(path: str) -> None:
    """Write one pass and end by SIGKILL, leaving the log behind."""
    ledger = open_owner(path)
    ledger.settle_pass(seated(ledger), at(0), [claim(0)], [missed(5)], {"backup": at(5)})
    os.kill(os.getpid(), signal.SIGKILL)


def crash_while_making(path: str) -> None:
    """End by SIGKILL in the first transaction, with pages in the file and a rollback journal beside it."""
    Path(path).touch(0o600)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript("PRAGMA cache_size = 1; BEGIN; CREATE TABLE terms (term);")
    connection.executemany("INSERT INTO terms VALUES (zeroblob(5000))", [()] * 20)
    os.kill(os.getpid(), signal.SIGKILL)


def race(path: str, term: str) -> None:
    """Claim 200 slots one after another as soon as a line comes in; say which were won."""
    with closing(open_owner(path)) as ledger:
        tell("ready")
        sys.stdin.readline()
        for number in range(200):
            (fire,) = ledger.settle_pass(int(term), at(number), [claim(number)], [], {})
            if fire is not None:
                tell(number)


def fill_the_disk(directory: str) -> None:
    """On a small tmpfs: fill it up, be refused, free some space, go on."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", directory], check=True)
    ledger = open_owner(f"{directory}/ledger.db")
    term = seated(ledger, *map(routine, NAMES))
    ledger.settle_pass(term, at(0), [claim(0, name) for name in NAMES], [], dict.fromkeys(NAMES, at(0)))
    _fill(f"{directory}/ballast")
    number = 0
    try:
        for number in range(1, 1000):
            claims = [Claim(name, at(number), Trigger.SCHEDULE) for name in NAMES]
            ledger.settle_pass(term, at(number), claims, [], dict.fromkeys(NAMES, at(number)))
    except LedgerUnavailable as fault:
        tell("refused:", fault.fact)
    reader = open_reader(f"{directory}/ledger.db")
    assert reader is not None
    tell("whole:", len(reader.history(None, 10**6)) == BATCH * number)
    tell("marks:", {account.accounted_until for account in reader.accounts().values()} == {at(number - 1)})
    reader.close()
    os.truncate(f"{directory}/ballast", 0)
    claims = [claim(number, name) for name in NAMES]
    tell("again:", None not in ledger.settle_pass(term, at(number), claims, [], {}))
    ledger.close()


def begin_on_a_full_disk(directory: str) -> None:
    """On a small tmpfs that is full before there is a ledger."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", directory], check=True)
    _fill(f"{directory}/ballast")
    try:
        open_owner(f"{directory}/ledger.db")
    except LedgerUnavailable as fault:
        tell("refused:", fault.fact)
    os.unlink(f"{directory}/ballast")
    with closing(open_owner(f"{directory}/ledger.db")) as ledger:
        tell("term:", seated(ledger))


def write_on_a_read_only_disk(directory: str) -> None:
    """On a file system that becomes read-only between two openings."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", directory], check=True)
    path = f"{directory}/ledger.db"
    with closing(open_owner(path)) as ledger:
        term = seated(ledger)
    subprocess.run(["mount", "-o", "remount,ro", directory], check=True)
    for attempt in (
        lambda: open_owner(path).settle_pass(term, at(0), [claim(0)], [], {}),
        lambda: _make(directory),
    ):
        try:
            attempt()
        except LedgerUnavailable as fault:
            tell("refused:", fault.fact)
    try:
        reader = open_reader(path)
        assert reader is not None
        tell("read:", list(reader.accounts()))
    except LedgerUnavailable as fault:
        tell("unread:", fault.fact)


def _make(directory: str) -> None:
    open_owner(f"{directory}/another.db")


def _fill(path: str) -> None:
    with open(path, "wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(bytes(4096))
        except OSError:
            return


WHAT: Final[dict[str, Callable[..., None]]] = {
    "write-on-and-on": write_on_and_on,
    "stop-in-a-transaction": stop_in_a_transaction,
    "crash": crash,
    "crash-while-making": crash_while_making,
    "race": race,
    "fill-the-disk": fill_the_disk,
    "begin-on-a-full-disk": begin_on_a_full_disk,
    "write-on-a-read-only-disk": write_on_a_read_only_disk,
}

if __name__ == "__main__":
    WHAT[sys.argv[1]](*sys.argv[2:])
