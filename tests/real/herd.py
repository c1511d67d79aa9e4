"""Many agents released at the same moment; run as `python -m tests.real.herd COUNT ROUNDS`.

Each round forks COUNT agents from this process, which has imported everything already, so that they reach the
locks within a few milliseconds of each other. Every agent owns until it is told to end. For each round a line
says how the agents ended, `owned` for one that owned; a fork has the file of its own words as stderr.
"""

import os
import signal
import sys
from pathlib import Path

from ankita_agent import wiring
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

IMPORTED = (
    wiring,
    attempt_outputs,
    linux_wakeups,
    posix_processes,
    routine_files,
    sqlite_ledger,
    yaml_files,
    agent,
)
"""What would take a different while in each."""


def race(count: int, said: str) -> str:
    """One round: release them together, wait until all but the owner have ended, end the owner."""
    gate, release = os.pipe()
    pids = set()
    for number in range(count):
        pids.add(pid := os.fork())
        if not pid:
            os.close(release)
            os._exit(_live(gate, f"{said}-{number}"))
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
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT, 0o600), 2)
    os.read(gate, 1)
    try:
        return run_command(["run"])
    except BaseException:
        return 99


if __name__ == "__main__":
    for number in range(int(sys.argv[2])):
        print(race(int(sys.argv[1]), f"{Path.cwd()}/said-{number}"), flush=True)
