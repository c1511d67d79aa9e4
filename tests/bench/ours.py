"""How late we start processes that are all due at once: the whole agent, ledger and all."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from ankita_agent.core.instants import MINUTE, SECOND, Instant, utc_datetime
from tests.bench.measured import LeftOut, Measured, lateness
from tests.bench.probe import Probe, make_probe, next_multiple, until_shortly_after

RUNS: Final = 200
_OURS: Final = "ankita-agent"
_SOURCE: Final = Path(__file__).parents[2] / "agent"


def ankita_agent(directory: Path) -> Measured | LeftOut:
    """200 routines due in the same minute, concurrency 20; each fire is durable before its start."""
    probe = make_probe(directory)
    due = next_multiple(MINUTE, ahead=5 * SECOND)
    config, state = directory / "config", directory / "state"
    config.mkdir(mode=0o700)
    (config / "routines.yaml").write_text(_routines(due, probe))
    variables = {"ANKITA_CONFIG_DIR": str(config), "ANKITA_STATE_DIR": str(state), "PYTHONPATH": str(_SOURCE)}
    with (
        (directory / "said").open("w") as said,
        subprocess.Popen(
            [sys.executable, "-m", "ankita_agent", "run"],
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        ) as agent,
    ):
        starts = probe.wait_for_starts(RUNS, until_shortly_after(due))
        agent.send_signal(signal.SIGTERM)
    result = lateness(_OURS, f"one minute, 20 at a time; {probe.kind}", due, starts, RUNS)
    if isinstance(result, LeftOut):
        return LeftOut(result.what, f"{result.why}; it said: {(directory / 'said').read_text()[-400:]}")
    return result


def _routines(due: Instant, probe: Probe) -> str:
    moment = utc_datetime(due)
    when = f"{moment.minute} {moment.hour} {moment.day} {moment.month} *"
    argv = ", ".join(f"'{word}'" for word in probe.argv)
    routines = [f"  r{number:03}: {{schedule: '{when}', run: [{argv}]}}\n" for number in range(RUNS)]
    return "agent: {concurrency: 20}\ndefaults: {timezone: UTC}\nroutines:\n" + "".join(routines)
