"""Which routines are looked at, and in which order."""

from ankita_agent.app.dues import Dues
from ankita_agent.core.instants import MINUTE, SECOND, Duration, Instant, parse_instant
from ankita_agent.core.passes import NOTHING, Decision, Plan, Wait
from ankita_agent.core.routine import Routine
from ankita_agent.core.schedule import Timetable, parse_schedule
from ankita_agent.core.zones import zone_named

NOON = parse_instant("2026-03-03T12:00:00Z")
ROOM = frozenset({Wait.ROOM})


def plan(name: str, schedule: str, *, enabled: bool = True, jitter: int = 0) -> Plan:
    routine = Routine(name=name, schedule=parse_schedule(schedule), timezone="UTC", run=("true",), enabled=enabled)
    return Plan(routine, Timetable(routine.schedule, zone_named("UTC")), Duration(jitter))


def put(*plans: Plan, mark: Instant = NOON) -> Dues:
    dues = Dues()
    dues.put(plans, {each.name: mark for each in plans})
    return dues


def names(dues: Dues, now: Instant, revisit: frozenset[Wait] = frozenset()) -> list[str]:
    return [each.name for each in dues.due(now, revisit=revisit)]


def later(span: int) -> Instant:
    return Instant(NOON + span)


def test_only_what_is_due_is_looked_at() -> None:
    dues = put(plan("a", "every 10m"), plan("b", "every 1h"))
    assert names(dues, later(9 * MINUTE)) == []
    assert names(dues, later(10 * MINUTE)) == ["a"]


def test_a_decided_routine_is_looked_at_again_at_its_next_slot() -> None:
    routine = plan("a", "every 10m")
    dues = put(routine)
    [found] = dues.due(later(10 * MINUTE), revisit=frozenset())
    dues.decided(found, Decision(accounted=later(10 * MINUTE)), later(10 * MINUTE))
    assert dues.next_due() == later(20 * MINUTE)
    assert dues.mark("a") == later(10 * MINUTE)


def test_the_mark_never_falls() -> None:
    routine = plan("a", "every 10m")
    dues = put(routine)
    dues.decided(routine, Decision(accounted=Instant(NOON - MINUTE)), NOON)
    assert dues.mark("a") == NOON


def test_waiting_routines_are_served_first_come_first_served_before_what_is_newly_due() -> None:
    late, early, fresh = plan("late", "every 10m"), plan("early", "every 5m"), plan("fresh", "every 11m")
    dues = put(fresh, late, early)
    for routine, minutes in ((early, 5), (late, 10)):
        now = later(minutes * MINUTE)
        dues.due(now, revisit=frozenset())
        dues.decided(routine, Decision(wait=Wait.ROOM, expires=later(60 * MINUTE)), now)
    assert names(dues, later(12 * MINUTE), ROOM)[:2] == ["early", "late"]


def test_a_routine_keeps_its_place_in_line_when_a_newer_slot_replaces_the_older() -> None:
    first, second = plan("first", "every 1m"), plan("second", "every 1m")
    dues = put(first, second)
    waiting = Decision(wait=Wait.ROOM, expires=later(9 * MINUTE))
    for minute in (1, 2):
        now = later(minute * MINUTE)
        for routine in dues.due(now, revisit=frozenset()):
            dues.decided(routine, waiting, now)
    assert names(dues, later(130 * SECOND), ROOM) == ["first", "second"]
    assert dues.line["first"].since == later(MINUTE)


def test_a_waiting_routine_is_looked_at_when_its_grace_runs_out_even_without_room() -> None:
    routine = plan("a", "every 1h")
    dues = put(routine)
    dues.due(later(60 * MINUTE), revisit=frozenset())
    dues.decided(routine, Decision(wait=Wait.ROOM, expires=later(65 * MINUTE)), later(60 * MINUTE))
    assert dues.next_due() == later(65 * MINUTE)
    assert names(dues, later(65 * MINUTE)) == ["a"]


def test_what_could_not_be_written_is_due_again_at_once() -> None:
    routine = plan("a", "every 10m")
    dues = put(routine)
    dues.due(later(10 * MINUTE), revisit=frozenset())
    dues.undecided([routine], later(10 * MINUTE))
    assert names(dues, later(10 * MINUTE)) == ["a"]


def test_disabled_routines_are_never_due() -> None:
    assert names(put(plan("a", "every 1m", enabled=False)), later(5 * MINUTE)) == []


def test_an_unchanged_routine_keeps_its_place_over_a_reload_and_a_changed_one_does_not() -> None:
    stays, changes = plan("stays", "every 1m"), plan("changes", "every 1m")
    dues = put(stays, changes)
    now = later(MINUTE)
    for routine in dues.due(now, revisit=frozenset()):
        dues.decided(routine, Decision(wait=Wait.ROOM, expires=later(9 * MINUTE)), now)
    dues.put([plan("stays", "every 1m"), plan("changes", "every 2m")], {"stays": NOON, "changes": now})
    assert list(dues.line) == ["stays"]


def test_the_next_slot_is_told_without_its_jitter() -> None:
    dues = put(plan("a", "every 10m", jitter=5 * SECOND))
    following = dues.next()
    assert following is not None
    assert (following[0].name, following[1]) == ("a", later(10 * MINUTE))
    assert dues.next_due() == later(10 * MINUTE + 5 * SECOND)


def test_a_routine_that_has_nothing_to_decide_leaves_the_line() -> None:
    routine = plan("a", "every 10m")
    dues = put(routine)
    dues.decided(routine, Decision(wait=Wait.ROOM, expires=None), later(10 * MINUTE))
    dues.decided(routine, NOTHING, later(10 * MINUTE))
    assert dues.line == {}
