"""`ankita-agent history`."""

import os

import click

from ankita_agent.app.queries import Document, history_document
from ankita_agent.cli.names import no_such_routine
from ankita_agent.cli.output import json_option, local_time, print_json, print_table
from ankita_agent.core.durations import approximate
from ankita_agent.core.instants import SECOND, parse_instant
from ankita_agent.wiring.outlook import looking
from ankita_agent.wiring.user import find_this_user


@click.command("history")
@click.argument("routine", required=False)
@click.option("--count", "-n", type=click.IntRange(1, 1_000_000), default=50, show_default=True, help="How many rows.")
@json_option
def command(routine: str | None, count: int, as_json: bool) -> int:
    """How slots ended, newest first: a row for each run, and for each slot or stretch of slots without one.

    \b
    Example:
      ankita-agent history backup -n 5
    """
    with looking(find_this_user(dict(os.environ)).places) as outlook:
        if outlook.problem:
            raise outlook.problem
        rows = outlook.ledger.history(routine, count) if outlook.ledger else []
        if routine is not None and not rows:
            known = list(outlook.ledger.accounts()) if outlook.ledger else []
            if routine not in known:
                raise no_such_routine(routine, known)
    document = history_document(rows)
    if as_json:
        print_json(document)
    elif document:
        heads = ["SLOT", "LATE", "TOOK", "RUN", "ROUTINE", "OUTCOME"]
        print_table(heads, [_row(row) for row in document])
    else:
        click.echo("nothing has been recorded yet", err=True)
    return 0


def _row(row: Document) -> list[str]:
    took = "-"
    if row["started_at"] and row["ended_at"]:
        took = approximate(parse_instant(row["ended_at"]) - parse_instant(row["started_at"]))
    late = "-" if row["late_s"] is None else approximate(int(row["late_s"] * SECOND))
    return [local_time(row["slot"]), late, took, str(row["fire"]), row["routine"], _outcome(row)]


def _outcome(row: Document) -> str:
    outcome: str = (row["outcome"] or "running").replace("_", " ")
    if row["exit_code"]:
        outcome += f" (exit status {row['exit_code']})"
    elif row["blocked_by"]:
        outcome += f" (overlap with run {row['blocked_by']})"
    elif row["reason"] and row["reason"] != "timeout":
        outcome += f" ({row['reason'].replace('_', ' ')})"
    if row["quiet"]:
        outcome += ", quiet"
    if row["count"] > 1:
        outcome += f", {row['count']} slots until {local_time(row['until'])}"
    if row["trigger"] != "schedule":
        outcome += f" [{row['trigger'].replace('_', ' ')}]"
    return outcome
