"""The account over random lives: it comes out whatever happened, and no row can be changed unnoticed."""

import tempfile
import zoneinfo
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ankita_agent.adapters.sqlite_ledger import open_owner, open_reader
from ankita_agent.app.account import Untold, take_account
from ankita_agent.app.queries import timetable_of
from ankita_agent.app.requests import Request
from ankita_agent.core.instants import DAY, HOUR, MINUTE, SECOND, Duration, Instant
from ankita_agent.core.outcomes import Outcome, Reason, Trigger
from ankita_agent.core.rows import Entry
from ankita_agent.core.zones import zone_named
from ankita_agent.ports.ledger import Ledger
from tests.ledgers import BOOT, at, claim, ledger_of, missed, routine, seated, success
from tests.simulation import Machine, machine

MANUAL: Final = Trigger.MANUAL

TEXT: Final = """\
agent: {concurrency: 2, settle: 30s}
defaults: {timezone: Europe/Berlin}
routines:
  often: {schedule: every 3m, run: work, timeout: 20m, rerun_lost: true}
  hourly: {schedule: 7 * * * *, run: work, jitter: 5m, grace: 4h}
  nightly: {schedule: '*/20 1-3 * * *', run: work, catch_up: none}
  daily: {schedule: 'daily 02:30', run: work}
  boot: {schedule: '@reboot', run: work}
"""
EDITS: Final = {
    "as it was": TEXT,
    "rescheduled": TEXT.replace("every 3m", "every 4m").replace("02:30", "02:31"),
    "disabled": TEXT.replace("timeout: 20m", "enabled: false"),
    "fewer": TEXT.partition("  hourly")[0],
    "elsewhere": TEXT.replace("Europe/Berlin", "America/New_York"),
    "another command": TEXT.replace("run: work", "run: rest"),
    "nothing": "routines: {}\n",
}

minutes = st.integers(1, 90).map(lambda number: Duration(number * MINUTE + 7 * SECOND))
days = st.integers(1, 120).map(lambda number: Duration(number * DAY))
events = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["live", "sleep", "die", "reboot", "forward", "back", "run for", "ask"]), minutes),
        st.tuples(st.sampled_from(["into a change of the clocks", "leap and return"]), minutes),
        st.tuples(st.sampled_from(["sleep", "reboot", "back"]), days),
        st.tuples(st.sampled_from(sorted(EDITS)), minutes),
    ),
    min_size=1,
    max_size=6,
)


def next_change(now: Instant) -> Instant:
    """When the clocks are put forward or back in Berlin, an hour from now at the earliest."""
    segment = zone_named("Europe/Berlin").segment_at(Instant(now + HOUR))
    while (later := zone_named("Europe/Berlin").segment_at(segment.end)).offset == segment.offset:
        segment = later
    return segment.end


def happen(machine: Machine, event: str, span: Duration) -> None:
    """One event, and a while of ordinary life after it, long enough for a doubted clock to be believed."""
    match event:
        case "live":
            machine.live(span)
        case "run for":
            machine.run_for = Duration(min(span, HOUR))
        case "sleep":
            machine.clock.sleep_machine(span)
        case "die":
            machine.kill()
            machine.clock.pass_time(span)
            machine.begin()
        case "reboot":
            machine.reboot()
            machine.clock.pass_time(span)
            machine.begin()
        case "ask":
            machine.requests.ask(
                Request(f"{len(machine.lines):016x}", "hourly", machine.clock.now(), MANUAL, machine.token)
            )
            machine.live(span)
        case "into a change of the clocks":
            machine.clock.sleep_machine(Duration(next_change(machine.clock.now()) - HOUR - machine.clock.now()))
            machine.live(Duration(span + HOUR))
        case "leap and return":
            machine.clock.step(10 * HOUR)
            machine.live(span)
            machine.clock.step(-10 * HOUR)
        case "forward":
            machine.clock.step(span)
        case "back":
            machine.clock.step(-span)
        case edit:
            machine.save(EDITS[edit])
            machine.live(span)
    machine.live(Duration(11 * MINUTE))


@settings(max_examples=5)
@given(events)
def test_the_account_comes_out_whatever_happened(happening: list[tuple[str, Duration]]) -> None:
    with tempfile.TemporaryDirectory() as path, machine(Path(path), TEXT) as found:
        found.begin()
        for event, span in happening:
            happen(found, event, span)
            told = take_account(found.ledger)
            assert told.right, (event, told, found.rows())


DAMAGE: Final = [
    "DELETE FROM history WHERE id = :id",
    "UPDATE history SET slot = slot + :by, until = until + :by WHERE id = :id",
    "UPDATE history SET slot = slot - :by, until = until - :by WHERE id = :id",
    "UPDATE history SET slot = slot - :by, count = max(count, 2) WHERE id = :id",
    "UPDATE history SET until = until + :by, count = max(count, 2), claimed_at = NULL WHERE id = :id",
    "UPDATE history SET count = count + 1, until = max(until, slot + 1) WHERE id = :id",
    "UPDATE history SET routine = 'another' WHERE id = :id",
    "UPDATE history SET request = 'r', boot = NULL WHERE id = :id",
    "INSERT INTO history (routine, slot, until, trigger, term, claimed_at) "
    "SELECT routine, until + :by, until + :by, trigger, term, 1 FROM history WHERE id = :id",
]


@settings(max_examples=8)
@given(events, st.sampled_from(DAMAGE), st.randoms(use_true_random=False))
def test_a_row_of_an_account_cannot_be_changed_without_being_found_or_left_out_of_it(
    happening: list[tuple[str, Duration]], damage: str, random: Random
) -> None:
    with tempfile.TemporaryDirectory() as path, machine(Path(path), TEXT) as found:
        found.begin()
        for event, span in happening:
            happen(found, event, span)
        found.live(Duration(30 * MINUTE))
        told = take_account(found.ledger).reckonings
        rows = [
            row
            for row in found.rows()
            if row.routine in told and row.request is None and told[row.routine].since < row.slot
        ]
        if not rows:
            return
        by = random.choice([1, SECOND, 30 * SECOND, 95 * SECOND])
        connection = found.ledger._connection
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("DROP INDEX history_slot")
        chosen = random.choice(rows)
        connection.execute(damage, {"id": chosen.fire, "by": by})
        changed = take_account(found.ledger).reckonings[chosen.routine]
        # of a row that reaches over the beginning nobody knows what lies before it: then less is told
        assert changed.wrong is not None or changed.since >= chosen.until
        if damage.startswith("DELETE"):
            assert changed.wrong is not None
            assert (changed.wrong.slot, changed.wrong.left_out) == (chosen.slot, True)


def test_months_of_history_are_reckoned_from_where_pruning_cannot_have_been(tmp_path: Path) -> None:
    ledger = ledger_of("memory", tmp_path)
    term = seated(ledger, routine(schedule="daily 08:00"))
    for day in range(1, 201):
        slot = Instant(at(0) + day * DAY)
        ledger.settle_pass(term, slot, [claim((slot - at(0)) / MINUTE)], [], {"backup": slot})
    ledger.record([], [success(fire) for fire in range(1, 201)])
    ledger.prune(term, Instant(at(0) + 110 * DAY))
    told = take_account(ledger)
    assert told.right
    assert (told.slots, told.since) == (90, Instant(at(0) + 110 * DAY))


def test_no_account_is_taken_of_boots_and_of_schedules_that_cannot_be_read(tmp_path: Path) -> None:
    ledger = ledger_of("memory", tmp_path)
    seated(ledger, routine("at-boot", schedule="@reboot"), routine("lost", timezone="Mars/Olympus"), routine())
    told = take_account(ledger)
    assert (list(told.reckonings), told.untold) == (["backup"], {"lost": Untold.UNREADABLE})


def test_an_empty_ledger_has_an_empty_account(tmp_path: Path) -> None:
    told = take_account(ledger_of("memory", tmp_path))
    assert (told.slots, told.since, told.left_out, told.untold) == (0, None, (), {})


def test_a_stretch_that_reaches_over_an_edit_is_left_out_of_the_account(tmp_path: Path) -> None:
    ledger = ledger_of("memory", tmp_path)
    term = seated(ledger)
    ledger.settle_pass(term, at(10), [], [missed(0, 10, 3)], {"backup": at(10)})
    ledger.put_in_force(term, [routine(schedule="every 4m")], at(11), BOOT)
    ledger.settle_pass(term, at(20), [], [missed(12, 20, 3)], {"backup": at(20)})
    assert [row.count for row in ledger.history(None, 9)] == [6]
    told = take_account(ledger)
    assert told.right
    assert (told.slots, told.since) == (0, at(20))


@pytest.mark.parametrize("stretch", [missed(5, 20, 3), missed(5, 21, 4), missed(6, 20, 3)])
def test_a_stretch_with_another_count_than_the_schedule_has_is_found(tmp_path: Path, stretch: Entry) -> None:
    ledger = ledger_of("memory", tmp_path)
    ledger.settle_pass(seated(ledger), at(30), [], [missed(0), stretch], {"backup": at(20)})
    assert (stretch.outcome, stretch.reason) == (Outcome.MISSED, Reason.ASLEEP)
    ledger.settle_pass(1, at(30), [], [], {"backup": at(21)})
    assert not take_account(ledger).right


# --- other rules of a time zone -----------------------------------------------------------------------


@pytest.fixture
def another_database(tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Puts a database of zones in place of the usual one in which Berlin has the rules of New York."""
    (tmp_path / "zones" / "Europe").mkdir(parents=True)
    places = [Path(place) for place in zoneinfo.TZPATH]
    rules = next(path for place in places if (path := place / "America" / "New_York").exists())

    def put() -> None:
        (tmp_path / "zones" / "Europe" / "Berlin").write_bytes(rules.read_bytes())
        zoneinfo.reset_tzpath([str(tmp_path / "zones")])
        forget()

    def forget() -> None:
        zoneinfo.ZoneInfo.clear_cache()
        zone_named.cache_clear()

    yield put
    zoneinfo.reset_tzpath()
    forget()


DAILY: Final = routine(schedule="daily 08:00", timezone="Europe/Berlin")


def pass_days(ledger: Ledger, first: int, last: int) -> None:
    """Days of life: each slot of `backup` by the rules of here is claimed."""
    timetable = timetable_of(ledger.accounts()["backup"].in_force)
    assert timetable is not None
    for slot in timetable.slots_between(Instant(at(0) + first * DAY), Instant(at(0) + last * DAY)):
        ledger.settle_pass(1, slot, [claim((slot - at(0)) / MINUTE)], [], {"backup": slot})


def test_rows_of_other_rules_are_no_doubles_and_nobody_says_that_they_are(
    tmp_path: Path, another_database: Callable[[], None]
) -> None:
    ledger = ledger_of("memory", tmp_path)
    seated(ledger, DAILY)
    pass_days(ledger, 0, 5)
    assert (take_account(ledger).right, take_account(ledger).slots) == (True, 5)
    mark = ledger.accounts()["backup"].accounted_until
    another_database()
    told = take_account(ledger)
    assert (told.reckonings, told.untold, told.right) == ({}, {"backup": Untold.OTHER_RULES}, True)
    ledger.put_in_force(1, [DAILY], Instant(at(0) + 5 * DAY), BOOT)
    told = take_account(ledger)
    assert (told.slots, told.since, told.untold) == (0, mark, {})
    assert ledger.accounts()["backup"].accounted_until == mark
    pass_days(ledger, 5, 9)
    told = take_account(ledger)
    assert (told.slots, told.right) == (4, True)


def test_an_interval_is_the_same_by_any_rules(tmp_path: Path, another_database: Callable[[], None]) -> None:
    ledger = ledger_of("memory", tmp_path)
    ledger.settle_pass(
        seated(ledger, routine(timezone="Europe/Berlin")), at(10), [], [missed(0, 10, 3)], {"backup": at(10)}
    )
    another_database()
    assert (take_account(ledger).slots, take_account(ledger).untold) == (3, {})


def test_nothing_is_told_of_slots_behind_the_years_whose_rules_are_kept(tmp_path: Path) -> None:
    ledger = ledger_of("memory", tmp_path)
    seated(ledger, DAILY)
    ledger.settle_pass(1, at(0), [], [], {"backup": Instant(at(0) + 4 * 365 * DAY)})
    assert take_account(ledger).untold == {"backup": Untold.OTHER_RULES}


def test_a_ledger_that_forgot_the_rules_tells_nothing(tmp_path: Path) -> None:
    ledger = open_owner(str(tmp_path / "ledger.db"))
    with closing(ledger):
        seated(ledger, DAILY)
        ledger._connection.execute("DELETE FROM zones")
        assert take_account(ledger).untold == {"backup": Untold.NO_RULES}


# --- one moment ---------------------------------------------------------------------------------------


def test_an_account_is_of_one_moment_whatever_is_written_meanwhile(tmp_path: Path) -> None:
    with closing(open_owner(str(tmp_path / "ledger.db"))) as owner:
        term = seated(owner)
        reader = open_reader(str(tmp_path / "ledger.db"))
        assert reader is not None
        with closing(reader), reader.one_moment():
            before = reader.accounts()
            owner.settle_pass(term, at(0), [claim(0)], [], {"backup": at(0)})
            assert (reader.accounts(), reader.covered("backup", at(-9))) == (before, [])
            assert take_account(reader).right
            with reader.one_moment():
                assert reader.summaries()[0].last is None
        assert len(owner.covered("backup", at(-9))) == 1
