"""Taking the service away, as an ordinary user of a real systemd."""

import re
import time
from typing import Final

import pytest

from tests.real.waiting import until
from tests.rig import program
from tests.rig.guest import Guest
from tests.systemd.installs import QUIET, ROUTINES, SERVICE, UNITS, in_a_terminal, install, interrupt, words

pytestmark = pytest.mark.needs("systemd")

STOP_DRAIN: Final = 20.0  # seconds, unless routines.yaml says otherwise


@pytest.fixture
def installed(guest: Guest) -> Guest:
    done = install(guest)
    assert done.code == 0, done.said
    return guest


def test_uninstall_can_do_without_waiting_for_what_runs(guest: Guest) -> None:
    guest.write(ROUTINES, "routines: {long: {schedule: every 1s, run: 'sleep 1000', overlap: skip}}\n")
    assert install(guest).code == 0
    until(lambda: '"running": true' in guest.run("ankita-agent", "status", "--json").out)
    begun = time.monotonic()
    done = guest.run("ankita-agent", "uninstall", "--now")
    assert (done.code, "stopping    long" in done.out) == (0, True), done.said
    assert time.monotonic() - begun < STOP_DRAIN
    assert not guest.exists(SERVICE)


def test_uninstall_says_what_stops_and_leaves_routines_yaml_alone(installed: Guest) -> None:
    done = installed.run("ankita-agent", "uninstall")
    assert done.code == 0, done.said
    assert "stops       backup, which would have run next at" in done.out
    assert installed.show("LoadState", "ActiveState") == {"LoadState": "not-found", "ActiveState": "inactive"}
    assert installed.ask("find", ".config", ".local/share", "-type", "f") == ROUTINES
    assert installed.systemctl("list-units", "--failed", "--quiet").out == ""
    again = installed.run("ankita-agent", "uninstall")
    assert (again.code, words(again)[0]) == (0, "nothing")


def test_purge_leaves_nothing_of_the_state_but_what_a_person_put_there(installed: Guest) -> None:
    installed.write(".local/state/ankita-agent/mine", "x")
    done = installed.run("ankita-agent", "uninstall", "--purge")
    assert done.code == 0, done.said
    assert installed.ask("find", ".local/state/ankita-agent", "-type", "f") == ".local/state/ankita-agent/mine"
    installed.ask("rm", ".local/state/ankita-agent/mine")
    assert installed.run("ankita-agent", "uninstall", "--purge").code == 0
    assert not installed.exists(".local/state/ankita-agent")
    assert installed.read(ROUTINES) == QUIET


def test_purge_removes_nothing_from_a_directory_that_is_none_of_an_agents(installed: Guest) -> None:
    installed.ask("ankita-agent", "uninstall")
    for name in ("logs/access.log", "run/pidfile", "requests/a.json"):
        installed.write(name, "mine")
    before = installed.ask("find", ".", "-path", "./.*", "-prune", "-o", "-print")
    done = installed.run("ankita-agent", "uninstall", "--purge", environment={"ANKITA_STATE_DIR": installed.home})
    assert (done.code, "it has no own/guard" in done.err) == (73, True), done.said
    assert installed.ask("find", ".", "-path", "./.*", "-prune", "-o", "-print") == before


def test_what_cannot_be_purged_is_named_and_goes_the_next_time(installed: Guest) -> None:
    logs = ".local/state/ankita-agent/logs"
    installed.ask("mkdir", "-m", "0", "-p", f"{logs}/backup")
    done = installed.run("ankita-agent", "uninstall", "--purge")
    assert done.code == 73
    assert f"cannot remove '{installed.home}/{logs}/backup': Permission denied" in done.err
    assert installed.exists(".local/state/ankita-agent/ledger.db")
    [advice] = re.findall(r"give yourself access: (.*), then again: (.*)", done.err)
    assert installed.shell(" && ".join(advice)).code == 0
    assert not installed.exists(".local/state/ankita-agent")


@pytest.mark.parametrize("directory", [".config/systemd/user", UNITS])
def test_uninstall_leaves_a_directory_of_units_that_a_link_leads_to(guest: Guest, directory: str) -> None:
    guest.ask("mkdir", "-p", "dot", directory.rpartition("/")[0])
    guest.ask("ln", "-s", f"{guest.home}/dot", directory)
    for _ in range(2):
        assert install(guest).code == 0
        assert guest.run("ankita-agent", "uninstall").code == 0
        assert guest.ask("find", "-L", directory) == directory
    assert guest.ask("readlink", directory) == f"{guest.home}/dot"


def test_purge_is_refused_while_an_agent_in_a_terminal_lives(guest: Guest) -> None:
    with in_a_terminal(guest):
        done = guest.run("ankita-agent", "uninstall", "--purge")
        assert (done.code, "lives" in done.err) == (75, True)
        assert guest.exists(".local/state/ankita-agent/ledger.db")


def test_uninstall_works_when_the_program_has_moved(guest: Guest) -> None:
    program.install(guest, f"{guest.home}/v")
    guest.write(ROUTINES, QUIET)
    guest.ask(f"{guest.home}/v/bin/python", "-m", "ankita_agent", "install")
    guest.ask("mv", "v", "w")
    assert guest.run(f"{guest.home}/w/bin/python", "-m", "ankita_agent", "uninstall").code == 0
    assert not guest.exists(SERVICE)


def test_uninstall_without_a_manager_removes_the_files_and_says_what_remains(installed: Guest) -> None:
    installed.ask_root("systemctl", "stop", "user@4242.service")
    done = installed.run("ankita-agent", "uninstall", environment={"XDG_RUNTIME_DIR": None})
    assert (done.code, "cannot be asked" in done.err) == (1, True)
    assert installed.ask("find", ".config", ".local/share", "-type", "f") == ROUTINES
    assert installed.ask("find", ".config", "-type", "l") == ""


def test_systemctl_does_with_the_service_what_it_does_with_any_other(installed: Guest) -> None:
    installed.ask("systemctl", "--user", "disable", "--now", "ankita-agent")
    assert installed.show("ActiveState", "UnitFileState", "Result") == {
        "ActiveState": "inactive",
        "UnitFileState": "disabled",
        "Result": "success",
    }
    installed.ask("systemctl", "--user", "enable", "--now", "ankita-agent")
    first = installed.main_pid()
    installed.ask("systemctl", "--user", "restart", "ankita-agent")
    assert installed.main_pid() != first
    installed.ask("systemctl", "--user", "reload", "ankita-agent")
    assert installed.ask("systemctl", "--user", "is-active", "ankita-agent") == "active"
    installed.ask("systemctl", "--user", "stop", "ankita-agent")
    installed.ask("systemctl", "--user", "mask", "ankita-agent")
    assert installed.systemctl("start", "ankita-agent").code != 0
    assert installed.exists(SERVICE)


@pytest.mark.parametrize("spoil", ["chmod 000 {0}", "mv {0} x && ln -s ~/x {0}", "rm -r {0} && touch {0}"])
def test_a_state_directory_that_cannot_be_looked_at_keeps_no_service_from_going(installed: Guest, spoil: str) -> None:
    installed.ask("systemctl", "--user", "kill", "--signal=KILL", "ankita-agent")
    assert installed.shell(spoil.format(".local/state/ankita-agent")).code == 0
    done = installed.run("ankita-agent", "uninstall", "--purge")
    assert (done.code, installed.exists(SERVICE)) == (73, True), done.said
    done = installed.run("ankita-agent", "uninstall")
    assert (done.code, installed.exists(SERVICE)) == (0, False), done.said
    assert installed.show("LoadState") == {"LoadState": "not-found"}


def test_a_manager_that_may_not_take_the_link_away_says_what_is_so(installed: Guest) -> None:
    installed.ask("chmod", "500", ".config/systemd/user/default.target.wants")
    done = installed.run("ankita-agent", "uninstall")
    assert (done.code, installed.exists(SERVICE)) == (1, True), done.said
    assert "the service does not run, still starts by itself, and nothing was removed" in done.err
    assert "default.target.wants, then again: ankita-agent uninstall" in done.err
    installed.ask("chmod", "700", ".config/systemd/user/default.target.wants")
    assert installed.run("ankita-agent", "uninstall").code == 0


def test_purge_beside_a_standby_in_a_terminal_is_refused_before_anything_is_done(installed: Guest) -> None:
    with installed.start("ankita-agent", "run", "--standby") as agent:
        until(lambda: '"standbys": 1' in installed.run("ankita-agent", "status", "--json").out)
        pid = installed.main_pid()
        done = installed.run("ankita-agent", "uninstall", "--purge")
        assert (done.code, "on standby" in done.err) == (75, True), done.said
        assert (installed.main_pid(), installed.exists(SERVICE)) == (pid, True)
        [command] = re.findall(r"end it first: (kill \d+)\n", done.err)
        installed.ask(*command.split())
        agent.wait(30)
    assert installed.run("ankita-agent", "uninstall", "--purge").code == 0


def test_uninstalling_from_within_a_run_is_refused_at_once(guest: Guest) -> None:
    run = "/opt/ankita/bin/ankita-agent uninstall >~/said 2>&1; echo $? >~/ended; sleep 1000"
    guest.write(ROUTINES, f"routines: {{own: {{schedule: every 1s, run: '{run}', overlap: skip}}}}\n")
    assert install(guest).code == 0
    until(lambda: guest.exists("ended"))
    assert (guest.read("ended").strip(), "from within one of its runs" in guest.read("said")) == ("2", True)
    assert guest.show("ActiveState") == {"ActiveState": "active"}


@pytest.mark.parametrize(
    "meanwhile", ["start --no-block ankita-agent", "restart --no-block ankita-agent", "daemon-reexec"]
)
def test_what_somebody_does_while_it_stops_keeps_no_service_behind(guest: Guest, meanwhile: str) -> None:
    run = "trap : TERM; for i in 1 2 3; do sleep 1; done"
    guest.write(ROUTINES, f"agent: {{stop_drain: 3s}}\nroutines: {{long: {{schedule: every 1s, run: '{run}'}}}}\n")
    assert install(guest).code == 0
    until(lambda: '"running": true' in guest.run("ankita-agent", "status", "--json").out)
    with guest.start("ankita-agent", "uninstall") as command:
        guest.wait_until(ActiveState="deactivating")
        guest.ask("systemctl", "--user", *meanwhile.split())
        assert command.wait(60) == 0
    assert guest.show("LoadState", "ActiveState") == {"LoadState": "not-found", "ActiveState": "inactive"}


def test_control_c_while_it_stops_says_what_is_so_and_what_finishes_it(guest: Guest) -> None:
    guest.write(ROUTINES, "routines: {long: {schedule: every 1s, run: 'sleep 1000', overlap: skip}}\n")
    assert install(guest).code == 0
    until(lambda: '"running": true' in guest.run("ankita-agent", "status", "--json").out)
    code, said = interrupt(guest, "uninstall", lambda: guest.show("ActiveState") == {"ActiveState": "deactivating"})
    assert code == 130, said
    assert "interrupted: the unit file is there, enabled, and the service is stopping" in said
    assert "to finish it: ankita-agent uninstall" in said
