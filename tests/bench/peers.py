"""The schedulers beside which we measure ourselves: APScheduler and Debian's cron.

Both start the same probe as we do (probe.py). No peer is tuned beyond what its users do.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ankita_agent.core.instants import MINUTE, SECOND, Instant, utc_datetime
from tests.bench.probe import Probe
from tests.capabilities import why_missing
from tests.real.agents import ROOT

APSCHEDULER: Final = "APScheduler"
CRON: Final = "Debian cron"


def why_no_apscheduler() -> str | None:
    """Why it cannot be measured here, or None when it can."""
    return None if importlib.util.find_spec("apscheduler") else "needs the extra `bench`"


def why_no_cron() -> str | None:
    """Why it cannot be measured here, or None when it can."""
    cron = None if shutil.which("cron") else "needs cron(8)"
    return why_missing("root") or why_missing("mount") or cron


@contextmanager
def apscheduler(kind: str, when: str, count: int, *command: str) -> Iterator[int]:
    """A BackgroundScheduler with 20 threads in a process of its own (apscheduler_jobs.py), started; its pid.

    Each job is a subprocess.run() of the command, as an APScheduler job that starts one is written.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "tests.bench.apscheduler_jobs", kind, when, str(count), *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'agent'}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as scheduler:
        assert scheduler.stdout is not None
        assert scheduler.stdout.readline(), "APScheduler did not start; it says why above"
        yield scheduler.pid
        scheduler.communicate()  # it ends with its stdin


@contextmanager
def cron(directory: Path, due: Instant, count: int, probe: Probe) -> Iterator[None]:
    """Debian's cron with one crontab of `count` lines for the minute of `due`.

    It runs in mount and PID namespaces of its own: its spool, /etc/crontab, /etc/cron.d and /run are ours, so
    it neither sees nor runs anything of the machine, and all of it dies with its first process. cron sleeps
    whole seconds until the minute is surely there, so a second of the lateness is the grain of its clock.
    """
    assert due % MINUTE == 0
    spool, nothing, empty = directory / "spool", directory / "nothing", directory / "empty"
    spool.mkdir()
    nothing.mkdir()
    empty.touch()
    _write_crontab(spool / "root", due, count, " ".join(probe.argv))
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
        try:
            yield
        finally:
            daemon.kill()  # unshare; --kill-child takes cron with it


def _write_crontab(path: Path, due: Instant, count: int, command: str) -> None:
    moment = utc_datetime(due)
    when = f"{moment.minute} {moment.hour} {moment.day} {moment.month} *"
    path.write_text('MAILTO=""\n' + f"{when} {command.replace('%', chr(92) + '%')}\n" * count)
    path.chmod(0o600)


def seconds(instant: Instant) -> str:
    """An instant as APScheduler's program takes it."""
    return f"{instant / SECOND:.3f}"
