"""Noticing sleep and clock changes from one pass to the next.

The problem: a slot that is overdue means different things. The machine slept (CLOCK_BOOTTIME moved,
CLOCK_MONOTONIC did not); somebody set the clock (CLOCK_REALTIME moved, CLOCK_BOOTTIME did not); or the loop was
only late.

The rule: a sleep and a step forward of up to three hours are absences, and catch-up decides. A step back of up
to three hours changes nothing: the rows decide, nothing fires twice. A step back beyond that lowers the marks.
A step forward beyond that is not believed until the clock has stood for ten minutes: until then nothing is
claimed and nothing recorded, so that a clock that comes back finds everything as it was: no mark is lowered then.

tests/unit/test_timekeeping.py holds it. Source: cronie's classes of clock jumps (cron.c), clock_gettime(2).
"""

from dataclasses import dataclass

from ankita_agent.core.instants import HOUR, MINUTE, SECOND, Boottime, Duration, Instant, Monotonic
from ankita_agent.core.outcomes import Reason
from ankita_agent.core.passes import PROMPT, Absence
from ankita_agent.ports.clock import Clock

LEAP = Duration(3 * HOUR)
"""A step beyond this is a correction of a wrong clock, not a change of time of day."""

STAND = Duration(10 * MINUTE)
"""How long a clock that leapt forward must stand, counted awake, before it is believed."""

_NO_TIME = Duration(0)

_NAP = Duration(2 * SECOND)
"""Less than this between BOOTTIME and MONOTONIC is their reading one after the other, not a sleep."""


@dataclass(frozen=True, slots=True)
class Reading:
    """All clocks at one moment."""

    now: Instant
    awake: Monotonic
    boot: Boottime


@dataclass(frozen=True, slots=True)
class Noticed:
    """What happened since the last reading. `lowered` when the clock was set back by more than LEAP."""

    slept: bool = False
    lowered: bool = False
    stepped: Duration = _NO_TIME


class Timekeeper:
    """Keeps the absences that are not yet accounted for, and whether the clock is believed."""

    def __init__(self, clock: Clock, settle: Duration) -> None:
        self._clock = clock
        self.settle_time = settle
        self.reading = self._read()
        self._settled_at = self.reading.awake
        self._held_until: Monotonic | None = None
        self._leapt_from = self.reading.now
        self._known: Instant | None = None
        self.absences: list[Absence] = []
        self.woke_at: Instant | None = None

    def _read(self) -> Reading:
        return Reading(self._clock.now(), self._clock.awake(), self._clock.since_boot())

    def booted_at(self) -> Instant:
        """When this boot began, by the clock as it is now; for display and lateness, never an identity."""
        return Instant(self.reading.now - self.reading.boot)

    def look(self) -> Noticed:
        """Read the clocks and say what happened since the last look."""
        before, self.reading = self.reading, self._read()
        slept = (self.reading.boot - before.boot) - (self.reading.awake - before.awake)
        stepped = Duration((self.reading.now - before.now) - (self.reading.boot - before.boot))
        if stepped > LEAP:
            self._hold(before.now)
        elif stepped < -LEAP:
            undone = self._held_until is not None and self.reading.now >= self._leapt_from - LEAP
            self._held_until = None
            if not undone:
                self.absences.clear()
                return Noticed(slept > _NAP, lowered=True, stepped=stepped)
        elif stepped > PROMPT:
            self.be_absent(before.now, Reason.CLOCK)
        if slept > _NAP:
            self.woke_at = self.reading.now
            self.restart_settling()
            self.be_absent(before.now, Reason.ASLEEP)
        return Noticed(slept > _NAP, lowered=self._believe(), stepped=stepped)

    def be_absent(self, since: Instant, reason: Reason, until: Instant | None = None) -> None:
        """Note that no owner could fire from `since` until now; a moment too short to matter is not noted."""
        end = self.reading.now if until is None else until
        if end - since >= PROMPT:
            self.absences.append(Absence(since, end, reason))

    def without_ledger(self, since: Instant | None) -> None:
        """The ledger could not be written from `since` until now; None when it can be."""
        if since is not None:
            self.absences = [absence for absence in self.absences if absence.reason is not Reason.LEDGER]
            self.be_absent(since, Reason.LEDGER)

    def doubt(self, known: Instant) -> None:
        """Do not believe the clock until it has stood: it shows a time from before `known`, which has rows."""
        self._held_until = Monotonic(self.reading.awake + STAND)
        self._leapt_from = self.reading.now
        self._known = known

    def restart_settling(self) -> None:
        """Begin the settle time: after a start and after a wake-up, before anything is caught up."""
        self._settled_at = Monotonic(self.reading.awake + self.settle_time)

    @property
    def settling(self) -> Duration | None:
        """How much settle time is left, or None."""
        left = self._settled_at - self.reading.awake
        return Duration(left) if left > 0 else None

    @property
    def held(self) -> Duration | None:
        """How long the clock must still stand before it is believed, or None."""
        if self._held_until is None:
            return None
        return Duration(max(0, self._held_until - self.reading.awake))

    def _hold(self, leapt_from: Instant) -> None:
        if self._held_until is None:
            self._leapt_from = leapt_from
        self._held_until = Monotonic(self.reading.awake + STAND)

    def _believe(self) -> bool:
        """End the hold when the clock has stood; whether it stands before what has rows, so that marks must fall."""
        if self._held_until is None or self.reading.awake < self._held_until:
            return False
        self._held_until = None
        self.be_absent(self._leapt_from, Reason.CLOCK)
        return self._known is not None and self._known > self.reading.now + LEAP
