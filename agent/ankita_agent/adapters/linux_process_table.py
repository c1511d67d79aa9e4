"""What /proc says of processes, read raw: what is compared must not pass through anybody's arithmetic."""

import ctypes
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ankita_agent.core.identity import (
    Place,
    ProcessFacts,
    Unseen,
    number_of_namespace,
    parse_stat,
    parse_thread_group,
)

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_FLOCK: Final = re.compile(rb"^lock:\s+\d+: FLOCK +ADVISORY +WRITE +(\d+) ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class LockFile:
    """A file that is locked with flock(2): its name, for a first look, and what proves it."""

    name: str
    device: int
    inode: int


class LinuxProcessTable:
    """The processes of this PID namespace. Source: proc(5), pid_namespaces(7), time_namespaces(7)."""

    def __init__(self) -> None:
        self.place = _place()

    def adopt_orphans(self) -> bool:
        """Make this process the parent of every descendant that loses its own; whether the kernel does it."""
        try:
            done: int = ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        except (OSError, AttributeError):  # a C library without prctl
            return False
        return done == 0

    def facts(self, pid: int) -> ProcessFacts | Unseen:
        """What is known of `pid`, threads told from processes.

        A missing /proc/PID proves nothing (hidepid, proc(5)); only kill(2) can say that there is no such process.
        """
        try:
            seen = parse_stat(_read(f"/proc/{pid}/stat"))
            group = parse_thread_group(_read(f"/proc/{pid}/status"))
        except (OSError, ValueError):
            return _probe(pid)
        return seen if group == pid else _as_thread(seen, group)

    def ticks_of_child(self, pid: int) -> int:
        """When a child that is not reaped started; nobody else can have its number. 0 when it is not seen."""
        try:
            return parse_stat(_read(f"/proc/{pid}/stat")).ticks
        except (OSError, ValueError):
            return 0

    def all(self) -> dict[int, ProcessFacts]:
        """Every process that can be seen, by pid; one that began during the look may be missing.

        Who lost its parent during the look is looked at again, so that descent leads to who adopted it.
        """
        table = _seen(os.listdir("/proc"))
        orphaned = [str(pid) for pid, facts in table.items() if facts.parent and facts.parent not in table]
        return table | _seen(orphaned)

    def carries(self, pid: int, variable: bytes) -> bool:
        """Whether `NAME=value` is among the variables that `pid` was started with."""
        try:
            with open(f"/proc/{pid}/environ", "rb") as variables:
                return variable in variables.read().split(b"\0")
        except OSError:
            return False

    def lock_file(self, descriptor: int) -> LockFile:
        """Which file a descriptor of ours is open on."""
        status = os.fstat(descriptor)
        try:
            name = os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))
        except OSError:  # no /proc, so nobody will be found either
            name = ""
        return LockFile(name, status.st_dev, status.st_ino)

    def taker(self, pid: int, file: LockFile) -> int | None:
        """The pid of who took the exclusive lock that `pid` keeps held on that file; 0 for who cannot be told any more.

        None when it keeps none, or cannot be looked into. A lock is shown with the descriptors of the open file
        that holds it (__show_fd_locks, fs/locks.c), so one who merely opened the file has none. Names come first:
        asking for facts of everything that anybody has open could hang on a dead file server.
        """
        try:
            for number in os.listdir(f"/proc/{pid}/fd"):
                link = f"/proc/{pid}/fd/{number}"
                if os.path.basename(os.readlink(link)) != file.name:
                    continue
                lock = _FLOCK.search(_read(f"/proc/{pid}/fdinfo/{number}"))
                if lock is None:
                    continue
                status = os.stat(link)
                if (status.st_dev, status.st_ino) == (file.device, file.inode):
                    return int(lock[1])
        except OSError:  # ended meanwhile, or another user's
            pass
        return None

    def name(self, pid: int) -> str:
        """The name of its command, for people; empty when it is not seen."""
        try:
            return _read(f"/proc/{pid}/comm").decode("utf-8", "replace").rstrip("\n")
        except OSError:
            return ""


def _seen(names: Iterable[str]) -> dict[int, ProcessFacts]:
    table = {}
    for name in names:
        if not name.isdigit():
            continue
        try:
            facts = parse_stat(_read(f"/proc/{name}/stat"))
        except (OSError, ValueError):  # ended since it was listed, or hidden
            continue
        table[facts.pid] = facts
    return table


def _place() -> Place:
    try:
        boot = _read("/proc/sys/kernel/random/boot_id").decode("ascii").strip()
        own_proc = os.readlink("/proc/self") == str(os.getpid())
        pid_namespace = os.stat("/proc/self/ns/pid").st_ino
    except (OSError, ValueError):
        return Place("", 0, own_proc=False)
    try:
        time_namespace: int | None = os.stat("/proc/self/ns/time").st_ino
    except OSError:  # before Linux 5.6 there is only one
        time_namespace = None
    return Place(boot, number_of_namespace(pid_namespace, time_namespace), own_proc)


def _probe(pid: int) -> Unseen:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return Unseen.ABSENT
    except PermissionError:
        return Unseen.FORBIDDEN
    except OverflowError:  # no pid of any kernel
        return Unseen.ABSENT
    return Unseen.UNREADABLE


def _as_thread(facts: ProcessFacts, group: int) -> ProcessFacts:
    return ProcessFacts(facts.pid, facts.state, facts.parent, facts.group, facts.session, facts.ticks, group)


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 16_384)
    finally:
        os.close(descriptor)
