"""The slots of a cron expression in a time zone: from the readings of a clock to instants.

The problem: twice a year a clock skips readings and shows others twice. croniter on aware times then fires a
daily 02:30 twice in autumn (7.0.0, 2026-10-25 in Europe/Berlin); most schedulers lose it in spring as well.

The rule, Debian's (cron(8), "daylight saving time"), told by what it means for a person:

* *fixed-time* (neither minute nor hour begins with `*`): "at 02:30" means the first instant at which the
  clock shows 02:30 or later, having not shown it before. So a reading that is skipped fires when the clocks
  have been put forward, several of them once, and together with a reading that comes there anyway; a
  reading that is shown twice fires the first time. A skipped whole day (Samoa, 2011-12-30) is no other
  case.
* every other is a rhythm: each instant whose reading matches. Nothing for skipped readings, both passes of
  repeated ones, so the real spacing stays.

Held by tests/unit/test_schedule.py (by hand) and test_schedule_against_cronsim.py (every change of the
clocks in ten years, over many zones). Rejected: aware datetimes (see `zones`), and walking minutes until
one exists, which is slow, and wrong where a change is not a whole number of minutes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ankita_agent.core.fields import CronFields
from ankita_agent.core.instants import DAY, Instant
from ankita_agent.core.zones import Reading, Segment, Zone


@dataclass(frozen=True, slots=True)
class WallClock:
    """Cron fields read off the clocks of a zone, for instants between EARLIEST and LATEST of `zones`."""

    fields: CronFields
    zone: Zone

    def next_after(self, after: Instant) -> Instant | None:
        """The first slot later than `after`."""
        segment = self.zone.segment_at(after)
        reading = segment.reading_at(after)
        if self.fields.fixed_time:  # what this zone's clocks showed before is over
            reading = Reading(max(reading, segment.read_until - 1))
        match = self.fields.reading_after(reading)
        while match is not None:
            slot = segment.instant_of(match)
            if slot < segment.end:
                return slot
            segment = self.zone.segment_at(segment.end)
            if self.fields.fixed_time:
                if match <= segment.first:
                    return segment.start
            elif segment.first != segment.read_until:
                match = self.fields.reading_after(Reading(segment.first - 1))
        return None

    def latest_until(self, until: Instant) -> Instant | None:
        """The last slot not later than `until`."""
        segment = self.zone.segment_at(until)
        reading = segment.reading_at(until)
        if self.fields.fixed_time:
            reading = Reading(max(reading, segment.read_until - 1))
        match = self.fields.reading_until(reading)
        while match is not None:
            if match >= self._fresh_from(segment):
                return segment.instant_of(match)
            if self.fields.fixed_time and match >= segment.read_until:
                return segment.start
            changed = segment.first != segment.read_until
            segment = self.zone.segment_at(Instant(segment.start - 1))
            if changed and not self.fields.fixed_time:
                match = self.fields.reading_until(segment.reading_at(Instant(segment.end - 1)))
        return None

    def count(self, start: Instant, end: Instant) -> int:
        """How many slots there are from `start`, inclusive, to `end`, exclusive."""
        at, total = start, 0
        while at < end:
            segment = self.zone.segment_at(at)
            stop = Instant(min(segment.end, end))
            first = Reading(max(segment.reading_at(at), self._fresh_from(segment)))
            total += self.fields.count(first, segment.reading_at(stop)) + self._stands_for_skipped(at, segment)
            at = stop
        return total

    def slots(self, start: Instant, end: Instant) -> Iterator[Instant]:
        """The slots from `start`, inclusive, to `end`, exclusive, in order: those that `count` counts."""
        at = start
        while at < end:
            segment = self.zone.segment_at(at)
            stop = Instant(min(segment.end, end))
            if self._stands_for_skipped(at, segment):
                yield at
            first = Reading(max(segment.reading_at(at), self._fresh_from(segment)))
            for reading in self.fields.matches(first, segment.reading_at(stop)):
                yield segment.instant_of(reading)
            at = stop

    def skipped_at(self, slot: Instant) -> tuple[Reading, Reading] | None:
        """The first and last skipped reading for which a fixed-time slot stands here, or None."""
        segment = self.zone.segment_at(slot)
        if not self.fields.fixed_time or slot != segment.start or segment.read_until >= segment.first:
            return None
        first = self.fields.reading_after(Reading(segment.read_until - 1))
        last = self.fields.reading_until(Reading(segment.first - 1))
        if first is None or last is None or first >= segment.first:
            return None
        return first, last

    def _fresh_from(self, segment: Segment) -> Reading:
        """From which reading on a match in the segment is a slot of its own."""
        if self.fields.fixed_time:
            return Reading(max(segment.first, segment.read_until))
        return segment.first

    def _stands_for_skipped(self, at: Instant, segment: Segment) -> bool:
        """Whether a slot stands here for skipped readings alone, with no match of its own."""
        return at == segment.start and self.skipped_at(at) is not None and not self._matches(segment.first)

    def _matches(self, reading: Reading) -> bool:
        return self.fields.count(reading, Reading(reading + 1)) == 1


def is_shown_again(zone: Zone, instant: Instant) -> bool:
    """Whether the clocks will show this instant's reading once more (they are put back within a day)."""
    segment = zone.segment_at(instant)
    reading = segment.reading_at(instant)
    while segment.end <= instant + DAY:
        segment = zone.segment_at(segment.end)
        if segment.first <= reading:
            return True
    return False
