"""What becomes of fires that another agent left open, and of the time in which nobody owned."""

import pytest

from ankita_agent.app.recovery import OpenFires, absences_since, rerun_of
from ankita_agent.core.instants import MINUTE, Instant, parse_instant
from ankita_agent.core.outcomes import Outcome, Reason, Trigger
from ankita_agent.core.passes import Absence
from ankita_agent.core.routine import Routine
from ankita_agent.core.rows import End, OpenFire, ProcessId, TermRecord
from ankita_agent.testing.processes import FakeProcesses

NOON = parse_instant("2026-03-03T12:00:00Z")


def later(minutes: int) -> Instant:
    return Instant(NOON + minutes * MINUTE)


def fire(process: ProcessId | None, token: str = "dead") -> OpenFire:
    return OpenFire(3, "r", NOON, Trigger.SCHEDULE, 1, token, NOON, NOON, process, 1, "logs/x")


def settled(
    processes: FakeProcesses, *fires: OpenFire, living: str = "", closed: bool = False
) -> tuple[list[End], list[OpenFire], bool]:
    """The ends, the adopted fires, and whether some are left to their own agents."""
    adopted: list[OpenFire] = []

    def adopt(fire: OpenFire, routine: Routine | None) -> None:
        adopted.append(fire)

    open_fires = OpenFires(
        lambda token: token == living, lambda: () if closed else (3,), processes, adopt, lambda fire: None
    )
    open_fires.take(fires)
    ends = [end for _, end in open_fires.settle({}, NOON)]
    return ends, adopted, open_fires.waiting


def test_a_fire_of_a_living_agent_is_left_to_it() -> None:
    assert settled(FakeProcesses(), fire(None, "alive"), living="alive") == ([], [], True)


def test_a_fire_that_its_agent_closed_before_it_ended_in_good_order_is_not_lost() -> None:
    assert settled(FakeProcesses(), fire(None), closed=True) == ([], [], False)


def test_a_fire_that_never_started_is_lost_with_its_agent() -> None:
    [end], adopted, waiting = settled(FakeProcesses(), fire(None))
    assert (end.outcome, end.reason) == (Outcome.LOST, Reason.OWNER_KILLED)
    assert (adopted, waiting) == ([], False)


def test_an_attempt_that_lives_is_adopted_also_when_it_is_stopped() -> None:
    processes = FakeProcesses()
    running, stopped = processes.stranger(), processes.stranger()
    processes.signal(stopped.pid, 19)
    ends, adopted, _ = settled(processes, fire(running), fire(stopped))
    assert ends == []
    assert [each.process for each in adopted] == [running, stopped]


def test_an_attempt_that_is_gone_or_whose_pid_is_another_process_by_now_is_lost() -> None:
    processes = FakeProcesses()
    known = processes.stranger()
    reused = ProcessId(known.pid, known.ticks + 1, known.boot, known.namespace)
    other_boot = ProcessId(known.pid, known.ticks, "another boot", known.namespace)
    ends, adopted, _ = settled(processes, fire(reused), fire(other_boot))
    assert [end.reason for end in ends] == [Reason.OWNER_KILLED] * 2
    assert adopted == []


def test_an_attempt_of_another_pid_namespace_is_lost_with_an_unknown_status_and_never_adopted() -> None:
    processes = FakeProcesses()
    known = processes.stranger()
    elsewhere = ProcessId(known.pid, known.ticks, known.boot, known.namespace + 1)
    [end], adopted, _ = settled(processes, fire(elsewhere))
    assert (end.outcome, end.reason) == (Outcome.LOST, Reason.STATUS_UNKNOWN)
    assert adopted == []


def term(ended_at: Instant | None = None) -> TermRecord:
    return TermRecord(1, "a", ProcessId(1, 1, "boot-1", 1), NOON, later(10), ended_at)


def test_time_without_an_agent_in_the_same_boot_is_not_running() -> None:
    assert absences_since(term(), "boot-1", NOON, later(60)) == [Absence(later(10), later(60), Reason.NOT_RUNNING)]


def test_time_before_this_boot_is_off_and_after_it_not_running() -> None:
    assert absences_since(term(), "boot-2", later(30), later(60)) == [
        Absence(later(10), later(30), Reason.OFF),
        Absence(later(30), later(60), Reason.NOT_RUNNING),
    ]


@pytest.mark.parametrize("booted", [-60, 5, 10])
def test_a_boot_time_that_cannot_be_right_gives_no_time_off(booted: int) -> None:
    assert absences_since(term(), "boot-2", later(booted), later(60)) == [
        Absence(later(10), later(60), Reason.NOT_RUNNING)
    ]


def test_an_orderly_end_counts_from_its_own_moment() -> None:
    [absence] = absences_since(term(later(20)), "boot-1", NOON, later(60))
    assert absence.since == later(20)


def test_the_second_try_of_a_lost_fire_has_an_id_that_can_win_only_once() -> None:
    first, second = rerun_of(fire(None), "a"), rerun_of(fire(None), "b")
    assert first.id == second.id
    assert (first.trigger, first.slot) == (Trigger.RETRY, NOON)
