"""A throw-away systemd: PID 1, logind, journald and users' managers, booted in half a second over a tree of files.

The problem: tests of a user service need a real user manager, and a machine has one PID 1 at most. The rule: the
container sees a tree (this machine's `/`, or another Debian) through an overlay on a tmpfs, writes nothing to it,
and dies with the process that made it, even when that is killed with SIGKILL: its mounts sit in a private mount
namespace, and setpriv, unshare, systemd-nspawn (below PID 1 of a private PID namespace) and so the container go down
one after another through PR_SET_PDEATHSIG. What may stay behind then is a folder and an empty cgroup, which the next
container sweeps away. tests/systemd/test_rig.py holds it.

Rejected: nspawn without a PID namespace around it (killed with SIGKILL it leaves the container running); a bare
`systemd --user` (no journal, no logind, no lingering). Sources: systemd-nspawn(1), sd_notify(3), unshare(1).
"""

import fcntl
import glob
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Self

from tests.real.waiting import until

BOOT: Final = Path(__file__).with_name("boot.sh")
BOOT_PATIENCE: Final = 60.0
"""Seconds after which a container that has not booted is given up."""

_HIERARCHIES: Final = ("/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup")
_PREFIX: Final = "ankita-rig-"
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class BootFailed(Exception):
    """The container did not come up; holds what it said on its console."""


@dataclass(frozen=True, slots=True)
class User:
    """An ordinary user of the container. `lingers`: the manager runs from boot on, without a login."""

    name: str = "ann"
    uid: int = 4242
    home: str = "/home/ann"
    lingers: bool = True


class Container:
    """One booted container; a context manager. `tree` is what its disk looks like at first, `binds` maps paths of
    this machine to paths inside, read-only. polkit is masked unless asked for: it is what boots slowest.

    `leader` is the pid, outside, of its PID 1; `name` the name of its cgroup.
    """

    def __init__(
        self,
        tree: str = "/",
        *,
        users: Sequence[User] = (User(),),
        binds: Mapping[str, str] | None = None,
        polkit: bool = False,
    ) -> None:
        self.name = ""
        self.tree, self.users, self.polkit = tree, tuple(users), polkit
        self._binds = dict(binds or {})
        self._outer: subprocess.Popen[bytes] | None = None
        self.leader = 0

    def __enter__(self) -> Self:
        self._folder, self._lock = make_folder()
        self.name = _name_of(self._folder)
        os.mkdir(f"{self._folder}/disk")
        self._notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        try:
            self._notices.bind(f"{self._folder}/notify")
            self._outer = self._spawn()
            self._wait_for_boot()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _spawn(self) -> subprocess.Popen[bytes]:
        people = [word for user in self.users for word in (user.name, str(user.uid), user.home, _yes(user.lingers))]
        binds = [f"--bind-ro={_escaped(source)}:{_escaped(target)}" for source, target in self._binds.items()]
        with open(f"{self._folder}/console.log", "ab") as console:
            return subprocess.Popen(
                [
                    *("setpriv", "--pdeathsig", "KILL", "--", "unshare", "--mount", "--propagation", "private"),
                    *("--pid", "--fork", "--kill-child=KILL", "--mount-proc", "sh", str(BOOT)),
                    *(self._folder, self.tree, self.name, _yes(self.polkit), *people, "--", *binds),
                ],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                start_new_session=True,
                env={"PATH": _PATH, "LANG": "C.UTF-8", "NOTIFY_SOCKET": f"{self._folder}/notify"},
            )

    def _wait_for_boot(self) -> None:
        """Until PID 1 says that it has booted, and the manager of each user who lingers by now that it runs."""
        give_up = time.monotonic() + BOOT_PATIENCE
        self._notices.settimeout(0.5)
        inner, ready = "", False
        while not (inner and ready):
            try:
                said = self._notices.recv(4096).decode()
            except TimeoutError:
                if self._spawned.poll() is not None or time.monotonic() > give_up:
                    raise BootFailed(self.console()) from None
                continue
            for line in said.splitlines():
                name, _, value = line.partition("=")
                inner = value if name == "X_NSPAWN_LEADER_PID" else inner
                ready = ready or line == "READY=1"
        self.leader = self._pid_here(inner)
        lingering = self.root("ls", "/var/lib/systemd/linger").stdout.split()
        for user in self.users:
            if user.name in lingering:
                self.wait_for_manager(user)

    def wait_for_manager(self, user: User) -> None:
        """Until the user's manager has finished starting. AssertionError after the patience of `until`."""
        until(lambda: self.root("test", "-S", f"/run/user/{user.uid}/systemd/private").returncode == 0, user.name)
        self.user(user, "systemctl", "--user", "is-system-running", "--wait")

    @property
    def _spawned(self) -> subprocess.Popen[bytes]:
        assert self._outer is not None, "the container is not booted"
        return self._outer

    def _pid_here(self, inner: str) -> int:
        """The leader's pid in our namespace: nspawn reports it as its own, nested one counts it."""
        for pid in _descendants(self._spawned.pid):
            with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
                seen_as = next(line.split()[1:] for line in status if line.startswith("NSpid:"))
            if seen_as[-2:] == [inner, "1"]:
                return pid
        raise BootFailed(f"no process of the container is its PID 1\n{self.console()}")

    def console(self) -> str:
        """What nspawn and PID 1 have said."""
        with open(f"{self._folder}/console.log", encoding="utf-8", errors="replace") as log:
            return log.read()

    def reboot(self) -> None:
        """Shut down in good order and boot again from the same disk."""
        self._boot_again(signal.SIGRTMIN + 4)

    def cut_power(self) -> None:
        """End all processes at once and boot again from the same disk, as it is."""
        self._boot_again(signal.SIGKILL)

    def _boot_again(self, number: int) -> None:
        with open(f"{self._folder}/again", "x"):
            pass
        os.kill(self.leader, number)
        self._wait_for_boot()

    def entering(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a command as root inside; it dies with its caller.

        nsenter keeps the caller's capabilities, so they are cut down to the container's own: with CAP_SYS_TIME a
        `date -s` inside would set the clock of the whole machine.
        """
        with open(f"/proc/{self.leader}/status", encoding="ascii", errors="replace") as status:
            bounds = int(next(line.split()[1] for line in status if line.startswith("CapBnd:")), 16)
        kept = ",".join(["-all", *(f"+cap_{number}" for number in range(64) if bounds >> number & 1)])
        return [
            *("nsenter", "-t", str(self.leader), "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w", "--"),
            *("setpriv", "--pdeathsig", "KILL", "--bounding-set", kept, "--", "env", "-i", f"PATH={_PATH}"),
            *("LANG=C.UTF-8", "HOME=/root", *command),
        ]

    def entering_as(
        self, user: User, command: Sequence[str], environment: Mapping[str, str | None] | None = None
    ) -> list[str]:
        """The command line that runs a command as a user, with the environment of that user's manager.

        `environment` adds variables, and takes those away whose value is None.
        """
        run = f"/run/user/{user.uid}"
        variables: dict[str, str | None] = {
            "PATH": "/opt/ankita/bin:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "SHELL": "/bin/bash",
            "HOME": user.home,
            "USER": user.name,
            "LOGNAME": user.name,
            "XDG_RUNTIME_DIR": run,
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={run}/bus",
            **(environment or {}),
        }
        settings = [f"{name}={value}" for name, value in variables.items() if value is not None]
        become = ("setpriv", f"--reuid={user.uid}", f"--regid={user.uid}", "--init-groups", "--")
        return self.entering([*become, "env", "-i", *settings, "sh", "-c", 'cd; exec "$@"', "sh", *command])

    def root(self, *command: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command as root inside, to its end. `options` are those of `run`."""
        return run(self.entering(command), **options)

    def user(
        self, user: User, *command: str, environment: Mapping[str, str | None] | None = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as a user, in the home directory, to its end. `options` are those of `run`."""
        return run(self.entering_as(user, command, environment), **options)

    def stop(self) -> None:
        """End it and leave nothing behind. Not in good order: no test asks for that, and a wedged one would wait."""
        if self._outer is not None:
            self._outer.kill()
            self._outer.wait()
        self._notices.close()
        remove_folder(self._folder)
        self._lock.close()


def run(
    command: Sequence[str], *, patience: float = 60.0, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run it to its end with `given` as its input (none: /dev/null). subprocess.TimeoutExpired after `patience` s."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        out, err = process.communicate(given, patience)
    except BaseException:
        kill_entered(process)
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def kill_entered(process: subprocess.Popen[Any]) -> None:
    """End a command that was started through `entering`.

    Its child first, so that nsenter reaps it: else the zombie goes to the machine's PID 1 and, until that reaps it,
    holds up the end of the container.
    """
    for child in _children(process.pid):
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(BrokenPipeError):
                stream.close()


def make_folder() -> tuple[str, IO[bytes]]:
    """A new folder in /tmp that everybody may read, and its lock: closed, or with us dead, the next sweep takes it."""
    sweep()
    folder = tempfile.mkdtemp(prefix=f"{_PREFIX}{uuid.uuid4().hex[:10]}-")
    os.chmod(folder, 0o755)
    # The lock gets its name when it is held: no sweep finds it free.
    lock = open(f"{folder}/lock.new", "xb")  # noqa: SIM115 - held as long as its owner lives
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.rename(f"{folder}/lock.new", f"{folder}/lock")
    return folder, lock


def remove_folder(folder: str) -> None:
    """End what is left of a container there and remove the folder; leave it to the next sweep if a cgroup is busy."""
    cgroups = [f"{hierarchy}/{_name_of(folder)}" for hierarchy in _HIERARCHIES]
    for cgroup in cgroups:
        if os.path.exists(f"{cgroup}/cgroup.kill"):
            with open(f"{cgroup}/cgroup.kill", "w", encoding="ascii") as order:
                order.write("1")
    for cgroup in cgroups:
        with suppress(AssertionError):
            until(lambda cgroup=cgroup: _removed(cgroup))  # type: ignore[misc]
    if not any(os.path.isdir(cgroup) for cgroup in cgroups):
        shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """Clean up after owners who were killed: the folders whose lock nobody holds."""
    for folder in glob.glob(f"{tempfile.gettempdir()}/{_PREFIX}*-*"):
        with suppress(OSError), open(f"{folder}/lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_folder(folder)


def _name_of(folder: str) -> str:
    """The name of the container whose folder it is, and of its cgroup."""
    return os.path.basename(folder).rpartition("-")[0]


def _removed(cgroup: str) -> bool:
    for directory, _, _ in os.walk(cgroup, topdown=False):
        with suppress(OSError):
            os.rmdir(directory)
    return not os.path.isdir(cgroup)


def _children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as listed:
            return [int(child) for child in listed.read().split()]
    except OSError:  # it has ended
        return []


def _descendants(pid: int) -> list[int]:
    found = _children(pid)
    return found + [one for child in found for one in _descendants(child)]


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace(":", "\\:")
