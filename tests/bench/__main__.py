"""`python -m tests.bench [NAME …]`: raw numbers of every measurement, or of those named, then one table.

Takes about eight minutes, most of them waiting for cron. A bound that is missed is a finding and no fault:
the exit status is 0 unless the bench itself could not measure. TMPDIR names the disk that is measured.
"""

import os
import platform
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Final

from tests.bench import idle, inside, loading, service, standby, starts
from tests.bench.measured import Sample, Sheet

MEASUREMENTS: Final[dict[str, starts.Measurement]] = {
    "each-second": starts.each_second,
    "at-once": starts.at_once,
    "idle": idle.idle,
    "standby": standby.hand_over,
    "status": loading.status,
    "load": loading.load,
    "parts-of-load": inside.parts_of_load,
    "passes": inside.passes,
    "next-slot": inside.next_slot,
    "claims": inside.claims,
    "ping": service.ping,
    "service": service.start,
    "install": service.install,
}


def main(names: list[str]) -> int:
    """Measure one after another, each in a directory of its own, and print."""
    unknown = [name for name in names if name not in MEASUREMENTS]
    if unknown:
        print(f"no measurement is named {unknown[0]!r}; there are: {', '.join(MEASUREMENTS)}", file=sys.stderr)
        return 2
    sheet, failed = Sheet(), False
    with tempfile.TemporaryDirectory(prefix="ankita-bench-") as scratch:
        _show_machine(Path(scratch), sheet)
        for name in names or MEASUREMENTS:
            directory = Path(scratch) / name
            directory.mkdir()
            try:
                MEASUREMENTS[name](directory, sheet)
            except Exception:  # noqa: BLE001 - the others can still be made
                failed = True
                traceback.print_exc()
                sheet.beside(name, "could not be measured; see above")
    print(f"\n{sheet.table()}")
    return int(failed)


def _show_machine(directory: Path, sheet: Sheet) -> None:
    kernel = f"{platform.system()} {platform.release()}"
    python = f"Python {platform.python_version()}"
    load = f"load {os.getloadavg()[0]:.1f} at the start"
    print(f"{platform.machine()}, {os.cpu_count()} cores, {kernel}, {python}, {load}")
    synced, made = _fsync(directory / "synced"), _made(directory)
    sheet.raw(synced)
    sheet.raw(made)
    sheet.beside("this disk: fsync(2) after a write of 4 KiB", synced)
    sheet.beside("this disk: making an empty file, as each start does for its output", made)


def _fsync(path: Path) -> Sample:
    numbers = []
    with path.open("ab", buffering=0) as file:
        for _ in range(100):
            file.write(bytes(4096))
            begin = time.perf_counter()
            os.fsync(file)
            numbers.append((time.perf_counter() - begin) * 1000)
    return Sample("fsync(2)", "ms", tuple(numbers))


def _made(directory: Path) -> Sample:
    """From 0.01 ms to 0.3: for five minutes ext4 passes over each inode of a removed file (recently_deleted)."""
    numbers = []
    for number in range(200):
        begin = time.perf_counter()
        os.close(os.open(directory / f"made-{number}", os.O_WRONLY | os.O_CREAT, 0o600))
        numbers.append((time.perf_counter() - begin) * 1000)
    return Sample("a file made", "ms", tuple(numbers))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
