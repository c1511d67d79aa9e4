"""Installing and taking away, as an ordinary user of a real systemd."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from tests.real.waiting import until
from tests.rig import program
from tests.rig.container import User
from tests.rig.fixtures import Boot
from tests.rig.guest import Done, Guest

pytestmark = pytest.mark.needs("systemd")

UNITS: Final = ".local/share/systemd/user"
SERVICE: Final = f"{UNITS}/ankita-agent.service"
CONFIG: Final = ".config/ankita-agent"
ROUTINES: Final = f"{CONFIG}/routines.yaml"
QUIET: Final = "routines: {backup: {schedule: daily 03:00, run: sleep 1000}}\n"
EDITOR: Final = r"""#!/bin/sh
for file; do :; done
sed -i '/^### Anything between/a [Service]\nRestartSec=7' "$file"
[ -s "$file" ] || printf '[Service]\nRestartSec=7\n' > "$file"
"""
"""Types a drop-in into the file that is named last; newer systemds take what stands between two remarks of theirs."""

OLDER: Final = """
import sys
from ankita_agent.core.unit_file import ServiceFacts, render_service
from ankita_agent.shipped import shipped_text
facts = ServiceFacts((sys.executable, "-P", "-m", "ankita_agent", "run", "--standby"), {}, "0.0.9", 247)
print(render_service(shipped_text("units", "ankita-agent.service"), facts), end="")
"""


def install(guest: Guest, *options: str) -> Done:
    """Install, with routines that do nothing for now, unless there are others."""
    if not guest.exists(ROUTINES):
        guest.write(ROUTINES, QUIET)
    return guest.run("ankita-agent", "install", *options)


@pytest.fixture
def installed(guest: Guest) -> Guest:
    done = install(guest)
    assert done.code == 0, done.said
    return guest


def write_older_unit(guest: Guest) -> str:
    """Put the unit there that an older version wrote; its text."""
    assert guest.shell(f'python -c "$1" > {SERVICE}', OLDER).code == 0
    return guest.read(SERVICE)


@contextmanager
def in_a_terminal(guest: Guest) -> Iterator[None]:
    """A block during which an agent owns that somebody runs by hand."""
    guest.write(ROUTINES, QUIET)
    with guest.start("ankita-agent", "run") as agent:
        until(lambda: guest.run("ankita-agent", "status").code == 0)
        yield
        agent.send_signal(signal.SIGTERM)


def words(done: Done) -> list[str]:
    """The first word of each line that was said."""
    return [line.split()[0] for line in done.out.splitlines() if line and not line.startswith(" ")]


def test_from_a_wheel_to_the_first_heartbeat(guest: Guest) -> None:
    program.install(guest, f"{guest.home}/v")
    done = guest.run(f"{guest.home}/v/bin/ankita-agent", "install")
    assert done.code == 0, done.said
    assert "heartbeat   run 1 succeeded" in done.out
    assert words(done) == ["new"] * 4 + ["enabled", "running", "waiting", "heartbeat", "Next:"]
    assert f"ExecStart={guest.home}/v/bin/python -P -m ankita_agent run --standby\n" in guest.read(SERVICE)
    assert guest.show("ActiveState", "UnitFileState", "Slice") == {
        "ActiveState": "active",
        "UnitFileState": "enabled",
        "Slice": "app-ankita.slice",
    }
    assert guest.run("ankita-agent", "check").code == 0


def test_done_again_it_changes_nothing(installed: Guest) -> None:
    pid, before = installed.main_pid(), installed.ask("stat", "--format=%i %Y", SERVICE)
    done = install(installed)
    assert (done.code, words(done)) == (0, ["unchanged", "unchanged", "running"])
    assert (installed.main_pid(), installed.ask("stat", "--format=%i %Y", SERVICE)) == (pid, before)
    assert install(installed, "--dry-run").out == "nothing to do: everything is as it is to be\n"


def test_a_dry_run_shows_a_diff_and_changes_nothing(guest: Guest) -> None:
    before = guest.ask("find", ".")
    done = guest.run("ankita-agent", "install", "--dry-run", "--hardening")
    assert done.code == 0
    assert f"+++ {guest.home}/{SERVICE}\n" in done.out
    assert "+NoNewPrivileges=yes\n" in done.out
    assert guest.ask("find", ".") == before
    assert guest.show("LoadState") == {"LoadState": "not-found"}


def test_a_program_that_moved_is_repaired(guest: Guest) -> None:
    program.install(guest, f"{guest.home}/v")
    guest.write(ROUTINES, QUIET)
    guest.ask(f"{guest.home}/v/bin/python", "-m", "ankita_agent", "install")
    guest.ask("mv", "v", "w")
    guest.systemctl("restart", "ankita-agent", "--no-block")
    guest.wait_until(ExecMainStatus="203")
    done = guest.run(f"{guest.home}/w/bin/python", "-m", "ankita_agent", "install")
    assert done.code == 0, done.said
    assert words(done) == ["unchanged", "repaired", "running"]
    assert f"it runs {guest.home}/w/bin/python from now on; before it was {guest.home}/v/bin/python" in done.out
    guest.wait_until(ActiveState="active", SubState="running")


def test_a_unit_of_an_older_version_is_repaired_and_what_runs_goes_on(installed: Guest) -> None:
    pid = installed.main_pid()
    write_older_unit(installed)
    done = install(installed)
    assert words(done) == ["unchanged", "repaired", "note", "running"]
    assert "ankita-agent restart" in done.out
    assert installed.main_pid() == pid
    assert installed.show("NeedDaemonReload") == {"NeedDaemonReload": "no"}


def test_a_unit_edited_by_hand_is_kept_beside(installed: Guest) -> None:
    installed.shell(f"sed -i s/RestartSec=1/RestartSec=9/ {SERVICE}")
    done = install(installed)
    assert "edited by hand" in done.out
    assert "RestartSec=9" in installed.read(f"{SERVICE}.edited")
    assert installed.show("RestartUSec") == {"RestartUSec": "1s"}


def test_a_drop_in_by_systemctl_edit_stays_in_force(installed: Guest) -> None:
    editor = f"{installed.home}/editor"
    # Below the comment that systemctl puts first: only what stands there is kept. The file is the last argument.
    script = "#!/bin/sh\nfor file; do :; done\nsed -i '2a [Service]\\nRestartSec=7' \"$file\"\n"
    installed.write(editor, script)
    installed.ask("chmod", "+x", editor)
    installed.shell(
        "script -qec 'systemctl --user edit ankita-agent' /dev/null", environment={"SYSTEMD_EDITOR": editor}
    )
    assert install(installed).code == 0
    assert installed.show("RestartUSec") == {"RestartUSec": "7s"}
    done = installed.run("ankita-agent", "uninstall")
    assert "rm -r" in done.out
    assert "ankita-agent.service.d" in done.out


def test_a_masked_service_is_left_masked(guest: Guest) -> None:
    guest.ask("systemctl", "--user", "mask", "ankita-agent")
    done = install(guest)
    assert (done.code, guest.exists(SERVICE)) == (1, False)
    assert "systemctl --user unmask ankita-agent" in done.err
    guest.ask("systemctl", "--user", "unmask", "ankita-agent")
    assert install(guest).code == 0


def test_a_full_disk_leaves_the_old_unit_in_force(installed: Guest) -> None:
    uid = installed.ask("id", "-u").strip()
    options = f"size=16k,uid={uid},mode=700"
    installed.ask_root("mount", "-t", "tmpfs", "-o", options, "tmpfs", f"{installed.home}/{UNITS}")
    older = write_older_unit(installed)
    installed.shell(f"head -c 100000 /dev/zero > {UNITS}/filler")
    done = install(installed)
    assert (done.code, installed.read(SERVICE)) == (73, older)
    assert "No space left on device" in done.err
    assert installed.ask("ls", "-A", UNITS).split() == ["ankita-agent.service", "filler"]
    installed.ask_root("mount", "-o", "remount,ro", f"{installed.home}/{UNITS}")
    done = install(installed)
    assert (done.code, installed.read(SERVICE)) == (73, older)
    assert "Read-only file system" in done.err
    installed.ask("systemctl", "--user", "daemon-reload")
    installed.ask("systemctl", "--user", "restart", "ankita-agent")


@pytest.mark.parametrize("home", ['/home/An na\'s "50%" %h', "/home/$HOME ${x} $$", "/home/ärger 日本 back\\slash"])
def test_a_home_of_any_name(boot: Boot, home: str) -> None:
    with boot(User("ann", 4242, home)) as ann:
        program.install(ann, f"{home}/v")
        ann.write(ROUTINES, QUIET)
        done = ann.run(f"{home}/v/bin/python", "-m", "ankita_agent", "install")
        assert done.code == 0, done.said
        assert "as owner" in done.out
        assert ann.exists(".local/state/ankita-agent/ledger.db")
        assert ann.run(f"{home}/v/bin/python", "-m", "ankita_agent", "uninstall").code == 0


def test_directories_of_this_shell_are_those_of_the_service(guest: Guest) -> None:
    own = {"ANKITA_STATE_DIR": f"{guest.home}/my $state 100%", "ANKITA_CONFIG_DIR": f"{guest.home}/my 'config'"}
    done = guest.run("ankita-agent", "install", environment=own)
    assert done.code == 0, done.said
    assert guest.exists("my $state 100%/ledger.db")
    assert not guest.exists(".local/state/ankita-agent")


@pytest.mark.parametrize("gone", ["HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "PATH"])
def test_a_poor_environment_is_enough(guest: Guest, gone: str) -> None:
    guest.write(ROUTINES, QUIET)
    done = guest.run("/opt/ankita/bin/ankita-agent", "install", environment={gone: None})
    assert done.code == 0, done.said
    assert guest.exists(SERVICE)


def test_lingering_is_switched_on_where_it_may_be(boot: Boot) -> None:
    with boot(User(lingers=False), polkit=True) as ann, ann.logged_in():
        ann.write(ROUTINES, QUIET)
        done = ann.in_session("ankita-agent", "install")
        assert done.code == 0, done.said
        assert "lingering" in words(done)
        assert ann.ask("loginctl", "show-user", "ann", "--property=Linger") == "Linger=yes"


def test_lingering_that_is_refused_is_told_and_the_service_runs(boot: Boot) -> None:
    with boot(User(lingers=False)) as ann, ann.logged_in():
        done = install(ann)
        assert done.code == 0, done.said
        assert "lingering is off" in done.out
        assert "sudo loginctl enable-linger ann" in done.out


def test_root_by_way_of_sudo_is_sent_back(guest: Guest) -> None:
    for command in ("install", "uninstall"):
        done = guest.root("env", "SUDO_UID=4242", "/opt/ankita/bin/ankita-agent", command)
        assert (done.code, f"without sudo: ankita-agent {command}" in done.err) == (2, True)


def test_routines_that_cannot_be_used_are_told_and_mended(guest: Guest) -> None:
    guest.write(ROUTINES, "routines: {a: {schedule: sometimes, run: x}}\n")
    done = install(guest)
    assert done.code == 1
    assert "note " in done.out
    assert "there is no usable routines.yaml" in done.err
    assert "ankita-agent check" in done.err
    guest.write(ROUTINES, QUIET)
    assert words(install(guest))[-1] == "running"


def test_what_the_service_said_is_shown_when_it_does_not_come_up(guest: Guest) -> None:
    guest.ask("mkdir", "-p", ".local/state/ankita-agent")
    guest.ask("chmod", "755", ".local/state/ankita-agent")
    done = install(guest)
    assert done.code == 1
    assert "exit status 73, it cannot write its state" in done.err
    assert f"it said       close it: chmod 700 {guest.home}/.local/state/ankita-agent" in done.err


def test_a_shell_with_directories_that_the_manager_does_not_know_changes_nothing(guest: Guest) -> None:
    guest.write(ROUTINES, QUIET)
    done = guest.run("ankita-agent", "install", environment={"XDG_DATA_HOME": f"{guest.home}/data"})
    assert (done.code, "env -u XDG_DATA_HOME ankita-agent install" in done.err) == (1, True)
    assert guest.ask("find", "data", "-type", "f") == ""
    assert guest.show("LoadState") == {"LoadState": "not-found"}


def test_control_c_ends_the_waiting_alone(guest: Guest) -> None:
    done = guest.shell("exec timeout --preserve-status -s INT 2 ankita-agent install")
    assert (done.code, "no longer waiting" in done.out) == (0, True)
    guest.wait_until(ActiveState="active", SubState="running")


def test_beside_an_agent_in_a_terminal_the_service_is_standby(guest: Guest) -> None:
    with in_a_terminal(guest):
        done = install(guest)
        assert "as standby: the agent with pid" in done.out
        assert "in a terminal, owns" in done.out


def test_hardening_holds_for_the_service_and_its_runs(guest: Guest) -> None:
    assert install(guest, "--hardening").code == 0
    assert guest.show("NoNewPrivileges") == {"NoNewPrivileges": "yes"}
    assert "NoNewPrivs:\t1" in guest.read(f"/proc/{guest.main_pid()}/status")
    assert install(guest, "--no-hardening").code == 0
    assert guest.ask("find", UNITS, "-name", "*.conf") == ""


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


def test_it_is_there_again_after_a_reboot(installed: Guest) -> None:
    installed.reboot()
    installed.wait_until(ActiveState="active", SubState="running")


def test_a_manager_that_does_not_answer_keeps_nobody_waiting(installed: Guest) -> None:
    before = installed.ask("find", ".config", ".local/share")
    with installed.frozen_manager():
        done = installed.run("ankita-agent", "install", patience=60)
        assert (done.code, "did not answer within" in done.err) == (69, True), done.said
        assert installed.ask("find", ".config", ".local/share") == before
        done = installed.run("ankita-agent", "uninstall", patience=60)
        assert (done.code, "did not answer within" in done.err) == (1, True), done.said
        assert not installed.exists(SERVICE)


def test_without_a_bus_the_manager_is_asked_all_the_same(guest: Guest) -> None:
    guest.ask("systemctl", "--user", "stop", "dbus.socket", "dbus.service")
    assert install(guest).code == 0
    assert guest.run("ankita-agent", "uninstall").code == 0
