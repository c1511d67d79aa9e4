"""Signals: each has one meaning, whatever the moment, and nothing is left behind."""

import os
import pty
import random
import signal
import subprocess
from itertools import permutations
from typing import Final

import pytest

from ankita_agent.core.outcomes import Outcome, Reason
from tests.real.agents import SEATED, STARTED, Agent, Place, every_second, noted, noting, unaccounted, wait_at_most
from tests.real.waiting import until

SEED: Final = 17
FINE: Final = {Outcome.SUCCEEDED, Outcome.STOPPED, Outcome.SKIPPED, Outcome.MISSED}
"""How a slot may end when nobody is killed."""

STUBBORN: Final = "trap '' TERM; while :; do sleep 1; done"


def nothing_is_left(place: Place) -> bool:
    """No process, no open fire, no owner, no life file."""
    assert place.processes() == []
    assert place.open_fires() == []
    assert os.listdir(place.state / "own" / "life") == []
    assert not (place.state / "own" / "claim.json").exists()
    return True


def test_told_to_stop_at_any_moment_they_end_well_and_leave_nothing(places: list[Place]) -> None:
    names = ("a", "b", "c", "d", "e")
    for place in places:
        place.write(every_second(*names, run=noting(place.root / "fired")))
    chance = random.Random(SEED)
    moments = [chance.uniform(0.0, 1.1) for _ in range(6)]
    print(f"seed {SEED}: {moments}")
    for moment in (0.0, *moments):
        agents = [place.begin() for place in places]
        for agent in agents:
            agent.says(SEATED)
        wait_at_most(agents[0], moment)
        for agent in agents:
            agent.send(signal.SIGTERM)
        for place, agent in zip(places, agents, strict=True):
            assert agent.ended() == 0, agent.said
            assert nothing_is_left(place)
    for place in places:
        fired = noted(place.root / "fired")
        assert len(fired) == len(set(fired))
        for name in names:
            rows = place.rows(name)
            assert unaccounted(rows) == []
            assert {row.outcome for row in rows} <= FINE


def test_told_to_stop_before_it_has_begun_it_ends_at_once_and_has_claimed_nothing(place: Place) -> None:
    place.write(every_second("a"))
    chance = random.Random(SEED)
    for _ in range(12):
        agent = place.begin()
        wait_at_most(agent, chance.uniform(0.0, 0.5))
        code = agent.stop()
        assert code == 0 or (code == -signal.SIGTERM and SEATED not in agent.said), agent.said
        if SEATED in agent.said:
            assert nothing_is_left(place)


def test_a_run_that_ignores_the_wish_to_stop_is_killed_after_both_patiences(place: Place) -> None:
    more = "kill_after: 1s"
    place.write(every_second("stubborn", run=STUBBORN, settings="stop_drain: 1s, settle: 1s", more=more))
    agent = place.start()
    place.until_row("stubborn", None)
    assert agent.stop() == 0
    assert "waiting for stubborn" in agent.said
    row = place.rows("stubborn")[0]
    assert (row.outcome, row.reason, row.signal) == (Outcome.STOPPED, Reason.SHUTDOWN, signal.SIGKILL)
    assert nothing_is_left(place)


def test_a_person_who_interrupts_once_waits_for_runs_and_twice_stops_them(place: Place) -> None:
    place.write(every_second("long", run="exec sleep 60"))
    agent = place.start()
    place.until_row("long", None)
    agent.send(signal.SIGINT)
    agent.says("Ctrl-C again stops them")
    assert place.status()["owner"] is None, "ownership is free at once"
    successor = place.start()
    assert agent.alive
    assert agent.stop(signal.SIGINT) == 0
    row = place.rows("long")[0]
    assert (row.outcome, row.reason) == (Outcome.STOPPED, Reason.ASKED_TO_STOP)
    successor.says(STARTED)
    assert successor.stop() == 0
    assert nothing_is_left(place)


def test_a_person_who_waits_and_then_a_machine_that_stops_bounds_the_wait(place: Place) -> None:
    place.write(every_second("long", run="exec sleep 60"))
    agent = place.start()
    place.until_row("long", None)
    agent.send(signal.SIGINT)
    agent.says("Ctrl-C again stops them")
    assert agent.stop(signal.SIGTERM) == 0
    assert place.rows("long")[0].reason is Reason.SHUTDOWN


def test_ctrl_c_for_an_agent_that_was_told_to_stop_stops_what_it_waits_for(place: Place) -> None:
    place.write(every_second("long", run="exec sleep 60", settings="stop_drain: 60s"))
    agent = place.start()
    place.until_row("long", None)
    agent.send(signal.SIGTERM)
    agent.says("waiting for long")
    assert agent.stop(signal.SIGINT) == 0
    assert place.rows("long")[0].reason is Reason.ASKED_TO_STOP
    assert nothing_is_left(place)


@pytest.mark.parametrize("wishes", list(permutations((signal.SIGTERM, signal.SIGINT))), ids=str)
def test_both_wishes_at_once_stop_what_runs_whichever_came_first(place: Place, wishes: tuple[int, int]) -> None:
    place.write(every_second("long", run="exec sleep 60", settings="stop_drain: 60s"))
    agent = place.start()
    place.until_row("long", None)
    agent.send(signal.SIGSTOP)
    for wish in wishes:
        agent.send(wish)
    assert agent.stop(signal.SIGCONT) == 0
    assert "nothing more starts here; stopping long" in agent.said
    assert place.rows("long")[0].reason is Reason.ASKED_TO_STOP
    assert nothing_is_left(place)


class Terminal:
    """A pseudo-terminal; the agent in it leads its session and has it as controlling terminal."""

    def __init__(self, place: Place, *arguments: str) -> None:
        self.master, slave = pty.openpty()
        self.agent: Agent = place.begin(
            *arguments,
            before=("setsid", "--ctty"),
            stdin=slave,
            stderr=slave,
            start_new_session=False,
        )
        os.close(slave)


def test_closing_the_terminal_is_like_ctrl_c(place: Place) -> None:
    place.write(every_second("beat") + "  long: {schedule: every 1s, run: exec sleep 2}\n")
    terminal = Terminal(place)
    (row, *_) = place.until_row("long", None)
    os.close(terminal.master)
    assert terminal.agent.ended() == 0
    with place.ledger() as ledger:
        ended = ledger.row(row.fire)
    assert ended is not None
    assert ended.outcome is Outcome.SUCCEEDED, "it waited for the run"
    assert nothing_is_left(place)


def test_ctrl_c_in_a_terminal_reaches_the_agent_and_not_its_runs(place: Place) -> None:
    place.write(every_second("long", run="exec sleep 2"))
    terminal = Terminal(place)
    until(lambda: any(row.started_at for row in place.rows("long")))
    os.write(terminal.master, b"\x03")
    assert terminal.agent.ended() == 0
    assert place.rows("long")[0].outcome is Outcome.SUCCEEDED
    os.close(terminal.master)


def test_ctrl_z_in_a_terminal_is_refused_with_the_reason(place: Place) -> None:
    place.write(every_second("beat"))
    terminal = Terminal(place)
    place.until_row("beat", Outcome.SUCCEEDED)
    os.write(terminal.master, b"\x1a")
    shown = b""

    def refused() -> bool:
        nonlocal shown
        shown += os.read(terminal.master, 4096)
        return b"Ctrl-Z is refused" in shown

    until(refused)
    count = len(place.rows("beat"))
    until(lambda: len(place.rows("beat")) > count + 1)
    os.close(terminal.master)
    assert terminal.agent.ended() == 0


def test_a_stop_signal_without_a_terminal_is_refused_too(place: Place) -> None:
    place.write(every_second("beat"))
    agent = place.start()
    agent.send(signal.SIGTSTP)
    agent.says("Ctrl-Z is refused")
    assert place.status()["owner"]["state"] in ("idle", "busy")
    assert agent.stop() == 0


def test_an_agent_under_nohup_outlives_its_terminal(place: Place) -> None:
    place.write(every_second("beat"))
    master, slave = pty.openpty()
    agent = place.begin(before=("setsid", "--ctty", "nohup"), stdin=slave, start_new_session=False)
    os.close(slave)
    agent.says(STARTED)
    os.close(master)
    count = len(place.rows("beat"))
    until(lambda: not agent.alive or len(place.rows("beat")) > count + 1)
    assert agent.alive, agent.said
    assert agent.stop() == 0


def test_an_agent_whose_words_nobody_reads_any_more_goes_on_and_ends_well(place: Place) -> None:
    place.write(every_second("beat"))
    reader, writer = os.pipe()
    agent = place.begin(stderr=writer)
    os.close(writer)
    until(lambda: os.read(reader, 4096).count(STARTED.encode()))
    os.close(reader)
    count = len(place.rows("beat"))
    until(lambda: len(place.rows("beat")) > count + 1)
    assert agent.stop() == 0
    assert nothing_is_left(place)


def test_an_abort_shows_the_stacks_of_all_threads(place: Place) -> None:
    place.write(every_second("beat"))
    owner = place.start()
    standby = place.stand_by()
    until(lambda: place.status()["standbys"] == 1)  # its thread is there: a signal may hit one that is half made
    assert standby.stop(signal.SIGABRT) == -signal.SIGABRT
    assert standby.said.count("File ") > 4
    assert "Thread 0x" in standby.said
    assert "Current thread 0x" in standby.said
    assert owner.stop(signal.SIGABRT) == -signal.SIGABRT
    assert "in wait" in owner.said


def test_a_child_that_the_agent_never_started_is_reaped_and_means_nothing(place: Place) -> None:
    """As after an exec from a shell that had background children."""
    place.write(every_second("beat"))
    script = 'sleep 0.3 & exec "$@"'
    agent = place.start(before=("sh", "-c", script, "sh"))
    place.until_row("beat", Outcome.SUCCEEDED, count=2)
    children = subprocess.run(["ps", "--ppid", str(agent.pid), "-o", "stat="], capture_output=True, text=True)
    assert "Z" not in children.stdout
    assert agent.stop() == 0


@pytest.mark.parametrize("how", ["--block-signal", "--ignore-signal"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_standby_hears_the_wish_to_stop_whatever_its_parent_did_to_signals(
    place: Place, how: str, number: signal.Signals
) -> None:
    place.write(every_second("a"))
    owner = place.start()
    standby = place.stand_by(before=("env", f"{how}={number.name.removeprefix('SIG')}"))
    assert standby.stop(number) == 0
    assert owner.stop() == 0
