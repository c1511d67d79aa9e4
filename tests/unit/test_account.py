"""The account over random lives: it comes out whatever happened, and no row can be taken or added unnoticed."""

import tempfile
from pathlib import Path
from random import Random
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ankita_agent.app.account import AccountTold, take_account
from ankita_agent.core.instants import DAY, HOUR, MINUTE, SECOND, Duration, Instant
from ankita_agent.core.outcomes import Outcome, Reason
from ankita_agent.core.rows import Entry
from tests.ledgers import BOOT, at, claim, ledger_of, missed, routine, seated, success
from tests.simulation import Machine, machine

TEXT: Final = """\
agent: {concurrency: 2, settle: 30s}
defaults: {timezone: Europe/Berlin}
routines:
  often: {schedule: every 3m, run: work, timeout: 20m}
  hourly: {schedule: 7 * * * *, run: work, jitter: 5m}
  daily: {schedule: 'daily 02:30', run: work}
"""
EDITS: Final = {
    "as it was": TEXT,
    "rescheduled": TEXT.replace("every 3m", "every 4m").replace("02:30", "02:31"),
    "disabled": TEXT.replace("timeout: 20m", "enabled: false"),
    "fewer": TEXT.partition("  hourly")[0],
    "elsewhere": TEXT.replace("Europe/Berlin", "America/New_York"),
    "another command": TEXT.replace("run: work", "run: rest"),
}

minutes = st.integers(1, 90).map(lambda number: Duration(number * MINUTE + 7 * SECOND))
days = st.integers(1, 120).map(lambda number: Duration(number * DAY))
events = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["live", "sleep", "die", "reboot", "forward", "back", "run for"]), minutes),
        st.tuples(st.sampled_from(["sleep", "reboot", "back"]), days),
        st.tuples(st.sampled_from(sorted(EDITS)), minutes),
    ),
    min_size=1,
    max_size=6,
)


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
        case "forward":
            machine.clock.step(span)
        case "back":
            machine.clock.step(-span)
        case edit:
            machine.save(EDITS[edit])
            machine.live(span)
    machine.live(Duration(11 * MINUTE))


def is_right(told: AccountTold) -> bool:
    """Whether nothing is doubled and nothing left out."""
    return not told.doubled and all(each.wrong is None for each in told.reckonings.values())


@settings(max_examples=5)
@given(events)
def test_the_account_comes_out_whatever_happened(happening: list[tuple[str, Duration]]) -> None:
    with tempfile.TemporaryDirectory() as path, machine(Path(path), TEXT) as found:
        found.begin()
        for event, span in happening:
            happen(found, event, span)
            told = take_account(found.ledger)
            assert is_right(told), (event, told, found.rows())


@settings(max_examples=5)
@given(events, st.randoms(use_true_random=False))
def test_a_row_that_is_taken_out_of_an_account_is_missed(happening: list[tuple[str, Duration]], random: Random) -> None:
    with tempfile.TemporaryDirectory() as path, machine(Path(path), TEXT) as found:
        found.begin()
        for event, span in happening:
            happen(found, event, span)
        found.live(Duration(30 * MINUTE))
        told = take_account(found.ledger)
        rows = [
            row
            for row in found.rows()
            if row.routine in told.reckonings
            and row.request is None
            and told.reckonings[row.routine].since < row.slot
            and row.until <= told.reckonings[row.routine].until
        ]
        if not rows:
            return
        taken = random.choice(rows)
        found.ledger._connection.execute("DELETE FROM history WHERE id = ?", (taken.fire,))
        wrong = take_account(found.ledger).reckonings[taken.routine].wrong
        assert wrong is not None
        assert (wrong.slot, wrong.left_out) == (taken.slot, True)


def test_months_of_history_are_reckoned_from_where_pruning_cannot_have_been(tmp_path: Path) -> None:
    ledger = ledger_of("memory", tmp_path)
    term = seated(ledger, routine(schedule="daily 08:00"))
    for day in range(1, 201):
        slot = Instant(at(0) + day * DAY)
        ledger.settle_pass(term, slot, [claim((slot - at(0)) / MINUTE)], [], {"backup": slot})
    ledger.record([], [success(fire) for fire in range(1, 201)])
    ledger.prune(term, Instant(at(0) + 110 * DAY))
    told = take_account(ledger)
    assert is_right(told)
    assert told.slots == 89
    assert told.since == Instant(at(0) + 111 * DAY)


def test_no_account_is_taken_of_boots_and_of_schedules_that_cannot_be_read(tmp_path: Path) -> None:
    ledger = ledger_of("memory", tmp_path)
    seated(ledger, routine("at-boot", schedule="@reboot"), routine("lost", timezone="Mars/Olympus"), routine())
    told = take_account(ledger)
    assert (list(told.reckonings), told.untold) == (["backup"], ("lost",))


def test_an_empty_ledger_has_an_empty_account(tmp_path: Path) -> None:
    told = take_account(ledger_of("memory", tmp_path))
    assert (told.slots, told.since, told.left_out, told.untold) == (0, None, (), ())


def test_a_stretch_that_reaches_over_an_edit_is_left_out_of_the_account(tmp_path: Path) -> None:
    ledger = ledger_of("memory", tmp_path)
    term = seated(ledger)
    ledger.settle_pass(term, at(10), [], [missed(0, 10, 3)], {"backup": at(10)})
    ledger.put_in_force(term, [routine(schedule="every 4m")], at(11), BOOT)
    ledger.settle_pass(term, at(20), [], [missed(12, 20, 3)], {"backup": at(20)})
    assert [row.count for row in ledger.history(None, 9)] == [6]
    told = take_account(ledger)
    assert is_right(told)
    assert (told.slots, told.since) == (0, at(20))


@pytest.mark.parametrize("stretch", [missed(5, 20, 3), missed(5, 21, 4), missed(6, 20, 3)])
def test_a_stretch_with_another_count_than_the_schedule_has_is_found(tmp_path: Path, stretch: Entry) -> None:
    ledger = ledger_of("memory", tmp_path)
    ledger.settle_pass(seated(ledger), at(30), [], [missed(0), stretch], {"backup": at(20)})
    assert (stretch.outcome, stretch.reason) == (Outcome.MISSED, Reason.ASLEEP)
    ledger.settle_pass(1, at(30), [], [], {"backup": at(21)})
    assert not is_right(take_account(ledger))
