"""`ankita-agent restart`."""

import click

from ankita_agent.app.service import START_AT_MOST, STOP_AT_MOST
from ankita_agent.cli.service import act, now_option, patience_of, refuse_argument, stray_argument, timeout_option
from ankita_agent.core.instants import Duration


@click.command("restart")
@stray_argument
@now_option
@timeout_option
def command(routine: str | None, now: bool, timeout: str | None) -> int:
    """Stop the service, wait for what it runs, and start it again.

    So that another version, or an edited unit, is in force. A saved routines.yaml is in force without. Ctrl-C ends the
    waiting, not the restart.

    \b
    Exit status: 0 it is up again, 1 it is not, or not in time, 69 the service
    manager cannot be asked.

    \b
    Example:
      ankita-agent restart
    """
    refuse_argument("restart", routine, f"to run it now: ankita-agent trigger {routine}")
    patience = patience_of(timeout, Duration(STOP_AT_MOST + START_AT_MOST))
    return act("restart", lambda service: service.restart(patience, now=now))
