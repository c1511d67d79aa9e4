"""What a service manager hears: readiness, one line of status, and a ping after each pass in order."""

import json
import os
import select
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from ankita_agent.adapters.sd_notify import SdNotify
from ankita_agent.adapters.system_clock import SystemClock
from ankita_agent.app.claim import Role, read_life
from ankita_agent.app.patience import Patience
from ankita_agent.core.instants import SECOND, Duration
from ankita_agent.core.outcomes import Outcome
from tests.real.agents import STANDBY, Agent, Place, every_second
from tests.real.waiting import PATIENCE, until

IDLE: Final = "agent: {settle: 1s}\nroutines:\n  nightly: {schedule: daily 02:30, run: 'true'}\n"
WATCHDOG: Final = 2.0


class Manager:
    """A service manager's end of the notify socket."""

    def __init__(self, path: Path, watchdog: float | None = WATCHDOG) -> None:
        self.inlet = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.inlet.bind(str(path))
        self.heard: list[tuple[float, dict[str, str]]] = []
        self.environment = {"NOTIFY_SOCKET": str(path)}
        if watchdog is not None:
            self.environment["WATCHDOG_USEC"] = str(round(watchdog * 1_000_000))

    def listen(self, seconds: float) -> None:
        """Take what comes for so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and select.select([self.inlet], [], [], left)[0]:
            self._take()

    def hears(self, name: str, value: str = "") -> str:
        """Wait for an assignment to `name` that holds `value`; all of it."""
        end = time.monotonic() + PATIENCE
        while not (found := [each[name] for _, each in self.heard if value in each.get(name, "") and name in each]):
            assert select.select([self.inlet], [], [], end - time.monotonic())[0], f"never heard {name}={value}"
            self._take()
        return found[-1]

    def pings(self) -> list[float]:
        """When it was pinged."""
        return [at for at, message in self.heard if message.get("WATCHDOG") == "1"]

    def _take(self) -> None:
        message = self.inlet.recv(8192).decode()
        pairs = dict(line.split("=", 1) for line in message.splitlines())
        self.heard.append((time.monotonic(), pairs))


@pytest.fixture
def manager(place: Place) -> Iterator[Manager]:
    found = Manager(place.root / "notify")
    yield found
    found.inlet.close()


def gaps(times: list[float]) -> float:
    """The longest time between two of them."""
    return max(later - earlier for earlier, later in pairwise(times))


@pytest.mark.parametrize("role", ["owner", "standby"])
def test_an_agent_is_ready_and_pings_at_most_a_quarter_apart(place: Place, manager: Manager, role: str) -> None:
    place.write(IDLE)
    if role == "standby":
        place.start()
        agent = place.start("--standby", says=STANDBY, environment=manager.environment)
    else:
        agent = place.start(environment=manager.environment)
    assert manager.hears("READY") == "1"
    assert role in manager.hears("STATUS", role)
    manager.heard.clear()
    manager.listen(2.5)
    pings = manager.pings()
    assert len(pings) >= 4
    assert gaps(pings) <= WATCHDOG / 4 + 0.25, "with allowance for a busy machine"
    assert agent.stop() == 0
    if role == "owner":
        assert manager.hears("STOPPING") == "1"


def test_a_standby_that_takes_over_goes_on_pinging_and_says_that_it_owns(place: Place, manager: Manager) -> None:
    place.write(IDLE)
    first = place.start()
    place.start("--standby", says=STANDBY, environment=manager.environment)
    manager.hears("STATUS", "standby; the owner is pid")
    first.kill()
    manager.hears("STATUS", "owner, term 2")
    manager.heard.clear()
    manager.listen(1.5)
    assert gaps(manager.pings()) <= WATCHDOG / 4 + 0.25


def test_a_stopped_agent_does_not_ping(place: Place, manager: Manager) -> None:
    place.write(IDLE)
    agent = place.start(environment=manager.environment)
    manager.hears("READY")
    agent.send(signal.SIGSTOP)
    until(lambda: place.status()["owner"]["state"] == "stopped")
    manager.listen(0.1)
    manager.heard.clear()
    manager.listen(1.0)
    assert manager.pings() == []
    agent.send(signal.SIGCONT)
    manager.hears("WATCHDOG")


def test_an_agent_that_drains_is_not_watched_and_shows_progress_all_the_same(place: Place, manager: Manager) -> None:
    place.write(every_second("long", run="exec sleep 60", settings="settle: 1s, stop_drain: 3s"))
    agent = place.start(environment=manager.environment)
    place.until_row("long", None)
    agent.send(signal.SIGTERM)
    manager.hears("STOPPING")
    assert manager.heard[-1][1]["WATCHDOG_USEC"] == "0"
    manager.heard.clear()
    (life,) = (place.state / "own" / "life").iterdir()
    before = read_life(life.read_bytes())[1]
    until(lambda: read_life(life.read_bytes())[1] != before)
    assert agent.ended() == 0
    manager.listen(0.1)
    assert not {name for _, message in manager.heard for name in message if name.startswith("WATCHDOG")}


def test_patience_is_asked_for_around_the_ledger_and_ends_with_each_pass(place: Place, manager: Manager) -> None:
    place.write(every_second("beat"))
    agent = place.start(environment=manager.environment)
    assert manager.hears("EXTEND_TIMEOUT_USEC") == "300000000"
    manager.hears("READY")
    manager.hears("STATUS", "running beat")
    manager.listen(1.5)
    assert agent.stop() == 0
    manager.hears("STOPPING")
    asked = [message["WATCHDOG_USEC"] for _, message in manager.heard if "WATCHDOG_USEC" in message]
    assert asked.count("300000000") > 2
    assert all(1_000_000 <= int(span) <= 2_000_000 for span in asked if span not in ("300000000", "0"))
    told = [message for _, message in manager.heard if "WATCHDOG" in message or "WATCHDOG_USEC" in message]
    after = [later for earlier, later in pairwise(told) if "WATCHDOG" in later and "WATCHDOG" not in earlier]
    assert after
    assert {message["WATCHDOG_USEC"] for message in after} == {"2000000"}, "a ping after a wait ends the patience"


def test_as_many_messages_go_to_the_manager_for_many_starts_as_for_one(place: Place, manager: Manager) -> None:
    """Counted from one ping to the next: the pass that starts them all says as much as one that starts one."""
    place.write(every_second("beat", *(f"r{number}" for number in range(40)), settings="settle: 1s, concurrency: 50"))
    agent = place.start(environment=manager.environment)
    manager.hears("STATUS", "running beat")
    manager.listen(1.5)
    agent.kill()
    at = [number for number, (_, message) in enumerate(manager.heard) if "WATCHDOG" in message]
    assert max(later - earlier for earlier, later in pairwise(at)) <= 10


def test_a_ping_takes_less_than_a_tenth_of_a_millisecond(place: Place, manager: Manager) -> None:
    taken = []
    with closing(SdNotify(manager.environment["NOTIFY_SOCKET"], Duration(2 * SECOND))) as readiness:
        readiness.ready("")
        patience = Patience(SystemClock(), readiness)
        for _ in range(200):
            begin = time.perf_counter()
            patience.progress(Role.OWNER, busy=True)
            taken.append(time.perf_counter() - begin)
            manager.listen(0.001)
    assert sorted(taken)[len(taken) // 2] < 100e-6


def test_a_reload_is_announced_and_followed_by_ready(place: Place, manager: Manager) -> None:
    place.write(IDLE)
    agent = place.start(environment=manager.environment)
    manager.hears("READY")
    manager.heard.clear()
    place.write(every_second("beat"))
    manager.hears("RELOADING")
    manager.hears("READY")
    manager.hears("STATUS", "beat")
    assert agent.stop() == 0


def test_a_reason_to_be_degraded_is_shown_by_the_manager(place: Place, manager: Manager) -> None:
    place.write(IDLE)
    place.start(environment=manager.environment)
    place.write("nonsense")
    assert str(place.file) in manager.hears("STATUS", "degraded")


def test_runs_do_not_inherit_the_way_to_the_manager(place: Place, manager: Manager) -> None:
    log = place.root / "log"
    place.write(every_second("beat", run=f"env > {log}.new; mv {log}.new {log}"))
    extra = {**manager.environment, "LISTEN_FDS": "1", "SECRET_OF_THE_SHELL": "x"}
    place.start(environment=extra)
    place.until_row("beat", Outcome.SUCCEEDED)
    names = {line.split("=")[0] for line in log.read_text().splitlines()}
    assert not {name for name in names if name.startswith(("NOTIFY_", "WATCHDOG_", "LISTEN_"))}
    assert "SECRET_OF_THE_SHELL" not in names
    assert {"ANKITA_ROUTINE", "ANKITA_SLOT", "ANKITA_FIRE", "ANKITA_TERM", "ANKITA_TRIGGER"} <= names


def progress_of(place: Place, agent: Agent) -> tuple[int, int]:
    """Passes and awake time in the life file of the owner; zero before its first pass."""
    token = json.loads((place.state / "own" / "claim.json").read_text())["token"]
    card, progress = read_life((place.state / "own" / "life" / token).read_bytes())
    assert card is not None
    assert card.process.pid == agent.pid
    return (0, 0) if progress is None else (progress.passes, progress.awake)


def test_progress_in_the_life_file_goes_on_and_stands_still_when_the_agent_does(place: Place) -> None:
    place.write(every_second("beat"))
    agent = place.start()
    until(lambda: progress_of(place, agent)[0] > 1)
    before = progress_of(place, agent)
    until(lambda: progress_of(place, agent) > before)
    assert progress_of(place, agent)[1] > before[1]
    agent.send(signal.SIGSTOP)
    os.waitid(os.P_PID, agent.pid, os.WSTOPPED | os.WNOWAIT)
    assert progress_of(place, agent) == progress_of(place, agent)
    agent.send(signal.SIGCONT)
    assert agent.stop() == 0


@pytest.mark.timeout(120)
def test_ten_thousand_routines_are_started_shown_and_fired(place: Place) -> None:
    names = [f"routine-{number:05}" for number in range(10_000)]
    lines = [f"  {name}: {{schedule: 'daily 02:30', run: 'true'}}\n" for name in names]
    place.write(every_second("beat") + "".join(lines))
    began = time.monotonic()
    agent = place.start()
    assert time.monotonic() - began < 60
    document = place.status()
    assert len(document["routines"]) == 10_001
    (row, *_) = place.until_row("beat", Outcome.SUCCEEDED, count=3)
    assert row.started_at is not None
    assert place.command("next", "--json", "-n", "3").code == 0
    assert place.command("trigger", names[-1], "--wait").code == 0
    assert agent.stop() == 0
