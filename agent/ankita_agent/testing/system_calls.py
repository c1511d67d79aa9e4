"""What a process can ask the simulated kernel for: ports.files.Files call by call, fork, kill with 0, a ledger's term.

A call is one step. A durable one is several inside, so a process that dies within it leaves one of the `ENDS`; and it
can fail as `FAULTS` says. EINTR is not among them: Python repeats what a signal interrupted (PEP 475).
"""

import errno
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ankita_agent.testing.kernel import File, Kernel, Kind, fault

Done = tuple[Kernel, Any]
"""The kernel after a call, and what the call returns."""


class Call(NamedTuple):
    """A call of a process: its name in `CALLS` and what it is called with, without the process."""

    name: str
    arguments: tuple[Any, ...] = ()


class Facts(NamedTuple):
    """What stat(2) says of an inode. The links of a directory differ among file systems: here, its names."""

    number: int
    kind: Kind
    mode: int
    links: int


def apply(kernel: Kernel, pid: int, call: Call) -> Done:
    """What the call does. Raises OSError; nothing has changed then."""
    return CALLS[call.name](kernel, pid, *call.arguments)


def blocked(kernel: Kernel, pid: int, call: Call) -> bool:
    """Whether the call waits for somebody else: for a lock that another description holds."""
    if call.name != "wait_lock":
        return False
    mine = kernel.description_of(pid, call.arguments[0])
    return kernel.locks.get(kernel.opened[mine], mine) != mine


def _open_directory(kernel: Kernel, pid: int, path: str) -> Done:
    return _open_as_directory(kernel, pid, kernel.find(path))


def _open_directory_at(kernel: Kernel, pid: int, parent: int, name: str) -> Done:
    return _open_as_directory(kernel, pid, kernel.named(kernel.inode_of(pid, parent), name))


def _open_as_directory(kernel: Kernel, pid: int, inode: int) -> Done:
    if kernel.inodes[inode].kind is not Kind.DIRECTORY:
        raise fault(errno.ENOTDIR)
    return kernel.opening(pid, inode)


def _make_directory(kernel: Kernel, pid: int, parent: int, name: str) -> Done:
    made, _ = _make_directory_unflushed(kernel, pid, parent, name)
    return (kernel if made is kernel else made.synced(kernel.inode_of(pid, parent))), None


def _make_directory_unflushed(kernel: Kernel, pid: int, parent: int, name: str) -> Done:
    directory = kernel.inode_of(pid, parent)
    if (directory, name) in kernel.names:
        return kernel, None
    return kernel.with_file(directory, name, File(Kind.DIRECTORY, b"", 0o700))[0], None


def _open_file(kernel: Kernel, pid: int, directory: int, name: str) -> Done:
    parent = kernel.inode_of(pid, directory)
    inode = kernel.names.get((parent, name))
    if inode is None:
        kernel, inode = kernel.with_file(parent, name, File(Kind.FILE, b"", 0o600))
    _refuse(kernel, inode, {Kind.LINK: errno.ELOOP, Kind.DIRECTORY: errno.EISDIR})
    return kernel.opening(pid, inode)


def _refuse(kernel: Kernel, inode: int, errors: dict[Kind, int]) -> None:
    kind = kernel.inodes[inode].kind
    if kind in errors:
        raise fault(errors[kind], kernel.path_of(inode))


def _try_lock(kernel: Kernel, pid: int, descriptor: int) -> Done:
    mine = kernel.description_of(pid, descriptor)
    inode = kernel.opened[mine]
    if kernel.locks.get(inode, mine) != mine:
        return kernel, False
    return kernel._replace(locks=kernel.locks.having(inode, mine)), True


def _wait_lock(kernel: Kernel, pid: int, descriptor: int) -> Done:
    kernel, taken = _try_lock(kernel, pid, descriptor)
    if not taken:
        raise AssertionError("this call would wait for ever: nobody else runs on this machine")
    return kernel, None


def _unlock(kernel: Kernel, pid: int, descriptor: int) -> Done:
    mine = kernel.description_of(pid, descriptor)
    inode = kernel.opened[mine]
    held = kernel.locks.get(inode) == mine
    return (kernel._replace(locks=kernel.locks.without(inode)) if held else kernel), None


def _raised(kernel: Kernel, pid: int, descriptor: int, lowest: int) -> Done:
    description = kernel.description_of(pid, descriptor)
    high = kernel.free_descriptor(pid, lowest)
    tables = kernel.tables.without((pid, descriptor)).having((pid, high), description)
    return kernel._replace(tables=tables), high


def _facts(kernel: Kernel, pid: int, descriptor: int) -> Done:
    return kernel, _told(kernel, kernel.inode_of(pid, descriptor))


def _facts_at(kernel: Kernel, pid: int, directory: int, name: str) -> Done:
    return kernel, _told(kernel, kernel.named(kernel.inode_of(pid, directory), name))


def _facts_of(kernel: Kernel, _pid: int, path: str) -> Done:
    return kernel, _told(kernel, kernel.find(path))


def _told(kernel: Kernel, inode: int) -> Facts:
    file = kernel.inodes[inode]
    return Facts(inode, file.kind, file.mode, sum(named == inode for named in kernel.names.values()))


def _read(kernel: Kernel, pid: int, directory: int, name: str, limit: int) -> Done:
    inode = kernel.named(kernel.inode_of(pid, directory), name)
    _refuse(kernel, inode, {Kind.LINK: errno.ELOOP, Kind.DIRECTORY: errno.EINVAL, Kind.FIFO: errno.EINVAL})
    return kernel, kernel.inodes[inode].content[:limit]


def _temporary(name: str, pid: int) -> str:
    return f".{name}.{pid}.new"


def _write_temporary(kernel: Kernel, pid: int, directory: int, name: str, content: bytes) -> tuple[Kernel, int]:
    temporary = _temporary(name, pid)
    inode = kernel.names.get((directory, temporary))
    if inode is None:
        return kernel.with_file(directory, temporary, File(Kind.FILE, content, 0o600))
    return kernel.with_content(inode, content).synced(inode), inode


def _replace(kernel: Kernel, pid: int, directory: int, name: str, content: bytes) -> Done:
    return _replace_unflushed(kernel, pid, directory, name, content)[0].synced(kernel.inode_of(pid, directory)), None


def _replace_unflushed(kernel: Kernel, pid: int, directory: int, name: str, content: bytes) -> Done:
    parent = kernel.inode_of(pid, directory)
    written, inode = _write_temporary(kernel, pid, parent, name, content)
    if (parent, name) in kernel.names:
        _refuse(kernel, kernel.names[parent, name], {Kind.DIRECTORY: errno.EISDIR})
    return written.with_names(parent, {_temporary(name, pid): None, name: inode}), None


def _replace_cut_short(kernel: Kernel, pid: int, directory: int, name: str, content: bytes) -> Done:
    half = content[: len(content) // 2]
    return _write_temporary(kernel, pid, kernel.inode_of(pid, directory), name, half)[0], None


def _replace_all(kernel: Kernel, pid: int, directory: int, contents: tuple[tuple[str, bytes], ...]) -> Done:
    for name, content in contents:
        kernel, _ = _replace(kernel, pid, directory, name, content)
    return kernel, None


def _create(kernel: Kernel, pid: int, directory: int, name: str, content: bytes) -> Done:
    parent = kernel.inode_of(pid, directory)
    if not kernel.lives(parent):
        raise fault(errno.ENOENT, name)
    if (parent, name) in kernel.names:
        return kernel, False
    return _replace(kernel, pid, directory, name, content)[0], True


def _overwrite(kernel: Kernel, pid: int, descriptor: int, offset: int, content: bytes) -> Done:
    inode = kernel.inode_of(pid, descriptor)
    file = kernel.inodes[inode]
    if file.kind is not Kind.FILE:
        raise fault(errno.EBADF, str(descriptor))
    before, after = file.content[:offset].ljust(offset, b"\0"), file.content[offset + len(content) :]
    return kernel.with_content(inode, before + content + after), None


def _overwrite_cut_short(kernel: Kernel, pid: int, descriptor: int, offset: int, content: bytes) -> Done:
    return _overwrite(kernel, pid, descriptor, offset, content[: len(content) // 2])


def _rename(kernel: Kernel, pid: int, directory: int, old: str, new: str) -> Done:
    parent = kernel.inode_of(pid, directory)
    inode, there = kernel.names.get((parent, old)), kernel.names.get((parent, new))
    if inode is None:
        return kernel, False
    if there == inode:
        return kernel, True
    if there is not None:
        moved, onto = kernel.inodes[inode].kind, kernel.inodes[there].kind
        if (moved is Kind.DIRECTORY) != (onto is Kind.DIRECTORY):
            raise fault(errno.ENOTDIR if moved is Kind.DIRECTORY else errno.EISDIR, new)
        if kernel.names_in(there):
            raise fault(errno.ENOTEMPTY, new)
    return kernel.with_names(parent, {old: None, new: inode}), True


def _unlink(kernel: Kernel, pid: int, directory: int, name: str) -> Done:
    parent = kernel.inode_of(pid, directory)
    if (parent, name) not in kernel.names:
        return kernel, False
    _refuse(kernel, kernel.names[parent, name], {Kind.DIRECTORY: errno.EISDIR})
    return kernel.with_names(parent, {name: None}), True


def _remove_directory(kernel: Kernel, pid: int, parent: int, name: str) -> Done:
    above = kernel.inode_of(pid, parent)
    inode = kernel.names.get((above, name))
    if inode is None or kernel.inodes[inode].kind is not Kind.DIRECTORY or kernel.names_in(inode):
        return kernel, False
    return kernel.with_names(above, {name: None}), True


def _names(kernel: Kernel, pid: int, directory: int) -> Done:
    return kernel, kernel.names_in(kernel.inode_of(pid, directory))


def _close(kernel: Kernel, pid: int, descriptor: int) -> Done:
    return kernel.closing(pid, descriptor), None


def _fork(kernel: Kernel, pid: int, child: int) -> Done:
    return kernel.forking(pid, child), child


def _ready(kernel: Kernel, _pid: int) -> Done:
    return kernel, None


def _sees(kernel: Kernel, _pid: int, other: int) -> Done:
    return kernel, any(owner == other for owner, _ in kernel.tables)  # each has something open for all its life


def _begin_term(kernel: Kernel, _pid: int, known: int) -> Done:
    """One durable transaction of a ledger: a term above all that it and the caller know."""
    term = max(kernel.newest_term, known) + 1
    return kernel._replace(newest_term=term), term


CALLS: Final[dict[str, Callable[..., Done]]] = {
    "open_directory": _open_directory,
    "open_directory_at": _open_directory_at,
    "make_directory": _make_directory,
    "open_file": _open_file,
    "try_lock": _try_lock,
    "wait_lock": _wait_lock,
    "unlock": _unlock,
    "raised": _raised,
    "facts": _facts,
    "facts_at": _facts_at,
    "facts_of": _facts_of,
    "read": _read,
    "replace": _replace,
    "replace_all": _replace_all,
    "create": _create,
    "overwrite": _overwrite,
    "rename": _rename,
    "unlink": _unlink,
    "remove_directory": _remove_directory,
    "names": _names,
    "close": _close,
    "fork": _fork,
    "ready": _ready,
    "sees": _sees,
    "begin_term": _begin_term,
}

ENDS: Final[dict[str, dict[str, Callable[..., Done]]]] = {
    "make_directory": {"before it is flushed": _make_directory_unflushed},
    "replace": {"with half of it written": _replace_cut_short, "before it is flushed": _replace_unflushed},
    "create": {"with half of it written": _replace_cut_short, "before it is flushed": _replace_unflushed},
    "overwrite": {"with half of it written": _overwrite_cut_short},
}
"""How a process can die within a call, other than before or after it, and what it has done by then."""

FAULTS: Final[dict[str, tuple[int, ...]]] = {
    **dict.fromkeys(("open_directory", "open_directory_at", "facts_at", "facts_of"), (errno.EIO,)),
    **dict.fromkeys(("read", "rename", "unlink", "remove_directory", "names"), (errno.EIO,)),
    **dict.fromkeys(("make_directory", "open_file", "replace", "replace_all", "create", "overwrite"), (errno.ENOSPC,)),
    **dict.fromkeys(("try_lock", "wait_lock"), (errno.ENOLCK,)),
}
"""With what a call can fail, having done nothing. Of what can be done on a descriptor, reading its facts cannot."""

LATE_FAULTS: Final[dict[str, tuple[int, Callable[..., Done]]]] = {
    "replace": (errno.EIO, _replace_unflushed),
}
"""With what a call can fail, having done it all but for the flush."""
