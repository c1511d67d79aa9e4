"""How far slots are accounted for, through reloads and set-back clocks; on disk and in memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ankita_agent.adapters.sqlite_ledger import SqliteLedger
from ankita_agent.core.instants import MINUTE, Instant
from ankita_agent.core.outcomes import Outcome, Reason
from ankita_agent.core.rows import End, Entry
from ankita_agent.core.zone_rules import ruled
from ankita_agent.ports.ledger import Ledger
from tests.ledgers import (
    BOOT,
    KINDS,
    MORNING,
    at,
    claim,
    fire_now,
    ledger_of,
    missed,
    routine,
    seated,
    spans,
)


@pytest.fixture(params=KINDS)
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    """A new ledger."""
    made = ledger_of(request.param, tmp_path)
    yield made
    made.close()


def every_five_minutes(name: str, after: Instant, until: Instant) -> int:
    """How many slots the routine has in (after, until]."""
    return (until - MORNING) // (5 * MINUTE) - (after - MORNING) // (5 * MINUTE)


def mark_of(ledger: Ledger, name: str = "backup") -> tuple[Instant, Instant | None]:
    """How far it is accounted for, and up to where it is relived."""
    account = ledger.accounts()[name]
    return account.accounted_until, account.relived_until


# --- marks -----------------------------------------------------------------------------------------


def test_a_pass_raises_a_mark_and_never_lowers_it(ledger: Ledger) -> None:
    term = seated(ledger)
    ledger.settle_pass(term, at(5), [], [], {"backup": at(5), "unheard-of": at(5)})
    ledger.settle_pass(term, at(3), [], [], {"backup": at(3)})
    assert mark_of(ledger) == (at(5), None)


def test_a_lowered_mark_leaves_the_old_one_as_relived_until_it_is_reached_again(ledger: Ledger) -> None:
    term = seated(ledger, routine("backup"), routine("briefing"))
    ledger.settle_pass(term, at(300), [], [], {"backup": at(300), "briefing": at(5)})
    ledger.lower_marks(term, at(60), every_five_minutes)
    assert mark_of(ledger) == (at(60), at(300))
    assert mark_of(ledger, "briefing") == (at(5), None)
    ledger.lower_marks(term, at(30), every_five_minutes)
    assert mark_of(ledger) == (at(30), at(300))
    ledger.settle_pass(term, at(299), [], [], {"backup": at(299)})
    assert mark_of(ledger) == (at(299), at(300))
    ledger.settle_pass(term, at(300), [], [], {"backup": at(300)})
    assert mark_of(ledger) == (at(300), None)


def test_relived_slots_that_have_rows_neither_fire_nor_end_again_and_the_others_do(ledger: Ledger) -> None:
    term = seated(ledger)
    ledger.settle_pass(term, at(5), [claim(5)], [], {"backup": at(5)})
    ledger.settle_pass(term, at(300), [], [missed(10, 40, 7)], {"backup": at(300)})
    ledger.lower_marks(term, at(0), every_five_minutes)
    wins = ledger.settle_pass(term, at(41), [claim(5), claim(20), claim(41)], [missed(5), missed(15), missed(3)], {})
    assert [win is not None for win in wins] == [False, False, True]
    assert [(since, until) for since, until, _, _ in spans(ledger)] == [(3, 3), (5, 5), (10, 40), (41, 41)]


@pytest.mark.parametrize(
    ("stretch", "left"),
    [
        (missed(5, 30, 6), (20, 30, 2)),
        (missed(5, 25, 5), (25, 25, 1)),
        (missed(0, 15, 4), (0, 0, 1)),
        (missed(-10, 20, 7), (-10, 5, 3)),
        (missed(-10, 60, 15), (20, 60, 11)),
        (missed(5, 20, 8), (15, 20, 4)),  # of another schedule, with slots in between
        (missed(5, 20, 4), None),
        (missed(10, 10, 1), None),
    ],
)
def test_a_stretch_that_meets_rows_is_cut_to_what_they_leave(
    ledger: Ledger, stretch: Entry, left: tuple[int, int, int] | None
) -> None:
    term = seated(ledger)
    ledger.settle_pass(term, at(20), [claim(5), claim(10), claim(15), claim(20)], [], {})
    ledger.settle_pass(term, at(90), [], [stretch], {})
    ended = [(round(since), round(until), count) for since, until, count, outcome in spans(ledger) if outcome]
    assert ended == ([left] if left else [])


@pytest.mark.parametrize(
    ("to", "left"), [(60, [(0, 60, 13)]), (30, [(0, 30, 7)]), (4, [(0, 0, 1)]), (0, [(0, 0, 1)]), (-3, [])]
)
def test_what_was_missed_while_the_clock_was_wrong_is_cut_off_where_it_is_set_back(
    ledger: Ledger, to: int, left: list[tuple[int, int, int]]
) -> None:
    term = seated(ledger)
    stretch = missed(0, 60, 13, reason=Reason.CLOCK)
    ledger.settle_pass(term, at(65), [claim(65)], [stretch], {"backup": at(65)})
    ledger.lower_marks(term, at(to), every_five_minutes)
    assert [span[:3] for span in spans(ledger)] == [*left, (65, 65, 1)]
    wins = ledger.settle_pass(term, at(61), [claim(5), claim(60)], [], {})
    assert [win is not None for win in wins] == [to < 5, to < 60]


def test_no_slot_is_lost_where_an_old_stretch_reaches_into_a_new_one(ledger: Ledger) -> None:
    term = seated(ledger)
    ledger.settle_pass(term, at(60), [], [missed(0, 60, 13)], {"backup": at(60)})
    ledger.lower_marks(term, at(30), every_five_minutes)
    ledger.settle_pass(term, at(120), [], [missed(35, 120, 18, reason=Reason.OFF)], {"backup": at(120)})
    (_, old_end, *_), (new_start, new_end, count, _) = spans(ledger)
    assert old_end < new_start <= new_end == 120
    assert count >= 12


# --- from where on rows can be reckoned ------------------------------------------------------------


def reckoned_since(ledger: Ledger, name: str = "backup") -> Instant:
    """From where on its rows are those of its present schedule."""
    return ledger.accounts()[name].reckoned_since


def test_rows_are_reckoned_from_where_the_present_schedule_came_into_force(ledger: Ledger) -> None:
    term = seated(ledger)
    assert reckoned_since(ledger) == at(-1)
    ledger.settle_pass(term, at(5), [claim(5)], [], {"backup": at(5)})
    ledger.put_in_force(term, [routine(meaning='{"run":"y"}')], at(6), BOOT)
    assert reckoned_since(ledger) == at(-1)
    ledger.put_in_force(term, [routine(schedule="every 6m")], at(7), BOOT)
    assert reckoned_since(ledger) == at(7)


def test_rows_are_reckoned_only_behind_what_is_relived(ledger: Ledger) -> None:
    term = seated(ledger)
    ledger.settle_pass(term, at(300), [], [], {"backup": at(300)})
    ledger.lower_marks(term, at(60), every_five_minutes)
    assert reckoned_since(ledger) == at(300)
    ledger.put_in_force(term, [routine(schedule="every 6m")], at(61), BOOT)
    assert reckoned_since(ledger) == at(300)
    ledger.settle_pass(term, at(300), [], [], {"backup": at(300)})
    assert (mark_of(ledger), reckoned_since(ledger)) == ((at(300), None), at(300))


@pytest.mark.parametrize(("before", "since"), [(4, 4), (11, 10)])
def test_rows_are_reckoned_only_behind_what_was_pruned(ledger: Ledger, before: int, since: int) -> None:
    term = seated(ledger)
    ledger.settle_pass(term, at(10), [claim(0), claim(5), claim(10)], [], {"backup": at(10)})
    ledger.prune(term, at(before))
    assert reckoned_since(ledger) == at(since)
    ledger.prune(term, at(-500))
    assert reckoned_since(ledger) == at(since)


def test_the_rules_of_the_zones_in_force_are_kept(ledger: Ledger) -> None:
    term = seated(ledger, routine(timezone="Europe/Berlin"), routine("lost", timezone="Mars/Olympus"))
    rules = {name: account.zone_rules for name, account in ledger.accounts().items()}
    assert ruled("Europe/Berlin", rules["backup"]) is not None
    assert rules["lost"] == ""
    ledger.settle_pass(term, at(5), [claim(5)], [], {"backup": at(5)})
    ledger.put_in_force(term, [routine(timezone="Europe/Berlin")], at(6), BOOT)
    assert ledger.accounts()["backup"].zone_rules == rules["backup"]
    assert reckoned_since(ledger) == at(-1)


def test_rows_are_reckoned_only_behind_the_mark_where_nobody_knows_by_which_rules_they_were(ledger: Ledger) -> None:
    term = seated(ledger, routine(timezone="Europe/Berlin"), routine("briefing"))
    ledger.settle_pass(term, at(5), [claim(5)], [], {"backup": at(5), "briefing": at(5)})
    assert isinstance(ledger, SqliteLedger)
    ledger._connection.execute("UPDATE zones SET rules = '2026-2028 0+0' WHERE timezone = 'Europe/Berlin'")
    ledger.put_in_force(term, [routine(timezone="Europe/Berlin"), routine("briefing")], at(9), BOOT)
    assert (mark_of(ledger), reckoned_since(ledger)) == ((at(5), None), at(5))
    assert reckoned_since(ledger, "briefing") == at(-1)


# --- routines in force -----------------------------------------------------------------------------


def test_routines_in_force_keep_the_order_of_their_file(ledger: Ledger) -> None:
    term = seated(ledger, routine("c"), routine("a"), routine("b"))
    assert list(ledger.accounts()) == ["c", "a", "b"]
    ledger.put_in_force(term, [routine("b"), routine("c")], at(0), BOOT)
    assert list(ledger.accounts()) == ["b", "c"]


def test_a_new_routine_begins_now(ledger: Ledger) -> None:
    seated(ledger, routine("backup", meaning='{"run":"x"}'))
    account = ledger.accounts()["backup"]
    assert account.in_force == routine("backup", meaning='{"run":"x"}')
    assert (account.accounted_until, account.relived_until, account.known_since_boot) == (at(-1), None, BOOT)


@pytest.mark.parametrize(
    "again",
    [routine(), routine(meaning='{"run":"y"}'), routine(enabled=False)],
    ids=["same", "meaning", "disabled"],
)
def test_a_routine_on_the_same_schedule_keeps_its_mark(ledger: Ledger, again: object) -> None:
    term = seated(ledger)
    ledger.settle_pass(term, at(5), [], [], {"backup": at(5)})
    ledger.put_in_force(term, [again], at(60), "another-boot")  # type: ignore[list-item]
    account = ledger.accounts()["backup"]
    assert account.in_force == again
    assert (account.accounted_until, account.known_since_boot) == (at(5), BOOT)


@pytest.mark.parametrize(
    "again",
    [routine(schedule="every 6m"), routine(timezone="Europe/Berlin"), routine(jitter=1)],
    ids=["schedule", "zone", "jitter"],
)
def test_a_rescheduled_routine_begins_now(ledger: Ledger, again: object) -> None:
    term = seated(ledger)
    ledger.put_in_force(term, [again], at(60), "another-boot")  # type: ignore[list-item]
    account = ledger.accounts()["backup"]
    assert (account.accounted_until, account.known_since_boot) == (at(60), "another-boot")


def test_a_routine_that_is_enabled_again_or_comes_back_begins_now(ledger: Ledger) -> None:
    term = seated(ledger, routine("backup", enabled=False), routine("briefing"))
    ledger.put_in_force(term, [routine("backup")], at(60), BOOT)
    assert mark_of(ledger) == (at(60), None)
    ledger.put_in_force(term, [routine("backup"), routine("briefing")], at(90), BOOT)
    assert mark_of(ledger) == (at(60), None)
    assert mark_of(ledger, "briefing") == (at(90), None)


def test_a_routine_rescheduled_after_the_clock_went_back_relives_up_to_its_old_mark(ledger: Ledger) -> None:
    term = seated(ledger)
    ledger.settle_pass(term, at(60), [claim(60)], [], {"backup": at(60)})
    ledger.put_in_force(term, [routine(schedule="every 6m")], at(30), BOOT)
    assert mark_of(ledger) == (at(30), at(60))
    assert [win is None for win in ledger.settle_pass(term, at(60), [claim(36), claim(60)], [], {})] == [
        False,
        True,
    ]
    ledger.put_in_force(term, [routine(schedule="every 7m")], at(61), BOOT)
    assert mark_of(ledger) == (at(61), None)


def test_rows_of_a_routine_that_left_stay(ledger: Ledger) -> None:
    term = seated(ledger)
    fire = fire_now(ledger, term, claim(0))
    ledger.put_in_force(term, [], at(1), BOOT)
    assert ledger.accounts() == {}
    assert [row.fire for row in ledger.history("backup", 9)] == [fire]
    assert [open_fire.fire for open_fire in ledger.open_fires()] == [fire]


def test_text_that_is_no_utf_8_is_kept_readable(ledger: Ledger) -> None:
    term = seated(ledger, routine(meaning="\udce9"))
    fire = fire_now(ledger, term, claim(0))
    ledger.record([], [End(fire, Outcome.FAILED, Reason.SPAWN, at(1), detail="not found: /home/caf\udce9")])
    row = ledger.row(fire)
    assert row is not None
    assert row.detail == "not found: /home/caf\\udce9"
