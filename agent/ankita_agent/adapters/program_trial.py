"""Whether a program begins at all, tried before a service is made of it.

The problem: a program that is found by way of a shell's PYTHONPATH works where it is called and not as a service, which
its manager then starts again for ever. The rule: it is executed once with the environment of a service.
`tests/contract/test_program_trial.py` holds it.
"""

import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

from ankita_agent.core.instants import SECOND, Duration, in_seconds

PATIENCE: Final = Duration(20 * SECOND)


def find_fault(program: Sequence[str], environment: Mapping[str, str], patience: Duration = PATIENCE) -> str:
    """The last line of what a command line says when it fails, or how it ended; empty where it does not fail.

    `environment` is all that it gets. One that has not ended within `patience` is killed, and counts as one that does.
    """
    try:
        done = subprocess.run(
            list(program),
            env=dict(environment),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=in_seconds(patience),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ""
    except OSError as error:
        return f"{program[0]}: {error.strerror}"
    if done.returncode == 0:
        return ""
    said = done.stderr.decode("utf-8", "replace").strip()
    return said.splitlines()[-1] if said else f"exit status {done.returncode}"
