"""Ownership with real agents: at most one, handed on when it is free, given up when it is lost."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.app.claim import Card
from ankita_agent.app.owner import LIFE, Owner
from ankita_agent.core.instants import Instant
from ankita_agent.core.outcomes import Outcome, Reason
from ankita_agent.core.rows import ProcessId
from ankita_agent.ports.files import Descriptor
from tests.real.agents import ROOT, SEATED, STARTED, Place, every_second, noted, noting, unaccounted
from tests.real.waiting import until

LONG: Final = "exec sleep 60"
IDLE: Final = "routines: {}\n"


def test_a_second_agent_is_refused_and_told_who_owns_since_when_and_what_to_do(place: Place) -> None:
    place.write(IDLE)
    first = place.start()
    second = place.begin()
    assert second.ended() == 75
    assert f"the owner is pid {first.pid}" in second.said
    assert re.search(r"since \S+.\d\d:\d\d:\d\d", second.said)
    assert "ankita-agent status" in second.said
    assert "run --standby" in second.said
    assert place.status()["owner"]["pid"] == first.pid


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_standby_takes_over_when_the_owner_ends(place: Place, end: int) -> None:
    log = place.root / "fired"
    place.write(every_second("beat", run=noting(log)))
    first = place.start()
    second = place.stand_by()
    assert f"pid {first.pid}" in second.said
    assert place.status()["standbys"] == 1
    place.until_row("beat", Outcome.SUCCEEDED)
    assert first.stop(end) == (-end if end == signal.SIGKILL else 0)
    second.says("owner of term 2")
    before = len(place.rows("beat"))
    until(lambda: len(place.rows("beat")) > before + 1)
    status = place.status()
    assert (status["owner"]["pid"], status["owner"]["term"], status["standbys"]) == (second.pid, 2, 0)
    assert second.stop() == 0
    assert unaccounted(place.rows("beat")) == []
    assert len(noted(log)) == len(set(noted(log)))


def test_an_owner_that_hands_back_closes_its_fires_and_nothing_overlaps(place: Place) -> None:
    go = place.root / "go"
    os.mkfifo(go)
    log = place.root / "log"
    place.write(every_second("slow", run=f"echo begin >> {log}; read line < {go}; echo end >> {log}"))
    first = place.start()
    place.until_row("slow", None)
    (fire,) = (row.fire for row in place.rows("slow") if row.outcome is None)
    second = place.stand_by()
    first.send(signal.SIGINT)
    second.says("owner of term 2")
    (skipped, *_) = place.until_row("slow", Outcome.SKIPPED)
    assert skipped.reason is Reason.OVERLAP
    until(lambda: any(row.term == 2 and row.outcome is Outcome.SKIPPED for row in place.rows("slow")))
    assert first.alive, "it sees its run to the end"
    assert log.read_text() == "begin\n"
    go.write_text("\n")
    assert first.ended() == 0
    with place.ledger() as ledger:
        row = ledger.row(fire)
    assert row is not None
    assert (row.outcome, row.term) == (Outcome.SUCCEEDED, 1)
    until(lambda: log.read_text() == "begin\nend\nbegin\n")
    second.send(signal.SIGINT)
    go.write_text("\n")
    assert second.ended() == 0
    assert unaccounted(place.rows("slow")) == []


def test_of_many_agents_released_together_exactly_one_owns(place: Place) -> None:
    agents, rounds, herds = 8, 5, 4
    with ExitStack() as stack:
        running = []
        for number in range(herds):
            path = place.root / f"herd-{number}"
            (path / "config").mkdir(parents=True)
            (path / "config" / "routines.yaml").write_text(IDLE)
            environment = place.environment() | {
                "PYTHONPATH": os.pathsep.join((str(ROOT / "agent"), str(ROOT))),
                "ANKITA_STATE_DIR": str(path / "state"),
                "ANKITA_CONFIG_DIR": str(path / "config"),
            }
            command = [sys.executable, "-m", "tests.real.herd", str(agents), str(rounds)]
            herd = subprocess.Popen(command, env=environment, cwd=path, stdout=subprocess.PIPE, text=True)
            running.append(stack.enter_context(herd))
        ends = [line for herd in running for line in herd.communicate(timeout=90)[0].splitlines()]
    assert ends == [" ".join(["75"] * (agents - 1) + ["0"])] * (rounds * herds)
    said = [path.read_text() for path in place.root.glob("herd-*/said-*")]
    assert sum(SEATED in text for text in said) == rounds * herds
    for number in range(herds):
        words = [path.read_text() for path in (place.root / f"herd-{number}").glob("said-*")]
        terms = sorted(int(term) for text in words for term in re.findall(r"owner of term (\d+)", text))
        assert terms == list(range(1, rounds + 1))


CLAIMS: Final[dict[str, Callable[[str], str]]] = {
    "empty": lambda claim: "",
    "torn": lambda claim: claim[: len(claim) // 2],
    "garbage": lambda claim: "\x00\x01 not a claim",
    "from the future": lambda claim: re.sub(r'"since": "\d{4}', '"since": "2999', claim),
    "from another boot": lambda claim: re.sub(r'"boot": "[^"]*"', '"boot": "another"', claim),
    "of a living stranger": lambda claim: re.sub(r'"pid": \d+', f'"pid": {os.getpid()}', claim),
    "with a huge term": lambda claim: re.sub(r'"term": \d+', '"term": 4000', claim),
}


@pytest.mark.parametrize("kind", CLAIMS)
def test_a_claim_that_was_left_never_keeps_anybody_from_owning(place: Place, kind: str) -> None:
    place.write(IDLE)
    first = place.start()
    claim = (place.state / "own" / "claim.json").read_text()
    first.kill()
    (place.state / "own" / "claim.json").write_text(CLAIMS[kind](claim))
    assert place.status()["owner"] is None or kind == "of a living stranger"
    second = place.start()
    status = place.status()
    assert status["owner"]["pid"] == second.pid
    assert status["owner"]["term"] > 1
    assert second.stop() == 0


def test_a_claim_file_that_is_removed_is_written_again(place: Place) -> None:
    place.write(every_second("beat"))
    agent = place.start()
    (place.state / "own" / "claim.json").unlink()
    agent.says("the claim was gone or torn and has been written again")
    assert place.status()["owner"]["pid"] == agent.pid
    assert agent.stop() == 0


def remove_guard(own: Path) -> None:
    (own / "guard").unlink()


def replace_guard(own: Path) -> None:
    (own / "new").touch(0o600)
    (own / "new").rename(own / "guard")


def move_directory(own: Path) -> None:
    own.rename(own.with_name("moved"))


def remove_directory(own: Path) -> None:
    shutil.rmtree(own)


def swap_directory(own: Path) -> None:
    own.rename(own.with_name("moved"))
    own.symlink_to("moved")


def move_state(own: Path) -> None:
    own.parent.rename(own.parent.with_name("moved"))


def remove_state(state: Path) -> None:
    """Away with all of it at once: what is removed piece by piece, the agents fill again meanwhile."""
    shutil.rmtree(state.rename(state.with_name("removed")))


def write_another_token(own: Path) -> None:
    text = (own / "claim.json").read_text()
    (own / "new").write_text(re.sub(r'"token": "[^"]*"', '"token": "ffff"', text))
    (own / "new").rename(own / "claim.json")


BREAKS: Final = [
    remove_guard,
    replace_guard,
    move_directory,
    remove_directory,
    swap_directory,
    move_state,
    write_another_token,
]


@pytest.mark.parametrize("break_in", BREAKS, ids=lambda each: each.__name__)
def test_an_owner_that_lost_its_place_stops_its_runs_and_asks_to_be_brought_back(
    place: Place, break_in: Callable[[Path], None]
) -> None:
    place.write(every_second("beat") + f"  long: {{schedule: every 1s, run: {LONG}}}\n")
    agent = place.start()
    agent.says(STARTED, times=2)
    break_in(place.state / "own")
    assert agent.ended() == 75
    assert "lost the ownership" in agent.said
    assert "stopped (fenced)" in agent.said
    assert place.processes() == []
    own = place.state / "own"
    if own.is_symlink():
        own.unlink()
    successor = place.start()
    assert place.status()["owner"]["pid"] == successor.pid
    assert successor.stop() == 0


def test_a_standby_that_takes_over_in_another_directory_is_seen_there(place: Place) -> None:
    place.write(every_second("beat"))
    first = place.start()
    second = place.stand_by()
    move_directory(place.state / "own")
    assert first.ended() == 75
    second.says(SEATED)
    place.file.write_text("nonsense")
    until(lambda: str(place.file) in place.degraded())
    owner = place.status()["owner"]
    assert owner["pid"] == second.pid
    assert owner["progress_age_s"] is not None
    assert second.stop() == 0


def test_a_standby_whose_state_directory_is_removed_ends_and_says_why(place: Place) -> None:
    place.write(every_second("beat"))
    first = place.start()
    second = place.stand_by()
    remove_state(place.state)
    assert first.ended() == 75
    assert second.ended() == 73
    assert "Traceback" not in second.said
    assert "cannot use the state directory" in second.said


def test_a_stopped_owner_is_not_replaced_and_goes_on_when_it_is_woken(place: Place) -> None:
    log = place.root / "fired"
    place.write(every_second("beat", run=noting(log)))
    agent = place.start()
    standby = place.stand_by()
    place.until_row("beat", Outcome.SUCCEEDED)
    agent.send(signal.SIGSTOP)
    until(lambda: place.status()["owner"]["state"] == "stopped")
    done = place.command("status", "--json")
    assert done.code == 1
    assert done.json["owner"]["pid"] == agent.pid
    before = len(place.rows("beat"))
    refused = place.begin()
    assert refused.ended() == 75
    assert SEATED not in standby.said
    agent.send(signal.SIGCONT)
    until(lambda: len(place.rows("beat")) > before + 2)
    assert place.command("status").code in (0, 1)
    assert agent.stop() == 0
    standby.says(SEATED)
    assert standby.stop() == 0
    assert unaccounted(place.rows("beat")) == []
    assert len(noted(log)) == len(set(noted(log)))


def test_a_standby_ends_at_once_when_it_is_told_to(place: Place) -> None:
    place.write(IDLE)
    first = place.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        assert place.stand_by().stop(number) == 0
    assert place.status()["standbys"] == 0
    assert first.stop() == 0


class SweptFiles(PosixFiles):
    """Files on which another owner sweeps in the moment before a life file is locked."""

    def __init__(self, sweep: Callable[[], None]) -> None:
        self._sweep = sweep
        self._swept = False

    def wait_lock(self, descriptor: Descriptor) -> None:
        """Lock it, after the sweep."""
        if not self._swept:
            self._swept = True
            self._sweep()
        super().wait_lock(descriptor)


def test_an_agent_whose_life_file_is_swept_before_it_is_locked_makes_another(tmp_path: Path) -> None:
    plain = PosixFiles()
    state = plain.open_directory(str(tmp_path))

    def agent(files: PosixFiles, token: str) -> Owner:
        card = Card(token, ProcessId(os.getpid(), 1, "boot", 2), os.getuid(), "0.1", None, "host")
        return Owner(files, state, str(tmp_path), card)

    owner = agent(plain, "a")
    owner.announce()
    assert owner.try_acquire()
    owner.seat(1, Instant(0))
    beginner = agent(SweptFiles(owner.keep_term), "b")
    beginner.announce()
    assert sorted(os.listdir(tmp_path / "own" / LIFE)) == ["a", "b"]
    assert owner.lives("b")
    beginner.leave()
    owner.leave()
