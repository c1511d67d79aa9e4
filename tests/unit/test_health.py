"""How a routine is doing."""

import pytest

from ankita_agent.core.health import describe, health_of
from ankita_agent.core.instants import DAY, HOUR, Duration, Instant, parse_instant
from ankita_agent.core.outcomes import Health, Outcome, Reason, Trigger
from ankita_agent.core.rows import Account, HistoryRow, InForce, RoutineSummary

NOW = parse_instant("2026-03-03T12:00:00Z")


def row(
    outcome: Outcome,
    reason: Reason | None = None,
    *,
    ago: int = HOUR,
    count: int = 1,
    exit_code: int | None = None,
    signal: int | None = None,
    blocked_by: int | None = None,
) -> HistoryRow:
    return HistoryRow(
        fire=1,
        routine="r",
        slot=Instant(NOW - ago),
        until=Instant(NOW - ago),
        count=count,
        trigger=Trigger.SCHEDULE,
        outcome=outcome,
        reason=reason,
        quiet=False,
        claimed_at=None,
        started_at=None,
        ended_at=NOW,
        exit_code=exit_code,
        signal=signal,
        attempts=1,
        term=1,
        log=None,
        request=None,
        blocked_by=blocked_by,
        detail="",
    )


def summary(*recent: HistoryRow, last_success: Instant | None = None) -> RoutineSummary:
    in_force = InForce("r", "every 1h", "UTC", Duration(0), True, "", "{}")
    ran = next((each for each in recent if each.outcome not in (Outcome.SKIPPED, Outcome.MISSED)), None)
    return RoutineSummary(
        account=Account(in_force, NOW, None, "boot", NOW),
        last=recent[0] if recent else None,
        last_run=ran,
        last_success=last_success,
        last_success_slot=last_success,
        running=None,
        recent=recent,
        unsuccessful_slots=sum(each.count for each in recent),
    )


def judged(*recent: HistoryRow, just_woke: bool = False) -> Health:
    return health_of(summary(*recent), None, NOW, just_woke=just_woke)[0]


SUCCESS = row(Outcome.SUCCEEDED)
FAILURE = row(Outcome.FAILED, Reason.EXIT_STATUS, exit_code=3)
OVERLAP = row(Outcome.SKIPPED, Reason.OVERLAP)
ASLEEP = row(Outcome.MISSED, Reason.ASLEEP, count=5)


def test_a_routine_without_any_slot_is_new() -> None:
    assert judged() is Health.NEW


def test_a_success_is_ok() -> None:
    assert judged(SUCCESS, FAILURE, FAILURE) is Health.OK


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.TIMED_OUT, Outcome.LOST])
def test_one_bad_run_is_failing(outcome: Outcome) -> None:
    assert judged(row(outcome), SUCCESS) is Health.FAILING


STOPPED = row(Outcome.STOPPED, Reason.SHUTDOWN, ago=0)


def test_a_run_that_a_shutdown_stopped_makes_no_routine_red_and_is_no_success() -> None:
    health, reason = health_of(summary(STOPPED), None, NOW, just_woke=False)
    assert (health, reason) == (Health.NEW, "it has not succeeded yet; the last run stopped (shutdown)")
    assert health_of(summary(STOPPED, SUCCESS, last_success=NOW), None, NOW, just_woke=False)[0] is Health.OK
    assert judged(STOPPED, STOPPED, STOPPED) is Health.STALLED


@pytest.mark.parametrize("success", [None, Instant(NOW - 2 * HOUR)])
def test_a_restart_does_not_hide_that_the_run_before_it_failed(success: Instant | None) -> None:
    shown = health_of(summary(STOPPED, FAILURE, last_success=success), None, NOW, just_woke=False)
    assert shown == (Health.FAILING, "the last run that was not stopped failed (exit status 3)")


def test_a_manual_success_after_a_failure_outlives_a_restart() -> None:
    health, _ = health_of(summary(STOPPED, FAILURE, last_success=Instant(NOW - HOUR // 2)), None, NOW, just_woke=False)
    assert health is Health.OK


def test_three_slots_without_success_are_stalled_whatever_the_reasons() -> None:
    assert judged(OVERLAP, FAILURE, OVERLAP) is Health.STALLED


def test_three_skips_are_never_shown_as_well() -> None:
    health, reason = health_of(
        summary(*[row(Outcome.SKIPPED, Reason.OVERLAP, blocked_by=12)] * 3), None, NOW, just_woke=False
    )
    assert health is Health.STALLED
    assert "run 12" in reason


def test_two_skips_after_a_success_are_not_stalled_yet() -> None:
    assert judged(OVERLAP, OVERLAP, SUCCESS) is Health.OK


def test_a_stretch_counts_for_all_its_slots() -> None:
    assert judged(row(Outcome.SKIPPED, Reason.OVERLAP, count=3)) is Health.STALLED


def test_slots_missed_asleep_count_only_when_the_machine_has_been_awake_for_a_while() -> None:
    assert judged(ASLEEP, SUCCESS, just_woke=True) is Health.OK
    assert judged(ASLEEP, SUCCESS, just_woke=False) is Health.STALLED


@pytest.mark.parametrize("reason", [Reason.OFF, Reason.NOT_RUNNING, Reason.CLOCK])
def test_slots_that_passed_without_an_agent_do_not_stall(reason: Reason) -> None:
    assert judged(row(Outcome.MISSED, reason, count=99), SUCCESS) is Health.OK


def test_stale_after_overrides_the_count_of_slots() -> None:
    fresh = summary(OVERLAP, OVERLAP, OVERLAP, SUCCESS, last_success=Instant(NOW - HOUR))
    assert health_of(fresh, Duration(DAY), NOW, just_woke=False)[0] is Health.OK
    health, reason = health_of(fresh, Duration(HOUR // 2), NOW, just_woke=False)
    assert health is Health.STALLED
    assert "stale_after" in reason


def test_a_routine_that_never_succeeded_is_stale_after_its_time() -> None:
    assert health_of(summary(FAILURE), Duration(HOUR // 2), NOW, just_woke=False)[0] is Health.STALLED
    assert health_of(summary(FAILURE), Duration(DAY), NOW, just_woke=False)[0] is Health.FAILING


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        (SUCCESS, "succeeded"),
        (FAILURE, "failed (exit status 3)"),
        (row(Outcome.FAILED, Reason.KILLED, signal=9), "failed (killed by signal 9)"),
        (row(Outcome.FAILED, Reason.SPAWN), "failed (spawn)"),
        (row(Outcome.TIMED_OUT, Reason.TIMEOUT), "timed out"),
        (row(Outcome.SKIPPED, Reason.OVERLAP, blocked_by=4), "skipped (overlap with run 4)"),
        (row(Outcome.MISSED, Reason.NOT_RUNNING), "missed (not running)"),
        (row(Outcome.LOST, Reason.OWNER_KILLED), "lost (owner killed)"),
    ],
)
def test_an_end_is_described_in_words(ended: HistoryRow, words: str) -> None:
    assert describe(ended) == words
