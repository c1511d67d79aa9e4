"""How a routine is doing, from its latest slots.

`stalled` is the loud one: the last three slots that came due all ended without success, whatever the reasons.
Three skips behind a dead lock are as bad as three failures; a row of skips is never shown as success.
A run that was stopped, by a shutdown or by a person, is no success and no failure of its routine: the run before it
counts, so that a restart makes nothing red and hides nothing that was.
tests/unit/test_health.py holds it.
"""

from ankita_agent.core.durations import approximate
from ankita_agent.core.instants import Duration, Instant
from ankita_agent.core.outcomes import Health, Outcome, Reason
from ankita_agent.core.rows import HistoryRow, RoutineSummary

STALLED_AFTER = 3
"""Slots in a row without a success."""

_NOBODY_THERE = frozenset({Reason.OFF, Reason.NOT_RUNNING, Reason.CLOCK})
"""Slots that passed while there was no agent did not come due for it."""

_RAN_BADLY = frozenset({Outcome.FAILED, Outcome.TIMED_OUT, Outcome.LOST})

RUN_OUTCOMES = frozenset({*_RAN_BADLY, Outcome.STOPPED})
"""How a run ends that did not succeed: its output may say why."""


def health_of(
    summary: RoutineSummary, stale_after: Duration | None, now: Instant, *, just_woke: bool
) -> tuple[Health, str]:
    """Health and its reason for a person (empty when ok).

    `just_woke` when the machine has been awake for less than 15 minutes since it last slept: then slots missed
    asleep do not count yet.
    """
    if stale_after is not None:
        stale = _staleness(summary, stale_after, now)
        if stale:
            return Health.STALLED, stale
    else:
        stalled = _stall(summary, just_woke=just_woke)
        if stalled:
            return Health.STALLED, stalled
    run = summary.last_run
    if run is None or run.outcome is None:
        return Health.NEW, "it has not run yet"
    if run.outcome is Outcome.STOPPED:
        return _before_the_stop(summary, run)
    if run.outcome in _RAN_BADLY:
        return Health.FAILING, f"the last run {describe(run)}"
    if summary.last_success is None and not run.outcome.success:
        return Health.FAILING, f"it has never succeeded; the last run {describe(run)}"
    return Health.OK, ""


def _before_the_stop(summary: RoutineSummary, stopped: HistoryRow) -> tuple[Health, str]:
    """How it is doing by its newest run that ended by itself, as far as the latest slots reach back."""
    bad = next((row for row in summary.recent if row.outcome in _RAN_BADLY or row.outcome is Outcome.SUCCEEDED), None)
    success = summary.last_success_slot
    if bad is not None and bad.outcome in _RAN_BADLY and (success is None or success < bad.slot):
        return Health.FAILING, f"the last run that was not stopped {describe(bad)}"
    if success is None:
        return Health.NEW, f"it has not succeeded yet; the last run {describe(stopped)}"
    return Health.OK, ""


def describe(row: HistoryRow) -> str:
    """An ended row in words: `failed (exit status 3)`, `skipped (overlap with run 12)`."""
    assert row.outcome is not None
    if row.outcome is Outcome.FAILED and row.exit_code is not None:
        return f"failed (exit status {row.exit_code})"
    if row.signal is not None and row.outcome is Outcome.FAILED:
        return f"failed (killed by signal {row.signal})"
    if row.outcome in (Outcome.SUCCEEDED, Outcome.TIMED_OUT) or row.reason is None:
        return row.outcome.replace("_", " ")
    if row.reason is Reason.OVERLAP and row.blocked_by is not None:
        return f"skipped (overlap with run {row.blocked_by})"
    return f"{row.outcome.replace('_', ' ')} ({row.reason.replace('_', ' ')})"


def _staleness(summary: RoutineSummary, stale_after: Duration, now: Instant) -> str:
    if summary.last_success is None:
        if summary.last is None or now - summary.last.slot <= stale_after:
            return ""
        return f"has never succeeded, and stale_after is {approximate(stale_after)}"
    age = now - summary.last_success
    if age <= stale_after:
        return ""
    return f"last success {approximate(age)} ago, more than stale_after ({approximate(stale_after)})"


def _stall(summary: RoutineSummary, *, just_woke: bool) -> str:
    ended = 0
    newest: HistoryRow | None = None
    for row in summary.recent:
        if row.reason in _NOBODY_THERE or (row.reason is Reason.ASLEEP and just_woke):
            continue
        if row.outcome is Outcome.SUCCEEDED:
            break
        newest = newest or row
        ended += row.count
    if newest is None or ended < STALLED_AFTER:
        return ""
    slots = max(ended, summary.unsuccessful_slots)
    return f"the last {slots} slots ended without success; the newest {describe(newest)}"
