"""The output of attempts: one file for each fire, never a pipe that a descendant could hold open."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from ankita_agent.core.instants import Instant


@dataclass(frozen=True, slots=True)
class Output:
    """An open file that attempts append to.

    `log` is its path, relative to the state directory; `start` the offset at which this attempt began (a
    retry goes on in the file of its fire).
    """

    log: str
    descriptor: int
    start: int


class Outputs(Protocol):
    """Files under `logs/`, 0600, one for each fire.

    Promise: what was written is kept byte for byte, whether text or not; past the limit the middle is cut
    out, also while the attempt still writes, and a line says how many bytes went. Limit: between two calls of
    `trim` a file may grow by as much as the disk can take; what is written in the very moment of the last cut
    may be lost with the middle.

    Errors: every call but `finish` and `discard` may raise OSError; the attempt itself is never disturbed.
    """

    def open(self, routine: str, slot: Instant, fire: int) -> Output:
        """Open the file of a fire to append to. Raises OSError, such as when the disk is full."""
        ...

    def reopen(self, log: str) -> Output:
        """Open an existing one, of an attempt that another agent started. Raises FileNotFoundError."""
        ...

    def trim(self, output: Output) -> int:
        """Free the middle of what is past the limit; returns how many bytes were written to it in all."""
        ...

    def says(self, output: Output, text: str) -> bool:
        """Whether this attempt wrote exactly that text, white space around it aside."""
        ...

    def finish(self, output: Output) -> None:
        """Nobody needs it open any more: cut out the middle for good, then close it. Never raises."""
        ...

    def discard(self, output: Output) -> None:
        """No attempt came to be: close it, and remove it when it is empty. Never raises."""
        ...

    def last_lines(self, log: str, count: int) -> bytes:
        """The last `count` lines, at most a mebibyte of them. Raises FileNotFoundError when it was pruned."""
        ...

    def prune(self, routine: str, keep: int, spare: Collection[int]) -> None:
        """Remove the files of all but the newest `keep` fires of the routine; those in `spare` stay."""
        ...
