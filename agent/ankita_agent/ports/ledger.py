"""The ledger: the one place that decides whether a slot may fire, and remembers how each slot ended.

Two halves. `LedgerReader` is for everybody at any time and changes nothing. `Ledger` adds what only the owner
may do; every one of its writes is one transaction that is durable when the call returns (or was not made at
all), and every claim is refused unless the ledger's newest term is the claimer's.

Errors of both: LedgerUnavailable (disk full, read-only, I/O error, busy for too long: nothing was written and
the same call may work later), LedgerDamaged (not a sound database), LedgerTooNew.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from ankita_agent.core.instants import Instant
from ankita_agent.core.rows import (
    Account,
    Claim,
    Covered,
    End,
    Entry,
    HistoryRow,
    InForce,
    OpenFire,
    ProcessId,
    RoutineSummary,
    Start,
    TermRecord,
)


class LedgerReader(Protocol):
    """Questions. None of them writes, locks out the owner, or creates anything."""

    def one_moment(self) -> AbstractContextManager[None]:
        """Within it every answer is of one moment, whatever the owner writes meanwhile. It may be nested.

        Short: for as long as it lasts, what the owner writes piles up in the log.
        """
        ...

    def newest_term(self) -> TermRecord | None:
        """The newest ownership, or None before the first."""
        ...

    def accounts(self) -> dict[str, Account]:
        """The routines in force by name, in the order of their file."""
        ...

    def open_fires(self) -> list[OpenFire]:
        """Every fire without an outcome, oldest first."""
        ...

    def summaries(self) -> list[RoutineSummary]:
        """The routines in force with how they are doing, in the order of their file."""
        ...

    def history(self, routine: str | None, limit: int) -> list[HistoryRow]:
        """The newest `limit` rows, newest first; of one routine when it is named."""
        ...

    def fire_of_request(self, request: str) -> HistoryRow | None:
        """The row of a manual request, or None while nobody has taken it up."""
        ...

    def accounted_in_boot(self, boot: str) -> set[str]:
        """The `@reboot` routines that have their row for a boot."""
        ...

    def row(self, fire: int) -> HistoryRow | None:
        """One row by its number."""
        ...

    def doubled(self, limit: int) -> list[tuple[str, Instant]]:
        """Routines and slots that more than one row ends: at most `limit` of them. There must be none.

        Looks at every row, and not by the indexes that keep doubles out.
        """
        ...

    def covered(self, routine: str, after: Instant) -> list[Covered]:
        """What the routine's rows of slots cover that end after `after`, in order; no boots, no manual runs."""
        ...

    def close(self) -> None:
        """Let go of the file. Idempotent."""
        ...


class Ledger(LedgerReader, Protocol):
    """What the owner alone may do. One per process; used by one thread."""

    def newest_number(self) -> int:
        """The highest number that a row was ever given, be that row gone or not; 0 before the first."""
        ...

    def begin_term(self, floor: int, token: str, process: ProcessId, now: Instant, fired: int = 0) -> int:
        """Start an ownership and return its term: one more than the newest in the ledger and than `floor`.

        Durable on return. From then on claims of every earlier term are refused. When `floor` is above the
        ledger's newest term, or `fired` above its newest number, rows were lost: fire numbers go on from the new
        term times a million, or from `fired` where that is higher, so that none is ever given twice (commands
        use them as idempotency keys).
        """
        ...

    def end_term(self, term: int, now: Instant) -> None:
        """Note that the ownership ended in good order. A term that is no longer the newest is left alone."""
        ...

    def put_in_force(self, term: int, routines: Sequence[InForce], now: Instant, boot: str) -> None:
        """Make exactly these the routines in force.

        One that is new, was out of force, has another schedule, time zone or jitter, or was disabled before,
        has `accounted_until` set to `now` (its slots from before are nobody's) and `known_since_boot` to
        `boot`; every other keeps both. A mark that this lowers becomes `relived_until`. Rows of routines that
        left stay. Where the rules of a time zone are not those of before, the rows of its routines can be reckoned
        from their marks on alone. Raises Fenced when `term` is not the newest.
        """
        ...

    def settle_pass(
        self,
        term: int,
        now: Instant,
        claims: Sequence[Claim],
        entries: Sequence[Entry],
        accounted: Mapping[str, Instant],
    ) -> list[int | None]:
        """Write all that a pass decided, in one transaction, and say which claims won.

        Returns, for each claim, the number of its fire, or None when it lost and must not be started: a row
        holds that key, a stretch covers that slot, the slot is not above the routine's mark, or the routine
        is not in force. (A boot or a request needs no mark, and no stretch covers it.)

        Entries that continue the row right before them (same outcome, reason, trigger, blocker and term, no
        fire or other row in between) grow that row. An entry whose single slot has a row already is dropped.
        A stretch must not reach into slots up to `relived_until`; where it meets rows all the same it is cut
        to what they leave, as well as that can be known. Entries may lie below the mark: they fire nothing.

        `accounted` raises each routine's mark (never lowers it), in the same transaction; pass only marks
        that moved. Also moves the term's `seen_until` to `now`; a pass with nothing to write does that only
        every 30 s, and otherwise just looks whether the term still stands. Raises Fenced, with nothing
        written, when `term` is not the newest.
        """
        ...

    def lower_marks(self, term: int, to: Instant, count: Callable[[str, Instant, Instant], int]) -> None:
        """After the clock was set back: every mark above `to` becomes `to`, and the old mark `relived_until`.

        Rows stay and refuse doubles, but for `missed(clock)`: those tell of a time that never was. What of
        them lies above `to` is cut off, with `count` of the slots of a routine in (after, until] that are
        left. Raises Fenced when `term` is not the newest.
        """
        ...

    def record(self, starts: Sequence[Start], ends: Sequence[End]) -> None:
        """Note attempts that started and fires that ended, in one transaction.

        Needs no term: an owner that stood down may still close the fires that it claimed. The first end of a
        fire stands; a second one is dropped, and so is a start of a fire that has ended or of an attempt that
        is known already: a repeated call changes nothing.
        """
        ...

    def prune(self, term: int, before: Instant) -> int:
        """Delete ended rows whose slots lie before `before` and below their routine's mark; return how many.

        The newest row and the newest success of each routine stay, whatever their age. The row of a request
        needs no mark to go; that of a boot stays while that boot lasts, because it guards its key. Moves
        `reckoned_since` along.
        """
        ...
