"""The clocks of this machine."""

import sys
import time

from ankita_agent.core.instants import Boottime, Instant, Monotonic


class SystemClock:
    """ports.clock.Clock over clock_gettime(2).

    macOS has no CLOCK_BOOTTIME: there CLOCK_MONOTONIC counts sleep and CLOCK_UPTIME_RAW does not.
    Source: clock_gettime(2), macOS clock_gettime(3).
    """

    def now(self) -> Instant:
        """Wall time."""
        return Instant(time.time_ns())

    if sys.platform == "darwin":

        def awake(self) -> Monotonic:
            """Time awake."""
            return Monotonic(time.clock_gettime_ns(time.CLOCK_UPTIME_RAW))

        def since_boot(self) -> Boottime:
            """Time since boot, sleep included."""
            return Boottime(time.clock_gettime_ns(time.CLOCK_MONOTONIC))

    else:

        def awake(self) -> Monotonic:
            """Time awake."""
            return Monotonic(time.clock_gettime_ns(time.CLOCK_MONOTONIC))

        def since_boot(self) -> Boottime:
            """Time since boot, sleep included."""
            return Boottime(time.clock_gettime_ns(time.CLOCK_BOOTTIME))
