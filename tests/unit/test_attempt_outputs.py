import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ankita_agent.adapters.attempt_outputs import AttemptOutputs
from ankita_agent.core.instants import parse_instant
from ankita_agent.ports.outputs import Output

SLOT = parse_instant("2026-10-25T01:30:00Z")
LIMIT = 4 * 65536


class Shelf:
    def __init__(self, state: Path) -> None:
        self.state = state
        self.descriptor = os.open(state, os.O_RDONLY)
        self.outputs = AttemptOutputs(self.descriptor, limit=LIMIT)

    def open(self, fire: int = 1) -> Output:
        return self.outputs.open("backup", SLOT, fire)

    def content(self, output: Output) -> bytes:
        return (self.state / output.log).read_bytes()


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path)
    yield shelf
    os.close(shelf.descriptor)


def numbered(size: int) -> bytes:
    return b"".join(b"%07d\n" % number for number in range(size // 8))


def test_the_name_of_a_log_tells_the_slot_and_the_fire(shelf: Shelf) -> None:
    output = shelf.open(7)
    assert output.log == "logs/backup/20261025T013000Z-7.log"
    shelf.outputs.finish(output)


def test_a_retry_goes_on_in_the_file_of_its_fire(shelf: Shelf) -> None:
    first = shelf.open()
    os.write(first.descriptor, b"one\n")
    shelf.outputs.finish(first)
    second = shelf.open()
    os.write(second.descriptor, b"ok\n")
    assert second.start == 4
    assert shelf.outputs.says(second, "ok")
    shelf.outputs.finish(second)
    assert shelf.content(second) == b"one\nok\n"


@pytest.mark.parametrize("size", [0, 8, LIMIT])
def test_what_is_within_the_limit_is_not_touched(shelf: Shelf, size: int) -> None:
    output = shelf.open()
    os.write(output.descriptor, numbered(size))
    assert shelf.outputs.trim(output) == size
    shelf.outputs.finish(output)
    assert shelf.content(output) == numbered(size)


def test_while_it_is_written_the_middle_is_freed_and_no_offset_moves(shelf: Shelf) -> None:
    output = shelf.open()
    content = numbered(LIMIT * 8)
    os.write(output.descriptor, content)
    assert shelf.outputs.trim(output) == len(content)
    held = (shelf.state / output.log).stat().st_blocks * 512
    assert held <= LIMIT + 2 * 4096
    os.write(output.descriptor, b"more\n")
    now = shelf.content(output)
    assert now.startswith(content[: LIMIT // 2])
    assert now.endswith(content[-LIMIT // 4 :] + b"more\n")
    shelf.outputs.finish(output)


def test_at_the_end_head_and_tail_stand_together_with_a_line_that_counts_what_went(shelf: Shelf) -> None:
    output = shelf.open()
    content = numbered(LIMIT * 3)
    for start in range(0, len(content), 65536):
        os.write(output.descriptor, content[start : start + 65536])
        shelf.outputs.trim(output)
    shelf.outputs.finish(output)
    kept = shelf.content(output)
    head, marker, tail = kept.partition(b"\n[ankita-agent: ")
    count, _, tail = tail.partition(b" bytes of output were cut out here]\n")
    assert marker
    assert content.startswith(head)
    assert content.endswith(tail)
    assert len(head) + int(count) + len(tail) == len(content)
    assert len(kept) <= LIMIT


def test_without_holes_the_file_is_cut_while_it_is_written_and_its_writer_goes_on_at_the_end(shelf: Shelf) -> None:
    shelf.outputs = AttemptOutputs(shelf.descriptor, LIMIT, make_hole=lambda descriptor, start, end: False)
    output = shelf.open()
    writer = os.dup(output.descriptor)
    for _ in range(5):
        os.write(writer, numbered(LIMIT))
        shelf.outputs.trim(output)
        assert len(shelf.content(output)) <= LIMIT
    os.write(writer, b"the end\n")
    os.close(writer)
    shelf.outputs.finish(output)
    kept = shelf.content(output)
    assert kept.startswith(numbered(LIMIT)[:1000])
    assert b" bytes of output were cut out here]\n" in kept
    assert kept.endswith(numbered(LIMIT)[-1000:] + b"the end\n")


def test_a_file_that_was_cut_can_go_on_and_be_cut_again(shelf: Shelf) -> None:
    for _ in range(3):
        output = shelf.open()
        os.write(output.descriptor, numbered(LIMIT * 2))
        shelf.outputs.trim(output)
        shelf.outputs.finish(output)
    assert len(shelf.content(output)) <= LIMIT


def test_another_file_that_was_put_in_its_place_is_not_cut(shelf: Shelf) -> None:
    output = shelf.open()
    os.write(output.descriptor, numbered(LIMIT * 2))
    path = shelf.state / output.log
    path.unlink()
    path.write_bytes(numbered(LIMIT * 3))
    shelf.outputs.finish(output)
    assert path.read_bytes() == numbered(LIMIT * 3)


def test_a_link_in_the_place_of_a_log_or_its_directory_is_refused(shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "backup").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):
        shelf.open()
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    ("written", "text", "says"),
    [
        (b"ok\n", "ok", True),
        (b"  ok \r\n", " ok ", True),
        (b"ok\nok\n", "ok", False),
        (b"\xff", "ok", False),
        (b"ok" + b"\n" * 9000, "ok", False),
        (b"", "ok", False),
        ("überall gut\n".encode(), "überall gut", True),
    ],
)
def test_whether_an_attempt_wrote_exactly_a_text(shelf: Shelf, written: bytes, text: str, says: bool) -> None:
    output = shelf.open()
    os.write(output.descriptor, written)
    assert shelf.outputs.says(output, text) is says
    shelf.outputs.finish(output)


@pytest.mark.parametrize(
    ("content", "count", "lines"),
    [
        (b"a\nb\nc\n", 2, b"b\nc\n"),
        (b"a\nb\nc", 2, b"b\nc"),
        (b"a\n", 9, b"a\n"),
        (b"a\r10%\r20%\nb\n", 1, b"b\n"),
        (b"\xff\0\n", 1, b"\xff\0\n"),
        (b"", 3, b""),
        (b"a\n", 0, b""),
    ],
)
def test_the_last_lines_of_a_log(shelf: Shelf, content: bytes, count: int, lines: bytes) -> None:
    output = shelf.open()
    os.write(output.descriptor, content)
    assert shelf.outputs.last_lines(output.log, count) == lines
    shelf.outputs.finish(output)


def test_the_last_lines_of_a_log_that_was_removed_are_an_error(shelf: Shelf) -> None:
    with pytest.raises(FileNotFoundError):
        shelf.outputs.last_lines("logs/backup/none.log", 3)


def test_pruning_keeps_the_newest_fires_those_that_run_and_files_that_are_not_ours(shelf: Shelf) -> None:
    for fire in range(1, 13):
        shelf.outputs.finish(shelf.open(fire))
    directory = shelf.state / "logs" / "backup"
    (directory / "notes.txt").write_text("mine")
    shelf.outputs.prune("backup", 2, {3})
    assert {path.name.rpartition("-")[2] for path in directory.iterdir()} == {
        "11.log",
        "12.log",
        "3.log",
        "notes.txt",
    }


def test_an_output_of_nothing_that_never_started_is_removed_and_one_with_content_is_not(shelf: Shelf) -> None:
    empty, full = shelf.open(1), shelf.open(2)
    os.write(full.descriptor, b"of an earlier attempt\n")
    shelf.outputs.discard(empty)
    shelf.outputs.discard(full)
    assert [path.name for path in (shelf.state / "logs" / "backup").iterdir()] == ["20261025T013000Z-2.log"]
