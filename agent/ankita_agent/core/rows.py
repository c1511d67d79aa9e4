"""The rows of the ledger as values: what a pass decides, what an attempt did, what a reader sees.

One row tells the end of one slot, of a stretch of slots that ended alike, of one manual request, or of one
`@reboot`. A row without an outcome is a fire that is still open.
"""

from dataclasses import dataclass

from ankita_agent.core.instants import Duration, Instant
from ankita_agent.core.outcomes import Outcome, Reason, Trigger


@dataclass(frozen=True, slots=True)
class Claim:
    """A wish to fire: it wins unless a row for the same key is there already.

    The key is (routine, slot), or (routine, `boot`) for `@reboot`, or (routine, `request`) for a manual run,
    whose `slot` is the moment it was asked for.
    """

    routine: str
    slot: Instant
    trigger: Trigger
    boot: str | None = None
    request: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """Slots that end without a fire: `count` of them from `slot` to `until`, both inclusive.

    `blocked_by` names the fire in the way of a `skipped(overlap)`. `boot` and `request` as in Claim.
    """

    routine: str
    slot: Instant
    until: Instant
    count: int
    outcome: Outcome
    reason: Reason
    trigger: Trigger = Trigger.SCHEDULE
    blocked_by: int | None = None
    boot: str | None = None
    request: str | None = None


@dataclass(frozen=True, slots=True)
class ProcessId:
    """Which process an attempt was: a pid alone means nothing after a reboot or a reuse.

    `ticks` is field 22 of /proc/PID/stat, raw (proc(5)); `boot` the boot id; `namespace` the inode of its
    PID namespace. Compare for equality only.
    """

    pid: int
    ticks: int
    boot: str
    namespace: int


@dataclass(frozen=True, slots=True)
class Start:
    """An attempt's process exists."""

    fire: int
    process: ProcessId
    started_at: Instant
    attempt: int
    log: str  # path of its output, relative to the state directory


@dataclass(frozen=True, slots=True)
class End:
    """A fire is over. `exit_code` is 0 to 255, `signal` the one that ended it; at most one of them is set."""

    fire: int
    outcome: Outcome
    reason: Reason | None
    ended_at: Instant
    exit_code: int | None = None
    signal: int | None = None
    quiet: bool = False
    detail: str = ""  # one line for a person, such as the error of a spawn


@dataclass(frozen=True, slots=True)
class OpenFire:
    """A fire without an outcome, as read back: by its own agent, or by the next owner.

    `term` and `token` are those of the agent that claimed it; `process` is None between claim and start.
    `started_at`, `process`, `attempt` and `log` are those of the newest attempt,
    and `attempt` is 0 before the first.
    """

    fire: int
    routine: str
    slot: Instant
    trigger: Trigger
    term: int
    token: str
    claimed_at: Instant
    started_at: Instant | None
    process: ProcessId | None
    attempt: int
    log: str | None


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One row as history shows it.

    `claimed_at` is set for fires alone; `started_at` is the first attempt's, `log` the newest one's.
    """

    fire: int
    routine: str
    slot: Instant
    until: Instant
    count: int
    trigger: Trigger
    outcome: Outcome | None
    reason: Reason | None
    quiet: bool
    claimed_at: Instant | None
    started_at: Instant | None
    ended_at: Instant | None
    exit_code: int | None
    signal: int | None
    attempts: int
    term: int
    log: str | None
    request: str | None
    blocked_by: int | None
    detail: str


@dataclass(frozen=True, slots=True)
class InForce:
    """A routine as the ledger knows it, so that readers need neither the YAML nor its model.

    `meaning` is canonical JSON of everything that matters to a run; `schedule`, `timezone` and `enabled` are
    what makes it the same schedule or another one.
    """

    routine: str
    schedule: str
    timezone: str
    jitter: Duration
    enabled: bool
    description: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Account:
    """How far a routine's slots are accounted for.

    Every slot up to and including `accounted_until` has its row; none above has. Slots up to
    `relived_until` may have rows from before the clock was set back, so they are accounted one by one.
    `known_since_boot` is the boot id under which the routine came into force. From `reckoned_since` on, exclusive,
    all its rows are of its present schedule, of one course of the clock and still there, so that they can be held
    against it; `zone_rules` are those of its time zone by which its owner reckons (`core.zone_rules`), empty when
    nobody knows.
    """

    in_force: InForce
    accounted_until: Instant
    relived_until: Instant | None
    known_since_boot: str
    reckoned_since: Instant
    zone_rules: str = ""


@dataclass(frozen=True, slots=True)
class Covered:
    """The slots that one row ends: `count` of them from `slot` to `until`, both inclusive."""

    slot: Instant
    until: Instant
    count: int


@dataclass(frozen=True, slots=True)
class RoutineSummary:
    """What status and list show of one routine besides its schedule.

    Rows are ordered by the slot they end with. A manual run counts as a run and as a success, and not as a
    slot: it may be `last`, `last_run`, the last success and `running`, while `recent` and
    `unsuccessful_slots` leave it out.
    """

    account: Account
    last: HistoryRow | None  # newest row that has an outcome
    last_run: HistoryRow | None  # newest fire that has an outcome
    last_success: Instant | None  # when the newest succeeded fire ended
    last_success_slot: Instant | None
    running: OpenFire | None  # the newest, when several are open
    recent: tuple[HistoryRow, ...]  # newest slots with an outcome, newest first; ends with the third slot
    unsuccessful_slots: int  # slots after that of the last success that ended without one


@dataclass(frozen=True, slots=True)
class TermRecord:
    """One ownership as the ledger holds it; its boot and last sight tell the next owner why slots passed."""

    term: int
    token: str
    process: ProcessId
    started_at: Instant
    seen_until: Instant
    ended_at: Instant | None
