"""The newest lines of a unit in the user's journal: journalctl(1)."""

import subprocess
from collections.abc import Mapping
from typing import Final

from ankita_agent.core.instants import SECOND, Duration, in_seconds

PATIENCE: Final = Duration(3 * SECOND)
LINES: Final = 8


def newest_lines(
    journalctl: str, unit: str, environment: Mapping[str, str], patience: Duration = PATIENCE
) -> list[str]:
    """The lines, oldest first; none where they cannot be read, as by a user whose machine keeps no lasting journal."""
    command = [journalctl, "--user", "--unit", unit, "--lines", str(LINES), "--output=cat", "--quiet", "--no-pager"]
    try:
        done = subprocess.run(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=in_seconds(patience),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line for line in done.stdout.decode("utf-8", "replace").splitlines() if line.strip()]
