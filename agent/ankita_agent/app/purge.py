"""Removing the state: the ledger with the history of every routine, and the output of runs.

Only what an agent makes there by name is removed, no link is followed, and a routines.yaml is never touched, wherever
it stands. It is done under the owner's own lock, so no agent can begin to own in the middle of it.
"""

import posixpath
from collections.abc import Callable
from typing import Final

from ankita_agent.app.inspection import look
from ankita_agent.app.owner import OWN
from ankita_agent.app.places import FILE, LEDGER
from ankita_agent.app.requests import REQUESTS
from ankita_agent.app.unit_files import cannot_write
from ankita_agent.core.errors import SomeoneElseOwns
from ankita_agent.core.instants import Monotonic
from ankita_agent.ports.files import Descriptor, Files
from ankita_agent.ports.processes import Processes

DIRECTORIES: Final = ("logs", "run", REQUESTS, OWN)
"""What an agent keeps directories for; `own`, with the lock, is the last to go."""

_FILES: Final = ("last-good.yaml", LEDGER)
_COPIES: Final = tuple(f"{LEDGER}{rest}" for rest in ("-wal", "-shm", "-journal", ".damaged-", ".before-v"))
_HALVES: Final = tuple(f".{name}." for name in _FILES)  # of a write that was cut off


def refuse_living(files: Files, state: Descriptor, processes: Processes, awake: Monotonic) -> None:
    """Raise SomeoneElseOwns while any agent of this state directory lives, be it one on its way out."""
    seen = look(files, state, processes, awake)
    pids = [] if seen.owner is None else [seen.owner.claim.card.process.pid]
    pids += seen.stopping
    if pids or seen.standbys:
        told = f"the agent with pid {pids[0]} lives" if pids else "an agent on standby lives"
        raise _refusal(told, f"end it first: kill {pids[0]}" if pids else "end it first")


def purge(files: Files, path: str, tell: Callable[[str], None]) -> None:
    """Remove what agents made in the state directory at `path`, and it too when nothing else is in it.

    Raises SomeoneElseOwns when an agent owns, with nothing removed; CannotWriteState when the disk refuses.
    """
    try:
        state = files.open_directory(path)
        try:
            _purge(files, state)
            left = files.names(state)
        finally:
            files.close(state)
        if left:
            tell(f"kept        {path}: {', '.join(left)}, which no agent made")
            return
        above = files.open_directory(posixpath.dirname(path))
        try:
            files.remove_directory(above, posixpath.basename(path))
        finally:
            files.close(above)
    except OSError as error:
        raise cannot_write(path, error) from None
    tell(f"removed     {path}")


def _purge(files: Files, state: Descriptor) -> None:
    own = _locked(files, state)
    try:
        for name in files.names(state):
            if name in _FILES or name.startswith(_COPIES + _HALVES):
                _remove(files, state, name)
        for name in DIRECTORIES:
            _remove(files, state, name)
    finally:
        if own is not None:
            files.close(own)


def _locked(files: Files, state: Descriptor) -> Descriptor | None:
    """The owner's directory, locked until it is closed; None when there is none."""
    try:
        own = files.open_directory_at(state, OWN)
    except FileNotFoundError:
        return None
    if not files.try_lock(own):
        files.close(own)
        raise _refusal("an agent owns the state directory", "see which: ankita-agent status")
    return own


def _remove(files: Files, directory: Descriptor, name: str) -> None:
    """Remove a file, a link, or a directory with what is in it; whatever is called routines.yaml stays."""
    if name == FILE:
        return
    try:
        is_directory = files.facts_at(directory, name).directory
    except FileNotFoundError:
        return
    if not is_directory:
        files.unlink(directory, name)
        return
    opened = files.open_directory_at(directory, name)
    try:
        for inner in files.names(opened):
            _remove(files, opened, inner)
    finally:
        files.close(opened)
    files.remove_directory(directory, name)


def _refusal(fact: str, do: str) -> SomeoneElseOwns:
    return SomeoneElseOwns("will not remove the state", fact=fact, now="the state is as it was", do=do)
