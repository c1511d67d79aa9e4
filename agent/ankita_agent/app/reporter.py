"""What the agent says about itself: one line at a time to people, its state to the manager and to the report."""

from collections.abc import Callable

from ankita_agent.app.dues import Dues
from ankita_agent.app.report import ConfigState, Report, WaitingRoutine
from ankita_agent.app.told import Lines, Tell
from ankita_agent.core.instants import Instant
from ankita_agent.ports.readiness import Readiness


class Reporter:
    """Tells each change once. A report that cannot be written is left alone: the next change tries again."""

    def __init__(
        self,
        tell: Tell,
        lines: Lines,
        publish: Callable[[Report], None],
        readiness: Readiness,
        token: str,
        version: str,
        *,
        inherits_environment: bool,
    ) -> None:
        self.tell = tell
        self.lines = lines
        self._publish = publish
        self._readiness = readiness
        self._token = token
        self._version = version
        self._inherits = inherits_environment
        self._degraded: dict[str, str] = {}
        self._config = ConfigState("", "")
        self._published: Report | None = None
        self._status = ""

    def degrade(self, what: str, reason: str, *, told: bool = False) -> None:
        """Something is not as it should be, until `mend`; told when it is new, unless it has been `told`."""
        if self._degraded.get(what) != reason:
            self._degraded[what] = reason
            if not told:
                self.tell(f"degraded: {reason}", warning=True)

    def mend(self, what: str) -> None:
        """That is well again."""
        if self._degraded.pop(what, None) is not None:
            self.tell(f"well again: {what}")

    @property
    def trouble(self) -> str:
        """The first reason why the agent is degraded, or nothing."""
        return next(iter(self._degraded.values()), "")

    def configured(self, path: str, error: str) -> None:
        """Where the routines come from, and why the newest edit is not in force (empty when it is)."""
        self._config = ConfigState(path, error)

    def publish(self, dues: Dues, woke_at: Instant | None, status: str) -> None:
        """Show the state as it is now, to the manager and in the report, where it changed."""
        waiting = tuple(WaitingRoutine(name, place.wait.value, place.since) for name, place in dues.line.items())
        report = Report(
            self._token,
            self._version,
            tuple(self._degraded.values()),
            self._config,
            waiting,
            woke_at,
            self._inherits,
        )
        if report != self._published:
            try:
                self._publish(report)
                self._published = report
            except OSError:  # a full disk has its own degradation
                pass
        if self._degraded:
            status = f"degraded: {self.trouble}; {status}"
        if status != self._status:
            self._status = status
            self._readiness.status(status)
