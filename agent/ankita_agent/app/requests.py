"""Requests for manual runs: files that any shell may leave and the owner alone takes up.

STATE/requests/<id>.json is written whole or not at all, addressed to the owner's token. The owner claims it in
the ledger by its id, which no second claim can win, and then removes the file; a crash between the two fires
nothing twice. A request to an owner that is gone is recorded as missed, never started later by surprise.
"""

import json
import re
from dataclasses import dataclass
from typing import Final

from ankita_agent.app.documents import Garbage, parse
from ankita_agent.core.instants import Instant, format_instant
from ankita_agent.core.outcomes import Trigger
from ankita_agent.ports.files import Descriptor, Files

REQUESTS = "requests"
_SUFFIX = ".json"
_LIMIT = 4096
_ID: Final = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Request:
    """A wish for one run outside of the schedule. `slot` is when it was asked for, or the slot that is re-run."""

    id: str
    routine: str
    slot: Instant
    trigger: Trigger
    addressed_to: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """The requests that nobody has taken up, oldest first, and why one could not be read (empty when all could)."""

    requests: list[Request]
    unread: str


class Requests:
    """The directory of requests, seen by the owner and by those who ask."""

    def __init__(self, files: Files, state: Descriptor) -> None:
        self._files = files
        files.make_directory(state, REQUESTS)
        self._state = state
        self._directory = files.open_directory_at(state, REQUESTS)

    def reopen(self) -> None:
        """Look at the directory that bears the name now: somebody may have moved the old one away. Raises OSError."""
        self._files.make_directory(self._state, REQUESTS)
        self._files.close(self._directory)
        self._directory = self._files.open_directory_at(self._state, REQUESTS)

    def ask(self, request: Request) -> None:
        """Leave a request; it is there, whole, when this returns. Its id is 16 hexadecimal digits, as random ones."""
        assert _ID.fullmatch(request.id), request.id
        document = {
            "routine": request.routine,
            "asked_at": format_instant(request.slot),
            "owner": request.addressed_to,
        }
        self._files.replace(self._directory, request.id + _SUFFIX, json.dumps(document).encode() + b"\n")

    def waiting(self) -> Waiting:
        """What waits. What bears a request's name and is none is removed, unless it is a directory. Raises OSError.

        Other names are none of ours: the state directory may be somebody's project. A file that cannot be read now (no
        descriptor is free, another user's) may be read later: look again.
        """
        found, unread = [], ""
        for name in self._files.names(self._directory):
            if not (name.endswith(_SUFFIX) and _ID.fullmatch(name.removesuffix(_SUFFIX))):
                continue
            try:
                found.append(_request(name.removesuffix(_SUFFIX), self._content(name)))
            except Garbage:
                self._remove(name)
            except FileNotFoundError:  # taken back by now
                continue
            except OSError as error:
                unread = f"cannot read the request {name!r}: {error.strerror or error}"
        return Waiting(sorted(found, key=lambda request: (request.slot, request.id)), unread)

    def holds(self, request: str) -> bool:
        """Whether nobody has taken it up or away."""
        return request + _SUFFIX in self._files.names(self._directory)

    def withdraw(self, request: str) -> bool:
        """Take a request away; False when it was not there any more."""
        return self._files.unlink(self._directory, request + _SUFFIX)

    def _content(self, name: str) -> bytes:
        try:
            return self._files.read(self._directory, name, _LIMIT + 1)
        except OSError:
            if self._files.facts_at(self._directory, name).regular:
                raise
            raise Garbage("not a file") from None

    def _remove(self, name: str) -> None:
        try:
            self._files.unlink(self._directory, name)
        except OSError:  # a directory, or a disk that takes nothing: it harms nobody
            pass


def _request(name: str, content: bytes) -> Request:
    document = parse(content, _LIMIT)
    return Request(name, document.text("routine"), document.instant("asked_at"), Trigger.MANUAL, document.text("owner"))
