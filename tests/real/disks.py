"""Disks of a test's own, in a mount namespace that nobody else sees and that goes with its last process."""

import os
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.real.agents import Place


@contextmanager
def mounted(place: Place, *mount: str) -> Iterator[Path]:
    """Put the state of a place on a disk that `mount … POINT` mounts; yields the point as it is seen from here.

    Needs the capability `mount`.
    """
    point = place.root / "disk"
    point.mkdir()
    words = shlex.join([*mount, str(point)])
    script = f"mount --make-rprivate / && {words} && echo mounted && exec cat"
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as keeper:
        assert keeper.stdout is not None
        assert keeper.stdout.readline() == "mounted\n"
        place.state = point / "state"
        place.inside = ("nsenter", f"--mount=/proc/{keeper.pid}/ns/mnt")
        try:
            yield Path(f"/proc/{keeper.pid}/root{point}")
        finally:
            place.end()
            keeper.kill()


def fill(disk: Path) -> Path:
    """Take all the space that is left on a disk; the file that has it."""
    ballast = disk / "ballast"
    descriptor = os.open(ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for size in (1 << 16, 1 << 12, 1):
            while True:
                try:
                    os.write(descriptor, bytes(size))
                except OSError:
                    break
    finally:
        os.close(descriptor)
    return ballast
