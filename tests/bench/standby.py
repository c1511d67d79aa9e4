"""How long nobody owns: from the owner's SIGKILL until a standby's claim is there.

Seen from outside, ten thousand looks a second: `claim.json` names the standby as soon as it is renamed into
place, with its content, its term and the ledger on the disk before; the line `owner of term` follows when the
new name is on the disk as well. No inotify here: its own queue was seen to be up to 20 ms late while the dying
owner's was torn down. Beside it a bare flock(2) in Python, which writes nothing: what the kernel and the
interpreter take alone.
"""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ankita_agent.app.claim import read_claim
from tests.bench.measured import Sample, Sheet
from tests.bench.mix import sleeping_file
from tests.real.agents import SEATED, Agent, Place

TIMES: Final = 40
POLL: Final = 0.0001  # seconds

_WAITER: Final = """
import fcntl, os, sys
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(1, b"?")
fcntl.flock(lock, fcntl.LOCK_EX)
os.write(1, b"!")
os.read(0, 1)
"""


def hand_over(directory: Path, sheet: Sheet) -> None:
    """The owner is killed again and again; each time the next standby follows."""
    sheet.begin(f"{TIMES} hand-overs by SIGKILL")
    named, told = _ours(directory / "ours")
    bare = _bare(directory / "lock")
    for sample in (named, told, bare):
        sheet.raw(sample)
    passed = named.median <= 5 and len(named.numbers) >= 30
    sheet.figure("4 hand-over to a standby", "median <= 5 ms", named.short(), passed=passed)
    sheet.beside("until its name is on the disk too", told)
    sheet.beside("a bare flock(2) in Python, nothing written", bare)


def _ours(directory: Path) -> tuple[Sample, Sample]:
    directory.mkdir()
    times: list[tuple[float, float]] = []
    with Place(directory) as place:
        place.write(sleeping_file(50))
        owner = place.start()
        for _ in range(TIMES):
            heir = place.stand_by()
            time.sleep(0.5)  # whatever it does to be ready, it has done
            times.append(_kill(place, owner, heir))
            owner.ended()
            heir.says(" in force")
            owner = heir
        owner.stop()
    named, told = zip(*times, strict=True)
    return Sample("claim.json names the standby", "ms", named), Sample("and durably so", "ms", told)


def _kill(place: Place, owner: Agent, heir: Agent) -> tuple[float, float]:
    """Kill the owner; milliseconds until the claim names the heir, and until the heir says that it owns."""
    claim = place.state / "own" / "claim.json"
    before = claim.stat().st_ino
    begin = time.perf_counter()
    os.kill(owner.pid, signal.SIGKILL)
    _poll(lambda: claim.stat().st_ino != before)
    named = (time.perf_counter() - begin) * 1000
    _poll(lambda: SEATED in heir.said)
    told = (time.perf_counter() - begin) * 1000
    content = read_claim(claim.read_bytes())
    assert content is not None
    assert content.card.process.pid == heir.pid
    return named, told


def _poll(condition: Callable[[], bool]) -> None:
    give_up = time.perf_counter() + 30
    while not condition():
        assert time.perf_counter() < give_up, "no standby took over within 30 s"
        time.sleep(POLL)


def _bare(lock: Path) -> Sample:
    times = []
    owner = _waiter(lock)
    assert _said(owner) == b"?!"
    for _ in range(TIMES):
        heir = _waiter(lock)
        assert _said(heir, 1) == b"?"
        time.sleep(0.1)
        begin = time.perf_counter()
        owner.kill()
        assert _said(heir, 1) == b"!"
        times.append((time.perf_counter() - begin) * 1000)
        owner.communicate()
        owner = heir
    owner.kill()
    owner.communicate()
    return Sample("a bare flock(2)", "ms", tuple(times))


def _waiter(lock: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", _WAITER, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )


def _said(waiter: subprocess.Popen[bytes], count: int = 2) -> bytes:
    assert waiter.stdout is not None
    said = b""
    while len(said) < count:
        assert select.select([waiter.stdout], [], [], 30)[0], "the lock was not handed over within 30 s"
        said += os.read(waiter.stdout.fileno(), count - len(said))
    return said
