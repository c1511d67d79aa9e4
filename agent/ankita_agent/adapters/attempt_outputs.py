"""The output of attempts as files whose middle can be cut out under a writer.

The problem: a script that loops can write gigabytes. Its output is a plain file opened with O_APPEND, shared
with any number of descendants, so nobody can be asked to stop writing, and every write goes to the end of the
file.

The rule: while the attempt runs, the blocks of the middle are given back to the file system with a hole
(fallocate(2), FALLOC_FL_PUNCH_HOLE): offsets and writers are not disturbed, the apparent size grows, the disk
does not. When it is over, the tail is copied behind the head, with a line between them that says how much
went, and the file is cut there. Where there are no holes (macOS, FAT), that last step is done while it runs.

The first and the last half of the limit are kept. The disk holds at most the limit and what is written
between two calls of `trim`. tests/real/test_attempts.py holds it, tests/unit/test_attempt_outputs.py the
cutting.

Rejected: a pipe (a descendant holds it open, and our death breaks it); RLIMIT_FSIZE (it would limit every
other file of the attempt); cutting by rename (the writer goes on in the old file).
"""

import ctypes
import os
import re
import sys
from collections.abc import Callable, Collection
from typing import Final

from ankita_agent.core.instants import Instant, utc_datetime
from ankita_agent.ports.outputs import Output

LIMIT: Final = 10 * 1024 * 1024
"""Bytes of output that are kept of a fire."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # linux/falloc.h
_LONGEST_TAIL = 1024 * 1024
_LONGEST_MARKER = 128
_NAME = re.compile(r".*-(\d+)\.log")
MakeHole = Callable[[int, int, int], bool]
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


def punch_hole(descriptor: int, start: int, end: int) -> bool:
    """Give the blocks of [start, end) back; False where the file system cannot make holes."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None)
    fallocate = getattr(libc, "fallocate64", libc.fallocate)  # musl has the one, glibc on 32 bits needs the other
    fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    done: int = fallocate(descriptor, _KEEP_SIZE | _PUNCH_HOLE, start, end - start)
    return done == 0


class AttemptOutputs:
    """ports.outputs.Outputs under `logs/` of an open state directory."""

    def __init__(self, state: int, limit: int = LIMIT, make_hole: MakeHole = punch_hole) -> None:
        self._state = state
        self._limit = limit
        self._make_hole = make_hole
        self._head = limit // 2
        self._tail = limit - self._head - _LONGEST_MARKER

    def open(self, routine: str, slot: Instant, fire: int) -> Output:
        """Open the file of a fire to append to."""
        log = f"logs/{routine}/{utc_datetime(slot):%Y%m%dT%H%M%SZ}-{fire}.log"
        try:
            return self._open(log, os.O_CREAT)
        except FileNotFoundError:
            self._make_directories(routine)
        return self._open(log, os.O_CREAT)

    def reopen(self, log: str) -> Output:
        """Open an existing one."""
        return self._open(log, 0)

    def trim(self, output: Output) -> int:
        """Free the middle of what is past the limit."""
        size = os.fstat(output.descriptor).st_size
        if size > self._limit and not self._make_hole(output.descriptor, self._head, size - self._tail):
            self._cut(output, size)
        return size

    def says(self, output: Output, text: str) -> bool:
        """Whether this attempt wrote exactly that text."""
        wanted = text.strip().encode()
        size = os.fstat(output.descriptor).st_size - output.start
        if not 0 <= size <= len(wanted) + 4096:
            return False
        return os.pread(output.descriptor, size, output.start).strip() == wanted

    def finish(self, output: Output) -> None:
        """Cut out the middle for good and close it."""
        try:
            size = os.fstat(output.descriptor).st_size
            if size > self._limit:
                self._cut(output, size)
        except OSError:  # the middle is a hole already; only the line that says so is missing
            pass
        finally:
            os.close(output.descriptor)

    def discard(self, output: Output) -> None:
        """Close it, and remove it when it is empty."""
        empty = os.fstat(output.descriptor).st_size == 0
        os.close(output.descriptor)
        if empty:
            try:
                os.unlink(output.log, dir_fd=self._state)
            except OSError:  # it stays, empty
                pass

    def last_lines(self, log: str, count: int) -> bytes:
        """The last `count` lines."""
        descriptor = self._open_at(log, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            size = os.fstat(descriptor).st_size
            begin = max(0, size - _LONGEST_TAIL)
            content = os.pread(descriptor, size - begin, begin)
        finally:
            os.close(descriptor)
        return b"".join(_LINE.findall(content)[-count:]) if count > 0 else b""

    def prune(self, routine: str, keep: int, spare: Collection[int]) -> None:
        """Remove the files of all but the newest `keep` fires."""
        directory = os.open(f"logs/{routine}", _DIRECTORY, dir_fd=self._state)
        try:
            names = os.listdir(directory)
            if len(names) <= keep:
                return
            fires = {int(match[1]): name for name in names if (match := _NAME.fullmatch(name))}
            for fire in sorted(fires, reverse=True)[keep:]:
                if fire not in spare:
                    os.unlink(fires[fire], dir_fd=directory)
        finally:
            os.close(directory)

    def _make_directories(self, routine: str) -> None:
        for directory in ("logs", f"logs/{routine}"):
            try:
                os.mkdir(directory, 0o700, dir_fd=self._state)
            except FileExistsError:
                pass

    def _open(self, log: str, flags: int) -> Output:
        descriptor = self._open_at(log, _FILE | os.O_APPEND | flags)
        return Output(log, descriptor, os.fstat(descriptor).st_size)

    def _open_at(self, log: str, flags: int) -> int:
        """Open a path below the state directory, following no link on the way."""
        logs, routine, name = log.split("/")
        outer = os.open(logs, _DIRECTORY, dir_fd=self._state)
        try:
            inner = os.open(routine, _DIRECTORY, dir_fd=outer)
        finally:
            os.close(outer)
        try:
            return os.open(name, flags, 0o600, dir_fd=inner)
        finally:
            os.close(inner)

    def _cut(self, output: Output, size: int) -> None:
        """Move the tail behind the head, in place, so that every reader and writer keeps the same file."""
        descriptor = self._open_at(output.log, _FILE)  # without O_APPEND, or pwrite(2) would append
        try:
            if not os.path.sameopenfile(descriptor, output.descriptor):
                return  # somebody put another file there; it is not ours to cut
            tail = os.pread(descriptor, self._tail, size - self._tail)
            lost = size - self._head - len(tail)
            marker = b"\n[ankita-agent: %d bytes of output were cut out here]\n" % lost
            written = os.pwrite(descriptor, marker + tail, self._head)
            os.ftruncate(descriptor, self._head + written)
        finally:
            os.close(descriptor)
