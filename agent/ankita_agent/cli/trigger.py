"""`ankita-agent trigger`."""

import os
import secrets
import time
from collections.abc import Callable

import click

from ankita_agent.app.inspection import OwnerState, look
from ankita_agent.app.requests import Request, Requests
from ankita_agent.cli.names import no_such_routine
from ankita_agent.cli.output import printable, say
from ankita_agent.core.durations import format_duration, parse_duration
from ankita_agent.core.errors import (
    BadConfiguration,
    CannotWriteState,
    NoSuchRoutine,
    NotRunning,
    SomeoneElseOwns,
    WrongUse,
)
from ankita_agent.core.health import RUN_OUTCOMES, describe
from ankita_agent.core.instants import SECOND, Duration, Monotonic
from ankita_agent.core.outcomes import Outcome, Trigger
from ankita_agent.core.rows import HistoryRow, ProcessId
from ankita_agent.ports.ledger import LedgerReader
from ankita_agent.ports.processes import Observed, Processes
from ankita_agent.wiring.outlook import Outlook, look_at_processes, looking
from ankita_agent.wiring.routines import read_routines
from ankita_agent.wiring.user import ThisUser, find_this_user

_LOOK_EVERY = 0.02  # seconds between two looks at the ledger
_TAKEN_UP_WITHIN = Duration(10 * SECOND)
_NOT_STARTED = "started, and was taken back"


@click.command("trigger")
@click.argument("routine")
@click.option("--wait", is_flag=True, help="Wait for its end, and end with its outcome.")
@click.option("--timeout", metavar="DUR", help="Wait no longer than this, as in 30s or 10m.")
def command(routine: str, wait: bool, timeout: str | None) -> int:
    """Run a routine now, through the owner, beside its schedule.

    Neither the next slot nor its schedule change. It obeys overlap: while the routine runs it is skipped.

    \b
    Exit status: 0 started (with --wait: succeeded), 1 it did not succeed, 3 no agent
    runs, 4 no such routine, 75 skipped, not ended within --timeout, or the agent
    does not answer.

    \b
    Example:
      ankita-agent trigger backup --wait
    """
    patience = _patience(timeout)
    user = find_this_user(dict(os.environ))
    with looking(user.places) as outlook:
        processes = look_at_processes()
        request, agent = _ask(outlook, user, processes, routine)

        def lives() -> bool:
            return processes.observe(agent) is not Observed.GONE

        row = _taken_up(outlook, request, processes, agent, patience, wait=wait)
        if row is None:
            say(f"{routine}: waits until another run has ended; see: ankita-agent status", err=True)
            return 0
        if not wait or row.outcome is not None:
            return _say(row, waited=wait)
        return _say(_ended(outlook, row, lives, patience), waited=True)


def _patience(timeout: str | None) -> Duration | None:
    if timeout is None:
        return None
    try:
        return parse_duration(timeout)
    except ValueError as error:
        raise WrongUse(f"--timeout: {error}", now="nothing was started", do="write for example --timeout 30s") from None


def _ask(outlook: Outlook, user: ThisUser, processes: Processes, routine: str) -> tuple[Request, ProcessId]:
    """Leave the request; it, and the agent to whom it is addressed."""
    owner = None
    if outlook.state is not None:
        owner = look(outlook.files, outlook.state, processes, outlook.clock.awake()).owner
    if owner is None or outlook.state is None:
        unknown = _unknown(outlook, user, routine)
        raise NotRunning(
            f"cannot run {routine!r}: no agent runs" + (f", and {unknown.what} either" if unknown else ""),
            now="nothing was started: the owner alone starts runs",
            do=(f"{unknown.do}    " if unknown else "")
            + "start it: ankita-agent start    or in this terminal: ankita-agent run",
        )
    if outlook.problem:
        raise outlook.problem
    known = list(outlook.ledger.accounts()) if outlook.ledger else []
    if routine not in known:
        raise no_such_routine(routine, known)
    request = Request(secrets.token_hex(8), routine, outlook.clock.now(), Trigger.MANUAL, owner.claim.card.token)
    try:
        Requests(outlook.files, outlook.state).ask(request)
    except OSError as error:
        raise CannotWriteState(
            f"cannot leave a request to run {routine!r} for the agent",
            fact=error.strerror or str(error),
            now="nothing was started",
            do="look at the directory `requests` beside the ledger; its place is in: ankita-agent status",
        ) from None
    return request, owner.claim.card.process


def _unknown(outlook: Outlook, user: ThisUser, routine: str) -> NoSuchRoutine | None:
    """What an agent would say of the name; None where it would know it, or nobody can tell."""
    known = set(outlook.ledger.accounts()) if outlook.ledger else set()
    try:
        known |= {name for name, _, _ in read_routines(user)}
    except BadConfiguration:
        return None
    if routine in known or not known:
        return None
    return no_such_routine(routine, sorted(known), where=f"in {user.places.routines}")


def _taken_up(
    outlook: Outlook,
    request: Request,
    processes: Processes,
    agent: ProcessId,
    patience: Duration | None,
    *,
    wait: bool,
) -> HistoryRow | None:
    """The row of the request; None when the owner has seen it and lets it wait for room."""
    assert outlook.state is not None
    requests = Requests(outlook.files, outlook.state)
    asked_at = outlook.clock.awake()

    def lives() -> bool:
        return processes.observe(agent) is not Observed.GONE

    def pending() -> bool:
        return lives() and requests.holds(request.id)

    def look_for_row(limit: Duration | None) -> HistoryRow | None:
        return _when(outlook, pending, limit, lambda ledger: ledger.fire_of_request(request.id))

    soon = _TAKEN_UP_WITHIN if patience is None or not wait else Duration(min(patience, _TAKEN_UP_WITHIN))
    row = look_for_row(soon)
    silent = None
    if row is None and pending() and soon == _TAKEN_UP_WITHIN:
        silent = _silence(outlook, processes, agent.pid, asked_at)
        if not silent and not wait:
            return None
        if not silent:
            row = look_for_row(None if patience is None else Duration(patience - soon))
    why = silent or _too_long(request.routine, patience, _NOT_STARTED)
    return row or _taken_back(outlook, requests, request, lives, why)


def _silence(outlook: Outlook, processes: Processes, pid: int, asked_at: Monotonic) -> SomeoneElseOwns | None:
    """The fault when no pass of the owner has ended since; None when it has, and so has seen the request."""
    assert outlook.state is not None
    now = outlook.clock.awake()
    owner = look(outlook.files, outlook.state, processes, now).owner
    if owner is not None and owner.progress_age is not None and now - owner.progress_age > asked_at:
        return None
    stopped = owner is not None and owner.state is OwnerState.STOPPED
    return SomeoneElseOwns(
        f"the agent has not answered for {format_duration(_TAKEN_UP_WITHIN)}",
        fact=f"its process {pid} " + ("is stopped (SIGSTOP, or Ctrl-Z)" if stopped else "is there and does not go on"),
        now="nothing was started, and the request was taken back",
        do=f"let it go on: kill -CONT {pid}" if stopped else "see how it is: ankita-agent status",
    )


def _taken_back(
    outlook: Outlook, requests: Requests, request: Request, lives: Callable[[], bool], why: SomeoneElseOwns
) -> HistoryRow:
    """Take the request back and raise why; the row, when it was taken up in the last moment."""
    assert outlook.ledger is not None
    withdrawn = requests.withdraw(request.id)
    row = outlook.ledger.fire_of_request(request.id)
    if row is not None:
        return row
    if not lives():
        raise NotRunning(
            f"cannot run {request.routine!r}: the agent that was asked has ended",
            now="nothing was started, and the request was taken back",
            do="see whether another agent runs: ankita-agent status",
        )
    if not withdrawn:  # the agent took it and has no such routine: the file has changed meanwhile
        raise no_such_routine(request.routine, list(outlook.ledger.accounts()))
    raise why


def _ended(outlook: Outlook, row: HistoryRow, lives: Callable[[], bool], patience: Duration | None) -> HistoryRow:
    def ended(ledger: LedgerReader) -> HistoryRow | None:
        now = ledger.row(row.fire)
        return now if now is not None and now.outcome is not None else None

    found = _when(outlook, lives, patience, ended)
    if found is not None:
        return found
    if not lives():
        raise NotRunning(
            f"cannot say how run {row.fire} of {row.routine!r} ended",
            fact="the agent that started it has ended without saying so",
            now="the run may go on; the next agent records what became of it",
            do=f"see: ankita-agent history {row.routine}",
        )
    raise _too_long(row.routine, patience, "ended, and goes on")


def _when(
    outlook: Outlook,
    pending: Callable[[], bool],
    limit: Duration | None,
    found: Callable[[LedgerReader], HistoryRow | None],
) -> HistoryRow | None:
    """What is found in the ledger within the limit, and for as long as it may still come."""
    assert outlook.ledger is not None
    end = None if limit is None else Monotonic(outlook.clock.awake() + limit)
    while True:
        may_come = pending()  # before the look: what was written last counts
        row = found(outlook.ledger)
        if row is not None or not may_come or (end is not None and outlook.clock.awake() >= end):
            return row
        time.sleep(_LOOK_EVERY)


def _too_long(routine: str, patience: Duration | None, state: str) -> SomeoneElseOwns:
    return SomeoneElseOwns(
        f"routine {routine!r} did not end within {format_duration(patience or 0)}",
        now=f"it had not {state}",
        do=f"follow it: ankita-agent logs {routine} --follow",
    )


def _say(row: HistoryRow, *, waited: bool) -> int:
    if row.outcome is None:
        say(f"{row.routine}: run {row.fire} started; follow it: ankita-agent logs {row.routine} --follow")
        return 0
    detail = f": {printable(row.detail)}" if row.detail else ""
    more = f"; see: ankita-agent logs {row.routine}" if row.outcome in RUN_OUTCOMES else ""
    say(f"{row.routine}: run {row.fire} {describe(row)}{detail}{more}")
    match row.outcome:
        case Outcome.SUCCEEDED:
            return 0
        case Outcome.SKIPPED:
            return 75
        case _:
            return 1 if waited or row.outcome is Outcome.FAILED else 0
