"""What the owner may rely on, on the ledger on disk and on the one in memory."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from ankita_agent.core.errors import Fenced
from ankita_agent.core.instants import DAY, MINUTE, SECOND, Instant
from ankita_agent.core.outcomes import REASONS, Outcome, Reason, Trigger
from ankita_agent.core.rows import Claim, End, Entry
from ankita_agent.ports.ledger import Ledger
from tests.ledgers import (
    AGENT,
    ATTEMPT,
    BOOT,
    KINDS,
    at,
    claim,
    failure,
    fire_now,
    ledger_of,
    missed,
    routine,
    seated,
    skipped,
    spans,
    start,
    success,
)


@pytest.fixture(params=KINDS)
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    """A new ledger."""
    made = ledger_of(request.param, tmp_path)
    yield made
    made.close()


# --- terms -----------------------------------------------------------------------------------------


def test_a_new_ledger_has_no_term_and_the_first_one_is_1(ledger: Ledger) -> None:
    assert ledger.newest_term() is None
    assert ledger.begin_term(0, "one", AGENT, at(0)) == 1
    newest = ledger.newest_term()
    assert newest is not None
    assert (newest.term, newest.token, newest.process) == (1, "one", AGENT)
    assert (newest.started_at, newest.seen_until, newest.ended_at) == (at(0), at(0), None)


def test_a_term_is_above_the_newest_and_above_the_floor(ledger: Ledger) -> None:
    assert ledger.begin_term(41, "one", AGENT, at(0)) == 42
    assert ledger.begin_term(7, "two", AGENT, at(1)) == 43
    assert ledger.begin_term(43, "three", AGENT, at(2)) == 44


def test_a_second_agent_fences_the_first_and_nothing_of_the_refused_pass_is_written(ledger: Ledger) -> None:
    old = seated(ledger)
    ledger.begin_term(0, "two", AGENT, at(0))
    before = (ledger.accounts(), ledger.newest_term())
    with pytest.raises(Fenced) as refused:
        ledger.settle_pass(old, at(5), [claim(5)], [missed(0)], {"backup": at(5)})
    assert "term 1" in refused.value.what
    assert (ledger.accounts(), ledger.newest_term()) == before
    assert spans(ledger) == []


def test_everything_that_needs_a_term_refuses_an_older_one(ledger: Ledger) -> None:
    old = seated(ledger)
    ledger.begin_term(0, "two", AGENT, at(0))
    with pytest.raises(Fenced):
        ledger.settle_pass(old, at(0), [], [], {})
    with pytest.raises(Fenced):
        ledger.put_in_force(old, [], at(0), BOOT)
    with pytest.raises(Fenced):
        ledger.lower_marks(old, at(-10), lambda name, after, until: 0)
    with pytest.raises(Fenced):
        ledger.prune(old, at(0))
    assert list(ledger.accounts()) == ["backup"]


def test_a_term_that_never_began_is_refused(ledger: Ledger) -> None:
    with pytest.raises(Fenced):
        ledger.settle_pass(1, at(0), [], [], {})


def test_the_end_of_a_term_is_noted_once_and_only_while_it_is_the_newest(ledger: Ledger) -> None:
    first = seated(ledger)
    ledger.end_term(first, at(3))
    ledger.end_term(first, at(4))
    ended = ledger.newest_term()
    assert ended is not None
    assert (ended.ended_at, ended.seen_until) == (at(3), at(3))
    second = ledger.begin_term(0, "two", AGENT, at(5))
    ledger.end_term(first, at(6))
    newest = ledger.newest_term()
    assert newest is not None
    assert (newest.term, newest.ended_at) == (second, None)


def test_a_pass_moves_the_last_sight_and_an_idle_one_only_every_half_minute(ledger: Ledger) -> None:
    term = seated(ledger)

    def seen_until() -> Instant:
        newest = ledger.newest_term()
        assert newest is not None
        return newest.seen_until

    ledger.settle_pass(term, at(0), [], [missed(0)], {})
    assert seen_until() == at(0)
    ledger.settle_pass(term, Instant(at(0) + 29 * SECOND), [], [], {})
    assert seen_until() == at(0)
    ledger.settle_pass(term, Instant(at(0) + 30 * SECOND), [], [], {})
    assert seen_until() == at(0) + 30 * SECOND
    ledger.settle_pass(term, at(-60), [], [], {})  # the clock was set back
    assert seen_until() == at(-60)


# --- claims ----------------------------------------------------------------------------------------


def test_a_slot_that_was_claimed_is_never_won_again(ledger: Ledger) -> None:
    term = seated(ledger)
    fire = fire_now(ledger, term, claim(5))
    assert ledger.settle_pass(term, at(5), [claim(5), claim(5)], [], {}) == [None, None]
    ledger.record([], [failure(fire)])
    newer = ledger.begin_term(0, "two", AGENT, at(6))
    assert ledger.settle_pass(newer, at(6), [claim(5)], [], {}) == [None]
    assert len(ledger.history(None, 9)) == 1


def test_of_two_claims_for_one_slot_in_one_pass_the_first_wins(ledger: Ledger) -> None:
    term = seated(ledger)
    first, second, other = ledger.settle_pass(term, at(5), [claim(5), claim(5), claim(10)], [], {})
    assert first is not None
    assert second is None
    assert other is not None


def test_a_slot_of_another_routine_is_another_slot(ledger: Ledger) -> None:
    term = seated(ledger, routine("backup"), routine("briefing"))
    assert None not in ledger.settle_pass(term, at(5), [claim(5), claim(5, "briefing")], [], {})


def test_a_slot_at_or_below_the_mark_is_not_won(ledger: Ledger) -> None:
    term = seated(ledger)
    ledger.settle_pass(term, at(5), [], [], {"backup": at(5)})
    assert ledger.settle_pass(term, at(6), [claim(4), claim(5)], [], {}) == [None, None]
    assert ledger.settle_pass(term, at(6), [claim(6)], [], {"backup": at(6)}) != [None]


def test_a_slot_that_ended_without_a_fire_is_not_won(ledger: Ledger) -> None:
    term = seated(ledger)
    ledger.settle_pass(term, at(5), [], [skipped(5)], {})
    assert ledger.settle_pass(term, at(5), [claim(5)], [], {}) == [None]


@pytest.mark.parametrize("minutes", [0, 7, 25, 30])
def test_a_slot_that_a_stretch_covers_is_not_won(ledger: Ledger, minutes: int) -> None:
    term = seated(ledger)
    ledger.settle_pass(term, at(30), [], [missed(0, 30, 7)], {})
    fire_now(ledger, term, claim(15, request="r1"))  # newer, and in between
    assert ledger.settle_pass(term, at(31), [claim(minutes)], [], {}) == [None]
    assert ledger.settle_pass(term, at(31), [claim(31)], [], {}) != [None]


def test_a_routine_that_is_not_in_force_wins_nothing(ledger: Ledger) -> None:
    term = seated(ledger)
    ledger.put_in_force(term, [routine("briefing")], at(0), BOOT)
    claims = [claim(5), claim(5, request="r1"), claim(5, boot=BOOT), claim(5, "unheard-of")]
    assert ledger.settle_pass(term, at(5), claims, [], {}) == [None] * 4


def test_a_manual_request_is_won_once_whatever_its_slot_and_beside_a_slot(ledger: Ledger) -> None:
    term = seated(ledger)
    ledger.settle_pass(term, at(5), [claim(5)], [], {"backup": at(5)})
    claims = [
        claim(5, request="r1"),
        claim(9, request="r1"),
        claim(5, request="r2"),
        claim(-900, request="r3"),
    ]
    wins = ledger.settle_pass(term, at(6), claims, [], {})
    assert [win is not None for win in wins] == [True, False, True, True]


def test_a_manual_run_covers_no_slot(ledger: Ledger) -> None:
    term = seated(ledger)
    fire_now(ledger, term, claim(5, request="r1"))
    fire_now(ledger, term, claim(6, boot=BOOT))
    assert None not in ledger.settle_pass(term, at(6), [claim(5), claim(6)], [], {})


def test_a_boot_is_won_once_and_the_next_boot_is_another(ledger: Ledger) -> None:
    term = seated(ledger)
    claims = [claim(0, boot="b1"), claim(3, boot="b1"), claim(0, boot="b2")]
    wins = ledger.settle_pass(term, at(5), claims, [], {})
    assert [win is not None for win in wins] == [True, False, True]


def test_what_won_is_an_open_fire_of_its_term(ledger: Ledger) -> None:
    seated(ledger)
    term = ledger.begin_term(0, "two", AGENT, at(4))
    wish = Claim("backup", at(5), Trigger.CATCH_UP)
    fire = fire_now(ledger, term, wish, 7)
    (found,) = ledger.open_fires()
    assert (found.fire, found.routine, found.slot, found.trigger) == (fire, "backup", at(5), Trigger.CATCH_UP)
    assert (found.term, found.token, found.claimed_at) == (term, "two", at(7))
    assert (found.started_at, found.process, found.attempt, found.log) == (None, None, 0, None)


def test_fire_numbers_are_never_used_again_not_even_after_pruning(ledger: Ledger) -> None:
    term = seated(ledger)
    early, late = ledger.settle_pass(term, at(0), [claim(10), claim(5)], [], {"backup": at(10)})
    assert early is not None
    assert late is not None
    ledger.record([], [success(early), failure(late)])
    ledger.settle_pass(term, at(11), [], [], {"backup": at(11)})
    assert ledger.prune(term, at(60)) == 1
    assert fire_now(ledger, term, claim(15)) > late


def test_a_ledger_that_lost_its_newest_terms_numbers_its_fires_far_above_the_lost_ones(
    ledger: Ledger,
) -> None:
    assert fire_now(ledger, seated(ledger), claim(0)) == 1
    term = ledger.begin_term(1, "two", AGENT, at(1))
    assert fire_now(ledger, term, claim(5)) == 2  # not behind: the file knew term 1 as well
    term = ledger.begin_term(6, "three", AGENT, at(2))
    assert (term, fire_now(ledger, term, claim(10))) == (7, 7_000_001)
    term = ledger.begin_term(7, "four", AGENT, at(3))
    assert fire_now(ledger, term, claim(15)) == 7_000_002


def test_a_ledger_that_lost_rows_of_its_newest_term_numbers_its_fires_above_the_lost_ones(ledger: Ledger) -> None:
    assert ledger.newest_number() == 0
    assert fire_now(ledger, seated(ledger), claim(0)) == ledger.newest_number() == 1
    term = ledger.begin_term(1, "two", AGENT, at(1), 1)
    assert fire_now(ledger, term, claim(5)) == 2  # it knows fire 1
    term = ledger.begin_term(2, "three", AGENT, at(2), 5)
    assert (term, ledger.newest_number()) == (3, 3_000_000)
    assert fire_now(ledger, term, claim(10)) == 3_000_001
    term = ledger.begin_term(3, "four", AGENT, at(3), 9_000_000)
    assert fire_now(ledger, term, claim(15)) == 9_000_001


# --- entries ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("outcome", "reason"), [(o, r) for o in Outcome for r in REASONS[o]])
def test_every_reason_can_end_a_slot_and_a_fire(ledger: Ledger, outcome: Outcome, reason: Reason) -> None:
    term = seated(ledger)
    entry = Entry("backup", at(0), at(0), 1, outcome, reason)
    (fire,) = ledger.settle_pass(term, at(5), [claim(5)], [entry], {})
    assert fire is not None
    ledger.record([], [End(fire, outcome, reason, at(6))])
    assert [(row.outcome, row.reason) for row in ledger.history(None, 9)] == [(outcome, reason)] * 2


def test_every_reason_belongs_to_one_outcome_and_only_a_success_has_none() -> None:
    assert sorted(itertools.chain(*REASONS.values())) == sorted(Reason)
    assert [outcome for outcome in Outcome if not REASONS[outcome]] == [Outcome.SUCCEEDED]


def test_entries_that_continue_a_row_grow_it(ledger: Ledger) -> None:
    term = seated(ledger)
    ledger.settle_pass(term, at(5), [], [missed(0), missed(5)], {})
    ledger.settle_pass(term, at(30), [], [missed(10, 30, 5)], {})
    assert spans(ledger) == [(0, 30, 7, Outcome.MISSED)]


def test_a_row_does_not_grow_for_another_reason_or_blocker_or_trigger(ledger: Ledger) -> None:
    term = seated(ledger)
    late = Entry("backup", at(25), at(25), 1, Outcome.SKIPPED, Reason.OVERLAP, Trigger.CATCH_UP, 8)
    entries = [missed(0), missed(5, reason=Reason.OFF), skipped(10), skipped(15, blocked_by=7)]
    ledger.settle_pass(term, at(5), [], [*entries, skipped(20, blocked_by=8), late], {})
    assert len(spans(ledger)) == 6


def test_a_row_does_not_grow_across_a_fire_a_manual_run_or_a_reboot(ledger: Ledger) -> None:
    term = seated(ledger)
    ledger.settle_pass(term, at(0), [], [missed(0)], {})
    for minutes, wish in ((10, claim(5)), (20, claim(15, request="r1")), (30, claim(25, boot=BOOT))):
        ledger.settle_pass(term, at(minutes), [wish], [missed(minutes)], {})
    assert [count for _, _, count, _ in spans(ledger)] == [1] * 7


def test_a_fire_of_the_same_pass_stands_between_entries_before_and_after_it(ledger: Ledger) -> None:
    term = seated(ledger)
    ledger.settle_pass(term, at(0), [], [missed(0)], {})
    ledger.settle_pass(term, at(20), [claim(10)], [missed(5), missed(15), missed(20)], {})
    assert [(since, until) for since, until, _, _ in spans(ledger)] == [(0, 5), (10, 10), (15, 20)]


def test_a_row_of_an_earlier_term_does_not_grow(ledger: Ledger) -> None:
    ledger.settle_pass(seated(ledger), at(0), [], [missed(0)], {})
    term = ledger.begin_term(0, "two", AGENT, at(1))
    ledger.settle_pass(term, at(5), [], [missed(5)], {})
    assert [row.term for row in ledger.history(None, 9)] == [2, 1]


def test_a_fire_that_was_skipped_does_not_grow(ledger: Ledger) -> None:
    term = seated(ledger)
    fire = fire_now(ledger, term, claim(0))
    ledger.record([], [End(fire, Outcome.SKIPPED, Reason.OVERLAP, at(1))])
    ledger.settle_pass(term, at(5), [], [skipped(5)], {})
    assert len(spans(ledger)) == 2


def test_a_row_of_another_routine_does_not_grow(ledger: Ledger) -> None:
    term = seated(ledger, routine("backup"), routine("briefing"))
    other = Entry("briefing", at(5), at(5), 1, Outcome.MISSED, Reason.ASLEEP)
    ledger.settle_pass(term, at(5), [], [missed(0), other], {})
    assert len(spans(ledger)) == 2


def test_an_entry_for_a_slot_that_has_a_row_is_dropped(ledger: Ledger) -> None:
    term = seated(ledger)
    fire = fire_now(ledger, term, claim(5))
    ledger.settle_pass(term, at(30), [], [missed(5), missed(10, 30, 5), missed(10), missed(20), missed(30)], {})
    assert spans(ledger) == [(5, 5, 1, None), (10, 30, 5, Outcome.MISSED)]
    assert [open_fire.fire for open_fire in ledger.open_fires()] == [fire]


def test_an_ended_request_keeps_its_row_and_is_not_won_afterwards(ledger: Ledger) -> None:
    term = seated(ledger)
    ledger.settle_pass(term, at(5), [], [skipped(5, blocked_by=3, request="r1"), skipped(5)], {})
    ledger.settle_pass(term, at(6), [claim(6, request="r1")], [skipped(6, request="r1")], {})
    row = ledger.fire_of_request("r1")
    assert row is not None
    assert (row.outcome, row.reason, row.blocked_by, row.claimed_at) == (
        Outcome.SKIPPED,
        Reason.OVERLAP,
        3,
        None,
    )
    assert len(spans(ledger)) == 2


def test_a_routine_that_left_still_gets_the_rows_that_it_is_owed(ledger: Ledger) -> None:
    term = seated(ledger)
    ledger.put_in_force(term, [], at(0), BOOT)
    ledger.settle_pass(term, at(0), [], [missed(-5), missed(0)], {"backup": at(0)})
    assert spans(ledger) == [(-5, 0, 2, Outcome.MISSED)]


# --- starts and ends -------------------------------------------------------------------------------


def test_a_start_and_an_end_are_noted_even_in_one_call(ledger: Ledger) -> None:
    term = seated(ledger)
    fire = fire_now(ledger, term, claim(0))
    end = End(fire, Outcome.SUCCEEDED, None, at(2), exit_code=0, quiet=True, detail="nothing new")
    ledger.record([start(fire, 1)], [end])
    row = ledger.row(fire)
    assert row is not None
    assert (row.claimed_at, row.started_at, row.ended_at) == (at(0), at(1), at(2))
    assert (row.outcome, row.exit_code, row.signal, row.quiet) == (Outcome.SUCCEEDED, 0, None, True)
    assert (row.attempts, row.log, row.detail, row.term) == (1, "logs/backup/1.log", "nothing new", term)
    assert ledger.open_fires() == []


def test_a_retry_moves_the_attempt_and_leaves_the_first_start(ledger: Ledger) -> None:
    term = seated(ledger)
    fire = fire_now(ledger, term, claim(0))
    ledger.record([start(fire, 1)], [])
    ledger.record([start(fire, 5, attempt=2)], [])
    ledger.record([start(fire, 1)], [])  # late, of the first
    (found,) = ledger.open_fires()
    assert (found.started_at, found.process, found.attempt) == (at(5), ATTEMPT, 2)
    assert found.log == "logs/backup/2.log"
    row = ledger.row(fire)
    assert row is not None
    assert (row.started_at, row.attempts) == (at(1), 2)


def test_the_first_end_of_a_fire_stands(ledger: Ledger) -> None:
    term = seated(ledger)
    fire = fire_now(ledger, term, claim(0))
    ledger.record([], [End(fire, Outcome.LOST, Reason.OWNER_KILLED, at(1)), success(fire, 2)])
    ended = ledger.row(fire)
    ledger.record([start(fire, 3)], [success(fire, 3)])
    assert ledger.row(fire) == ended
    assert ended is not None
    assert ended.outcome is Outcome.LOST


def test_an_owner_that_stood_down_may_still_close_its_fires(ledger: Ledger) -> None:
    fire = fire_now(ledger, seated(ledger), claim(0))
    ledger.begin_term(0, "two", AGENT, at(1))
    ledger.record([start(fire)], [success(fire)])
    row = ledger.row(fire)
    assert row is not None
    assert (row.outcome, row.term) == (Outcome.SUCCEEDED, 1)


def test_an_end_of_an_unknown_fire_changes_nothing(ledger: Ledger) -> None:
    seated(ledger)
    ledger.record([start(77)], [success(77)])
    assert ledger.history(None, 9) == []


# --- pruning ---------------------------------------------------------------------------------------


def test_pruning_keeps_the_newest_row_and_the_newest_success_of_each_routine(ledger: Ledger) -> None:
    term = seated(ledger)
    for minutes in (0, 5, 10, 15):
        fire = fire_now(ledger, term, claim(minutes))
        ledger.record([], [success(fire) if minutes in (0, 5) else failure(fire)])
    ledger.settle_pass(term, at(16), [], [], {"backup": at(16)})
    ledger.put_in_force(term, [], at(17), BOOT)
    assert ledger.prune(term, Instant(at(0) + 90 * DAY)) == 2
    assert [since for since, *_ in spans(ledger)] == [5, 15]


def test_pruning_never_touches_slots_at_or_above_the_mark_nor_open_fires_nor_newer_rows(
    ledger: Ledger,
) -> None:
    term = seated(ledger)
    claims = [claim(minutes) for minutes in (0, 5, 10, 15, 20, 25)]
    fires = ledger.settle_pass(term, at(25), claims, [missed(30)], {"backup": at(15)})
    ledger.record([], [failure(fire) for fire in fires[1:] if fire is not None])
    assert ledger.prune(term, at(10)) == 1
    assert [since for since, *_ in spans(ledger)] == [0, 10, 15, 20, 25, 30]
    assert ledger.prune(term, at(100)) == 1
    assert [since for since, *_ in spans(ledger)] == [0, 15, 20, 25, 30]


def test_a_pruned_slot_cannot_be_won_again(ledger: Ledger) -> None:
    term = seated(ledger)
    for minutes in (0, 5):
        ledger.record([], [failure(fire_now(ledger, term, claim(minutes)))])
    ledger.settle_pass(term, at(5), [], [], {"backup": at(5)})
    assert ledger.prune(term, at(100)) == 1
    assert ledger.settle_pass(term, at(100), [claim(0)], [], {}) == [None]


def test_the_row_of_this_boot_is_never_pruned_and_that_of_an_earlier_one_is(ledger: Ledger) -> None:
    term = seated(ledger)
    claims = [claim(0, boot="earlier"), claim(1, boot=BOOT), claim(2, request="r1"), claim(3, request="r2")]
    fires = ledger.settle_pass(term, at(3), claims, [], {})
    ledger.record([], [failure(fire) for fire in fires if fire is not None])
    assert ledger.prune(term, Instant(at(0) + 1000 * DAY)) == 2
    assert [since for since, *_ in spans(ledger)] == [1, 3]
    assert ledger.settle_pass(term, at(4), [claim(4, boot=BOOT)], [], {}) == [None]


def test_pruning_keeps_the_terms_that_rows_name_and_the_newest(ledger: Ledger) -> None:
    fire = fire_now(ledger, seated(ledger), claim(0))
    for token in ("two", "three", "four"):
        term = ledger.begin_term(0, token, AGENT, at(1))
    assert ledger.prune(term, Instant(at(0) + 1000 * MINUTE)) == 0
    assert [open_fire.fire for open_fire in ledger.open_fires()] == [fire]
    assert ledger.begin_term(0, "five", AGENT, at(2)) == 5
