"""Taking the service away, on real files and a manager that is played."""

import signal
from pathlib import Path
from typing import Final

import pytest

from ankita_agent.app.removal import refuse_within
from ankita_agent.core.errors import ManagerRefused, ManagerUnreachable, ServiceNotUp, WrongUse
from ankita_agent.core.instants import SECOND, Duration
from ankita_agent.core.service import UNIT, Activity, Unreachable
from ankita_agent.testing.service_manager import Behaviour
from tests.houses import INSTALLED, House

BUSY: Final = Behaviour(stop_takes=Duration(600 * SECOND))


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_uninstall_leaves_routines_yaml_alone_and_nothing_else(house: House) -> None:
    house.install(hardening=True)
    house.uninstall()
    assert house.names() == {"config/ankita-agent/routines.yaml"}
    assert house.directories() == {
        "config",
        "config/ankita-agent",
        "config/systemd",
        "config/systemd/user",
        "data",
        "data/systemd",
        "data/systemd/user",
    }
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
    assert not house.hardening.parent.exists()


@pytest.mark.parametrize("linked", ["config/systemd/user", "config/systemd", "config", "data/systemd/user", "data"])
def test_uninstall_leaves_a_directory_that_is_reached_through_a_link_and_the_link(
    house: House, tmp_path: Path, linked: str
) -> None:
    target = tmp_path / "dotfiles"
    target.mkdir()
    (tmp_path / linked).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / linked).symlink_to(target)
    for _ in range(2):
        house.install(hardening=True)
        house.uninstall()
        assert (tmp_path / linked).readlink() == target
        assert target.is_dir()
        assert not house.service.exists()
        assert not house.hardening.parent.exists()


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


def test_what_runs_is_stopped_at_once_where_that_is_wished(house: House) -> None:
    house.manager.behaviours[UNIT] = Behaviour(
        stop_takes=Duration(600 * SECOND), ends_on=frozenset({int(signal.SIGINT)})
    )
    house.install()
    house.uninstall(now=True)
    assert house.manager.signals == [(UNIT, signal.SIGINT)]
    assert not house.service.exists()


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


def test_a_service_that_somebody_starts_while_it_stops_is_stopped_all_the_same(house: House) -> None:
    house.manager.behaviours[UNIT] = BUSY
    house.install()

    def start_it_once() -> None:
        house.manager.end(UNIT)
        house.manager.behaviours.clear()
        house.manager.start(UNIT, Duration(SECOND))
        house.meanwhile = lambda: None

    house.meanwhile = start_it_once
    house.uninstall()
    assert house.state.activity is Activity.INACTIVE
    assert not house.service.exists()


def test_a_manager_that_is_executed_anew_meanwhile_is_asked_again(house: House) -> None:
    house.manager.behaviours[UNIT] = BUSY
    house.install()

    def come_back() -> None:
        house.manager.unreachable = None
        house.manager.end(UNIT)

    def go_away() -> None:
        house.manager.unreachable = Unreachable.NO_SOCKET
        house.meanwhile = come_back

    house.meanwhile = go_away
    house.uninstall()
    assert not house.service.exists()


def test_a_manager_that_does_not_come_back_leaves_everything_in_its_place(house: House) -> None:
    house.manager.behaviours[UNIT] = BUSY
    house.install()

    def go_away() -> None:
        house.manager.unreachable = Unreachable.NO_SOCKET

    house.meanwhile = go_away
    with pytest.raises(ManagerUnreachable, match="nothing was removed; the service may be stopping"):
        house.uninstall()
    assert house.names() == INSTALLED


@pytest.mark.parametrize(
    ("method", "now"),
    [
        ("stop", "nothing was removed"),
        ("disable", "the service does not run, still starts by itself, and nothing was removed"),
        ("reload", "the service does not run, and its unit files are removed"),
    ],
)
def test_a_manager_that_refuses_a_step_says_what_is_so_and_it_can_be_done_again(
    house: House, method: str, now: str
) -> None:
    house.install()
    house.manager.refusals[method] = "no"
    with pytest.raises(ManagerRefused, match=now) as fault:
        house.uninstall()
    assert "again: ankita-agent uninstall" in fault.value.do
    house.manager.refusals.clear()
    house.uninstall()
    assert house.names() == {"config/ankita-agent/routines.yaml"}


def test_links_of_every_kind_are_removed(house: House) -> None:
    house.install()
    for above, name in ((house.own, "graphical-session.target.wants"), (house.runtime, "default.target.wants")):
        (above / name).mkdir(parents=True)
        (above / name / UNIT).symlink_to(house.service)
    house.uninstall()
    assert house.names() == {"config/ankita-agent/routines.yaml"}
    assert list(house.runtime.iterdir()) == []


def test_from_within_one_of_its_runs_it_is_refused() -> None:
    with pytest.raises(WrongUse, match="this is run 7"):
        refuse_within("7")
    refuse_within("")
