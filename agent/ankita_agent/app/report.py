"""What the owner tells about itself beside the ledger: own/report.json, for status and doctor.

Advice for people, written only when it changes, never read back by the owner. A report whose token is not the
owner's is an old one.
"""

import json
from dataclasses import asdict, dataclass

from ankita_agent.app.documents import LATEST, Document, Garbage, parse
from ankita_agent.core.instants import Instant
from ankita_agent.ports.files import Descriptor, Files

REPORT = "report.json"
_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class ConfigState:
    """Which file the routines come from, and why the newest edit of it is not in force (empty when it is)."""

    path: str
    error: str


@dataclass(frozen=True, slots=True)
class WaitingRoutine:
    """A routine in line, and what it waits for: settle, turn or room."""

    routine: str
    wait: str
    since: Instant


@dataclass(frozen=True, slots=True)
class Report:
    """The owner's own state. `degraded` are reasons for a person; empty means fine."""

    token: str
    version: str
    degraded: tuple[str, ...]
    config: ConfigState
    waiting: tuple[WaitingRoutine, ...]
    woke_at: Instant | None
    inherits_environment: bool


def write_report(files: Files, own: Descriptor, report: Report) -> None:
    """Replace the report. Raises OSError; the old one stands then."""
    files.replace(own, REPORT, json.dumps(asdict(report), indent=1).encode() + b"\n")


def read_report(files: Files, own: Descriptor) -> Report | None:
    """The report, or None when there is none that can be read."""
    try:
        return _report(parse(files.read(own, REPORT, _LIMIT + 1), _LIMIT))
    except (OSError, Garbage):
        return None


def _report(document: Document) -> Report:
    config = document.within("config")
    woke = document.whole_or_none("woke_at", 0, LATEST)
    return Report(
        token=document.text("token"),
        version=document.text("version"),
        degraded=document.texts("degraded", _LIMIT),
        config=ConfigState(config.text("path", _LIMIT), config.text("error", _LIMIT)),
        waiting=tuple(
            WaitingRoutine(each.text("routine"), each.text("wait"), Instant(each.whole("since", 0, LATEST)))
            for each in document.each_within("waiting")
        ),
        woke_at=None if woke is None else Instant(woke),
        inherits_environment=document.flag("inherits_environment"),
    )
