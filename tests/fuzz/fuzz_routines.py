"""Broken files on the whole way from bytes to routines: `python -m tests.fuzz.fuzz_routines --count 100000`.

Whatever the content, it is judged without an exception and within bounded time, and what is found is
consistent: routines or an error, every problem with a place that lies in the file and something to do about
it. Ends with 1, the input saved in the current directory, when one input breaks that.
"""

import argparse
import sys
import time
import traceback
from itertools import islice
from pathlib import Path
from random import Random

from ankita_agent.adapters.yaml_files import read_document
from ankita_agent.core.problems import Severity
from ankita_agent.core.routine import in_force
from ankita_agent.core.routine_file import judge
from ankita_agent.core.tree import lines_of
from tests.fuzz.broken_files import broken_files, seeds

SLOWEST = 2.0
"""Seconds of processor time that no single input may take."""


def examine(content: bytes) -> None:
    """Judge one input and check what is said of it. Raises whatever is wrong."""
    judgement = judge(read_document(content), "Europe/Berlin")
    lines = lines_of(content.decode("utf-8-sig", "replace"))
    errors = [each for each in judgement.problems if each.severity is Severity.ERROR]
    assert (judgement.file is None) == bool(errors), "routines or an error, and not both"
    for problem in judgement.problems:
        assert problem.problem, "a problem says something"
        assert problem.fix, "and what to do"
        assert problem.line >= 1, "it has a line"
        assert problem.column >= 1, "and a column"
        assert problem.line <= len(lines), "which is in the file"
        f"{problem.problem}{problem.fix}".encode()
    for routine in judgement.file.routines if judgement.file else ():
        assert in_force(routine).meaning
        for text in (*routine.run, *routine.env, *routine.env.values(), routine.cwd):
            assert "\0" not in text, "no text that a process cannot be given"
            text.encode()


def main() -> int:
    """Run as many inputs as asked for; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    began, slowest = time.perf_counter(), 0.0
    for number, content in enumerate(islice(broken_files(Random(options.seed), seeds()), options.count)):
        started = time.process_time()
        try:
            examine(content)
        except Exception:  # noqa: BLE001 - whatever it is, it is what was looked for
            traceback.print_exc()
            return _saved(content, options.seed, number)
        took = time.process_time() - started
        slowest = max(slowest, took)
        if took > SLOWEST:
            print(f"took {took:.1f} s")
            return _saved(content, options.seed, number)
    took = time.perf_counter() - began
    print(
        f"{options.count} inputs, seed {options.seed}: none broke it; "
        f"{options.count / took:.0f} inputs/s, the slowest {slowest * 1000:.0f} ms"
    )
    return 0


def _saved(content: bytes, seed: int, number: int) -> int:
    path = Path(f"fuzz-routines-{seed}-{number}.yaml")
    path.write_bytes(content)
    print(f"saved as {path}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
