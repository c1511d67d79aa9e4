"""Attempts of an agent that died: watched to their end, and what they leave with them."""

from signal import SIGCONT, SIGKILL, SIGTERM

from ankita_agent.app.attempt import LATEST_LOOK
from ankita_agent.app.runner import ADOPTED_KILL_AFTER
from ankita_agent.core.instants import HOUR, MINUTE, SECOND, Duration
from ankita_agent.core.outcomes import Outcome, Reason
from ankita_agent.core.rows import ProcessId
from ankita_agent.core.supervise import Phase, StopReason
from tests.runner_bench import DEAF, Bench, opened, routine, told


def with_lock(bench: Bench) -> ProcessId:
    """A deaf leader that a dead agent started; it holds the lock of its routine, as all do that come of it."""
    output = bench.files.open_file(bench.runs, "output")
    lock = bench.files.open_file(bench.runs, "backup.lock")
    leader = bench.machine.stranger(DEAF, inherits=(output, lock))
    bench.files.close(output)
    bench.files.close(lock)
    return leader


def test_an_adopted_attempt_is_running_until_it_is_gone_and_its_status_is_unknown(bench: Bench) -> None:
    process = bench.machine.stranger()
    bench.runner.adopt(opened(bench, process), None)
    bench.runner.adopt(opened(bench, process), None)
    assert bench.runner.collect() == []
    assert bench.runner.running()["backup"].adopted
    assert bench.runner.reserve("backup") is None
    bench.machine.end(process.pid)
    assert told(bench.end()) == (Outcome.LOST, Reason.STATUS_UNKNOWN)
    assert not bench.runner.running()


def test_an_adopted_attempt_is_looked_at_at_least_once_a_second(bench: Bench) -> None:
    bench.runner.adopt(opened(bench, bench.machine.stranger()), None)
    for _ in range(8):
        deadline = bench.runner.deadline()
        assert deadline is not None
        assert deadline - bench.clock.awake() <= LATEST_LOOK
        bench.later(deadline - bench.clock.awake())


def test_an_adopted_attempt_keeps_the_rest_of_its_timeout(bench: Bench) -> None:
    process = bench.machine.stranger(DEAF)
    bench.runner.adopt(opened(bench, process, started=40 * SECOND), routine(timeout=MINUTE))
    bench.later(20 * SECOND - 1)
    assert bench.machine.sent == []
    bench.later(1)
    assert bench.machine.sent == [(process.pid, SIGTERM), (process.pid, SIGCONT)]
    bench.later(ADOPTED_KILL_AFTER)
    assert told(bench.end()) == (Outcome.TIMED_OUT, Reason.TIMEOUT)


def test_time_that_the_machine_may_have_slept_is_not_counted_against_an_adopted_attempt(bench: Bench) -> None:
    bench.clock.sleep_machine(HOUR)
    bench.runner.adopt(opened(bench, bench.machine.stranger(), started=HOUR), routine(timeout=MINUTE))
    assert bench.runner.collect() == []
    assert bench.machine.sent == []


def test_a_process_that_has_the_pid_of_an_adopted_attempt_by_now_is_left_alone(bench: Bench) -> None:
    process = bench.machine.stranger()
    other = ProcessId(process.pid, process.ticks - 5, process.boot, process.namespace)
    bench.runner.adopt(opened(bench, other), routine(timeout=Duration(1)))
    assert told(bench.end()) == (Outcome.LOST, Reason.STATUS_UNKNOWN)
    assert bench.machine.sent == []


def test_an_adopted_attempt_that_cannot_be_judged_still_holds(bench: Bench) -> None:
    process = bench.machine.stranger()
    elsewhere = ProcessId(process.pid, process.ticks, process.boot, 1)
    bench.runner.adopt(opened(bench, elsewhere), None)
    bench.machine.end(process.pid)
    assert bench.later(HOUR) == []
    assert "backup" in bench.runner.running()


def test_what_an_adopted_attempt_leaves_gets_the_stop_sequence_and_keeps_its_routine_taken(bench: Bench) -> None:
    leader = with_lock(bench)
    bench.runner.adopt(opened(bench, leader), routine())
    kin = [bench.machine.fork(leader.pid), bench.machine.fork(leader.pid, new_session=True)]
    bench.machine.end(leader.pid)
    assert told(bench.end()) == (Outcome.LOST, Reason.STATUS_UNKNOWN)
    assert bench.runner.running()["backup"].phase is Phase.CLEARING
    assert [sent for sent in bench.machine.sent if sent[1] == SIGTERM] == [(pid, SIGTERM) for pid in kin]
    assert bench.later(ADOPTED_KILL_AFTER) == []
    bench.runner.collect()
    assert not any(map(bench.machine.lives, kin))
    assert not bench.runner.running()


def test_an_adopted_attempt_is_stopped_also_beyond_its_group_each_process_once(bench: Bench) -> None:
    leader = with_lock(bench)
    bench.runner.adopt(opened(bench, leader), routine())
    kin = [leader.pid, bench.machine.fork(leader.pid), bench.machine.fork(leader.pid, new_session=True)]
    bench.runner.stop("backup", StopReason.PERSON)
    assert sorted(bench.machine.sent) == sorted((pid, number) for pid in kin for number in (SIGTERM, SIGCONT))
    assert [told(end) for end in bench.later(ADOPTED_KILL_AFTER)] == []
    assert told(bench.end()) == (Outcome.STOPPED, Reason.ASKED_TO_STOP)
    assert not any(map(bench.machine.lives, kin))


def test_who_holds_a_lock_that_another_agent_took_since_is_left_alone(bench: Bench) -> None:
    leader = with_lock(bench)
    bench.runner.adopt(opened(bench, leader), routine())
    bench.machine.end(leader.pid)
    lock = bench.files.open_file(bench.runs, "backup.lock")
    theirs = bench.machine.stranger(inherits=(lock, lock), taker=60)
    bench.files.close(lock)
    bench.end()
    assert not bench.runner.running()
    assert bench.machine.sent == []
    assert [holder.process for holder in bench.runner.holders("backup")] == [theirs]


def test_nothing_is_stopped_where_the_routine_leaves_it_running_or_is_no_more(bench: Bench) -> None:
    for of in (routine(leave_running=True), None):
        leader = with_lock(bench)
        bench.runner.adopt(opened(bench, leader), of)
        left = bench.machine.fork(leader.pid)
        bench.machine.end(leader.pid)
        bench.end()
        assert not bench.runner.running()
        assert bench.machine.sent == []
        assert [holder.process.pid for holder in bench.runner.holders("backup")] == [left]
        bench.machine.signal(left, SIGKILL)


def test_a_lock_that_is_free_or_cannot_be_looked_at_is_held_by_nobody(bench: Bench) -> None:
    assert bench.runner.holders("backup") == []
    (bench.state / "run" / "loop.lock").symlink_to("elsewhere")
    assert bench.runner.holders("loop") == []
