"""Installing and taking away the service, on real files and a manager that is played."""

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.adapters.routine_files import judge_directory
from ankita_agent.app.installation import Installation, Shipped, Wanted, Whereto, refuse_fleeting, refuse_sudo
from ankita_agent.app.removal import Removal
from ankita_agent.app.unit_files import UnitFiles
from ankita_agent.core.errors import AnkitaError, CannotWriteState, ManagerRefused, ServiceNotUp, WrongUse
from ankita_agent.core.install_plan import Change, Plan, Start, difference
from ankita_agent.core.instants import SECOND, Duration
from ankita_agent.core.service import UNIT, Activity, UnitState, Unreachable
from ankita_agent.core.unit_file import read_unit_file
from ankita_agent.ports.files import Descriptor
from ankita_agent.shipped import shipped_text
from ankita_agent.testing.lingering import FakeLingering
from ankita_agent.testing.service_manager import Behaviour, FakeServiceManager

SHIPPED: Final = Shipped(
    shipped_text("units", UNIT),
    shipped_text("units", "app-ankita.slice"),
    shipped_text("units", "hardening.conf"),
    "routines: {}\n",
    "{}\n",
)
PROGRAM: Final = ("/opt/venv/bin/python", "-m", "ankita_agent", "run", "--standby")
BUSY: Final = Behaviour(stop_takes=Duration(600 * SECOND))


class FailingFiles(PosixFiles):
    """A disk that refuses to replace files from a certain one on."""

    def __init__(self) -> None:
        self.fails_from: str | None = None
        self.failure = errno.ENOSPC

    def replace_all(self, directory: Descriptor, contents: Mapping[str, bytes]) -> None:
        """Fail where told, else as always."""
        if self.fails_from is not None and self.fails_from in contents:
            raise OSError(self.failure, os.strerror(self.failure), self.fails_from)
        super().replace_all(directory, contents)


class House:
    """A home with a service manager."""

    def __init__(self, root: Path) -> None:
        self.units, self.own = root / "data/systemd/user", root / "config/systemd/user"
        self.config = root / "config/ankita-agent"
        self.files = FailingFiles()
        self.manager = FakeServiceManager([str(self.own), str(self.units)])
        self.lingering = FakeLingering()
        self.told: list[str] = []

    @property
    def service(self) -> Path:
        return self.units / UNIT

    @property
    def routines(self) -> Path:
        return self.config / "routines.yaml"

    @property
    def hardening(self) -> Path:
        return self.units / f"{UNIT}.d" / "hardening.conf"

    @property
    def state(self) -> UnitState:
        return self.manager.state(UNIT)

    def plan(
        self, version: str = "1", program: tuple[str, ...] = PROGRAM, hardening: bool | None = None, linger: bool = True
    ) -> Plan:
        return self._installation().plan(Wanted(program, {}, version, hardening, linger))

    def install(
        self, version: str = "1", program: tuple[str, ...] = PROGRAM, hardening: bool | None = None, linger: bool = True
    ) -> UnitState:
        plan = self.plan(version, program, hardening, linger)
        self.told.clear()
        installation = self._installation()
        installation.carry_out(plan)
        return installation.start(plan)

    def uninstall(self) -> None:
        self.told.clear()
        removal = self._removal()
        installed = removal.look()
        if installed.nothing:
            self.told.append("nothing")
            return
        if installed.running:
            removal.stop()
        removal.carry_out(installed)

    def look(self) -> tuple[str, ...]:
        return self._removal().look().own

    def names(self) -> set[str]:
        """Every file and link below the home."""
        root = self.config.parents[1]
        return {str(each.relative_to(root)) for each in root.rglob("*") if each.is_symlink() or each.is_file()}

    def directories(self) -> set[str]:
        root = self.config.parents[1]
        return {str(each.relative_to(root)) for each in root.rglob("*") if each.is_dir() and not each.is_symlink()}

    @property
    def said(self) -> str:
        return "\n".join(self.told)

    def _disk(self) -> UnitFiles:
        return UnitFiles(self.files, judge_directory, os.path.realpath)

    def _whereto(self) -> Whereto:
        return Whereto(str(self.units), str(self.routines))

    def _installation(self) -> Installation:
        return Installation(self.manager, self.lingering, self._disk(), SHIPPED, self._whereto(), self.told.append)

    def _removal(self) -> Removal:
        return Removal(self.manager, self._disk(), SHIPPED, self._whereto(), str(self.own), self.told.append)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def changes(plan: Plan) -> dict[str, Change]:
    return {os.path.basename(file.path): file.change for file in plan.changes}


INSTALLED: Final = {
    "data/systemd/user/ankita-agent.service",
    "data/systemd/user/app-ankita.slice",
    "config/ankita-agent/routines.yaml",
    "config/ankita-agent/routines.schema.json",
    "config/systemd/user/default.target.wants/ankita-agent.service",
}


def test_from_nothing_to_a_service_that_runs_is_enabled_and_lingers(house: House) -> None:
    state = house.install()
    assert (state.activity, state.enabled, house.lingering.on) == (Activity.ACTIVE, True, True)
    assert house.names() == INSTALLED
    assert read_unit_file(house.service.read_text(), "").program == PROGRAM


def test_everything_made_is_closed_to_others(house: House) -> None:
    house.install(hardening=True)
    files = [house.service, house.hardening, house.routines]
    assert {each.stat().st_mode & 0o777 for each in files} == {0o600}
    assert {each.parent.stat().st_mode & 0o777 for each in files} == {0o700}


def test_done_again_it_changes_nothing(house: House) -> None:
    house.install()
    before = house.service.stat()
    assert house.plan().changes_nothing
    house.install()
    assert house.service.stat().st_mtime_ns == before.st_mtime_ns
    assert "unchanged" in house.said


def test_a_plan_changes_nothing(house: House) -> None:
    plan = house.plan()
    assert house.names() == set()
    assert [asked for asked, _ in house.manager.asked] == ["version", "state"]
    assert (plan.enable, plan.linger, plan.start) == (True, True, Start.START)
    assert f"+ExecStart={' '.join(PROGRAM)}\n" in difference(plan.units[-1])


def test_a_plan_shows_the_difference_alone(house: House) -> None:
    house.install()
    plan = house.plan(program=("/new/python", "run"))
    lines = difference(plan.units[-1]).splitlines()
    assert [line for line in lines if line.startswith("+Exec")] == ["+ExecStart=/new/python run"]
    assert changes(plan) == {UNIT: Change.REPAIRED}


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_program_that_moved_and_another_version_are_repaired_without_a_restart(house: House, version: str) -> None:
    first = house.install()
    house.install(version, program=("/new/python", "run"))
    assert read_unit_file(house.service.read_text(), "").program == ("/new/python", "run")
    assert house.state.main_pid == first.main_pid
    assert not house.state.needs_reload
    assert "ankita-agent restart" in house.said


def test_a_file_edited_by_hand_is_replaced_and_kept_beside(house: House) -> None:
    house.install()
    for number in (1, 2):
        house.service.write_text(f"# mine {number}\n" + house.service.read_text())
        house.install()
    copies = [house.units / f"{UNIT}.edited", house.units / f"{UNIT}.edited.2"]
    assert [copy.read_text().splitlines()[0] for copy in copies] == ["# mine 1", "# mine 2"]
    assert not read_unit_file(house.service.read_text(), "").edited
    assert str(copies[1]) in house.said
    assert "systemctl --user edit ankita-agent" in house.said


def test_drop_ins_and_routines_of_the_user_are_left_alone(house: House) -> None:
    house.config.mkdir(parents=True)
    house.routines.write_text("mine")
    drop_in = house.own / f"{UNIT}.d" / "override.conf"
    drop_in.parent.mkdir(parents=True)
    drop_in.write_text("[Service]\nNice=5\n")
    house.install()
    house.uninstall()
    assert (house.routines.read_text(), drop_in.read_text()) == ("mine", "[Service]\nNice=5\n")
    assert house.look() == (str(drop_in.parent),)


def test_a_link_that_leads_nowhere_is_somebodys_routines_too(house: House) -> None:
    house.config.mkdir(parents=True)
    house.routines.symlink_to("/mnt/away/routines.yaml")
    house.install()
    assert house.routines.readlink() == Path("/mnt/away/routines.yaml")


def test_an_old_schema_is_renewed_and_no_schema_is_put_beside_routines_of_the_user(house: House) -> None:
    house.config.mkdir(parents=True)
    house.routines.write_text("mine")
    house.install()
    schema = house.config / "routines.schema.json"
    assert not schema.exists()
    schema.write_text("{'old': 1}")
    house.install()
    assert schema.read_text() == SHIPPED.schema


def test_a_masked_service_is_not_touched(house: House) -> None:
    house.manager.mask(UNIT)
    with pytest.raises(ManagerRefused, match="unmask ankita-agent"):
        house.install()
    assert house.names() == {"config/systemd/user/ankita-agent.service"}


def test_hardening_comes_and_goes_as_it_is_wished_and_stays_as_it_is_otherwise(house: House) -> None:
    house.install(hardening=True)
    assert house.state.drop_ins == (str(house.hardening),)
    house.install("2")
    assert read_unit_file(house.hardening.read_text(), "").version == "2"
    house.install("2", hardening=False)
    assert not house.hardening.exists()
    house.install("2")
    assert not house.hardening.exists()


def test_hardening_that_was_edited_is_only_replaced_when_asked_for(house: House) -> None:
    house.install(hardening=True)
    house.hardening.write_text("[Service]\nNice=3\n")
    house.install()
    assert house.hardening.read_text() == "[Service]\nNice=3\n"
    house.install(hardening=False)
    assert not house.hardening.exists()
    assert house.hardening.with_name("hardening.conf.edited").read_text() == "[Service]\nNice=3\n"


def test_lingering_that_is_refused_is_told_and_no_reason_to_fail(house: House) -> None:
    house.lingering.refusal = "Access denied"
    assert house.install().activity is Activity.ACTIVE
    assert "lingering is off" in house.said
    assert "Access denied" in house.said


def test_lingering_is_left_alone_when_it_is_not_wished(house: House) -> None:
    house.install(linger=False)
    assert house.lingering.on is False


@pytest.mark.parametrize("failure", [errno.ENOSPC, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("name", [UNIT, "hardening.conf"])
def test_a_disk_that_refuses_leaves_the_unit_as_it_was(house: House, failure: int, name: str) -> None:
    house.install()
    before = {path: path.read_bytes() for path in house.units.rglob("*") if path.is_file()}
    house.files.fails_from, house.files.failure = name, failure
    with pytest.raises(CannotWriteState, match="as it was before") as fault:
        house.install("2", hardening=True)
    assert fault.value.fact == os.strerror(failure)
    assert {path: path.read_bytes() for path in house.units.rglob("*") if path.is_file()} == before
    house.files.fails_from = None
    house.install("2")
    assert read_unit_file(house.service.read_text(), "").version == "2"


def test_a_unit_file_that_is_a_link_is_not_written_through(house: House, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("mine")
    house.units.mkdir(parents=True)
    house.service.symlink_to(target)
    with pytest.raises(CannotWriteState, match="it is a link"):
        house.install()
    assert target.read_text() == "mine"


def test_a_directory_of_units_may_be_reached_through_a_link(house: House, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "data").symlink_to("dotfiles")
    house.install()
    assert (tmp_path / "dotfiles/systemd/user" / UNIT).is_file()


def test_a_home_that_the_manager_knows_by_another_path_is_the_same_home(house: House, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(tmp_path)
    house.manager.directories = (str(house.own), str(tmp_path / "alias" / "data/systemd/user"))
    house.install()
    assert "alias" in house.state.fragment
    assert "wins over" not in house.said


def test_a_directory_that_others_may_write_to_is_refused(house: House) -> None:
    house.units.mkdir(parents=True)
    house.units.chmod(0o777)
    with pytest.raises(CannotWriteState, match="may be written to by everybody"):
        house.install()
    assert house.names() == set()


def test_a_unit_that_the_manager_does_not_find_is_put_back(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.manager.directories = (str(house.own),)
    with pytest.raises(ManagerRefused, match="UnitPath"):
        house.install()
    assert not house.service.exists()


def test_a_unit_of_the_user_that_wins_over_ours_is_told(house: House) -> None:
    house.own.mkdir(parents=True)
    (house.own / UNIT).write_text(SHIPPED.service)
    house.install()
    assert f"{house.own / UNIT} wins over" in house.said
    assert (house.own / UNIT).read_text() == SHIPPED.service


@pytest.mark.parametrize(
    ("status", "meaning"),
    [(78, "ankita-agent check"), (203, "program is gone"), (73, "cannot write its state"), (1, "exit status 1")],
)
def test_a_service_that_does_not_come_up_says_why(house: House, status: int, meaning: str) -> None:
    house.manager.behaviours[UNIT] = Behaviour(exit_status=status)
    with pytest.raises(ServiceNotUp, match=meaning) as fault:
        house.install()
    assert "journalctl --user -u ankita-agent" in str(fault.value)
    assert house.service.exists()


def test_a_start_that_takes_long_is_not_waited_for_without_end(house: House) -> None:
    house.manager.behaviours[UNIT] = Behaviour(ready_after=Duration(300 * SECOND))
    assert house.install().activity is Activity.ACTIVATING


def test_a_failed_service_is_started_again_by_an_install_that_mends_it(house: House) -> None:
    house.manager.behaviours[UNIT] = Behaviour(exit_status=203)
    with pytest.raises(ServiceNotUp):
        house.install()
    house.manager.behaviours.clear()
    assert house.install(program=("/new/python", "run")).activity is Activity.ACTIVE


def test_a_manager_that_cannot_be_asked_changes_nothing(house: House) -> None:
    house.manager.unreachable = Unreachable.NO_SYSTEMD
    with pytest.raises(AnkitaError) as fault:
        house.install()
    assert fault.value.exit_code == 69
    assert house.names() == set()


def test_sudo_is_refused_and_root_itself_is_not() -> None:
    with pytest.raises(WrongUse, match="without sudo: ankita-agent install"):
        refuse_sudo(0, "1000", "install")
    refuse_sudo(0, "", "install")
    refuse_sudo(0, "0", "install")
    refuse_sudo(1000, "1000", "install")


def test_a_program_in_a_cache_is_refused() -> None:
    with pytest.raises(WrongUse, match="uv tool install"):
        refuse_fleeting("/home/ann/.cache/uv/archive-v0/x/bin/python")
    refuse_fleeting("/home/ann/.local/share/uv/tools/ankita-agent/bin/python")


def test_uninstall_leaves_routines_yaml_alone_and_nothing_else(house: House) -> None:
    house.install(hardening=True)
    house.uninstall()
    assert house.names() == {"config/ankita-agent/routines.yaml"}
    assert house.directories() == {"config", "config/ankita-agent", "data"}
    assert house.state.load == "not-found"
    house.uninstall()
    assert house.told == ["nothing"]


def test_uninstall_removes_what_an_install_that_was_killed_left_half_written(house: House) -> None:
    house.install(hardening=True)
    (house.units / f".{UNIT}.123.new").write_text("x")
    (house.hardening.parent / ".hardening.conf.123.new").write_text("x")
    assert house.look() == ()
    house.uninstall()
    assert house.names() == {"config/ankita-agent/routines.yaml"}
    assert not house.units.exists()


def test_uninstall_keeps_a_copy_of_what_was_edited_by_hand(house: House) -> None:
    house.install()
    house.service.write_text("[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=default.target\n")
    house.uninstall()
    copy = house.units / f"{UNIT}.edited"
    assert "ExecStart=/bin/true" in copy.read_text()
    assert house.look() == (str(copy),)


def test_uninstall_works_when_half_is_gone(house: House) -> None:
    house.install()
    house.service.unlink()
    house.uninstall()
    assert house.names() == {"config/ankita-agent/routines.yaml"}
    assert house.state.activity is Activity.INACTIVE


def test_uninstall_without_a_manager_removes_the_files_and_the_link(house: House) -> None:
    house.install()
    house.manager.unreachable = Unreachable.NO_SOCKET
    house.uninstall()
    assert house.names() == {"config/ankita-agent/routines.yaml"}


def test_a_service_that_does_not_stop_is_left_installed(house: House) -> None:
    house.manager.behaviours[UNIT] = BUSY
    house.install()
    with pytest.raises(ServiceNotUp, match="nothing was removed"):
        house.uninstall()
    assert house.names() == INSTALLED


def test_uninstall_forgets_that_the_service_failed(house: House) -> None:
    house.install()
    house.manager.end(UNIT, exit_status=1)
    house.uninstall()
    assert house.state.activity is Activity.INACTIVE
