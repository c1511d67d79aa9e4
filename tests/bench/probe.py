"""The smallest program whose first instruction can be dated, and how late its starts were.

With a C compiler: a static program that reads CLOCK_REALTIME first thing and appends the eight bytes to a
file (one write(2) with O_APPEND, so that no two records mix). Without one: sh and date(1), which adds about
2 ms to each start, for every scheduler alike; the table says which it was.
"""

import shutil
import struct
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ankita_agent.core.instants import SECOND, Instant

_SOURCE: Final = """
#include <fcntl.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t at = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    int file = open(argv[argc - 1], O_WRONLY | O_APPEND | O_CREAT, 0600);
    return write(file, &at, sizeof at) == sizeof at ? 0 : 1;
}
"""


@dataclass(frozen=True, slots=True)
class Probe:
    """A command that notes when it started, and the file in which it does; `kind` names how."""

    argv: tuple[str, ...]
    record: Path
    kind: str

    def starts(self) -> list[Instant]:
        """When each process started, earliest first."""
        if not self.record.exists():
            return []
        content = self.record.read_bytes()
        if self.kind == "sh and date":
            return sorted(Instant(int(line)) for line in content.split())
        return sorted(Instant(at) for (at,) in struct.iter_unpack("=q", content[: len(content) // 8 * 8]))

    def wait_for_starts(self, count: int, due: Instant) -> list[Instant]:
        """Poll until that many have started, or until 30 s after they were due; return those that have.

        Sleeps until then first: a poll in the moment that is measured would take one of few cores.
        """
        time.sleep(max(0.0, (due - time.time_ns()) / SECOND) + 1.0)
        while len(self.starts()) < count and time.time_ns() < due + 30 * SECOND:
            time.sleep(0.25)
        return self.starts()


def make_probe(directory: Path) -> Probe:
    """A fresh probe whose record is empty, in a directory of its own."""
    record = directory / "starts"
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return Probe(("/bin/sh", "-c", f"exec date +%s%N >>'{record}'"), record, "sh and date")
    source, program = directory / "probe.c", directory / "probe"
    source.write_text(_SOURCE)
    subprocess.run([compiler, "-O2", "-static", "-o", str(program), str(source)], check=True)
    return Probe((str(program), str(record)), record, "a static program")


def next_multiple(span: int, ahead: int) -> Instant:
    """The first instant that is a multiple of `span` and at least `ahead` from now."""
    return Instant(-(-(time.time_ns() + ahead) // span) * span)
