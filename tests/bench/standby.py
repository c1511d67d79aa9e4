"""How long nobody owns: from the owner's SIGKILL until a standby's claim is on the disk.

Seen from outside, by the line `owner of term` in a pipe: it comes when the ledger, the term and the claim with
its name are durable. Polling would take one of few cores from what is measured, and an inotify was seen to be
20 ms late while the dying owner's was torn down. Beside it a bare flock(2) in Python, which writes nothing:
what the kernel and the interpreter take alone.
"""

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from ankita_agent.app.claim import read_claim
from tests.bench.measured import Sample, Sheet
from tests.bench.mix import sleeping_file
from tests.real.agents import SEATED, STANDBY, Place

TIMES: Final = 40
IN_FORCE: Final = b" in force"

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
    seen = _ours(directory / "ours")
    bare = _bare(directory / "lock")
    sheet.raw(seen)
    sheet.raw(bare)
    passed = seen.median <= 5 and len(seen.numbers) >= 30
    sheet.figure("4 hand-over to a standby, durable", "median <= 5 ms", seen.short(), passed=passed)
    sheet.beside("a bare flock(2) in Python, nothing written", bare)


def _ours(directory: Path) -> Sample:
    directory.mkdir()
    times = []
    with Place(directory) as place:
        place.write(sleeping_file(50))
        owner = place.begin(stderr=subprocess.PIPE)
        _read_until(owner.process, IN_FORCE)
        for _ in range(TIMES):
            heir = place.begin("--standby", stderr=subprocess.PIPE)
            _read_until(heir.process, STANDBY.encode())
            time.sleep(0.5)  # whatever it does to be ready, it has done
            begin = time.perf_counter()
            owner.send(signal.SIGKILL)
            rest = _read_until(heir.process, SEATED.encode())
            times.append((time.perf_counter() - begin) * 1000)
            assert _claimant(place) == heir.pid
            owner.ended()
            _read_until(heir.process, IN_FORCE, rest)
            owner = heir
    return Sample("killed until the standby's claim is durable", "ms", tuple(times))


def _claimant(place: Place) -> int | None:
    claim = read_claim((place.state / "own" / "claim.json").read_bytes())
    return claim.card.process.pid if claim else None


def _bare(lock: Path) -> Sample:
    times = []
    owner = _waiter(lock)
    _read_until(owner, b"?!")
    for _ in range(TIMES):
        heir = _waiter(lock)
        _read_until(heir, b"?")
        time.sleep(0.1)
        begin = time.perf_counter()
        owner.kill()
        _read_until(heir, b"!")
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


def _read_until(child: subprocess.Popen[bytes], word: bytes, said: bytes = b"") -> bytes:
    """Read what a child says until a word is in it; all that was read."""
    pipe = child.stderr or child.stdout
    assert pipe is not None
    while word not in said:
        assert select.select([pipe], [], [], 30)[0], f"it did not say {word!r} within 30 s, but {said!r}"
        more = os.read(pipe.fileno(), 65536)
        assert more, f"it ended before it said {word!r}, and said {said!r}"
        said += more
    return said
