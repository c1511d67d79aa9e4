"""Requests for manual runs: files that any shell may leave and the owner alone takes up.

STATE/requests/<id>.json is written whole or not at all, addressed to the owner's token. The owner claims it in
the ledger by its id, which no second claim can win, and then removes the file; a crash between the two fires
nothing twice. A request to an owner that is gone is recorded as missed, never started later by surprise.
"""

import json
from dataclasses import dataclass

from ankita_agent.core.instants import Instant, format_instant, parse_instant
from ankita_agent.core.outcomes import Trigger
from ankita_agent.ports.files import Descriptor, Files

REQUESTS = "requests"
_SUFFIX = ".json"
_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class Request:
    """A wish for one run outside of the schedule. `slot` is when it was asked for, or the slot that is re-run."""

    id: str
    routine: str
    slot: Instant
    trigger: Trigger
    addressed_to: str


class Requests:
    """The directory of requests, seen by the owner and by those who ask."""

    def __init__(self, files: Files, state: Descriptor) -> None:
        self._files = files
        files.make_directory(state, REQUESTS)
        self._directory = files.open_directory_at(state, REQUESTS)

    def ask(self, request: Request) -> None:
        """Leave a request; it is there, whole, when this returns."""
        document = {
            "routine": request.routine,
            "asked_at": format_instant(request.slot),
            "owner": request.addressed_to,
        }
        self._files.replace(self._directory, request.id + _SUFFIX, json.dumps(document).encode() + b"\n")

    def waiting(self) -> list[Request]:
        """The requests that nobody has taken up, oldest first; a file that is no request is removed.

        What cannot be read (a directory, another user's file) is left alone.
        """
        found = []
        for name in self._files.names(self._directory):
            if name.startswith(".") or not name.endswith(_SUFFIX):
                continue
            try:
                content = self._files.read(self._directory, name, _LIMIT)
            except OSError:
                continue
            request = _request(name.removesuffix(_SUFFIX), content)
            if request is None:
                self._files.unlink(self._directory, name)
            else:
                found.append(request)
        return sorted(found, key=lambda request: (request.slot, request.id))

    def holds(self, request: str) -> bool:
        """Whether nobody has taken it up or away."""
        return request + _SUFFIX in self._files.names(self._directory)

    def withdraw(self, request: str) -> bool:
        """Take a request away; False when it was not there any more."""
        return self._files.unlink(self._directory, request + _SUFFIX)


def _request(name: str, content: bytes) -> Request | None:
    try:
        document = json.loads(content)
        return Request(
            name,
            str(document["routine"]),
            parse_instant(document["asked_at"]),
            Trigger.MANUAL,
            str(document["owner"]),
        )
    except (ValueError, KeyError, TypeError):
        return None
