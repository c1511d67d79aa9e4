"""A user's service manager whose units are files, and whose programs do what a test says.

It knows what makes a manager hard to use: a unit file that changed is not read again by itself, a failed unit stays
failed, a program may never be ready, a job goes on when nobody waits for it, a mask wins over everything, and the
manager may be silent or gone. It has no clock: what takes time takes it from the patience of the call.
"""

import itertools
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ankita_agent.core.instants import SECOND, Duration
from ankita_agent.core.reaching import Place, check_unit_name, refused, silent, unreachable
from ankita_agent.core.service import Activity, JobEnd, UnitState, Unreachable

_NOTHING: Final = "/dev/null"
_WANTS: Final = "default.target.wants"
_AT_ONCE: Final = Duration(0)
_START_TIMEOUT: Final = Duration(90 * SECOND)
_PATIENCE: Final = Duration(10 * SECOND)
_DOWN: Final = (Activity.INACTIVE, Activity.FAILED)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What the program of a unit does.

    It is ready after `ready_after`, never when that is None: then its start fails after `start_timeout`. It ends after
    `stop_takes` when it is stopped, or at once by a signal in `ends_on`. `exit_status` is that of a program that ends
    by itself as soon as it is started; None for one that stays. `status_text` is what it tells once it is ready.
    """

    ready_after: Duration | None = _AT_ONCE
    start_timeout: Duration = _START_TIMEOUT
    stop_takes: Duration = _AT_ONCE
    ends_on: frozenset[int] = frozenset()
    exit_status: int | None = None
    status_text: str = ""


@dataclass(slots=True)
class _Unit:
    """What the manager holds of a unit: what it has read, and how it is."""

    read: tuple[tuple[str, bytes], ...]
    state: UnitState
    behaviour: Behaviour = field(default_factory=Behaviour)


class FakeServiceManager:
    """ports.service_manager.ServiceManager over unit files in `directories`, the first winning.

    As the real one does, it puts its links for `enable` and `mask` into the first directory; one that is masked is a
    link to /dev/null there, or an empty file anywhere. What a test may set at any time: `behaviours` (by unit),
    `silent`, `unreachable` (each call then raises), `refusals` (by method: what the manager says no with), `when_ready`
    (called with the unit as it becomes ready) and `next_pid` (gives the pid of each program that is started). `asked`
    lists each (method, unit), oldest first; `signals` each (unit, number) that arrived.
    """

    def __init__(self, directories: Sequence[str], version: int = 252) -> None:
        self.directories = tuple(directories)
        self.behaviours: dict[str, Behaviour] = {}
        self.silent = False
        self.unreachable: Unreachable | None = None
        self.refusals: dict[str, str] = {}
        self.when_ready: Callable[[str], None] = lambda _: None
        self.asked: list[tuple[str, str]] = []
        self.signals: list[tuple[str, int]] = []
        self._version = version
        self._held: dict[str, _Unit] = {}
        self.next_pid: Callable[[], int] = itertools.count(1000).__next__

    # -- what tests do to the machine

    def mask(self, unit: str) -> None:
        """Somebody forbids it to start: `systemctl --user mask`. What runs goes on running."""
        os.makedirs(self.directories[0], exist_ok=True)
        os.symlink(_NOTHING, f"{self.directories[0]}/{unit}")
        self._read_again()

    def become_ready(self, unit: str) -> None:
        """A start that nobody waits for any more comes to its good end."""
        held = self._held[unit]
        text = held.behaviour.status_text
        held.state = replace(held.state, activity=Activity.ACTIVE, sub="running", status_text=text)
        self.when_ready(unit)

    def end(self, unit: str, *, exit_status: int = 0, by_signal: bool = False, result: str | None = None) -> None:
        """The program of the unit ends by itself, or by a signal; nothing brings it back."""
        clean = exit_status == 0
        verdict = result or ("success" if clean else "signal" if by_signal else "exit-code")
        self._set_down(unit, verdict, exit_status, by_signal)

    def bring_back(self, unit: str, *, result: str = "signal", exit_status: int = 9, by_signal: bool = True) -> None:
        """The program ended, and the manager has started it again."""
        self._set_down(unit, result, exit_status, by_signal)
        restarts = self._held[unit].state.restarts + 1
        self._set_up(unit)
        self._held[unit].state = replace(self._held[unit].state, restarts=restarts)

    # -- the port

    @property
    def name(self) -> str:
        """What people call it."""
        return "systemd"

    def version(self) -> int:
        """What was given to the constructor."""
        self._answer("version")
        return self._version

    def state(self, unit: str) -> UnitState:
        """The unit as it is now."""
        self._answer("state", unit)
        return self._state(unit)

    def reload(self) -> None:
        """Read the unit files again."""
        self._answer("reload")
        self._read_again()

    def enable(self, unit: str) -> None:
        """Link it among what the manager starts with."""
        self._answer("enable", unit)
        state = self._state(unit)
        if state.masked:
            raise refused(f"enable {unit}", f"Unit file {self.directories[0]}/{unit} is masked.")
        if not self._path(unit):
            raise refused(f"enable {unit}", f"Unit file {unit} does not exist.")
        if not _installs(self._files(unit)):
            raise refused(f"enable {unit}", "its unit file has no [Install] section that says what wants it")
        wants = f"{self.directories[0]}/{_WANTS}"
        os.makedirs(wants, exist_ok=True)
        if not os.path.lexists(f"{wants}/{unit}"):
            os.symlink(self._path(unit), f"{wants}/{unit}")
        self._read_again()

    def disable(self, unit: str) -> None:
        """Remove that link."""
        self._answer("disable", unit)
        wants = f"{self.directories[0]}/{_WANTS}"
        if os.path.lexists(f"{wants}/{unit}"):
            os.unlink(f"{wants}/{unit}")
            if not os.listdir(wants):
                os.rmdir(wants)
        self._read_again()

    def start(self, unit: str, patience: Duration) -> JobEnd:
        """Start it, as its behaviour says."""
        self._answer("start", unit)
        self._refuse_what_cannot_start("start", unit)
        if self._state(unit).activity is Activity.ACTIVE:
            return JobEnd.DONE
        if self._state(unit).activity is not Activity.ACTIVATING:
            self._set_up(unit)
        return self._come_up(unit, patience)

    def stop(self, unit: str, patience: Duration) -> JobEnd:
        """Stop it; it takes as long as its behaviour says."""
        self._answer("stop", unit)
        state = self._state(unit)
        if state.activity in _DOWN:
            return JobEnd.DONE
        if self._held[unit].behaviour.stop_takes > patience:
            self._held[unit].state = replace(state, activity=Activity.DEACTIVATING, sub="stop-sigterm")
            return JobEnd.PENDING
        self._set_down(unit, "success", 0, by_signal=False)
        return _seen(JobEnd.DONE, patience)

    def restart(self, unit: str, patience: Duration) -> JobEnd:
        """Stop it if it runs, and start it."""
        self._answer("restart", unit)
        self._refuse_what_cannot_start("restart", unit)
        state = self._state(unit)
        if state.activity not in _DOWN:
            if self._held[unit].behaviour.stop_takes > patience:
                self._held[unit].state = replace(state, activity=Activity.DEACTIVATING, sub="stop-sigterm")
                return JobEnd.PENDING
            self._set_down(unit, "success", 0, by_signal=False)
        self._set_up(unit)
        return self._come_up(unit, patience)

    def kill(self, unit: str, number: int) -> bool:
        """Remember the signal; a behaviour may have it end the program."""
        self._answer("kill", unit)
        if self._state(unit).main_pid is None:
            return False
        self.signals.append((unit, number))
        if number == signal.SIGKILL:
            self._set_down(unit, "signal", number, by_signal=True)
        elif number in self._held[unit].behaviour.ends_on:
            self._set_down(unit, "success", 0, by_signal=False)
        return True

    def reset_failed(self, unit: str) -> None:
        """Forget that it failed."""
        self._answer("reset_failed", unit)
        if self._state(unit).activity is Activity.FAILED:
            del self._held[unit]

    # -- inside

    def _answer(self, method: str, unit: str | None = None) -> None:
        """What comes before every call: who asked, and whether the manager is there, listens and is willing."""
        asked = method if unit is None else f"{method} {unit}"
        self.asked.append((method, unit or ""))
        if unit is not None:
            check_unit_name(unit)
        if self.unreachable is not None:
            raise unreachable(self.unreachable, Place("ann", 4242), f"it is {self.unreachable.value}")
        if self.silent:
            raise silent(asked, _PATIENCE)
        if method in self.refusals:
            raise refused(asked, self.refusals[method])

    def _refuse_what_cannot_start(self, verb: str, unit: str) -> None:
        match self._state(unit).load:
            case "masked":
                raise refused(f"{verb} {unit}", f"Unit {unit} is masked.")
            case "not-found":
                raise refused(f"{verb} {unit}", f"Unit {unit} not found.")
            case "bad-setting":
                raise refused(f"{verb} {unit}", f"Unit {unit} has a bad unit file setting.")

    def _set_up(self, unit: str) -> None:
        held = self._held[unit]
        held.behaviour = self.behaviours.get(unit, Behaviour())
        held.state = replace(
            held.state,
            activity=Activity.ACTIVATING,
            sub="start",
            main_pid=self.next_pid(),
            restarts=0,
            result="success",
            exit_status=None,
            by_signal=False,
        )

    def _come_up(self, unit: str, patience: Duration) -> JobEnd:
        """How far a program that has been started comes within the patience."""
        program = self._held[unit].behaviour
        if program.exit_status is not None:
            self._set_down(unit, "exit-code" if program.exit_status else "protocol", program.exit_status, False)
            return _seen(JobEnd.FAILED, patience)
        if program.ready_after is not None and program.ready_after <= patience:
            self.become_ready(unit)
            return _seen(JobEnd.DONE, patience)
        if program.ready_after is None and program.start_timeout <= patience:
            self._set_down(unit, "timeout", signal.SIGTERM, True)
            return _seen(JobEnd.FAILED, patience)
        return JobEnd.PENDING

    def _set_down(self, unit: str, result: str, exit_status: int, by_signal: bool) -> None:
        failed = result != "success"
        held = self._held[unit]
        held.state = replace(
            held.state,
            activity=Activity.FAILED if failed else Activity.INACTIVE,
            sub="failed" if failed else "dead",
            main_pid=None,
            result=result,
            exit_status=exit_status,
            by_signal=by_signal,
            status_text="",
        )

    def _state(self, unit: str) -> UnitState:
        """A unit that does nothing and that nothing wants is forgotten, and so is read again when it is asked for."""
        held = self._held.get(unit)
        if held is None or (held.state.activity is Activity.INACTIVE and not held.state.enabled):
            held = _Unit(self._files(unit), _NEW)
            self._held[unit] = held
            self._tell_files(unit, held)
        return replace(held.state, needs_reload=self._files(unit) != held.read)

    def _read_again(self) -> None:
        for unit, held in self._held.items():
            held.read = self._files(unit)
            self._tell_files(unit, held)

    def _tell_files(self, unit: str, held: _Unit) -> None:
        """Put into the state what its files say."""
        fragment = self._path(unit)
        link = f"{self.directories[0]}/{_WANTS}/{unit}"
        if fragment and (os.path.realpath(fragment) == _NOTHING or os.path.getsize(fragment) == 0):
            load = file = "masked"
        elif not fragment:
            load, file = "not-found", ""
        else:
            load = "loaded" if _runs_one_program(held.read) else "bad-setting"
            file = "enabled" if os.path.lexists(link) else "disabled" if _installs(held.read) else "static"
        drop_ins = tuple(path for path, _ in held.read if path != fragment)
        held.state = replace(held.state, load=load, file=file, fragment=fragment, drop_ins=drop_ins)

    def _path(self, unit: str) -> str:
        """Its unit file: that of the first directory that has one; empty when none has."""
        paths = (f"{directory}/{unit}" for directory in self.directories)
        return next((path for path in paths if os.path.exists(path)), "")

    def _files(self, unit: str) -> tuple[tuple[str, bytes], ...]:
        """Its unit file and then its drop-ins, by name, each with its content."""
        drop_ins = {
            name: f"{directory}/{unit}.d/{name}"
            for directory in reversed(self.directories)
            for name in _conf_files(f"{directory}/{unit}.d")
        }
        paths = [self._path(unit), *(drop_ins[name] for name in sorted(drop_ins))]
        return tuple((path, _content(path)) for path in paths if os.path.exists(path))


_NEW: Final = UnitState(
    load="not-found",
    file="",
    activity=Activity.INACTIVE,
    sub="dead",
    fragment="",
    drop_ins=(),
    needs_reload=False,
    main_pid=None,
    restarts=0,
    result="success",
    exit_status=None,
    status_text="",
)


def _seen(end: JobEnd, patience: Duration) -> JobEnd:
    """Who does not wait does not see the end."""
    return end if patience > 0 else JobEnd.PENDING


def _conf_files(directory: str) -> list[str]:
    return [name for name in os.listdir(directory) if name.endswith(".conf")] if os.path.isdir(directory) else []


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _runs_one_program(files: tuple[tuple[str, bytes], ...]) -> bool:
    """Whether a service has a program, and no more than one: otherwise its file, or a drop-in of it, is bad."""
    programs: list[bytes] = []
    for line in b"\n".join(content for _, content in files).split(b"\n"):
        key, _, value = line.strip().partition(b"=")
        if key == b"ExecStart":
            programs = [*programs, value] if value else []
    return not files[0][0].endswith(".service") or len(programs) == 1


def _installs(files: tuple[tuple[str, bytes], ...]) -> bool:
    """Whether a unit file says what wants it."""
    lines = [line.strip() for _, content in files for line in content.split(b"\n")]
    return b"[Install]" in lines and any(line.startswith((b"WantedBy=", b"Alias=", b"Also=")) for line in lines)
