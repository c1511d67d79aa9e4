"""The file of routines on a real disk: links followed and watched, whatever others could change refused."""

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.adapters.routine_files import LastGoodFile, RoutineFile, is_private_group, judge_directory
from ankita_agent.core.errors import CannotWriteState
from ankita_agent.ports.routine_source import Absent, Found, Unusable

TEXT = b"routines: {}\n"
LARGEST = 1000
NOBODY = 65534


def reading(path: Path, *, private_group: bool = False) -> Found | Absent | Unusable:
    return RoutineFile(str(path), LARGEST, lambda gid: private_group).read()


def refusal(path: Path) -> str:
    seen = reading(path)
    assert isinstance(seen, Unusable), seen
    assert (seen.problem.line, seen.problem.column) == (0, 0)
    assert seen.problem.fix
    assert seen.watch
    assert all(os.path.isdir(directory) for directory in seen.watch)
    return seen.problem.problem


def remedy(path: Path) -> str:
    seen = reading(path)
    assert isinstance(seen, Unusable), seen
    return seen.problem.fix


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A directory of the user alone."""
    directory = tmp_path / "config"
    directory.mkdir(mode=0o700)
    return directory


@pytest.fixture
def file(config: Path) -> Path:
    """A file of the user alone."""
    path = config / "routines.yaml"
    path.write_bytes(TEXT)
    path.chmod(0o600)
    return path


def test_a_plain_file_is_read_and_its_directory_watched(file: Path) -> None:
    seen = reading(file)
    assert isinstance(seen, Found)
    assert (seen.content, seen.watch) == (TEXT, (str(file.parent),))


def test_no_file_is_no_fault_and_the_directory_is_watched(config: Path) -> None:
    assert reading(config / "routines.yaml") == Absent((str(config),))


def test_without_its_directory_the_nearest_one_is_watched(config: Path) -> None:
    assert reading(config / "a" / "b" / "routines.yaml") == Absent((str(config),))


def test_a_linked_file_is_followed_and_both_directories_are_watched(file: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir(mode=0o755)
    target = store / "abc-routines.yaml"
    file.rename(target)
    file.symlink_to(target)
    seen = reading(file)
    assert isinstance(seen, Found)
    assert set(seen.watch) == {str(file.parent), str(store)}


def test_a_linked_directory_is_followed_and_watched_where_the_link_stands(file: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    (home / "ankita-agent").symlink_to(os.path.relpath(file.parent, home))
    seen = reading(home / "ankita-agent" / "routines.yaml")
    assert isinstance(seen, Found)
    assert set(seen.watch) == {str(home), str(file.parent)}


def test_a_chain_of_links_is_watched_at_each_of_them(file: Path, tmp_path: Path) -> None:
    previous = file
    directories = {str(file.parent)}
    for number in range(3):
        directory = tmp_path / f"d{number}"
        directory.mkdir(mode=0o755)
        link = directory / "link"
        link.symlink_to(previous)
        previous = link
        directories.add(str(directory))
    seen = reading(previous)
    assert isinstance(seen, Found)
    assert set(seen.watch) == directories


def test_a_path_with_dots_leads_to_the_same_file(file: Path, tmp_path: Path) -> None:
    (tmp_path / "here").symlink_to("config/../config/./routines.yaml")
    seen = reading(tmp_path / "here")
    assert isinstance(seen, Found)
    assert seen.content == TEXT


def test_a_link_that_leads_nowhere_is_said(config: Path) -> None:
    link = config / "routines.yaml"
    link.symlink_to(config / "gone.yaml")
    assert "where it leads, does not exist" in refusal(link)


def test_links_in_a_circle_are_said(config: Path) -> None:
    (config / "routines.yaml").symlink_to("other")
    (config / "other").symlink_to("routines.yaml")
    assert "links follow each other" in refusal(config / "routines.yaml")


@pytest.mark.parametrize(("mode", "who"), [(0o666, "everybody"), (0o602, "everybody"), (0o620, "the group")])
def test_a_file_that_others_may_write_to_is_refused(file: Path, mode: int, who: str) -> None:
    file.chmod(mode)
    said = refusal(file)
    assert said.startswith(f"may be written to by {who}")


@pytest.mark.parametrize("name", ["routines.yaml", "it's mine.yaml"])
@pytest.mark.parametrize("above", [False, True])
def test_the_remedy_closes_the_file_or_the_directory(config: Path, name: str, above: bool) -> None:
    file = config / name
    file.write_bytes(TEXT)
    (config if above else file).chmod(0o777)
    subprocess.run(remedy(file).removeprefix("close it: "), shell=True, check=True)
    assert isinstance(reading(file), Found)


def test_nobody_is_told_to_close_a_directory_that_is_open_on_purpose(file: Path) -> None:
    file.parent.chmod(0o1777)
    assert "directory of your own" in remedy(file)
    assert "chmod" not in remedy(file)


@pytest.mark.needs("root")
@pytest.mark.parametrize("mode", [0o600, 0o666])
@pytest.mark.parametrize("above", [False, True])
def test_nobody_is_told_to_change_what_belongs_to_somebody_else(file: Path, above: bool, mode: int) -> None:
    theirs = file.parent if above else file
    os.chown(theirs, NOBODY, -1)
    theirs.chmod(mode | 0o100 if above else mode)
    assert "chmod" not in remedy(file)
    assert "chown" not in remedy(file)


def test_a_file_that_others_may_read_is_no_fault(file: Path) -> None:
    file.chmod(0o644)
    assert isinstance(reading(file), Found)


@pytest.mark.parametrize("mode", [0o777, 0o707, 0o770, 0o1777])
def test_a_directory_in_which_others_could_replace_the_file_is_refused(file: Path, mode: int) -> None:
    file.parent.chmod(mode)
    assert str(file.parent) in refusal(file)


def test_a_directory_further_up_counts_as_well(file: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert str(tmp_path) in refusal(file)


def test_a_sticky_directory_further_up_lets_nobody_replace_what_is_ours(file: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    assert isinstance(reading(file), Found)


def test_a_sticky_directory_of_a_group_may_hold_the_file_itself_as_a_package_store_does(file: Path) -> None:
    file.parent.chmod(0o1775)
    assert isinstance(reading(file), Found)


def test_a_missing_file_in_a_directory_of_everybody_is_absent_and_one_put_there_is_refused(
    config: Path,
) -> None:
    config.chmod(0o1777)
    assert isinstance(reading(config / "routines.yaml"), Absent)
    (config / "routines.yaml").write_bytes(TEXT)
    assert "may be written to by everybody" in refusal(config / "routines.yaml")


def test_the_directory_of_a_link_counts_as_that_of_the_target_does(file: Path, tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    link = open_to_all / "routines.yaml"
    link.symlink_to(file)
    assert str(open_to_all) in refusal(link)


def test_the_private_group_of_the_user_may_write(file: Path) -> None:
    file.chmod(0o660)
    file.parent.chmod(0o770)
    assert isinstance(reading(file, private_group=True), Found)
    assert isinstance(reading(file, private_group=False), Unusable)


def test_a_private_group_excuses_nothing_that_everybody_may_do(file: Path) -> None:
    file.chmod(0o666)
    assert isinstance(reading(file, private_group=True), Unusable)


def test_a_group_that_does_not_exist_is_not_private() -> None:
    assert not is_private_group(2**31 - 7)


def test_a_group_of_others_is_not_private() -> None:
    assert not is_private_group(os.getgid() + 1)


def test_a_directory_in_its_place_is_said(config: Path) -> None:
    (config / "routines.yaml").mkdir()
    assert "is a directory" in refusal(config / "routines.yaml")


def test_a_file_in_place_of_a_directory_is_said(file: Path) -> None:
    assert "is not a directory" in refusal(file / "routines.yaml")


def test_who_names_the_file_as_the_directory_is_told_which_directory_it_is(file: Path) -> None:
    seen = RoutineFile(str(file / "routines.yaml"), LARGEST).read()
    assert isinstance(seen, Unusable)
    assert seen.problem.fix == f"name the directory and not the file: write `ANKITA_CONFIG_DIR={file.parent}`"


def test_nobody_is_told_to_move_a_file_away_that_may_be_of_use_to_others() -> None:
    seen = RoutineFile("/etc/passwd/routines.yaml", LARGEST).read()
    assert isinstance(seen, Unusable)
    assert "ANKITA_CONFIG_DIR" in seen.problem.fix
    assert "move" not in seen.problem.fix


def test_a_fifo_is_refused_and_nobody_waits_for_a_writer(config: Path) -> None:
    os.mkfifo(config / "routines.yaml")
    assert "is no ordinary file" in refusal(config / "routines.yaml")


def test_a_socket_is_refused(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(config)  # the name of a socket must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("routines.yaml")
    assert "is no ordinary file" in refusal(config / "routines.yaml")


def test_a_device_is_refused(config: Path) -> None:
    (config / "routines.yaml").symlink_to("/dev/null")
    said = refusal(config / "routines.yaml")
    assert "is no ordinary file" in said or "may be written to" in said


def test_a_file_that_is_too_large_is_not_read_to_its_end(file: Path) -> None:
    file.write_bytes(b"#" * LARGEST)
    assert isinstance(reading(file), Found)
    os.truncate(file, 1 << 40)
    assert f"is larger than {LARGEST} bytes" in refusal(file)


def test_a_path_that_is_too_long_is_said(config: Path) -> None:
    assert "cannot be read" in refusal(config / ("x" * 300))


@pytest.mark.needs("root")
def test_a_file_of_another_user_is_refused_and_one_of_root_is_not(file: Path) -> None:
    os.chown(file, NOBODY, NOBODY)
    assert "who could change what runs in your name" in refusal(file)
    os.chown(file, 0, 0)
    assert isinstance(reading(file), Found)


@pytest.mark.needs("root")
def test_a_directory_of_another_user_is_refused(file: Path) -> None:
    os.chown(file.parent, NOBODY, NOBODY)
    assert str(file.parent) in refusal(file)


AS_NOBODY = """
import os, sys
sys.path[:0] = sys.argv[2:]
from ankita_agent.adapters.routine_files import RoutineFile
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
seen = RoutineFile(sys.argv[1], 1000).read()
print(type(seen).__name__, getattr(seen, "problem", ""))
"""


def as_nobody(path: Path) -> str:
    """What another user sees at the path."""
    command = [sys.executable, "-c", AS_NOBODY, str(path), *sys.path]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


@pytest.fixture
def reachable(file: Path) -> Path:
    """The file, on a way that every user may walk."""
    for directory in file.parents:
        if directory.stat().st_uid == os.getuid() and not directory.stat().st_mode & 0o001:
            directory.chmod(directory.stat().st_mode | 0o011)
    return file


@pytest.mark.needs("root")
def test_a_user_may_use_a_file_of_root_and_not_one_of_a_third_user(reachable: Path) -> None:
    reachable.chmod(0o644)
    assert as_nobody(reachable).startswith("Found")
    os.chown(reachable, 1, 1)
    assert as_nobody(reachable).startswith("Unusable")


@pytest.mark.needs("root")
def test_a_file_that_the_user_may_not_read_is_said_with_the_reason(reachable: Path) -> None:
    assert os.strerror(errno.EACCES) in as_nobody(reachable)


def test_what_was_good_is_kept_for_the_user_alone_and_read_back(tmp_path: Path) -> None:
    files = PosixFiles()
    state = files.open_directory(str(tmp_path))
    remembered = LastGoodFile(files, state, str(tmp_path), LARGEST)
    assert remembered.read() is None
    remembered.write(TEXT)
    remembered.write(TEXT + b"#")
    assert remembered.read() == TEXT + b"#"
    assert (tmp_path / "last-good.yaml").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["last-good.yaml"]
    files.close(state)


def test_what_cannot_be_kept_or_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "last-good.yaml").mkdir()
    files = PosixFiles()
    state = files.open_directory(str(tmp_path))
    remembered = LastGoodFile(files, state, str(tmp_path), LARGEST)
    with pytest.raises(CannotWriteState, match=r"cannot read last-good\.yaml"):
        remembered.read()
    with pytest.raises(CannotWriteState, match=r"cannot write last-good\.yaml"):
        remembered.write(TEXT)
    files.close(state)


def test_a_directory_of_the_user_alone_may_take_a_file_and_so_may_one_still_to_be_made(config: Path) -> None:
    assert judge_directory(str(config)) is None
    assert judge_directory(str(config / "a" / "b")) is None


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o703])
@pytest.mark.parametrize("below", ["", "a/b", "there"])
def test_a_directory_that_others_may_write_to_takes_no_file_nor_does_one_below_it(
    config: Path, mode: int, below: str
) -> None:
    if below == "there":
        (config / below).mkdir(mode=0o755)
    config.chmod(mode)
    problem = judge_directory(str(config / below))
    if mode == 0o1777 and below == "there":  # nobody but its owner can move it: unlink(2)
        assert problem is None
        return
    assert problem is not None
    assert f"{str(config)!r} may be written to by everybody" in problem.problem


def test_a_directory_still_to_be_made_where_everybody_may_make_one_is_to_be_made_first(config: Path) -> None:
    config.chmod(0o1777)
    wanted = config / "it's mine"
    problem = judge_directory(str(wanted))
    assert problem is not None
    assert str(wanted) in problem.problem or "it's mine" in problem.problem
    subprocess.run(problem.fix.removeprefix("make it yourself first: "), shell=True, check=True)
    assert judge_directory(str(wanted)) is None


def test_a_file_in_the_way_of_a_directory_is_told(config: Path) -> None:
    (config / "a").write_text("x")
    problem = judge_directory(str(config / "a" / "b"))
    assert problem is not None
    assert "a" in problem.problem
