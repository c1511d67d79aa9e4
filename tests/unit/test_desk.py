"""Between a claim and its process: whatever fails there, each claim gets an end and each routine keeps its place."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ankita_agent.adapters.yaml_files import read_document
from ankita_agent.app.desk import Desk
from ankita_agent.app.seat import plan_of
from ankita_agent.app.timekeeping import Timekeeper
from ankita_agent.core.errors import Fenced
from ankita_agent.core.instants import MINUTE, Duration, Instant
from ankita_agent.core.outcomes import Outcome, Reason
from ankita_agent.core.passes import Wait
from ankita_agent.core.routine_file import judge
from tests.simulation import Machine, machine

TWO = "routines:\n  a: {schedule: every 1m, run: x}\n  b: {schedule: every 1m, run: x}\n"


@pytest.fixture
def owned(tmp_path: Path) -> Iterator[Machine]:
    """A machine with an owner that has put two routines in force, a moment before both are due."""
    with machine(tmp_path, TWO) as found:
        found.begin()
        yield found


def desk_of(
    on: Machine, still_ours: Callable[[], object] = lambda: None, note_fire: Callable[[int], None] = lambda fire: None
) -> Desk:
    """A desk that asks and notes in these ways before it starts, when both routines have become due."""
    on.clock.pass_time(Duration(MINUTE))
    file = judge(read_document(TWO.encode()), "UTC").file
    assert file is not None
    plans = {routine.name: plan_of(routine, "m") for routine in file.routines}
    marks: dict[str, Instant] = {name: known.accounted_until for name, known in on.ledger.accounts().items()}
    timekeeper = Timekeeper(on.clock, Duration(0))
    desk = Desk(on.ledger, 1, on.runner, on.requests, timekeeper, "boot", still_ours, note_fire)
    desk.put(plans, marks, 4)
    return desk


def serve(desk: Desk) -> list[tuple[str, Outcome, Reason | None, str]]:
    """One pass; the fires that ended without a process."""
    served = desk.serve("token", look_for_requests=True)
    return [(routine, end.outcome, end.reason, end.detail) for end, routine in served.ends]


def test_claims_whose_ownership_cannot_be_checked_again_are_not_started_and_end_with_the_reason(owned: Machine) -> None:
    def unreadable() -> None:
        raise OSError(24, "Too many open files")

    why = "cannot check the ownership: Too many open files"
    assert serve(desk_of(owned, unreadable)) == [(name, Outcome.FAILED, Reason.SPAWN, why) for name in "ab"]
    assert owned.processes.launches == []
    assert owned.runner.reserve("a") is not None, "its lock is free again"


def test_claims_whose_ownership_went_are_closed_before_anybody_hears_of_it(owned: Machine) -> None:
    def gone() -> None:
        raise Fenced("lost")

    with pytest.raises(Fenced):
        serve(desk_of(owned, gone))
    assert [(row.outcome, row.reason) for row in owned.rows()] == [(Outcome.STOPPED, Reason.FENCED)] * 2
    assert owned.processes.launches == []


def test_routines_whose_claims_were_closed_at_once_have_their_next_slots_all_the_same(owned: Machine) -> None:
    def gone() -> None:
        raise Fenced("lost")

    desk = desk_of(owned, gone)
    with pytest.raises(Fenced):
        serve(desk)
    assert [desk.dues.mark(name) for name in "ab"] == [row.slot for row in owned.rows()]
    assert desk.dues.next_due() == desk.dues.mark("a") + MINUTE


def test_the_newest_fire_is_noted_after_the_claims_are_written_and_before_anything_starts(owned: Machine) -> None:
    seen: list[tuple[int, int, int]] = []

    def note(fire: int) -> None:
        seen.append((fire, len(owned.rows()), len(owned.processes.launches)))

    serve(desk_of(owned, note_fire=note))
    assert seen == [(2, 2, 0)]
    assert len(owned.processes.launches) == 2


def test_claims_that_cannot_be_noted_are_not_started_and_end_with_the_reason(owned: Machine) -> None:
    def broken(fire: int) -> None:
        raise OSError(5, "Input/output error")

    why = "cannot check the ownership: Input/output error"
    assert serve(desk_of(owned, note_fire=broken)) == [(name, Outcome.FAILED, Reason.SPAWN, why) for name in "ab"]
    assert owned.processes.launches == []


def test_a_routine_whose_lock_cannot_be_opened_waits_and_keeps_no_other_from_starting(owned: Machine) -> None:
    lock = owned.path / "run" / "a.lock"
    lock.mkdir()
    desk = desk_of(owned)
    served = desk.serve("token", look_for_requests=False)
    assert [routine for _, routine, _ in served.starts] == ["b"]
    assert "cannot open the lock of routine 'a'" in served.hindrance
    assert desk.dues.line["a"].wait is Wait.ROOM
    lock.rmdir()
    again = desk.serve("token", look_for_requests=False)
    assert [routine for _, routine, _ in again.starts] == ["a"]
    assert again.hindrance == ""
