"""The files of units: written all or none, with their directories, and never through a link in place of one."""

import errno
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.adapters.routine_files import judge_directory
from ankita_agent.app.unit_files import UnitFiles
from ankita_agent.core.errors import CannotWriteState
from ankita_agent.core.install_plan import Change, FileChange
from ankita_agent.ports.files import Descriptor


class FullDisk(PosixFiles):
    """A disk that takes no file of one name."""

    def replace_all(self, directory: Descriptor, contents: Mapping[str, bytes]) -> None:
        """Fail for that name, else as always."""
        if "refused" in contents:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "refused")
        super().replace_all(directory, contents)


@pytest.fixture
def disk() -> UnitFiles:
    return UnitFiles(FullDisk(), judge_directory, os.path.realpath)


def new(path: Path) -> FileChange:
    return FileChange(str(path), None, "x", Change.NEW)


def directories(root: Path) -> set[str]:
    return {str(each.relative_to(root)) for each in root.rglob("*") if each.is_dir()}


@pytest.mark.parametrize("there_before", ["", "data", "data/user", "data/user/unit.d"])
def test_what_fails_takes_back_the_directories_that_it_made_and_no_others(
    disk: UnitFiles, tmp_path: Path, there_before: str
) -> None:
    (tmp_path / there_before).mkdir(parents=True, exist_ok=True)
    before = directories(tmp_path)
    with pytest.raises(CannotWriteState):
        disk.apply([new(tmp_path / "data/user/unit.d/taken"), new(tmp_path / "data/user/refused")])
    assert directories(tmp_path) == before
    assert not [each for each in tmp_path.rglob("*") if each.is_file()]


def test_an_empty_directory_is_removed_and_the_target_of_a_link_is_not(disk: UnitFiles, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to("target")
    assert not disk.remove_if_empty(str(tmp_path / "link"))
    assert (tmp_path / "link").readlink() == Path("target")
    assert disk.remove_if_empty(str(tmp_path / "target"))
    assert not (tmp_path / "target").exists()
    assert not disk.remove_if_empty(str(tmp_path / "target"))


def test_a_directory_is_removed_where_a_link_leads_on_the_way_to_it(disk: UnitFiles, tmp_path: Path) -> None:
    (tmp_path / "target/unit.d").mkdir(parents=True)
    (tmp_path / "link").symlink_to("target")
    assert disk.remove_if_empty(str(tmp_path / "link/unit.d"))
    assert directories(tmp_path) == {"target", "link"}


def test_a_directory_that_holds_something_is_not_removed(disk: UnitFiles, tmp_path: Path) -> None:
    (tmp_path / "unit.d/mine").mkdir(parents=True)
    assert not disk.remove_if_empty(str(tmp_path / "unit.d"))
    assert (tmp_path / "unit.d/mine").exists()


@pytest.mark.parametrize("way", ["systemd", "systemd/it's user"])
def test_a_file_in_place_of_a_directory_is_to_be_moved_away(disk: UnitFiles, tmp_path: Path, way: str) -> None:
    file = tmp_path / way
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine")
    unit = tmp_path / "systemd/it's user/x.service"
    with pytest.raises(CannotWriteState) as fault:
        disk.read(str(unit))
    assert fault.value.fact == f"{str(file)!r} is not a directory"
    assert fault.value.do.startswith("move it away: mv ")
    assert subprocess.run(fault.value.do.partition(": ")[2], shell=True, check=True)
    assert file.with_name(f"{file.name}.old").read_text() == "mine"
    assert disk.read(str(unit)) is None
