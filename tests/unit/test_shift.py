"""The owner at work, on a simulated machine: what becomes of slots when things go as they do."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.app.requests import Request
from ankita_agent.core.instants import DAY, HOUR, MILLISECOND, MINUTE, SECOND, Duration
from ankita_agent.core.outcomes import Trigger
from tests.simulation import Machine, machine

EVERY_TEN_MINUTES = "routines: {r: {schedule: every 10m, run: work}}"


@pytest.fixture
def ten(tmp_path: Path) -> Iterator[Machine]:
    with machine(tmp_path, EVERY_TEN_MINUTES) as found:
        found.begin()
        yield found


def test_each_slot_fires_once_at_its_time(ten: Machine) -> None:
    ten.live(HOUR)
    assert ten.ends() == ["succeeded"] * 6
    assert [row.slot % (10 * MINUTE) for row in ten.rows()] == [0] * 6


def test_a_new_routine_does_not_catch_up_on_slots_from_before_it(ten: Machine) -> None:
    ten.live(Duration(MINUTE))
    assert ten.ends() == []


def test_slots_that_pass_in_sleep_are_missed_and_the_newest_is_caught_up_after_the_settle_time(
    ten: Machine,
) -> None:
    ten.live(Duration(5 * MINUTE))
    ten.clock.sleep_machine(Duration(HOUR))
    ten.live(Duration(10 * SECOND))
    assert ten.ends() == ["missed asleep x5"]
    ten.live(Duration(30 * SECOND))
    assert ten.ends() == ["missed asleep x5", "succeeded [catch_up]"]


def test_catch_ups_after_a_sleep_run_one_after_another(tmp_path: Path) -> None:
    text = "routines: {a: {schedule: every 10m, run: work}, b: {schedule: every 10m, run: work}}"
    with machine(tmp_path, text) as found:
        found.run_for = Duration(20 * SECOND)
        found.begin()
        found.live(Duration(5 * MINUTE))
        found.clock.sleep_machine(Duration(HOUR))
        found.live(Duration(31 * SECOND))
        assert len(found.runner.running()) == 1
        found.live(Duration(20 * SECOND))
        assert len(found.runner.running()) == 1
        found.live(Duration(20 * SECOND))
        assert found.ends("a")[-1] == found.ends("b")[-1] == "succeeded [catch_up]"


def test_an_hour_back_fires_nothing_twice_and_an_hour_on_it_goes_on(ten: Machine) -> None:
    ten.live(HOUR)
    ten.clock.step(-HOUR)
    ten.live(HOUR)
    assert ten.ends() == ["succeeded"] * 6
    ten.live(Duration(10 * MINUTE))
    assert ten.ends() == ["succeeded"] * 7


def test_an_hour_forward_is_missed_by_the_clock_and_caught_up_once(ten: Machine) -> None:
    ten.live(Duration(5 * MINUTE))
    ten.clock.step(HOUR)
    ten.live(Duration(2 * MINUTE))
    assert ten.ends() == ["missed clock x5", "succeeded [catch_up]"]


def test_a_year_back_goes_on_firing_at_once(ten: Machine) -> None:
    ten.live(HOUR)
    ten.clock.step(-365 * DAY)
    ten.live(HOUR)
    assert ten.ends() == ["succeeded"] * 12


def test_a_year_forward_fires_nothing_until_it_has_stood_and_is_one_row(ten: Machine) -> None:
    ten.live(Duration(5 * MINUTE))
    ten.clock.step(365 * DAY)
    ten.live(Duration(9 * MINUTE))
    assert ten.ends() == []
    ten.live(Duration(2 * MINUTE))
    assert ten.ends()[0].startswith("missed clock x525")


def test_an_edit_while_the_clock_is_doubted_waits_for_it_without_a_busy_loop(ten: Machine) -> None:
    ten.clock.step(365 * DAY)
    ten.work()
    ten.save("routines: {r: {schedule: every 7m, run: work}}")
    passes = 0
    while passes < 100 and not any("changed: r" in line for line in ten.lines):
        assert ten.shift is not None
        ten.clock.pass_time(Duration(max(ten.shift.longest_wait(), MILLISECOND)))
        ten.work()
        passes += 1
    assert 10 < passes < 60, "it waits half a minute at a time, for ten minutes"


def test_a_year_forward_that_is_taken_back_leaves_no_row_and_loses_none(ten: Machine) -> None:
    ten.live(Duration(5 * MINUTE))
    ten.clock.step(365 * DAY)
    ten.live(Duration(MINUTE))
    ten.clock.step(-365 * DAY)
    ten.live(Duration(10 * MINUTE))
    assert ten.ends() == ["succeeded"]


def test_a_year_forward_that_stood_and_is_taken_back_does_not_keep_the_coming_year_from_firing(
    ten: Machine,
) -> None:
    ten.live(Duration(5 * MINUTE))
    ten.clock.step(365 * DAY)
    ten.live(Duration(15 * MINUTE))
    ten.clock.step(-365 * DAY)
    before = len([row for row in ten.rows() if row.outcome == "succeeded"])
    ten.live(HOUR)
    succeeded = [row for row in ten.rows() if row.outcome == "succeeded"]
    assert len(succeeded) == before + 6


def test_a_run_in_the_way_skips_the_slot_and_is_named(ten: Machine) -> None:
    ten.run_for = Duration(25 * MINUTE)
    ten.live(Duration(35 * MINUTE))
    first, second = ten.rows()
    assert (first.outcome, second.count, second.blocked_by) == ("succeeded", 2, first.fire)
    assert ten.ends()[1] == "skipped overlap x2"


def test_a_timeout_stops_the_run(tmp_path: Path) -> None:
    text = "routines: {r: {schedule: every 10m, run: work, timeout: 1m}}"
    with machine(tmp_path, text) as found:
        found.run_for = Duration(HOUR)
        found.begin()
        found.live(Duration(12 * MINUTE))
        assert found.ends() == ["timed_out timeout"]


def test_a_full_house_queues_fairly_and_supersedes_older_slots(tmp_path: Path) -> None:
    names = [f"r{number}" for number in range(4)]
    text = "agent: {concurrency: 1}\nroutines:\n" + "".join(
        f"  {name}: {{schedule: every 10m, run: work}}\n" for name in names
    )
    with machine(tmp_path, text) as found:
        found.run_for = Duration(4 * MINUTE)
        found.begin()
        found.live(2 * HOUR)
        ran = {name: sum(row.outcome == "succeeded" for row in found.rows(name)) for name in names}
        assert max(ran.values()) - min(ran.values()) <= 2
        assert sum(ran.values()) >= 26, "the house was full all the time"
        for name in names:
            assert 11 <= sum(row.count for row in found.rows(name)) <= 12


def test_a_killed_agent_leaves_its_fire_lost_and_the_next_one_goes_on(ten: Machine) -> None:
    ten.run_for = Duration(5 * MINUTE)
    ten.live(Duration(12 * MINUTE))
    ten.kill()
    ten.begin()
    ten.live(Duration(20 * MINUTE))
    assert ten.ends()[:2] == ["lost owner_killed", "succeeded"]
    assert len({row.slot for row in ten.rows()}) == len(ten.rows())


def test_a_lost_fire_is_run_again_once_where_the_routine_says_so(tmp_path: Path) -> None:
    text = "routines: {r: {schedule: every 10m, run: work, rerun_lost: true}}"
    with machine(tmp_path, text) as found:
        found.run_for = Duration(MINUTE)
        found.begin()
        found.live(Duration(10 * MINUTE))
        found.kill()
        found.begin()
        found.live(Duration(5 * MINUTE))
        assert found.ends() == ["lost owner_killed", "succeeded [retry]"]


def test_an_attempt_that_outlives_its_agent_is_adopted_and_keeps_its_routine_from_overlapping(
    ten: Machine,
) -> None:
    ten.run_for = Duration(25 * MINUTE)
    ten.live(Duration(12 * MINUTE))
    ten.kill(attempts_too=False)
    ten.begin()
    ten.live(Duration(12 * MINUTE))
    assert ten.ends() == ["open", "skipped overlap"]
    ten.live(Duration(15 * MINUTE))
    assert ten.ends()[0] == "lost status_unknown"


def test_slots_while_no_agent_ran_are_missed_and_the_newest_is_caught_up(ten: Machine) -> None:
    ten.live(Duration(12 * MINUTE))
    ten.kill()
    ten.clock.pass_time(HOUR)
    ten.begin()
    ten.live(Duration(MINUTE))
    assert ten.ends() == ["succeeded", "missed not_running x5", "succeeded [catch_up]"]


def test_a_hand_over_within_a_moment_loses_no_slot(ten: Machine) -> None:
    ten.live(Duration(10 * MINUTE - SECOND))
    ten.kill()
    ten.clock.pass_time(Duration(2 * SECOND))
    ten.begin()
    ten.live(Duration(SECOND))
    assert ten.ends() == ["succeeded"]


def test_a_rescheduled_routine_starts_from_now(ten: Machine) -> None:
    ten.live(Duration(12 * MINUTE))
    ten.kill()
    ten.clock.pass_time(HOUR)
    ten.file.text = "routines: {r: {schedule: every 7m, run: work}}"
    ten.begin()
    ten.live(Duration(MINUTE))
    assert ten.ends() == ["succeeded", "missed not_running x6"]


def test_a_saved_edit_is_in_force_within_a_moment_and_a_bad_one_changes_nothing(ten: Machine) -> None:
    ten.save("routines: {r: {schedule: every 1m, run: work}}")
    ten.live(Duration(2 * MINUTE))
    assert ten.ends() == ["succeeded"] * 2
    ten.save("routines: {r: {schedule: sometimes, run: work}}")
    ten.live(Duration(2 * MINUTE))
    assert ten.ends() == ["succeeded"] * 4
    assert any("from before" in line for line in ten.warnings), ten.lines


def test_slots_that_passed_without_a_run_and_runs_that_were_lost_are_warnings(ten: Machine) -> None:
    ten.live(Duration(10 * MINUTE + SECOND))
    assert (ten.ends(), ten.warnings) == (["succeeded"], [])
    ten.run_for = Duration(HOUR)
    ten.live(Duration(10 * MINUTE))
    ten.kill()
    ten.clock.pass_time(HOUR)
    ten.begin()
    ten.live(Duration(MINUTE))
    assert [line for line in ten.lines if " lost: " in line or " missed (" in line] == ten.warnings != []


def test_a_manual_run_is_a_row_of_its_own_and_moves_no_slot(ten: Machine) -> None:
    ten.requests.ask(Request("00ff00ff00ff00ff", "r", ten.clock.now(), Trigger.MANUAL, ten.token))
    ten.live(Duration(10 * MINUTE))
    assert ten.ends() == ["succeeded [manual]", "succeeded"]


def test_a_request_to_an_owner_that_is_gone_is_missed_and_never_run_by_surprise(ten: Machine) -> None:
    ten.requests.ask(Request("00ff00ff00ff00ff", "r", ten.clock.now(), Trigger.MANUAL, ten.token))
    ten.kill()
    ten.begin()
    ten.live(Duration(MINUTE))
    assert ten.ends() == ["missed not_running [manual]"]


def test_an_at_reboot_routine_fires_once_in_each_boot_and_not_in_the_one_in_which_it_is_new(
    tmp_path: Path,
) -> None:
    with machine(tmp_path, "routines: {r: {schedule: '@reboot', run: work}}") as found:
        found.begin()
        found.live(Duration(MINUTE))
        assert found.ends() == []
        found.reboot()
        found.begin()
        found.live(Duration(MINUTE))
        assert found.ends() == ["succeeded"]
        found.kill()
        found.begin()
        found.live(Duration(MINUTE))
        assert found.ends() == ["succeeded"]


def test_the_wait_is_at_most_thirty_seconds(ten: Machine) -> None:
    assert ten.shift is not None
    ten.work()
    assert 0 <= ten.shift.longest_wait() <= 30 * SECOND


def test_an_edit_leaves_no_slot_that_was_pending_without_a_row(tmp_path: Path) -> None:
    """Pending in its jitter, or waiting for room: rescheduled, disabled and removed alike."""
    names = ("a", "rescheduled", "disabled", "removed")
    before = "agent: {concurrency: 1}\nroutines:\n" + "".join(
        f"  {name}: {{schedule: every 10m, run: work}}\n" for name in names
    )
    after = (
        "agent: {concurrency: 1}\nroutines:\n  a: {schedule: every 10m, run: work}\n"
        "  rescheduled: {schedule: every 7m, run: work}\n  disabled: {schedule: every 10m, run: work, enabled: false}\n"
    )
    with machine(tmp_path, before) as found:
        found.run_for = Duration(5 * MINUTE)
        found.begin()
        found.live(Duration(10 * MINUTE))
        waiting = [name for name in names if not found.rows(name)]
        assert len(waiting) == 3
        found.save(after)
        found.live(Duration(SECOND))
        for name in ("rescheduled", "disabled", "removed"):
            assert name not in waiting or found.ends(name) == ["skipped superseded"]


def test_a_slot_in_its_jitter_is_accounted_for_when_the_jitter_is_edited(tmp_path: Path) -> None:
    with machine(tmp_path, "routines: {r: {schedule: every 10m, run: work, jitter: 9m}}") as found:
        found.begin()
        found.live(Duration(9 * MINUTE + 31 * SECOND))
        assert found.ends() == []
        found.save("routines: {r: {schedule: every 10m, run: work, jitter: 1s}}")
        found.live(Duration(SECOND))
        assert found.ends() == ["skipped superseded"]


def test_a_slot_that_passed_in_a_short_absence_is_accounted_for_when_its_routine_is_gone(ten: Machine) -> None:
    ten.live(Duration(10 * MINUTE - 40 * SECOND))
    ten.kill()
    ten.clock.pass_time(Duration(30 * SECOND))
    ten.file.text = "routines: {}"
    ten.begin()
    assert ten.ends() == ["skipped superseded"]


def test_people_and_schedules_take_turns_when_the_house_is_full(tmp_path: Path) -> None:
    asked = [f"asked{number}" for number in range(12)]
    text = "agent: {concurrency: 1}\nroutines:\n  s: {schedule: every 1m, run: w}\n" + "".join(
        f"  {name}: {{schedule: every 5h, run: w}}\n" for name in asked
    )
    with machine(tmp_path, text) as found:
        found.run_for = Duration(20 * SECOND)
        found.begin()
        for name in asked:
            found.requests.ask(
                Request(f"{asked.index(name):016x}", name, found.clock.now(), Trigger.MANUAL, found.token)
            )
        found.live(Duration(10 * MINUTE))
        assert found.ends("s") == ["succeeded"] * 10
        assert [found.ends(name) for name in asked] == [["succeeded [manual]"]] * 12


def test_a_file_whose_directories_changed_unseen_is_read_within_half_a_minute(ten: Machine) -> None:
    ten.file.text = "routines: {r: {schedule: every 1m, run: work}}"
    ten.live(Duration(3 * MINUTE))
    assert len(ten.ends()) >= 2


def test_grace_zero_means_at_once_and_not_never(tmp_path: Path) -> None:
    with machine(tmp_path, "routines: {r: {schedule: every 10m, run: work, grace: 0s}}") as found:
        found.begin()
        found.live(Duration(9 * MINUTE))
        found.clock.pass_time(Duration(30 * SECOND + 5_000_000))
        found.work()
        found.live(Duration(5 * SECOND))
        assert found.ends() == ["succeeded"]


def test_a_reboot_routine_that_ran_is_not_told_as_missed_by_the_next_owner(tmp_path: Path) -> None:
    with machine(tmp_path, "routines: {r: {schedule: '@reboot', run: work, grace: 1h}}") as found:
        found.begin()
        found.reboot()
        found.begin()
        found.live(Duration(MINUTE))
        found.kill()
        found.clock.pass_time(Duration(DAY))
        found.lines.clear()
        found.begin()
        found.live(Duration(MINUTE))
        assert found.ends() == ["succeeded"]
        assert not any("missed" in line for line in found.lines)


def test_who_holds_a_routine_up_from_outside_is_named_until_it_lets_go(ten: Machine) -> None:
    files = PosixFiles()
    lock = files.open_file(files.open_directory(str(ten.path / "run")), "r.lock")
    assert files.try_lock(lock)
    ten.live(Duration(20 * MINUTE))
    assert ten.ends() == ["skipped overlap x2"]
    assert [line for line in ten.lines if "r is held up by" in line] == [
        "degraded: r is held up by a process that cannot be seen"
    ]
    files.close(lock)
    ten.live(Duration(10 * MINUTE))
    assert ten.ends()[-1] == "succeeded"
    assert "well again: held" in ten.lines
