"""A live agent whose clocks are moved under it: nothing is fired twice, and every slot has its row."""

import signal
import struct
import subprocess
from pathlib import Path
from typing import Final

import pytest

from ankita_agent.app.timekeeping import STAND
from ankita_agent.core.instants import DAY, HOUR, MINUTE, SECOND, Duration
from ankita_agent.core.outcomes import Outcome, Reason, Trigger
from tests.real.agents import Agent, Place, noted, noting, unaccounted
from tests.real.waiting import until

pytestmark = pytest.mark.needs("gcc")

SOURCE: Final = Path(__file__).with_name("jump.c")
FILE: Final = """\
agent: {{settle: 1s, stop_drain: 1s}}
defaults: {{timezone: UTC}}
routines:
  beat: {{schedule: every 1s, run: {run}}}
  quarter: {{schedule: every 15m, grace: 1h, run: {run}}}
  half: {{schedule: every 30m, grace: 1h, run: {run}}}
"""


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The clocks that can be moved, compiled."""
    library = tmp_path_factory.mktemp("jump") / "jump.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", library, SOURCE], check=True)
    return library


class Clocks:
    """The clocks of every process started here."""

    def __init__(self, place: Place, shim: Path) -> None:
        self.place = place
        self.file = place.root / "jump"
        self.sleep = self.step = self.later = 0
        self.environment = {"LD_PRELOAD": str(shim), "JUMP_FILE": str(self.file)}
        self.file.write_bytes(bytes(24))
        self.log = place.root / "fired"
        place.write(FILE.format(run=f"'{noting(self.log)}'"))

    def start(self) -> Agent:
        """An agent that lives by them."""
        return self.place.start(environment=self.environment)

    def move(self, agent: Agent | None = None, *, sleep: int = 0, step: int = 0, later: int = 0) -> None:
        """The machine slept, or somebody set the clock, or time passed; then the agent is woken.

        All in nanoseconds.
        """
        self.sleep += sleep
        self.step += step
        self.later += later
        with self.file.open("r+b") as file:
            file.write(struct.pack("=qqq", self.sleep, self.step, self.later))
        if agent is not None:
            agent.send(signal.SIGHUP)  # reloads, and so ends the wait

    def beats_on(self, count: int = 1) -> None:
        """Wait until so many more slots of the quickest routine have been fired."""
        before = len(noted(self.log))
        until(lambda: len(noted(self.log)) >= before + count, "more fires")

    def never_twice(self) -> None:
        """No slot was fired twice, by the ledger and by what the runs noted."""
        fired = noted(self.log)
        assert len(fired) == len(set(fired)), "a slot was fired twice"
        keys = [(row.routine, row.slot) for row in self.place.rows() if row.request is None]
        assert len(keys) == len(set(keys))


@pytest.fixture
def clocks(place: Place, shim: Path) -> Clocks:
    return Clocks(place, shim)


def test_after_an_hours_sleep_what_passed_is_missed_and_the_newest_is_caught_up_once(clocks: Clocks) -> None:
    agent = clocks.start()
    clocks.beats_on()
    clocks.move(agent, sleep=HOUR)
    agent.says("the machine slept")
    clocks.place.until_row("half", Outcome.SUCCEEDED)
    clocks.place.until_row("quarter", Outcome.SUCCEEDED)
    clocks.beats_on()
    agent.stop()
    clocks.never_twice()
    for routine, period in (("beat", SECOND), ("quarter", 15 * MINUTE), ("half", 30 * MINUTE)):
        rows = clocks.place.rows(routine)
        assert unaccounted(rows, Duration(period)) == []
        caught_up = [row for row in rows if row.trigger is Trigger.CATCH_UP and row.claimed_at]
        assert len(caught_up) == (0 if routine == "beat" else 1)
        asleep = [row for row in rows if row.reason is Reason.ASLEEP]
        assert sum(row.count for row in asleep) >= {"beat": 3500, "quarter": 3, "half": 1}[routine]
    (first, second) = (
        next(row for row in clocks.place.rows(name) if row.trigger is Trigger.CATCH_UP) for name in ("half", "quarter")
    )
    (earlier, later) = sorted((first, second), key=lambda row: row.started_at or 0)
    assert earlier.ended_at is not None
    assert later.started_at is not None
    assert later.started_at >= earlier.ended_at, "one after another"


def test_a_step_forward_of_an_hour_is_an_absence(clocks: Clocks) -> None:
    agent = clocks.start()
    clocks.beats_on()
    clocks.move(agent, step=HOUR)
    agent.says("the clock was set by")
    clocks.place.until_row("quarter", Outcome.SUCCEEDED)
    clocks.beats_on()
    agent.stop()
    clocks.never_twice()
    rows = clocks.place.rows("beat")
    assert unaccounted(rows) == []
    assert sum(row.count for row in rows if row.reason is Reason.CLOCK) >= 3500


def test_a_step_back_of_an_hour_fires_nothing_twice_and_goes_on_when_time_is_new_again(clocks: Clocks) -> None:
    agent = clocks.start()
    clocks.beats_on(3)
    clocks.move(agent, step=-HOUR)
    agent.says("the clock was set by")
    agent.send(signal.SIGHUP)
    count = len(noted(clocks.log))
    clocks.move(agent, step=HOUR)
    clocks.beats_on()
    assert len(noted(clocks.log)) > count
    agent.stop()
    clocks.never_twice()
    assert unaccounted(clocks.place.rows("beat")) == []


@pytest.mark.parametrize("leap", [4 * HOUR, 365 * DAY], ids=["4 h", "a year"])
def test_a_leap_forward_is_not_believed_and_a_leap_back_ends_the_doubt(clocks: Clocks, leap: int) -> None:
    agent = clocks.start()
    clocks.beats_on()
    clocks.move(agent, step=leap)
    agent.says("degraded: the clock leapt")
    done = clocks.place.command("status", "--json")
    assert done.code == 1
    assert "10 minutes" in "\n".join(done.json["degraded"])
    rows = len(clocks.place.rows())
    clocks.move(agent)
    assert agent.alive
    assert len(clocks.place.rows()) == rows, "nothing fires and nothing is recorded"
    clocks.move(agent, step=-leap)
    agent.says("well again: clock")
    clocks.beats_on()
    assert clocks.place.status()["degraded"] == []
    agent.stop()
    clocks.never_twice()
    assert unaccounted(clocks.place.rows("beat")) == []


def test_a_leap_forward_is_believed_when_the_clock_has_stood_for_ten_minutes_awake(clocks: Clocks) -> None:
    agent = clocks.start()
    clocks.beats_on()
    clocks.move(agent, step=4 * HOUR)
    agent.says("degraded: the clock leapt")
    clocks.move(agent, later=STAND)
    agent.says("well again: clock")
    clocks.place.until_row("quarter", Outcome.SUCCEEDED)
    clocks.beats_on()
    assert agent.stop() == 0
    clocks.never_twice()
    rows = clocks.place.rows("beat")
    assert unaccounted(rows) == []
    assert sum(row.count for row in rows if row.reason is Reason.CLOCK) > 4 * 3600


@pytest.mark.parametrize("leap", [4 * HOUR, 365 * DAY], ids=["4 h", "a year"])
def test_after_a_leap_back_it_goes_on_firing(clocks: Clocks, leap: int) -> None:
    agent = clocks.start()
    clocks.beats_on()
    clocks.move(agent, step=-leap)
    clocks.beats_on(3)
    agent.stop()
    clocks.never_twice()
    rows = clocks.place.rows("beat")
    (lived,) = (row for row in rows if row.slot == min(row.slot for row in rows))
    relived = [row for row in rows if row.slot < lived.slot + HOUR]
    assert 3 <= len(relived) < len(rows)
    assert unaccounted(relived) == []
    assert unaccounted([row for row in rows if row not in relived]) == []


def test_a_leap_back_that_is_corrected_again_fires_nothing_twice(clocks: Clocks) -> None:
    agent = clocks.start()
    clocks.beats_on(3)
    for _ in range(2):
        clocks.move(agent, step=-4 * HOUR)
        clocks.beats_on(2)
        clocks.move(agent, step=4 * HOUR)
        agent.says("degraded: the clock leapt")
    agent.kill()
    clocks.never_twice()


def test_an_agent_that_was_away_catches_up_once_for_each_routine_one_after_another(clocks: Clocks) -> None:
    first = clocks.start()
    clocks.beats_on()
    assert first.stop() == 0
    clocks.move(sleep=2 * HOUR)
    second = clocks.start()
    clocks.place.until_row("half", Outcome.SUCCEEDED)
    clocks.place.until_row("quarter", Outcome.SUCCEEDED)
    clocks.beats_on()
    second.stop()
    clocks.never_twice()
    for routine, period in (("beat", SECOND), ("quarter", 15 * MINUTE), ("half", 30 * MINUTE)):
        rows = clocks.place.rows(routine)
        assert unaccounted(rows, Duration(period)) == []
        assert {row.reason for row in rows if row.outcome is Outcome.MISSED} >= {Reason.NOT_RUNNING}
        assert sum(row.trigger is Trigger.CATCH_UP and bool(row.claimed_at) for row in rows) <= 1


def test_an_agent_that_starts_with_a_clock_from_before_its_last_rows_waits(clocks: Clocks) -> None:
    first = clocks.start()
    clocks.beats_on()
    assert first.stop() == 0
    clocks.move(step=-5 * HOUR)
    second = clocks.start()
    second.says("degraded: the clock")
    rows = len(clocks.place.rows())
    clocks.move(second, later=STAND - MINUTE)
    assert len(clocks.place.rows()) == rows
    clocks.move(second, later=MINUTE)
    second.says("well again: clock")
    clocks.beats_on()
    assert second.stop() == 0
    clocks.never_twice()
