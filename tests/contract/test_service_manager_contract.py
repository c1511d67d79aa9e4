"""What every ServiceManager promises, asked of the fake and, of a real systemd in the rig, through both adapters."""

import itertools
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, Final, Protocol

import pytest

from ankita_agent.core.errors import ManagerRefused, ManagerSilent
from ankita_agent.core.instants import MILLISECOND, SECOND, Duration
from ankita_agent.core.service import Activity, JobEnd
from ankita_agent.ports.service_manager import ServiceManager
from ankita_agent.testing.service_manager import Behaviour, FakeServiceManager
from tests.real.waiting import until
from tests.rig.guest import Guest
from tests.rig.worker import Worker

LONG: Final = Duration(20 * SECOND)
SHORT: Final = Duration(300 * MILLISECOND)
NOT_AT_ALL: Final = Duration(0)
DOWN: Final = (Activity.INACTIVE, Activity.FAILED)


class Kind(Enum):
    """A program as a unit file starts it, and as the fake plays it."""

    READY = "Type=notify\nNotifyAccess=all\nExecStart=sh -c 'systemd-notify --ready --status=serving; exec sleep 1000'"
    NEVER_READY = "Type=notify\nExecStart=sleep 1000"
    TOO_LATE = "Type=notify\nTimeoutStartSec=1\nExecStart=sleep 1000"
    FAILS = "Type=notify\nExecStart=sh -c 'exit 3'"
    DEAF = (
        "Type=notify\nNotifyAccess=all\nExecStart=sh -c "
        "'trap \"\" TERM; systemd-notify --ready --status=serving; while :; do sleep 0.1; done'"
    )
    BAD = "Type=oneshot"


PLAYED: Final = {
    Kind.READY: Behaviour(status_text="serving"),
    Kind.NEVER_READY: Behaviour(ready_after=None),
    Kind.TOO_LATE: Behaviour(ready_after=None, start_timeout=Duration(SECOND)),
    Kind.FAILS: Behaviour(exit_status=3),
    Kind.DEAF: Behaviour(stop_takes=LONG, ends_on=frozenset([signal.SIGINT]), status_text="serving"),
    Kind.BAD: Behaviour(),
}


class World(Protocol):
    """A user's home with units, and the manager to ask. `patient` makes one that waits so long for an answer."""

    manager: ServiceManager

    def version(self) -> int: ...

    def write(self, unit: str, kind: Kind, extra: str = "") -> str:
        """Put the unit's file there, and its path; `extra` is what it says besides."""
        ...

    def write_drop_in(self, unit: str, name: str) -> str: ...

    def remove(self, unit: str) -> None:
        """Remove its file."""
        ...

    def mask(self, unit: str) -> None: ...

    def frozen(self) -> AbstractContextManager[ServiceManager]:
        """A block in which the manager stands still; the one to ask in it has little patience."""
        ...


INSTALLS: Final = "[Install]\nWantedBy=default.target\n"


class FakeWorld:
    def __init__(self, home: Path) -> None:
        self._own, self._units = home / "config", home / "units"
        self._units.mkdir()
        self._fake = FakeServiceManager([str(self._own), str(self._units)])
        self.manager: ServiceManager = self._fake

    def version(self) -> int:
        return 252

    def write(self, unit: str, kind: Kind, extra: str = "") -> str:
        self._fake.behaviours[unit] = PLAYED[kind]
        (self._units / unit).write_text(f"[Service]\n{kind.value}\n{extra}")
        return str(self._units / unit)

    def write_drop_in(self, unit: str, name: str) -> str:
        path = self._units / f"{unit}.d" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("[Service]\nEnvironment=A=1\n")
        return str(path)

    def remove(self, unit: str) -> None:
        (self._units / unit).unlink()

    def mask(self, unit: str) -> None:
        self._fake.mask(unit)

    @contextmanager
    def frozen(self) -> Iterator[ServiceManager]:
        self._fake.silent = True
        yield self._fake
        self._fake.silent = False


CLEAN: Final = """
units=$1 own=.config/systemd/user; shift
for unit; do rm -rf "$units/$unit" "$units/$unit.d" "$own/$unit" "$own/default.target.wants/$unit"; done
systemctl --user kill --signal=KILL -- "$@"
systemctl --user stop -- "$@"
systemctl --user reset-failed -- "$@"
systemctl --user daemon-reload
"""


class RealWorld:
    """Cleans up after itself, so that many tests can share a guest."""

    def __init__(self, guest: Guest, worker: Worker, adapter: str) -> None:
        self._guest, self._units = guest, f"{guest.home}/.local/share/systemd/user"
        self._make: Callable[[Duration], ServiceManager] = lambda patience: worker.make(
            ServiceManager,  # type: ignore[type-abstract]
            f"tests.service_managers:{adapter}",
            patience,
        )
        self._written: set[str] = set()
        self.manager = self._make(LONG)

    def version(self) -> int:
        return int(self._guest.ask("systemctl", "--version").split()[1])

    def write(self, unit: str, kind: Kind, extra: str = "") -> str:
        self._written.add(unit)
        self._guest.write(f"{self._units}/{unit}", f"[Service]\n{kind.value}\n{extra}")
        return f"{self._units}/{unit}"

    def write_drop_in(self, unit: str, name: str) -> str:
        self._guest.write(f"{self._units}/{unit}.d/{name}", "[Service]\nEnvironment=A=1\n")
        return f"{self._units}/{unit}.d/{name}"

    def remove(self, unit: str) -> None:
        self._guest.ask("rm", f"{self._units}/{unit}")

    def mask(self, unit: str) -> None:
        self._guest.ask("systemctl", "--user", "mask", "--", unit)

    @contextmanager
    def frozen(self) -> Iterator[ServiceManager]:
        with self._guest.frozen_manager():
            yield self._make(Duration(100 * MILLISECOND))

    def clean(self) -> None:
        """Leave nothing of these units behind, neither files nor processes nor failures."""
        if self._written:
            self._guest.shell(CLEAN, self._units, *self._written)


@pytest.fixture(scope="module")
def worker(shared_guest: Guest) -> Iterator[Worker]:
    with Worker(shared_guest) as worker:
        yield worker


@pytest.fixture(
    params=[
        "fake",
        pytest.param("systemctl", marks=pytest.mark.needs("systemd")),
        pytest.param("pystemd", marks=pytest.mark.needs("pystemd")),
    ]
)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if request.param == "fake":
        yield FakeWorld(tmp_path)
        return
    guest, worker = request.getfixturevalue("shared_guest"), request.getfixturevalue("worker")
    real = RealWorld(guest, worker, request.param)
    yield real
    real.clean()


_numbers = itertools.count()


@pytest.fixture
def unit() -> str:
    """A unit that no other test knows."""
    return f"contract-{next(_numbers)}.service"


def placed(world: World, unit: str, kind: Kind, extra: str = "") -> ServiceManager:
    """The manager, knowing a unit of that kind."""
    world.write(unit, kind, extra)
    world.manager.reload()
    return world.manager


# -- what there is


def test_a_manager_tells_its_version(world: World) -> None:
    assert world.manager.version() == world.version()
    assert world.manager.name == "systemd"


def test_a_unit_that_is_not_there_is_not_found_and_does_nothing(world: World, unit: str) -> None:
    state = world.manager.state(unit)
    assert (state.load, state.file, state.fragment, state.drop_ins) == ("not-found", "", "", ())
    assert (state.activity, state.main_pid, state.exit_status) == (Activity.INACTIVE, None, None)
    assert not state.masked
    assert not state.enabled


def test_a_unit_with_a_file_is_loaded_from_it_and_starts_with_nothing(world: World, unit: str) -> None:
    path = world.write(unit, Kind.READY, INSTALLS)
    world.manager.reload()
    state = world.manager.state(unit)
    assert (state.load, state.file, state.fragment) == ("loaded", "disabled", path)
    assert (state.activity, state.sub, state.result) == (Activity.INACTIVE, "dead", "success")


def test_the_drop_ins_of_a_unit_are_told_by_their_paths_whatever_characters_are_in_them(
    world: World, unit: str
) -> None:
    world.write(unit, Kind.READY)
    names = ["10-plain.conf", "20 a 'space' and \"quotes\".conf", "30-$HOME-`x`-\\-é.conf"]
    paths = [world.write_drop_in(unit, name) for name in names]
    world.manager.reload()
    assert list(world.manager.state(unit).drop_ins) == paths


def test_a_unit_whose_file_changed_needs_a_reload_until_it_had_one(world: World, unit: str) -> None:
    manager = placed(world, unit, Kind.READY)
    manager.start(unit, LONG)
    assert not manager.state(unit).needs_reload
    world.write(unit, Kind.READY, "Environment=CHANGED=1\n")
    assert manager.state(unit).needs_reload
    manager.reload()
    assert not manager.state(unit).needs_reload


def test_a_unit_that_runs_goes_on_without_its_file_and_can_be_stopped(world: World, unit: str) -> None:
    manager = placed(world, unit, Kind.READY)
    manager.start(unit, LONG)
    world.remove(unit)
    manager.reload()
    assert (manager.state(unit).load, manager.state(unit).activity) == ("not-found", Activity.ACTIVE)
    assert manager.stop(unit, LONG) is JobEnd.DONE
    assert manager.state(unit).activity is Activity.INACTIVE


# -- whether it starts with the manager


def test_enabling_and_disabling_can_be_repeated(world: World, unit: str) -> None:
    manager = placed(world, unit, Kind.READY, INSTALLS)
    for _ in range(2):
        manager.enable(unit)
        assert manager.state(unit).enabled
    for _ in range(2):
        manager.disable(unit)
        assert not manager.state(unit).enabled


def test_disabling_a_unit_that_is_not_there_does_no_harm(world: World, unit: str) -> None:
    world.manager.disable(unit)


def test_a_unit_whose_file_was_removed_can_still_be_disabled(world: World, unit: str) -> None:
    manager = placed(world, unit, Kind.READY, INSTALLS)
    manager.enable(unit)
    world.remove(unit)
    manager.disable(unit)
    world.write(unit, Kind.READY, INSTALLS)
    manager.reload()
    assert not manager.state(unit).enabled


def test_a_unit_that_is_not_there_cannot_be_enabled(world: World, unit: str) -> None:
    with pytest.raises(ManagerRefused, match=unit):
        world.manager.enable(unit)


def test_a_unit_that_does_not_say_what_wants_it_cannot_be_enabled(world: World, unit: str) -> None:
    manager = placed(world, unit, Kind.READY)
    with pytest.raises(ManagerRefused, match=r"\[Install\]"):
        manager.enable(unit)


def test_a_masked_unit_can_be_neither_started_nor_enabled(world: World, unit: str) -> None:
    manager = placed(world, unit, Kind.READY, INSTALLS)
    world.mask(unit)
    assert manager.state(unit).masked
    for refused in (
        lambda: manager.start(unit, LONG),
        lambda: manager.start(unit, NOT_AT_ALL),
        lambda: manager.restart(unit, LONG),
        lambda: manager.enable(unit),
    ):
        with pytest.raises(ManagerRefused, match="masked"):
            refused()
    assert manager.stop(unit, LONG) is JobEnd.DONE


# -- starting


def test_a_start_is_done_when_the_unit_is_ready(world: World, unit: str) -> None:
    manager = placed(world, unit, Kind.READY)
    assert manager.start(unit, LONG) is JobEnd.DONE
    state = manager.state(unit)
    assert (state.activity, state.status_text) == (Activity.ACTIVE, "serving")
    assert state.main_pid is not None


def test_a_unit_that_runs_is_not_started_again(world: World, unit: str) -> None:
    manager = placed(world, unit, Kind.READY)
    manager.start(unit, LONG)
    pid = manager.state(unit).main_pid
    assert manager.start(unit, LONG) is JobEnd.DONE
    assert manager.start(unit, NOT_AT_ALL) is JobEnd.DONE
    assert manager.state(unit).main_pid == pid


def test_the_job_of_a_unit_that_does_not_become_ready_outlasts_the_patience(world: World, unit: str) -> None:
    manager = placed(world, unit, Kind.NEVER_READY)
    assert manager.start(unit, SHORT) is JobEnd.PENDING
    state = manager.state(unit)
    assert state.activity is Activity.ACTIVATING
    assert state.main_pid is not None
    assert manager.stop(unit, LONG) is JobEnd.DONE
    assert manager.state(unit).activity in DOWN


def test_a_unit_that_is_not_ready_in_its_own_time_has_failed(world: World, unit: str) -> None:
    manager = placed(world, unit, Kind.TOO_LATE)
    assert manager.start(unit, LONG) is JobEnd.FAILED
    state = manager.state(unit)
    assert (state.activity, state.result) == (Activity.FAILED, "timeout")
    assert (state.exit_status, state.by_signal) == (signal.SIGTERM, True)


def test_a_unit_whose_program_fails_has_failed_with_its_exit_status(world: World, unit: str) -> None:
    manager = placed(world, unit, Kind.FAILS)
    assert manager.start(unit, LONG) is JobEnd.FAILED
    state = manager.state(unit)
    assert (state.activity, state.result, state.main_pid) == (Activity.FAILED, "exit-code", None)
    assert (state.exit_status, state.by_signal) == (3, False)


def test_without_patience_a_start_is_left_to_itself(world: World, unit: str) -> None:
    manager = placed(world, unit, Kind.READY)
    assert manager.start(unit, NOT_AT_ALL) is JobEnd.PENDING
    until(lambda: manager.state(unit).activity is Activity.ACTIVE)


def test_what_is_not_there_or_is_no_service_cannot_be_started(world: World, unit: str) -> None:
    for start in (world.manager.start, world.manager.restart):
        with pytest.raises(ManagerRefused, match=unit):
            start(unit, LONG)
    manager = placed(world, unit, Kind.BAD)
    assert manager.state(unit).load == "bad-setting"
    with pytest.raises(ManagerRefused, match="bad unit file"):
        manager.start(unit, LONG)


# -- stopping, restarting, signals


def test_a_stop_is_done_when_nothing_of_the_unit_runs(world: World, unit: str) -> None:
    manager = placed(world, unit, Kind.READY)
    manager.start(unit, LONG)
    assert manager.stop(unit, LONG) is JobEnd.DONE
    assert (manager.state(unit).activity, manager.state(unit).main_pid) == (Activity.INACTIVE, None)


def test_stopping_what_does_not_run_is_done_at_once(world: World, unit: str) -> None:
    assert world.manager.stop(unit, LONG) is JobEnd.DONE
    manager = placed(world, unit, Kind.READY)
    assert manager.stop(unit, LONG) is JobEnd.DONE
    assert manager.stop(unit, NOT_AT_ALL) is JobEnd.DONE


def test_a_stop_that_outlasts_the_patience_goes_on_and_a_signal_may_end_it(world: World, unit: str) -> None:
    manager = placed(world, unit, Kind.DEAF)
    manager.start(unit, LONG)
    assert manager.stop(unit, SHORT) is JobEnd.PENDING
    state = manager.state(unit)
    assert state.activity is Activity.DEACTIVATING
    assert state.main_pid is not None
    assert manager.kill(unit, signal.SIGINT)
    until(lambda: manager.state(unit).activity in DOWN)


def test_a_restart_puts_another_process_in_place(world: World, unit: str) -> None:
    manager = placed(world, unit, Kind.READY)
    manager.start(unit, LONG)
    before = manager.state(unit).main_pid
    assert manager.restart(unit, LONG) is JobEnd.DONE
    after = manager.state(unit)
    assert after.activity is Activity.ACTIVE
    assert after.main_pid not in (before, None)


def test_a_restart_starts_what_does_not_run(world: World, unit: str) -> None:
    manager = placed(world, unit, Kind.READY)
    assert manager.restart(unit, LONG) is JobEnd.DONE
    assert manager.state(unit).activity is Activity.ACTIVE


def test_no_signal_arrives_where_there_is_no_process(world: World, unit: str) -> None:
    assert not world.manager.kill(unit, signal.SIGINT)
    manager = placed(world, unit, Kind.READY)
    assert not manager.kill(unit, signal.SIGINT)


def test_a_unit_that_was_killed_tells_the_signal_until_the_failure_is_forgotten(world: World, unit: str) -> None:
    manager = placed(world, unit, Kind.READY)
    manager.start(unit, LONG)
    assert manager.kill(unit, signal.SIGKILL)
    until(lambda: manager.state(unit).activity is Activity.FAILED)
    state = manager.state(unit)
    assert (state.result, state.exit_status, state.by_signal) == ("signal", signal.SIGKILL, True)
    manager.reset_failed(unit)
    state = manager.state(unit)
    assert (state.activity, state.result, state.exit_status) == (Activity.INACTIVE, "success", None)


def test_forgetting_a_failure_that_there_is_not_does_no_harm(world: World, unit: str) -> None:
    world.manager.reset_failed(unit)
    manager = placed(world, unit, Kind.READY)
    manager.reset_failed(unit)
    manager.start(unit, LONG)
    manager.reset_failed(unit)
    assert manager.state(unit).activity is Activity.ACTIVE


# -- names, and a manager that does not answer


@pytest.mark.parametrize("odd", ["-p", "a.b_c:d", "tem@plate", "x@a\\x2db"])
def test_unusual_names_of_units_are_taken_as_they_are(world: World, unit: str, odd: str) -> None:
    name = f"{odd}-{unit}"
    manager = placed(world, name, Kind.READY)
    assert manager.start(name, LONG) is JobEnd.DONE
    assert manager.state(name).activity is Activity.ACTIVE
    assert manager.stop(name, LONG) is JobEnd.DONE


@pytest.mark.parametrize(
    "name", ["", "*.service", "a b.service", "../a.service", "/a.service", "é.service", "a", "a.conf", "a\n.service"]
)
def test_a_name_that_no_unit_can_bear_is_refused_and_not_taken_for_a_pattern(world: World, name: str) -> None:
    for _, call in calls(world.manager, name):
        with pytest.raises(ManagerRefused, match="no unit can bear that name"):
            call()


def test_a_manager_that_does_not_answer_is_silent_to_every_call_within_the_patience(world: World, unit: str) -> None:
    placed(world, unit, Kind.READY)
    with world.frozen() as manager:
        for asked, call in (*calls(manager, unit), ("version", manager.version), ("reload", manager.reload)):
            began = time.monotonic()
            with pytest.raises(ManagerSilent):
                call()
            assert time.monotonic() - began < 10, asked
    assert world.manager.start(unit, LONG) is JobEnd.DONE


def calls(manager: ServiceManager, unit: str) -> list[tuple[str, Callable[[], Any]]]:
    """Every call about a unit."""
    return [
        ("state", lambda: manager.state(unit)),
        ("enable", lambda: manager.enable(unit)),
        ("disable", lambda: manager.disable(unit)),
        ("start", lambda: manager.start(unit, LONG)),
        ("start without patience", lambda: manager.start(unit, NOT_AT_ALL)),
        ("stop", lambda: manager.stop(unit, LONG)),
        ("restart", lambda: manager.restart(unit, LONG)),
        ("kill", lambda: manager.kill(unit, signal.SIGINT)),
        ("reset_failed", lambda: manager.reset_failed(unit)),
    ]
