"""The adapters to the user's manager where the contract suite does not reach: shells without an environment, a bus or
a manager, and how the jobs of a real systemd end."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import pytest

from ankita_agent.core.errors import AnkitaError, ManagerRefused, ManagerSilent, ManagerUnreachable
from ankita_agent.core.instants import MILLISECOND, SECOND, Duration
from ankita_agent.core.service import Activity, JobEnd, UnitState, Unreachable
from ankita_agent.ports.lingering import Lingering
from ankita_agent.ports.service_manager import ServiceManager
from tests.real.waiting import until
from tests.rig.container import User
from tests.rig.fixtures import Boot
from tests.rig.guest import Done, Guest
from tests.rig.program import PYTHON, SOURCE
from tests.rig.worker import Worker

pytestmark = [pytest.mark.needs("systemd"), pytest.mark.needs("pystemd")]

LONG: Final = Duration(20 * SECOND)
UNITS: Final = ".local/share/systemd/user"
NOTIFY: Final = "[Service]\nType=notify\nNotifyAccess=all\n"
READY: Final = (
    NOTIFY + "ExecStart=sh -c 'systemd-notify --ready; exec sleep 1000'\n[Install]\nWantedBy=default.target\n"
)
NEVER_READY: Final = NOTIFY + "ExecStart=sleep 1000\n"


@pytest.fixture(params=["systemctl", "pystemd"])
def adapter(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def asking(worker: Worker, adapter: str, patience: Duration = LONG) -> ServiceManager:
    """The manager, asked by that adapter inside."""
    return worker.make(
        ServiceManager,  # type: ignore[type-abstract]
        f"tests.service_managers:{adapter}",
        patience,
    )


@pytest.fixture
def manager(guest: Guest, adapter: str) -> Iterator[ServiceManager]:
    """As the guest's own shell has it."""
    with Worker(guest) as worker:
        yield asking(worker, adapter)


CLEAN: Final = f"""
cd {UNITS}
systemctl --user kill --signal=KILL -- *.*
systemctl --user stop -- *.*
rm -rf -- * ~/.config/systemd/user
systemctl --user reset-failed
systemctl --user daemon-reload
"""


@pytest.fixture
def tidy_guest(shared_guest: Guest) -> Iterator[Guest]:
    """For a test that does no more than put units there, and start them."""
    yield shared_guest
    shared_guest.shell(CLEAN)


@pytest.fixture(scope="module")
def shared_worker(shared_guest: Guest) -> Iterator[Worker]:
    with Worker(shared_guest) as worker:
        yield worker


@pytest.fixture
def tidy_manager(tidy_guest: Guest, shared_worker: Worker, adapter: str) -> ServiceManager:
    """The manager of that guest."""
    return asking(shared_worker, adapter)


def knows(guest: Guest, unit: str, text: str) -> str:
    """Let the manager know a unit; its name."""
    guest.write(f"{UNITS}/{unit}", text)
    guest.ask("systemctl", "--user", "daemon-reload")
    return unit


def works(manager: ServiceManager) -> None:
    """The manager does everything that is asked of it."""
    assert manager.start("ready.service", LONG) is JobEnd.DONE
    assert manager.state("ready.service").activity is Activity.ACTIVE
    assert manager.kill("ready.service", 18)
    assert manager.stop("ready.service", LONG) is JobEnd.DONE
    manager.enable("ready.service")
    assert manager.state("ready.service").enabled
    manager.disable("ready.service")


# -- where the manager is found


@pytest.mark.parametrize(
    "environment",
    [
        {"XDG_RUNTIME_DIR": None, "DBUS_SESSION_BUS_ADDRESS": None, "HOME": None, "USER": None, "PATH": None},
        {"XDG_RUNTIME_DIR": "/run/user/0", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/0/bus"},
    ],
    ids=["none", "another user's"],
)
def test_the_environment_of_the_shell_does_not_matter(
    tidy_guest: Guest, adapter: str, environment: dict[str, str | None]
) -> None:
    knows(tidy_guest, "ready.service", READY)
    with Worker(tidy_guest, environment=environment) as worker:
        works(asking(worker, adapter))


def test_the_manager_is_reached_without_a_bus(guest: Guest, manager: ServiceManager) -> None:
    knows(guest, "ready.service", READY)
    guest.ask("systemctl", "--user", "stop", "dbus.socket", "dbus.service")
    works(manager)


def test_whoever_never_logged_in_has_no_manager_until_they_do_what_is_said(boot: Boot, adapter: str) -> None:
    with boot(User(lingers=False)) as guest, Worker(guest) as worker:
        manager = asking(worker, adapter)
        with pytest.raises(ManagerUnreachable) as raised:
            manager.version()
        assert raised.value.reason is Unreachable.NO_RUNTIME_DIRECTORY
        assert raised.value.fact == f"/run/user/{guest.uid} is not there"
        do_as_said(guest, raised.value)
        knows(guest, "ready.service", READY)
        works(manager)


def test_a_manager_that_ended_is_missed_until_they_do_what_is_said(guest: Guest, manager: ServiceManager) -> None:
    """Whether its directory goes with it depends on the version of systemd."""
    knows(guest, "ready.service", READY)
    guest.ask_root("systemctl", "kill", "--signal=KILL", f"user@{guest.uid}.service")
    until(lambda: not guest.manager_runs())
    with pytest.raises(ManagerUnreachable) as raised:
        manager.version()
    assert raised.value.reason in (Unreachable.NO_SOCKET, Unreachable.NO_RUNTIME_DIRECTORY)
    do_as_said(guest, raised.value)
    works(manager)


def test_a_manager_that_is_to_run_and_does_not_is_started_by_what_is_said(boot: Boot, adapter: str) -> None:
    with boot() as guest, Worker(guest) as worker:
        manager = asking(worker, adapter)
        guest.ask_root("systemctl", "stop", f"user@{guest.uid}.service", f"user-runtime-dir@{guest.uid}.service")
        with pytest.raises(ManagerUnreachable) as raised:
            manager.version()
        assert raised.value.reason is Unreachable.NO_RUNTIME_DIRECTORY
        assert "lingers" in raised.value.do
        do_as_said(guest, raised.value)
        assert manager.version() > 0


def test_a_runtime_directory_of_somebody_else_is_not_used(guest: Guest, manager: ServiceManager) -> None:
    knows(guest, "ready.service", READY)
    guest.ask_root("chown", "root", f"/run/user/{guest.uid}")
    with pytest.raises(ManagerUnreachable) as raised:
        manager.version()
    assert raised.value.reason is Unreachable.FOREIGN_RUNTIME_DIRECTORY
    assert raised.value.fact == f"/run/user/{guest.uid} belongs to root"
    do_as_said(guest, raised.value)
    works(manager)


def test_a_socket_that_lets_nobody_in_is_told_apart(guest: Guest, manager: ServiceManager) -> None:
    guest.ask_root("chmod", "0", f"/run/user/{guest.uid}/systemd")
    with pytest.raises(ManagerUnreachable) as raised:
        manager.version()
    assert raised.value.reason is Unreachable.REFUSED
    assert raised.value.fact.endswith("private: Permission denied")


def do_as_said(guest: Guest, fault: AnkitaError) -> None:
    """Run the first command of the advice, as who may use sudo would."""
    command = fault.do.split("`")[1]
    assert command.startswith("sudo ")
    inside(guest, "root", *command.split()[1:])
    until(guest.manager_runs)
    until(lambda: guest.run("systemctl", "--user", "show").code == 0)


# -- how jobs end


def test_a_job_that_another_one_replaces_is_canceled(tidy_guest: Guest, tidy_manager: ServiceManager) -> None:
    """The program stops its own unit while it is started."""
    stop = "systemctl --user stop --no-block self.service"
    knows(tidy_guest, "self.service", NOTIFY + f"ExecStart=sh -c '{stop}; exec sleep 1000'\n")
    assert tidy_manager.start("self.service", LONG) is JobEnd.CANCELED


def test_a_job_whose_requirement_fails_ends_for_that_reason(tidy_guest: Guest, tidy_manager: ServiceManager) -> None:
    knows(tidy_guest, "fails.service", "[Service]\nType=oneshot\nExecStart=false\n")
    knows(tidy_guest, "needy.service", "[Unit]\nRequires=fails.service\nAfter=fails.service\n" + READY)
    assert tidy_manager.start("needy.service", LONG) is JobEnd.DEPENDENCY


def test_a_job_with_a_timeout_of_its_own_ends_by_it(tidy_guest: Guest, tidy_manager: ServiceManager) -> None:
    knows(tidy_guest, "late.service", "[Unit]\nJobTimeoutSec=1\n" + NEVER_READY)
    assert tidy_manager.start("late.service", LONG) is JobEnd.TIMEOUT


def test_a_unit_whose_assertion_does_not_hold_is_refused(tidy_guest: Guest, tidy_manager: ServiceManager) -> None:
    knows(tidy_guest, "picky.service", "[Unit]\nAssertPathExists=/nowhere\n" + READY)
    with pytest.raises(ManagerRefused, match=r"[Aa]ssert"):
        tidy_manager.start("picky.service", LONG)


def test_a_unit_whose_condition_does_not_hold_is_done_and_does_not_run(
    tidy_guest: Guest, tidy_manager: ServiceManager
) -> None:
    knows(tidy_guest, "unwilling.service", "[Unit]\nConditionPathExists=/nowhere\n" + READY)
    assert tidy_manager.start("unwilling.service", LONG) is JobEnd.DONE
    assert tidy_manager.state("unwilling.service").activity is Activity.INACTIVE


def test_a_job_goes_on_when_the_manager_is_executed_anew_meanwhile(guest: Guest, manager: ServiceManager) -> None:
    """The program has its manager executed anew while it is started, and never becomes ready."""
    anew = "systemctl --user daemon-reexec"
    knows(guest, "anew.service", NOTIFY + f"ExecStart=sh -c '{anew}; exec sleep 1000'\n")
    assert manager.start("anew.service", Duration(3 * SECOND)) is JobEnd.PENDING
    assert manager.state("anew.service").activity is Activity.ACTIVATING


def test_a_manager_that_dies_meanwhile_has_refused_nothing(guest: Guest, manager: ServiceManager) -> None:
    """The program kills its manager while it is started."""
    knows(guest, "deadly.service", NOTIFY + "ExecStart=sh -c 'kill -KILL $PPID; exec sleep 1000'\n")
    with suppress(ManagerSilent):
        assert manager.start("deadly.service", LONG) is JobEnd.PENDING


INTERRUPTED: Final = """
import signal
from ankita_agent.core.instants import SECOND
from tests.service_managers import pystemd, systemctl
signal.signal(signal.SIGALRM, signal.default_int_handler)
for adapter in (pystemd, systemctl):
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        adapter(20 * SECOND).start("never.service", 1000 * SECOND)
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_whoever_waits_for_a_job_can_be_interrupted(tidy_guest: Guest) -> None:
    knows(tidy_guest, "never.service", NEVER_READY)
    path = {"PYTHONPATH": f"{SOURCE}/agent:{SOURCE}"}
    assert tidy_guest.run(PYTHON, "-P", "-c", INTERRUPTED, environment=path).out.split() == ["interrupted"] * 2
    assert tidy_guest.show("ActiveState", unit="never.service") == {"ActiveState": "activating"}


# -- both see the same


def test_both_adapters_see_the_same_of_every_kind_of_unit(tidy_guest: Guest, shared_worker: Worker) -> None:
    units = {
        "ready.service": READY,
        "late.service": NEVER_READY,
        "fails.service": "[Service]\nRestart=on-failure\nRestartSec=1h\nExecStart=sh -c 'exit 7'\n",
        "bad.service": "[Service]\n",
        "masked.service": READY,
        "watch.path": "[Path]\nPathExists=/nowhere\nUnit=ready.service\n",
        "box.slice": "[Slice]\n",
        "empty.service": "",
    }
    for unit, text in units.items():
        tidy_guest.write(f"{UNITS}/{unit}", text)
    tidy_guest.write(f"{UNITS}/ready.service.d/1 é.conf", "[Service]\nEnvironment=A=1\n")
    tidy_guest.ask("systemctl", "--user", "daemon-reload")
    tidy_guest.ask("systemctl", "--user", "mask", "masked.service")
    tidy_guest.ask("systemctl", "--user", "start", "ready.service", "watch.path", "box.slice", "fails.service")
    tidy_guest.ask("systemctl", "--user", "start", "--no-block", "late.service")
    tidy_guest.wait_until("fails.service", SubState="auto-restart")
    tidy_guest.write(f"{UNITS}/ready.service", READY + "# changed\n")
    one, other = asking(shared_worker, "systemctl"), asking(shared_worker, "pystemd")
    seen: dict[str, UnitState] = {unit: one.state(unit) for unit in (*units, "none.service", "default.target")}
    assert seen == {unit: other.state(unit) for unit in seen}
    assert seen["fails.service"].exit_status == 7
    assert seen["ready.service"].needs_reload
    assert seen["watch.path"].activity is Activity.ACTIVE


# -- lingering


TELL: Final = "from tests.service_managers import lingering; here = lingering(); print(here.lingers())"
SWITCH_ON: Final = f"{TELL}; here.enable(); here.enable(); print(here.lingers())"


def inside(guest: Guest, user: str, *command: str) -> Done:
    """Run a command as a service of the system: logind knows nobody who came into the container by another way."""
    path = f"--setenv=PYTHONPATH={SOURCE}/agent:{SOURCE}"
    return guest.root("systemd-run", "--quiet", "--wait", "--pipe", f"--uid={user}", path, "--", *command)


def test_who_may_switches_lingering_on_and_need_not_give_a_password(boot: Boot) -> None:
    with boot(User(lingers=False), polkit=True) as guest:
        done = inside(guest, guest.name, PYTHON, "-c", SWITCH_ON)
        assert done.out.split() == ["False", "True"], done.said


def test_where_it_may_not_be_switched_on_the_command_is_told_that_does(boot: Boot) -> None:
    with boot(User(lingers=False)) as guest, Worker(guest) as worker:
        here = worker.make(Lingering, "tests.service_managers:lingering")  # type: ignore[type-abstract]
        with pytest.raises(ManagerRefused) as raised:
            here.enable()
        assert "linger" in raised.value.fact
        do_as_said(guest, raised.value)
        assert here.lingers() is True


def test_a_login_manager_that_does_not_answer_is_not_waited_for(boot: Boot) -> None:
    with boot(User(lingers=False)) as guest, Worker(guest) as worker:
        guest.ask_root("systemctl", "kill", "--signal=STOP", "systemd-logind.service")
        impatient = worker.make(
            Lingering,  # type: ignore[type-abstract]
            "tests.service_managers:lingering",
            Duration(300 * MILLISECOND),
        )
        with pytest.raises(ManagerRefused, match=r"did not answer within 0\.3 s"):
            impatient.enable()
        guest.ask_root("systemctl", "kill", "--signal=CONT", "systemd-logind.service")
