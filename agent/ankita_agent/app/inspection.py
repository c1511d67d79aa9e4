"""Looking at ownership from outside, for messages and for status. Looking never takes a lock and never writes.

One definition of how an owner is doing, for everybody who asks: *stopped* when the kernel says so; *wedged* when
its progress is older than 120 s of awake time plus the patience that it asked for while it waits for the disk;
else *busy* or *idle*.
"""

from dataclasses import dataclass
from enum import StrEnum

from ankita_agent.app.claim import LIMIT, PROGRESS_AT, Card, ClaimCard, Progress, Role, read_claim, read_life
from ankita_agent.app.owner import CLAIM, LIFE, OWN
from ankita_agent.app.report import Report, read_report
from ankita_agent.core.instants import SECOND, Duration, Monotonic
from ankita_agent.ports.files import Descriptor, Files
from ankita_agent.ports.processes import Observed, Processes

WEDGED_AFTER = Duration(120 * SECOND)
"""Awake time without progress; the manager's watchdog waits as long."""


class OwnerState(StrEnum):
    """How the owner is doing."""

    BUSY = "busy"
    IDLE = "idle"
    WEDGED = "wedged"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class OwnerSeen:
    """The owner as its files and the kernel show it; `progress_age` is awake time, None when never shown."""

    claim: ClaimCard
    state: OwnerState
    progress_age: Duration | None
    trouble: str


@dataclass(frozen=True, slots=True)
class Bystander:
    """A living agent process that does not own, and what it does instead."""

    card: Card
    role: Role


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that can be seen of the agents of a state directory."""

    owner: OwnerSeen | None
    others: tuple[Bystander, ...]
    report: Report | None

    @property
    def standbys(self) -> int:
        """How many agents wait to own."""
        return sum(other.role is Role.STANDBY for other in self.others)

    @property
    def stopping(self) -> tuple[int, ...]:
        """The pids of agents that gave ownership back and wait for their running attempts."""
        return tuple(other.card.process.pid for other in self.others if other.role is Role.STOPPING)


NOBODY = Seen(None, (), None)


def look(files: Files, state: Descriptor, processes: Processes, awake: Monotonic) -> Seen:
    """Look at the agents of an open state directory; facts that cannot be read count as not there."""
    try:
        own = files.open_directory_at(state, OWN)
    except OSError:
        return NOBODY
    try:
        claim = _claim(files, own)
        cards = _lives(files, own)
        report = read_report(files, own)
    finally:
        files.close(own)
    owner = None if claim is None else _owner(claim, cards, processes, awake)
    others = tuple(
        Bystander(card, progress.role)
        for card, progress in cards
        if progress is not None
        and (owner is None or card.token != owner.claim.card.token)
        and processes.observe(card.process) in (Observed.RUNNING, Observed.STOPPED)
    )
    if owner is None or (report is not None and report.token != owner.claim.card.token):
        report = None
    return Seen(owner, others, report)


def _owner(
    claim: ClaimCard, cards: list[tuple[Card, Progress | None]], processes: Processes, awake: Monotonic
) -> OwnerSeen | None:
    observed = processes.observe(claim.card.process)
    if observed is Observed.GONE:
        return None
    progress = next((shown for card, shown in cards if card.token == claim.card.token), None)
    age = None if progress is None else Duration(max(0, awake - progress.awake))
    if observed is Observed.STOPPED:
        state = OwnerState.STOPPED
    elif progress is None or age is None:
        state = OwnerState.IDLE
    elif age > WEDGED_AFTER + progress.patience:
        state = OwnerState.WEDGED
    else:
        state = OwnerState.BUSY if progress.busy or progress.patience else OwnerState.IDLE
    return OwnerSeen(claim, state, age, "" if progress is None else progress.trouble)


def _claim(files: Files, own: Descriptor) -> ClaimCard | None:
    try:
        return read_claim(files.read(own, CLAIM, LIMIT + 1))
    except OSError:
        return None


def _lives(files: Files, own: Descriptor) -> list[tuple[Card, Progress | None]]:
    try:
        directory = files.open_directory_at(own, LIFE)
    except OSError:
        return []
    found = []
    try:
        for token in files.names(directory):
            try:
                card, progress = read_life(files.read(directory, token, PROGRESS_AT * 2))
            except OSError:
                continue
            if card is not None and card.token == token:
                found.append((card, progress))
    finally:
        files.close(directory)
    return found
