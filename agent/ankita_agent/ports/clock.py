"""The machine's clocks."""

from typing import Protocol

from ankita_agent.core.instants import Boottime, Instant, Monotonic


class Clock(Protocol):
    """Reads time; never waits (the loop's one wait is the `Wakeups` port).

    Promise: `awake` and `since_boot` never go back within one boot. Limit: `now` moves as people and NTP set
    it, and `awake` means nothing to a process of another boot. Source: clock_gettime(2).
    """

    def now(self) -> Instant:
        """Wall time (CLOCK_REALTIME)."""
        ...

    def awake(self) -> Monotonic:
        """Time awake (CLOCK_MONOTONIC): stands still while the machine sleeps."""
        ...

    def since_boot(self) -> Boottime:
        """Time since boot, sleep included (CLOCK_BOOTTIME)."""
        ...
