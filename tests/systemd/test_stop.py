"""Starting, stopping and restarting the service, as an ordinary user of a real systemd."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import pytest

from tests.real.waiting import until
from tests.rig.guest import Done, Guest

pytestmark = pytest.mark.needs("systemd")

LONG: Final = "exec sleep 1000"
STUBBORN: Final = "trap '' TERM; while :; do sleep 0.1; done"
WAITING: Final = "waiting for run "


@pytest.fixture
def service(guest: Guest) -> Guest:
    """A user whose service runs, with nothing to do."""
    write(guest)
    assert guest.run("ankita-agent", "install").code == 0
    return guest


def write(guest: Guest, run: str = "true", settings: str = "stop_drain: 60s", more: str = "") -> None:
    """One routine that runs when it is triggered, and beside it one line of YAML more."""
    routine = f"job: {{schedule: daily 03:00, kill_after: 1s, run: {json.dumps(run)}}}"
    guest.write(".config/ankita-agent/routines.yaml", f"agent: {{{settings}}}\nroutines:\n  {routine}\n{more}")


def begin(guest: Guest, run: str, settings: str = "stop_drain: 60s") -> None:
    """Have the service run that, and wait until it does."""
    write(guest, run, settings)
    until(lambda: settings_in_force(guest, run))
    assert guest.run("ankita-agent", "trigger", "job").code == 0
    until(lambda: newest(guest)["started_at"])


def settings_in_force(guest: Guest, run: str) -> bool:
    """Whether the newest edit is: the agent says so once it is."""
    text = guest.read(".config/ankita-agent/routines.yaml")
    kept = ".local/state/ankita-agent/last-good.yaml"
    return guest.exists(kept) and run in guest.read(kept) and guest.read(kept).strip() == text.strip()


def newest(guest: Guest) -> Any:
    """The newest row of the history."""
    return json.loads(guest.ask("ankita-agent", "history", "--json", "-n", "1"))[0]


def ask(guest: Guest, *arguments: str) -> Done:
    """A command of ours, which tells no traceback."""
    done = guest.run("ankita-agent", *arguments)
    assert "Traceback" not in done.said
    return done


def is_down_in_good_order(guest: Guest) -> bool:
    """Nothing of the service is left, and its manager is content."""
    assert guest.show("ActiveState", "Result") == {"ActiveState": "inactive", "Result": "success"}, guest.journal()
    assert guest.processes_of() == []
    return True


@contextmanager
def in_a_terminal(guest: Guest, *options: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A block during which somebody runs an agent by hand, which owns."""
    with guest.start("ankita-agent", "run", *options) as agent:
        until(lambda: json.loads(guest.run("ankita-agent", "status", "--json").out)["owner"])
        yield agent
        agent.send_signal(signal.SIGTERM)


def test_it_starts_stops_and_starts_again_and_says_as_what(service: Guest) -> None:
    done = ask(service, "start")
    assert (done.code, f"pid {service.main_pid()}" in done.out) == (0, True)
    assert "was up already as owner of term 1" in done.out
    done = ask(service, "stop")
    assert (done.code, done.out.splitlines()[0]) == (0, "the service is stopped")
    assert is_down_in_good_order(service)
    assert ask(service, "stop").out.startswith("nothing to stop: the service does not run")
    done = ask(service, "start")
    assert (done.code, "is up as owner of term 2" in done.out) == (0, True), done.said
    assert "next: job at " in done.out
    done = ask(service, "restart")
    assert (done.code, "is up as owner of term 3" in done.out) == (0, True), done.said


def test_a_stop_waits_for_a_run_that_ends_in_time(service: Guest) -> None:
    begin(service, "until [ -e enough ]; do sleep 0.05; done")
    with service.start("ankita-agent", "stop") as stop:
        until(lambda: service.show("SubState") == {"SubState": "stop-sigterm"})
        service.write("enough", "")
        out, err = stop.communicate()
    assert stop.returncode == 0
    assert err.decode().startswith(f"{WAITING}1 of job (pid ")
    assert "job: run 1 succeeded\n" in err.decode()
    assert b"the service is stopped" in out
    assert newest(service)["outcome"] == "succeeded"
    assert is_down_in_good_order(service)


def test_a_run_that_does_not_end_is_stopped_within_the_patience_of_the_manager(service: Guest) -> None:
    begin(service, STUBBORN, "stop_drain: 1s")
    done = ask(service, "stop")
    assert done.code == 0, done.said
    assert "job: run 1 stopped (shutdown)\n" in done.err
    assert (newest(service)["outcome"], newest(service)["reason"]) == ("stopped", "shutdown")
    assert is_down_in_good_order(service)


@pytest.mark.parametrize("verb", ["stop", "restart"])
def test_now_does_not_wait_for_what_runs(service: Guest, verb: str) -> None:
    begin(service, STUBBORN)
    pid, began = service.main_pid(), time.monotonic()
    done = ask(service, verb, "--now")
    assert done.code == 0, done.said
    assert "stopping run 1 of job" in done.err
    assert "job: run 1 stopped (asked to stop)\n" in done.err
    assert time.monotonic() - began < 20, "stop_drain is 60 s, kill_after 1 s"
    if verb == "stop":
        assert is_down_in_good_order(service)
    else:
        assert service.main_pid() not in (0, pid)
        assert "is up as owner of term 2" in done.out


def test_a_stop_that_somebody_waits_for_can_be_hurried(service: Guest) -> None:
    begin(service, LONG)
    with service.start("ankita-agent", "stop") as stop:
        until(lambda: service.show("SubState") == {"SubState": "stop-sigterm"})
        assert ask(service, "stop", "--now").code == 0
        assert stop.wait() == 0
    assert newest(service)["reason"] == "asked_to_stop"
    assert is_down_in_good_order(service)


def test_a_restart_waits_for_what_runs_and_then_for_readiness(service: Guest) -> None:
    begin(service, "until [ -e enough ]; do sleep 0.05; done")
    pid = service.main_pid()
    with service.start("ankita-agent", "restart") as restart:
        until(lambda: service.show("SubState") == {"SubState": "stop-sigterm"})
        service.write("enough", "")
        out, err = restart.communicate()
    assert restart.returncode == 0
    assert b"job: run 1 succeeded" in err
    assert b"is up as owner of term 2, pid %d" % service.main_pid() in out
    assert service.main_pid() not in (0, pid)


@pytest.mark.parametrize("verb", ["stop", "restart"])
def test_ctrl_c_ends_the_waiting_and_not_the_job(service: Guest, verb: str) -> None:
    begin(service, "until [ -e enough ]; do sleep 0.05; done")
    pid = service.main_pid()
    script = f"env --default-signal=INT ankita-agent {verb} 2>told & echo $! >waiter; wait $!; echo $? >ended"
    with service.start("sh", "-c", script) as shell:
        until(lambda: service.show("SubState") == {"SubState": "stop-sigterm"})
        until(lambda: service.exists("told") and WAITING in service.read("told"))
        service.signal(int(service.read("waiter")), "INT")
        assert shell.wait() == 0
    assert service.read("ended") == "130\n"
    assert f"no longer waiting; the {verb} goes on" in service.read("told")
    service.write("enough", "")
    if verb == "stop":
        until(lambda: service.show("ActiveState") == {"ActiveState": "inactive"})
        assert is_down_in_good_order(service)
    else:
        until(lambda: service.main_pid() not in (0, pid))
        service.wait_until(ActiveState="active")
    assert newest(service)["outcome"] == "succeeded"


@pytest.mark.parametrize("verb", ["stop", "restart"])
def test_a_run_that_asks_for_it_does_not_wait_for_itself(service: Guest, verb: str) -> None:
    pid = service.main_pid()
    begin(service, f"/opt/ankita/bin/ankita-agent {verb} >told; echo $? >ended", "stop_drain: 20s")
    until(lambda: service.exists("ended") and service.read("ended"))
    assert service.read("ended") == "0\n"
    assert "this command is itself part of run 1 of job" in service.read("told")
    until(lambda: newest(service)["outcome"] == "succeeded")
    if verb == "stop":
        service.wait_until(ActiveState="inactive", Result="success")
    else:
        until(lambda: service.main_pid() not in (0, pid))


def test_a_wait_that_is_too_long_is_given_up_and_the_stop_goes_on(service: Guest) -> None:
    begin(service, LONG)
    done = ask(service, "stop", "--timeout", "1s")
    assert done.code == 1
    assert "the service was not down within 1s: it is still deactivating" in done.err
    assert service.show("ActiveState") == {"ActiveState": "deactivating"}
    assert ask(service, "stop", "--now").code == 0


def test_the_owner_in_a_terminal_is_named_and_left_alone(guest: Guest) -> None:
    write(guest)
    with in_a_terminal(guest):
        pid = json.loads(guest.run("ankita-agent", "status", "--json").out)["owner"]["pid"]
        assert guest.run("ankita-agent", "install").code == 0
        done = ask(guest, "start")
        assert f"as standby, pid {guest.main_pid()}" in done.out
        assert f"pid {pid} owns" in done.out
        done = ask(guest, "stop")
        assert (done.code, f"the routines go on: pid {pid} owns them" in done.out) == (1, True), done.said
        assert is_down_in_good_order(guest)
        assert json.loads(guest.run("ankita-agent", "status", "--json").out)["owner"]["pid"] == pid


def test_a_manager_that_does_not_answer_holds_no_command_up_and_no_run(service: Guest) -> None:
    begin(service, "until [ -e enough ]; do sleep 0.05; done")
    pid = service.main_pid()
    with service.frozen_manager(), ExitStack() as stack:
        commands = [stack.enter_context(service.start("ankita-agent", verb)) for verb in ("start", "stop", "restart")]
        for command in commands:
            out, err = command.communicate(timeout=30)
            assert (command.returncode, out) == (69, b"")
            assert b"the service manager did not answer within 10 s" in err
            assert b"The agent with pid %d owns the routines" % pid in err
        service.write("enough", "")
        until(lambda: newest(service)["outcome"] == "succeeded")
    assert service.main_pid() == pid


def test_status_waits_a_second_for_a_manager_and_ends_as_ever(service: Guest) -> None:
    with service.frozen_manager():
        done = ask(service, "status")
        assert done.code == 0
        assert "service  systemd does not tell: the service manager did not answer within 1 s" in done.out
        shown = json.loads(ask(service, "status", "--json").out)["service"]
    assert shown == {"manager": "systemd", "installed": None, "enabled": None, "active": None}


def test_without_pystemd_the_same_goes_through_systemctl(service: Guest) -> None:
    service.write("without/pystemd.py", "raise ImportError\n")
    environment = {"PYTHONPATH": f"{service.home}/without"}
    begin(service, LONG)
    done = service.run("ankita-agent", "restart", "--now", environment=environment)
    assert (done.code, "job: run 1 stopped (asked to stop)\n" in done.err) == (0, True), done.said
    assert "is up as owner of term 2" in done.out
    for verb, said in {"start": "was up already", "stop": "is stopped", "restart": "is up as owner of term 3"}.items():
        done = service.run("ankita-agent", verb, environment=environment)
        assert (done.code, said in done.out) == (0, True), done.said
    with service.frozen_manager():
        assert service.run("ankita-agent", "stop", environment=environment, patience=30).code == 69


def test_no_bus_is_needed(service: Guest) -> None:
    assert service.systemctl("stop", "dbus.socket", "dbus.service").code == 0
    assert service.run("sh", "-c", 'rm -f "$XDG_RUNTIME_DIR/bus"').code == 0
    for verb in ("restart", "stop", "start"):
        done = ask(service, verb)
        assert done.code == 0, done.said
    assert json.loads(ask(service, "status", "--json").out)["service"]["active"] is True


def test_status_shows_the_service_and_what_to_do_about_it(guest: Guest) -> None:
    def line() -> str:
        return next(line for line in ask(guest, "status").out.splitlines() if line.startswith("service "))

    write(guest)
    assert "not installed" in line()
    assert guest.run("ankita-agent", "install").code == 0
    assert line() == f"service  active, enabled, pid {guest.main_pid()}"
    shown = json.loads(ask(guest, "status", "--json").out)["service"]
    assert shown == {"manager": "systemd", "installed": True, "enabled": True, "active": True}
    pid = guest.main_pid()
    guest.signal(pid, "KILL")
    until(lambda: guest.main_pid() not in (0, pid))
    guest.wait_until(ActiveState="active")
    assert "; brought back once: " in line()
    guest.systemctl("disable", "ankita-agent")
    assert "active, not enabled, pid " in line()
    ask(guest, "stop")
    guest.systemctl("mask", "ankita-agent")
    assert "masked" in line()
    done = ask(guest, "start")
    assert (done.code, "systemctl --user unmask ankita-agent" in done.err) == (1, True)


def test_a_service_that_cannot_come_up_says_why(service: Guest) -> None:
    guest = service
    ask(guest, "stop")
    guest.shell("rm -r .local/state/ankita-agent")
    guest.write(".config/ankita-agent/routines.yaml", "routines: [\n")
    done = ask(guest, "start")
    assert done.code == 1
    assert "did not come up: exit status 78, there is no usable routines.yaml" in done.err
    assert "ankita-agent check" in done.err
    write(guest)
    guest.write(".config/systemd/user/ankita-agent.service.d/gone.conf", "[Service]\nExecStart=\nExecStart=/gone\n")
    guest.systemctl("daemon-reload")
    done = ask(guest, "start")
    assert done.code == 1
    assert "exit status 203" in done.err
    assert "ankita-agent install" in done.err


def test_a_shell_with_directories_of_its_own_leaves_the_service_alone(service: Guest) -> None:
    pid = service.main_pid()
    own = {"ANKITA_STATE_DIR": f"{service.home}/own state", "ANKITA_CONFIG_DIR": f"{service.home}/own"}
    for verb in ("start", "stop", "restart"):
        done = service.run("ankita-agent", verb, environment=own)
        assert (done.code, f"will not {verb} the service" in done.err) == (2, True), done.said
        assert f"{service.home}/.local/state/ankita-agent, and this shell has {service.home}/own state" in done.err
    assert service.main_pid() == pid
    shown = service.run("ankita-agent", "status", environment=own)
    assert "it is not the agent of this shell: it serves" in shown.out
    meant = done.err.partition("is meant: ")[2].partition("    or: ")[0]
    done = service.run("sh", "-c", meant, environment=own)
    assert (done.code, "is up as owner of term 2" in done.out) == (0, True), done.said


def test_a_drop_in_that_spoils_the_unit_is_named_with_what_systemd_says(service: Guest) -> None:
    drop_in = ".config/systemd/user/ankita-agent.service.d/x.conf"
    service.write(drop_in, "[Service]\nExecStart=/bin/true\n")
    service.systemctl("daemon-reload")
    shown = ask(service, "status").out
    assert "it cannot start again, for its manager cannot use its unit file: Service has more than one" in shown
    assert f"mend or remove what is beside it: {service.home}/{drop_in}    then: ankita-agent restart" in shown
    done = ask(service, "restart")
    assert (done.code, "Service has more than one ExecStart= setting" in done.err) == (1, True), done.said
    assert f"mend or remove what is beside it: {service.home}/{drop_in}    then: ankita-agent restart" in done.err
    assert service.show("ActiveState") == {"ActiveState": "active"}
    assert ask(service, "stop").code == 0
    assert "Service has more than one ExecStart= setting" in ask(service, "status").out
    assert f"{service.home}/{drop_in}    then: ankita-agent start" in ask(service, "start").err
    service.shell('rm "$1"', drop_in)
    assert ask(service, "start").code == 0


def test_a_unit_file_that_is_gone_is_told_as_that(service: Guest) -> None:
    service.shell("rm .local/share/systemd/user/ankita-agent.service")
    for _ in range(2):
        assert (
            "its unit file is gone, so it cannot start again; write it anew: ankita-agent install"
            in ask(service, "status").out
        )
        done = ask(service, "restart")
        assert (done.code, "write it anew: ankita-agent install" in done.err) == (1, True), done.said
    assert service.show("ActiveState") == {"ActiveState": "active"}


def test_whoever_starts_it_is_told_that_its_routines_are_not_those_of_the_file(service: Guest) -> None:
    file = ".config/ankita-agent/routines.yaml"
    service.write(file, "routines: [\n")
    done = ask(service, "restart")
    assert (done.code, "\ndegraded: " in done.out, "ankita-agent check" in done.out) == (0, True, True), done.said
    assert "from before stay in force" in ask(service, "list").err
    service.shell('rm "$1"', file)
    done = ask(service, "restart")
    assert "so 1 routine from before does not fire: job; to have it again: cp " in done.out
    shown = ask(service, "status")
    assert (shown.code, "1 routine from before does not fire: job" in shown.out) == (1, True), shown.said
    command = done.out.partition("to have it again: ")[2].partition("    to have none")[0]
    assert service.shell(command).code == 0
    until(lambda: ask(service, "status").code == 0)
    assert "job" in ask(service, "list").out


def test_status_says_that_the_service_waits_while_a_terminal_owns(guest: Guest) -> None:
    write(guest)
    with in_a_terminal(guest):
        pid = json.loads(guest.run("ankita-agent", "status", "--json").out)["owner"]["pid"]
        assert guest.run("ankita-agent", "install").code == 0
        assert f"it stands by, and owns as soon as pid {pid} ends" in ask(guest, "status").out
