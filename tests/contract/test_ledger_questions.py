"""What anybody may ask the ledger: its owner, a reader beside the owner, and the ledger in memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ankita_agent.adapters.sqlite_ledger import SqliteLedger, open_reader
from ankita_agent.core.outcomes import Outcome, Reason, Trigger
from ankita_agent.core.rows import Covered, End, HistoryRow, RoutineSummary
from ankita_agent.ports.ledger import Ledger, LedgerReader
from tests.ledgers import (
    ATTEMPT,
    BOOT,
    at,
    claim,
    failure,
    fire_now,
    ledger_of,
    missed,
    routine,
    seated,
    skipped,
    start,
    success,
)


@dataclass
class Both:
    """Who writes, and who is asked."""

    owner: Ledger
    reader: LedgerReader

    def summary(self) -> RoutineSummary:
        """That of the only routine in force."""
        (found,) = self.reader.summaries()
        return found

    def run(self, term: int, minutes: float, end: Outcome, request: str | None = None) -> int:
        """A fire that ended a minute later."""
        fire = fire_now(self.owner, term, claim(minutes, request=request))
        ended = success if end is Outcome.SUCCEEDED else failure
        self.owner.record([start(fire, minutes)], [ended(fire, minutes + 1)])
        return fire


@pytest.fixture(params=["owner", "reader", "memory"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Both]:
    """A new ledger with somebody to ask."""
    owner = ledger_of("memory" if request.param == "memory" else "disk", tmp_path)
    reader = open_reader(str(tmp_path / "ledger.db")) if request.param == "reader" else owner
    assert reader is not None
    yield Both(owner, reader)
    reader.close()
    owner.close()


def numbers(rows: list[HistoryRow] | tuple[HistoryRow, ...]) -> list[int]:
    """Their fire numbers."""
    return [row.fire for row in rows]


def test_an_empty_ledger_answers_every_question(both: Both) -> None:
    assert both.reader.newest_term() is None
    assert both.reader.accounts() == {}
    assert both.reader.summaries() == []
    assert both.reader.open_fires() == []
    assert both.reader.history(None, 50) == []
    assert both.reader.history("backup", 50) == []
    assert both.reader.fire_of_request("r1") is None
    assert both.reader.row(1) is None


def test_history_is_newest_first_by_the_slot_that_a_row_ends_with(both: Both) -> None:
    term = seated(both.owner)
    both.owner.settle_pass(term, at(10), [claim(10), claim(20)], [missed(0, 5, 2), missed(12, 16, 3)], {})
    both.owner.settle_pass(term, at(10), [claim(20, request="r1")], [missed(30)], {})
    assert [(row.slot, row.count) for row in both.reader.history(None, 50)] == [
        (at(30), 1),
        (at(20), 1),
        (at(20), 1),
        (at(12), 3),
        (at(10), 1),
        (at(0), 2),
    ]
    assert [row.request for row in both.reader.history(None, 3)] == [None, "r1", None]


def test_history_takes_a_routine_and_a_limit(both: Both) -> None:
    term = seated(both.owner, routine("backup"), routine("briefing"))
    names = ["backup", "briefing", "backup"]
    both.owner.settle_pass(term, at(9), [claim(minutes, name) for minutes, name in enumerate(names)], [], {})
    assert [row.routine for row in both.reader.history(None, 2)] == ["backup", "briefing"]
    assert [row.slot for row in both.reader.history("backup", 50)] == [at(2), at(0)]
    assert both.reader.history("backup", 0) == []
    assert both.reader.history("backup", -1) == []
    assert both.reader.history('it\'s "not" there; --', 5) == []


def test_a_row_tells_everything_that_was_noted(both: Both) -> None:
    term = seated(both.owner)
    fire = fire_now(both.owner, term, claim(5, request="r1"), 6)
    both.owner.record([start(fire, 7)], [End(fire, Outcome.FAILED, Reason.KILLED, at(8), signal=9, detail="killed")])
    assert both.reader.row(fire) == HistoryRow(
        fire=fire,
        routine="backup",
        slot=at(5),
        until=at(5),
        count=1,
        trigger=Trigger.MANUAL,
        outcome=Outcome.FAILED,
        reason=Reason.KILLED,
        quiet=False,
        claimed_at=at(6),
        started_at=at(7),
        ended_at=at(8),
        exit_code=None,
        signal=9,
        attempts=1,
        term=term,
        log="logs/backup/1.log",
        request="r1",
        blocked_by=None,
        detail="killed",
    )
    assert both.reader.fire_of_request("r1") == both.reader.row(fire)


def test_a_stretch_shows_its_blocker_and_grows_while_it_is_watched(both: Both) -> None:
    term = seated(both.owner)
    fire = fire_now(both.owner, term, claim(0))
    for minutes in (5, 10, 15):
        both.owner.settle_pass(term, at(minutes), [], [skipped(minutes, blocked_by=fire)], {})
        (row,) = both.reader.history(None, 1)
        assert (row.slot, row.until, row.count) == (at(5), at(minutes), minutes // 5)
        assert (row.blocked_by, row.claimed_at, row.attempts, row.ended_at) == (fire, None, 0, at(minutes))


def test_open_fires_come_oldest_first_with_their_processes(both: Both) -> None:
    term = seated(both.owner)
    fires = both.owner.settle_pass(term, at(9), [claim(5), claim(0), claim(9, request="r1")], [], {})
    assert None not in fires
    both.owner.record([start(fires[1] or 0, 9)], [])
    found = both.reader.open_fires()
    assert [fire.fire for fire in found] == fires
    assert [fire.process for fire in found] == [None, ATTEMPT, None]
    assert [fire.started_at for fire in found] == [None, at(9), None]


def test_summaries_keep_the_order_of_the_file_and_leave_out_what_left(both: Both) -> None:
    term = seated(both.owner, routine("c"), routine("a"), routine("b"))
    fire_now(both.owner, term, claim(0, "a"))
    both.owner.put_in_force(term, [routine("b"), routine("c")], at(1), BOOT)
    assert [summary.account.in_force.routine for summary in both.reader.summaries()] == ["b", "c"]


def test_a_routine_without_rows_has_an_empty_summary(both: Both) -> None:
    seated(both.owner)
    summary = both.summary()
    assert summary.account == both.reader.accounts()["backup"]
    assert (summary.last, summary.last_run, summary.running) == (None, None, None)
    assert (summary.last_success, summary.last_success_slot) == (None, None)
    assert (summary.recent, summary.unsuccessful_slots) == ((), 0)


def test_a_summary_tells_the_last_row_the_last_run_and_the_last_success(both: Both) -> None:
    term = seated(both.owner)
    good = both.run(term, 0, Outcome.SUCCEEDED)
    bad = both.run(term, 5, Outcome.FAILED)
    both.owner.settle_pass(term, at(15), [], [missed(10, 15, 2)], {})
    running = fire_now(both.owner, term, claim(20))
    summary = both.summary()
    assert summary.last is not None
    assert summary.last_run is not None
    assert summary.running is not None
    assert (summary.last.outcome, summary.last_run.fire) == (Outcome.MISSED, bad)
    assert (summary.last_success, summary.last_success_slot) == (at(1), at(0))
    assert summary.running.fire == running
    assert numbers(summary.recent)[1:] == [bad]
    assert summary.unsuccessful_slots == 3
    assert good not in numbers(summary.recent)


def test_the_last_run_and_success_are_found_behind_many_skipped_slots(both: Both) -> None:
    term = seated(both.owner)
    fire = both.run(term, 0, Outcome.SUCCEEDED)
    for minutes in range(5, 100, 5):
        reason = Reason.PAUSED if minutes % 2 else Reason.CONDITION
        both.owner.settle_pass(term, at(minutes), [], [skipped(minutes, reason=reason)], {})
    summary = both.summary()
    assert summary.last_run is not None
    assert summary.last_run.fire == fire
    assert summary.last_success_slot == at(0)
    assert [row.slot for row in summary.recent] == [at(95), at(90), at(85)]
    assert summary.unsuccessful_slots == 19


@pytest.mark.parametrize(
    ("counts", "kept"), [([1, 1, 1, 1], [1, 1, 1]), ([1, 5, 1], [1, 5]), ([9, 2], [2, 9]), ([2, 9], [9])]
)
def test_recent_reaches_back_to_the_third_slot(both: Both, counts: list[int], kept: list[int]) -> None:
    term = seated(both.owner)
    reasons = (Reason.OFF, Reason.ASLEEP)
    for number, count in enumerate(counts):
        begin = 100 * number
        end = begin + 5 * (count - 1)
        both.owner.settle_pass(term, at(end), [], [missed(begin, end, count, reason=reasons[number % 2])], {})
    assert [row.count for row in both.summary().recent] == kept


def test_a_manual_run_is_a_run_and_a_success_and_no_slot(both: Both) -> None:
    term = seated(both.owner)
    for minutes in (0, 5, 10):
        both.run(term, minutes, Outcome.FAILED)
    assert both.summary().unsuccessful_slots == 3
    failed = both.run(term, 12, Outcome.FAILED, request="r1")
    summary = both.summary()
    assert summary.unsuccessful_slots == 3
    assert summary.last is not None
    assert summary.last.fire == failed
    mended = both.run(term, 13, Outcome.SUCCEEDED, request="r2")
    summary = both.summary()
    assert summary.last_run is not None
    assert summary.last_run.fire == mended
    assert (summary.last_success, summary.last_success_slot) == (at(14), at(13))
    assert summary.unsuccessful_slots == 0
    assert [row.slot for row in summary.recent] == [at(10), at(5), at(0)]


def test_of_several_open_fires_the_newest_is_shown_as_running(both: Both) -> None:
    term = seated(both.owner)
    fires = both.owner.settle_pass(term, at(5), [claim(0), claim(5)], [], {})
    running = both.summary().running
    assert running is not None
    assert running.fire == fires[1]


def test_reboots_are_slots_of_a_summary(both: Both) -> None:
    term = seated(both.owner)
    (fire,) = both.owner.settle_pass(term, at(0), [claim(0, boot=BOOT)], [], {})
    assert fire is not None
    both.owner.record([], [failure(fire)])
    assert numbers(both.summary().recent) == [fire]
    assert both.summary().unsuccessful_slots == 1


def test_what_rows_of_slots_cover_comes_in_order_and_without_boots_and_manual_runs(both: Both) -> None:
    term = seated(both.owner)
    both.owner.settle_pass(term, at(20), [claim(20)], [missed(0, 15, 4)], {})
    both.owner.settle_pass(term, at(21), [claim(7, request="r1"), claim(8, boot=BOOT)], [], {})
    assert both.reader.covered("backup", at(-1)) == [Covered(at(0), at(15), 4), Covered(at(20), at(20), 1)]
    assert both.reader.covered("backup", at(14)) == both.reader.covered("backup", at(-1))
    assert both.reader.covered("backup", at(15)) == [Covered(at(20), at(20), 1)]
    assert both.reader.covered("unheard-of", at(0)) == []


def test_nothing_is_doubled_whatever_was_claimed_entered_and_asked_for(both: Both) -> None:
    term = seated(both.owner)
    for _ in range(2):
        both.owner.settle_pass(
            term, at(20), [claim(20), claim(20, request="r"), claim(20, boot=BOOT)], [missed(0, 15, 4)], {}
        )
    assert both.reader.doubled(9) == []


@pytest.mark.parametrize(
    ("slot", "until", "first"), [(0, 0, 0), (10, 10, 10), (-5, 5, 0), (5, 10, 5), (-5, 30, 0), (15, 20, 15)]
)
def test_a_row_that_covers_what_another_covers_is_found_though_no_index_kept_it_out(
    both: Both, slot: int, until: int, first: int
) -> None:
    term = seated(both.owner, routine("briefing"), routine())
    both.owner.settle_pass(term, at(15), [claim(15, "briefing")], [missed(0, 15, 4)], {})
    assert isinstance(both.owner, SqliteLedger)
    both.owner._connection.execute("DROP INDEX history_slot")
    both.owner._connection.execute(
        "INSERT INTO history (routine, slot, until, count, trigger, term, outcome, reason, ended_at) "
        "VALUES ('backup', ?, ?, ?, 'schedule', 1, 'missed', 'off', 1)",
        (at(slot), at(until), 1 if slot == until else 2),
    )
    assert both.reader.doubled(9) == [("backup", at(first))]
    assert both.reader.doubled(0) == []


@pytest.mark.parametrize(("index", "key"), [("history_boot", "boot"), ("history_request", "request")])
def test_a_boot_or_a_request_with_two_rows_is_doubled(both: Both, index: str, key: str) -> None:
    term = seated(both.owner)
    fire_now(both.owner, term, claim(3, **{key: "k"}))
    assert isinstance(both.owner, SqliteLedger)
    both.owner._connection.execute(f"DROP INDEX {index}")
    both.owner._connection.execute(
        f"INSERT INTO history (routine, slot, until, {key}, trigger, term, claimed_at) "
        "VALUES ('backup', ?, ?, 'k', 'schedule', 1, 1)",
        (at(4), at(4)),
    )
    assert both.reader.doubled(9) == [("backup", at(3))]


def test_closing_twice_is_no_error(both: Both) -> None:
    both.reader.close()
    both.reader.close()
