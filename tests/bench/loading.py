"""What people wait for: a command in the shell, and the start of an agent with very many routines."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.bench.measured import Sample, Sheet
from tests.bench.mix import sleeping_file
from tests.real.agents import Place

TIMES: Final = 20
MANY: Final = 10_000
STARTS: Final = 3


def status(directory: Path, sheet: Sheet) -> None:
    """`status --json` of a running agent with 50 routines, from the start of the process to its end."""
    sheet.begin("status --json")
    with Place(directory) as place:
        place.write(sleeping_file(50))
        place.start()
        seen = Sample("status --json", "ms", tuple(_timed(place.status) for _ in range(TIMES)))
    bare = _interpreter()
    sheet.raw(seen)
    sheet.raw(bare)
    sheet.figure("5 status --json, 50 routines", "median <= 150 ms", seen.short(), passed=seen.median <= 150)
    sheet.beside("of which the interpreter alone", bare)


def load(directory: Path, sheet: Sheet) -> None:
    """The start of an agent over 10 000 routines that it has not seen before, until they are in force."""
    sheet.begin(f"{MANY} routines loaded")
    numbers = []
    for number in range(STARTS):
        root = directory / str(number)
        root.mkdir()
        with Place(root) as place:
            place.write(sleeping_file(MANY))
            numbers.append(_timed(lambda place=place: place.start()))  # type: ignore[misc]
    bare = _interpreter()
    raw = Sample("from exec to `in force`", "ms", tuple(numbers))
    seen = Sample("without the interpreter", "ms", tuple(number - bare.median for number in numbers))
    for sample in (raw, bare, seen):
        sheet.raw(sample)
    sheet.figure(f"5 {MANY} routines, new, in force", "median <= 3000 ms", seen.short(), passed=seen.median <= 3000)


def _interpreter() -> Sample:
    times = tuple(_timed(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)) for _ in range(TIMES))
    return Sample("the interpreter alone", "ms", times)


def _timed(do: Callable[[], object]) -> float:
    begin = time.perf_counter()
    do()
    return (time.perf_counter() - begin) * 1000
