"""What is the matter with the machine below the agent: facts in, findings out."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from ankita_agent.core.findings import Finding, FindingId, Severity

LITTLE_SPACE: Final = 100 * 1024 * 1024
"""Bytes. The ledger and outputs of a busy month take less; below it, a single run's output may fill the disk."""

FEW_INODES: Final = 1000


@dataclass(frozen=True, slots=True)
class DiskSeen:
    """The file system below the state: bytes and inodes that are free for us; None where it has no such limit."""

    path: str
    free: int
    inodes: int | None
    read_only: bool


class MessagesSeen(StrEnum):
    """What becomes of what the agent says in the journal."""

    KEPT = "kept"
    VOLATILE = "volatile"  # in memory, where ordinary users see nothing of it
    UNREADABLE = "unreadable"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class MachineSeen:
    """The machine. `clock` is whether it is synchronised; None where nobody can tell, as with `disk`.

    `ours` is whether the machine is one whose clock its user keeps, and no container.
    """

    disk: DiskSeen | None
    messages: MessagesSeen
    clock: bool | None
    ours: bool = True


def judge_machine(seen: MachineSeen) -> Iterator[Finding]:
    """Disk, journal and clock."""
    if seen.disk is not None:
        yield from _disk(seen.disk)
    match seen.messages:
        case MessagesSeen.VOLATILE:
            yield Finding(
                FindingId.JOURNAL_VOLATILE,
                Severity.NOTE,
                "the journal is kept in memory alone: journalctl --user shows you nothing, and it is gone at a reboot",
                "there is no /var/log/journal; the outputs of runs are kept all the same (ankita-agent logs)",
                "to have it kept",
                "sudo mkdir -p /var/log/journal && sudo journalctl --flush",
            )
        case MessagesSeen.UNREADABLE:
            yield Finding(
                FindingId.JOURNAL_UNREADABLE,
                Severity.NOTE,
                "your part of the journal cannot be read by you: journalctl --user shows nothing",
                "the outputs of runs are kept all the same (ankita-agent logs)",
                "to have a new one begun",
                "sudo journalctl --rotate",
            )
        case MessagesSeen.KEPT | MessagesSeen.NONE:
            pass
        case _:
            assert_never(seen.messages)
    if seen.clock is False:
        yield Finding(
            FindingId.CLOCK_UNSYNCHRONISED,
            Severity.WARNING if seen.ours else Severity.NOTE,
            "the clock is not synchronised, so slots come when it says so and not when they are due",
            "adjtimex(2) tells of an error of 16 s or more",
            "have it synchronised" if seen.ours else "that is up to the machine around this one",
            "sudo timedatectl set-ntp true" if seen.ours else "",
        )


def _disk(disk: DiskSeen) -> Iterator[Finding]:
    look = f"du -xh {shlex.quote(disk.path)} | sort -h | tail"
    if disk.read_only:
        yield Finding(
            FindingId.READ_ONLY,
            Severity.ERROR,
            f"the state directory {disk.path} is on a file system that is mounted read-only",
            "nothing can be recorded there, so nothing fires",
            "a disk with faults is mounted so; see why",
            "sudo dmesg | tail",
        )
    if disk.free < LITTLE_SPACE:
        yield Finding(
            FindingId.DISK_NEARLY_FULL,
            Severity.WARNING,
            f"the disk of the state directory is nearly full: {disk.free // 1024**2} MiB are left",
            "what cannot be recorded does not fire",
            "make some room; what is large there",
            look,
        )
    if disk.inodes is not None and disk.inodes < FEW_INODES:
        yield Finding(
            FindingId.INODES_NEARLY_USED_UP,
            Severity.WARNING,
            f"the disk of the state directory can take only {disk.inodes} more files",
            "a run whose output has no file does not start",
            "remove some files; where most are",
            f"du -x --inodes {shlex.quote(disk.path)} | sort -n | tail",
        )
