"""Random days of a simulated machine: whatever happens, every slot ends in exactly one row and none fires twice."""

import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ankita_agent.core.instants import HOUR, MINUTE, SECOND, Duration, Instant
from ankita_agent.core.schedule import Timetable, parse_schedule
from ankita_agent.core.zones import zone_named
from tests.simulation import Machine, machine

SCHEDULES = {"often": "every 3m", "hourly": "7 * * * *", "seldom": "every 50m"}
TEXT = "agent: {concurrency: 2, settle: 30s}\nroutines:\n" + "".join(
    f"  {name}: {{schedule: '{schedule}', run: work, timeout: 20m}}\n" for name, schedule in SCHEDULES.items()
)
FEWER = "routines: {often: {schedule: every 3m, run: work, timeout: 20m}}"

spans = st.integers(1, 4 * 60).map(lambda minutes: Duration(minutes * MINUTE + 7 * SECOND))
events = st.lists(
    st.one_of(
        st.tuples(st.just("live"), spans),
        st.tuples(st.just("run for"), st.integers(0, 30).map(lambda minutes: Duration(minutes * MINUTE + SECOND))),
        st.tuples(st.just("sleep"), spans),
        st.tuples(st.just("die"), spans),
        st.tuples(st.just("die alone"), spans),
        st.tuples(st.just("reboot"), spans),
        st.tuples(st.just("forward"), st.integers(1, 170).map(lambda minutes: Duration(minutes * MINUTE))),
        st.tuples(st.just("back"), st.integers(1, 170).map(lambda minutes: Duration(minutes * MINUTE))),
        st.tuples(st.just("leap and return"), spans),
    ),
    min_size=1,
    max_size=8,
)


def happen(machine: Machine, event: str, span: Duration) -> None:
    """One event, and a while of ordinary life after it."""
    match event:
        case "live":
            machine.live(span)
        case "run for":
            machine.run_for = span
        case "sleep":
            machine.clock.sleep_machine(span)
        case "die" | "die alone":
            machine.kill(attempts_too=event == "die")
            machine.clock.pass_time(span)
            machine.begin()
        case "reboot":
            machine.reboot()
            machine.clock.pass_time(span)
            machine.begin()
        case "forward":
            machine.clock.step(span)
        case "back":
            machine.clock.step(-span)
        case "leap and return":
            machine.clock.step(10 * HOUR)
            machine.live(Duration(MINUTE))
            machine.clock.step(-10 * HOUR)
    machine.live(Duration(9 * MINUTE))


def check(machine: Machine, began: Instant) -> None:
    """Every slot of every routine up to its mark has exactly one row, and nothing above it has."""
    accounts = machine.ledger.accounts()
    for name, schedule in SCHEDULES.items():
        timetable = Timetable(parse_schedule(schedule), zone_named("UTC"))
        told: Counter[Instant] = Counter()
        for row in machine.rows(name):
            covered = list(timetable.slots_between(Instant(row.slot - 1), row.until))
            assert len(covered) == row.count, row
            told.update(covered)
        expected = Counter(timetable.slots_between(began, accounts[name].accounted_until))
        assert told == expected, (name, told - expected, expected - told)


@settings(max_examples=25)
@given(events)
def test_every_slot_of_a_random_day_ends_in_exactly_one_row(happening: list[tuple[str, Duration]]) -> None:
    with tempfile.TemporaryDirectory() as path, machine(Path(path), TEXT) as found:
        began = found.clock.now()
        found.begin()
        for event, span in happening:
            happen(found, event, span)
        check(found, began)
        starts = [launch.environment["ANKITA_FIRE"] for launch in found.processes.launches]
        assert len(starts) == len(set(starts))


@settings(max_examples=10)
@given(st.lists(st.tuples(st.booleans(), spans), min_size=1, max_size=5))
def test_edits_never_give_a_slot_two_rows(edits: list[tuple[bool, Duration]]) -> None:
    with tempfile.TemporaryDirectory() as path, machine(Path(path), TEXT) as found:
        found.begin()
        for few, span in edits:
            found.save(FEWER if few else TEXT)
            found.live(span)
        rows = Counter((row.routine, row.slot) for row in found.rows())
        assert max(rows.values(), default=1) == 1
