"""`python -m tests.bench`: every measurement with its raw numbers, then one table. Takes a minute or two."""

import os
import platform
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.bench import ours, peers
from tests.bench.measured import LeftOut, Measured, table

MEASUREMENTS: Final[tuple[Callable[[Path], Measured | LeftOut], ...]] = (
    ours.ankita_agent,
    peers.apscheduler,
    peers.cron,
)


def main() -> None:
    """Measure one after another, each in a directory of its own, and print."""
    kernel = f"{platform.system()} {platform.release()}"
    print(f"{platform.machine()}, {os.cpu_count()} cores, {kernel}, Python {platform.python_version()}")
    results = []
    for measure in MEASUREMENTS:
        with tempfile.TemporaryDirectory(prefix="ankita-bench-") as directory:
            result = measure(Path(directory))
        match result:
            case LeftOut(what, why):
                print(f"\n{what}: left out: {why}", flush=True)
            case Measured(what=what):
                print(f"\n{what}, lateness in ms: {result.raw()}", flush=True)
                results.append(result)
    print(f"\n{table(results)}")


if __name__ == "__main__":
    main()
