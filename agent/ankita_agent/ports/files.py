"""Files by descriptor and inode, as ownership needs them.

Everything is relative to an open directory and never follows a symbolic link, so that no path can be swapped
under our feet; a lock belongs to the open file description (flock(2)) and dies with its last descriptor. A
simulated kernel can stand behind this port, which is how ownership can be explored through every interleaving.

Errors: FileNotFoundError where said; every other fault of the file system is an OSError with its errno, and
what the call would have changed is either unchanged or, for `replace`, changed as a whole.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NewType, Protocol

Descriptor = NewType("Descriptor", int)


@dataclass(frozen=True, slots=True)
class Inode:
    """Which file, meaningful only while a descriptor of it is open: inode numbers are reused at once."""

    device: int
    number: int


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What fstat(2) says, as far as trust needs it."""

    inode: Inode
    regular: bool
    directory: bool
    uid: int
    mode: int
    links: int


class Files(Protocol):
    """The operations of a state directory; each is one step that can fail or be the last one made."""

    def open_directory(self, path: str) -> Descriptor:
        """Open a directory that is not a symbolic link. Raises FileNotFoundError, NotADirectoryError."""
        ...

    def open_directory_at(self, parent: Descriptor, name: str) -> Descriptor:
        """Open a directory inside an open one; errors as `open_directory`."""
        ...

    def make_directory(self, parent: Descriptor, name: str) -> None:
        """Make it with mode 0700 and make that durable; one that is there already is left as it is."""
        ...

    def open_file(self, directory: Descriptor, name: str) -> Descriptor:
        """Open `name` for reading and writing; made with mode 0600 when it is not there; never truncated."""
        ...

    def try_lock(self, descriptor: Descriptor) -> bool:
        """Take the exclusive lock unless somebody has it."""
        ...

    def wait_lock(self, descriptor: Descriptor) -> None:
        """Wait in the kernel until the exclusive lock is ours; no polling."""
        ...

    def unlock(self, descriptor: Descriptor) -> None:
        """Let go of the lock, for every process that shares this open file description."""
        ...

    def raised(self, descriptor: Descriptor, lowest: int) -> Descriptor:
        """The same open file and lock at a number of at least `lowest`; the old number is closed.

        It stays as it is where the limit on open files leaves no such number. Never raises.
        """
        ...

    def facts(self, descriptor: Descriptor) -> FileFacts:
        """Facts of the open file."""
        ...

    def facts_at(self, directory: Descriptor, name: str) -> FileFacts:
        """Facts of what bears that name now, links not followed. Raises FileNotFoundError."""
        ...

    def facts_of(self, path: str) -> FileFacts:
        """Facts of what a whole path names now, the last link not followed. Raises FileNotFoundError."""
        ...

    def read(self, directory: Descriptor, name: str, limit: int) -> bytes:
        """At most `limit` bytes of a regular file. Raises FileNotFoundError; OSError for anything else."""
        ...

    def replace(self, directory: Descriptor, name: str, content: bytes) -> None:
        """Durably give `name` this content: temporary file, fsync, rename, fsync of the directory."""
        ...

    def replace_all(self, directory: Descriptor, contents: Mapping[str, bytes]) -> None:
        """`replace` for several names, in this order: who finds a later one finds those before it too.

        Raises OSError; some of them may be replaced then.
        """
        ...

    def create(self, directory: Descriptor, name: str, content: bytes) -> bool:
        """Durably make `name` with this content, mode 0600; False when something, be it a link, bears that name."""
        ...

    def overwrite(self, descriptor: Descriptor, offset: int, content: bytes) -> None:
        """Write in place through the descriptor; not durable."""
        ...

    def rename(self, directory: Descriptor, old: str, new: str) -> bool:
        """Rename within the directory; False when `old` is not there (somebody else was first)."""
        ...

    def unlink(self, directory: Descriptor, name: str) -> bool:
        """Remove the name; False when it is not there."""
        ...

    def remove_directory(self, parent: Descriptor, name: str) -> bool:
        """Remove an empty directory; False when it is not there, no directory (a link is none) or not empty."""
        ...

    def names(self, directory: Descriptor) -> list[str]:
        """The names in it, sorted."""
        ...

    def close(self, descriptor: Descriptor) -> None:
        """Close it; its lock goes when no other descriptor shares the open file description."""
        ...

    def on_fork(self, in_child: Callable[[], None]) -> None:
        """Call `in_child` in every child that this process forks without executing another program."""
        ...
