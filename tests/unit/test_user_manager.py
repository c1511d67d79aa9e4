"""Finding the manager of a user: by the uid, by trying, and with the reason where there is none."""

import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import pytest

from ankita_agent.adapters.user_manager import UserManager, child_environment, find_program
from ankita_agent.core.errors import ManagerUnreachable
from ankita_agent.core.reaching import Address, Means
from ankita_agent.core.service import Unreachable

UID: Final = os.getuid()


class Machine:
    """A file tree with what a user's manager would have made in it. The name of a socket is short: unix(7)."""

    def __init__(self, closing: ExitStack) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="m"))
        self._closing = closing
        closing.callback(shutil.rmtree, self.root)

    def boot(self) -> None:
        (self.root / "run/systemd/system").mkdir(parents=True)

    def log_in(self, uid: int = UID) -> Path:
        """The path of the manager's socket, which is not there yet."""
        directory = self.root / f"run/user/{uid}/systemd"
        directory.mkdir(parents=True)
        return directory / "private"

    def listen(self, path: Path, backlog: int = 8) -> socket.socket:
        listener = self._closing.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(path))
        listener.listen(backlog)
        return listener

    def fill(self, path: Path) -> None:
        """Call until no more callers can wait for an answer."""
        with suppress(BlockingIOError):
            while True:
                caller = self._closing.enter_context(socket.socket(socket.AF_UNIX))
                caller.setblocking(False)
                caller.connect(str(path))

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def manager(self, environment: Mapping[str, str] | None = None, uid: int = UID) -> UserManager:
        return UserManager(environment or {}, uid, str(self.root))

    def why(self, uid: int = UID) -> tuple[Unreachable, str]:
        """The reason and the fact, with paths below the tree's root."""
        with pytest.raises(ManagerUnreachable) as raised:
            self.manager(uid=uid).locate()
        return raised.value.reason, raised.value.fact.replace(str(self.root), "")


@pytest.fixture
def machine() -> Iterator[Machine]:
    with ExitStack() as closing:
        yield Machine(closing)


def test_the_manager_is_where_the_uid_says_whatever_the_environment_says(machine: Machine) -> None:
    machine.listen(machine.log_in())
    odd = {"XDG_RUNTIME_DIR": "/run/user/0", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"}
    directory = f"{machine.root}/run/user/{UID}"
    assert machine.manager(odd).locate() == Address(directory, f"{directory}/systemd/private")


def test_a_manager_with_more_callers_than_it_answers_is_there(machine: Machine) -> None:
    path = machine.log_in()
    machine.listen(path, backlog=0)
    machine.fill(path)
    assert machine.manager().locate().socket == str(path)


def test_a_manager_that_answers_is_reached_although_nothing_else_speaks_of_systemd(machine: Machine) -> None:
    machine.listen(machine.log_in())
    assert machine.manager().locate()


def test_a_machine_that_was_not_booted_with_systemd_has_no_manager(machine: Machine) -> None:
    expected = Unreachable.NO_SYSTEMD, "this system was not booted with systemd; /run/systemd/system is not there"
    assert machine.why() == expected
    machine.log_in()
    assert machine.why() == expected


def test_without_a_runtime_directory_nobody_is_logged_in(machine: Machine) -> None:
    machine.boot()
    assert machine.why() == (Unreachable.NO_RUNTIME_DIRECTORY, f"/run/user/{UID} is not there")


def test_a_runtime_directory_of_another_user_is_not_looked_into(machine: Machine) -> None:
    machine.boot()
    machine.listen(machine.log_in(UID + 1))
    reason, fact = machine.why(UID + 1)
    assert reason is Unreachable.FOREIGN_RUNTIME_DIRECTORY
    assert fact.startswith(f"/run/user/{UID + 1} belongs to ")


def _nothing(machine: Machine, path: Path) -> None:
    path.parent.rmdir()


def _no_socket(machine: Machine, path: Path) -> None:
    pass


def _dead_socket(machine: Machine, path: Path) -> None:
    machine.listen(path).close()


def _file(machine: Machine, path: Path) -> None:
    path.write_text("")


def _no_directory(machine: Machine, path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_text("")


@pytest.mark.parametrize("what", [_nothing, _no_socket, _dead_socket, _file, _no_directory])
def test_a_runtime_directory_in_which_nobody_listens_has_no_manager(
    machine: Machine, what: Callable[[Machine, Path], None]
) -> None:
    machine.boot()
    what(machine, machine.log_in())
    reason, fact = machine.why()
    assert reason is Unreachable.NO_SOCKET
    assert fact.startswith(f"/run/user/{UID}/systemd/private: ")


def test_what_nothing_is_installed_to_ask_with_is_told_last(machine: Machine) -> None:
    machine.boot()
    with pytest.raises(ManagerUnreachable) as raised:
        machine.manager().locate_without_program()
    assert raised.value.reason is Unreachable.NO_RUNTIME_DIRECTORY
    machine.listen(machine.log_in())
    with pytest.raises(ManagerUnreachable) as raised:
        machine.manager().locate_without_program()
    assert raised.value.reason is Unreachable.NO_PROGRAM
    assert "systemctl" in raised.value.fact


def test_programs_are_found_without_a_path_and_before_the_usual_places(tmp_path: Path) -> None:
    assert find_program("sh", {}) is not None
    assert find_program("no-such-program", {"PATH": str(tmp_path)}) is None
    (tmp_path / "sh").write_text("#!/bin/sh\n")
    (tmp_path / "sh").chmod(0o755)
    assert find_program("sh", {"PATH": str(tmp_path)}) == str(tmp_path / "sh")


def test_children_get_nothing_that_leads_elsewhere() -> None:
    shell = {"PATH": "/mine", "HOME": "/home/ann", "XDG_RUNTIME_DIR": "/run/user/0", "LC_ALL": "de_DE.UTF-8"}
    children = child_environment({**shell, "DBUS_SESSION_BUS_ADDRESS": "unix:path=/x", "SYSTEMD_LOG_LEVEL": "debug"})
    assert sorted(children) == ["LANG", "PATH"]
    assert children["LANG"] == "C.UTF-8"
    assert children["PATH"].startswith("/mine:")


def test_the_place_is_described_by_what_is_there(machine: Machine) -> None:
    place = machine.manager().describe_place()
    assert (place.uid, place.sudo_user, place.container, place.wsl, place.lingers) == (UID, None, None, False, False)
    machine.write(f"var/lib/systemd/linger/{place.user}", "")
    machine.write("proc/sys/kernel/osrelease", "6.6.87.2-microsoft-standard-WSL2\n")
    machine.write("run/systemd/container", "systemd-nspawn\n")
    place = machine.manager({"SUDO_USER": "ann", "SSH_CONNECTION": "::1 1 ::1 22"}).describe_place()
    assert place.remote
    assert (place.sudo_user, place.container, place.wsl, place.lingers) == ("ann", "systemd-nspawn", True, True)


@pytest.mark.parametrize(("path", "name"), [(".dockerenv", "docker"), ("run/.containerenv", "podman")])
def test_a_container_is_known_by_what_its_maker_leaves_in_it(machine: Machine, path: str, name: str) -> None:
    machine.write(path, "")
    assert machine.manager().describe_place().container == name


def test_what_could_keep_the_agent_running_is_what_is_installed(machine: Machine, tmp_path: Path) -> None:
    for name in ("openrc-run", "ankita-agent"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    place = machine.manager({"PATH": str(tmp_path)}).describe_place()
    assert Means.OPENRC in place.means
    assert place.program == str(tmp_path / "ankita-agent")


def test_the_directories_of_this_shell_are_told_as_whole_paths(machine: Machine) -> None:
    place = machine.manager({"ANKITA_CONFIG_DIR": "c", "ANKITA_STATE_DIR": "/s", "ANKITA_DEBUG": "1"}).describe_place()
    assert place.directories == (("ANKITA_STATE_DIR", "/s"), ("ANKITA_CONFIG_DIR", os.path.abspath("c")))


def test_whoever_listens_does_not_notice_that_they_were_looked_for(machine: Machine) -> None:
    listener = machine.listen(machine.log_in())
    machine.manager().locate()
    listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        listener.accept()
