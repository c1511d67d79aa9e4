"""Premises as a test describes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ankita_agent.core.machine_diagnosis import DiskSeen, MessagesSeen
from ankita_agent.core.unit_diagnosis import UnitCopy


@dataclass
class DescribedPremises:
    """ports.premises.Premises that answer what they were told.

    `programs` are the whole paths of what can be executed; `units` the unit files by path; `owners` uids by path;
    `environments` variables by pid.
    """

    programs: set[str] = field(default_factory=set)
    units: dict[str, UnitCopy] = field(default_factory=dict)
    owners: dict[str, int] = field(default_factory=dict)
    environments: dict[int, dict[str, str]] = field(default_factory=dict)
    disk_seen: DiskSeen | None = None
    messages_seen: MessagesSeen = MessagesSeen.KEPT
    clock: bool | None = True
    delegated: frozenset[str] | None = frozenset({"cpu", "memory", "pids"})

    def find_program(self, name: str, path: str) -> str | None:
        """The first directory of the PATH that has it."""
        return next((directory for directory in path.split(":") if f"{directory}/{name}" in self.programs), None)

    def can_execute(self, path: str) -> bool:
        """Whether it is among the programs."""
        return path in self.programs

    def unit_at(self, path: str) -> UnitCopy | None:
        """The unit of that path."""
        return self.units.get(path)

    def same_directory(self, one: str, other: str) -> bool:
        """Whether both are written alike."""
        return one == other

    def owner_of(self, path: str) -> int | None:
        """The owner of that path."""
        return self.owners.get(path)

    def environment_of(self, pid: int) -> Mapping[str, str] | None:
        """The variables of that process."""
        return self.environments.get(pid)

    def disk(self, path: str) -> DiskSeen | None:  # noqa: ARG002
        """The disk."""
        return self.disk_seen

    def messages(self) -> MessagesSeen:
        """The journal."""
        return self.messages_seen

    def clock_synchronised(self) -> bool | None:
        """The clock."""
        return self.clock

    def controllers(self) -> frozenset[str] | None:
        """The controllers."""
        return self.delegated
