"""`ankita-agent run`."""

import faulthandler
import os
import sys

import click

from ankita_agent.cli.output import Teller, local_time, takes_ranks
from ankita_agent.core.errors import WrongUse
from ankita_agent.wiring.agent import AgentOptions, run_agent
from ankita_agent.wiring.user import find_this_user


@click.command("run")
@click.option("--standby", is_flag=True, help="Wait for ownership instead of refusing when somebody owns.")
@click.option("--inherit-env", is_flag=True, help="Give runs this shell's environment instead of the service's.")
@click.option("--takeover", is_flag=True, hidden=True)
@click.argument("routine", required=False, metavar="")
def command(standby: bool, inherit_env: bool, takeover: bool, routine: str | None) -> int:
    """Run the agent here, until Ctrl-C: it fires the routines of routines.yaml.

    The first Ctrl-C hands back and waits for what runs, a second one stops that. What happens is told on
    stderr, a line at a time.

    \b
    Exit status: 0 done, 75 another agent owns (or took) the state directory,
    73 the state cannot be written, 78 there is no usable routines.yaml.

    \b
    Example:
      ankita-agent run --standby
    """
    if routine is not None:
        raise WrongUse(
            f"run takes no routine, and {routine!r} was given",
            now="nothing was started",
            do=f"to run it now: ankita-agent trigger {routine}",
        )
    if takeover:
        raise WrongUse(
            "run has no --takeover",
            now="nothing was started",
            do="to own as soon as the present owner goes: ankita-agent run --standby",
        )
    if sys.stderr is not None:
        faulthandler.enable()  # the stacks, when a manager ends us by SIGABRT
    options = AgentOptions(
        standby=standby,
        inherit_environment=inherit_env,
        in_terminal=_has_terminal(),
        umask=os.umask(0o077),
        tell=Teller(ranked=takes_ranks()),
        local=local_time,
    )
    return run_agent(find_this_user(dict(os.environ)), options)


def _has_terminal() -> bool:
    """Whether a controlling terminal is there: then a hang-up means that somebody left."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True
