"""The loop's one wait."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ankita_agent.core.instants import Duration


@dataclass(frozen=True, slots=True)
class Happened:
    """Why a wait ended; all false and empty means that the time was up.

    `signals` in the order they came; `child` when a child may have ended; `changed` the names given to
    `watch` in which something changed; `poked` when another thread called the poke.
    """

    signals: tuple[int, ...] = ()
    child: bool = False
    changed: frozenset[str] = frozenset()
    poked: bool = False


class Wakeups(Protocol):
    """Child exits, signals, file events and a deadline, in one wait.

    Promise: what happened before or during a wait ends it; nothing is lost between two waits. Limit: several
    signals of the same number may be seen as one.
    """

    def watch(self, name: str, directory: str) -> bool:
        """Report changes in `directory` under `name`; False where the kernel has no watch to give.

        One name may stand for several directories.
        """
        ...

    def forget(self, name: str) -> None:
        """Stop watching every directory under that name."""
        ...

    def wait(self, at_most: Duration) -> Happened:
        """Wait until something happens, at most this long. The machine's sleep may lengthen it."""
        ...

    def poke(self) -> Callable[[], None]:
        """A function that ends the wait and may be called from any thread."""
        ...

    def close(self) -> None:
        """Let go of every descriptor and put the signal handlers back."""
        ...
