"""`ankita-agent stop`."""

import click

from ankita_agent.app.service import STOP_AT_MOST
from ankita_agent.cli.service import act, now_option, patience_of, refuse_argument, stray_argument, timeout_option


@click.command("stop")
@stray_argument
@now_option
@timeout_option
def command(routine: str | None, now: bool, timeout: str | None) -> int:
    """Stop the service, and wait for what it runs.

    Nothing more starts from then on. Runs have `stop_drain` to end (20 s, unless routines.yaml says otherwise), then
    they are stopped. Ctrl-C ends the waiting, not the stop.

    \b
    Exit status: 0 it is down, 1 not in time, or another agent runs the routines
    all the same, 69 the service manager cannot be asked.

    \b
    Example:
      ankita-agent stop --now
    """
    refuse_argument(
        "stop",
        routine,
        f"to have {routine} run no more: `enabled: false` for it in routines.yaml    to stop all that runs: "
        "ankita-agent stop --now",
    )
    patience = patience_of(timeout, STOP_AT_MOST)
    return act("stop", lambda service: service.stop(patience, now=now))
