"""Removing the state: the ledger with the history of every routine, and the output of runs.

The problem: a state directory is whatever ANKITA_STATE_DIR names. By a slip, or for good reasons, that is the home or
a project, which has `logs`, `run` and `requests` of its own.

The rule: a directory is touched only if it bears the mark of an agent, `own` with an empty `guard` or with `life`.
There a file goes only if its place, its name and, where the name could be anybody's, its content are what an agent
makes; a directory goes only by rmdir(2), once it is empty. Nothing else is opened and no link is followed. The state
directory itself goes when it is empty and bears our name, as the one that we make by default does; one of another name
may have been there before us. What stays is told.

It is done under the owner's own lock, so no agent can begin to own in the middle of it, and not while a run goes on
that a dead agent left behind: without its lock a second one could start beside it. The mark is the last to go:
a purge that failed can be done again. tests/unit/test_purge.py holds it. Rejected: removing `logs`, `run` and
`requests` with all that is in them; a list of what was made, which is lost with the ledger.
"""

import errno
import posixpath
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from ankita_agent.app.claim import Role
from ankita_agent.app.inspection import look
from ankita_agent.app.owner import BEHIND, CLAIM, FIRED, GUARD, LIFE, OWN, TERM
from ankita_agent.app.places import LEDGER, NAME
from ankita_agent.app.report import REPORT
from ankita_agent.app.requests import REQUESTS
from ankita_agent.core.errors import CannotWriteState, SomeoneElseOwns
from ankita_agent.core.instants import Monotonic
from ankita_agent.core.readings import NAME_PATTERN
from ankita_agent.ports.files import Descriptor, FileFacts, Files
from ankita_agent.ports.processes import Processes

_MOST_NAMED: Final = 5

Ours = Callable[[Files, Descriptor, str], bool]
"""Whether the file of that name in that directory is ours, by what is in it; raises OSError."""


def is_ledger(files: Files, directory: Descriptor, name: str) -> bool:
    """Whether a database is ours: by its application id, which is in the log alone as long as there is no table.

    Source: https://www.sqlite.org/fileformat2.html. In the header (1.3) the number of pages is at 28, the application
    id at 68; the first page (1.6) has its number of cells at 103; the first page in a log (4.1) begins at 56.
    """
    head = files.read(directory, name, 108)
    if not head or head[68:72] == _ID:
        return head[:16] in (b"", _SQLITE)
    if head[:16] != _SQLITE or (head[28:32], head[103:105]) != (b"\0\0\0\1", b"\0\0"):
        return False
    try:
        log = files.read(directory, f"{name}-wal", 128)
    except FileNotFoundError:
        return True
    return not log or log[124:128] == _ID


def _is_empty(files: Files, directory: Descriptor, name: str) -> bool:
    return not files.read(directory, name, 1)


def _is_left_alone(files: Files, directory: Descriptor, name: str) -> bool:
    """Whether the database that a log belongs to is gone."""
    return name.rpartition("-")[0] not in files.names(directory)


def _is_any(_files: Files, _directory: Descriptor, _name: str) -> bool:
    return True


def _names(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.ASCII)


def _halves(*names: str) -> str:
    """Temporary names of a write that was cut off."""
    return rf"\.(?:{'|'.join(names)})\.\d+\.new"


@dataclass(frozen=True, slots=True)
class _Made:
    """What agents make in a directory: files, by name and by what is in them, and directories."""

    files: tuple[tuple[re.Pattern[str], Ours], ...] = ()
    directories: tuple[tuple[re.Pattern[str], "_Made"], ...] = ()

    def holds(self, files: Files, directory: Descriptor, name: str) -> bool:
        """Whether a file is one of them."""
        return any(names.fullmatch(name) and ours(files, directory, name) for names, ours in self.files)

    def below(self, name: str) -> "_Made | None":
        """What agents make in the directory of that name; None when no directory of ours is called so."""
        return next((made for names, made in self.directories if names.fullmatch(name)), None)


_SQLITE: Final = b"SQLite format 3\0"
_ID: Final = b"anki"

_RUN: Final = "run"

_ROUTINE: Final = NAME_PATTERN.strip("^$")
_DATABASE: Final = rf"{re.escape(LEDGER)}(?:\.damaged-\d{{8}}T\d{{6}}Z(?:-\d+)?|\.before-v\d+(?:\.new)?)?"
_LAST_GOOD: Final = r"last-good\.yaml"
_REQUEST: Final = r"[0-9a-f]{16}\.json"
_REWRITTEN: Final = tuple(map(re.escape, (CLAIM, TERM, BEHIND, REPORT)))

_IN_OWN: Final = _Made(
    files=((_names(*_REWRITTEN, FIRED, _halves(*_REWRITTEN)), _is_any), (_names(GUARD), _is_empty)),
    directories=((_names(LIFE), _Made(((_names(r"[0-9a-f]{32}"), _is_any),))),),
)
_IN_RUN: Final = _Made(((_names(rf"{_ROUTINE}\.lock"), _is_empty),))
_OUTPUTS: Final = _Made(((_names(r"\d{8}T\d{6}Z-\d+\.log"), _is_any),))
_IN_STATE: Final = _Made(
    files=(
        (_names(_DATABASE), is_ledger),
        (_names(rf"(?:{_DATABASE})-(?:wal|shm|journal)"), _is_left_alone),
        (_names(_LAST_GOOD, _halves(_LAST_GOOD)), _is_any),
    ),
    directories=(
        (_names("logs"), _Made(directories=((_names(_ROUTINE), _OUTPUTS),))),
        (_names(_RUN), _IN_RUN),
        (_names(REQUESTS), _Made(((_names(_REQUEST, _halves(_REQUEST)), _is_any),))),
    ),
)


def refuse_living(
    files: Files, state: Descriptor, processes: Processes, awake: Monotonic, stopped: int | None = None
) -> None:
    """Raise SomeoneElseOwns while any agent of this state directory lives, be it one on its way out or on standby.

    `stopped` is the pid of one that will have been stopped before anything is removed.
    """
    seen = look(files, state, processes, awake)
    living = {} if seen.owner is None else {seen.owner.claim.card.process.pid: ""}
    living |= dict.fromkeys(seen.stopping, "") | {
        other.card.process.pid: ", on standby" for other in seen.others if other.role is Role.STANDBY
    }
    living.pop(stopped or 0, None)
    for pid, role in living.items():
        raise _refusal(f"the agent with pid {pid} lives{role}", f"end it first: kill {pid}")


def refuse_strange(files: Files, state: Descriptor, path: str) -> None:
    """Raise CannotWriteState for a state directory that holds something and bears neither an agent's mark nor name."""
    with _Sweep(files, path).removing(posixpath.join(path, OWN), path):
        if posixpath.basename(path) == NAME or _is_marked(files, state) or not files.names(state):
            return
    raise CannotWriteState(
        f"will not remove the state in {path!r}",
        fact=f"nothing there is an agent's: it has no {OWN}/{GUARD}",
        now="nothing was removed",
        do="name the directory that is meant, ANKITA_STATE_DIR=…, or remove the service alone: ankita-agent uninstall",
    )


def purge(files: Files, path: str, tell: Callable[[str], None]) -> None:
    """Remove what agents made in the state directory at `path`; what stays is told.

    No connection of this process to the ledger may be open: it is read here, which would drop SQLite's locks.
    Raises SomeoneElseOwns when an agent owns, with nothing removed; CannotWriteState for a directory that is none of
    an agent's, and where the disk refuses, with what is gone by then.
    """
    sweep = _Sweep(files, path)
    with sweep.removing(path, path):
        state = files.open_directory(path)
    try:
        refuse_strange(files, state, path)
        sweep.sweep(state)
        with sweep.removing(path, path):
            left = files.names(state)
        gone = not left and posixpath.basename(path) == NAME and _remove_itself(files, state)
    finally:
        files.close(state)
    if gone:
        tell(f"removed     {path}")
        return
    if sweep.gone:
        tell(f"removed     {_counted(sweep.gone.total())} of agents in {path}")
    for line in sweep.kept:
        tell(f"kept        {line}, which no agent is known to have made")
    if not left:
        tell(f"kept        {path}, which is empty; without it: rmdir {shlex.quote(path)}")


def _remove_itself(files: Files, state: Descriptor) -> bool:
    """Remove the open directory, which bears our name; whether it could be."""
    try:
        above = files.open_directory_at(state, "..")  # and not by path: a link may be on the way to it
        try:
            return files.remove_directory(above, NAME)
        finally:
            files.close(above)
    except OSError:  # it is a mount, or the one above is not ours to write to: rmdir(1) says which
        return False


class _Sweep:
    """One purge: how many files are gone, by where they were, and what stays."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self.gone: Counter[str] = Counter()
        self.kept: list[str] = []

    def sweep(self, state: Descriptor) -> None:
        """Remove what is an agent's in the open state directory, under the owner's lock; nothing without the mark."""
        own_path = posixpath.join(self._path, OWN)
        with self.removing(own_path, own_path):
            own = _locked(self._files, state)
        if own is None:
            self._keep(self._path, self._files.names(state))
            return
        try:
            self._refuse_running(state)
            self._empty(state, self._path, _IN_STATE, spared=OWN)
            self._empty(own, own_path, _IN_OWN)
            with self.removing(own_path, self._path):
                self._files.remove_directory(state, OWN)
        finally:
            self._files.close(own)

    def told(self) -> str:
        """What is gone, for people."""
        return ", ".join(
            f"{_counted(count)} of {where}" if where.endswith("/") else where for where, count in self.gone.items()
        )

    @contextmanager
    def removing(self, path: str, decides: str) -> Iterator[None]:
        """Tell a fault of the file system about a path; whose permissions decide is told apart."""
        try:
            yield
        except OSError as error:
            quoted = shlex.quote(decides)
            remedies = {
                errno.EACCES: f"give yourself access: chmod u+rwx {quoted}",
                errno.EPERM: f"see whose it is: ls -ld {quoted}",
                errno.EROFS: f"see how it is mounted: findmnt -T {quoted}",
            }
            raise CannotWriteState(
                f"cannot remove {path!r}",
                fact=error.strerror or str(error),
                now=f"gone by now of the state in {self._path!r}: {self.told() or 'nothing'}",
                do=f"{remedies.get(error.errno or 0, f'look at it: ls -la {quoted}')}, then again: "
                "ankita-agent uninstall --purge",
            ) from None

    def _refuse_running(self, state: Descriptor) -> None:
        """Raise SomeoneElseOwns while the lock of a routine is held: nobody owns, so it is by what was left behind."""
        path = posixpath.join(self._path, _RUN)
        with self.removing(path, path):
            facts = self._facts(state).get(_RUN)
            if facts is None or not facts.directory:
                return
            run = self._files.open_directory_at(state, _RUN)
            try:
                held = [name for name, each in self._facts(run).items() if each.regular and self._is_held(run, name)]
            finally:
                self._files.close(run)
        if held:
            lock = posixpath.join(path, held[0])
            raise _refusal(
                f"a run goes on that holds {lock!r}", f"see which, and end it first: fuser -v {shlex.quote(lock)}"
            )

    def _is_held(self, run: Descriptor, name: str) -> bool:
        if not _IN_RUN.holds(self._files, run, name):
            return False
        lock = self._files.open_file(run, name)
        try:
            return not self._files.try_lock(lock)
        finally:
            self._files.close(lock)

    def _empty(self, directory: Descriptor, path: str, made: _Made, spared: str = "") -> None:
        """Remove what is an agent's in an open directory: first directories, and the guard, which is the mark, last."""
        with self.removing(path, path):
            facts = self._facts(directory)
        left = []
        for name in sorted(facts, key=lambda each: (not facts[each].directory, each == GUARD, each)):
            there = posixpath.join(path, name)
            if name == spared:
                continue
            if facts[name].directory:
                below = made.below(name)
                if below is not None:
                    self._remove_directory(directory, name, there, below)
                    continue
            elif facts[name].regular and self._unlinked(directory, name, there, made):
                continue
            left.append(name)
        self._keep(path, left)

    def _facts(self, directory: Descriptor) -> dict[str, FileFacts]:
        facts = {}
        for name in self._files.names(directory):
            try:
                facts[name] = self._files.facts_at(directory, name)
            except FileNotFoundError:  # whoever made it took it away
                continue
        return facts

    def _remove_directory(self, parent: Descriptor, name: str, path: str, made: _Made) -> None:
        with self.removing(path, path):
            opened = self._files.open_directory_at(parent, name)
        try:
            self._empty(opened, path, made)
        finally:
            self._files.close(opened)
        with self.removing(path, posixpath.dirname(path)):
            self._files.remove_directory(parent, name)

    def _unlinked(self, directory: Descriptor, name: str, path: str, made: _Made) -> bool:
        """Whether it was an agent's file, which is gone now."""
        with self.removing(path, path):
            if not made.holds(self._files, directory, name):
                return False
        with self.removing(path, posixpath.dirname(path)):
            self._files.unlink(directory, name)
        where, within, _ = posixpath.relpath(path, self._path).partition("/")
        self.gone[where + within] += 1
        return True

    def _keep(self, path: str, names: list[str]) -> None:
        if names:
            some = [name if name.isprintable() else repr(name) for name in sorted(names)[:_MOST_NAMED]]
            more = f" and {len(names) - len(some)} more" if len(names) > len(some) else ""
            self.kept.append(f"{path}: {', '.join(some)}{more}")


def _counted(files: int) -> str:
    return f"{files} file{'s' * (files != 1)}"


def _is_marked(files: Files, state: Descriptor) -> bool:
    """Whether an agent kept its state there."""
    try:
        if not files.facts_at(state, OWN).directory:
            return False
        own = files.open_directory_at(state, OWN)
    except FileNotFoundError:
        return False
    try:
        for name in (GUARD, LIFE):
            try:
                facts = files.facts_at(own, name)
            except FileNotFoundError:
                continue
            if facts.directory if name == LIFE else facts.regular and not files.read(own, GUARD, 1):
                return True
        return False
    finally:
        files.close(own)


def _locked(files: Files, state: Descriptor) -> Descriptor | None:
    """The owner's directory, locked until it is closed; None where there is no mark of an agent."""
    if not _is_marked(files, state):
        return None
    own = files.open_directory_at(state, OWN)
    if files.try_lock(own) and files.facts_at(state, OWN).inode == files.facts(own).inode:  # no other purge was first
        return own
    files.close(own)
    raise _refusal("an agent owns the state directory", "see which: ankita-agent status")


def _refusal(fact: str, do: str) -> SomeoneElseOwns:
    return SomeoneElseOwns("will not remove the state", fact=fact, now="the state is as it was", do=do)
