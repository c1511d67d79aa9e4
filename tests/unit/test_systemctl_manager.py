"""What is made of a systemctl(1) that says odd things, says nothing, or is not there."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from ankita_agent.adapters.systemctl_manager import SystemctlManager
from ankita_agent.core.errors import ManagerRefused, ManagerSilent, ManagerUnreachable
from ankita_agent.core.instants import MILLISECOND, SECOND, Duration
from ankita_agent.core.reaching import Address, Place, unreachable
from ankita_agent.core.service import Activity, JobEnd, Unreachable

Made = Callable[..., SystemctlManager]

LONG: Final = Duration(20 * SECOND)
SHORT: Final = Duration(200 * MILLISECOND)
DOWN: Final = "echo LoadState=loaded; echo ActiveState=inactive"


def here() -> Address:
    return Address("/run/user/4242", "/run/user/4242/systemd/private")


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """A manager whose systemctl is a script of sh(1); `$*` are its arguments."""

    def make(script: str, patience: Duration = LONG, locate: Callable[[], Address] = here) -> SystemctlManager:
        path = tmp_path / "systemctl"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return SystemctlManager(str(path), {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}, locate, patience)

    return make


def fails(message: str, shown: str = DOWN) -> str:
    """A systemctl that shows that and fails at everything else, with that message."""
    return f"case $* in *' show '*) {shown};; *) echo '{message}' >&2; exit 1;; esac"


def test_systemctl_gets_our_environment_no_input_and_asks_nobody(made: Made, tmp_path: Path) -> None:
    told = [tmp_path / name for name in ("environment", "input", "arguments")]
    script = f'env >{told[0]}; readlink /proc/self/fd/0 >{told[1]}; echo "$*" >{told[2]}'
    made(f"{script}; {DOWN}").state("x.service")
    environment, given, arguments = (path.read_text().splitlines() for path in told)
    of_the_shell = ("PWD=", "SHLVL=", "_=")
    assert sorted(line for line in environment if not line.startswith(of_the_shell)) == [
        "LANG=C.UTF-8",
        "PATH=/usr/bin:/bin",
        "XDG_RUNTIME_DIR=/run/user/4242",
    ]
    assert given == ["/dev/null"]
    assert arguments[0].startswith("--user --no-pager --no-ask-password show ")
    assert arguments[0].endswith(" -- x.service")


def test_paths_come_out_as_the_file_system_has_them(made: Made) -> None:
    drop_ins = r'/a/b.conf "/a/c d.conf" "/a/\$HOME-\`x\`-\\-\"q\".conf"'
    manager = made(
        f"{DOWN}; printf 'FragmentPath=/h/\\377=x\\n'; cat <<'END'\nDropInPaths={drop_ins}\nStatusText=a = b\nEND"
    )
    state = manager.state("x.service")
    assert os.fsencode(state.fragment) == b"/h/\xff=x"
    assert state.drop_ins == ("/a/b.conf", "/a/c d.conf", '/a/$HOME-`x`-\\-"q".conf')
    assert state.status_text == "a = b"


@pytest.mark.parametrize(
    "script",
    [
        "exit 0",
        "echo ActiveState=active",
        "echo LoadState=loaded; echo ActiveState=resting",
        "echo LoadState=loaded; echo ActiveState=active; echo MainPID=x",
        r"printf '\377\000\377'",
    ],
)
def test_what_is_no_state_of_a_unit_is_not_taken_for_one(made: Made, script: str) -> None:
    with pytest.raises(ManagerRefused, match=r"show x\.service"):
        made(script).state("x.service")


def test_what_systemctl_says_is_told_on_one_line_and_printable(made: Made) -> None:
    manager = made(r"printf 'Failed:\n  \033[31mno\377\n' >&2; exit 1")
    with pytest.raises(ManagerRefused) as raised:
        manager.reload()
    assert raised.value.fact == "Failed: \N{REPLACEMENT CHARACTER}[31mno\N{REPLACEMENT CHARACTER}"


def test_a_systemctl_that_fails_and_says_nothing_is_told_by_its_exit_status(made: Made) -> None:
    with pytest.raises(ManagerRefused, match="exit status 4"):
        made("exit 4").reload()


@pytest.mark.parametrize("version", ["", "echo Version=unknown", "echo Version="])
def test_a_manager_without_a_version_is_not_guessed_at(made: Made, version: str) -> None:
    with pytest.raises(ManagerRefused, match="version"):
        made(version).version()


@pytest.mark.parametrize(
    ("said", "end"),
    [
        ("Job for x.service failed because the control process exited with error code.", JobEnd.FAILED),
        ("Job for x.service failed because a timeout was exceeded.", JobEnd.FAILED),
        ("Job for x.service failed.", JobEnd.FAILED),
        ("Job for x.service canceled.", JobEnd.CANCELED),
        ("Job for x.service timed out.", JobEnd.TIMEOUT),
        ("A dependency job for x.service failed. See user logs for details.", JobEnd.DEPENDENCY),
        ("Warning: The unit file of x.service changed on disk.\nJob for x.service canceled.", JobEnd.CANCELED),
    ],
)
def test_how_a_job_ended_is_read_from_what_systemctl_says(made: Made, said: str, end: JobEnd) -> None:
    assert made(fails(said)).start("x.service", LONG) is end


def test_a_failure_that_is_no_end_of_a_job_is_a_refusal(made: Made) -> None:
    with pytest.raises(ManagerRefused) as raised:
        made(fails("Failed to start x.service: Transaction is destructive.")).start("x.service", LONG)
    assert raised.value.fact == "Failed to start x.service: Transaction is destructive."


def test_a_failed_stop_of_what_does_not_run_is_done(made: Made) -> None:
    assert made(fails("Failed to stop x.service: Unit x.service not loaded.")).stop("x.service", LONG) is JobEnd.DONE


def test_a_lost_connection_leaves_a_job_behind_that_goes_on(made: Made) -> None:
    manager = made(
        fails("Failed to wait for response: Connection reset", "echo LoadState=loaded; echo ActiveState=activating")
    )
    assert manager.start("x.service", LONG) is JobEnd.PENDING


def test_a_manager_that_is_gone_after_it_was_asked_has_refused_nothing(made: Made) -> None:
    calls = iter([here, here])

    def locate() -> Address:
        for call in calls:
            return call()
        raise unreachable(Unreachable.NO_SOCKET, Place("ann", 4242), "gone")

    with pytest.raises(ManagerSilent, match=r"start x\.service"):
        made(fails("Connection reset by peer"), locate=locate).start("x.service", LONG)


def test_nothing_is_run_where_there_is_no_manager(made: Made, tmp_path: Path) -> None:
    def locate() -> Address:
        raise unreachable(Unreachable.NO_SOCKET, Place("ann", 4242), "gone")

    with pytest.raises(ManagerUnreachable):
        made(f"touch {tmp_path}/ran", locate=locate).reload()
    assert not (tmp_path / "ran").exists()


def test_a_systemctl_that_does_not_come_back_is_ended(made: Made, tmp_path: Path) -> None:
    manager = made(f"echo $$ >{tmp_path}/pid; exec sleep 1000", patience=SHORT)
    with pytest.raises(ManagerSilent, match=r"0\.2 s: systemctl --user daemon-reload"):
        manager.reload()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_systemctl_that_still_waits_when_the_patience_is_over_leaves_the_job_to_itself(made: Made) -> None:
    script = "case $* in *' show '*) echo LoadState=loaded; echo ActiveState=activating;; *) exec sleep 1000;; esac"
    manager = made(script)
    assert manager.start("x.service", SHORT) is JobEnd.PENDING
    assert manager.state("x.service").activity is Activity.ACTIVATING


@pytest.mark.parametrize(("mode", "why"), [(0o755, "No such file or directory"), (0o644, "Permission denied")])
def test_a_systemctl_that_cannot_be_run_is_told(tmp_path: Path, mode: int, why: str) -> None:
    path = tmp_path / "systemctl"
    if mode == 0o644:
        path.write_text("")
        path.chmod(mode)
    with pytest.raises(ManagerRefused, match=why):
        SystemctlManager(str(path), {}, here).reload()
