"""One line for each thing that happens, as the journal and the terminal show it; each says what to type next."""

from ankita_agent.app.claim import ClaimCard
from ankita_agent.core.durations import approximate
from ankita_agent.core.instants import Duration, format_instant
from ankita_agent.core.outcomes import Outcome
from ankita_agent.core.rows import End, Entry, OpenFire, Start


def line_of_start(start: Start, routine: str, late: Duration) -> str:
    """`backup: fire 12 started, pid 4711`, with its lateness when that is worth a word."""
    delay = f", {approximate(late)} late" if late >= 1_000_000_000 else ""
    return f"{routine}: fire {start.fire} started, pid {start.process.pid}{delay}"


def line_of_end(end: End, routine: str, took: Duration | None) -> str:
    """How a fire ended, how long it took, and the command that shows more when it did not succeed."""
    spent = f" after {approximate(took)}" if took is not None else ""
    detail = f": {end.detail}" if end.detail else ""
    match end.outcome:
        case Outcome.SUCCEEDED:
            return f"{routine}: fire {end.fire} succeeded{spent}" + (", quiet" if end.quiet else "")
        case Outcome.FAILED if end.exit_code is not None:
            why = f" with exit status {end.exit_code}"
        case Outcome.FAILED if end.signal is not None:
            why = f", killed by signal {end.signal}"
        case _:
            why = f" ({end.reason.replace('_', ' ')})" if end.reason else ""
    how = f"{end.outcome.replace('_', ' ')}{why}{spent}{detail}"
    return f"{routine}: fire {end.fire} {how}; see: ankita-agent logs {routine}"


def line_of_entry(entry: Entry) -> str:
    """Slots that ended without a fire."""
    slots = (
        f"slot {format_instant(entry.slot)}"
        if entry.count == 1
        else f"{entry.count} slots from {format_instant(entry.slot)} to {format_instant(entry.until)}"
    )
    by = f" with fire {entry.blocked_by}" if entry.blocked_by is not None else ""
    return f"{entry.routine}: {slots} {entry.outcome} ({entry.reason.replace('_', ' ')}{by})"


def line_of_lost(fire: OpenFire) -> str:
    """A fire whose agent died."""
    return (
        f"{fire.routine}: fire {fire.fire} of {format_instant(fire.slot)} lost: its agent died before it ended; "
        f"see: ankita-agent logs {fire.routine}"
    )


def words_of_owner(claim: ClaimCard) -> str:
    """Who owns, since when, under what: for refusals and for standbys."""
    manager = f" under {claim.card.manager}" if claim.card.manager else ""
    return f"pid {claim.card.process.pid}{manager} (version {claim.card.version}) since {format_instant(claim.since)}"
