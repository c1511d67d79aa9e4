"""`ankita-agent list`."""

import os

import click

from ankita_agent.app.queries import list_document
from ankita_agent.cli.output import json_option, local_time, print_json, print_table
from ankita_agent.core.durations import approximate
from ankita_agent.core.instants import SECOND, parse_instant
from ankita_agent.wiring import find_this_user, looking


@click.command("list")
@json_option
def command(as_json: bool) -> int:
    """All routines: when they run next, how long that is, how the last slot ended.

    \b
    Example:
      ankita-agent list
    """
    with looking(find_this_user(dict(os.environ)).places) as outlook:
        if outlook.problem:
            click.echo(outlook.problem, err=True)
        now = outlook.clock.now()
        document = list_document(outlook.ledger.summaries() if outlook.ledger else [], now)
    if as_json:
        print_json(document)
        return 0
    if not document:
        click.echo(
            "no routine is in force; write some in routines.yaml and start: ankita-agent run", err=True
        )
        return 0
    rows = []
    for routine in document:
        left = "-"
        if routine["next_slot"] is not None:
            span = parse_instant(routine["next_slot"]) - now
            left = approximate(span - span % SECOND)
        rows.append(
            [
                local_time(routine["next_slot"]),
                left,
                local_time(routine["last_slot"]),
                routine["outcome"] or "-",
                routine["name"],
                routine["schedule"] + ("" if routine["enabled"] else " (disabled)"),
            ]
        )
    print_table(["NEXT", "LEFT", "LAST", "OUTCOME", "ROUTINE", "SCHEDULE"], rows)
    return 0
