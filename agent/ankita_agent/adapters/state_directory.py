"""Making, opening and trusting the state directory, and recognising file systems where flock lies."""

import errno
import os
import shlex
import stat

from ankita_agent.core.errors import AnkitaError, CannotWriteState

_MOUNTS = "/proc/self/mountinfo"

_LYING = {
    "nfs": "NFS may keep locks on one machine only, or keep those of a dead one",
    "nfs4": "NFS may keep locks on one machine only, or keep those of a dead one",
    "cifs": "a Windows share keeps locks by rules of its own",
    "smb3": "a Windows share keeps locks by rules of its own",
    "smbfs": "a Windows share keeps locks by rules of its own",
    "9p": "9p may keep locks on one side only",
    "virtiofs": "virtiofs may give the same lock to two processes",
    "fakeowner": "the share of a virtual machine may give the same lock to two processes",
    "vboxsf": "the share of a virtual machine keeps locks on one side only",
    "prl_fs": "the share of a virtual machine keeps locks on one side only",
    "drvfs": "the share of a virtual machine keeps locks on one side only",
    "afs": "AFS keeps locks by rules of its own",
    "afpfs": "AFP grants every lock",
    "webdav": "WebDAV has no locks",
}
"""Types whose flock was seen to lie (docker/for-mac issue 7004, filelock issues 6 and 77); FUSE beside them."""


def prepare_state_directory(path: str) -> None:
    """Make the directory with mode 0700 unless it is there, and refuse one that cannot be trusted.

    Refused: a symbolic link, no directory, another user's, open to group or others, on a file system where
    flock is known to lie. Raises CannotWriteState; nothing has been changed then but, at most, parents made.
    """
    try:
        _make(path)
        status = os.lstat(path)
    except OSError as error:
        raise cannot_write(path, error) from None
    _refuse_untrusted(path, status)
    _refuse_lying_locks(path, status.st_dev)


def examine_state_directory(path: str) -> AnkitaError | None:
    """Why an owner would refuse the directory, or None; one that is not there yet is fine. Changes nothing."""
    try:
        status = os.lstat(path)
        _refuse_untrusted(path, status)
        _refuse_lying_locks(path, status.st_dev)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return cannot_write(path, error)
    except CannotWriteState as fault:
        return fault
    return None


def _make(path: str) -> None:
    """Make the directory and the parents that are missing, all of them closed to others (XDG asks for 0700)."""
    if not os.path.lexists(path):
        _make(os.path.dirname(path))
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:  # another agent that starts just now was first
            pass


def cannot_write(path: str, error: OSError) -> AnkitaError:
    """The message for a state directory that the file system refuses to make, read or write."""
    name = error.filename2 or error.filename  # rename(2) has two, and the second is what is in the way
    remedies = {
        errno.EACCES: "give yourself access to it, or choose another directory: ANKITA_STATE_DIR=…",
        errno.EPERM: "give yourself access to it, or choose another directory: ANKITA_STATE_DIR=…",
        errno.EROFS: "mount it writable, or choose another directory: ANKITA_STATE_DIR=…",
        errno.ENOSPC: f"free some space there: df -h {path}",
        errno.EDQUOT: "free some of your quota: quota -s",
        errno.ENOTDIR: "move what is in the way, or choose another directory: ANKITA_STATE_DIR=…",
        errno.EISDIR: f"a file has to be there; move that directory away: find {path} -type d -name {name}",
    }
    return CannotWriteState(
        f"cannot use the state directory {path!r}",
        fact=os.strerror(error.errno or errno.EIO) + (f" ({name})" if name else ""),
        now="nothing was changed",
        do=remedies.get(error.errno or errno.EIO, "look at the file system with: dmesg | tail"),
    )


def _refuse_untrusted(path: str, status: os.stat_result) -> None:
    def refuse(fact: str, do: str) -> CannotWriteState:
        return CannotWriteState(
            f"will not use the state directory {path!r}",
            fact=fact,
            now="nothing was changed",
            do=do,
        )

    if stat.S_ISLNK(status.st_mode):
        target = os.readlink(path)
        raise refuse(
            f"it is a symbolic link to {target!r}, and a link can be swapped while the agent runs",
            f"name the directory itself: ANKITA_STATE_DIR={target}",
        )
    if not stat.S_ISDIR(status.st_mode):
        raise refuse("it is not a directory", "move that file away, or set ANKITA_STATE_DIR")
    if status.st_uid != os.getuid():
        raise refuse(
            f"it belongs to user {status.st_uid}, and you are user {os.getuid()}",
            "run as that user, or choose a directory of your own: ANKITA_STATE_DIR=…",
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise refuse(
            f"its mode is {stat.S_IMODE(status.st_mode):04o}, so others could meddle with it",
            f"close it: chmod 700 {shlex.quote(path)}",
        )


def _refuse_lying_locks(path: str, device: int) -> None:
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as mounts:
            kind = file_system_of(mounts.read(), path, f"{os.major(device)}:{os.minor(device)}")
    except OSError:  # no /proc: the self-test of ownership still stands
        return
    why = lie_of(kind)
    if why is not None:
        raise CannotWriteState(
            f"will not own the state directory {path!r}",
            fact=f"it is on a {kind} file system, where {why}",
            now="nothing was changed: two agents there could both believe that they own it",
            do="choose a directory on a local disk: ANKITA_STATE_DIR=/var/tmp/…, or a named volume in a container",
        )


def lie_of(kind: str | None) -> str | None:
    """Why flock cannot be trusted on that type of file system, or None where it can."""
    if kind is None:
        return None
    if kind == "fuse" or kind.startswith(("fuse.", "fuseblk")):
        return "a FUSE program may grant every lock"
    return _LYING.get(kind)


def file_system_of(mountinfo: str, path: str, device: str) -> str | None:
    """The type of the file system that holds `path`: the deepest mount point above it.

    `device` (major:minor) decides between mounts over each other; None when nothing fits. Source: proc(5),
    /proc/[pid]/mountinfo.
    """
    real, best, kind = os.path.realpath(path), "", None
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        if "-" not in fields[6:]:
            continue
        point = _unescaped(fields[4])
        above = real == point or real.startswith(point.rstrip("/") + "/")
        if above and (len(point) > len(best) or (len(point) == len(best) and fields[2] == device)):
            best, kind = point, fields[fields.index("-", 6) + 1]
    return kind


def _unescaped(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
