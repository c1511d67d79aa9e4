"""Two users of one machine: each has an agent, and neither sees or disturbs the other's."""

import json
from collections.abc import Iterator

import pytest

from tests.real.waiting import until
from tests.rig.container import User
from tests.rig.fixtures import Boot
from tests.rig.guest import Guest

pytestmark = pytest.mark.needs("systemd")

BEAT = "agent: {settle: 1s}\nroutines: {beat: {schedule: every 1s, run: 'id -un >>who'}}\n"
STATE = ".local/state/ankita-agent"
ODD_HOME = '/home/An na\'s "50%" $HOME é'

Both = tuple[Guest, Guest]


@pytest.fixture
def both(boot: Boot) -> Iterator[Both]:
    """Two users, each with a routine that writes down every second who runs it."""
    with boot(User(home=ODD_HOME), User("bob", 4243, "/home/bob")) as ann:
        for guest in (pair := (ann, ann.other("bob"))):
            guest.write(".config/ankita-agent/routines.yaml", BEAT)
            done = guest.run("ankita-agent", "install")
            assert done.code == 0, done.said
        yield pair


def count_runs(guest: Guest) -> int:
    """How often the routine ran."""
    return len(guest.read("who").splitlines()) if guest.exists("who") else 0


def wait_for_another_run(guest: Guest) -> None:
    """Until the agent has fired once more."""
    before = count_runs(guest)
    until(lambda: count_runs(guest) > before, f"{guest.name}'s agent fires")


def test_each_owns_a_state_of_its_own_and_runs_as_its_user(both: Both) -> None:
    for guest in both:
        wait_for_another_run(guest)
        assert set(guest.read("who").split()) == {guest.name}
        status = json.loads(guest.ask("ankita-agent", "status", "--json"))
        assert status["state_dir"] == f"{guest.home}/{STATE}"
        assert status["owner"]["pid"] == guest.main_pid()
        assert status["standbys"] == 0
    ann, bob = both
    assert ann.main_pid() != bob.main_pid()
    assert bob.run("ls", f"{ann.home}/{STATE}").code != 0


@pytest.mark.parametrize("what", ["stop", "kill", "freeze", "uninstall"])
def test_what_happens_to_one_does_not_reach_the_other(what: str, both: Both) -> None:
    ann, bob = both
    before = bob.show("MainPID", "NRestarts")
    match what:
        case "stop":
            assert ann.systemctl("stop", "ankita-agent").code == 0
        case "kill":
            ann.signal(ann.main_pid(), "KILL")
        case "freeze":
            ann.freeze_manager()
        case "uninstall":
            done = ann.run("ankita-agent", "uninstall", "--purge")
            assert done.code == 0, done.said
    wait_for_another_run(bob)
    assert bob.show("MainPID", "NRestarts", "ActiveState") == {**before, "ActiveState": "active"}
    assert bob.ask("ankita-agent", "status").startswith("agent ")
