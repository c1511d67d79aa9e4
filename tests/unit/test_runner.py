import os
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM

import pytest

from ankita_agent.app.attempt import LATEST_LOOK
from ankita_agent.app.runner import DESCRIPTORS_OF_THE_AGENT, KILL_AGAIN, LOWEST_LOCK
from ankita_agent.core.errors import CannotWriteState
from ankita_agent.core.instants import HOUR, MINUTE, SECOND, Duration
from ankita_agent.core.outcomes import Outcome, Reason
from ankita_agent.core.rows import End, Start
from ankita_agent.core.supervise import Phase, StopReason
from ankita_agent.testing.processes import FakeProcesses, Program
from tests.runner_bench import DEAF, UNKILLABLE, Bench, routine, told

# -- starting


def test_a_launched_attempt_is_running_until_its_leader_ends(bench: Bench) -> None:
    process = bench.start()
    assert bench.runner.collect() == []
    shown = bench.runner.running()["backup"]
    assert (shown.fire, shown.process, shown.phase) == (1, process, Phase.RUNNING)
    bench.machine.end(process.pid)
    assert bench.end() == End(1, Outcome.SUCCEEDED, None, bench.clock.now(), exit_code=0)
    assert not bench.runner.running()
    assert bench.runner.deadline() is None


def test_a_start_tells_what_the_ledger_keeps(bench: Bench) -> None:
    started = bench.launch(routine())
    assert isinstance(started, Start)
    assert started.log == "logs/backup/20260302T070000Z-1.log"
    assert (bench.state / started.log).exists()
    assert (started.fire, started.attempt, started.started_at) == (1, 1, bench.clock.now())


def test_an_attempt_gets_its_command_its_directory_its_variables_and_nothing_of_ours(bench: Bench) -> None:
    env_file = bench.state / "variables"
    env_file.write_text("KEY='of the file'\n")
    bench.start(routine(run=("work", "-v"), cwd="~/src", env={"MODE": "no"}, env_file=str(env_file)))
    (launch,) = bench.machine.launches
    assert launch.argv == ("work", "-v")
    assert launch.directory == "/home/ann/src"
    assert launch.environment["KEY"] == "of the file"
    assert launch.environment["MODE"] == "no"
    assert launch.environment["ANKITA_FIRE"] == "1"
    assert all(descriptor >= LOWEST_LOCK for descriptor in launch.keep)


def test_what_cannot_be_started_is_a_failed_fire_and_leaves_nothing_behind(bench: Bench) -> None:
    bench.machine.programs["backup"] = Program(fault="cannot start 'backup': there is no such program")
    end = bench.launch(routine())
    assert isinstance(end, End)
    assert told(end) == (Outcome.FAILED, Reason.SPAWN)
    assert end.detail == "cannot start 'backup': there is no such program"
    assert not bench.runner.running()
    assert not bench.locked()
    assert list((bench.state / "logs" / "backup").iterdir()) == []


@pytest.mark.parametrize("content", [None, b"no line\n", b"A=\xff\n"])
def test_a_bad_env_file_is_a_failed_fire(bench: Bench, content: bytes | None) -> None:
    env_file = bench.state / "variables"
    if content is not None:
        env_file.write_bytes(content)
    end = bench.launch(routine(env_file=str(env_file)))
    assert isinstance(end, End)
    assert told(end) == (Outcome.FAILED, Reason.SPAWN)
    assert str(env_file) in end.detail
    assert not bench.machine.launches


def test_an_output_that_cannot_be_opened_is_a_failed_fire(bench: Bench) -> None:
    (bench.state / "logs").write_text("in the way")
    end = bench.launch(routine())
    assert isinstance(end, End)
    assert told(end) == (Outcome.FAILED, Reason.SPAWN)
    assert "output" in end.detail
    assert not bench.locked()


# -- the lock


def test_a_routine_is_reserved_once_whoever_asks(bench: Bench) -> None:
    reservation = bench.runner.reserve("backup")
    assert reservation is not None
    assert bench.runner.reserve("backup") is None
    assert bench.another_runner().reserve("backup") is None
    other = bench.runner.reserve("other")
    assert other is not None
    bench.runner.release(reservation)
    assert not bench.locked()
    assert (bench.state / "run" / "backup.lock").exists()


def test_the_lock_outlives_the_agent_as_long_as_the_attempt_lives(bench: Bench) -> None:
    reservation = bench.runner.reserve("backup")
    assert reservation is not None
    (started,) = bench.runner.launch([(bench.order(routine()), reservation)])
    assert isinstance(started, Start)
    os.close(reservation.descriptor)  # what the death of the agent does
    assert bench.locked()
    bench.machine.end(started.process.pid)
    assert not bench.locked()


def test_a_lock_that_cannot_be_opened_is_reported_and_nothing_is_held(bench: Bench) -> None:
    (bench.state / "run" / "backup.lock").symlink_to("elsewhere")
    with pytest.raises(CannotWriteState, match="backup"):
        bench.runner.reserve("backup")


def test_a_start_for_which_there_are_no_descriptors_is_put_off_and_not_failed(bench: Bench) -> None:
    bench.machine.descriptors = DESCRIPTORS_OF_THE_AGENT + 3 * 2
    first = bench.start(routine("first"))
    reserved = bench.runner.reserve("second")
    assert reserved is not None
    with pytest.raises(CannotWriteState, match="no room to start routine 'third'"):
        bench.runner.reserve("third")
    bench.runner.release(reserved)
    second = bench.start(routine("second"))
    with pytest.raises(CannotWriteState):
        bench.runner.reserve("third")
    for process in (first, second):
        bench.machine.end(process.pid)
    bench.runner.collect()
    for name in ("third", "fourth"):
        bench.start(routine(name))


def test_leave_running_frees_the_lock_at_the_end_of_the_leader_and_touches_nobody(bench: Bench) -> None:
    process = bench.start(routine(leave_running=True))
    daemon = bench.machine.fork(process.pid)
    bench.machine.end(process.pid)
    assert told(bench.end()) == (Outcome.SUCCEEDED, None)
    assert not bench.runner.running()
    assert not bench.locked()
    assert bench.machine.lives(daemon)
    assert bench.machine.sent == []


# -- ends


@pytest.mark.parametrize(
    ("exit_code", "success", "expected"),
    [
        (0, (0,), (Outcome.SUCCEEDED, None)),
        (24, (0, 24), (Outcome.SUCCEEDED, None)),
        (1, (0,), (Outcome.FAILED, Reason.EXIT_STATUS)),
        (75, (0,), (Outcome.SKIPPED, Reason.ASKED)),
        (75, (0, 75), (Outcome.SUCCEEDED, None)),
    ],
)
def test_an_exit_status_is_told_as_the_routine_says(
    bench: Bench, exit_code: int, success: tuple[int, ...], expected: tuple[Outcome, Reason | None]
) -> None:
    process = bench.start(routine(success_exit_status=success))
    bench.machine.end(process.pid, exit_code=exit_code)
    end = bench.end()
    assert told(end) == expected
    assert end.exit_code == exit_code


def test_a_signal_that_nobody_here_sent_is_a_failure(bench: Bench) -> None:
    process = bench.start()
    bench.machine.signal(process.pid, SIGKILL)
    end = bench.end()
    assert told(end) == (Outcome.FAILED, Reason.KILLED)
    assert (end.exit_code, end.signal) == (None, SIGKILL)


@pytest.mark.parametrize(
    ("output", "exit_code", "quiet"),
    [(b"ok\n", 0, True), (b"\n ok \n", 0, True), (b"ok", 1, False), (b"ok!\n", 0, False), (b"", 0, False)],
)
def test_a_successful_run_whose_whole_output_is_the_quiet_marker_had_nothing_to_report(
    bench: Bench, output: bytes, exit_code: int, quiet: bool
) -> None:
    process = bench.start(routine(quiet_output="ok"))
    bench.machine.write(process.pid, output)
    bench.machine.end(process.pid, exit_code=exit_code)
    assert bench.end().quiet is quiet


def test_logs_beyond_those_to_keep_are_removed_oldest_fires_first(bench: Bench) -> None:
    for _ in range(4):
        process = bench.start(routine(keep_logs=2))
        bench.machine.write(process.pid, b"x")
        bench.machine.end(process.pid)
        bench.later(MINUTE)
    names = sorted(path.name for path in (bench.state / "logs" / "backup").iterdir())
    assert [name.partition("-")[2] for name in names] == ["3.log", "4.log"]


# -- the stop sequence


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (StopReason.PERSON, (Outcome.STOPPED, Reason.ASKED_TO_STOP)),
        (StopReason.SHUTDOWN, (Outcome.STOPPED, Reason.SHUTDOWN)),
        (StopReason.FENCE, (Outcome.STOPPED, Reason.FENCED)),
    ],
)
def test_a_stopped_attempt_is_told_by_who_stopped_it(
    bench: Bench, reason: StopReason, expected: tuple[Outcome, Reason]
) -> None:
    bench.start()
    assert bench.runner.stop("backup", reason)
    assert told(bench.end()) == expected
    assert not bench.runner.stop("backup", reason)


def test_an_attempt_over_its_timeout_is_stopped(bench: Bench) -> None:
    bench.start(routine(timeout=Duration(10 * SECOND)))
    assert bench.later(10 * SECOND - 1) == []
    bench.later(1)
    assert told(bench.end()) == (Outcome.TIMED_OUT, Reason.TIMEOUT)


def test_sleep_of_the_machine_and_a_clock_that_is_set_do_not_count_towards_a_timeout(bench: Bench) -> None:
    bench.start(routine(timeout=Duration(10 * SECOND)))
    bench.clock.sleep_machine(HOUR)
    bench.clock.step(HOUR)
    assert bench.runner.collect() == []
    assert bench.machine.sent == []


def test_an_attempt_that_ended_before_its_timeout_was_looked_at_was_not_timed_out(bench: Bench) -> None:
    process = bench.start(routine(timeout=Duration(10 * SECOND)))
    bench.machine.end(process.pid)
    (end,) = bench.later(HOUR)
    assert told(end) == (Outcome.SUCCEEDED, None)


def test_a_stop_that_comes_after_the_leader_ended_does_not_change_how_it_ended(bench: Bench) -> None:
    process = bench.start()
    bench.machine.end(process.pid, exit_code=3)
    bench.runner.stop("backup", StopReason.PERSON)
    assert bench.runner.deadline() == bench.clock.awake()
    assert told(bench.end()) == (Outcome.FAILED, Reason.EXIT_STATUS)


def test_who_deafens_itself_to_sigterm_is_killed_after_kill_after(bench: Bench) -> None:
    bench.machine.programs["backup"] = DEAF
    process = bench.start(routine(kill_after=Duration(3 * SECOND)))
    bench.runner.stop("backup", StopReason.PERSON)
    assert bench.later(3 * SECOND - 1) == []
    bench.later(1)
    end = bench.end()
    assert told(end) == (Outcome.STOPPED, Reason.ASKED_TO_STOP)
    assert end.signal == SIGKILL
    assert bench.machine.sent == [(process.pid, SIGTERM), (process.pid, SIGCONT), (process.pid, SIGKILL)]


def test_being_asked_twice_sends_no_second_sigterm_and_the_first_reason_stands(bench: Bench) -> None:
    bench.machine.programs["backup"] = DEAF
    bench.start()
    bench.runner.stop("backup", StopReason.PERSON)
    bench.runner.stop_all(StopReason.SHUTDOWN)
    assert [number for _, number in bench.machine.sent] == [SIGTERM, SIGCONT]
    bench.later(10 * SECOND)
    assert told(bench.end()) == (Outcome.STOPPED, Reason.ASKED_TO_STOP)


def test_a_stopped_process_is_ended_by_the_sigterm_because_a_sigcont_follows(bench: Bench) -> None:
    process = bench.start()
    bench.machine.signal(process.pid, SIGSTOP)
    bench.runner.stop("backup", StopReason.PERSON)
    assert bench.end().signal == SIGTERM


def test_the_whole_family_gets_the_stop_sequence_each_process_once(bench: Bench) -> None:
    bench.machine.programs["backup"] = DEAF
    process = bench.start()
    child = bench.machine.fork(process.pid)
    escaped = bench.machine.fork(child, new_session=True)
    bench.machine.end(child)
    bench.runner.stop("backup", StopReason.PERSON)
    assert sorted(bench.machine.sent) == sorted(
        (pid, number) for pid in (process.pid, escaped) for number in (SIGTERM, SIGCONT)
    )
    bench.later(10 * SECOND)
    assert not bench.machine.lives(process.pid)
    assert not bench.machine.lives(escaped)


def test_an_unkillable_attempt_is_stuck_keeps_its_routine_and_hinders_nobody(bench: Bench) -> None:
    bench.machine.programs["backup"] = UNKILLABLE
    bench.start()
    other = bench.start(routine("other"))
    bench.runner.stop("backup", StopReason.PERSON)
    bench.later(10 * SECOND)
    assert bench.runner.stuck() == []
    bench.later(KILL_AGAIN)
    assert [attempt.routine for attempt in bench.runner.stuck()] == ["backup"]
    bench.machine.end(other.pid)
    assert bench.end().fire == 2
    assert bench.locked("backup")
    assert bench.runner.reserve("backup") is None
    bench.machine.end(bench.runner.running()["backup"].process.pid, by_signal=SIGKILL)
    assert told(bench.end()) == (Outcome.STOPPED, Reason.ASKED_TO_STOP)
    assert bench.runner.stuck() == []


# -- what a finished attempt left running


def test_the_end_is_told_at_once_and_the_routine_stays_taken_until_its_stragglers_have_ended(
    bench: Bench,
) -> None:
    process = bench.start()
    straggler = bench.machine.fork(process.pid, new_session=True, program=DEAF)
    bench.machine.end(process.pid)
    assert told(bench.end()) == (Outcome.SUCCEEDED, None)
    assert bench.runner.running()["backup"].phase is Phase.CLEARING
    assert bench.runner.reserve("backup") is None
    assert bench.machine.sent == [(straggler, SIGTERM), (straggler, SIGCONT)]
    assert bench.later(10 * SECOND) == []
    assert not bench.machine.lives(straggler)
    assert bench.runner.collect() == []
    assert not bench.runner.running()
    assert not bench.locked()


def test_stragglers_of_a_stopped_attempt_get_no_second_sigterm(bench: Bench) -> None:
    process = bench.start()
    straggler = bench.machine.fork(process.pid, program=DEAF)
    bench.runner.stop("backup", StopReason.PERSON)
    assert told(bench.end()) == (Outcome.STOPPED, Reason.ASKED_TO_STOP)
    assert bench.machine.sent.count((straggler, SIGTERM)) == 1
    bench.later(10 * SECOND)
    assert not bench.machine.lives(straggler)


def test_an_unkillable_straggler_is_reported(bench: Bench) -> None:
    process = bench.start()
    bench.machine.fork(process.pid, program=UNKILLABLE)
    bench.machine.end(process.pid)
    bench.end()
    bench.later(10 * SECOND)
    bench.later(KILL_AGAIN)
    assert [attempt.phase for attempt in bench.runner.stuck()] == [Phase.CLEARING_KILL]


def test_a_straggler_that_shed_session_parent_and_variables_is_known_by_the_lock_it_inherited(bench: Bench) -> None:
    process = bench.start()
    escaped = bench.machine.fork(process.pid, new_session=True, program=DEAF)
    bench.machine.forget_mark(escaped)
    bench.machine.end(process.pid)
    bench.end()
    assert bench.runner.running()["backup"].phase is Phase.CLEARING
    bench.later(10 * SECOND)
    bench.runner.collect()
    assert not bench.machine.lives(escaped)
    assert not bench.locked()


def test_a_straggler_that_shed_the_lock_too_keeps_nobody_from_running(bench: Bench) -> None:
    process = bench.start()
    escaped = bench.machine.fork(process.pid, new_session=True)
    bench.machine.forget_mark(escaped)
    bench.machine.close_locks(escaped)
    bench.machine.end(process.pid)
    bench.end()
    assert not bench.runner.running()
    assert bench.machine.lives(escaped)
    assert not bench.locked()


def test_a_pid_that_is_given_out_again_is_not_taken_for_the_family_of_an_earlier_attempt(
    tmp_path: Path,
) -> None:
    state = tmp_path / "reuse"
    state.mkdir()
    bench = Bench(state)
    bench.machine = FakeProcesses(reuse_pids=True)
    bench.runner = bench.another_runner()
    first = bench.start()
    straggler = bench.machine.fork(first.pid, new_session=True, program=DEAF)
    bench.machine.end(first.pid)
    bench.end()
    second = bench.start(routine("other"))
    assert second.pid == first.pid
    bench.later(10 * SECOND)
    bench.runner.collect()
    assert not bench.machine.lives(straggler)
    assert bench.machine.lives(second.pid)
    assert [number for pid, number in bench.machine.sent if pid == second.pid] == []
    bench.machine.end(second.pid)
    assert bench.end().fire == 2


# -- when to look again


def test_the_deadline_is_the_next_look_or_the_next_step_whichever_comes_first(bench: Bench) -> None:
    bench.start(routine(timeout=None))
    looks = []
    for _ in range(8):
        deadline = bench.runner.deadline()
        assert deadline is not None
        looks.append(deadline - bench.clock.awake())
        bench.later(looks[-1])
    assert looks == sorted(looks)
    assert looks[-1] == LATEST_LOOK


def test_an_output_that_grows_fast_is_looked_at_often_and_its_middle_is_cut_out(bench: Bench) -> None:
    process = bench.start()
    for _ in range(10):
        bench.later(LATEST_LOOK)
    for _ in range(12):
        bench.machine.write(process.pid, b"x" * 2_000_000)
        bench.later(LATEST_LOOK)
    deadline = bench.runner.deadline()
    assert deadline is not None
    assert deadline - bench.clock.awake() < LATEST_LOOK
    bench.machine.end(process.pid)
    bench.end()
    (log,) = (bench.state / "logs" / "backup").iterdir()
    assert log.stat().st_size <= 10 * 1024 * 1024
