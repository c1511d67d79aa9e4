"""What attempts did, told at once and kept until the ledger has taken it: nothing is lost on a full disk."""

from ankita_agent.app.told import Lines, Tell
from ankita_agent.core.instants import Duration, Instant
from ankita_agent.core.rows import End, OpenFire, Start
from ankita_agent.ports.ledger import Ledger


class Book:
    """Starts and ends on their way to the ledger, in order."""

    def __init__(self, tell: Tell, lines: Lines) -> None:
        self._tell = tell
        self._lines = lines
        self._starts: list[Start] = []
        self._ends: list[End] = []
        self._open: dict[int, tuple[str, Instant | None]] = {}

    def started(self, start: Start, routine: str, slot: Instant) -> None:
        """An attempt of the routine's slot has a process."""
        self._open[start.fire] = (routine, start.started_at)
        self._starts.append(start)
        self._tell(self._lines.started(start, routine, Duration(max(0, start.started_at - slot))))

    def adopted(self, fire: OpenFire) -> None:
        """An attempt of a dead agent is ours to watch."""
        self._open[fire.fire] = (fire.routine, fire.started_at)
        self._tell(self._lines.adopted(fire))

    def ended(self, end: End, routine: str | None = None) -> str:
        """A fire is over; returns its routine."""
        known, started = self._open.pop(end.fire, (routine, None))
        name = known or "an unknown routine"
        took = None if started is None else Duration(max(0, end.ended_at - started))
        self._ends.append(end)
        self._tell(self._lines.ended(end, name, took), warning=not end.outcome.success)
        return name

    def write(self, ledger: Ledger) -> None:
        """Have the ledger take what it has not taken yet. Raises LedgerUnavailable; everything is kept then."""
        if self._starts or self._ends:
            ledger.record(self._starts, self._ends)
            self._starts, self._ends = [], []

    def forget(self) -> None:
        """Drop what belongs to a ledger that is no more; it has been told."""
        self._starts, self._ends = [], []
