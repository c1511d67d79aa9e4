"""What systemd says against a unit: systemd-analyze(1), `verify`.

The manager itself tells `bad-setting` and no more; why goes to its journal, which not everybody may read. The checker
reads the same files in the same places, drop-ins included, and says why within a few hundredths of a second.
`tests/contract/test_unit_check.py` holds it.
"""

import subprocess
from collections.abc import Mapping
from typing import Final

from ankita_agent.core.instants import SECOND, Duration, in_seconds

PATIENCE: Final = Duration(5 * SECOND)
_MOST: Final = 3
_SAYS_NOTHING: Final = "has a bad unit file setting."


def find_complaints(
    analyze: str, unit: str, environment: Mapping[str, str], patience: Duration = PATIENCE
) -> list[str]:
    """The first lines about a unit of the user's, by its name, without it; none where the checker does not answer.

    `analyze` is the path of systemd-analyze; of `environment`, HOME and XDG_RUNTIME_DIR lead it to the units.
    """
    try:
        done = subprocess.run(
            [analyze, "verify", "--user", "--man=no", unit],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=in_seconds(patience),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = done.stderr.decode("utf-8", "replace").splitlines()
    said = [line.removeprefix(f"{unit}: ").strip() for line in lines if not line.endswith(_SAYS_NOTHING)]
    return list(filter(None, said))[:_MOST]
