"""Ctrl-C while something is being done to the service: what is so then, and what finishes it."""

from typing import Final

from ankita_agent.cli.output import say
from ankita_agent.core.install_plan import describe_halfway
from ankita_agent.wiring.service import look_halfway
from ankita_agent.wiring.user import ThisUser

STATUS: Final = 130
"""The exit status of a command that Ctrl-C ended."""


def say_halfway(user: ThisUser, finish: str) -> int:
    """Say what is so and that the command line `finish` completes it; the exit status."""
    written, state = look_halfway(user)
    say(f"interrupted: {describe_halfway(state, written=written)}", err=True)
    say(f"to finish it: {finish}", err=True)
    return STATUS
