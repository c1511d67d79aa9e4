"""Doctor where it is needed: each state of a real service that it must see, and each command that it names.

A finding's command that does not mend it is a defect, so every state here is mended by what doctor says, typed as it
stands, and looked at again.
"""

import json
import re
import time
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.real.waiting import until
from tests.rig.container import User
from tests.rig.fixtures import Boot
from tests.rig.guest import Done, Guest

pytestmark = pytest.mark.needs("systemd")

ROUTINES: Final = "agent: {settle: 0s}\nroutines: {tick: {schedule: every 1h, run: 'true'}}\n"
OWN_UNIT: Final = ".local/share/systemd/user/ankita-agent.service"
PROGRAM: Final = "/opt/ankita/bin/ankita-agent"
PYTHON: Final = "/opt/ankita/bin/python"


class Diagnosis:
    """What one run of doctor said."""

    def __init__(self, done: Done) -> None:
        assert done.code in (0, 1), done.said
        assert "Traceback" not in done.said
        self.code = done.code
        self.document: dict[str, Any] = json.loads(done.out)
        self.findings: dict[str, dict[str, Any]] = {each["id"]: each for each in self.document["findings"]}

    @property
    def ids(self) -> set[str]:
        """What matters."""
        return {name for name, each in self.findings.items() if each["severity"] != "note"}

    def command(self, name: str) -> str:
        """The command that mends it."""
        assert name in self.findings, self.document
        command: str = self.findings[name]["command"]
        assert command, self.findings[name]
        return command


def doctor(guest: Guest, *options: str, **how: Any) -> Diagnosis:
    """Ask doctor."""
    return Diagnosis(guest.run("ankita-agent", "doctor", "--json", *options, **how))


def type_in(guest: Guest, command: str) -> None:
    """Type a command; what begins with sudo, root does."""
    for part in command.split(" && "):
        done = guest.root("sh", "-c", part.removeprefix("sudo ")) if part.startswith("sudo ") else guest.shell(part)
        assert done.code == 0, f"{part}: {done.said}"


def install(guest: Guest) -> None:
    """A service with a routine of its own: without the sample, install has nothing to wait for."""
    guest.write(".config/ankita-agent/routines.yaml", ROUTINES)
    guest.ask("ankita-agent", "install")


@pytest.fixture
def installed(guest: Guest) -> Guest:
    """A user with a service that is well."""
    install(guest)
    return guest


def test_a_service_that_is_well_has_nothing_to_mend(installed: Guest) -> None:
    seen = doctor(installed)
    assert (seen.code, seen.ids) == (0, set())
    assert seen.document["healthy"]
    assert seen.document["account"]["doubled"] == seen.document["account"]["left_out"] == []
    said = installed.run("ankita-agent", "doctor")
    assert said.code == 0
    assert said.out.endswith("nothing to mend\n")
    assert "none doubled, none left out" in said.out


def test_it_takes_less_than_a_second(installed: Guest) -> None:
    began = time.monotonic()
    doctor(installed)
    assert time.monotonic() - began < 1


# --- each state, made, seen, mended by the command that doctor names ---------------------------------


def masked(guest: Guest) -> None:
    guest.systemctl("stop", "ankita-agent")
    guest.systemctl("mask", "ankita-agent")


def never_installed(guest: Guest) -> None:
    guest.systemctl("disable", "--now", "ankita-agent")
    guest.shell(f"rm {OWN_UNIT}; systemctl --user daemon-reload")


def disabled(guest: Guest) -> None:
    guest.systemctl("disable", "ankita-agent")


def stopped(guest: Guest) -> None:
    guest.systemctl("stop", "ankita-agent")


def without_its_program(guest: Guest) -> None:
    of_another_installation(guest)
    guest.ask("rm", "-r", "other")


def of_another_installation(guest: Guest) -> None:
    guest.ask("cp", "-as", "/opt/ankita", "other")
    guest.ask("other/bin/python", "-m", "ankita_agent", "install")


def of_an_older_version(guest: Guest) -> None:
    script = (
        "import sys; from ankita_agent.core.unit_file import stamp; path = sys.argv[1]; text = open(path).read(); "
        "lines = [each for each in text.split('\\n') if not each.startswith('X-Ankita-')]; "
        "text = stamp('\\n'.join(lines).replace('WatchdogSec=120', 'WatchdogSec=60'), '0.0.9'); "
        "open(path, 'w').write(text)"
    )
    guest.ask(PYTHON, "-c", script, OWN_UNIT)
    guest.systemctl("daemon-reload")


def edited(guest: Guest) -> None:
    guest.shell(f"sed -i s/WatchdogSec=120/WatchdogSec=121/ {OWN_UNIT}; systemctl --user daemon-reload")


def unusable(guest: Guest) -> None:
    guest.systemctl("stop", "ankita-agent")
    guest.shell(f"sed -i s/^ExecStart=.*// {OWN_UNIT}; systemctl --user daemon-reload")


def with_a_drop_in_that_is_bad(guest: Guest) -> None:
    guest.write(".config/systemd/user/ankita-agent.service.d/my own.conf", "[Service]\nExecStart=/bin/true\n")
    guest.systemctl("daemon-reload")


def with_a_drop_in_of_the_administrator_that_is_bad(guest: Guest) -> None:
    place = "/etc/systemd/user/ankita-agent.service.d"
    guest.ask_root("sh", "-c", f"mkdir -p {place}; printf '[Service]\nExecStart=/bin/true\n' >{place}/x.conf")
    guest.systemctl("daemon-reload")


def without_its_file(guest: Guest) -> None:
    guest.ask("rm", OWN_UNIT)


def without_its_file_as_systemd_knows(guest: Guest) -> None:
    guest.shell(f"rm {OWN_UNIT}; systemctl --user daemon-reload")


def with_its_routines_moved_away(guest: Guest) -> None:
    guest.ask("mv", ".config/ankita-agent/routines.yaml", "routines.yaml")


def with_its_routines_moved_away_and_restarted(guest: Guest) -> None:
    with_its_routines_moved_away(guest)
    guest.systemctl("restart", "ankita-agent")


def open_to_writers(guest: Guest) -> None:
    guest.ask("chmod", "666", ".config/ankita-agent/routines.yaml")


def masked_until_the_next_boot(guest: Guest) -> None:
    guest.systemctl("stop", "ankita-agent")
    guest.systemctl("mask", "--runtime", "ankita-agent")


def not_read(guest: Guest) -> None:
    guest.ask("touch", OWN_UNIT)


def with_a_copy_of_its_own(guest: Guest) -> None:
    guest.shell(f"mkdir -p .config/systemd/user; cp {OWN_UNIT} .config/systemd/user; systemctl --user daemon-reload")


def with_a_copy_of_the_administrator(guest: Guest) -> None:
    guest.ask_root("install", "-m", "644", f"{guest.home}/{OWN_UNIT}", "/etc/systemd/user/")
    guest.systemctl("daemon-reload")


def with_a_copy_that_only_root_may_read(guest: Guest) -> None:
    guest.ask_root("install", "-m", "600", f"{guest.home}/{OWN_UNIT}", "/etc/systemd/user/")
    guest.systemctl("daemon-reload")


def with_a_system_service(guest: Guest) -> None:
    guest.ask_root("cp", f"{guest.home}/{OWN_UNIT}", "/etc/systemd/system/")
    guest.ask_root("systemctl", "daemon-reload")


def frozen(guest: Guest) -> None:
    guest.signal(guest.main_pid(), "STOP")


def open_to_others(guest: Guest) -> None:
    guest.ask("chmod", "755", ".local/state/ankita-agent")


def failed(guest: Guest) -> None:
    guest.write(
        ".config/systemd/user/ankita-agent.service.d/fail.conf",
        "[Service]\nRestart=no\nExecStartPre=/bin/test ! -e %h/fail\n",
    )
    guest.shell("touch fail; systemctl --user daemon-reload; systemctl --user restart ankita-agent; rm fail")


def of_an_old_agent(guest: Guest) -> None:
    package = guest.ask(PYTHON, "-c", "import ankita_agent; print(ankita_agent.__path__[0])")
    guest.ask("cp", "-r", package, "ankita_agent")
    guest.write("ankita_agent/__init__.py", '"""Old."""\n\n__version__ = "0.0.9"\n')
    drop_in = ".config/systemd/user/ankita-agent.service.d/old.conf"
    guest.write(drop_in, f"[Service]\nEnvironment=PYTHONPATH={guest.home}\n")
    guest.shell(f"systemctl --user daemon-reload; systemctl --user restart ankita-agent; rm {drop_in}")
    guest.systemctl("daemon-reload")


def with_a_journal_in_memory(guest: Guest) -> None:
    guest.ask_root("sh", "-c", "rm -r /var/log/journal; systemctl restart systemd-journald")


def with_a_journal_that_only_root_may_read(guest: Guest) -> None:
    guest.ask_root(
        "sh", "-c", "setfacl -b /var/log/journal/*/user-*.journal || true; chmod 600 /var/log/journal/*/user-*"
    )


STATES: Final[dict[Callable[[Guest], None], str]] = {
    masked: "masked",
    masked_until_the_next_boot: "masked",
    with_a_drop_in_that_is_bad: "drop_in_unusable",
    with_a_drop_in_of_the_administrator_that_is_bad: "drop_in_unusable",
    without_its_file: "unit_gone",
    without_its_file_as_systemd_knows: "unit_gone",
    with_its_routines_moved_away: "routines_gone",
    with_its_routines_moved_away_and_restarted: "routines_gone",
    open_to_writers: "routines_refused",
    never_installed: "not_installed",
    disabled: "not_enabled",
    stopped: "not_active",
    without_its_program: "program_gone",
    of_another_installation: "program_other",
    of_an_older_version: "unit_outdated",
    edited: "unit_edited",
    unusable: "unit_unusable",
    not_read: "not_read_again",
    with_a_copy_of_its_own: "second_copy",
    with_a_copy_of_the_administrator: "second_copy",
    with_a_copy_that_only_root_may_read: "second_copy",
    with_a_system_service: "system_copy",
    frozen: "agent_stopped",
    open_to_others: "state_unusable",
    failed: "failed",
    of_an_old_agent: "version_behind",
    with_a_journal_in_memory: "journal_volatile",
    with_a_journal_that_only_root_may_read: "journal_unreadable",
}


@pytest.mark.parametrize(("make", "name"), STATES.items(), ids=[make.__name__ for make in STATES])
def test_the_command_that_a_finding_names_mends_it(installed: Guest, make: Callable[[Guest], None], name: str) -> None:
    make(installed)
    seen = doctor(installed)
    assert seen.code == (1 if name in seen.ids else 0)
    type_in(installed, seen.command(name))
    assert name not in doctor(installed).findings


@pytest.mark.parametrize("make", [with_a_drop_in_that_is_bad, with_a_drop_in_of_the_administrator_that_is_bad])
def test_a_drop_in_that_is_bad_is_named_with_what_systemd_says(installed: Guest, make: Callable[[Guest], None]) -> None:
    make(installed)
    seen = doctor(installed, "--fix")
    assert seen.ids == {"drop_in_unusable"}
    assert "more than one ExecStart= setting" in seen.findings["drop_in_unusable"]["fact"]
    assert seen.document["mended"] == []


def test_routines_without_their_file_are_told_by_name_and_come_back(installed: Guest) -> None:
    with_its_routines_moved_away(installed)
    seen = doctor(installed)
    assert seen.ids == {"routines_gone"}
    assert (seen.findings["routines_gone"]["severity"], "tick" in seen.findings["routines_gone"]["what"]) == (
        "warning",
        True,
    )
    installed.systemctl("restart", "ankita-agent")
    seen = doctor(installed)
    assert seen.ids == {"routines_gone"}
    assert seen.findings["routines_gone"]["severity"] == "error"
    assert seen.findings["routines_gone"]["what"] == "1 routine from before does not fire: tick"
    type_in(installed, seen.command("routines_gone"))
    until(lambda: doctor(installed).code == 0)
    assert "tick" in installed.ask("ankita-agent", "list")


MENDED_BY_FIX: Final = [
    never_installed,
    without_its_file,
    without_its_file_as_systemd_knows,
    disabled,
    stopped,
    without_its_program,
    of_an_older_version,
    not_read,
    failed,
]


@pytest.mark.parametrize("make", MENDED_BY_FIX)
def test_fix_mends_and_a_second_look_finds_nothing(installed: Guest, make: Callable[[Guest], None]) -> None:
    make(installed)
    seen = doctor(installed, "--fix")
    assert [each["done"] for each in seen.document["mended"]] == [True] * len(seen.document["mended"])
    assert STATES[make] in {each["id"] for each in seen.document["mended"]}
    assert (seen.code, seen.ids) == (0, set())
    assert doctor(installed).code == 0
    installed.wait_until(ActiveState="active")


@pytest.mark.parametrize("make", [masked, edited, of_another_installation, of_an_old_agent, with_a_copy_of_its_own])
def test_fix_leaves_to_a_person_what_a_person_chose(installed: Guest, make: Callable[[Guest], None]) -> None:
    make(installed)
    assert STATES[make] in doctor(installed, "--fix").ids


def test_several_things_are_mended_at_once(installed: Guest) -> None:
    not_read(installed)
    disabled(installed)
    stopped(installed)
    assert doctor(installed, "--fix").code == 0


def test_an_agent_that_configuration_keeps_from_starting_starts_when_that_is_mended(installed: Guest) -> None:
    installed.write(".config/ankita-agent/routines.yaml", "routines: [")
    installed.shell("systemctl --user stop ankita-agent; rm -r .local/state/ankita-agent")
    installed.systemctl("start", "ankita-agent")
    seen = doctor(installed)
    assert {"failed", "routines_refused"} <= seen.ids
    assert "exit status 78" in seen.findings["failed"]["fact"]
    assert not seen.findings["failed"]["fix"]
    installed.write(".config/ankita-agent/routines.yaml", ROUTINES)
    type_in(installed, seen.command("failed"))
    assert doctor(installed).code == 0


def test_a_service_that_ends_again_and_again_is_told_with_its_reason(installed: Guest) -> None:
    installed.write(
        ".config/systemd/user/ankita-agent.service.d/false.conf", "[Service]\nExecStart=\nExecStart=/bin/false\n"
    )
    installed.shell("systemctl --user daemon-reload; systemctl --user stop ankita-agent")
    installed.systemctl("start", "--no-block", "ankita-agent")
    until(lambda: "restarting" in doctor(installed).findings)
    finding = doctor(installed).findings["restarting"]
    assert "exit status 1" in finding["fact"]
    type_in(installed, finding["command"])


# --- the way to the manager ---------------------------------------------------------------------------


def in_this_shell(guest: Guest, command: str, **environment: str | None) -> Diagnosis:
    """Type the command and then ask doctor, in one shell."""
    return Diagnosis(guest.shell(f"{command} && {PROGRAM} doctor --json", environment=environment))


@pytest.mark.parametrize(
    "environment",
    [
        {"XDG_RUNTIME_DIR": "/run/user/0"},
        {"XDG_RUNTIME_DIR": "/run/user/1", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/1/bus"},
        {"DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/0/bus,guid=0123456789abcdef"},
        {"XDG_RUNTIME_DIR": "/root"},
    ],
)
def test_variables_that_lead_to_another_user_are_told_and_hinder_nothing(
    installed: Guest, environment: dict[str, str | None]
) -> None:
    seen = doctor(installed, environment=environment)
    assert seen.ids == {"foreign_session"}
    assert in_this_shell(installed, seen.command("foreign_session"), **environment).code == 0


def test_a_shell_by_su_is_served_and_told_what_it_lacks(installed: Guest) -> None:
    login = ("su", installed.name, "--command", f"{PROGRAM} doctor --json")
    seen = Diagnosis(installed.root("env", "XDG_RUNTIME_DIR=/run/user/0", *login))
    assert seen.ids <= {"foreign_session"}
    assert "not_asked" not in seen.findings


def test_under_cron_all_is_well_and_a_note_says_how_to_use_systemctl(installed: Guest) -> None:
    seen = Diagnosis(installed.run("env", "-i", PROGRAM, "doctor", "--json"))
    assert (seen.code, "session_unset" in seen.findings) == (0, True)
    export = seen.command("session_unset")
    mended = installed.run("env", "-i", "/bin/sh", "-c", f"{export} && {PROGRAM} doctor --json")
    assert "session_unset" not in Diagnosis(mended).findings


def test_by_way_of_sudo_it_says_only_that_it_is_about_root(installed: Guest) -> None:
    sudo = ("env", f"SUDO_USER={installed.name}", f"SUDO_UID={installed.uid}", PROGRAM, "doctor", "--fix", "--json")
    seen = Diagnosis(installed.root(*sudo))
    assert list(seen.findings) == ["root_by_sudo"]
    assert seen.document["mended"] == []
    assert seen.command("root_by_sudo") == "ankita-agent doctor"


def test_a_manager_that_does_not_answer_is_told_in_time_and_the_command_replaces_it(installed: Guest) -> None:
    installed.freeze_manager()
    began = time.monotonic()
    seen = doctor(installed)
    assert time.monotonic() - began < 5
    assert "manager_silent" in seen.ids
    assert seen.document["account"] is not None
    type_in(installed, seen.command("manager_silent"))
    until(lambda: doctor(installed).code == 0)


def test_a_manager_that_is_gone_is_told_and_the_command_brings_it_back(installed: Guest) -> None:
    installed.ask_root("systemctl", "stop", f"user@{installed.uid}.service")
    user = ("setpriv", f"--reuid={installed.uid}", f"--regid={installed.uid}", "--clear-groups")  # no session: no PAM
    seen = Diagnosis(installed.root(*user, "env", "-i", PROGRAM, "doctor", "--json"))
    assert "manager_unreachable" in seen.ids
    type_in(installed, seen.command("manager_unreachable"))
    until(lambda: doctor(installed).code == 0)


def test_lingering_that_is_off_is_a_note_and_left_to_a_person(boot: Boot) -> None:
    with boot(User(lingers=False)) as guest, guest.logged_in():
        guest.write(".config/ankita-agent/routines.yaml", ROUTINES)
        guest.ask("ankita-agent", "install", "--no-linger")
        seen = doctor(guest, "--fix")
        assert (seen.code, seen.document["mended"], "lingering_off" in seen.findings) == (0, [], True)
        type_in(guest, seen.command("lingering_off"))
        assert "lingering_off" not in doctor(guest).findings


def test_fix_installs_without_switching_lingering_on(boot: Boot) -> None:
    with boot(User(lingers=False)) as guest, guest.logged_in():
        guest.write(".config/ankita-agent/routines.yaml", ROUTINES)
        assert doctor(guest).findings.keys().isdisjoint({"lingering_off", "routines_absent"})
        seen = doctor(guest, "--fix")
        assert (seen.code, "lingering_off" in seen.findings) == (0, True)


# --- shell against service ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ANKITA_STATE_DIR", "elsewhere"),
        ("ANKITA_CONFIG_DIR", "/tmp"),
        ("XDG_STATE_HOME", "/tmp/state"),
        ("XDG_CONFIG_HOME", "/tmp/config"),
    ],
)
def test_a_shell_that_is_led_elsewhere_is_told_and_unset_mends_it(installed: Guest, name: str, value: str) -> None:
    seen = doctor(installed, environment={name: value})
    assert "other_places" in seen.ids
    assert "unit_outdated" not in seen.ids
    assert seen.command("other_places") == f"unset {name}"
    assert in_this_shell(installed, seen.command("other_places"), **{name: value}).code == 0


def test_a_service_that_is_led_elsewhere_is_told_where_to(guest: Guest) -> None:
    guest.write("config/routines.yaml", ROUTINES)
    places = {"ANKITA_STATE_DIR": f"{guest.home}/my state", "ANKITA_CONFIG_DIR": f"{guest.home}/config"}
    guest.ask("ankita-agent", "install", environment=places)
    assert doctor(guest, environment=dict(places)).code == 0
    seen = doctor(guest)
    assert "other_places" in seen.ids
    assert in_this_shell(guest, seen.command("other_places")).code == 0


def test_two_owners_with_a_state_each_are_told_with_both_pids(installed: Guest) -> None:
    environment: dict[str, str | None] = {"ANKITA_STATE_DIR": f"{installed.home}/second"}
    installed.shell("systemd-run --user --setenv=ANKITA_STATE_DIR=$HOME/second /opt/ankita/bin/ankita-agent run")
    until(lambda: "two_owners" in doctor(installed, environment=environment).ids)
    seen = doctor(installed, environment=environment)
    assert str(installed.main_pid()) in seen.findings["two_owners"]["what"]
    type_in(installed, seen.command("two_owners"))
    until(lambda: "two_owners" not in doctor(installed, environment=environment).ids)


def test_beside_the_service_a_copy_with_directories_of_its_own_neither_advises_nor_mends_anything_of_it(
    installed: Guest,
) -> None:
    installed.ask("cp", "-as", "/opt/ankita", "clone")
    led: dict[str, str | None] = {
        "ANKITA_STATE_DIR": f"{installed.home}/run/state",
        "ANKITA_CONFIG_DIR": f"{installed.home}/run/config",
    }
    variables = " ".join(f"--setenv={name}={value}" for name, value in led.items())
    installed.write("run/config/routines.yaml", ROUTINES)
    installed.shell(f"systemd-run --user --unit=beside {variables} $HOME/clone/bin/python -m ankita_agent run")
    clone = ("clone/bin/python", "-m", "ankita_agent", "doctor", "--json")
    until(lambda: "two_owners" in Diagnosis(installed.run(*clone, environment=led)).findings)
    before = (installed.read(OWN_UNIT), installed.main_pid())
    seen = Diagnosis(installed.run(*clone, "--fix", environment=led))
    assert (seen.code, seen.ids, seen.document["mended"]) == (0, set(), [])
    assert set(seen.findings) >= {"other_places", "two_owners"}
    assert seen.findings["two_owners"]["command"] is None
    assert (installed.read(OWN_UNIT), installed.main_pid()) == before
    installed.systemctl("stop", "ankita-agent")
    seen = Diagnosis(installed.run(*clone, "--fix", environment=led))
    assert (seen.ids, seen.document["mended"]) == ({"not_active"}, [])
    assert seen.command("not_active") == "env -u ANKITA_STATE_DIR -u ANKITA_CONFIG_DIR ankita-agent start"
    installed.shell(seen.command("not_active"), environment=led)
    assert doctor(installed).code == 0
    assert installed.read(OWN_UNIT) == before[0]


def test_a_command_that_only_the_shell_finds_is_told_and_the_advice_mends_it(installed: Guest) -> None:
    installed.write("tools/briefing", "#!/bin/sh\n")
    installed.ask("chmod", "+x", "tools/briefing")
    file = ".config/ankita-agent/routines.yaml"
    installed.write(file, "routines: {a: {schedule: daily 08:00, run: briefing --short}}\n")
    path = f"{installed.home}/tools:/opt/ankita/bin:/usr/bin:/bin"
    seen = doctor(installed, environment={"PATH": path})
    assert seen.ids == {"command_not_found"}
    full, defaults = re.findall(r"`(.+?)`", seen.findings["command_not_found"]["do"])
    installed.write(file, f"routines: {{a: {{schedule: daily 08:00, run: {full} --short}}}}\n")
    assert doctor(installed, environment={"PATH": path}).code == 0
    installed.write(file, f"{defaults}\nroutines: {{a: {{schedule: daily 08:00, run: briefing --short}}}}\n")
    assert doctor(installed, environment={"PATH": path}).code == 0


# --- wherever it is asked ------------------------------------------------------------------------------


def test_it_answers_without_a_home_and_as_root(installed: Guest) -> None:
    assert doctor(installed, environment={"HOME": None}).code == 0
    assert doctor(installed, environment={"HOME": "/root"}).code == 0
    assert "manager_unreachable" in Diagnosis(installed.root("env", "-i", PROGRAM, "doctor", "--json")).findings


def test_a_home_with_every_sign_in_its_name_is_a_home(boot: Boot) -> None:
    with boot(User("ann", 4242, '/home/An na\'s "50%" $HOME é')) as guest:
        install(guest)
        assert doctor(guest).code == 0
        with_a_copy_of_its_own(guest)
        disabled(guest)
        type_in(guest, doctor(guest).command("second_copy"))
        assert doctor(guest, "--fix").code == 0
        open_to_others(guest)
        type_in(guest, doctor(guest).command("state_unusable"))
        assert doctor(guest).code == 0


def test_the_state_of_another_user_is_told_as_that(boot: Boot) -> None:
    with boot(User(), User("bob", 4243, "/home/bob")) as ann:
        install(ann.other("bob"))
        state = "/home/bob/.local/state/ankita-agent"
        seen = doctor(ann, environment={"ANKITA_STATE_DIR": state})
        assert "state_unusable" in seen.ids


def test_a_slot_that_was_taken_out_of_the_ledger_or_doubled_in_it_is_named(installed: Guest) -> None:
    script = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); h = 3600 * 10**9; "
        "(until,) = c.execute('SELECT accounted_until FROM marks').fetchone(); new = until // h * h + 3 * h; "
        "c.execute('UPDATE marks SET accounted_until = ?', (new,)); "
        "c.executemany('INSERT INTO history (routine, slot, until, trigger, term, outcome, reason, ended_at) VALUES "
        "(?, ?, ?, ?, 1, ?, ?, 1)', [('tick', s, s, 'schedule', 'missed', 'off') for s in (new - 2 * h, new)]); "
        "c.commit(); print(new - h)"
    )
    installed.systemctl("stop", "ankita-agent")
    state = ".local/state/ankita-agent/ledger.db"
    left_out = int(installed.ask(PYTHON, "-c", script, state))
    seen = doctor(installed)
    assert "slot_left_out" in seen.ids
    [place] = seen.document["account"]["left_out"]
    assert place == {"routine": "tick", "slot": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(left_out // 10**9))}
    assert place["slot"] in seen.findings["slot_left_out"]["what"]
    type_in(installed, seen.command("slot_left_out"))
