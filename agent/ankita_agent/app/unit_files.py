"""The unit files of the user on disk: read only where nobody else can change them, written all or none.

The directory is the user's own and may be reached through links (stow, home-manager), so its path is resolved
first; a link in place of one of the files is never followed. Whatever fails, the unit that was there is there
still: new contents are on disk before the first name changes, and a later failure puts back what was before.
"""

import errno
import posixpath
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, count, groupby
from typing import Final

from ankita_agent.core.errors import AnkitaError, CannotWriteState
from ankita_agent.core.install_plan import Change, FileChange
from ankita_agent.core.problems import Problem
from ankita_agent.ports.files import Descriptor, Files

KEPT = ".edited"
"""Behind the name of a file that somebody edited, for the copy that is kept of it."""

_LARGEST: Final = 1 << 20  # far above what any unit file has


class UnitFiles:
    """Text files at whole paths.

    `resolve` takes the links out of a path; `judge` says of a path without links why no file of the user's must be
    put into that directory, None where it may.
    """

    def __init__(self, files: Files, judge: Callable[[str], Problem | None], resolve: Callable[[str], str]) -> None:
        self._files = files
        self._judge = judge
        self._resolve = resolve
        self._made_here: list[str] = []  # directories, to be taken back by `undo`

    def read(self, path: str) -> str | None:
        """The text at a path; None when nothing is there. Raises CannotWriteState for what must not be used."""
        self._refuse_unsafe(path)
        directory, name = posixpath.split(path)
        try:
            opened = self._files.open_directory(self._resolve(directory))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise cannot_write(path, error) from None
        try:
            if not self._files.facts_at(opened, name).regular:
                raise _refusal(
                    path, "it is a link or a directory, and no file", f"remove it: rm -r {shlex.quote(path)}"
                )
            content = self._files.read(opened, name, _LARGEST + 1)
            if len(content) > _LARGEST:
                raise _refusal(path, f"it is larger than {_LARGEST} bytes", f"move it away: ls -l {shlex.quote(path)}")
            return content.decode("utf-8", "surrogateescape")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise cannot_write(path, error) from None
        finally:
            self._files.close(opened)

    def apply(self, changes: Sequence[FileChange]) -> dict[str, str]:
        """Make every change, or none; the copy kept of each edited file, by its path. Raises CannotWriteState."""
        pending = [each for each in changes if each.change is not Change.UNCHANGED]
        kept: dict[str, str] = {}
        done: list[FileChange] = []
        try:
            for directory, group in groupby(pending, key=lambda each: posixpath.dirname(each.path)):
                some = list(group)
                done += some
                kept |= self._apply(directory, some)
        except OSError as error:
            self.undo(done, kept)
            raise cannot_write(done[-1].path, error) from None
        return kept

    def undo(self, changes: Iterable[FileChange], kept: Mapping[str, str]) -> None:
        """Put back what was there before the changes, as far as it can be; directories made for them go again."""
        for change in changes:
            if change.change is Change.UNCHANGED:
                continue
            try:
                if change.before is None:
                    self.remove(change.path)
                else:
                    self._put(change.path, change.before)
                if change.path in kept:
                    self.remove(kept[change.path])
            except (OSError, CannotWriteState):  # a second time: what is there now is told by the first failure
                continue
        while self._made_here:
            self.remove_if_empty(self._made_here.pop())

    def create(self, path: str, content: str) -> bool:
        """Make a file where nothing bears its name; False where something does. Raises CannotWriteState."""
        self._refuse_unsafe(path)
        try:
            directory = self._made(posixpath.dirname(path))
            try:
                return self._files.create(directory, posixpath.basename(path), content.encode())
            finally:
                self._files.close(directory)
        except OSError as error:
            raise cannot_write(path, error) from None

    def remove(self, path: str) -> bool:
        """Remove the file or link of that name; whether there was one. Raises CannotWriteState."""
        try:
            directory = self._files.open_directory(self._resolve(posixpath.dirname(path)))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise cannot_write(path, error) from None
        try:
            return self._files.unlink(directory, posixpath.basename(path))
        except OSError as error:
            raise cannot_write(path, error) from None
        finally:
            self._files.close(directory)

    def names(self, directory: str) -> list[str]:
        """The names in a directory, sorted; none where there is no directory to look into."""
        try:
            opened = self._files.open_directory(self._resolve(directory))
        except OSError:
            return []
        try:
            return self._files.names(opened)
        finally:
            self._files.close(opened)

    def remove_if_empty(self, directory: str) -> bool:
        """Remove a directory that is empty and no link, whose target is somebody's; whether it was."""
        above, name = posixpath.split(directory)
        try:
            parent = self._files.open_directory(self._resolve(above))
        except OSError:
            return False
        try:
            return self._files.remove_directory(parent, name)
        except OSError:
            return False
        finally:
            self._files.close(parent)

    def are_one(self, path: str, other: str) -> bool:
        """Whether two paths name the same entry of the same directory, however each gets there."""
        return self._real(path) == self._real(other)

    def holds(self, path: str) -> bool:
        """Whether something, be it a link that leads nowhere, bears the name."""
        try:
            self._files.facts_of(self._real(path))
        except OSError:
            return False
        return True

    def _refuse_unsafe(self, path: str) -> None:
        problem = self._judge(self._resolve(posixpath.dirname(path)))
        if problem is not None:
            raise _refusal(path, problem.problem, problem.fix)

    def _apply(self, directory: str, changes: list[FileChange]) -> dict[str, str]:
        opened = self._made(directory)
        try:
            kept: dict[str, str] = {}
            contents: dict[str, bytes] = {}
            for change in changes:
                name = posixpath.basename(change.path)
                if change.change is Change.EDITED and change.before is not None:
                    copy = self._free_name(opened, name)
                    kept[change.path] = f"{directory}/{copy}"
                    contents[copy] = _bytes(change.before)
                if change.after is not None:
                    contents[name] = _bytes(change.after)
            self._files.replace_all(opened, contents)
            for change in changes:
                if change.after is None:
                    self._files.unlink(opened, posixpath.basename(change.path))
            return kept
        finally:
            self._files.close(opened)

    def _put(self, path: str, text: str) -> None:
        opened = self._made(posixpath.dirname(path))
        try:
            self._files.replace(opened, posixpath.basename(path), _bytes(text))
        finally:
            self._files.close(opened)

    def _free_name(self, directory: Descriptor, name: str) -> str:
        taken = set(self._files.names(directory))
        names = chain([f"{name}{KEPT}"], (f"{name}{KEPT}.{number}" for number in count(2)))
        return next(each for each in names if each not in taken)

    def _made(self, path: str) -> Descriptor:
        """The directory, made with those above it that are missing."""
        return self._open(self._resolve(path))

    def _open(self, path: str) -> Descriptor:
        try:
            return self._files.open_directory(path)
        except FileNotFoundError:
            above = self._open(posixpath.dirname(path))
        try:
            self._files.make_directory(above, posixpath.basename(path))
            self._made_here.append(path)
            return self._files.open_directory_at(above, posixpath.basename(path))
        finally:
            self._files.close(above)

    def _real(self, path: str) -> str:
        directory, name = posixpath.split(path)
        return posixpath.join(self._resolve(directory), name)


def cannot_write(path: str, error: OSError) -> CannotWriteState:
    """The fault for a file or directory that the file system refuses to take or to give."""
    above = shlex.quote(posixpath.dirname(path))
    remedies = {
        errno.EACCES: f"see who may: ls -ld {above}",
        errno.EPERM: f"see who may: ls -ld {above}",
        errno.EROFS: f"see how it is mounted: findmnt -T {above}",
        errno.ENOSPC: f"free some space there: df -h {above}",
        errno.EDQUOT: "free some of your quota: quota -s",
        errno.ENOTDIR: f"move what is in the way: ls -ld {above}",
    }
    return CannotWriteState(
        f"cannot write {path!r}",
        fact=error.strerror or str(error),
        now="the service is as it was before",
        do=f"{remedies.get(error.errno or 0, 'look at the file system: dmesg | tail')}, then do the same again",
    )


def _refusal(path: str, fact: str, do: str) -> AnkitaError:
    return CannotWriteState(f"will not use {path!r}", fact=fact, now="nothing was changed", do=do)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
