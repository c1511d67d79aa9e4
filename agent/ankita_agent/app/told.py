"""One line for each thing that happens, as people read it; each says what to type next.

People hear of runs, not of fires, and read times in their own zone: `local` gives an instant so.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ankita_agent.app.claim import ClaimCard
from ankita_agent.core.durations import approximate
from ankita_agent.core.instants import SECOND, Duration, Instant
from ankita_agent.core.outcomes import Outcome
from ankita_agent.core.rows import End, Entry, OpenFire, Start


class Tell(Protocol):
    """Takes a line for people; `warning` when something did not go well: a journal can be asked for those alone."""

    def __call__(self, line: str, /, *, warning: bool = False) -> None:
        """Take the line; never wait, and never fail."""
        ...


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of this agent."""

    local: Callable[[Instant], str]

    def started(self, start: Start, routine: str, late: Duration) -> str:
        """`backup: run 12 started, pid 4711`, with its lateness when that is worth a word."""
        delay = f", {approximate(late)} late" if late >= SECOND else ""
        return f"{routine}: run {start.fire} started, pid {start.process.pid}{delay}"

    def ended(self, end: End, routine: str, took: Duration | None) -> str:
        """How a run ended, how long it took, and the command that shows more when it did not succeed."""
        spent = f" after {approximate(took)}" if took is not None else ""
        detail = f": {end.detail}" if end.detail else ""
        match end.outcome:
            case Outcome.SUCCEEDED:
                return f"{routine}: run {end.fire} succeeded{spent}" + (", quiet" if end.quiet else "")
            case Outcome.FAILED if end.exit_code is not None:
                why = f" with exit status {end.exit_code}"
            case Outcome.FAILED if end.signal is not None:
                why = f", killed by signal {end.signal}"
            case Outcome.TIMED_OUT:
                why = ""
            case _:
                why = f" ({end.reason.replace('_', ' ')})" if end.reason else ""
        how = f"{end.outcome.replace('_', ' ')}{why}{spent}{detail}"
        return f"{routine}: run {end.fire} {how}; see: ankita-agent logs {routine}"

    def without_fire(self, entry: Entry) -> str:
        """Slots that ended without a run."""
        slots = (
            f"slot {self.local(entry.slot)}"
            if entry.count == 1
            else f"{entry.count} slots from {self.local(entry.slot)} to {self.local(entry.until)}"
        )
        by = f" with run {entry.blocked_by}" if entry.blocked_by is not None else ""
        return f"{entry.routine}: {slots} {entry.outcome} ({entry.reason.replace('_', ' ')}{by})"

    def lost(self, fire: OpenFire) -> str:
        """A run whose agent died."""
        return (
            f"{fire.routine}: run {fire.fire} of {self.local(fire.slot)} lost: its agent died before it ended; "
            f"see: ankita-agent logs {fire.routine}"
        )

    def adopted(self, fire: OpenFire) -> str:
        """A run that goes on without the agent that started it."""
        return f"{fire.routine}: run {fire.fire} outlived its agent and is watched to its end"

    def owner(self, claim: ClaimCard) -> str:
        """Who owns, since when, under what: for refusals and for standbys."""
        manager = f" under {claim.card.manager}" if claim.card.manager else ""
        version = f" (version {claim.card.version})"
        return f"pid {claim.card.process.pid}{manager}{version} since {self.local(claim.since)}"
