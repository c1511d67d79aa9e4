"""Progress, shown to whoever judges us; and the patience that is asked of them while the disk is slow.

The problem: the one thread that makes progress is the one that waits in fsync(2), which takes milliseconds on most
days and minutes on some disks (a full USB drive, a resync, a laptop's disk on its way up). A watchdog that cannot
tell that from a deadlock kills a healthy agent again and again; one that is set for the worst disk never acts.

The rule: a ping says that a pass finished in order, and nothing else does. Around every call that may wait for the
disk (every method of the ledger, and the durable writes of `Files`) the judges are asked for `LONGEST_DISK_WAIT`;
afterwards they wait for what was left of their period before it. So time on the disk does not count, no other time is
given away, and a pass that goes round and round through the ledger without finishing is still ended. Messages: two
for a call; a pass makes a few of them, however many routines start.

tests/unit/test_patience.py and tests/systemd/test_watchdog.py hold it. Rejected: a thread that pings (it goes on
pinging for a dead loop); a ping after each call (an endless pass would be alive); a longer period for all (a wedged
agent would stay for longer).
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, Final, cast

from ankita_agent.app.claim import Progress, Role
from ankita_agent.core.instants import MINUTE, SECOND, Duration
from ankita_agent.ports.clock import Clock
from ankita_agent.ports.files import Files
from ankita_agent.ports.ledger import Ledger
from ankita_agent.ports.readiness import Readiness

LONGEST_DISK_WAIT: Final = Duration(5 * MINUTE)
"""How long one call may wait for the disk and be called busy."""

LEAST_LEFT: Final = SECOND
"""What a judge is asked for at least after a wait, however little was left before it."""

DURABLE: Final = frozenset({"replace", "replace_all", "create"})
"""The methods of `Files` that return when the disk has what they wrote. No standby's thread calls them."""

Waiting = Callable[[], AbstractContextManager[None]]


class Patience:
    """Shows progress to the manager and in the life file. For the thread of the loop alone.

    `stamp` writes the life file; until it is set there is none. One for each agent process: what a manager was
    asked for outlives a term. Limit: the stamp itself is not waited for with patience; it is small, written in
    place and not durable.
    """

    def __init__(self, clock: Clock, readiness: Readiness) -> None:
        self._clock = clock
        self._readiness = readiness
        self._last = clock.awake()
        self._waited = Duration(0)
        self._is_waiting = False
        self._shown: Progress | None = None
        self._passes = 0
        self.stamp: Callable[[Progress], None] | None = None

    def progress(self, role: Role, *, busy: bool, trouble: str = "") -> None:
        """A pass finished in order. The ping goes first: it must not wait for a disk."""
        self._readiness.progress()
        self._passes += 1
        self._last, self._waited = self._clock.awake(), Duration(0)
        self._show(Progress(self._last, self._passes, busy, role, trouble))

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While this lasts we may wait for the disk; within itself it changes nothing."""
        if self._is_waiting:
            yield
            return
        self._is_waiting = True
        began = self._clock.awake()
        self._readiness.be_patient(Duration(max(LONGEST_DISK_WAIT, self._left())))
        self._show_patience(Duration(self._waited + LONGEST_DISK_WAIT))
        try:
            yield
        finally:
            self._waited = Duration(self._waited + self._clock.awake() - began)
            self._show_patience(self._waited)
            self._readiness.be_patient(Duration(max(LEAST_LEFT, self._left())))
            self._is_waiting = False

    def _left(self) -> int:
        """What is left of the manager's period; nothing when nobody watches."""
        period = self._readiness.watchdog
        return 0 if period is None else period - (self._clock.awake() - self._last - self._waited)

    def _show_patience(self, patience: Duration) -> None:
        if self._shown is not None:
            self._show(replace(self._shown, patience=patience))

    def _show(self, progress: Progress) -> None:
        self._shown = progress
        if self.stamp is None:
            return
        try:
            self.stamp(progress)
        except OSError:  # a broken disk; the manager has been told
            pass


def patient_ledger(ledger: Ledger, waiting: Waiting) -> Ledger:
    """The same ledger; every call of a method, also of one that is new tomorrow, is a wait for the disk."""
    return cast(Ledger, _Patient(ledger, waiting, None))


def patient_files(files: Files, waiting: Waiting) -> Files:
    """The same files; the durable writes are waits for the disk."""
    return cast(Files, _Patient(files, waiting, DURABLE))


class _Patient:
    """An object whose methods, or those of these names, are called within `waiting`."""

    def __init__(self, inner: object, waiting: Waiting, names: frozenset[str] | None) -> None:
        self._inner = inner
        self._waiting = waiting
        self._names = names

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if self._names is not None and name not in self._names:
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            with self._waiting():
                return found(*arguments, **options)

        return call
