"""The rig keeps what the other tests here rely on, and leaves nothing behind."""

import glob
import os
import select
import signal
import subprocess
import sys
from collections import UserDict
from pathlib import Path
from typing import Final

import pytest

from tests.real.waiting import until
from tests.rig import program
from tests.rig.container import User
from tests.rig.fixtures import Boot
from tests.rig.guest import Guest
from tests.rig.program import PYTHON, SOURCE
from tests.rig.worker import Worker

pytestmark = pytest.mark.needs("systemd")

ROOT: Final = Path(__file__).parents[2]
ODD_HOME: Final = '/home/An na\'s "50%" $HOME é'
CAP_SYS_TIME: Final = 25
"""linux/capability.h"""

OWNER: Final = """
import sys
from tests.rig.container import Container
with Container() as box:
    print(box.leader, flush=True)
    sys.stdin.read()
"""
SWEEPER: Final = "from tests.rig.container import sweep; sweep()"

NESTED: Final = """
from tests.rig.container import Container, User
from tests.rig.guest import Guest
with Container(users=(User("eve", 4300, "/home/eve"),)) as box:
    print(Guest(box, box.users[0]).systemctl("is-system-running").said)
"""


def test_a_command_runs_as_the_user_with_the_environment_of_its_manager(guest: Guest) -> None:
    assert guest.ask("id", "--user", "--name") == "ann"
    assert guest.ask("pwd") == guest.home
    assert guest.ask("systemctl", "--user", "is-system-running") == "running"
    assert guest.ask("ankita-agent", "--version").startswith("ankita-agent, version ")


def test_a_home_may_have_any_name(boot: Boot) -> None:
    with boot(User(home=ODD_HOME)) as ann:
        assert ann.ask("pwd") == ODD_HOME
        ann.write("some where/file", "text")
        assert ann.read(f"{ODD_HOME}/some where/file") == "text"
        assert ann.ask("systemd-run", "--user", "--wait", "--pipe", "--same-dir", "pwd") == ODD_HOME


def test_a_user_installs_the_program_without_a_network(guest: Guest) -> None:
    program.install(guest, f"{guest.home}/own", "systemd")
    assert guest.ask("own/bin/ankita-agent", "--version").startswith("ankita-agent, version ")
    assert guest.ask("own/bin/python", "-c", "import ankita_agent, pystemd; print(ankita_agent.__file__)").startswith(
        f"{guest.home}/own/"
    )


def test_a_disk_outlives_a_reboot_and_a_power_cut(guest: Guest) -> None:
    boots = {guest.read("/proc/sys/kernel/random/boot_id")}
    guest.write("kept", "1")
    guest.reboot()
    boots.add(guest.read("/proc/sys/kernel/random/boot_id"))
    guest.write("kept too", "2")
    guest.cut_power()
    boots.add(guest.read("/proc/sys/kernel/random/boot_id"))
    assert (guest.read("kept"), guest.read("kept too")) == ("1", "2")
    assert guest.manager_runs()
    assert len(boots) == 3


def test_a_manager_without_lingering_comes_with_the_login(boot: Boot) -> None:
    with boot(User(lingers=False), User("bob", 4243, "/home/bob")) as ann:
        assert not ann.manager_runs()
        assert ann.other("bob").manager_runs()
        with ann.logged_in():
            assert ann.systemctl("is-system-running").out == "running\n"


def test_a_frozen_manager_answers_nobody_and_goes_on_afterwards(guest: Guest) -> None:
    with guest.frozen_manager(), pytest.raises(subprocess.TimeoutExpired):
        guest.systemctl("is-system-running", patience=0.5)
    assert guest.systemctl("is-system-running").out == "running\n"


def test_the_journal_of_a_unit_can_be_read(guest: Guest) -> None:
    guest.ask("systemd-run", "--user", "--wait", "--unit=hello", "echo", "hello, journal")
    assert "hello, journal" in guest.journal("hello.service").splitlines()


def test_two_at_once_do_not_see_each_other(boot: Boot) -> None:
    with boot() as one, boot() as other:
        one.ask("systemd-run", "--user", "--unit=mine", "sleep", "infinity")
        assert len(one.processes_of("mine.service")) == 1
        assert other.show("LoadState", unit="mine.service") == {"LoadState": "not-found"}
        assert other.root("grep", "-laz", "^infinity", "/proc/self/cmdline").code == 1
        with one.frozen_manager():
            assert other.systemctl("is-system-running").out == "running\n"


def test_it_boots_on_a_machine_that_systemd_runs(guest: Guest) -> None:
    """The container is such a machine."""
    done = guest.root("env", f"PYTHONPATH={SOURCE}/agent:{SOURCE}", PYTHON, "-c", NESTED)
    assert done.said.strip() == "running"


def test_nothing_inside_has_the_right_to_set_the_clock_of_the_machine(guest: Guest) -> None:
    """Asked of the capabilities and not tried: a try that succeeds would do it."""
    show = ("grep", "-h", "^Cap", "/proc/1/status", "/proc/self/status")
    entered = guest.ask_root(*show)
    spawned = guest.ask_root("systemd-run", "--quiet", "--wait", "--pipe", *show)
    sets = [int(line.split()[1], 16) for line in f"{entered}\n{spawned}".splitlines()]
    assert len(sets) == 4 * 5
    assert any(sets)
    assert not any(held >> CAP_SYS_TIME & 1 for held in sets)


@pytest.mark.parametrize("booted", [True, False], ids=["when it has booted", "while it boots"])
def test_nothing_is_left_behind_when_its_owner_is_killed(booted: bool, tmp_path: Path) -> None:
    elsewhere = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], cwd=ROOT, env=elsewhere, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        leader = os.pidfd_open(int(owner.stdout.readline())) if booted else -1
        name = until(lambda: [path.parent.name.rpartition("-")[0] for path in tmp_path.glob("*/console.log")])[0]
        cgroups = f"/sys/fs/cgroup/**/{name}"
        until(lambda: _processes(cgroups), f"{name} has no processes yet")
        owner.send_signal(signal.SIGKILL)
    if booted:
        assert select.select([leader], [], [], 20)[0], "its PID 1 lives on"
        os.close(leader)
    until(lambda: not _processes(cgroups), f"{name} still has processes")
    assert name not in Path("/proc/self/mounts").read_text()
    subprocess.run([sys.executable, "-c", SWEEPER], cwd=ROOT, env=elsewhere, check=True)
    assert list(tmp_path.iterdir()) == []
    assert glob.glob(cgroups, recursive=True) == []


def _processes(cgroups: str) -> list[str]:
    """The pids in these cgroups and in those below."""
    found = []
    for path in glob.glob(f"{cgroups}/**/cgroup.procs", recursive=True):
        try:
            found += Path(path).read_text().split()
        except OSError:  # removed, or its processes are of no namespace that we see
            continue
    return found


def test_a_worker_raises_what_was_raised_inside(guest: Guest) -> None:
    with Worker(guest) as worker:
        assert worker.call("os:getuid") == guest.uid
        with pytest.raises(FileNotFoundError, match="No such file"):
            worker.call("os:stat", "/not/there")
        made = worker.make(UserDict, "collections:UserDict", {"a": 1})
        assert made.get("a") == 1
        made.update(b=2)
        assert sorted(made.items()) == [("a", 1), ("b", 2)]
        assert worker.call("builtins:print", "not an answer") is None


def test_a_worker_that_dies_says_so(guest: Guest) -> None:
    with Worker(guest) as worker, pytest.raises(AssertionError, match="the worker has ended"):
        worker.call("os:abort")
