"""A kernel with files, descriptors and locks, as a value: what happens makes another kernel out of one.

The problem: ownership is decided by what the kernel does between two calls of two processes, and a real kernel can
neither be put back to where it was nor be asked for every order. The rule: the whole state is a value that can be
compared and kept, and what a call does is a function of it. A lock belongs to the open file description (flock(2)),
which dup and fork share; a file lives as long as a name or a description refers to it; a directory that was removed
takes no new names.

An inode number is found from the name under which the file was made, and is given again as soon as it is free, as
ext4 does: who remembers the number of a file that is closed by now is deceived, as it would be there.

What is not on the disk is a list of changes; a loss of power takes some of them back (`without_power`). It knows no
permissions and no links on the way of a path. A process that dies loses all descriptors in one moment; that they go
one by one can be seen in a release as well, which is many calls.

tests/contract/test_files_contract.py holds it to the real one. Rejected: a kernel that is changed in place and
records how to undo it (a copy was made of all of it for each state that was kept).
"""

import errno
import os
import zlib
from collections.abc import Collection, Hashable, Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

ROOT: Final = 1
"""The inode of the directory `/`."""

_FIRST_DESCRIPTOR: Final = 3


class Map(dict[K, V]):
    """A dictionary that is never changed once it is made, and so can be hashed; the hash is kept."""

    __slots__ = ("_hash",)
    _hash: int

    def __hash__(self) -> int:  # type: ignore[override]
        try:
            return self._hash
        except AttributeError:
            self._hash = hash(frozenset(self.items()))
            return self._hash

    def having(self, key: K, value: V) -> "Map[K, V]":
        """The same with this entry."""
        new = Map(self)
        new[key] = value
        return new

    def without(self, key: K) -> "Map[K, V]":
        """The same without this entry, if it has it."""
        new = Map(self)
        new.pop(key, None)
        return new


class Kind(Enum):
    """What an inode is."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    FIFO = "fifo"

    __hash__ = object.__hash__  # the members are themselves alone, and this is asked a million times


class File(NamedTuple):
    """An inode. The content of a link is where it leads."""

    kind: Kind
    content: bytes
    mode: int


Name = tuple[int, str]
"""A name in a directory, by the directory's inode."""

Description = tuple[int, int]
"""An open file description: the process that opened it, and which of its own."""


class Change(NamedTuple):
    """What is not on the disk yet: what these names of a directory named before, or what the file `inode` held."""

    inode: int
    names: tuple[tuple[str, int | None], ...] = ()
    content: bytes | None = None


class Kernel(NamedTuple):
    """The whole state. `unsynced` is kept only while `remembers`; `newest_term` is what a ledger would hold."""

    inodes: Map[int, File] = Map({ROOT: File(Kind.DIRECTORY, b"", 0o700)})
    names: Map[Name, int] = Map()
    opened: Map[Description, int] = Map()
    locks: Map[int, Description] = Map()
    tables: Map[tuple[int, int], Description] = Map()
    unsynced: tuple[Change, ...] = ()
    remembers: bool = False
    newest_term: int = 0

    # -- looking

    def find(self, path: str) -> int:
        """The inode that a path names. Raises ENOENT, ENOTDIR."""
        inode = ROOT
        for part in filter(None, path.split("/")):
            inode = self.named(inode, part)
        return inode

    def named(self, directory: int, name: str) -> int:
        """The inode that bears a name in a directory. Raises ENOENT, ENOTDIR."""
        if self.inodes[directory].kind is not Kind.DIRECTORY:
            raise fault(errno.ENOTDIR, name)
        try:
            return self.names[directory, name]
        except KeyError:
            raise fault(errno.ENOENT, name) from None

    def names_in(self, directory: int) -> tuple[str, ...]:
        """The names in a directory, sorted."""
        return tuple(sorted(name for within, name in self.names if within == directory))

    def lives(self, directory: int) -> bool:
        """Whether a directory has not been removed."""
        return directory == ROOT or directory in self.names.values()

    def path_of(self, inode: int) -> str:
        """Where an inode is; for people."""
        if inode == ROOT:
            return ""
        for (directory, name), named in self.names.items():
            if named == inode:
                return f"{self.path_of(directory)}/{name}"
        return "(a file without a name)"

    def description_of(self, pid: int, descriptor: int) -> Description:
        """The open file description behind a descriptor. Raises EBADF."""
        try:
            return self.tables[pid, descriptor]
        except KeyError:
            raise fault(errno.EBADF, str(descriptor)) from None

    def inode_of(self, pid: int, descriptor: int) -> int:
        """What a descriptor of a process opened. Raises EBADF."""
        return self.opened[self.description_of(pid, descriptor)]

    def has_open(self, pid: int, inode: int) -> bool:
        """Whether a process has a descriptor of that file."""
        return any(owner == pid and self.opened[each] == inode for (owner, _), each in self.tables.items())

    # -- changing: each gives another kernel

    def with_file(self, directory: int, name: str, file: File) -> tuple["Kernel", int]:
        """Make a file and name it; the inode as well. Raises ENOENT where the directory was removed."""
        if not self.lives(directory):
            raise fault(errno.ENOENT, name)
        number = zlib.crc32(name.encode()) << 8
        while number in self.inodes or number == ROOT:
            number += 1
        return self._replace(inodes=self.inodes.having(number, file)).with_names(directory, {name: number}), number

    def with_content(self, inode: int, content: bytes) -> "Kernel":
        """Let a file hold this."""
        file = self.inodes[inode]
        kernel = self._remembering(Change(inode, content=file.content))
        return kernel._replace(inodes=self.inodes.having(inode, file._replace(content=content)))

    def with_names(self, directory: int, names: Mapping[str, int | None]) -> "Kernel":
        """Let these names of a directory name these inodes, or nothing."""
        bound, before = self.names, []
        for name, inode in names.items():
            before.append((name, bound.get((directory, name))))
            bound = bound.without((directory, name)) if inode is None else bound.having((directory, name), inode)
        kernel = self._replace(names=bound)._remembering(Change(directory, tuple(before)))
        return kernel._forgetting(old for _, old in before)

    def synced(self, inode: int) -> "Kernel":
        """fsync(2): every change of a directory's names, or of a file's content, is on the disk."""
        done = [each for each in self.unsynced if each.inode == inode]
        if not done:
            return self
        left = tuple(each for each in self.unsynced if each not in done)
        return self._replace(unsynced=left)._forgetting(old for each in done for _, old in each.names)

    def opening(self, pid: int, inode: int) -> tuple["Kernel", int]:
        """Open a file; the lowest free descriptor as well."""
        number = 0
        while (pid, number) in self.opened:
            number += 1
        descriptor = self.free_descriptor(pid, _FIRST_DESCRIPTOR)
        opened = self.opened.having((pid, number), inode)
        return self._replace(opened=opened, tables=self.tables.having((pid, descriptor), (pid, number))), descriptor

    def free_descriptor(self, pid: int, lowest: int) -> int:
        """The lowest number from `lowest` on that is no descriptor of the process."""
        while (pid, lowest) in self.tables:
            lowest += 1
        return lowest

    def closing(self, pid: int, descriptor: int) -> "Kernel":
        """Close a descriptor; with the last one of a description its lock goes. Raises EBADF."""
        description = self.description_of(pid, descriptor)
        tables = self.tables.without((pid, descriptor))
        if description in tables.values():
            return self._replace(tables=tables)
        inode = self.opened[description]
        locks = self.locks.without(inode) if self.locks.get(inode) == description else self.locks
        kernel = self._replace(tables=tables, locks=locks, opened=self.opened.without(description))
        return kernel._forgetting([inode])

    def forking(self, pid: int, child: int) -> "Kernel":
        """A child that shares every open file description."""
        mine = {(child, descriptor): each for (owner, descriptor), each in self.tables.items() if owner == pid}
        return self._replace(tables=Map({**self.tables, **mine}))

    def without_processes(self, pids: Collection[int]) -> "Kernel":
        """After the end of processes, whatever ended them: the kernel has closed what they had open."""
        tables = Map({key: each for key, each in self.tables.items() if key[0] not in pids})
        held = set(tables.values())
        opened = Map({each: inode for each, inode in self.opened.items() if each in held})
        locks = Map({inode: each for inode, each in self.locks.items() if each in held})
        closed = [inode for each, inode in self.opened.items() if each not in held]
        return self._replace(tables=tables, opened=opened, locks=locks)._forgetting(closed)

    def without_power(self, lost: int, *, contents: bool = False) -> "Kernel":
        """After a loss of power: no process is left, and the last `lost` changes never reached the disk.

        File systems write names in the order of their changes, and contents in any: with `contents`, none of those
        that were not flushed reached it either.
        """
        kernel = self.without_processes({owner for owner, _ in self.tables})
        changes = kernel.unsynced
        kernel = kernel._replace(unsynced=(), remembers=False)
        for position in reversed(range(len(changes))):
            inode, names, content = changes[position]
            if content is None and position >= len(changes) - lost:
                kernel = kernel.with_names(inode, dict(names))
            elif content is not None and inode in kernel.inodes and (contents or position >= len(changes) - lost):
                kernel = kernel.with_content(inode, content)
        return kernel._replace(remembers=self.remembers)._forgetting(kernel.inodes)

    def _remembering(self, change: Change) -> "Kernel":
        return self._replace(unsynced=(*self.unsynced, change)) if self.remembers else self

    def _forgetting(self, inodes: Iterable[int | None]) -> "Kernel":
        """Without those of the inodes that have no name, are not open, and that no change could bring back."""
        gone = [inode for inode in inodes if inode is not None and not self._refers_to(inode)]
        if not gone:
            return self
        return self._replace(inodes=Map({key: file for key, file in self.inodes.items() if key not in gone}))

    def _refers_to(self, inode: int) -> bool:
        if inode == ROOT or inode in self.names.values() or inode in self.opened.values():
            return True
        return any(old == inode for change in self.unsynced for _, old in change.names)


def fault(number: int, name: str = "") -> OSError:
    """What a call raises, as Python makes it of an errno."""
    return OSError(number, os.strerror(number), name)
