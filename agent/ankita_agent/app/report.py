"""What the owner tells about itself beside the ledger: own/report.json, for status and doctor.

Advice for people, written only when it changes, never read back by the owner. A report whose token is not the
owner's is an old one.
"""

import json
from dataclasses import asdict, dataclass

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
        document = json.loads(files.read(own, REPORT, _LIMIT))
        return Report(
            token=document["token"],
            version=document["version"],
            degraded=tuple(document["degraded"]),
            config=ConfigState(**document["config"]),
            waiting=tuple(WaitingRoutine(**waiting) for waiting in document["waiting"]),
            woke_at=document["woke_at"],
            inherits_environment=document["inherits_environment"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
