"""Files that somebody or something has damaged: they read as nothing, and no agent and no command ends of them."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.adapters.state_directory import cannot_write
from ankita_agent.app.claim import (
    HIGHEST_TERM,
    PROGRESS_AT,
    Card,
    ClaimCard,
    Progress,
    Role,
    read_claim,
    read_life,
    write_claim,
    write_life,
    write_progress,
)
from ankita_agent.app.documents import Garbage, parse, whole_number
from ankita_agent.app.inspection import look
from ankita_agent.app.owner import OWN, Owner
from ankita_agent.app.report import ConfigState, Report, WaitingRoutine, read_report, write_report
from ankita_agent.app.requests import Request, Requests
from ankita_agent.core.instants import Instant, Monotonic, parse_instant
from ankita_agent.core.outcomes import Trigger
from ankita_agent.core.rows import ProcessId
from ankita_agent.ports.files import Descriptor
from ankita_agent.testing.processes import FakeProcesses

NOW: Final = parse_instant("2026-03-03T12:00:00Z")
CARD: Final = Card("a" * 32, ProcessId(4711, 1, "boot", 2), 1000, "0.1", "systemd", "host")
CLAIM: Final = ClaimCard(CARD, 7, NOW)
REPORT: Final = Report(
    "a" * 32, "0.1", ("trouble",), ConfigState("/c", ""), (WaitingRoutine("a", "room", NOW),), NOW, False
)

GARBAGE: Final = (
    b"",
    b"\0",
    b"\xff\xfe",
    b"null",
    b"[]",
    b'"text"',
    b"1",
    b"[" * 4000,
    b'{"a":' * 2000,
    b"9" * 5000,
    b"NaN",
    b"{}",
    b'{"term": 1e999}',
    b'{"since": ',
)

WRONG: Final[tuple[Any, ...]] = (
    None, "text", "\ud800", "x" * 100_000, -1, 2**63, 10**400, 1e308, True, [], [1], [[]], [{}], {}, {"a": {}},
    "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "2026-03-03T12:00:00",
)  # fmt: skip
"""What no field may make an error of, whatever it makes of it."""


def variations(content: bytes) -> list[bytes]:
    """The document with each of its fields, at any depth, gone or replaced by each wrong value."""
    found: list[bytes] = []

    def vary(node: Any, write: Callable[[Any], None]) -> None:
        children: list[Any] = list(node) if isinstance(node, dict) else list(range(len(node)))
        for key in children:
            kept = node[key]
            for wrong in WRONG:
                node[key] = wrong
                write(document)
            node[key] = kept
            if isinstance(kept, dict | list):
                vary(kept, write)
            if isinstance(node, dict):
                del node[key]
                write(document)
                node[key] = kept

    document = json.loads(content)
    vary(document, lambda whole: found.append(json.dumps(whole).encode()))
    return found


@pytest.mark.parametrize("content", GARBAGE, ids=lambda content: repr(content[:12]))
def test_garbage_is_no_document_and_no_other_error(content: bytes) -> None:
    with pytest.raises(Garbage):
        parse(content, 1 << 20).text("token")


def test_a_document_that_is_longer_than_it_may_be_is_garbage() -> None:
    assert parse(b'{"a": "b"}', 10).text("a") == "b"
    with pytest.raises(Garbage):
        parse(b'{"a": "b"} ', 10)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_none_is_no_json(constant: str) -> None:
    with pytest.raises(Garbage):
        parse(f'{{"a": 1, "b": {constant}}}'.encode(), 100)


@pytest.mark.parametrize("content", [b"", b"-1", b"1e9", b"\xb2", b"x", b"1 2", b"9" * 4000, b"10000000000000"])
def test_a_number_file_beyond_its_bounds_is_garbage(content: bytes) -> None:
    with pytest.raises(Garbage):
        whole_number(content, 1, HIGHEST_TERM)


def test_a_number_file_may_begin_with_noughts_and_end_with_a_line_feed() -> None:
    assert whole_number(b"%020d\n" % 17, 0, 2**63 - 1) == 17


@pytest.mark.parametrize("content", [*GARBAGE, write_claim(CLAIM) * 40], ids=lambda content: repr(content[:12]))
def test_a_claim_that_is_garbage_is_none(content: bytes) -> None:
    assert read_claim(content) is None


def test_a_claim_with_any_field_wrong_is_none_or_within_bounds() -> None:
    assert read_claim(write_claim(CLAIM)) == CLAIM
    for content in variations(write_claim(CLAIM)):
        claim = read_claim(content)
        if claim is not None:
            assert 0 < claim.term <= 2 * HIGHEST_TERM
            assert 0 < claim.card.process.pid < 2**31
            assert 0 <= claim.since < parse_instant("2200-01-01T00:00:00Z")
            write_claim(claim)


@pytest.mark.parametrize("content", GARBAGE, ids=lambda content: repr(content[:12]))
def test_a_life_file_that_is_garbage_has_neither_card_nor_progress(content: bytes) -> None:
    assert read_life(content.ljust(PROGRESS_AT) + content) == (None, None)


def test_a_life_file_with_any_field_wrong_raises_nothing() -> None:
    progress = Progress(Monotonic(5), 3, True, Role.OWNER, "trouble")
    whole = write_life(CARD) + write_progress(progress)
    assert read_life(whole) == (CARD, progress)
    for content in variations(write_life(CARD)):
        card, found = read_life(content[:PROGRESS_AT].ljust(PROGRESS_AT) + write_progress(progress))
        assert card is None or 0 < card.process.pid < 2**31
        assert found == progress
    for content in variations(write_progress(progress)):
        card, found = read_life(write_life(CARD) + content)
        assert card == CARD
        assert found is None or 0 <= found.awake < 2**63


class State:
    """A state directory with an owner's directory in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = PosixFiles()
        self.state = self.files.open_directory(str(path))
        self.files.make_directory(self.state, OWN)
        self.own = self.files.open_directory_at(self.state, OWN)

    def owner(self) -> Owner:
        owner = Owner(self.files, self.state, str(self.path), CARD)
        owner.announce()
        assert owner.try_acquire()
        return owner


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path)


def test_a_report_with_any_field_wrong_is_none_or_of_its_types(state: State) -> None:
    write_report(state.files, state.own, REPORT)
    assert read_report(state.files, state.own) == REPORT
    file = state.path / OWN / "report.json"
    for content in (*GARBAGE, *variations(file.read_bytes()), b'{"a": ' * 200_000):
        file.write_bytes(content)
        report = read_report(state.files, state.own)
        if report is not None:
            assert report.woke_at is None or isinstance(report.woke_at, int)
            assert all(isinstance(reason, str) for reason in report.degraded)
            write_report(state.files, state.own, report)


def litter() -> list[Callable[[Path], object]]:
    """Ways in which a file can be garbage."""
    return [
        *(lambda path, content=content: path.write_bytes(content) for content in GARBAGE),
        lambda path: path.mkdir(),
        lambda path: path.symlink_to("/dev/zero"),
        os.mkfifo,
    ]


@pytest.mark.parametrize("name", ["claim.json", "report.json", "term", "fired"])
def test_no_garbage_in_the_directory_of_the_owner_keeps_anybody_from_looking(state: State, name: str) -> None:
    path = state.path / OWN / name
    for spoil in litter():
        spoil(path)
        owner = Owner(state.files, state.state, str(state.path), CARD)
        assert owner.claim() is None
        assert 0 <= owner.known_term() <= HIGHEST_TERM
        assert 0 <= owner.known_fire() < 2**63
        assert look(state.files, state.state, FakeProcesses(), Monotonic(1)).owner is None
        path.rmdir() if path.is_dir() else path.unlink()


@pytest.mark.parametrize("text", ["10000000000000", "9223372036854775807", "1e999", "-5", "9" * 4500])
def test_a_term_beyond_its_bounds_is_not_believed(state: State, text: str) -> None:
    (state.path / OWN / "term").write_text(text)
    document = json.loads(write_claim(CLAIM)) | {"term": "TERM"}
    (state.path / OWN / "claim.json").write_text(json.dumps(document).replace('"TERM"', text))
    assert state.owner().known_term() == 0


def test_the_highest_terms_are_believed_once_and_never_lead_to_a_claim_that_cannot_be_read(state: State) -> None:
    owner = state.owner()
    (state.path / OWN / "term").write_text(str(HIGHEST_TERM))
    owner.seat(owner.known_term() + 1, NOW)
    owner.keep_term()
    claim = owner.claim()
    assert claim is not None
    assert claim.term == HIGHEST_TERM + 1
    assert owner.known_term() == 0


def test_a_claim_and_a_term_that_are_links_are_replaced(state: State) -> None:
    for name in ("claim.json", "term"):
        (state.path / OWN / name).symlink_to("/dev/zero")
    owner = state.owner()
    owner.seat(3, NOW)
    owner.keep_term()
    assert not (state.path / OWN / "claim.json").is_symlink()
    assert (state.path / OWN / "term").read_text() == "3\n"
    assert owner.known_term() == 3
    assert not owner.check()


@pytest.mark.parametrize("name", ["claim.json", "term"])
def test_a_directory_in_the_way_is_named_with_how_to_move_it(state: State, name: str) -> None:
    (state.path / OWN / name).mkdir()
    owner = state.owner()

    def publish() -> None:
        owner.seat(1, NOW)
        owner.keep_term()

    with pytest.raises(OSError) as refused:
        publish()
    told = str(cannot_write(str(state.path), refused.value))
    assert f"Is a directory ({name})" in told
    assert f"find {state.path} -type d -name {name}" in told


def test_every_request_that_is_garbage_is_removed(state: State) -> None:
    requests = Requests(state.files, state.state)
    directory = state.path / "requests"
    good = Request("00ff00ff00ff00ff", "a", NOW, Trigger.MANUAL, "a" * 32)
    requests.ask(good)
    whole = (directory / "00ff00ff00ff00ff.json").read_bytes()
    for spoil in litter():
        spoil(directory / "badbadbadbadbad0.json")
        waiting = requests.waiting()
        assert (waiting.requests, waiting.unread) == ([good], "")
        if (directory / "badbadbadbadbad0.json").is_dir():
            (directory / "badbadbadbadbad0.json").rmdir()
        assert os.listdir(directory) == ["00ff00ff00ff00ff.json"]
    for content in variations(whole):
        (directory / "badbadbadbadbad0.json").write_bytes(content)
        for request in requests.waiting().requests:
            assert 0 <= request.slot < 2**63
            request.routine.encode()


@pytest.mark.parametrize("name", [b"\xff", b"a b", b"..", b"x" * 200, "ü".encode(), b"login", b"00FF00ff00ff00ff"])
def test_a_file_under_a_name_that_is_no_id_is_none_of_ours(state: State, name: bytes) -> None:
    requests = Requests(state.files, state.state)
    requests.ask(Request("00ff00ff00ff00ff", "a", NOW, Trigger.MANUAL, "b"))
    directory = os.fsencode(state.path / "requests")
    os.rename(directory + b"/00ff00ff00ff00ff.json", directory + b"/" + name + b".json")
    waiting = requests.waiting()
    assert waiting.requests == []
    assert os.listdir(directory) == [name + b".json"]


LOCKED = "10cced" + "0" * 10


class Unreadable(PosixFiles):
    """Files of which those that end in a word cannot be opened for now."""

    def read(self, directory: Descriptor, name: str, limit: int) -> bytes:
        if name == LOCKED + ".json":
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), name)
        return super().read(directory, name, limit)


def test_a_request_that_cannot_be_read_now_is_kept_and_said(state: State) -> None:
    requests = Requests(Unreadable(), state.state)
    for number, name in enumerate((LOCKED, "0" * 16)):
        requests.ask(Request(name, "a", Instant(number), Trigger.MANUAL, "b"))
    waiting = requests.waiting()
    assert [request.id for request in waiting.requests] == ["0" * 16]
    assert waiting.unread == f"cannot read the request '{LOCKED}.json': Too many open files"
    assert requests.holds(LOCKED)
