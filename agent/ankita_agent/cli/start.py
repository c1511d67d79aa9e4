"""`ankita-agent start`."""

import click

from ankita_agent.app.service import START_AT_MOST
from ankita_agent.cli.service import act, patience_of, refuse_argument, stray_argument, timeout_option


@click.command("start")
@stray_argument
@timeout_option
def command(routine: str | None, timeout: str | None) -> int:
    """Start the agent as your service, and wait until it is ready.

    It was made one by `ankita-agent install`. To run it in a terminal instead: ankita-agent run

    \b
    Exit status: 0 it is up, 1 it did not come up, 69 the service manager cannot
    be asked.

    \b
    Example:
      ankita-agent start
    """
    refuse_argument("start", routine, f"to run it now: ankita-agent trigger {routine}")
    patience = patience_of(timeout, START_AT_MOST)
    return act("start", lambda service: service.start(patience))
