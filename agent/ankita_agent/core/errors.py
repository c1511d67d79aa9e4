"""Faults that reach a person: each a class with an exit code, each instance with four parts.

The exit codes are the contract of docs/design.md ("Command line"); the class name is the stable id of the
fault, its text may change between versions.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from ankita_agent.core.service import Unreachable


class AnkitaError(Exception):
    """A fault of input or environment, told in four parts.

    `what` failed, with the value and where it came from; the `fact` that was observed; what is so `now`;
    what to `do`, as a command where possible. Nothing has been lost when one of these is raised.
    """

    exit_code: ClassVar[int] = 70

    def __init__(self, what: str, *, fact: str = "", now: str = "", do: str = "") -> None:
        super().__init__(what)
        self.what, self.fact, self.now, self.do = what, fact, now, do

    def __str__(self) -> str:
        first = f"{self.what}: {self.fact}" if self.fact else self.what
        return "\n  ".join(part for part in (first, self.now, self.do) if part)


class WrongUse(AnkitaError):
    """The command line was used wrongly."""

    exit_code = 2


class NotRunning(AnkitaError):
    """The command needs a running owner and there is none."""

    exit_code = 3


class NoSuchRoutine(AnkitaError):
    """A name that no routine in force bears."""

    exit_code = 4


class ManagerUnreachable(AnkitaError):
    """The service manager of this user cannot be asked; nothing was done. `reason` says why in one word."""

    exit_code = 69

    def __init__(self, reason: Unreachable, what: str, *, fact: str = "", now: str = "", do: str = "") -> None:
        super().__init__(what, fact=fact, now=now, do=do)
        self.reason = reason


class ManagerSilent(AnkitaError):
    """The service manager did not answer in time; what was asked for may or may not have been done."""

    exit_code = 69


class ManagerRefused(AnkitaError):
    """The service manager or the login manager refused what was asked for; nothing was changed by that call."""

    exit_code = 1


class ServiceNotUp(AnkitaError):
    """The service was asked to come up, or down, and did not."""

    exit_code = 1


class OurFault(AnkitaError):
    """A fault of ankita-agent itself."""

    exit_code = 70


class CannotWriteState(AnkitaError):
    """The state directory cannot be made, read or written: permission, read-only, full, unsafe, or not ours."""

    exit_code = 73


class SomeoneElseOwns(AnkitaError):
    """Another agent owns this state directory; come back later."""

    exit_code = 75


class Fenced(AnkitaError):
    """Ownership was lost while running: another token, term or inode. No more claims; bring me back."""

    exit_code = 75


class BadConfiguration(AnkitaError):
    """No usable routines.yaml, now or from before; starting again will not help until it is mended."""

    exit_code = 78


class LedgerUnavailable(AnkitaError):
    """The ledger could not be read or written just now. Nothing was recorded, so nothing may fire."""

    exit_code = 73


class LedgerDamaged(AnkitaError):
    """The ledger's file is not a sound database. Its owner sets it aside; nobody deletes it."""

    exit_code = 73


class LedgerTooNew(AnkitaError):
    """The ledger was written by a newer version; this one refuses to touch it."""

    exit_code = 73


@contextmanager
def saying(now: str, do: str) -> Iterator[None]:
    """A block of steps whose faults tell what is so `now`, and what to `do` where they know nothing better."""
    try:
        yield
    except AnkitaError as fault:
        fault.now = now
        if isinstance(fault, ManagerRefused) or not fault.do:
            fault.do = do
        raise
