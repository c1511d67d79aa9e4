"""What the agent acts through and how it was started, as one value each."""

from dataclasses import dataclass

from ankita_agent.ports.clock import Clock
from ankita_agent.ports.processes import Processes
from ankita_agent.ports.readiness import Readiness
from ankita_agent.ports.wakeups import Wakeups


@dataclass(frozen=True, slots=True)
class World:
    """The ports that the agent acts through."""

    clock: Clock
    wakeups: Wakeups
    processes: Processes
    readiness: Readiness


@dataclass(frozen=True, slots=True)
class Manner:
    """How this agent was started.

    `standby`: wait for ownership instead of refusing. `in_terminal`: a hang-up means that somebody left.
    `machine`: any text that stays the same for this machine. `requests_directory`: where manual runs are asked.
    """

    standby: bool
    in_terminal: bool
    machine: str
    requests_directory: str
