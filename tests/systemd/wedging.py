"""The agent as a service runs it, with ports that wedge or wait when a file appears: what the watchdog is tested on.

Run as a program. The files are in ~/faults, named after what they cause:

- `stop-passing`, `hold-the-gil`, `deadlock`: the loop's one wait never ends, in Python, in C, on a lock. The file is
  taken away by that, so that the agent that follows is well.
- `slow-ledger`, `slow-files`: each call of the ledger, each durable write, waits as in fsync(2) until the file is gone.

WEDGING_HURRY=N asks the manager for an Nth of the patience.
"""

import ctypes
import faulthandler
import os
import select
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any, Final, cast

from ankita_agent.adapters.linux_wakeups import LinuxWakeups
from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.adapters.posix_processes import PosixProcesses
from ankita_agent.adapters.sd_notify import find_manager
from ankita_agent.adapters.state_directory import prepare_state_directory
from ankita_agent.adapters.system_clock import SystemClock
from ankita_agent.app.seat import Opened
from ankita_agent.app.world import World
from ankita_agent.cli.output import Teller, local_time
from ankita_agent.core.errors import AnkitaError
from ankita_agent.core.instants import Duration
from ankita_agent.ports.files import Descriptor
from ankita_agent.ports.ledger import Ledger
from ankita_agent.ports.readiness import Readiness
from ankita_agent.ports.wakeups import Happened
from ankita_agent.wiring.agent import AgentOptions, build_agent, ledger_opener
from ankita_agent.wiring.user import find_this_user

FAULTS: Final = os.path.expanduser("~/faults")


def comes(fault: str) -> bool:
    """Whether the fault is to happen now; it happens once."""
    try:
        os.unlink(f"{FAULTS}/{fault}")
    except FileNotFoundError:
        return False
    return True


def last(fault: str) -> None:
    """Wait for as long as the fault lasts."""
    while os.path.exists(f"{FAULTS}/{fault}"):
        select.select([], [], [], 0.01)


def stop_passing() -> None:
    """Wait for what nobody will set."""
    threading.Event().wait()


def hold_the_gil() -> None:
    """Sleep in C as a library does that never lets another thread run."""
    while True:
        ctypes.PyDLL(None).sleep(3600)


def lock_twice() -> None:
    """Wait for a lock that is ours."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


class WedgingWakeups(LinuxWakeups):
    """The loop's one wait, in which it may stay."""

    def wait(self, at_most: Duration) -> Happened:
        """Wait, or wedge."""
        if comes("stop-passing"):
            stop_passing()
        if comes("hold-the-gil"):
            hold_the_gil()
        if comes("deadlock"):
            lock_twice()
        return super().wait(at_most)


class SlowFiles(PosixFiles):
    """Files on a disk that may be slow."""

    def replace_all(self, directory: Descriptor, contents: Mapping[str, bytes]) -> None:
        """Replace, when the disk lets us."""
        last("slow-files")
        super().replace_all(directory, contents)


class SlowLedger:
    """A ledger on a disk that may be slow."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._ledger, name)

        def call(*arguments: Any, **options: Any) -> Any:
            last("slow-ledger")
            return method(*arguments, **options)

        return call


class Hurried:
    """A manager that is asked for a part of the patience."""

    def __init__(self, readiness: Readiness, part: int) -> None:
        self._readiness, self._part = readiness, part

    def be_patient(self, span: Duration) -> None:
        """Ask for a part of it, and never for less than the period."""
        period = self._readiness.watchdog or 0
        self._readiness.be_patient(Duration(max(min(span, period), span // self._part)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._readiness, name)


def main() -> int:
    """Run the agent; its exit status."""
    faulthandler.enable()
    user = find_this_user(dict(os.environ))
    options = AgentOptions(
        standby=True,
        inherit_environment=False,
        in_terminal=False,
        umask=os.umask(0o077),
        tell=Teller(ranked=True),
        local=local_time,
    )
    readiness = Hurried(find_manager(user.environment, os.getpid()), int(os.environ.get("WEDGING_HURRY", "1")))
    wakeups = WedgingWakeups((signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP))
    world = World(SystemClock(), wakeups, PosixProcesses(options.umask), cast(Readiness, readiness))
    prepare_state_directory(user.places.state)
    opener = ledger_opener(user.places.ledger, world.processes.this_process().boot)

    def open_slow(damaged: bool) -> Opened:
        last("slow-ledger")
        opened = opener(damaged)
        return Opened(cast(Ledger, SlowLedger(opened.ledger)), opened.set_aside)

    try:
        return build_agent(user, options, world, SlowFiles(), open_slow, "systemd").run()
    except AnkitaError as fault:
        print(fault, file=sys.stderr)
        return fault.exit_code


if __name__ == "__main__":
    sys.exit(main())
