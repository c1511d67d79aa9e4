"""What the clocks tell from one pass to the next."""

from ankita_agent.app.timekeeping import LEAP, STAND, Timekeeper
from ankita_agent.core.instants import DAY, HOUR, MINUTE, SECOND, Duration, Instant
from ankita_agent.core.outcomes import Reason
from ankita_agent.testing.clocks import FakeClock

SETTLE = Duration(30 * SECOND)


def made() -> tuple[FakeClock, Timekeeper]:
    clock = FakeClock()
    return clock, Timekeeper(clock, SETTLE)


def test_time_that_goes_by_is_nothing_to_notice() -> None:
    clock, keeper = made()
    clock.pass_time(Duration(HOUR))
    noticed = keeper.look()
    assert (noticed.slept, noticed.lowered, noticed.stepped) == (False, False, 0)
    assert keeper.absences == []


def test_a_sleep_is_an_absence_and_begins_the_settle_time() -> None:
    clock, keeper = made()
    before = clock.now()
    clock.sleep_machine(Duration(HOUR))
    assert keeper.look().slept
    [absence] = keeper.absences
    assert (absence.since, absence.until, absence.reason) == (before, clock.now(), Reason.ASLEEP)
    assert keeper.settling == SETTLE
    clock.pass_time(SETTLE)
    keeper.look()
    assert keeper.settling is None


def test_a_nap_is_no_absence_but_settles() -> None:
    clock, keeper = made()
    clock.sleep_machine(Duration(10 * SECOND))
    assert keeper.look().slept
    assert keeper.absences == []


def test_a_step_forward_up_to_three_hours_is_an_absence_by_the_clock() -> None:
    clock, keeper = made()
    before = clock.now()
    clock.step(HOUR)
    assert keeper.look().stepped == HOUR
    [absence] = keeper.absences
    assert (absence.since, absence.reason) == (before, Reason.CLOCK)
    assert keeper.held is None


def test_a_step_back_up_to_three_hours_changes_nothing() -> None:
    clock, keeper = made()
    clock.step(-HOUR)
    noticed = keeper.look()
    assert (noticed.lowered, noticed.stepped) == (False, -HOUR)
    assert keeper.absences == []
    assert keeper.held is None


def test_a_step_back_beyond_three_hours_lowers_the_marks() -> None:
    clock, keeper = made()
    clock.step(-365 * DAY)
    assert keeper.look().lowered
    assert keeper.held is None


def test_a_leap_forward_is_not_believed_until_the_clock_has_stood() -> None:
    clock, keeper = made()
    before = clock.now()
    clock.step(365 * DAY)
    keeper.look()
    assert (keeper.held, keeper.absences) == (STAND, [])
    clock.pass_time(STAND)
    keeper.look()
    [absence] = keeper.absences
    assert (absence.since, absence.until, absence.reason) == (before, clock.now(), Reason.CLOCK)
    assert keeper.held is None


def test_a_leap_that_is_taken_back_leaves_no_trace() -> None:
    clock, keeper = made()
    clock.step(365 * DAY)
    keeper.look()
    clock.pass_time(Duration(MINUTE))
    clock.step(-365 * DAY)
    assert not keeper.look().lowered, "nothing was raised meanwhile"
    assert keeper.held is None
    assert keeper.absences == []


def test_a_leap_that_ends_before_it_began_lowers_the_marks() -> None:
    clock, keeper = made()
    clock.step(365 * DAY)
    keeper.look()
    clock.step(-366 * DAY)
    assert keeper.look().lowered
    assert keeper.held is None


def test_a_second_leap_lets_the_clock_stand_anew_and_keeps_the_first_start() -> None:
    clock, keeper = made()
    before = clock.now()
    clock.step(LEAP + SECOND)
    keeper.look()
    clock.pass_time(Duration(STAND - SECOND))
    clock.step(LEAP + SECOND)
    keeper.look()
    assert keeper.held == STAND
    clock.pass_time(STAND)
    keeper.look()
    assert keeper.absences[0].since == before


def test_sleep_does_not_count_as_standing() -> None:
    clock, keeper = made()
    clock.step(DAY)
    keeper.look()
    clock.sleep_machine(Duration(HOUR))
    keeper.look()
    assert keeper.held == STAND


def test_a_ledger_that_cannot_be_written_is_one_growing_absence() -> None:
    clock, keeper = made()
    failed_at = clock.now()
    for _ in range(3):
        clock.pass_time(Duration(5 * MINUTE))
        keeper.look()
        keeper.without_ledger(failed_at)
    [absence] = keeper.absences
    assert (absence.since, absence.until, absence.reason) == (failed_at, clock.now(), Reason.LEDGER)
    keeper.without_ledger(None)
    assert keeper.absences == [absence]


def test_a_clock_before_the_newest_rows_is_doubted_at_the_start() -> None:
    clock, keeper = made()
    keeper.doubt(Instant(clock.now() + DAY))
    assert keeper.held == STAND
    clock.pass_time(STAND)
    assert keeper.look().lowered, "it has stood, so it is right, and what is ahead of it is not"
    assert keeper.held is None


def test_a_doubted_clock_that_is_set_right_lowers_nothing() -> None:
    clock, keeper = made()
    keeper.doubt(Instant(clock.now() + DAY))
    clock.step(2 * DAY)
    keeper.look()
    clock.pass_time(STAND)
    assert not keeper.look().lowered
    assert keeper.held is None


def test_the_boot_is_told_from_the_clock_as_it_is_now() -> None:
    clock, keeper = made()
    assert keeper.booted_at() == Instant(clock.now() - clock.since_boot())
