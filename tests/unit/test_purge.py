"""Removing the state removes what agents made there, and nothing else."""

from pathlib import Path

import pytest

from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.app.purge import purge
from ankita_agent.core.errors import CannotWriteState, SomeoneElseOwns


@pytest.fixture
def state(tmp_path: Path) -> Path:
    made = tmp_path / "state"
    for name in ("own/life/a1", "own/guard", "run/a.lock", "requests/r.json", "logs/a/1.log", "last-good.yaml"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text("x")
    for rest in ("", "-wal", "-shm", ".damaged-20261130T120000Z", ".before-v2"):
        (made / f"ledger.db{rest}").write_text("x")
    (made / ".last-good.yaml.123.new").write_text("x")
    return made


def remove(state: Path) -> list[str]:
    told: list[str] = []
    purge(PosixFiles(), str(state), told.append)
    return told


def test_everything_that_agents_made_is_removed_and_the_directory_with_it(state: Path) -> None:
    assert remove(state) == [f"removed     {state}"]
    assert not state.exists()


def test_what_no_agent_made_stays_and_is_named(state: Path) -> None:
    (state / "notes.txt").write_text("mine")
    (told,) = remove(state)
    assert "notes.txt, which no agent made" in told
    assert [each.name for each in state.iterdir()] == ["notes.txt"]


def test_no_link_is_followed(state: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("mine")
    (state / "logs" / "b").symlink_to(elsewhere)
    (state / "run" / "a.lock").unlink()
    (state / "run" / "a.lock").symlink_to(elsewhere / "precious")
    remove(state)
    assert (elsewhere / "precious").read_text() == "mine"


def test_a_state_directory_that_is_a_link_is_refused(state: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(state)
    with pytest.raises(CannotWriteState):
        remove(link)
    assert (state / "ledger.db").exists()


@pytest.mark.parametrize("place", [".", "logs", "own"])
def test_a_routines_yaml_is_never_removed_wherever_it_stands(state: Path, place: str) -> None:
    (state / place / "routines.yaml").write_text("mine")
    remove(state)
    assert (state / place / "routines.yaml").read_text() == "mine"


def test_while_an_agent_owns_nothing_is_removed(state: Path) -> None:
    files = PosixFiles()
    own = files.open_directory(str(state / "own"))
    assert files.try_lock(own)
    try:
        with pytest.raises(SomeoneElseOwns, match="the state is as it was"):
            remove(state)
    finally:
        files.close(own)
    assert (state / "ledger.db").exists()


def test_a_file_is_made_only_where_nothing_bears_its_name(tmp_path: Path) -> None:
    files = PosixFiles()
    directory = files.open_directory(str(tmp_path))
    (tmp_path / "link").symlink_to("nowhere")
    try:
        assert files.create(directory, "new", b"1")
        assert not files.create(directory, "new", b"2")
        assert not files.create(directory, "link", b"2")
        assert files.names(directory) == ["link", "new"]
    finally:
        files.close(directory)
    assert (tmp_path / "new").read_bytes() == b"1"
