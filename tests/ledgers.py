"""Ledgers and rows for tests: short names for what nearly every one of them needs."""

from pathlib import Path
from typing import Final

from ankita_agent.adapters.sqlite_ledger import memory_ledger, open_owner
from ankita_agent.core.instants import MINUTE, SECOND, Duration, Instant
from ankita_agent.core.outcomes import Outcome, Reason, Trigger
from ankita_agent.core.rows import Claim, End, Entry, InForce, ProcessId, Start
from ankita_agent.ports.ledger import Ledger

BOOT: Final = "6a1f0c1e-boot"
AGENT: Final = ProcessId(pid=100, ticks=5000, boot=BOOT, namespace=4026531836)
ATTEMPT: Final = ProcessId(pid=200, ticks=6000, boot=BOOT, namespace=4026531836)
MORNING: Final = Instant(1_767_254_400 * SECOND)
"""2026-01-01T08:00:00Z."""

KINDS: Final = ("disk", "memory")


def ledger_of(kind: str, directory: Path) -> Ledger:
    """The ledger under test, new and empty."""
    return open_owner(str(directory / "ledger.db")) if kind == "disk" else memory_ledger()


def at(minutes: float) -> Instant:
    """So many minutes after the morning."""
    return Instant(MORNING + round(minutes * MINUTE))


def routine(
    name: str = "backup",
    *,
    schedule: str = "every 5m",
    timezone: str = "UTC",
    jitter: int = 0,
    enabled: bool = True,
    meaning: str = "{}",
) -> InForce:
    """A routine in force."""
    return InForce(name, schedule, timezone, Duration(jitter), enabled, "", meaning)


def seated(ledger: Ledger, *routines: InForce, token: str = "one") -> int:
    """Begin a term a little before the morning and put these in force; `backup` when none is given."""
    term = ledger.begin_term(0, token, AGENT, at(-1))
    ledger.put_in_force(term, routines or (routine(),), at(-1), BOOT)
    return term


def claim(minutes: float = 0, name: str = "backup", *, boot: str | None = None, request: str | None = None) -> Claim:
    """A wish to fire the slot at that minute."""
    return Claim(name, at(minutes), Trigger.MANUAL if request else Trigger.SCHEDULE, boot, request)


def missed(minutes: float, until: float | None = None, count: int = 1, *, reason: Reason = Reason.ASLEEP) -> Entry:
    """Slots of `backup` from one minute to another that were missed."""
    last = at(minutes if until is None else until)
    return Entry("backup", at(minutes), last, count, Outcome.MISSED, reason)


def skipped(
    minutes: float,
    *,
    reason: Reason = Reason.OVERLAP,
    blocked_by: int | None = None,
    request: str | None = None,
) -> Entry:
    """The slot of `backup` at that minute, skipped."""
    return Entry(
        "backup",
        at(minutes),
        at(minutes),
        1,
        Outcome.SKIPPED,
        reason,
        blocked_by=blocked_by,
        request=request,
    )


def start(fire: int, minutes: float = 0, attempt: int = 1) -> Start:
    """Its attempt started."""
    return Start(fire, ATTEMPT, at(minutes), attempt, f"logs/backup/{attempt}.log")


def success(fire: int, minutes: float = 1) -> End:
    """It succeeded."""
    return End(fire, Outcome.SUCCEEDED, None, at(minutes), exit_code=0)


def failure(fire: int, minutes: float = 1) -> End:
    """It failed."""
    return End(fire, Outcome.FAILED, Reason.EXIT_STATUS, at(minutes), exit_code=1)


def fire_now(ledger: Ledger, term: int, wish: Claim, minutes: float | None = None) -> int:
    """Claim it, and be sure that it won."""
    now = wish.slot if minutes is None else at(minutes)
    (fire,) = ledger.settle_pass(term, now, [wish], [], {})
    assert fire is not None
    return fire


def spans(ledger: Ledger) -> list[tuple[float, float, int, Outcome | None]]:
    """Every row, oldest first: from and to in minutes, count, outcome."""
    rows = reversed(ledger.history(None, 1000))
    return [((row.slot - MORNING) / MINUTE, (row.until - MORNING) / MINUTE, row.count, row.outcome) for row in rows]
