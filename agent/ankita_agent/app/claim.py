"""What an agent writes about itself: the claim file, and its life file with its progress.

Both are advice for people and for the next owner: the kernel's locks decide who owns. Bytes: docs/protocol.md.
A file that is torn, garbage or of another version reads as None, never as an error.
"""

import json
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Final

from ankita_agent.app.documents import Document, Garbage, parse
from ankita_agent.core.instants import DAY, Duration, Instant, Monotonic, format_instant
from ankita_agent.core.rows import ProcessId

LIMIT: Final = 4096
"""No claim or life file is longer; more is garbage."""

PROGRESS_AT: Final = 2048
"""Where in a life file the progress line stands, so that it can be written in place."""

_PROGRESS_WIDTH: Final = 2048

HIGHEST_TERM: Final = 2**40
"""What is higher is not believed of a file; fires are numbered from the term times a million, within 64 bits."""

_HIGHEST_PID: Final = 2**31 - 1
_HIGHEST_UID: Final = 2**32 - 1

NO_PATIENCE: Final = Duration(0)
_MOST_PATIENCE: Final = DAY
"""More is neither written nor believed."""

_TROUBLE_LIMIT: Final = 300
"""Bytes of trouble that are kept: JSON may make six of one."""


@dataclass(frozen=True, slots=True)
class Card:
    """Who an agent process is. `host` is for people only; nothing is concluded from it."""

    token: str
    process: ProcessId
    uid: int
    version: str
    manager: str | None
    host: str


@dataclass(frozen=True, slots=True)
class ClaimCard:
    """The claim: the owner's card, its term and when it took over."""

    card: Card
    term: int
    since: Instant


class Role(StrEnum):
    """What an agent process is doing."""

    STANDBY = "standby"
    OWNER = "owner"
    STOPPING = "stopping"  # owns no more, and sees its running attempts to their end


@dataclass(frozen=True, slots=True)
class Progress:
    """The last pass that finished in order, on the clock that stands still in sleep; `busy` with work in hand.

    `patience` is how much longer than usual the next one may take, because of a wait for the disk; 0 between passes.
    `trouble` is the first reason why the agent is degraded, cut to a line, or empty. The report has all of
    them; a disk that is full takes no new report, and takes this, which is written over what was there.
    """

    awake: Monotonic
    passes: int
    busy: bool
    role: Role
    trouble: str = ""
    patience: Duration = NO_PATIENCE


def write_claim(claim: ClaimCard) -> bytes:
    """The bytes of claim.json."""
    document = {"v": 2, "guarded": True, **_card_document(claim.card)}
    document |= {"term": claim.term, "since": format_instant(claim.since)}
    return json.dumps(document).encode() + b"\n"


def read_claim(content: bytes) -> ClaimCard | None:
    """The claim in those bytes, or None."""
    try:
        document = parse(content, LIMIT)
        return ClaimCard(_card(document), document.whole("term", 1, 2 * HIGHEST_TERM), document.instant("since"))
    except Garbage:
        return None


def write_life(card: Card) -> bytes:
    """The first bytes of a life file: the card, padded up to the progress line."""
    return json.dumps(_card_document(card)).encode().ljust(PROGRESS_AT - 1)[: PROGRESS_AT - 1] + b"\n"


def write_progress(progress: Progress) -> bytes:
    """The progress line, always equally long, so that a reader never sees two of them."""
    trouble = progress.trouble.encode(errors="replace")[:_TROUBLE_LIMIT].decode(errors="ignore")
    patience = Duration(min(progress.patience, _MOST_PATIENCE))
    text = json.dumps(asdict(replace(progress, trouble=trouble, patience=patience))).encode()
    return text.ljust(_PROGRESS_WIDTH - 1) + b"\n"


def read_life(content: bytes) -> tuple[Card | None, Progress | None]:
    """Card and progress in a life file; each None where it is torn or missing."""
    card: Card | None
    progress: Progress | None
    try:
        card = _card(parse(content[:PROGRESS_AT], PROGRESS_AT))
    except Garbage:
        card = None
    try:
        progress = _progress(parse(content[PROGRESS_AT:], _PROGRESS_WIDTH))
    except Garbage:
        progress = None
    return card, progress


def _card_document(card: Card) -> dict[str, Any]:
    return {**asdict(card), "process": asdict(card.process)}


def _card(document: Document) -> Card:
    process = document.within("process")
    return Card(
        token=document.text("token"),
        process=ProcessId(
            process.whole("pid", 1, _HIGHEST_PID),
            process.whole("ticks"),
            process.text("boot"),
            process.whole("namespace"),
        ),
        uid=document.whole("uid", 0, _HIGHEST_UID),
        version=document.text("version"),
        manager=document.text_or_none("manager"),
        host=document.text("host"),
    )


def _progress(document: Document) -> Progress:
    try:
        role = Role(document.text("role"))
    except ValueError:
        raise Garbage("role") from None
    return Progress(
        Monotonic(document.whole("awake")),
        document.whole("passes"),
        document.flag("busy"),
        role,
        document.text("trouble", _PROGRESS_WIDTH),
        Duration(document.whole("patience", 0, _MOST_PATIENCE)),
    )
