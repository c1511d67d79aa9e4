"""What `start`, `stop` and `restart` share: their options, their look at agents and runs, and Ctrl-C."""

import os
from collections.abc import Callable, Collection

import click

from ankita_agent.app.inspection import NOBODY, Seen, look
from ankita_agent.app.queries import next_slot_of
from ankita_agent.app.service import Service
from ankita_agent.app.service_words import Answer, View, Words
from ankita_agent.cli.output import local_time, say
from ankita_agent.core.durations import parse_duration
from ankita_agent.core.environment import FIRE_VARIABLE
from ankita_agent.core.errors import AnkitaError, WrongUse
from ankita_agent.core.instants import Duration, Instant
from ankita_agent.core.service_ends import lines_for
from ankita_agent.ports.ledger import LedgerReader
from ankita_agent.ports.processes import Observed, Processes
from ankita_agent.wiring.outlook import look_at_processes, looking
from ankita_agent.wiring.service import make_service
from ankita_agent.wiring.user import ThisUser, find_this_user

timeout_option = click.option("--timeout", metavar="DUR", help="Wait no longer than this, as in 30s or 2m.")
now_option = click.option("--now", is_flag=True, help="Do not wait for what runs: stop it at once.")
stray_argument = click.argument("routine", required=False, metavar="")


def refuse_argument(verb: str, routine: str | None, do: str) -> None:
    """Raise WrongUse when a routine is named: the service is one, and takes no name."""
    if routine is not None:
        raise WrongUse(
            f"{verb} is about the service and takes no routine, and {routine!r} was given",
            now="nothing was changed",
            do=do,
        )


def patience_of(timeout: str | None, default: Duration) -> Duration:
    """How long to wait. Raises WrongUse for what is no duration."""
    if timeout is None:
        return default
    try:
        return parse_duration(timeout)
    except ValueError as error:
        raise WrongUse(f"--timeout: {error}", now="nothing was changed", do="write for example --timeout 30s") from None


def act(verb: str, do: Callable[[Service], Answer]) -> int:
    """Have the service do something, and say what came of it; the exit status. Ctrl-C ends the waiting alone."""
    user = find_this_user(dict(os.environ))
    processes = look_at_processes()
    service = make_service(
        user,
        lambda fires: _view(user, processes, fires),
        lambda line: say(line, err=True),
        Words(local_time, lines_for(os.getuid())),
        _enclosing_fire(),
    )
    try:
        answer = do(service)
    except KeyboardInterrupt:
        told = f"the {verb} goes on" if service.asked else "nothing was asked of the service"
        say(f"no longer waiting; {told}, see: ankita-agent status", err=True)
        return 130
    say(answer.text)
    return answer.code


def _enclosing_fire() -> int | None:
    text = os.environ.get(FIRE_VARIABLE, "")
    return int(text) if text.isdecimal() else None


def _view(user: ThisUser, processes: Processes, fires: Collection[int]) -> View:
    """Agents and runs as they are now. Nothing here may keep a service from being stopped, so faults are left out."""
    seen = NOBODY
    try:
        with looking(user.places) as outlook:
            if outlook.state is not None:
                seen = look(outlook.files, outlook.state, processes, outlook.clock.awake())
            if outlook.ledger is not None:
                return _with_runs(seen, outlook.ledger, processes, fires, outlook.clock.now())
    except AnkitaError:
        pass
    return View(seen)


def _with_runs(seen: Seen, ledger: LedgerReader, processes: Processes, fires: Collection[int], now: Instant) -> View:
    runs = [fire for fire in ledger.open_fires() if fire.process and processes.observe(fire.process) != Observed.GONE]
    rows = [row for row in map(ledger.row, fires) if row is not None and row.outcome is not None]
    slots = [
        (slot, summary.account.in_force.routine)
        for summary in ledger.summaries()
        if (slot := next_slot_of(summary, now, owned=True)) is not None
    ]
    coming = min(slots, default=None)
    return View(seen, tuple(runs), tuple(rows), None if coming is None else coming[::-1])
