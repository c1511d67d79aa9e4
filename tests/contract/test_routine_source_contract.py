"""The ports of the file of routines: the fakes and the real files keep the same promises."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.adapters.routine_files import LastGoodFile, RoutineFile
from ankita_agent.core.errors import CannotWriteState
from ankita_agent.core.problems import Problem
from ankita_agent.ports.routine_source import Absent, Found, LastGood, RoutineSource, Unusable
from ankita_agent.testing.routine_files import KeptCopy, WrittenFile

TEXT = "routines: {}\n"


@dataclass
class Place:
    """A source, and how to put something where it reads (None: nothing), or something that cannot be used."""

    source: RoutineSource
    put: Callable[[str | None], None]
    spoil: Callable[[], None]


def _fake() -> Place:
    file = WrittenFile(None)

    def put(text: str | None) -> None:
        file.text, file.unusable = text, None

    def spoil() -> None:
        file.unusable = Problem(0, 0, "is a directory", "move it away")

    return Place(file, put, spoil)


def _real(directory: Path) -> Place:
    directory.chmod(0o700)
    path = directory / "routines.yaml"

    def put(text: str | None) -> None:
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)
            path.chmod(0o600)

    return Place(RoutineFile(str(path), 1000), put, path.mkdir)


@pytest.fixture(params=["fake", "real"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A source of each kind, with no file yet."""
    return _fake() if request.param == "fake" else _real(tmp_path)


def test_the_path_is_whole(place: Place) -> None:
    assert os.path.isabs(place.source.path)


def test_no_file_is_absent_and_something_is_to_be_watched(place: Place) -> None:
    seen = place.source.read()
    assert isinstance(seen, Absent)
    assert seen.watch


def test_a_file_is_found_with_its_content(place: Place) -> None:
    place.put(TEXT)
    seen = place.source.read()
    assert isinstance(seen, Found)
    assert seen.content == TEXT.encode()
    assert seen.watch


def test_what_cannot_be_used_is_given_with_what_to_do_and_raises_nothing(place: Place) -> None:
    place.spoil()
    seen = place.source.read()
    assert isinstance(seen, Unusable)
    assert seen.problem.line == 0
    assert seen.problem.fix
    assert seen.watch


def test_a_file_that_goes_is_absent_again(place: Place) -> None:
    place.put(TEXT)
    place.source.read()
    place.put(None)
    assert isinstance(place.source.read(), Absent)


@dataclass
class Copy:
    """A copy, and how to break it."""

    kept: LastGood
    break_it: Callable[[], None]


@pytest.fixture(params=["fake", "real"])
def copy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Copy]:
    """A copy of each kind, with nothing kept yet."""
    if request.param == "fake":
        fake = KeptCopy()
        yield Copy(fake, lambda: setattr(fake, "broken", True))
        return
    files = PosixFiles()
    state = files.open_directory(str(tmp_path))
    yield Copy(LastGoodFile(files, state, str(tmp_path), 1000), (tmp_path / "last-good.yaml").mkdir)
    files.close(state)


def test_nothing_is_kept_at_first(copy: Copy) -> None:
    assert copy.kept.read() is None


def test_what_was_kept_last_is_read_back(copy: Copy) -> None:
    copy.kept.write(b"one, and longer")
    copy.kept.write(b"two")
    assert copy.kept.read() == b"two"


def test_a_copy_that_cannot_be_used_says_so(copy: Copy) -> None:
    copy.break_it()
    with pytest.raises(CannotWriteState):
        copy.kept.read()
    with pytest.raises(CannotWriteState):
        copy.kept.write(b"one")
