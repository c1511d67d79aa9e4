"""How late programs start, from their slot to their first instruction: one each second, and 200 at once."""

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Final

from ankita_agent.core.instants import MILLISECOND, MINUTE, SECOND, Instant
from tests.bench import peers
from tests.bench.measured import LeftOut, Sample, Sheet, pooled
from tests.bench.probe import Probe, make_probe, next_multiple
from tests.real.agents import Place

SECONDS: Final = 70
RUNS: Final = 200
ROUNDS: Final = 3
OURS: Final = "ankita-agent"


def each_second(directory: Path, sheet: Sheet) -> None:
    """One routine due each second, and APScheduler in the same minute, half a second apart."""
    sheet.begin("start lateness of a routine due each second")
    ours, theirs = _probe(directory / "ours"), _probe(directory / "apscheduler")
    without = peers.why_no_apscheduler()
    with ExitStack() as both:
        place = both.enter_context(Place(directory / "ours"))
        place.write(_routines({"probe": "every 1s"}, ours))
        place.start()
        if without is None:
            half = Instant(next_multiple(SECOND, ahead=SECOND) + SECOND // 2)
            both.enter_context(peers.apscheduler("each", peers.seconds(half), 1, *theirs.argv))
        time.sleep(SECONDS)
    late = _late_each_second(OURS, ours, Instant(0))
    beside = (
        LeftOut(peers.APSCHEDULER, without)
        if without
        else _late_each_second(peers.APSCHEDULER, theirs, Instant(SECOND // 2))
    )
    sheet.raw(late)
    sheet.raw(beside)
    passed = late.median <= 5 and late.percentile(99) <= 25 and len(late.numbers) >= 60
    sheet.figure(
        f"1 start lateness, each second ({ours.kind})",
        "median <= 5 ms, p99 <= 25 ms",
        late.short(),
        passed=passed,
    )
    sheet.beside(f"{peers.APSCHEDULER}, each second; cron knows minutes only", beside)


def at_once(directory: Path, sheet: Sheet) -> None:
    """200 due in the same second, in rounds: ours, APScheduler, cron, and again.

    Nothing is removed between rounds: ext4 looks for a free inode longer where many went in the last seconds.
    """
    sheet.begin(f"{RUNS} due at once, {ROUNDS} rounds")
    names = (OURS, f"{OURS}, the very first time", peers.APSCHEDULER, peers.CRON)
    seen: list[list[Sample | LeftOut]] = [[], [], [], []]
    for number in range(ROUNDS):
        first, again = _ours_at_once(directory / f"{number}-ours")
        theirs = _apscheduler_at_once(directory / f"{number}-apscheduler")
        of_cron = _cron_at_once(directory / f"{number}-cron")
        for samples, sample in zip(seen, (again, first, theirs, of_cron), strict=True):
            samples.append(sample)
            sheet.raw(sample)
    ours, first_time, scheduler, cron = (pooled(name, samples) for name, samples in zip(names, seen, strict=True))
    assert isinstance(ours, Sample), ours.why
    sheet.beside(f"{RUNS} at once for the very first time: log directories and locks are made", first_time)
    p99 = ours.percentile(99)
    for name, other, share in ((peers.APSCHEDULER, scheduler, 1), (peers.CRON, cron, 5)):
        if isinstance(other, LeftOut):
            sheet.beside(f"2 {RUNS} at once, beside {name}", other)
            continue
        limit = other.percentile(99) / share
        words = f"a {'fifth' if share == 5 else 'whole'} of {name}'s p99"
        sheet.figure(
            f"2 {RUNS} at once, claims durable",
            f"p99 <= {limit:.0f} ms, {words}",
            ours.short(),
            passed=p99 <= limit,
        )
        sheet.beside(f"{name}, {RUNS} at once", other)


def _ours_at_once(directory: Path) -> tuple[Sample | LeftOut, Sample | LeftOut]:
    """The first burst over a new state directory, and the next, ten seconds later."""
    period = 10 * SECOND
    probe = _probe(directory)
    with Place(directory) as place:
        place.write(_routines({f"r{number:03}": "every 10s" for number in range(RUNS)}, probe))
        agent = place.start()
        due = next_multiple(period, ahead=0)
        probe.wait_for_starts(RUNS, due)
        starts = probe.wait_for_starts(2 * RUNS, Instant(due + period))
        agent.stop()
    slots = sorted({start // period for start in starts})
    bursts = [[start % period for start in starts if start // period == slot] for slot in slots]
    first, again = (*bursts, [], [])[:2]
    return _late(f"{OURS}, the very first time", first, RUNS), _late(OURS, again, RUNS)


def _apscheduler_at_once(directory: Path) -> Sample | LeftOut:
    why = peers.why_no_apscheduler()
    if why is not None:
        return LeftOut(peers.APSCHEDULER, why)
    probe = _probe(directory)
    due = next_multiple(SECOND, ahead=4 * SECOND)
    with peers.apscheduler("at", peers.seconds(due), RUNS, *probe.argv):
        starts = probe.wait_for_starts(RUNS, due)
    return _late(peers.APSCHEDULER, (start - due for start in starts), RUNS)


def _cron_at_once(directory: Path) -> Sample | LeftOut:
    why = peers.why_no_cron()
    if why is not None:
        return LeftOut(peers.CRON, why)
    probe = _probe(directory)
    due = next_multiple(MINUTE, ahead=3 * SECOND)
    with peers.cron(directory, due, RUNS, probe):
        starts = probe.wait_for_starts(RUNS, due)
    return _late(peers.CRON, (start - due for start in starts), RUNS)


def _late(what: str, late: Iterable[int], expected: int) -> Sample | LeftOut:
    """The lateness of the starts; left out when not all came, or when one came early (the clock moved)."""
    numbers = tuple(each / MILLISECOND for each in sorted(late))
    if len(numbers) < expected:
        return LeftOut(what, f"{len(numbers)} of {expected} started within 30 s")
    if numbers[0] < 0:
        return LeftOut(what, f"one started {-numbers[0]:.1f} ms early")
    return Sample(what, "ms", numbers)


def _late_each_second(what: str, probe: Probe, offset: Instant) -> Sample:
    """How late each start was, by the second in which it fell; says so when a second has none."""
    starts = [Instant(start - offset) for start in probe.starts()]
    slots = [start // SECOND for start in starts]
    without = sum(later - earlier - 1 for earlier, later in pairwise(slots))
    note = f" ({without} seconds without a start)" if without else ""
    return Sample(what + note, "ms", tuple(start % SECOND / MILLISECOND for start in starts))


def _probe(directory: Path) -> Probe:
    directory.mkdir()
    return make_probe(directory)


def _routines(schedules: dict[str, str], probe: Probe) -> str:
    argv = ", ".join(f"'{word}'" for word in probe.argv)
    lines = [f"  {name}: {{schedule: '{when}', run: [{argv}]}}\n" for name, when in schedules.items()]
    return f"agent: {{concurrency: {RUNS}}}\ndefaults: {{timezone: UTC}}\nroutines:\n" + "".join(lines)


Measurement = Callable[[Path, Sheet], None]
