"""What the owner alone may write.

The problem: two agents may believe for a moment that they own (a stopped process wakes up, a backup is
restored), the clock may be set back over slots that have fired, and the machine may die between any two
instructions. No slot may fire twice for any of that.

The rule: everything a pass decided is one `BEGIN IMMEDIATE` transaction that first reads the newest term and
is given up when it is another's; a claim is one INSERT that a unique index, the routine's mark and the
stretches can refuse; it is on the disk before the caller learns that it won.
tests/contract/test_ledger_contract.py and tests/real/test_ledger_files.py hold it.

A limit: when a commit fails with an I/O error, SQLite has undone it, and yet its pages may have reached the
log. If the machine dies before they are overwritten, the rows of that failed call can be there after all.
Nothing was started for them, so their fires show up as `lost`: in doubt it does not fire.

Rejected: "SELECT, then INSERT" outside of one transaction (two owners interleave); INSERT OR IGNORE (swallows
broken constraints too); a batch as one JSON parameter (faster, and nobody reads it).
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Final

from ankita_agent.adapters.sqlite_ledger.disk import files_of
from ankita_agent.adapters.sqlite_ledger.faults import Doing, damaged, fenced, told
from ankita_agent.adapters.sqlite_ledger.queries import named_queries
from ankita_agent.adapters.sqlite_ledger.reader import SqliteLedgerReader
from ankita_agent.adapters.sqlite_ledger.values import covered, cut, number, zone
from ankita_agent.core.instants import SECOND, Duration, Instant
from ankita_agent.core.rows import Claim, End, Entry, InForce, ProcessId, Start
from ankita_agent.core.zone_rules import renewed

SEEN_EVERY: Final = Duration(30 * SECOND)
"""How old `seen_until` may grow while passes decide nothing: an idle owner writes twice a minute."""

FIRES_PER_TERM: Final = 1_000_000
"""Room between the fire numbers of a ledger and those of the one that replaced it."""


class SqliteLedger(SqliteLedgerReader):
    """`ports.ledger.Ledger` on one connection; for one thread of the owner."""

    def __init__(self, connection: sqlite3.Connection, path: str, reading: Mapping[str, str]) -> None:
        super().__init__(connection, path, reading)
        self._owning = named_queries("owning.sql")
        self._files = files_of(path)  # with the log: what reads a database in WAL mode has opened it

    def newest_number(self) -> int:
        """The highest number that a row was ever given, be that row gone or not; 0 before the first."""
        with told(self._path, Doing.READ):
            (found,) = self._made(self._do("newest_fire_number"), number)
        return found

    def begin_term(self, floor: int, token: str, process: ProcessId, now: Instant, fired: int = 0) -> int:
        """Start an ownership and return its term: one more than the newest in the ledger and than `floor`.

        A ledger whose newest term is below `floor`, or whose newest number is below `fired`, has lost rows: it
        is new, a restored backup, or its log was removed. Its fires are numbered from term * FIRES_PER_TERM on,
        and above `fired`, so that no number is ever given to two fires.
        """
        with self._transaction():
            newest = self._newest_term_number() or 0
            term = max(newest, floor) + 1
            self._do("begin_term", term=term, token=token, now=now, **asdict(process))
            used = self.newest_number()
            if newest < floor or used < fired:
                self._do("forget_fire_number")
                self._do("put_fire_number", number=max(used, fired, term * FIRES_PER_TERM))
        return term

    def end_term(self, term: int, now: Instant) -> None:
        """Note that the ownership ended in good order. A term that is no longer the newest is left alone."""
        with self._transaction():
            self._do("end_term", term=term, now=now)

    def put_in_force(self, term: int, routines: Sequence[InForce], now: Instant, boot: str) -> None:
        """Make exactly these the routines in force; see the port for what becomes of their marks."""
        wanted = [
            asdict(replace(each, description=_storable(each.description), meaning=_storable(each.meaning)))
            | {"position": position, "now": now, "boot": boot}
            for position, each in enumerate(routines)
        ]
        with self._transaction(term):
            self._put_zones({each.timezone for each in routines}, now)
            self._do_each("put_mark", wanted)
            self._do("forget_routines")
            self._do_each("put_routine", wanted)

    def settle_pass(
        self,
        term: int,
        now: Instant,
        claims: Sequence[Claim],
        entries: Sequence[Entry],
        accounted: Mapping[str, Instant],
    ) -> list[int | None]:
        """Write all that a pass decided, in one transaction, and say which claims won.

        A pass that decided nothing only reads the newest term, and writes when it was last seen 30 s ago.
        """
        if not (claims or entries or accounted):
            self._see(term, now)
            return []
        with self._transaction(term):
            fires = [self._claim(term, now, claim) for claim in claims]
            for entry in entries:
                self._enter(term, now, entry)
            self._do_each("raise_mark", [{"routine": name, "mark": mark} for name, mark in accounted.items()])
            self._do("see_term", term=term, now=now)
        return fires

    def lower_marks(self, term: int, to: Instant, count: Callable[[str, Instant, Instant], int]) -> None:
        """After the clock was set back: marks above `to` become `to`; what was missed above it never was.

        The other rows above `to` stay, and refuse doubles. See the port for `count`.
        """
        with self._transaction(term):
            for fire, routine, slot in self._made(self._do("clock_rows_above", to=to), cut):
                left = 1 + count(routine, slot, to) if slot <= to else 0
                if left:
                    self._do("cut", fire=fire, until=to if left > 1 else slot, count=left)
                else:
                    self._do("forget", fire=fire)
            self._do("lower_marks", to=to)

    def record(self, starts: Sequence[Start], ends: Sequence[End]) -> None:
        """Note attempts that started and fires that ended, in one transaction; a fire's first end stands."""
        if not (starts or ends):
            return
        with self._transaction():
            self._do_each("start", [_start_values(start) for start in starts])
            self._do_each("end", [_end_values(end) for end in ends])

    def prune(self, term: int, before: Instant) -> int:
        """Delete ended rows from before `before` that nothing depends on any more; return how many."""
        with self._transaction(term):
            pruned = self._do("prune", before=before).rowcount
            self._do("prune_marks", before=before)
            self._do("prune_terms", before=before)
        return pruned

    @contextmanager
    def _transaction(self, term: int | None = None) -> Iterator[None]:
        """All or nothing, durable when left; with a `term`, only while it is the newest (else Fenced)."""
        with told(self._path, Doing.WRITTEN):
            self._check_file()
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                if term is not None:
                    self._check_term(term)
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # a full disk or an I/O error has ended it already
                    self._connection.execute("ROLLBACK")
                raise

    def _put_zones(self, timezones: Iterable[str], now: Instant) -> None:
        """Keep the rules of these zones; rows that were reckoned by other ones are reckoned no more."""
        before = dict(self._made(self._do("rules_of_zones"), zone))
        self._do("forget_zones")
        for timezone in timezones:
            rules, goes_on = renewed(timezone, before.get(timezone, ""), now)
            self._do("put_zone", timezone=timezone, rules=rules)
            if not goes_on:
                self._do("reckon_anew", timezone=timezone)

    def _newest_term_number(self) -> int | None:
        newest = self.newest_term()
        return None if newest is None else newest.term

    def _check_file(self) -> None:
        """SQLite goes on with files that were removed or replaced, and what it writes there is lost to everybody.

        The log counts as much as the database: it alone holds the newest rows, and is there for as long as a
        connection is (https://www.sqlite.org/wal.html#the_wal_file).
        """
        for (name, now), before in zip(files_of(self._path).items(), self._files.values(), strict=True):
            if now != before:
                raise damaged(self._path, f"{name} was removed or replaced while this agent had it open")

    def _check_term(self, term: int) -> None:
        newest = self._newest_term_number()
        if newest != term:
            raise fenced(term, newest)

    def _see(self, term: int, now: Instant) -> None:
        self._check_file()
        newest = self.newest_term()
        if newest is None or newest.term != term:
            raise fenced(term, None if newest is None else newest.term)
        if abs(now - newest.seen_until) >= SEEN_EVERY:
            with self._transaction(term):
                self._do("see_term", term=term, now=now)

    def _claim(self, term: int, now: Instant, claim: Claim) -> int | None:
        done = self._do("claim", term=term, now=now, **_key_values(claim))
        return done.lastrowid if done.rowcount == 1 else None

    def _enter(self, term: int, now: Instant, entry: Entry) -> None:
        if entry.boot is None and entry.request is None:
            fitting = self._without_rows_met(entry)
            if fitting is None:
                return
            entry = fitting
        values = _key_values(entry) | {
            "until": entry.until,
            "count": entry.count,
            "outcome": entry.outcome.value,
            "reason": entry.reason.value,
            "blocked_by": entry.blocked_by,
            "term": term,
            "now": now,
        }
        if entry.boot is None and entry.request is None and self._do("grow", **values).rowcount == 1:
            return
        self._do("enter", **values)

    def _without_rows_met(self, entry: Entry) -> Entry | None:
        """What of the entry has no row yet; None when all of it has.

        Rows stand in the way only where the clock was set back. There slots come one by one, and this is yes
        or no. Should a stretch meet rows all the same, their slots are taken off its count, and the rest is
        put behind them, else before, else in between. Of a row that reaches beyond the stretch nobody knows
        how many slots are inside, so none is taken off: better one counted twice than one lost.
        """
        met = self._made(self._do("rows_met", **_key_values(entry), until=entry.until), covered)
        if not met:
            return entry
        edge, left, gaps = entry.slot, entry.count, []
        for row in met:
            if edge < row.slot:
                gaps.append((edge, Instant(row.slot - 1)))
            if entry.slot <= row.slot and row.until <= entry.until:
                left -= row.count
            edge = Instant(row.until + 1)
        if edge <= entry.until:
            gaps.append((edge, entry.until))
        if not gaps or left <= 0:
            return None
        before = gaps[0][0] == entry.slot and gaps[-1][1] != entry.until
        first, last = gaps[0 if before else -1]
        if left == 1 or first == last:
            first = last = last if last == entry.until else first
            left = 1
        return replace(entry, slot=first, until=last, count=left)

    def _do(self, query: str, **values: object) -> sqlite3.Cursor:
        return self._connection.execute(self._owning[query], values)

    def _do_each(self, query: str, values: Sequence[Mapping[str, object]]) -> None:
        self._connection.executemany(self._owning[query], values)


def _key_values(wish: Claim | Entry) -> dict[str, object]:
    return {
        "routine": wish.routine,
        "slot": wish.slot,
        "boot": wish.boot,
        "request": wish.request,
        "trigger": wish.trigger.value,
    }


def _start_values(start: Start) -> dict[str, object]:
    return {
        "fire": start.fire,
        "started_at": start.started_at,
        "attempt": start.attempt,
        "log": start.log,
        **asdict(start.process),
    }


def _end_values(end: End) -> dict[str, object]:
    return {
        "fire": end.fire,
        "outcome": end.outcome.value,
        "reason": None if end.reason is None else end.reason.value,
        "ended_at": end.ended_at,
        "exit_code": end.exit_code,
        "signal": end.signal,
        "quiet": end.quiet,
        "detail": _storable(end.detail),
    }


def _storable(text: str) -> str:
    """Free text without the lone surrogates that os.fsdecode and YAML escapes can yield: SQLite has UTF-8
    only.
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
