"""A manager that remembers what it was told."""

from typing import Literal

from ankita_agent.core.instants import Duration

Told = tuple[Literal["ready", "status", "progress", "reloading", "stopping"], str]


class RecordedReadiness:
    """The Readiness port without a manager; `told` lists every message, oldest first, with its text."""

    def __init__(self, watchdog: Duration | None = None) -> None:
        self._watchdog = watchdog
        self.told: list[Told] = []

    @property
    def watchdog(self) -> Duration | None:
        """What was given to the constructor."""
        return self._watchdog

    def ready(self, status: str) -> None:
        """Remember it."""
        self.told.append(("ready", status))

    def status(self, text: str) -> None:
        """Remember it."""
        self.told.append(("status", text))

    def progress(self) -> None:
        """Remember it, when somebody waits for pings."""
        if self._watchdog is not None:
            self.told.append(("progress", ""))

    def reloading(self) -> None:
        """Remember it."""
        self.told.append(("reloading", ""))

    def stopping(self, status: str) -> None:
        """Remember it."""
        self.told.append(("stopping", status))
