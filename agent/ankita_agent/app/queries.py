"""What status, list, history and next show: questions to ledger and files, answers as plain documents.

The documents are the JSON contract of docs/json.md: RFC 3339 UTC instants, durations in seconds; readers
ignore fields that they do not know.
"""

import json
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Any

from ankita_agent.app.inspection import OwnerSeen, Seen
from ankita_agent.core.health import health_of
from ankita_agent.core.instants import MINUTE, Duration, Instant, format_instant, in_seconds
from ankita_agent.core.outcomes import Health
from ankita_agent.core.rows import HistoryRow, InForce, RoutineSummary
from ankita_agent.core.schedule import ScheduleError, Timetable, parse_schedule
from ankita_agent.core.service_view import ServiceView
from ankita_agent.core.zones import LATEST, UnknownZone, zone_named

Document = dict[str, Any]

JUST_WOKE = Duration(15 * MINUTE)

UNWELL = frozenset({Health.FAILING, Health.STALLED})


def timetable_of(routine: InForce) -> Timetable | None:
    """The slots of a routine as the ledger knows it; None where this version or machine cannot read it."""
    try:
        return Timetable(parse_schedule(routine.schedule), zone_named(routine.timezone))
    except (ScheduleError, UnknownZone):
        return None


def status_document(
    version: str,
    state_dir: str,
    config_path: str,
    seen: Seen,
    summaries: Sequence[RoutineSummary],
    now: Instant,
    problem: str | None,
    mistakes: str,
    service: ServiceView,
) -> Document:
    """The document of `status --json`.

    `problem` is what keeps the ledger from being read, None when nothing; `mistakes` why the file of routines would not
    come into force, for when no owner says so, empty when it would.
    """
    report = seen.report
    error = report.config.error if report else mistakes
    just_woke = report is not None and report.woke_at is not None and now - report.woke_at < JUST_WOKE
    degraded = list(report.degraded) if report else []
    trouble = seen.owner.trouble if seen.owner else ""
    if trouble and not any(reason.startswith(trouble) for reason in degraded):
        degraded.append(trouble)  # newer than the report, which a full disk does not take
    if problem:
        degraded.append(problem)
    return {
        "version": version,
        "state_dir": state_dir,
        "config": {
            "path": report.config.path if report and report.config.path else config_path,
            "ok": not error,
            "error": error or None,
        },
        "owner": None if seen.owner is None else _owner_document(seen.owner),
        "standbys": seen.standbys,
        "stopping": list(seen.stopping),
        "inherits_environment": report is not None and report.inherits_environment,
        "degraded": degraded,
        "service": {
            "manager": service.manager,
            "installed": service.installed,
            "enabled": service.enabled,
            "active": service.active,
        },
        "routines": [
            _routine_document(summary, now, just_woke=just_woke, owned=seen.owner is not None) for summary in summaries
        ],
    }


def status_code(document: Document) -> int:
    """The exit status of `status`: 0 all well, 1 something needs a look, 3 no agent runs."""
    if document["owner"] is None:
        return 3
    unwell = any(routine["health"] in UNWELL for routine in document["routines"])
    owner_unwell = document["owner"]["state"] in ("wedged", "stopped")
    return 1 if unwell or owner_unwell or document["degraded"] else 0


def history_document(rows: Sequence[HistoryRow]) -> list[Document]:
    """The document of `history --json`, newest first."""
    return [_row_document(row) for row in rows]


def next_document(plans: Sequence[tuple[str, Timetable, bool]], after: Instant, count: int) -> list[Document]:
    """The document of `next --json`: the `count` next slots over all (name, timetable, enabled), in order."""
    # each slot costs a search, so no more are looked for than are shown, and one for each routine
    each = [_slots_of(name, timetable, after) for name, timetable, enabled in plans if enabled]
    found = islice(merge(*each, key=lambda entry: entry[:2]), count)
    return [
        {
            "routine": name,
            "slot": format_instant(slot),
            "local": timetable.local(slot),
            "note": timetable.note(slot),
        }
        for slot, name, timetable in found
    ]


def _slots_of(name: str, timetable: Timetable, after: Instant) -> Iterator[tuple[Instant, str, Timetable]]:
    return ((slot, name, timetable) for slot in timetable.slots_between(after, LATEST))


def next_slot_of(summary: RoutineSummary, now: Instant, *, owned: bool) -> Instant | None:
    """The routine's first slot that has no row yet; None when it has none or is disabled.

    While somebody owns, it may lie before now: it waits for its jitter, the settle time, its turn or room.
    """
    account = summary.account
    if not account.in_force.enabled:
        return None
    timetable = timetable_of(account.in_force)
    mark = account.accounted_until if owned else max(now, account.accounted_until)
    return None if timetable is None else timetable.next_after(mark)


def _stale_after(routine: InForce) -> Duration | None:
    span = json.loads(routine.meaning).get("stale_after")
    return None if span is None else Duration(span)


def _owner_document(owner: OwnerSeen) -> Document:
    card = owner.claim.card
    return {
        "pid": card.process.pid,
        "term": owner.claim.term,
        "since": format_instant(owner.claim.since),
        "manager": card.manager,
        "version": card.version,
        "progress_age_s": None if owner.progress_age is None else round(in_seconds(owner.progress_age), 3),
        "state": owner.state.value,
    }


def _routine_document(summary: RoutineSummary, now: Instant, *, just_woke: bool, owned: bool) -> Document:
    account, last = summary.account, summary.last
    health, reason = health_of(summary, _stale_after(account.in_force), now, just_woke=just_woke)
    slot = next_slot_of(summary, now, owned=owned)
    return {
        "name": account.in_force.routine,
        "health": health.value,
        "reason": reason or None,
        "enabled": account.in_force.enabled,
        "schedule": account.in_force.schedule,
        "timezone": account.in_force.timezone,
        "description": account.in_force.description,
        "next_slot": None if slot is None else format_instant(slot),
        "last_success": None if summary.last_success is None else format_instant(summary.last_success),
        "last": None
        if last is None
        else {
            "slot": format_instant(last.slot),
            "outcome": None if last.outcome is None else last.outcome.value,
            "reason": None if last.reason is None else last.reason.value,
        },
        "running": summary.running is not None,
    }


def _row_document(row: HistoryRow) -> Document:
    stretch = row.count > 1 or row.until != row.slot
    late = None
    if row.started_at is not None:
        late = round(in_seconds(row.started_at - row.slot), 3)
    return {
        "fire": row.fire,
        "routine": row.routine,
        "slot": format_instant(row.slot),
        "until": format_instant(row.until) if stretch else None,
        "count": row.count,
        "trigger": row.trigger.value,
        "outcome": None if row.outcome is None else row.outcome.value,
        "reason": None if row.reason is None else row.reason.value,
        "quiet": row.quiet,
        "late_s": late,
        "started_at": None if row.started_at is None else format_instant(row.started_at),
        "ended_at": None if row.ended_at is None else format_instant(row.ended_at),
        "exit_code": row.exit_code,
        "signal": row.signal,
        "attempts": row.attempts,
        "term": row.term,
        "log": row.log,
        "blocked_by": row.blocked_by,
        "detail": row.detail or None,
    }


def list_document(summaries: Sequence[RoutineSummary], now: Instant, *, owned: bool) -> list[Document]:
    """The document of `list --json`, what comes next first, what never comes last."""
    found = [(next_slot_of(summary, now, owned=owned), summary) for summary in summaries]
    found.sort(key=lambda entry: (entry[0] is None, entry[0] or 0))
    return [_list_row(summary, slot) for slot, summary in found]


def _list_row(summary: RoutineSummary, slot: Instant | None) -> Document:
    known, last = summary.account.in_force, summary.last
    return {
        "name": known.routine,
        "next_slot": None if slot is None else format_instant(slot),
        "last_slot": None if last is None else format_instant(last.slot),
        "outcome": None if last is None or last.outcome is None else last.outcome.value,
        "reason": None if last is None or last.reason is None else last.reason.value,
        "running": summary.running is not None,
        "schedule": known.schedule,
        "timezone": known.timezone,
        "enabled": known.enabled,
        "description": known.description,
    }
