"""Many agents released at the same moment; run as `python -m tests.real.herd COUNT ROUNDS`.

Each round forks COUNT agents from this process, which has imported everything already, so that they reach the
locks within a few milliseconds of each other. When all but one have ended, that one is told to end. For each
round a line says how they ended, in that order; what agent M of round N says goes to the file said-N-M.
"""

import os
import signal
import sys

from ankita_agent.adapters import (
    attempt_outputs,
    linux_wakeups,
    posix_processes,
    routine_files,
    sqlite_ledger,
    yaml_files,
)
from ankita_agent.app import agent
from ankita_agent.cli.main import run_command
from ankita_agent.wiring import agent as wiring

IMPORTED = (wiring, attempt_outputs, linux_wakeups, posix_processes, routine_files, sqlite_ledger, yaml_files, agent)
"""What each would import in a time of its own."""


def race(count: int, number: int) -> str:
    """One round; how the agents ended."""
    gate, release = os.pipe()
    pids = set()
    for each in range(count):
        pids.add(pid := os.fork())
        if not pid:
            os.close(release)
            os._exit(_live(gate, f"said-{number}-{each}"))
    os.close(gate)
    os.close(release)
    ends = []
    while len(pids) > 1:
        pid, status = os.wait()
        pids.discard(pid)
        ends.append(os.waitstatus_to_exitcode(status))
    (owner,) = pids
    os.kill(owner, signal.SIGTERM)
    ends.append(os.waitstatus_to_exitcode(os.waitpid(owner, 0)[1]))
    return " ".join(map(str, ends))


def _live(gate: int, said: str) -> int:
    """Be an agent as soon as the gate opens; its exit status."""
    try:
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT, 0o600), 2)
        os.read(gate, 1)
        return run_command(["run"])
    except BaseException:  # noqa: BLE001 - a fork of this process must never go on as its parent
        return 99


if __name__ == "__main__":
    for number in range(int(sys.argv[2])):
        print(race(int(sys.argv[1]), number), flush=True)
