"""What a pass decides for a routine."""

import pytest

from ankita_agent.core.instants import HOUR, MINUTE, SECOND, Duration, Instant, parse_instant
from ankita_agent.core.outcomes import Outcome, Reason, Trigger
from ankita_agent.core.passes import NOTHING, Absence, Decision, Plan, Standing, Wait, decide, decide_reboot
from ankita_agent.core.routine import CatchUp, Routine
from ankita_agent.core.schedule import Timetable, parse_schedule
from ankita_agent.core.zones import zone_named

FREE = Standing(blocked=False, blocked_by=None, room=True, settling=False, turn=True)
BLOCKED = Standing(blocked=True, blocked_by=7, room=True, settling=False, turn=True)
FULL = Standing(blocked=False, blocked_by=None, room=False, settling=False, turn=True)
SETTLING = Standing(blocked=False, blocked_by=None, room=True, settling=True, turn=True)
NOT_ITS_TURN = Standing(blocked=False, blocked_by=None, room=True, settling=False, turn=False)


def at(text: str) -> Instant:
    return parse_instant(f"2026-03-03T{text}Z")


def plan(
    schedule: str = "every 10m",
    *,
    grace: Duration | None = None,
    catch_up: CatchUp = CatchUp.LATEST,
    jitter: int = 0,
) -> Plan:
    routine = Routine(
        name="r",
        schedule=parse_schedule(schedule),
        timezone="UTC",
        run=("true",),
        grace=grace,
        catch_up=catch_up,
    )
    return Plan(routine, Timetable(routine.schedule, zone_named("UTC")), Duration(jitter))


def rows(decision: Decision) -> list[tuple[Outcome, Reason, int]]:
    return [(entry.outcome, entry.reason, entry.count) for entry in decision.entries]


def asleep(since: str, until: str) -> Absence:
    return Absence(at(since), at(until), Reason.ASLEEP)


def test_nothing_is_decided_while_no_slot_is_due() -> None:
    assert decide(plan(), at("10:00:00"), at("10:09:59"), (), FREE) == NOTHING


def test_a_slot_that_is_due_is_claimed_and_moves_the_mark() -> None:
    decision = decide(plan(), at("10:00:00"), at("10:10:00"), (), FREE)
    assert decision.claim is not None
    assert (decision.claim.slot, decision.claim.trigger) == (at("10:10:00"), Trigger.SCHEDULE)
    assert decision.accounted == at("10:10:00")
    assert decision.entries == ()


def test_of_several_overdue_slots_the_newest_starts_and_the_older_are_superseded() -> None:
    decision = decide(plan(), at("10:00:00"), at("10:31:00"), (), FREE)
    assert decision.claim is not None
    assert decision.claim.slot == at("10:30:00")
    assert rows(decision) == [(Outcome.SKIPPED, Reason.SUPERSEDED, 2)]
    assert decision.missed == 2


def test_a_slot_beyond_its_grace_is_missed_and_never_started() -> None:
    decision = decide(plan(grace=MINUTE), at("10:00:00"), at("10:11:01"), (), FREE)
    assert decision.claim is None
    assert rows(decision) == [(Outcome.MISSED, Reason.GRACE, 1)]
    assert decision.accounted == at("10:10:00")


def test_grace_is_one_period_unless_written_and_a_day_at_most() -> None:
    assert plan("every 10m").grace_of(at("10:00:00")) == 10 * MINUTE
    assert plan("0 8 1 * *").grace_of(at("08:00:00")) == 24 * HOUR
    assert plan("every 10m", grace=Duration(SECOND)).grace_of(at("10:00:00")) == SECOND


def test_the_newest_slot_of_an_absence_waits_for_the_settle_time_and_the_older_are_missed() -> None:
    decision = decide(plan(), at("01:00:00"), at("08:05:00"), [asleep("01:05:00", "08:04:30")], SETTLING)
    assert decision.wait is Wait.SETTLE
    assert decision.claim is None
    assert rows(decision) == [(Outcome.MISSED, Reason.ASLEEP, 41)]
    assert decision.accounted == at("07:50:00"), "the newest stays above the mark: a crash must not forget it"


def test_after_the_settle_time_the_newest_missed_slot_is_caught_up_once() -> None:
    decision = decide(plan(), at("07:50:00"), at("08:05:00"), [asleep("01:05:00", "08:04:30")], FREE)
    assert decision.claim is not None
    assert (decision.claim.slot, decision.claim.trigger) == (at("08:00:00"), Trigger.CATCH_UP)


def test_catch_ups_run_one_routine_after_another() -> None:
    decision = decide(plan(), at("07:50:00"), at("08:05:00"), [asleep("01:05:00", "08:04:30")], NOT_ITS_TURN)
    assert decision.wait is Wait.TURN


def test_a_catch_up_is_dropped_when_the_next_slot_comes_first() -> None:
    decision = decide(plan(), at("07:50:00"), at("08:10:00"), [asleep("01:05:00", "08:04:30")], SETTLING)
    assert decision.claim is not None
    assert (decision.claim.slot, decision.claim.trigger) == (at("08:10:00"), Trigger.SCHEDULE)
    assert rows(decision) == [(Outcome.MISSED, Reason.ASLEEP, 1)]


def test_catch_up_none_records_every_slot_of_the_absence_as_missed() -> None:
    routine = plan(catch_up=CatchUp.NONE)
    decision = decide(routine, at("01:00:00"), at("08:05:00"), [asleep("01:05:00", "08:04:30")], FREE)
    assert decision.claim is None
    assert rows(decision) == [(Outcome.MISSED, Reason.ASLEEP, 42)]


def test_slots_of_different_absences_keep_their_own_reasons() -> None:
    absences = [
        Absence(at("01:00:00"), at("02:00:00"), Reason.OFF),
        Absence(at("02:00:00"), at("03:00:00"), Reason.NOT_RUNNING),
    ]
    decision = decide(plan(catch_up=CatchUp.NONE), at("01:00:00"), at("03:05:00"), absences, FREE)
    assert rows(decision) == [(Outcome.MISSED, Reason.OFF, 6), (Outcome.MISSED, Reason.NOT_RUNNING, 6)]


def test_a_run_in_the_way_skips_the_slot_and_is_named() -> None:
    decision = decide(plan(), at("10:00:00"), at("10:10:00"), (), BLOCKED)
    assert decision.claim is None
    assert rows(decision) == [(Outcome.SKIPPED, Reason.OVERLAP, 1)]
    assert decision.entries[0].blocked_by == 7
    assert decision.accounted == at("10:10:00")


def test_without_room_a_slot_waits_above_the_mark_until_its_grace_runs_out() -> None:
    decision = decide(plan(grace=MINUTE), at("10:00:00"), at("10:10:00"), (), FULL)
    assert decision.wait is Wait.ROOM
    assert decision.accounted is None
    assert decision.expires is not None
    assert decide(plan(grace=MINUTE), at("10:00:00"), decision.expires, (), FULL).entries[0].reason is Reason.GRACE


def test_of_a_queue_only_the_newest_slot_waits() -> None:
    decision = decide(plan(), at("10:00:00"), at("10:20:00"), (), FULL)
    assert decision.wait is Wait.ROOM
    assert rows(decision) == [(Outcome.SKIPPED, Reason.SUPERSEDED, 1)]
    assert decision.accounted == at("10:10:00")


def test_an_overlap_is_decided_at_once_and_does_not_queue() -> None:
    crowded = Standing(blocked=True, blocked_by=7, room=False, settling=False, turn=True)
    assert decide(plan(), at("10:00:00"), at("10:10:00"), (), crowded).wait is None


def test_jitter_delays_the_start_and_leaves_the_slot_as_it_is() -> None:
    delayed = plan(jitter=30 * SECOND)
    assert decide(delayed, at("10:00:00"), at("10:10:29"), (), FREE) == NOTHING
    claim = decide(delayed, at("10:00:00"), at("10:10:30"), (), FREE).claim
    assert claim is not None
    assert claim.slot == at("10:10:00")


@pytest.mark.parametrize("standing", [FREE, BLOCKED, FULL, SETTLING, NOT_ITS_TURN])
@pytest.mark.parametrize("catch_up", list(CatchUp))
@pytest.mark.parametrize("minutes", [0, 1, 10, 25, 60, 600])
@pytest.mark.parametrize("away", [(), (asleep("10:05:00", "11:00:00"),), (asleep("09:00:00", "23:00:00"),)])
def test_every_due_slot_ends_in_exactly_one_row_or_waits(
    standing: Standing, catch_up: CatchUp, minutes: int, away: tuple[Absence, ...]
) -> None:
    mark, now = at("10:00:00"), Instant(at("10:00:00") + minutes * MINUTE)
    routine = plan(catch_up=catch_up)
    decision = decide(routine, mark, now, away, standing)
    accounted = decision.accounted if decision.accounted is not None else mark
    slots = list(routine.timetable.slots_between(mark, accounted))
    told = [
        slot
        for entry in decision.entries
        for slot in routine.timetable.slots_between(Instant(entry.slot - 1), entry.until)
    ]
    if decision.claim is not None:
        told.append(decision.claim.slot)
    assert told == slots
    assert sum(entry.count for entry in decision.entries) == len(told) - (decision.claim is not None)
    left = routine.timetable.count_between(accounted, now)
    assert left == (1 if decision.wait else 0)


def test_a_boot_fires_a_reboot_routine_once_by_the_key_of_the_boot() -> None:
    decision = decide_reboot(plan("@reboot"), "boot-2", at("09:00:00"), at("09:01:00"), FREE)
    assert decision.claim is not None
    assert decision.claim.boot == "boot-2"


def test_a_boot_long_ago_is_missed() -> None:
    routine = plan("@reboot", grace=MINUTE)
    decision = decide_reboot(routine, "boot-2", at("09:00:00"), at("12:00:00"), FREE)
    assert rows(decision) == [(Outcome.MISSED, Reason.NOT_RUNNING, 1)]
    assert decision.entries[0].boot == "boot-2"


def test_a_reboot_routine_waits_for_room_and_is_skipped_when_in_its_own_way() -> None:
    assert decide_reboot(plan("@reboot"), "b", at("09:00:00"), at("09:01:00"), FULL).wait is Wait.ROOM
    decision = decide_reboot(plan("@reboot"), "b", at("09:00:00"), at("09:01:00"), BLOCKED)
    assert rows(decision) == [(Outcome.SKIPPED, Reason.OVERLAP, 1)]
