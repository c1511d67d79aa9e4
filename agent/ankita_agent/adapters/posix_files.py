"""Real files, by descriptor, never through a symbolic link."""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Mapping

from ankita_agent.ports.files import Descriptor, FileFacts, Inode

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a planted fifo must not hang. Read and write: NFSv4 wants it for an exclusive lock.
_FILE = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class PosixFiles:
    """ports.files.Files over openat(2), flock(2), renameat(2) and fsync(2)."""

    def open_directory(self, path: str) -> Descriptor:
        """Open a directory that is not a symbolic link."""
        return Descriptor(os.open(path, _DIRECTORY))

    def open_directory_at(self, parent: Descriptor, name: str) -> Descriptor:
        """Open a directory inside an open one."""
        return Descriptor(os.open(name, _DIRECTORY, dir_fd=parent))

    def make_directory(self, parent: Descriptor, name: str) -> None:
        """Make it with mode 0700, durably, unless it is there."""
        try:
            os.mkdir(name, 0o700, dir_fd=parent)
        except FileExistsError:
            return
        os.fsync(parent)

    def open_file(self, directory: Descriptor, name: str) -> Descriptor:
        """Open `name` to read and write; made when it is not there, never truncated."""
        return Descriptor(os.open(name, _FILE | os.O_CREAT, 0o600, dir_fd=directory))

    def try_lock(self, descriptor: Descriptor) -> bool:
        """Take the exclusive lock unless somebody has it."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def wait_lock(self, descriptor: Descriptor) -> None:
        """Wait in the kernel until the exclusive lock is ours."""
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def unlock(self, descriptor: Descriptor) -> None:
        """Let go of the lock for everybody who shares the open file description."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)

    def raised(self, descriptor: Descriptor, lowest: int) -> Descriptor:
        """The same open file at a number of at least `lowest`, if there is one; the old number is closed."""
        try:
            high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
        except OSError:  # RLIMIT_NOFILE is below it, or all above are taken: fcntl(2)
            return descriptor
        os.close(descriptor)
        return Descriptor(high)

    def facts(self, descriptor: Descriptor) -> FileFacts:
        """Facts of the open file."""
        return _facts(os.fstat(descriptor))

    def facts_at(self, directory: Descriptor, name: str) -> FileFacts:
        """Facts of what bears that name now."""
        return _facts(os.stat(name, dir_fd=directory, follow_symlinks=False))

    def facts_of(self, path: str) -> FileFacts:
        """Facts of what a whole path names now, the last link not followed."""
        return _facts(os.lstat(path))

    def read(self, directory: Descriptor, name: str, limit: int) -> bytes:
        """At most `limit` bytes of a regular file."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        descriptor = os.open(name, flags, dir_fd=directory)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "not a regular file", name)
            return os.read(descriptor, limit)
        finally:
            os.close(descriptor)

    def replace(self, directory: Descriptor, name: str, content: bytes) -> None:
        """Durably give `name` this content, whole or not at all."""
        self.replace_all(directory, {name: content})

    def replace_all(self, directory: Descriptor, contents: Mapping[str, bytes]) -> None:
        """Durably give each name its content, in this order."""
        temporaries = {name: _temporary(name) for name in contents}
        try:
            for name, content in contents.items():
                _write_durably(temporaries[name], content, directory)
            for name, temporary in temporaries.items():
                os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError:
            for temporary in temporaries.values():
                self.unlink(directory, temporary)
            raise
        os.fsync(directory)

    def create(self, directory: Descriptor, name: str, content: bytes) -> bool:
        """Durably make `name` with this content, whole or not at all, unless something bears that name."""
        temporary = _temporary(name)
        try:
            _write_durably(temporary, content, directory)
            os.link(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except FileExistsError:
            return False
        finally:
            self.unlink(directory, temporary)
        os.fsync(directory)
        return True

    def overwrite(self, descriptor: Descriptor, offset: int, content: bytes) -> None:
        """Write in place through the descriptor; not durable."""
        os.pwrite(descriptor, content, offset)

    def rename(self, directory: Descriptor, old: str, new: str) -> bool:
        """Rename within the directory; False when `old` is not there."""
        try:
            os.rename(old, new, src_dir_fd=directory, dst_dir_fd=directory)
        except FileNotFoundError:
            return False
        return True

    def unlink(self, directory: Descriptor, name: str) -> bool:
        """Remove the name; False when it is not there."""
        try:
            os.unlink(name, dir_fd=directory)
        except FileNotFoundError:
            return False
        return True

    def remove_directory(self, parent: Descriptor, name: str) -> bool:
        """Remove an empty directory; False when there is none of that name, or when it holds something."""
        try:
            os.rmdir(name, dir_fd=parent)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST):
                return False
            raise
        return True

    def names(self, directory: Descriptor) -> list[str]:
        """The names in it, sorted."""
        return sorted(os.listdir(directory))

    def close(self, descriptor: Descriptor) -> None:
        """Close it."""
        os.close(descriptor)

    def on_fork(self, in_child: Callable[[], None]) -> None:
        """Call `in_child` in every child forked from here."""
        os.register_at_fork(after_in_child=in_child)


def _temporary(name: str) -> str:
    return f".{name}.{os.getpid()}.new"


def _write_durably(name: str, content: bytes, directory: Descriptor) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o600, dir_fd=directory)
    try:
        _write_all(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def _facts(status: os.stat_result) -> FileFacts:
    return FileFacts(
        inode=Inode(status.st_dev, status.st_ino),
        regular=stat.S_ISREG(status.st_mode),
        directory=stat.S_ISDIR(status.st_mode),
        uid=status.st_uid,
        mode=stat.S_IMODE(status.st_mode),
        links=status.st_nlink,
    )
