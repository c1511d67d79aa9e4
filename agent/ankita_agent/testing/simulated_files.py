"""ports.files.Files over a simulated kernel: one machine, any number of processes, one call at a time."""

from collections.abc import Callable, Mapping
from typing import Any

from ankita_agent.ports.files import Descriptor, FileFacts, Inode
from ankita_agent.testing.kernel import Kernel, Kind
from ankita_agent.testing.system_calls import Call, Facts, apply

Perform = Callable[[Call], Any]
"""Makes a call and gives what it returns; raises OSError."""


class Machine:
    """A machine whose kernel is the newest of many."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def performing(self, pid: int) -> Perform:
        """How the process of that number makes its calls."""

        def perform(call: Call) -> Any:
            self.kernel, result = apply(self.kernel, pid, call)
            return result

        return perform


class SimulatedFiles:
    """The port, for one process. `in_children` is what to call in a fork of it."""

    def __init__(self, perform: Perform) -> None:
        self._perform = perform
        self.in_children: list[Callable[[], None]] = []

    def open_directory(self, path: str) -> Descriptor:
        """Open a directory that is not a symbolic link."""
        return Descriptor(self._perform(Call("open_directory", (path,))))

    def open_directory_at(self, parent: Descriptor, name: str) -> Descriptor:
        """Open a directory inside an open one."""
        return Descriptor(self._perform(Call("open_directory_at", (parent, name))))

    def make_directory(self, parent: Descriptor, name: str) -> None:
        """Make it, durably, unless it is there."""
        self._perform(Call("make_directory", (parent, name)))

    def open_file(self, directory: Descriptor, name: str) -> Descriptor:
        """Open `name` to read and write; made when it is not there."""
        return Descriptor(self._perform(Call("open_file", (directory, name))))

    def try_lock(self, descriptor: Descriptor) -> bool:
        """Take the exclusive lock unless somebody has it."""
        return bool(self._perform(Call("try_lock", (descriptor,))))

    def wait_lock(self, descriptor: Descriptor) -> None:
        """Wait until the exclusive lock is ours."""
        self._perform(Call("wait_lock", (descriptor,)))

    def unlock(self, descriptor: Descriptor) -> None:
        """Let go of the lock for everybody who shares the open file description."""
        self._perform(Call("unlock", (descriptor,)))

    def raised(self, descriptor: Descriptor, lowest: int) -> Descriptor:
        """The same open file at a number of at least `lowest`."""
        return Descriptor(self._perform(Call("raised", (descriptor, lowest))))

    def facts(self, descriptor: Descriptor) -> FileFacts:
        """Facts of the open file."""
        return _file_facts(self._perform(Call("facts", (descriptor,))))

    def facts_at(self, directory: Descriptor, name: str) -> FileFacts:
        """Facts of what bears that name now."""
        return _file_facts(self._perform(Call("facts_at", (directory, name))))

    def facts_of(self, path: str) -> FileFacts:
        """Facts of what a whole path names now."""
        return _file_facts(self._perform(Call("facts_of", (path,))))

    def read(self, directory: Descriptor, name: str, limit: int) -> bytes:
        """At most `limit` bytes of a regular file."""
        return bytes(self._perform(Call("read", (directory, name, limit))))

    def replace(self, directory: Descriptor, name: str, content: bytes) -> None:
        """Durably give `name` this content, whole or not at all."""
        self._perform(Call("replace", (directory, name, content)))

    def replace_all(self, directory: Descriptor, contents: Mapping[str, bytes]) -> None:
        """Durably give each name its content, in this order."""
        self._perform(Call("replace_all", (directory, tuple(contents.items()))))

    def create(self, directory: Descriptor, name: str, content: bytes) -> bool:
        """Durably make `name` with this content unless something bears that name."""
        return bool(self._perform(Call("create", (directory, name, content))))

    def overwrite(self, descriptor: Descriptor, offset: int, content: bytes) -> None:
        """Write in place; not durable."""
        self._perform(Call("overwrite", (descriptor, offset, content)))

    def rename(self, directory: Descriptor, old: str, new: str) -> bool:
        """Rename within the directory; False when `old` is not there."""
        return bool(self._perform(Call("rename", (directory, old, new))))

    def unlink(self, directory: Descriptor, name: str) -> bool:
        """Remove the name; False when it is not there."""
        return bool(self._perform(Call("unlink", (directory, name))))

    def remove_directory(self, parent: Descriptor, name: str) -> bool:
        """Remove an empty directory; False when there is none."""
        return bool(self._perform(Call("remove_directory", (parent, name))))

    def names(self, directory: Descriptor) -> list[str]:
        """The names in it, sorted."""
        return list(self._perform(Call("names", (directory,))))

    def close(self, descriptor: Descriptor) -> None:
        """Close it."""
        self._perform(Call("close", (descriptor,)))

    def on_fork(self, in_child: Callable[[], None]) -> None:
        """Call `in_child` in every fork of this process."""
        self.in_children.append(in_child)


def _file_facts(facts: Facts) -> FileFacts:
    return FileFacts(
        inode=Inode(0, facts.number),
        regular=facts.kind is Kind.FILE,
        directory=facts.kind is Kind.DIRECTORY,
        uid=0,
        mode=facts.mode,
        links=facts.links,
    )
