"""The agent as a user service, in a booted systemd; and the ping, which is all that its watchdog hears.

The times are the manager's own: from the moment in which it started the main process, or saw the old one end, until
READY=1 had arrived. They hold what a person waits for, fork, interpreter and imports among it.
"""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.adapters.sd_notify import SdNotify
from ankita_agent.adapters.system_clock import SystemClock
from ankita_agent.app.claim import PROGRESS_AT, Role, write_progress
from ankita_agent.app.patience import Patience
from ankita_agent.core.instants import MINUTE, Duration
from tests import capabilities
from tests.bench.measured import LeftOut, Sample, Sheet
from tests.bench.mix import sleeping_file
from tests.real.waiting import until
from tests.rig import program
from tests.rig.container import Container
from tests.rig.guest import UNIT, Guest
from tests.systemd.services import Service

TIMES: Final = 9
INSTALLS: Final = 5
PINGS: Final = 300
STATUS: Final = "owner, term 1; running backup, briefing; next heartbeat at 2026-12-01 09:00"


def start(directory: Path, sheet: Sheet) -> None:
    """From the start of the process to READY=1, with 50 routines; and from a SIGKILL until it is ready again."""
    sheet.begin(f"{TIMES} starts and {TIMES} deaths of the service")
    figures = (("start to READY=1, 50 routines", 500), ("SIGKILL to READY=1", 2000))
    if (why := capabilities.why_missing("systemd")) is not None:
        for name, _ in figures:
            sheet.beside(name, LeftOut(name, why))
        return
    with _booted() as guest, Service(guest, watchdog=120) as service:
        service.write(sleeping_file(50))
        samples = [
            Sample("the service's start", "ms", tuple(_start(service) for _ in range(TIMES))),
            Sample("killed until it is ready", "ms", tuple(_death(service) for _ in range(TIMES))),
        ]
    for sample, (name, bound) in zip(samples, figures, strict=True):
        sheet.raw(sample)
        sheet.figure(f"6 {name}", f"median <= {bound} ms", sample.short(), passed=sample.median <= bound)


def install(directory: Path, sheet: Sheet) -> None:
    """`ankita-agent install` of a person who has nothing yet: until the agent is ready, and until the command ends.

    The command waits for more than that: for the first success of the starter's heartbeat.
    """
    sheet.begin("install to ready")
    name = "install to ready"
    if (why := capabilities.why_missing("systemd")) is not None:
        sheet.beside(name, LeftOut(name, why))
        return
    ready, ended = [], []
    for _ in range(INSTALLS):
        with _booted() as guest:
            begin = time.monotonic() * 1000
            done = guest.run("ankita-agent", "install")
            ended.append(time.monotonic() * 1000 - begin)
            assert done.code == 0, done.said
            ready.append(_stamp(guest, "ActiveEnter") - begin)
    sample = Sample("ankita-agent install, until READY=1", "ms", tuple(ready))
    whole = Sample("until the command ends", "ms", tuple(ended))
    sheet.raw(sample)
    sheet.raw(whole)
    sheet.figure(f"6 {name}", "median <= 2000 ms", sample.short(), passed=sample.median <= 2000)
    sheet.beside(whole.what, whole)


def ping(directory: Path, sheet: Sheet) -> None:
    """From the end of a pass until the ping is with the kernel; and what a wait for the disk adds to a pass."""
    sheet.begin(f"{PINGS} pings")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(directory / "notify"))
        readiness = SdNotify(str(directory / "notify"), Duration(2 * MINUTE))
        readiness.ready(STATUS)
        patience = Patience(SystemClock(), readiness)
        life = PosixFiles().open_file(PosixFiles().open_directory(str(directory)), "life")

        def wait_for_nothing() -> None:
            with patience.waiting():
                pass

        pings = _timed("the ping", readiness.progress, manager)
        bare = _timed("a wait for the disk, told to the manager", wait_for_nothing, manager)
        patience.stamp = lambda progress: PosixFiles().overwrite(life, PROGRESS_AT, write_progress(progress))
        patience.progress(Role.OWNER, busy=True)
        told = _timed("a wait for the disk, told to the manager and the life file", wait_for_nothing, manager)
        readiness.close()
        os.close(life)
    for sample in (pings, bare, told):
        sheet.raw(sample)
    p99 = pings.percentile(99)
    sheet.figure("6 ping path", "p99 <= 100 us", pings.short(), passed=p99 <= 100)
    sheet.beside(bare.what, bare)
    sheet.beside(told.what, told)


@contextmanager
def _booted() -> Iterator[Guest]:
    with program.prepared() as made, Container(binds=made.binds) as box:
        yield Guest(box, box.users[0])


def _start(service: Service) -> float:
    service.start()
    taken = _stamp(service.guest, "ActiveEnter") - _stamp(service.guest, "ExecMainStart")
    assert service.guest.systemctl("stop", UNIT).code == 0
    return taken


def _death(service: Service) -> float:
    pid = service.guest.main_pid() or service.start()
    begin = time.monotonic() * 1000
    service.guest.signal(pid, "KILL")
    until(lambda: service.guest.show("ActiveState", "MainPID")["ActiveState"] == "active" and _other(service, pid))
    return _stamp(service.guest, "ActiveEnter") - begin


def _other(service: Service, pid: int) -> bool:
    return service.guest.main_pid() not in (0, pid)


def _stamp(guest: Guest, name: str) -> float:
    """Milliseconds of CLOCK_MONOTONIC, which a container shares."""
    stamp = f"{name}TimestampMonotonic"
    return int(guest.show(stamp)[stamp]) / 1000


def _timed(what: str, do: Callable[[], object], manager: socket.socket) -> Sample:
    times = []
    for _ in range(PINGS):
        begin = time.perf_counter()
        do()
        times.append((time.perf_counter() - begin) * 1e6)
        manager.setblocking(False)
        try:
            while manager.recv(4096):
                pass
        except BlockingIOError:
            pass
    return Sample(what, "us", tuple(times))
