"""What a test says to a booted container: one user of it, and root beside.

Files are read and written by commands inside, as the user: a path followed from outside (/proc/PID/root) would take
an absolute symbolic link for one of this machine.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from tests.real.waiting import until
from tests.rig import container
from tests.rig.container import Container, User

UNIT: Final = "ankita-agent.service"


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended. `code` is negative where a signal ended it."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """All that it printed."""
        return self.out + self.err


class Guest:
    """A user of a booted container. Whatever it starts runs inside, in the home directory."""

    def __init__(self, box: Container, user: User) -> None:
        self.box, self.user = box, user
        self.home, self.name, self.uid = user.home, user.name, user.uid

    def other(self, name: str) -> "Guest":
        """Another user of the same container."""
        return Guest(self.box, next(user for user in self.box.users if user.name == name))

    # Commands

    def run(
        self,
        *command: str,
        environment: Mapping[str, str | None] | None = None,
        given: str | None = None,
        patience: float = 60.0,
    ) -> Done:
        """Run a command as the user, with the environment of the user's manager, to its end.

        `environment` adds variables and takes away those whose value is None; `given` is its input (none:
        /dev/null). subprocess.TimeoutExpired after `patience` seconds; it is ended then.
        """
        return _done(
            self.box.user(self.user, *command, environment=environment, given=given, patience=patience),
        )

    def ask(self, *command: str, **options: Any) -> str:
        """What the command prints on stdout, without white space around; it must succeed. Options as `run`."""
        return _answer(command, self.run(*command, **options))

    def shell(self, script: str, *arguments: str, **options: Any) -> Done:
        """Run a line of sh(1) as the user, with `arguments` as "$1" and so on. Options as `run`."""
        return self.run("sh", "-c", script, "sh", *arguments, **options)

    def start(self, *command: str, environment: Mapping[str, str | None] | None = None) -> "subprocess.Popen[bytes]":
        """Start a command as the user and do not wait: stdin, stdout and stderr are pipes.

        End it by its stdin, or with `container.kill_entered`; the container's end is its end at the latest.
        """
        pipe = subprocess.PIPE
        return subprocess.Popen(
            self.box.entering_as(self.user, command, environment), stdin=pipe, stdout=pipe, stderr=pipe
        )

    def in_session(self, *command: str, given: str | None = None, patience: float = 60.0) -> Done:
        """Run a command in a login session of its own, as after ssh: pam_systemd(8) starts the user's manager for it.

        Only from within a session may a user switch lingering on, by what polkit says (boot with `polkit=True`).
        """
        script = 'PATH=/opt/ankita/bin:$PATH; export PATH; exec "$@"'
        login = ("su", "--login", "--command", script, "--", self.name, "sh")
        return self.root(*login, *command, given=given, patience=patience)

    def root(self, *command: str, given: str | None = None, patience: float = 60.0) -> Done:
        """Run a command as root inside, to its end."""
        return _done(self.box.root(*command, given=given, patience=patience))

    def ask_root(self, *command: str, given: str | None = None) -> str:
        """As `ask`, as root inside."""
        return _answer(command, self.root(*command, given=given))

    # Files

    def write(self, path: str, text: str) -> None:
        """Write a file as the user, and the directories above it; a relative path is below the home directory."""
        script = 'mkdir -p -- "$(dirname -- "$1")" && cat > "$1"'
        done = self.shell(script, path, given=text)
        assert done.code == 0, done.said

    def read(self, path: str) -> str:
        """The text of a file; it must be there."""
        done = self.run("cat", "--", path)
        assert done.code == 0, done.said
        return done.out

    def exists(self, path: str) -> bool:
        """Whether there is something at that path, be it a dangling link."""
        return self.shell('[ -e "$1" ] || [ -L "$1" ]', path).code == 0

    # The user's manager

    def systemctl(self, *arguments: str, **options: Any) -> Done:
        """`systemctl --user`."""
        return self.run("systemctl", "--user", "--no-pager", "--no-ask-password", *arguments, **options)

    def show(self, *properties: str, unit: str = UNIT) -> dict[str, str]:
        """Properties of a unit by name; all when none is named."""
        wanted = [f"--property={','.join(properties)}"] if properties else []
        lines = self.ask("systemctl", "--user", "show", *wanted, unit).splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def wait_until(self, unit: str = UNIT, **properties: str) -> dict[str, str]:
        """The properties of a unit, once those named have these values: `wait_until(ActiveState="active")`."""
        seen: dict[str, str] = {}

        def reached() -> bool:
            seen.update(self.show(*properties, unit=unit))
            return seen == properties

        try:
            until(reached)
        except AssertionError:
            raise AssertionError(f"{unit} is {seen} and not {properties}\n{self.journal(unit)}") from None
        return seen

    def main_pid(self, unit: str = UNIT) -> int:
        """The pid, inside, of the unit's main process; 0 when it has none."""
        return int(self.show("MainPID", unit=unit)["MainPID"])

    def processes_of(self, unit: str = UNIT) -> list[int]:
        """The pids, inside, of all processes in the unit's cgroup: empty also when there is no such cgroup."""
        group = self.show("ControlGroup", unit=unit)["ControlGroup"]
        listed = (
            self.root("sh", "-c", 'cat "/sys/fs/cgroup$1/cgroup.procs" 2>/dev/null', "sh", group) if group else None
        )
        return [int(pid) for pid in listed.out.split()] if listed else []

    def manager_pid(self) -> int:
        """The pid, inside, of `systemd --user`; 0 when it does not run."""
        shown = self.ask_root("systemctl", "show", "--property=MainPID", f"user@{self.uid}.service")
        return int(shown.partition("=")[2])

    def manager_runs(self) -> bool:
        """Whether the user has a manager now."""
        return self.manager_pid() != 0

    def freeze_manager(self) -> None:
        """Stop the user's manager (SIGSTOP): it answers nobody, and what it started runs on."""
        self.signal(self.manager_pid(), "STOP")

    def thaw_manager(self) -> None:
        """Let it go on."""
        self.signal(self.manager_pid(), "CONT")

    @contextmanager
    def frozen_manager(self) -> Iterator[None]:
        """A block in which the user's manager stands still."""
        self.freeze_manager()
        try:
            yield
        finally:
            self.thaw_manager()

    def signal(self, pid: int, name: str) -> None:
        """Send a signal, such as `KILL`, to a process inside."""
        self.ask_root("sh", "-c", 'kill -s "$1" "$2"', "sh", name, str(pid))

    # The journal

    def journal(self, unit: str = UNIT) -> str:
        """What the user's unit printed and what the manager said of it, one message a line."""
        return "\n".join(str(entry.get("MESSAGE", "")) for entry in self.journal_entries(unit))

    def journal_entries(self, unit: str = UNIT) -> list[dict[str, Any]]:
        """The same, all fields of each message, oldest first: `_PID`, `PRIORITY`, `__REALTIME_TIMESTAMP`, ..."""
        owned = f"_UID={self.uid}"
        self.ask_root("journalctl", "--sync")
        out = self.root(
            *("journalctl", "--no-pager", "--all", "--output=json"),
            *(owned, f"_SYSTEMD_USER_UNIT={unit}", "+", owned, f"USER_UNIT={unit}"),
        ).out
        return [json.loads(line) for line in out.splitlines() if line.startswith("{")]

    # The machine and the session

    def reboot(self) -> None:
        """Shut the container down in good order, and boot it again from the same disk."""
        self.box.reboot()

    def cut_power(self) -> None:
        """End everything at once, and boot the container again from the same disk."""
        self.box.cut_power()

    @contextmanager
    def logged_in(self) -> Iterator[None]:
        """A block during which the user has a session of logind's, as after a login; at its end it is closed."""
        login = ("su", "--login", self.name, "--command", "echo in; read wait")
        session = subprocess.Popen(
            self.box.entering(login), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            assert session.stdout is not None
            assert session.stdin is not None
            assert session.stdout.readline() == "in\n", self.box.console()
            self.box.wait_for_manager(self.user)
            yield
            session.stdin.write("\n")
            session.stdin.flush()
            session.wait()
        finally:
            container.kill_entered(session)


def _done(ended: "subprocess.CompletedProcess[str]") -> Done:
    return Done(ended.returncode, ended.stdout, ended.stderr)


def _answer(command: Sequence[str], done: Done) -> str:
    assert done.code == 0, f"{command}: exit status {done.code}\n{done.said}"
    return done.out.strip()
