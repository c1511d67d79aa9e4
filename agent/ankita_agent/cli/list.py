"""`ankita-agent list`."""

import os

import click

from ankita_agent.app.inspection import NOBODY, Seen, look
from ankita_agent.app.queries import Document, list_document
from ankita_agent.cli.names import document_of
from ankita_agent.cli.output import json_option, near_time, print_json, print_table, say, time_left
from ankita_agent.core.errors import BadConfiguration
from ankita_agent.wiring.outlook import Outlook, look_at_processes, looking
from ankita_agent.wiring.routines import read_routines
from ankita_agent.wiring.user import ThisUser, find_this_user


@click.command("list")
@click.argument("routine", required=False)
@json_option
def command(routine: str | None, as_json: bool) -> int:
    """All routines, or one: when they run next, how long that is, how the last slot ended.

    Times are the machine's; `next` shows them in the zone of each routine.

    \b
    Example:
      ankita-agent list
    """
    user = find_this_user(dict(os.environ))
    with looking(user.places) as outlook:
        if outlook.problem:
            raise outlook.problem
        now, seen = outlook.clock.now(), _seen(outlook)
        owned = seen.owner is not None
        document = list_document(outlook.ledger.summaries() if outlook.ledger else [], now, owned=owned)
    if routine is not None:
        document = [document_of(routine, document)]
    if as_json:
        print_json(document)
        return 0
    if not owned:
        say(_without_owner(user, bool(document)), err=True)
    elif seen.report is not None and seen.report.config.error:
        say(seen.report.config.error, err=True)
    elif not document:
        say(f"no routine is in force; write some: {user.places.routines}", err=True)
    if document:
        rows = [
            [
                near_time(row["next_slot"], now) if row["enabled"] else "disabled",
                time_left(row["next_slot"], now),
                near_time(row["last_slot"], now),
                _outcome(row),
                row["name"],
                row["schedule"],
            ]
            for row in document
        ]
        print_table(["NEXT", "LEFT", "LAST", "OUTCOME", "ROUTINE", "SCHEDULE"], rows)
    return 0


def _seen(outlook: Outlook) -> Seen:
    if outlook.state is None:
        return NOBODY
    return look(outlook.files, outlook.state, look_at_processes(), outlook.clock.awake())


def _outcome(routine: Document) -> str:
    if routine["running"]:
        return "running"
    if routine["outcome"] is None:
        return "-"
    outcome = routine["outcome"].replace("_", " ")
    reason = (routine["reason"] or "").replace("_", " ")
    return outcome if reason in ("", "timeout", "exit status") else f"{outcome} ({reason})"


def _without_owner(user: ThisUser, known: bool) -> str:
    """What to know of the list while nobody owns: nothing of it fires, and what the file would add."""
    start = "start it: ankita-agent start    or in this terminal: ankita-agent run"
    try:
        written = len(read_routines(user))
    except BadConfiguration as fault:
        return str(fault)
    if known:
        return f"no agent runs, so nothing of this fires; {start}"
    if not written:
        return f"there is no routine yet; write some: {user.places.routines}"
    return f"no agent runs; {user.places.routines} has {written} for it (see: ankita-agent next); {start}"
