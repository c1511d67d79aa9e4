"""Reads routines.yaml through the links that people make, and only if nobody else can change it.

The problem: what stands in the file is run as the user, so whoever can write to it, or swap it, is the
user. A check of the file alone is not enough: a directory on the way that others may write to lets them put
another file there. The rule: the path is walked one name at a time, symbolic links included (stow links
directories, home-manager files); every directory on the way and the file itself must belong to the user or
to root and be writable by nobody else; then the file is opened without following a link, and judged once
more through its descriptor.

Allowed besides: the group of the user alone, which many systems put a user's files into (umask 002), as
long as it has no other member; a directory with the sticky bit, where only owners can rename or remove
(unlink(2)), for the directories on the way, and for the file itself only when not everybody may write there
(/nix/store, not /tmp).

tests/real/test_routine_files.py holds it. Rejected: `os.path.realpath` and a check of the target (misses the
directories of the links); refusing every symbolic link (half of the users of dotfile managers).
"""

import errno
import grp
import os
import pwd
import shlex
import stat
from collections import deque
from collections.abc import Callable
from typing import Final

from ankita_agent.core.errors import CannotWriteState
from ankita_agent.core.problems import Problem
from ankita_agent.ports.files import Descriptor, Files
from ankita_agent.ports.routine_source import Absent, Found, Unusable

_MOST_LINKS: Final = 40  # as the kernel allows, path_resolution(7)
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_ACL: Final = "system.posix_acl_access"
_YAML: Final = (".yaml", ".yml")


class _Refused(Exception):
    """The file must not or cannot be used."""

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(problem)
        self.problem = Problem(0, 0, problem, fix)


class RoutineFile:
    """ports.routine_source.RoutineSource over a path.

    `largest` is the most bytes that are read; `private_group` tells whether a group is the user's alone.
    """

    def __init__(self, path: str, largest: int, private_group: Callable[[int], bool] | None = None) -> None:
        # not normalised: `..` after a link is for the walk
        self._path = path if path.startswith("/") else os.path.join(os.getcwd(), path)
        self._largest = largest
        self._private_group = private_group or is_private_group

    @property
    def path(self) -> str:
        """Its whole path."""
        return self._path

    def read(self) -> Found | Absent | Unusable:
        """Walk to the file, judge the way and the file, and read it."""
        walk = _Walk(self._trust)
        try:
            target = walk.to(self._path)
            content = None if target is None else self._read(target)
        except _Refused as refused:
            return Unusable(refused.problem, walk.watch())
        except OSError as error:
            problem = f"cannot be read: {error.strerror} ({error.filename or self._path})"
            return Unusable(Problem(0, 0, problem, _remedy(error, self._path)), walk.watch())
        if content is None:
            return Absent(walk.watch())
        return Found(content, walk.watch())

    def _read(self, target: str) -> bytes | None:
        _refuse_irregular(target, os.lstat(target))
        try:
            descriptor = os.open(target, _FLAGS)
        except FileNotFoundError:  # removed since we saw it
            return None
        try:
            status = os.fstat(descriptor)
            _refuse_irregular(target, status)
            self._trust(target, status)
            return self._content(descriptor)
        finally:
            os.close(descriptor)

    def _content(self, descriptor: int) -> bytes:
        chunks, left = [], self._largest + 1
        while left and (chunk := os.read(descriptor, min(left, 1 << 20))):
            chunks.append(chunk)
            left -= len(chunk)
        if not left:
            raise _Refused(
                f"is larger than {self._largest} bytes",
                "keep the data of your commands in files of their own",
            )
        return b"".join(chunks)

    def _trust(self, path: str, status: os.stat_result) -> None:
        """Refuse what belongs to somebody else, or what somebody else may write to."""
        what = "" if path == self._path else f"{path!r} "  # the file itself is named by whoever tells of it
        if status.st_uid not in (os.geteuid(), 0):
            raise _Refused(
                f"{what}belongs to {_user_name(status.st_uid)}, who could change what runs in your name",
                _instead_of(status),
            )
        others = status.st_mode & _BY_OTHERS
        if others == stat.S_IWGRP and self._private_group(status.st_gid) and not _has_access_list(path):
            others = 0
        if others:
            who = "everybody" if others & stat.S_IWOTH else f"the group {_group_name(status.st_gid)}"
            letters = "go" if others == _BY_OTHERS else "o" if others & stat.S_IWOTH else "g"
            closing = status.st_uid == os.geteuid() and not _is_shared_by_all(status)
            raise _Refused(
                f"{what}may be written to by {who}, who could change what runs in your name",
                f"close it: chmod {letters}-w {shlex.quote(path)}" if closing else _instead_of(status),
            )


class _Walk:
    """One walk along a path: follows links, judges directories, remembers what to watch."""

    def __init__(self, trust: Callable[[str, os.stat_result], None]) -> None:
        self._trust = trust
        self._watch: dict[str, None] = {}
        self._links = 0
        self._here = "/"

    def watch(self) -> tuple[str, ...]:
        """The directories to watch, as far as the walk came."""
        return tuple(self._watch) or (self._here,)

    def to(self, path: str) -> str | None:
        """The path of the target, free of links; None when it, or a directory on the way, is not there."""
        self._here = "/"
        status = os.lstat("/")
        left = deque(_names(path))
        while left:
            name = left.popleft()
            above, here = status, self._here
            if name == "..":
                self._here = os.path.dirname(here)
                status = os.lstat(self._here)
                continue
            there = os.path.join(here, name)
            try:
                status = os.lstat(there)
            except FileNotFoundError:
                self._note_missing(there)
                return None
            last = not left
            self._judge_directory(here, above, status, last)
            if stat.S_ISLNK(status.st_mode):
                self._follow(there, left)
                status = os.lstat(self._here)
            elif last:
                self._watch[here] = None
                return there
            elif not stat.S_ISDIR(status.st_mode):
                raise _Refused(f"{there!r} is not a directory", _name_directory(there))
            else:
                self._here = there
        raise _Refused(f"{path!r} is a directory", "name a file in it")

    def _note_missing(self, there: str) -> None:
        self._watch[self._here] = None
        if self._links:
            raise _Refused(f"is a link, and {there!r}, where it leads, does not exist", "mend the link, or remove it")

    def _follow(self, link: str, left: deque[str]) -> None:
        self._watch[self._here] = None
        self._links += 1
        if self._links > _MOST_LINKS:
            raise _Refused(f"more than {_MOST_LINKS} links follow each other at {link!r}", "remove the loop")
        target = os.readlink(link)
        left.extendleft(reversed(_names(target)))
        if target.startswith("/"):
            self._here = "/"

    def _judge_directory(self, path: str, status: os.stat_result, entry: os.stat_result, last: bool) -> None:
        """Refuse a directory where somebody else could replace `entry`, which stands in it."""
        sticky = status.st_mode & stat.S_ISVTX and status.st_uid in (os.geteuid(), 0)
        own_entry = entry.st_uid in (os.geteuid(), 0)
        open_to_all = status.st_mode & stat.S_IWOTH
        if sticky and own_entry and not (last and open_to_all):
            return
        self._trust(path, status)


def judge_directory(path: str) -> Problem | None:
    """Why a file of the user's must not be put into a directory: somebody else could change or swap it there.

    `path` has no links on its way; what is missing of it is made by the user, and so is not judged.
    """
    trust = RoutineFile(f"{path}/new", 0)._trust
    there, missing = path, ""
    try:
        while not os.path.lexists(there):
            there, missing = os.path.dirname(there), there
        if missing:
            _refuse_to_be_overtaken(there, missing)
        _refuse_file(there)
        _Walk(trust).to(f"{there}/new")
        trust(there, os.lstat(there))
    except _Refused as refused:
        return refused.problem
    except OSError as error:
        if error.filename == f"{there}/new":  # the directory lets nobody in
            error.filename = there
        return Problem(0, 0, f"{error.filename or there!r}: {error.strerror}", _remedy(error, there))
    return None


class LastGoodFile:
    """ports.routine_source.LastGood: a file in the open state directory, whose whole path is `directory`."""

    NAME: Final = "last-good.yaml"

    def __init__(self, files: Files, state: Descriptor, directory: str, largest: int) -> None:
        self._files, self._state, self._directory, self._largest = files, state, directory, largest

    @property
    def path(self) -> str:
        """Its whole path, for messages."""
        return f"{self._directory}/{self.NAME}"

    def read(self) -> bytes | None:
        """Its content, None when it is not there."""
        try:
            return self._files.read(self._state, self.NAME, self._largest)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._cannot("read", error) from None

    def write(self, content: bytes) -> None:
        """Replace it durably; mode 0600."""
        try:
            self._files.replace(self._state, self.NAME, content)
        except OSError as error:
            raise self._cannot("write", error) from None

    def _cannot(self, verb: str, error: OSError) -> CannotWriteState:
        return CannotWriteState(
            f"cannot {verb} {self.NAME} in the state directory",
            fact=os.strerror(error.errno or errno.EIO),
            now="the routines in force stay so, and would not outlive a restart with a bad routines.yaml",
            do="free some space, or give yourself access to the state directory",
        )


def _is_shared_by_all(status: os.stat_result) -> bool:
    """Whether it is a directory that is open on purpose, as /tmp is: each may remove what is theirs (unlink(2))."""
    return stat.S_ISDIR(status.st_mode) and bool(status.st_mode & stat.S_ISVTX)


def _instead_of(status: os.stat_result) -> str:
    """What helps where nothing is to be closed: it is not ours, or it is open to all on purpose."""
    if stat.S_ISDIR(status.st_mode):
        return "use a directory of your own that nobody else may write to, such as one in your home"
    return "put a copy of your own in its place"


def _refuse_to_be_overtaken(there: str, missing: str) -> None:
    """Refuse a directory that is still to be made where everybody may make it: whoever is first has it."""
    status = os.lstat(there)
    if _is_shared_by_all(status) and status.st_mode & stat.S_IWOTH and status.st_uid in (os.geteuid(), 0):
        raise _Refused(
            f"{there!r} may be written to by everybody, who could make {missing!r} before you do",
            f"make it yourself first: mkdir -m 700 {shlex.quote(missing)}",
        )


def _refuse_file(there: str) -> None:
    """Refuse a file where a directory has to be; what is named for a file of routines is told of by the walk."""
    if not os.path.isdir(there) and not there.endswith(_YAML):
        quoted = shlex.quote(there)
        raise _Refused(f"{there!r} is not a directory", f"move it away: mv {quoted} {shlex.quote(f'{there}.old')}")


def is_private_group(gid: int) -> bool:
    """Whether a group is that of this user alone: primary, of the same name, and with no other member.

    The name counts because the members of a directory service cannot all be listed; there a user's primary
    group is often one that thousands share.
    """
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    if user.pw_gid != gid or group.gr_name != user.pw_name or not {user.pw_name, "root"}.issuperset(group.gr_mem):
        return False
    return not any(other.pw_gid == gid and other.pw_uid != user.pw_uid for other in pwd.getpwall())


def _name_directory(file: str) -> str:
    """What to do about a file where the configuration directory, or one above it, should be."""
    directory, name = os.path.split(file)
    if name.endswith(_YAML):
        return f"name the directory and not the file: write `ANKITA_CONFIG_DIR={shlex.quote(directory)}`"
    return "name the directory in which routines.yaml stands, or is to stand, in ANKITA_CONFIG_DIR"


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _has_access_list(path: str) -> bool:
    """Whether an access list lets others write: then the bits of the group are only its mask (acl(5))."""
    try:
        os.getxattr(path, _ACL, follow_symlinks=False)
    except (OSError, AttributeError):
        return False
    return True


def _refuse_irregular(path: str, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise _Refused(f"{path!r} is a directory", "move it away; the routines stand in a file")
    if not stat.S_ISREG(status.st_mode):
        raise _Refused(f"{path!r} is no ordinary file", "move it away; the routines stand in a file")


def _remedy(error: OSError, path: str) -> str:
    if error.errno not in (errno.EACCES, errno.EPERM):
        return f"look at it: ls -l {shlex.quote(path)}"
    there = error.filename or path
    try:
        status = os.lstat(there)
    except OSError:  # a directory above it is closed to us
        return f"see who may: namei -l {shlex.quote(there)}"
    if status.st_uid != os.geteuid():
        return _instead_of(status)
    return f"give yourself access: chmod u+r{'wx' if stat.S_ISDIR(status.st_mode) else ''} {shlex.quote(there)}"


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
