"""The machine and the directories around the agent, as far as doctor looks at them."""

from collections.abc import Mapping
from typing import Protocol

from ankita_agent.core.machine_diagnosis import DiskSeen, MessagesSeen
from ankita_agent.core.unit_diagnosis import UnitCopy


class Premises(Protocol):
    """Facts of the machine. No call changes anything, waits for anybody, or raises: what cannot be told is None.

    Limit: a file system that hangs, such as a network's that went away, holds up who looks into it.
    """

    def find_program(self, name: str, path: str) -> str | None:
        """The directory of a PATH in which a program of that name can be executed; None when in none."""
        ...

    def can_execute(self, path: str) -> bool:
        """Whether there is a file at this whole path that we may execute."""
        ...

    def unit_at(self, path: str) -> UnitCopy | None:
        """The unit file at a path, a link that leads nowhere included; None when there is none."""
        ...

    def same_directory(self, one: str, other: str) -> bool:
        """Whether both paths lead to one directory."""
        ...

    def owner_of(self, path: str) -> int | None:
        """The uid of the owner of what a path leads to."""
        ...

    def environment_of(self, pid: int) -> Mapping[str, str] | None:
        """The variables with which a process of ours was started (proc(5))."""
        ...

    def disk(self, path: str) -> DiskSeen | None:
        """The file system of a path, or of the nearest directory above it that is there. Source: statvfs(3)."""
        ...

    def messages(self) -> MessagesSeen:
        """What becomes of what is said in the journal. Source: journald.conf(5), Storage=."""
        ...

    def clock_synchronised(self) -> bool | None:
        """Whether something keeps the clock right. Source: adjtimex(2)."""
        ...

    def controllers(self) -> frozenset[str] | None:
        """The controllers of cgroups(7) that this user's service manager may use."""
        ...
