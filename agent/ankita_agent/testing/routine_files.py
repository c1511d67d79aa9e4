"""A file of routines, and the copy of what was good, without a disk."""

from ankita_agent.core.errors import CannotWriteState
from ankita_agent.core.problems import Problem
from ankita_agent.ports.routine_source import Absent, Found, Unusable

_WATCH = ("/config",)


class WrittenFile:
    """ports.routine_source.RoutineSource over `text`, which a test writes; None is no file.

    `unusable` stands for whatever keeps a real file from being read.
    """

    path = "/config/routines.yaml"

    def __init__(self, text: str | None) -> None:
        self.text = text
        self.unusable: Problem | None = None

    def read(self) -> Found | Absent | Unusable:
        """Read it now."""
        if self.unusable is not None:
            return Unusable(self.unusable, _WATCH)
        if self.text is None:
            return Absent(_WATCH)
        content = self.text.encode()
        return Found(content, _WATCH)


class KeptCopy:
    """ports.routine_source.LastGood in memory; while `broken`, it can be neither read nor written."""

    path = "/state/last-good.yaml"

    def __init__(self, content: bytes | None = None) -> None:
        self.content = content
        self.broken = False
        self.writes = 0

    def read(self) -> bytes | None:
        """Its content."""
        self._refuse_if_broken("read")
        return self.content

    def write(self, content: bytes) -> None:
        """Replace it."""
        self._refuse_if_broken("write")
        self.content = content
        self.writes += 1

    def _refuse_if_broken(self, verb: str) -> None:
        if self.broken:
            raise CannotWriteState(f"cannot {verb} the copy", fact="the disk is full", now="so", do="look")
