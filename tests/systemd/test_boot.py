"""The service comes back with its user's manager: after a reboot, a cut of power, a logout, a login."""

import pytest

from tests.real.waiting import until
from tests.rig.container import User
from tests.rig.fixtures import Boot
from tests.rig.guest import Guest

pytestmark = pytest.mark.needs("systemd")

QUIET = "routines: {yearly: {schedule: '@yearly', run: 'true'}}\n"
CONFIG = ".config/ankita-agent/routines.yaml"


def install(guest: Guest) -> None:
    """Install the service beside a file of routines of the user's own, so that nothing waits for the sample's."""
    guest.write(CONFIG, QUIET)
    done = guest.in_session("ankita-agent", "install")
    assert done.code == 0, done.said
    guest.wait_until(ActiveState="active", SubState="running")


def lingers(guest: Guest) -> bool:
    """Whether logind says so."""
    return guest.root("test", "-e", f"/var/lib/systemd/linger/{guest.name}").code == 0


@pytest.mark.parametrize("how", ["reboot", "cut_power"])
def test_with_lingering_it_runs_again_after_a_boot_and_nobody_logs_in(how: str, guest: Guest) -> None:
    install(guest)
    first = guest.show("InvocationID")
    getattr(guest, how)()
    guest.wait_until(ActiveState="active", SubState="running", NRestarts="0")
    assert guest.show("InvocationID") != first
    assert guest.ask("ankita-agent", "status").startswith("agent ")


def test_install_switches_lingering_on_so_that_the_service_outlives_the_session(boot: Boot) -> None:
    with boot(User(lingers=False), polkit=True) as ann:
        install(ann)
        assert lingers(ann)
        pid = ann.main_pid()
        sessions = ("systemctl", "list-units", "--no-legend", "session-*.scope")
        until(lambda: not ann.ask_root(*sessions), "the session has ended")
        assert ann.main_pid() == pid
        ann.reboot()
        ann.wait_until(ActiveState="active")


def test_without_lingering_it_is_gone_after_logout_and_back_with_the_next_login(boot: Boot) -> None:
    with boot(User(lingers=False)) as ann:
        with ann.logged_in():
            ann.write(CONFIG, QUIET)
            assert ann.run("ankita-agent", "install", "--no-linger").code == 0
            assert ann.show("ActiveState") == {"ActiveState": "active"}
        until(lambda: not ann.manager_runs(), "the manager has ended with the session")
        assert not lingers(ann)
        with ann.logged_in():
            ann.wait_until(ActiveState="active", SubState="running")
