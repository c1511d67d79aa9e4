"""After a change of owner: every open fire gets an end, and every slot that passed in between gets its row.

An open fire belongs to the agent that claimed it. While that agent lives it will close the fire itself; when
its life file's lock is free it is dead: if the attempt still lives it is adopted (never fired again, its timeout
kept, its end unknown), otherwise the fire is lost. tests/unit/test_recovery.py holds it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ankita_agent.app.requests import Request
from ankita_agent.core.instants import DAY, Instant
from ankita_agent.core.outcomes import Outcome, Reason, Trigger
from ankita_agent.core.passes import OVERTAKEN, Absence, Plan, ended_slots
from ankita_agent.core.routine import Routine
from ankita_agent.core.rows import Account, End, Entry, OpenFire, TermRecord
from ankita_agent.core.schedule import ScheduleError, Timetable, parse_schedule
from ankita_agent.core.zones import UnknownZone, zone_named
from ankita_agent.ports.processes import Observed, Processes


class OpenFires:
    """Fires that this agent did not claim, and what is to become of them."""

    def __init__(
        self,
        lives: Callable[[str], bool],
        still_open: Callable[[], Collection[int]],
        processes: Processes,
        adopt: Callable[[OpenFire, Routine | None], None],
        adopted: Callable[[OpenFire], None],
    ) -> None:
        self._lives = lives
        self._still_open = still_open
        self._processes = processes
        self._adopt = adopt
        self._adopted = adopted
        self._theirs: list[OpenFire] = []

    def take(self, fires: Iterable[OpenFire]) -> None:
        """Look after these, left open in the ledger by other agents."""
        self._theirs = list(fires)

    @property
    def waiting(self) -> bool:
        """Whether some of them belong to an agent that lived at the last look."""
        return bool(self._theirs)

    def settle(self, plans: Mapping[str, Plan], now: Instant) -> list[tuple[OpenFire, End]]:
        """The ends of those whose agent is dead now; a living attempt is adopted instead."""
        living = {fire.token for fire in self._theirs if self._lives(fire.token)}
        still_theirs = [fire for fire in self._theirs if fire.token in living]
        # asked after the look at who lives: what an agent recorded before it ended in good order counts
        still_open = self._still_open() if len(still_theirs) < len(self._theirs) else ()
        ended = []
        for fire in self._theirs:
            if fire.token in living or fire.fire not in still_open:
                continue
            reason = self._reason_of_loss(fire)
            if reason is None:
                plan = plans.get(fire.routine)
                self._adopt(fire, plan.routine if plan else None)
                self._adopted(fire)
            else:
                ended.append((fire, End(fire.fire, Outcome.LOST, reason, now)))
        self._theirs = still_theirs
        return ended

    def _reason_of_loss(self, fire: OpenFire) -> Reason | None:
        """Why nobody will ever know how it ended; None when its attempt lives and can be watched.

        A fire that was claimed and never known to have started, or whose process cannot be observed from here,
        may have an attempt all the same: the routine's lock, which that inherited, keeps it from overlapping.
        """
        if fire.process is None:
            return Reason.OWNER_KILLED
        match self._processes.observe(fire.process):
            case Observed.RUNNING | Observed.STOPPED:
                return None
            case Observed.GONE:
                return Reason.OWNER_KILLED
            case Observed.UNKNOWN:
                return Reason.STATUS_UNKNOWN


def rerun_of(fire: OpenFire, token: str) -> Request:
    """The second try of a lost fire whose routine says `rerun_lost: true`; its id can win only once."""
    return Request(f"rerun-{fire.fire}", fire.routine, fire.slot, Trigger.RETRY, token)


def absences_since(record: TermRecord, boot: str, booted_at: Instant, now: Instant) -> list[Absence]:
    """Where the time went since the last owner was seen.

    Another boot id means that the machine was off in between; up to when, only the boot time tells, which is
    good enough for a reason and never an identity.
    """
    since = record.seen_until if record.ended_at is None else max(record.seen_until, record.ended_at)
    if record.process.boot == boot or booted_at <= since:
        return [Absence(since, now, Reason.NOT_RUNNING)]
    return [Absence(since, booted_at, Reason.OFF), Absence(booted_at, now, Reason.NOT_RUNNING)]


def ended_under_the_old_schedule(
    account: Account, plan: Plan | None, now: Instant, absences: Sequence[Absence]
) -> list[Entry]:
    """The slots up to now of a routine that is not in force any more as it was.

    Missed where nobody was there; those that waited for their jitter, room or turn just now gave way to the edit.
    Nothing when the same schedule stays in force (the next pass accounts for it) or was disabled before.
    """
    known = account.in_force
    if not known.enabled or (plan is not None and _same_schedule(account, plan)):
        return []
    try:
        timetable = Timetable(parse_schedule(known.schedule), zone_named(known.timezone))
    except (ScheduleError, UnknownZone):  # written by another version, or a zone that the machine lost
        return []
    return list(ended_slots(known.routine, timetable, account.accounted_until, now, absences, OVERTAKEN))


def written_off(account: Account, timetable: Timetable, now: Instant) -> Entry | None:
    """Everything up to now of one routine as `missed(ledger)`: the rows that would tell are lost.

    Counted from the routine's mark; from a day before now when the mark itself is new.
    """
    after = account.accounted_until if account.accounted_until < now else Instant(now - DAY)
    count = timetable.count_between(after, now)
    if not count:
        return None
    first, last = timetable.next_after(after), timetable.latest_until(now)
    assert first is not None
    assert last is not None
    return Entry(account.in_force.routine, first, last, count, Outcome.MISSED, Reason.LEDGER)


def boot_written_off(account: Account, boot: str, booted_at: Instant) -> Entry | None:
    """The slot of this boot as `missed(ledger)`; None for a routine that was new in it and has none."""
    if account.known_since_boot == boot:
        return None
    name = account.in_force.routine
    return Entry(name, booted_at, booted_at, 1, Outcome.MISSED, Reason.LEDGER, boot=boot)


def _same_schedule(account: Account, plan: Plan) -> bool:
    known = account.in_force
    return (
        plan.routine.enabled
        and known.schedule == plan.routine.schedule.text
        and known.timezone == plan.routine.timezone
        and known.jitter == plan.routine.jitter
    )
