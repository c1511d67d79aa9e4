"""Agents that are killed: whatever the moment, no slot is fired twice and every slot has its row."""

import os
import random
import signal
from typing import Final

import pytest

from ankita_agent.core.instants import format_instant
from ankita_agent.core.outcomes import Outcome, Reason, Trigger
from tests.real.agents import SEATED, Place, every_second, noted, noting, unaccounted, wait_at_most
from tests.real.waiting import until

NAMES: Final = ("a", "b", "c", "d", "e")
KILLS: Final = 30
SEED: Final = 20_260_303


def until_noted(place: Place, lines: int) -> None:
    """Wait until the routines have noted so many lines."""
    until(lambda: len(noted(place.root / "fired")) >= lines, f"{lines} lines")


@pytest.mark.parametrize("with_attempts", [False, True], ids=["agents alone", "with their attempts"])
def test_killed_at_any_moment_no_slot_is_fired_twice_and_none_is_unaccounted_for(
    places: list[Place], with_attempts: bool
) -> None:
    for place in places:
        place.write(every_second(*NAMES, run=noting(place.root / "fired")))
    chance = random.Random(SEED)
    rounds = KILLS // len(places) // (3 if with_attempts else 1) + 1
    moments = [(chance.random() < 0.3, chance.uniform(0.0, 1.1)) for _ in range(rounds)]
    print(f"seed {SEED}: (from birth, seconds) {moments}")
    for from_birth, seconds in moments:
        agents = [place.begin() for place in places]
        for agent in agents:
            if not from_birth:
                agent.says(SEATED)
        wait_at_most(agents[0], seconds)
        for agent in agents:
            agent.kill()
        for place in places:
            if with_attempts:
                place.end_attempts()
    last = [place.start() for place in places]
    for place, agent in zip(places, last, strict=True):
        until_noted(place, len(noted(place.root / "fired")) + len(NAMES))
        assert agent.stop() == 0
        check_account(place)


def check_account(place: Place) -> None:
    """No slot was fired twice; what was fired has its row; no slot is missing, none is open."""
    fired = noted(place.root / "fired")
    assert len(fired) == len(set(fired)), "a slot was fired twice"
    assert place.open_fires() == []
    for name in NAMES:
        rows = place.rows(name)
        assert unaccounted(rows) == []
        fires = {format_instant(row.slot) for row in rows if row.claimed_at is not None}
        succeeded = {format_instant(row.slot) for row in rows if row.outcome is Outcome.SUCCEEDED}
        slots = {slot for routine, slot in fired if routine == name}
        assert succeeded <= slots <= fires


def test_a_run_that_outlives_its_agent_is_watched_and_not_overlapped(place: Place) -> None:
    pipe = place.root / "go"
    os.mkfifo(pipe)
    log = place.root / "log"
    place.write(every_second("slow", run=f"echo begin >> {log}; read line < {pipe}; echo end >> {log}"))
    first = place.start()
    until(lambda: log.exists() and "begin" in log.read_text())
    until(lambda: place.rows("slow")[0].started_at)
    first.kill()
    second = place.start()
    second.says("outlived its agent and is watched to its end")
    (skipped, *_) = place.until_row("slow", Outcome.SKIPPED)
    assert (skipped.reason, skipped.blocked_by) == (Reason.OVERLAP, place.rows("slow")[0].fire)
    assert log.read_text() == "begin\n"
    pipe.write_text("\n")
    (lost,) = place.until_row("slow", Outcome.LOST)
    assert lost.reason is Reason.STATUS_UNKNOWN
    until(lambda: log.read_text() == "begin\nend\nbegin\n")
    pipe.write_text("\n")
    assert second.stop() == 0
    assert unaccounted(place.rows("slow")) == []


def test_a_run_that_is_watched_keeps_its_timeout(place: Place) -> None:
    place.write(every_second("slow", run="exec sleep 60", more="timeout: 4s, kill_after: 1s"))
    first = place.start()
    until(lambda: place.rows("slow") and place.rows("slow")[0].started_at)
    first.kill()
    second = place.start()
    second.says("outlived its agent")
    (row, *_) = place.until_row("slow", Outcome.TIMED_OUT)
    assert row.term == 1
    second.stop()


def test_a_run_that_died_with_its_agent_is_lost(place: Place) -> None:
    place.write(every_second("slow", run="exec sleep 60"))
    first = place.start()
    until(lambda: place.rows("slow") and place.rows("slow")[0].started_at)
    first.kill()
    place.end_attempts()
    second = place.start()
    second.says("lost: its agent died before it ended")
    (lost,) = place.until_row("slow", Outcome.LOST)
    assert lost.reason is Reason.OWNER_KILLED
    assert place.command("history", "slow", "--json").json[-1]["outcome"] == "lost"
    second.stop()


def test_a_lost_run_of_a_routine_that_allows_it_is_run_once_more(place: Place) -> None:
    log = place.root / "log"
    run = f"echo $ANKITA_TRIGGER $ANKITA_SLOT >> {log}; exec sleep 60"
    once = f"  once: {{schedule: every 1d, rerun_lost: true, run: {run}}}\n"
    place.write(every_second("beat") + once)
    first = place.start()
    assert place.command("trigger", "once").code == 0
    until(lambda: log.exists() and log.read_text())
    until(lambda: place.rows("once")[0].started_at)
    first.kill()
    place.end_attempts()
    second = place.start()
    until(lambda: len(log.read_text().splitlines()) == 2)
    until(lambda: place.rows("once")[-1].started_at)
    second.kill()
    place.end_attempts()
    third = place.start()
    third.says("lost: its agent died")
    beats = len(place.rows("beat"))
    until(lambda: len(place.rows("beat")) > beats + 1)
    assert third.stop() == 0
    (asked, again) = (line.split() for line in log.read_text().splitlines())
    assert asked == ["manual", again[1]], "the same slot"
    assert again[0] == "retry"
    rows = [(row.trigger, row.outcome) for row in place.rows("once")]
    assert rows == [(Trigger.MANUAL, Outcome.LOST), (Trigger.RETRY, Outcome.LOST)]


def test_an_agent_that_is_killed_twice_in_a_row_while_it_recovers_loses_nothing(place: Place) -> None:
    log = place.root / "fired"
    place.write(every_second(*NAMES, run=noting(log)))
    agent = place.start()
    until_noted(place, 5)
    agent.send(signal.SIGSTOP)
    agent.kill()
    for _ in range(3):
        recovering = place.begin()
        recovering.says("owner of term")
        recovering.kill()
    last = place.start()
    until_noted(place, len(noted(log)) + 5)
    assert last.stop() == 0
    check_account(place)


def test_what_a_watched_run_leaves_in_hiding_is_ended_and_the_routine_runs_again(place: Place) -> None:
    pipe = place.root / "go"
    os.mkfifo(pipe)
    log = place.root / "log"
    hiding = f"(setsid env -i sh -c 'echo hidden $$ >> {log}; exec sleep 1000' &)"
    place.write(every_second("slow", run=f"echo begin >> {log}; {hiding}; read line < {pipe}"))
    first = place.start()
    until(lambda: log.exists() and "hidden" in log.read_text())
    until(lambda: place.rows("slow")[0].started_at)
    first.kill()
    second = place.start()
    second.says("outlived its agent and is watched to its end")
    pipe.write_text("\n")
    place.until_row("slow", Outcome.LOST)
    until(lambda: log.read_text().count("begin") == 2, "the next run")
    hidden = int(next(line for line in log.read_text().splitlines() if "hidden" in line).split()[1])
    assert hidden not in place.processes()
    pipe.write_text("\n")
    assert second.stop() == 0
