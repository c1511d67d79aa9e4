"""Where the routines come from: the file that a person edits, and the copy of what was good last."""

from dataclasses import dataclass
from typing import Protocol

from ankita_agent.core.problems import Problem


@dataclass(frozen=True, slots=True)
class Found:
    """The file as it was at one moment."""

    content: bytes
    watch: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Absent:
    """There is no file; a link that leads nowhere is Unusable."""

    watch: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unusable:
    """There is something that must not or cannot be read; `problem` has line 0 and says what to do."""

    problem: Problem
    watch: tuple[str, ...]


class RoutineSource(Protocol):
    """The file that a person edits.

    Promise: what is given was read once, through one descriptor, from a regular file that nobody but its
    owner and root can change or replace. `watch` names every directory in which a change can mean another
    content: that of the file, of each symbolic link on the way and of the target; all of them exist. Limit:
    a file that is written in place may be seen half written, so it is best read when it has been left alone
    for a moment.
    """

    @property
    def path(self) -> str:
        """Its whole path, for messages."""
        ...

    def read(self) -> Found | Absent | Unusable:
        """Read it now. Never raises for what it finds there."""
        ...


class LastGood(Protocol):
    """The copy of the file that was in force last, in the state directory."""

    @property
    def path(self) -> str:
        """Its whole path, for messages."""
        ...

    def read(self) -> bytes | None:
        """Its content, None when there is none. Raises CannotWriteState when it cannot be read."""
        ...

    def write(self, content: bytes) -> None:
        """Replace it, durably and as a whole. Raises CannotWriteState; then the one before is still there."""
        ...
