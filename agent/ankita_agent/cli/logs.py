"""`ankita-agent logs`."""

import os
import sys
import time

import click

from ankita_agent.cli.output import local_time_of
from ankita_agent.cli.status import no_such_routine
from ankita_agent.core.errors import NoSuchRoutine, WrongUse
from ankita_agent.core.health import describe
from ankita_agent.core.rows import HistoryRow
from ankita_agent.ports.ledger import LedgerReader
from ankita_agent.wiring import Outlook, find_this_user, look_at_outputs, looking

_LOOK_EVERY = 0.2  # seconds between two looks at an output that is followed


@click.command("logs")
@click.argument("routine")
@click.option("--fire", type=int, help="The fire with this number instead of the newest.")
@click.option(
    "--lines", "-n", type=click.IntRange(1), default=200, show_default=True, help="The last lines only."
)
@click.option("--follow", "-f", is_flag=True, help="Go on until the run has ended.")
def command(routine: str, fire: int | None, lines: int, follow: bool) -> int:
    """The output of a routine's newest run, byte for byte; what it is goes to stderr.

    \b
    Example:
      ankita-agent logs backup -n 20
    """
    with looking(find_this_user(dict(os.environ)).places) as outlook:
        if outlook.ledger is None or outlook.state is None:
            raise no_such_routine(routine, [])
        row = _row(outlook.ledger, routine, fire)
        ended = "running" if row.outcome is None else describe(row)
        click.echo(f"fire {row.fire} of {routine}, slot {local_time_of(row.slot)}: {ended}", err=True)
        if row.log is None:
            if row.detail:
                click.echo(row.detail, err=True)
            return 0
        _print(outlook, row, lines, follow=follow)
    return 0


def _row(ledger: LedgerReader, routine: str, fire: int | None) -> HistoryRow:
    if fire is not None:
        row = ledger.row(fire)
        if row is None or row.routine != routine:
            raise WrongUse(
                f"fire {fire} of routine {routine!r} is not in the ledger",
                now="nothing is shown",
                do=f"see its fires: ankita-agent history {routine}",
            )
        return row
    rows = ledger.history(routine, 1000)
    for row in rows:
        if row.log is not None or (row.outcome is not None and row.detail):
            return row
    if rows or routine in ledger.accounts():
        raise NoSuchRoutine(
            f"routine {routine!r} has not run yet",
            now="there is no output to show",
            do=f"run it now: ankita-agent trigger {routine}",
        )
    raise no_such_routine(routine, list(ledger.accounts()))


def _print(outlook: Outlook, row: HistoryRow, lines: int, *, follow: bool) -> None:
    assert row.log is not None
    assert outlook.ledger is not None
    outputs = look_at_outputs(outlook)
    try:
        sys.stdout.buffer.write(outputs.last_lines(row.log, lines))
        sys.stdout.buffer.flush()
        if not follow:
            return
        with open(f"{find_this_user(dict(os.environ)).places.state}/{row.log}", "rb") as file:
            file.seek(0, os.SEEK_END)
            while True:
                now = outlook.ledger.row(row.fire)
                sys.stdout.buffer.write(file.read())
                sys.stdout.buffer.flush()
                if now is None or now.outcome is not None:
                    return
                time.sleep(_LOOK_EVERY)
    except FileNotFoundError:
        click.echo("its output is gone: only that of the newest runs is kept (keep_logs)", err=True)
