"""How late others start processes that are all due at once: APScheduler and Debian's cron.

Both start the same probe as we do (probe.py) 200 times at one instant. No peer is tuned beyond what its
users do.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from ankita_agent.core.instants import MINUTE, SECOND, Instant, utc_datetime
from tests.bench.measured import LeftOut, Measured, lateness
from tests.bench.probe import make_probe, next_multiple, until_shortly_after
from tests.capabilities import why_missing

RUNS: Final = 200
_CRON: Final = "Debian cron"
_APSCHEDULER: Final = "APScheduler"


def apscheduler(directory: Path) -> Measured | LeftOut:
    """BackgroundScheduler in a process of its own, 20 worker threads, 200 jobs of one date, no misfire limit.

    Each job is a subprocess.run() of the probe, as an APScheduler job that starts a command is written.
    """
    if importlib.util.find_spec("apscheduler") is None:
        return LeftOut(_APSCHEDULER, "needs the extra `bench`")
    probe = make_probe(directory)
    due = next_multiple(SECOND, ahead=3 * SECOND)
    with subprocess.Popen(
        [sys.executable, "-m", "tests.bench.apscheduler_jobs", str(due), str(RUNS), *probe.argv],
        stdin=subprocess.PIPE,
    ) as scheduler:
        starts = probe.wait_for_starts(RUNS, until_shortly_after(due))
        scheduler.communicate()  # it ends with its stdin
    return lateness(_APSCHEDULER, f"one second, 20 threads; {probe.kind}", due, starts, RUNS)


def cron(directory: Path) -> Measured | LeftOut:
    """Debian's cron with one crontab of 200 lines for the same minute.

    It runs in mount and PID namespaces of its own: its spool, /etc/crontab, /etc/cron.d and /run are ours, so
    it neither sees nor runs anything of the machine, and all of it dies with its first process. cron sleeps
    whole seconds until the minute is surely there, so a second of the lateness is the grain of its clock.
    """
    lacking = (
        why_missing("root") or why_missing("mount") or (None if shutil.which("cron") else "needs cron(8)")
    )
    if lacking:
        return LeftOut(_CRON, lacking)
    probe = make_probe(directory)
    due = next_multiple(MINUTE, ahead=5 * SECOND)
    spool, nothing, empty = directory / "spool", directory / "nothing", directory / "empty"
    spool.mkdir()
    nothing.mkdir()
    empty.touch()
    _write_crontab(spool / "root", due, " ".join(probe.argv))
    script = (
        'set -e; mount --bind "$1" /var/spool/cron/crontabs; mount --bind "$2" /etc/cron.d; '
        'mount --bind "$3" /etc/crontab; mount -t tmpfs tmpfs /run; exec cron -f'
    )
    isolated = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    with subprocess.Popen(
        [*isolated, "sh", "-c", script, "sh", str(spool), str(nothing), str(empty)],
        stdin=subprocess.DEVNULL,
        env={**os.environ, "TZ": "UTC"},
    ) as daemon:
        starts = probe.wait_for_starts(RUNS, until_shortly_after(due))
        daemon.kill()  # unshare; --kill-child takes cron with it
    return lateness(_CRON, f"one minute, one crontab; {probe.kind}", due, starts, RUNS)


def _write_crontab(path: Path, due: Instant, command: str) -> None:
    moment = utc_datetime(due)
    when = f"{moment.minute} {moment.hour} {moment.day} {moment.month} *"
    path.write_text('MAILTO=""\n' + f"{when} {command.replace('%', chr(92) + '%')}\n" * RUNS)
    path.chmod(0o600)
