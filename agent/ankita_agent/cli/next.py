"""`ankita-agent next`."""

import os
import re
from datetime import datetime

import click

from ankita_agent.app.inspection import look
from ankita_agent.app.queries import next_document, timetable_of
from ankita_agent.cli.names import no_such_routine
from ankita_agent.cli.output import json_option, print_json, print_table, say
from ankita_agent.core.errors import WrongUse
from ankita_agent.core.instants import Instant, format_instant, instant_of
from ankita_agent.core.schedule import Timetable
from ankita_agent.wiring.outlook import Outlook, look_at_processes, looking
from ankita_agent.wiring.routines import read_routines
from ankita_agent.wiring.user import ThisUser, find_this_user


@click.command("next")
@click.argument("routine", required=False)
@click.option(
    "--from",
    "start",
    metavar="INSTANT",
    help="The slots after this instant instead of now: RFC 3339, or a date and time of this machine.",
)
@click.option("--count", "-n", type=click.IntRange(1, 10_000), default=10, show_default=True, help="How many slots.")
@json_option
def command(routine: str | None, start: str | None, count: int, as_json: bool) -> int:
    """The slots to come: of the routines in force, or of routines.yaml while no agent runs.

    LOCAL is in the zone of the routine. A slot says in its note when the clocks change around it.

    \b
    Example:
      ankita-agent next backup --from 2026-10-24T00:00:00+02:00 --count 3
    """
    user = find_this_user(dict(os.environ))
    with looking(user.places) as outlook:
        if outlook.problem:
            say(str(outlook.problem), err=True)
        after = outlook.clock.now() if start is None else _instant(start)
        plans, where = _plans(outlook, user)
    if routine is not None:
        known = [name for name, _, _ in plans]
        plans = [plan for plan in plans if plan[0] == routine]
        if not plans:
            raise no_such_routine(routine, known, where=where)
    document = next_document(plans, after, count)
    if as_json:
        print_json(document)
    elif document:
        shown = _with_seconds_alike([slot["local"] for slot in document])
        rows = [
            [local, slot["slot"], slot["routine"], slot["note"]] for local, slot in zip(shown, document, strict=True)
        ]
        print_table(["LOCAL", "SLOT", "ROUTINE", "NOTE"], rows)
    elif plans:
        say(_why_none(plans, after), err=True)
    else:
        say(f"there is no routine {where}; write some: {user.places.routines}", err=True)
    return 0


def _with_seconds_alike(times: list[str]) -> list[str]:
    """Local times, `2026-10-25 02:30 CEST`: where one has seconds, all have."""
    if any(time.count(":") > 1 for time in times):
        return [re.sub(r"^(\S+ \d+:\d+) ", r"\1:00 ", time) for time in times]
    return times


def _why_none(plans: list[tuple[str, Timetable, bool]], after: Instant) -> str:
    if any(enabled and not timetable.is_reboot for _, timetable, enabled in plans):
        return f"no slot comes after {format_instant(after)}"
    return "no slot comes: what there is is disabled, or waits for the next boot"


def _instant(text: str) -> Instant:
    """The instant that a person wrote; without an offset it is the machine's local time."""
    try:
        return instant_of(datetime.fromisoformat(text).astimezone())
    except (ValueError, OverflowError, OSError):
        raise WrongUse(
            f"--from {text!r} is no instant",
            do="write a date, a local time or RFC 3339: 2026-10-25, '2026-10-25 08:00' or 2026-10-25T08:00:00+02:00",
        ) from None


def _plans(outlook: Outlook, user: ThisUser) -> tuple[list[tuple[str, Timetable, bool]], str]:
    """What the owner has in force; what the file would put in force when nobody owns; and which of the two."""
    if outlook.state is not None and outlook.ledger is not None:
        seen = look(outlook.files, outlook.state, look_at_processes(), outlook.clock.awake())
        if seen.owner is not None:
            known = [account.in_force for account in outlook.ledger.accounts().values()]
            tables = [(each.routine, timetable_of(each), each.enabled) for each in known]
            return [(name, table, enabled) for name, table, enabled in tables if table is not None], "in force"
    return read_routines(user), f"in {user.places.routines}"
