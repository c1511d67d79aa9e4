"""Installing the service, on real files and a manager that is played."""

import errno
import os
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from ankita_agent.app.installation import refuse_fleeting, refuse_sudo, refuse_unstartable
from ankita_agent.app.removal import refuse_removing
from ankita_agent.core.elsewhere import Elsewhere
from ankita_agent.core.errors import AnkitaError, CannotWriteState, ManagerRefused, ServiceNotUp, WrongUse
from ankita_agent.core.install_plan import Change, Plan, Start, describe_halfway, difference
from ankita_agent.core.instants import SECOND, Duration
from ankita_agent.core.service import UNIT, Activity, Unreachable
from ankita_agent.core.unit_file import read_unit_file
from ankita_agent.testing.service_manager import Behaviour
from tests.houses import INSTALLED, PROGRAM, SHIPPED, House


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def changes(plan: Plan) -> dict[str, Change]:
    return {os.path.basename(file.path): file.change for file in plan.changes}


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


@pytest.mark.parametrize("by_hand", [False, True])
def test_other_directories_in_the_unit_are_told(house: House, by_hand: bool) -> None:
    house.install(environment={"ANKITA_STATE_DIR": "/before"})
    if by_hand:
        house.service.write_text("# mine\n" + house.service.read_text())
    house.install(environment={"ANKITA_CONFIG_DIR": "/after"})
    assert "ANKITA_STATE_DIR is not set from now on; before it was /before" in house.said
    assert "ANKITA_CONFIG_DIR is /after from now on; before it was not set" in house.said


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
    assert "lingering is off" not in house.said


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("off", ["never wished", "switched off since"])
def test_lingering_that_is_off_is_told_and_left_off_by_every_install_but_the_first(
    house: House, version: str, off: str
) -> None:
    house.install(linger=False if off == "never wished" else None)
    house.lingering.on = False
    assert house.plan(version).linger is False
    house.install(version)
    assert house.lingering.on is False
    assert "lingering is off" in house.said
    assert "ankita-agent install --linger" in house.said
    house.install(version, linger=False)
    assert "lingering is off" not in house.said


def test_lingering_is_switched_on_whenever_that_is_wished(house: House) -> None:
    house.install(linger=False)
    assert house.plan(linger=True).linger
    house.install(linger=True)
    assert house.lingering.on


def test_after_an_uninstall_the_next_install_is_a_first_one(house: House) -> None:
    house.install(linger=False)
    house.uninstall()
    house.install()
    assert house.lingering.on


def test_a_service_of_other_directories_is_not_installed_over(house: House) -> None:
    house.install()
    before = house.service.read_text()
    house.elsewhere = (Elsewhere("ANKITA_STATE_DIR", "/usual", "/here", usual=True),)
    with pytest.raises(WrongUse, match="/usual, and this shell has /here"):
        house.install("2")
    assert house.service.read_text() == before


def test_nor_is_it_uninstalled() -> None:
    found = [Elsewhere("ANKITA_STATE_DIR", "/usual", "/here", usual=True)]
    with pytest.raises(WrongUse, match="env -u ANKITA_STATE_DIR ankita-agent uninstall"):
        refuse_removing(found, {"ANKITA_STATE_DIR"})
    refuse_removing([], set())


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


def test_a_unit_of_the_user_that_wins_over_ours_is_told_each_time(house: House) -> None:
    house.own.mkdir(parents=True)
    (house.own / UNIT).write_text(SHIPPED.service)
    for _ in range(2):
        house.install()
        assert f"{house.own / UNIT} wins over" in house.said
    assert (house.own / UNIT).read_text() == SHIPPED.service


@pytest.mark.parametrize("running", [False, True])
def test_a_drop_in_that_spoils_the_unit_is_named_and_our_unit_stays_written(house: House, running: bool) -> None:
    if running:
        house.install()
    drop_in = house.own / f"{UNIT}.d" / "it's mine.conf"
    drop_in.parent.mkdir(parents=True)
    drop_in.write_text("[Service]\nExecStart=/bin/true\n")
    for _ in range(2):
        with pytest.raises(ManagerRefused, match=r"it's mine\.conf") as fault:
            house.install("2")
        assert f"something is wrong with {UNIT}" in fault.value.fact
        assert ("runs on as before" if running else "does not run") in fault.value.now
        assert f"rm {shlex.quote(str(drop_in))}" in fault.value.do
    assert read_unit_file(house.service.read_text(), "").version == "2"
    drop_in.unlink()
    house.install("2")


def test_a_unit_of_the_user_that_nobody_can_use_is_named(house: House) -> None:
    house.own.mkdir(parents=True)
    (house.own / UNIT).write_text("[Service]\nType=notify\n")
    with pytest.raises(ManagerRefused) as fault:
        house.install()
    assert f"rm {house.own / UNIT}" in fault.value.do


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


def test_a_program_that_needs_the_variables_of_a_shell_is_refused() -> None:
    with pytest.raises(WrongUse, match="No module named ankita_agent"):
        refuse_unstartable("/usr/bin/python3: No module named ankita_agent")
    refuse_unstartable("")


def test_a_service_that_a_desktop_alone_wants_is_enabled_at_last(house: House) -> None:
    house.install()
    link = house.own / "default.target.wants" / UNIT
    link.unlink()
    assert house.state.enabled, "the manager has not looked since, and would say the same for a link of another target"
    assert house.plan().enable
    house.install()
    assert link.is_symlink()
    assert not house.plan().enable


def test_enabled_until_the_next_boot_is_not_enabled(house: House) -> None:
    house.install()
    assert not replace(house.state, file="enabled-runtime").enabled


def test_a_unit_of_the_user_is_enabled_as_it_says_itself(house: House) -> None:
    house.own.mkdir(parents=True)
    (house.own / UNIT).write_text(SHIPPED.service)
    house.install()
    (house.own / "default.target.wants" / UNIT).unlink()
    assert not house.plan().enable


@pytest.mark.parametrize(
    ("method", "now"),
    [
        ("reload", "the unit files are written"),
        ("enable", "neither starts by itself"),
        ("start", "it was not seen to start now"),
    ],
)
def test_a_manager_that_refuses_a_step_leaves_no_doubt_about_what_is_so(house: House, method: str, now: str) -> None:
    house.manager.refusals[method] = "no"
    with pytest.raises(ManagerRefused, match=now) as fault:
        house.install()
    assert "ankita-agent install" in fault.value.do
    house.manager.refusals.clear()
    assert house.install().activity is Activity.ACTIVE


def test_what_is_so_half_way_is_told(house: House) -> None:
    assert describe_halfway(house.state, written=False).startswith("there is no unit file, not enabled")
    house.manager.behaviours[UNIT] = Behaviour(ready_after=Duration(300 * SECOND), stop_takes=Duration(300 * SECOND))
    house.install()
    assert describe_halfway(house.state, written=True) == "the unit file is there, enabled, and the service is starting"
    house.manager.become_ready(UNIT)
    assert describe_halfway(house.state, written=True).endswith("the service runs")
    house.manager.stop(UNIT, Duration(SECOND))
    assert describe_halfway(house.state, written=True).endswith("the service is stopping")
    assert "not known" in describe_halfway(None, written=True)
