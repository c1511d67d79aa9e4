"""Installing, as an ordinary user of a real systemd."""

import json
import re
import time
from datetime import datetime
from pathlib import Path
from typing import Final

import pytest

from tests.real.waiting import until
from tests.rig import program
from tests.rig.container import User
from tests.rig.fixtures import Boot
from tests.rig.guest import Guest
from tests.systemd.installs import (
    CONFIG,
    QUIET,
    ROUTINES,
    SERVICE,
    UNITS,
    asks,
    in_a_terminal,
    install,
    interrupt,
    words,
)

pytestmark = pytest.mark.needs("systemd")

README: Final = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
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


@pytest.fixture
def installed(guest: Guest) -> Guest:
    done = install(guest)
    assert done.code == 0, done.said
    return guest


def write_older_unit(guest: Guest) -> str:
    """Put the unit there that an older version wrote; its text."""
    assert guest.shell(f'python -c "$1" > {SERVICE}', OLDER).code == 0
    return guest.read(SERVICE)


def test_from_a_wheel_to_the_first_heartbeat(guest: Guest) -> None:
    program.install(guest, f"{guest.home}/v")
    done = guest.run(f"{guest.home}/v/bin/ankita-agent", "install")
    assert done.code == 0, done.said
    assert "heartbeat   run 1 succeeded" in done.out
    assert words(done) == ["new"] * 4 + ["enabled", "running", "waiting", "heartbeat", "Next:", "Take"]
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


def test_what_the_readme_shows_of_an_install_is_what_is_printed(boot: Boot) -> None:
    [shown] = re.findall(r"\$ ankita-agent install\n(.+?)```", README, re.DOTALL)
    with boot(User(lingers=False), polkit=True) as ann, ann.logged_in():
        done = ann.in_session("env", "EDITOR=nano", "ankita-agent", "install")
        assert done.code == 0, done.said
        assert re.sub(r"\bpid \d+", "pid 4711", done.out) == shown


def test_lingering_that_somebody_left_off_stays_off(boot: Boot) -> None:
    with boot(User(lingers=False), polkit=True) as ann, ann.logged_in():
        ann.write(ROUTINES, QUIET)
        assert ann.in_session("ankita-agent", "install", "--no-linger").code == 0
        done = ann.in_session("ankita-agent", "install")
        assert (done.code, "lingering is off" in done.out) == (0, True), done.said
        assert ann.ask("loginctl", "show-user", "ann", "--property=Linger") == "Linger=no"
        assert ann.in_session("ankita-agent", "install", "--linger").code == 0
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
    guest.write(ROUTINES, "nonsense\n")
    done = install(guest)
    assert done.code == 1
    assert "exit status 78" in done.err
    assert "it said " in done.err


def test_a_state_that_the_agent_would_refuse_is_refused_before_anything_is_written(guest: Guest) -> None:
    guest.ask("mkdir", "-p", ".local/state/ankita-agent")
    guest.ask("chmod", "755", ".local/state/ankita-agent")
    done = install(guest)
    assert (done.code, guest.exists(SERVICE)) == (73, False)
    assert f"close it: chmod 700 {guest.home}/.local/state/ankita-agent" in done.err
    guest.ask("chmod", "700", ".local/state/ankita-agent")
    assert install(guest).code == 0


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_a_service_of_other_directories_is_left_alone(installed: Guest, command: str) -> None:
    pid, before = installed.main_pid(), installed.read(SERVICE)
    beside = {"ANKITA_STATE_DIR": f"{installed.home}/clone/.run/state"}
    done = installed.run("ankita-agent", command, environment=beside)
    assert done.code == 2, done.said
    assert f"{installed.home}/.local/state/ankita-agent, and this shell has {beside['ANKITA_STATE_DIR']}" in done.err
    assert "env -u ANKITA_STATE_DIR ankita-agent uninstall" in done.err
    assert (installed.main_pid(), installed.read(SERVICE)) == (pid, before)


def test_a_drop_in_that_spoils_the_unit_is_named_with_what_systemd_says_of_it(installed: Guest) -> None:
    pid = installed.main_pid()
    drop_in = ".config/systemd/user/ankita-agent.service.d/mine.conf"
    installed.write(drop_in, "[Service]\nExecStart=/bin/true\n")
    for _ in range(2):
        done = install(installed)
        assert done.code == 1, done.said
        assert f"cannot install the service with {installed.home}/{drop_in}" in done.err
        assert "more than one ExecStart= setting" in done.err
        assert f"rm {installed.home}/{drop_in} " in done.err
    installed.ask("rm", drop_in)
    assert install(installed).code == 0
    assert installed.main_pid() == pid


def test_only_a_run_with_the_file_as_it_is_now_is_a_sign_that_it_works(guest: Guest) -> None:
    assert guest.run("ankita-agent", "install").code == 0
    guest.ask("rm", ROUTINES)
    guest.ask("systemctl", "--user", "restart", "ankita-agent")
    before = int(guest.shell("date +%s%N").out)
    done = guest.run("ankita-agent", "install")
    assert done.code == 0, done.said
    [fire] = re.findall(r"heartbeat   run (\d+) succeeded", done.out)
    history = json.loads(guest.ask("ankita-agent", "history", "heartbeat", "--json"))
    [row] = [row for row in history if row["fire"] == int(fire)]
    assert datetime.fromisoformat(row["started_at"]).timestamp() * 1e9 >= before


def test_control_c_ends_the_waiting_alone(guest: Guest) -> None:
    until(lambda: time.time() % 10 < 5)  # far from the next run of heartbeat
    code, said = interrupt(guest, "install", lambda: "first run of heartbeat" in guest.read("told"))
    assert (code, "no longer waiting" in said) == (0, True), said
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


def test_a_shell_with_a_data_directory_of_its_own_means_the_same_service(installed: Guest) -> None:
    beside = {"XDG_DATA_HOME": f"{installed.home}/xd"}
    done = installed.run("ankita-agent", "install", environment=beside)
    assert (done.code, words(done)) == (0, ["unchanged", "unchanged", "running"]), done.said
    assert installed.run("ankita-agent", "uninstall", environment=beside).code == 0
    assert installed.show("LoadState", "ActiveState") == {"LoadState": "not-found", "ActiveState": "inactive"}
    assert installed.ask("find", ".config", ".local/share", "-type", "f") == ROUTINES


@pytest.mark.parametrize("output", ["/dev/full", ">(head -n1)"])
def test_output_that_nobody_takes_leaves_nothing_half_done(guest: Guest, output: str) -> None:
    guest.write(ROUTINES, QUIET)
    done = guest.run("bash", "-c", f"ankita-agent install > {output}")
    assert (done.code != 0, "install has done all that it was to do" in done.err) == (True, True), done.said
    assert guest.show("ActiveState", "UnitFileState") == {"ActiveState": "active", "UnitFileState": "enabled"}
    for verb in ("stop", "start", "restart"):
        done = guest.run("bash", "-c", f"ankita-agent {verb} > {output} 2>&1")
    assert guest.show("ActiveState") == {"ActiveState": "active"}
    guest.run("bash", "-c", f"ankita-agent uninstall > {output}")
    assert guest.show("LoadState") == {"LoadState": "not-found"}


def test_enabled_until_the_next_boot_or_by_a_desktop_alone_is_not_enough(installed: Guest) -> None:
    for how in ("enable --runtime", "add-wants graphical-session.target"):
        installed.ask("systemctl", "--user", "disable", "ankita-agent")
        installed.ask("systemctl", "--user", *how.split(), "ankita-agent.service")
        done = install(installed)
        assert (done.code, "enabled" in words(done)) == (0, True), done.said
        assert installed.exists(".config/systemd/user/default.target.wants/ankita-agent.service")
    assert installed.run("ankita-agent", "uninstall").code == 0
    assert installed.ask("find", ".config/systemd", "/run/user/4242/systemd/user", "-name", "ankita*") == ""


def test_control_c_before_anything_was_asked_of_a_silent_manager_says_so(installed: Guest) -> None:
    with installed.frozen_manager():
        code, said = interrupt(installed, "install", lambda: asks(installed))
    assert code == 130, said
    assert "interrupted: the unit file is there; what the service does is not known" in said
    assert "goes on" not in said


def test_a_program_that_only_this_shell_finds_is_refused(guest: Guest) -> None:
    path = guest.ask("/opt/ankita/bin/python", "-c", "import sys; print(':'.join(filter(None, sys.path)))").strip()
    done = guest.run("/usr/bin/python3", "-m", "ankita_agent", "install", environment={"PYTHONPATH": path})
    assert (done.code, "No module named ankita_agent" in done.err) == (2, True), done.said
    assert not guest.exists(SERVICE)


def test_a_config_directory_that_lets_nobody_in_is_named_with_what_opens_it(guest: Guest) -> None:
    guest.ask("mkdir", "-p", CONFIG)
    guest.ask("chmod", "000", CONFIG)
    done = guest.run("ankita-agent", "install")
    assert (done.code, f"chmod u+rwx {guest.home}/{CONFIG}\n" in done.err) == (73, True), done.said
    assert guest.shell(f"chmod u+rwx {CONFIG}; ankita-agent install").code == 0
