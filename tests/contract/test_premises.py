"""What doctor asks of the machine, asked of this one and of trees made for it."""

import os
import stat
import sys
from pathlib import Path

import pytest

from ankita_agent.adapters.linux_premises import LinuxPremises
from ankita_agent.core.machine_diagnosis import MessagesSeen
from ankita_agent.core.unit_diagnosis import UnitCopy
from ankita_agent.ports.premises import Premises
from ankita_agent.testing.premises import DescribedPremises
from tests.rig.guest import Guest

HERE: Premises = LinuxPremises()


@pytest.fixture(params=["here", "described"])
def tools(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Premises, Path]:
    """Premises with a program `brief` in the directory `b`, a text beside it, and a unit linked in `b`."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    program = tmp_path / "b" / "brief"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "b" / "text").write_text("x")
    (tmp_path / "b" / "x.service").symlink_to("/dev/null")
    if request.param == "here":
        return HERE, tmp_path
    unit = str(tmp_path / "b" / "x.service")
    described = DescribedPremises(
        {str(program)}, {unit: UnitCopy(unit, True, "/dev/null")}, {str(program): os.getuid()}
    )
    return described, tmp_path


def test_a_program_is_found_in_the_first_directory_that_has_it(tools: tuple[Premises, Path]) -> None:
    premises, root = tools
    path = f"/nowhere:{root}/a:{root}/b"
    assert premises.find_program("brief", path) == f"{root}/b"
    assert premises.find_program("text", path) is None
    assert premises.find_program("brief", f"{root}/a") is None
    assert premises.find_program("brief", "") is None


def test_only_a_file_that_may_be_executed_can_be(tools: tuple[Premises, Path]) -> None:
    premises, root = tools
    assert premises.can_execute(f"{root}/b/brief")
    assert not premises.can_execute(f"{root}/b/text")
    assert not premises.can_execute(f"{root}/b")
    assert not premises.can_execute(f"{root}/c")


def test_a_unit_is_found_though_it_is_a_link(tools: tuple[Premises, Path]) -> None:
    premises, root = tools
    assert premises.unit_at(f"{root}/b/x.service") == UnitCopy(f"{root}/b/x.service", True, "/dev/null")
    assert premises.unit_at(f"{root}/a/x.service") is None


def test_the_owner_of_what_is_there_is_told(tools: tuple[Premises, Path]) -> None:
    premises, root = tools
    assert premises.owner_of(f"{root}/b/brief") == os.getuid()
    assert premises.owner_of(f"{root}/c") is None


def test_directories_are_the_same_by_whatever_way(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").symlink_to("a")
    assert HERE.same_directory(f"{tmp_path}/a", f"{tmp_path}/b")
    assert not HERE.same_directory(f"{tmp_path}/a", f"{tmp_path}/c")


def test_the_variables_of_a_process_are_those_it_was_started_with() -> None:
    assert (HERE.environment_of(os.getpid()) or {}).get("PATH")
    assert HERE.environment_of(2**22 + 1) is None


def test_the_disk_of_a_directory_that_is_not_there_yet_is_that_of_the_one_above_it(tmp_path: Path) -> None:
    seen = HERE.disk(f"{tmp_path}/not/yet")
    assert seen is not None
    assert seen.path == f"{tmp_path}/not/yet"
    assert seen.free > 0
    assert not seen.read_only


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="there is no /dev/shm")
def test_room_and_files_that_are_left_are_those_that_an_ordinary_user_may_take() -> None:
    seen, facts = HERE.disk("/dev/shm"), os.statvfs("/dev/shm")
    assert seen is not None
    assert abs(seen.free - facts.f_bavail * facts.f_frsize) < 2**26
    assert seen.inodes is None or seen.inodes > 0


def test_a_file_system_that_is_mounted_read_only_is_seen() -> None:
    read_only = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if _is_read_only(line)]
    if not read_only:
        pytest.skip("nothing is mounted read-only here")
    assert any(seen.read_only for seen in map(HERE.disk, read_only) if seen is not None)


def _is_read_only(mount: str) -> bool:
    _, point, _, options, *_ = mount.split()
    return "ro" in options.split(",") and os.path.isdir(point)


def journal_of(root: Path, *, kept: bool, mode: int | None) -> MessagesSeen:
    """What is seen of the journal of a tree."""
    (root / "run/systemd/journal").mkdir(parents=True)
    (root / "etc").mkdir()
    (root / "etc/machine-id").write_text("abc\n")
    if kept:
        mine = root / "var/log/journal/abc" / f"user-{os.getuid()}.journal"
        mine.parent.mkdir(parents=True)
        if mode is not None:
            mine.touch()
            mine.chmod(mode)
    return LinuxPremises(str(root)).messages()


def test_a_journal_is_kept_where_its_directory_is_and_volatile_where_not(tmp_path: Path) -> None:
    assert LinuxPremises(str(tmp_path)).messages() is MessagesSeen.NONE
    assert journal_of(tmp_path / "a", kept=True, mode=0o600) is MessagesSeen.KEPT
    assert journal_of(tmp_path / "b", kept=True, mode=None) is MessagesSeen.KEPT
    assert journal_of(tmp_path / "c", kept=False, mode=None) is MessagesSeen.VOLATILE


CLOSED_TO_ITS_USER = """
import os
from ankita_agent.adapters.linux_premises import LinuxPremises
mine = f"tree/var/log/journal/abc/user-{os.getuid()}.journal"
for directory in ("tree/run/systemd/journal", "tree/etc", os.path.dirname(mine)):
    os.makedirs(directory)
with open("tree/etc/machine-id", "w") as file:
    file.write("abc\\n")
os.close(os.open(mine, os.O_CREAT, 0))
print(LinuxPremises("tree").messages().name)
"""


@pytest.mark.needs("systemd")
def test_a_part_of_the_journal_that_cannot_be_read_is_seen(guest: Guest) -> None:
    """By an ordinary user: root reads everything, and has no part of its own."""
    assert guest.ask("python", "-c", CLOSED_TO_ITS_USER).strip() == MessagesSeen.UNREADABLE.name


def test_controllers_are_those_that_the_manager_of_the_user_may_use(tmp_path: Path) -> None:
    premises = LinuxPremises(str(tmp_path))
    assert premises.controllers() is None
    uid = os.getuid()
    place = tmp_path / f"sys/fs/cgroup/user.slice/user-{uid}.slice/user@{uid}.service/cgroup.controllers"
    place.parent.mkdir(parents=True)
    place.write_text("cpu memory pids\n")
    assert premises.controllers() == frozenset({"cpu", "memory", "pids"})
    place.write_text("\n")
    assert premises.controllers() == frozenset()


def test_the_clock_is_synchronised_or_not_or_nobody_knows() -> None:
    assert HERE.clock_synchronised() in (True, False, None)


def test_this_interpreter_can_be_executed_and_is_found() -> None:
    assert HERE.can_execute(sys.executable)
    assert stat.S_ISREG(os.stat(sys.executable).st_mode)
    assert HERE.find_program(os.path.basename(sys.executable), os.path.dirname(sys.executable)) is not None
