"""The user's service manager: it starts the agent, watches it and brings it back.

Every call is bounded: one that the manager does not answer within the adapter's patience raises ManagerSilent, and
what was asked for may or may not have been done then. Each call may raise ManagerUnreachable, with nothing done.
Sources: systemctl(1), org.freedesktop.systemd1(5).
"""

from typing import Protocol

from ankita_agent.core.instants import Duration
from ankita_agent.core.service import JobEnd, UnitState


class ServiceManager(Protocol):
    """One user's manager. Units are named with their suffix: `ankita-agent.service`."""

    @property
    def name(self) -> str:
        """What people call it: `systemd`."""
        ...

    def version(self) -> int:
        """The major number of its version, such as 252."""
        ...

    def state(self, unit: str) -> UnitState:
        """The unit as it is now; one that is not there has `load` `not-found`."""
        ...

    def reload(self) -> None:
        """Have the unit files read again (`daemon-reload`)."""
        ...

    def enable(self, unit: str) -> None:
        """Have the unit start with the manager. Raises ManagerRefused: masked, no such unit file."""
        ...

    def disable(self, unit: str) -> None:
        """No longer start it with the manager; no harm in one that is not enabled or not there."""
        ...

    def start(self, unit: str, patience: Duration) -> JobEnd:
        """Start it and wait for the end of the job: of a unit of Type=notify, until it is ready.

        After `patience` the answer is PENDING, and the job goes on; zero does not wait. A unit that runs is DONE.
        Raises ManagerRefused where there can be no job: masked, no such unit, a bad unit file.
        """
        ...

    def stop(self, unit: str, patience: Duration) -> JobEnd:
        """Stop it and wait for the end of the job; else as `start`. A unit that does not run is DONE."""
        ...

    def restart(self, unit: str, patience: Duration) -> JobEnd:
        """Stop it if it runs, and start it; else as `start`."""
        ...

    def kill(self, unit: str, number: int) -> bool:
        """Send a signal to the main process of the unit; False when there is none."""
        ...

    def reset_failed(self, unit: str) -> None:
        """Forget that it failed; no harm in one that did not, or that is not there."""
        ...
