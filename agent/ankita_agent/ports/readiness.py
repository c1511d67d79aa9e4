"""Telling the service manager how we are."""

from typing import Protocol

from ankita_agent.core.instants import Duration


class Readiness(Protocol):
    """The manager that watches us, if one does. No call waits, raises, writes to disk or takes a lock.

    Three stages: starting until `ready`, serving until `stopping`, stopping. Only who serves is watched: while
    starting and stopping the manager's own time limits hold, and a ping would have it watch all the same.

    Source: sd_notify(3), systemd.service(5) WatchdogSec=, TimeoutStartSec=, TimeoutStopSec=.
    """

    @property
    def watchdog(self) -> Duration | None:
        """How long the manager waits for a ping before it acts, or None when nobody watches."""
        ...

    def ready(self, status: str) -> None:
        """We serve, as owner or as standby; `status` is one line for a person."""
        ...

    def status(self, text: str) -> None:
        """One line for a person, shown by the manager."""
        ...

    def progress(self) -> None:
        """A pass finished in order: the watchdog's ping. From here the manager waits for `watchdog` again."""
        ...

    def be_patient(self, span: Duration) -> None:
        """The next ping may come within `span` from now, be that longer or shorter than was said before.

        While starting: `ready` may take that much longer, and less than was asked for before changes nothing. While
        stopping: nothing.
        """
        ...

    def reloading(self) -> None:
        """The routines are being read again; `ready` follows."""
        ...

    def stopping(self, status: str) -> None:
        """We are on our way out, and ask for nothing more."""
        ...
