"""A clock that only moves when it is told to, each way that real clocks can move apart."""

from ankita_agent.core.instants import Boottime, Duration, Instant, Monotonic, parse_instant

START = parse_instant("2026-03-02T07:00:00Z")


class FakeClock:
    """ports.clock.Clock whose three readings can be made to disagree."""

    def __init__(self, now: Instant = START) -> None:
        self._now = now
        self._awake = Monotonic(1_000_000_000_000)
        self._since_boot = Boottime(1_000_000_000_000)

    def now(self) -> Instant:
        """Wall time."""
        return self._now

    def awake(self) -> Monotonic:
        """Time awake."""
        return self._awake

    def since_boot(self) -> Boottime:
        """Time since boot, sleep included."""
        return self._since_boot

    def pass_time(self, span: Duration) -> None:
        """Time goes by, awake."""
        self._now = Instant(self._now + span)
        self._awake = Monotonic(self._awake + span)
        self._since_boot = Boottime(self._since_boot + span)

    def sleep_machine(self, span: Duration) -> None:
        """The machine is suspended: awake time stands still."""
        self._now = Instant(self._now + span)
        self._since_boot = Boottime(self._since_boot + span)

    def step(self, by: int) -> None:
        """Somebody sets the wall clock, forward or (negative) back; nothing else moves."""
        self._now = Instant(self._now + by)
