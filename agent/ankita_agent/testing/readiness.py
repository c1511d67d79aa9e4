"""A manager that remembers what it was told."""

from typing import Literal

from ankita_agent.core.instants import Duration

Told = tuple[Literal["ready", "status", "progress", "be_patient", "reloading", "stopping"], str]


class RecordedReadiness:
    """The Readiness port without a manager; `told` lists every message, oldest first, with its text.

    The text of `be_patient` is its span in nanoseconds.
    """

    def __init__(self, watchdog: Duration | None = None) -> None:
        self._watchdog = watchdog
        self._starting = True
        self._extended = Duration(0)
        self._serving = False
        self.told: list[Told] = []

    @property
    def watchdog(self) -> Duration | None:
        """What was given to the constructor."""
        return self._watchdog

    def ready(self, status: str) -> None:
        """Remember it."""
        self._starting, self._serving = False, True
        self.told.append(("ready", status))

    def status(self, text: str) -> None:
        """Remember it."""
        self.told.append(("status", text))

    def progress(self) -> None:
        """Remember it, when somebody waits for pings."""
        if self._watchdog is not None and self._serving:
            self.told.append(("progress", ""))

    def be_patient(self, span: Duration) -> None:
        """Remember it, when somebody would wait."""
        if self._starting and span >= self._extended:
            self._extended = span
            self.told.append(("be_patient", str(span)))
        elif self._watchdog is not None and self._serving:
            self.told.append(("be_patient", str(span)))

    def reloading(self) -> None:
        """Remember it."""
        self.told.append(("reloading", ""))

    def stopping(self, status: str) -> None:
        """Remember it."""
        self._starting = self._serving = False
        self.told.append(("stopping", status))
