"""`ankita-agent logs`."""

import os
import sys
import time

import click

from ankita_agent.cli.names import no_such_routine
from ankita_agent.cli.output import CannotPrint, local_time, printable, say
from ankita_agent.core.errors import WrongUse
from ankita_agent.core.health import describe
from ankita_agent.core.rows import HistoryRow
from ankita_agent.ports.ledger import LedgerReader
from ankita_agent.wiring.outlook import Outlook, look_at_outputs, looking
from ankita_agent.wiring.user import ThisUser, find_this_user

_LOOK_EVERY = 0.2  # seconds between two looks at an output that is followed
_NOTHING_TO_SHOW = 1
_MOST_NAMED = 8


@click.command("logs")
@click.argument("routine", required=False)
@click.option("--run", "fire", type=int, metavar="N", help="The run with this number instead of the newest.")
@click.option("--lines", "-n", type=click.IntRange(1), default=200, show_default=True, help="The last lines only.")
@click.option("--follow", "-f", is_flag=True, help="Go on until the run has ended.")
def command(routine: str | None, fire: int | None, lines: int, follow: bool) -> int:
    """The output of a routine's newest run, byte for byte; what it is goes to stderr.

    \b
    Exit status: 0 shown, 1 there is nothing to show, 4 no such routine.

    \b
    Example:
      ankita-agent logs backup -n 20
    """
    user = find_this_user(dict(os.environ))
    with looking(user.places) as outlook:
        if outlook.problem:
            raise outlook.problem
        if routine is None:
            raise _unnamed([] if outlook.ledger is None else list(outlook.ledger.accounts()))
        if outlook.ledger is None:
            raise no_such_routine(routine, [])
        row = _row(outlook.ledger, routine, fire)
        if row is None:
            return _NOTHING_TO_SHOW
        say(_heading(row), err=True)
        if row.log is None:
            return 0
        return _print(outlook, user, row, lines, follow=follow)


def _unnamed(known: list[str]) -> WrongUse:
    """Whose output is wanted was not said."""
    more = " …" if len(known) > _MOST_NAMED else ""
    return WrongUse(
        "logs shows the output of one routine, and none was named",
        fact=f"there are {len(known)}: {', '.join(known[:_MOST_NAMED])}{more}" if known else "no routine has run yet",
        do=f"for example: ankita-agent logs {known[0]}" if known else "see what there is: ankita-agent list",
    )


def _heading(row: HistoryRow) -> str:
    ended = "running" if row.outcome is None else describe(row)
    detail = f": {printable(row.detail)}" if row.detail else ""
    return f"run {row.fire} of {row.routine}, slot {local_time(row.slot)}: {ended}{detail}"


def _row(ledger: LedgerReader, routine: str, fire: int | None) -> HistoryRow | None:
    """The row to show; None, and said, when the routine has none."""
    if fire is not None:
        row = ledger.row(fire)
        if row is not None and row.routine == routine:
            return row
        say(f"{routine} has no run {fire}; see its runs: ankita-agent history {routine}", err=True)
        return None
    rows = ledger.history(routine, 1000)
    for row in rows:
        if row.log is not None or (row.outcome is not None and row.detail):
            return row
    if not rows and routine not in ledger.accounts():
        raise no_such_routine(routine, list(ledger.accounts()))
    say(f"{routine} has not run yet; run it now: ankita-agent trigger {routine}", err=True)
    return None


def _print(outlook: Outlook, user: ThisUser, row: HistoryRow, lines: int, *, follow: bool) -> int:
    assert row.log is not None
    path = f"{user.places.state}/{row.log}"
    out = sys.stdout.buffer
    try:
        shown = look_at_outputs(outlook).last_lines(row.log, lines)
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            if len(shown) < size:
                say(f"the last {lines} lines; all of it: {path}", err=True)
            out.write(shown)
            out.flush()
            while follow:
                now = outlook.ledger.row(row.fire) if outlook.ledger else None
                out.write(file.read())
                out.flush()
                if now is None or now.outcome is not None:
                    say(_heading(now or row), err=True)
                    break
                time.sleep(_LOOK_EVERY)
    except FileNotFoundError:
        click.echo("its output is gone: only that of the newest runs is kept (keep_logs)", err=True)
        return _NOTHING_TO_SHOW
    except (BrokenPipeError, CannotPrint):
        raise
    except OSError as error:
        say(f"cannot read its output {path}: {error.strerror or error}", err=True)
        return _NOTHING_TO_SHOW
    return 0
