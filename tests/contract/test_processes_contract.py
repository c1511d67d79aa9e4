"""What every Processes promises, asked of the real machine and of the fake one."""

import ctypes
import fcntl
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from ankita_agent.adapters.posix_processes import PosixProcesses
from ankita_agent.core.rows import ProcessId
from ankita_agent.ports.processes import Ended, Launch, LaunchFailed, Observed, Processes
from ankita_agent.testing.processes import FakeProcesses, Program
from tests.real.waiting import childless, until


def locked(path: Path) -> int:
    """A new file, held with flock(2)."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


class World(Protocol):
    """A machine, and how to make things happen on it. `lock` is inherited by all that is started."""

    processes: Processes
    lock: int

    def waiting(self) -> ProcessId:
        """Start a process that waits until it is signalled."""
        ...

    def deaf(self) -> ProcessId:
        """Start one that ignores SIGTERM."""
        ...

    def exiting(self, code: int) -> ProcessId:
        """Start one that exits at once."""
        ...

    def parent(self, *, new_session: bool) -> tuple[ProcessId, int]:
        """Start one with a child that waits, in a session of its own or not."""
        ...

    def left_behind(self) -> tuple[ProcessId, int]:
        """One that has ended, and a child of it with another session, no variables and what it inherited."""
        ...

    def missing(self) -> None:
        """Try to start a program that is not there."""
        ...

    def send(self, pid: int, number: int) -> None:
        """Somebody else signals one process."""
        ...

    def until(self, condition: Callable[[], object]) -> None:
        """Let the machine go on until this holds."""
        ...


class FakeWorld:
    """The fake machine, where everything has happened when a call returns."""

    def __init__(self, directory: Path) -> None:
        self.machine = FakeProcesses(
            {"deaf": Program(ignores=frozenset({signal.SIGTERM})), "missing": Program(fault="there is none")}
        )
        self.processes: Processes = self.machine
        self._output = os.open(directory / "output", os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self.lock = locked(directory / "lock")

    def _start(self, name: str) -> ProcessId:
        launch = Launch((name,), {"ANKITA_FIRE": "1"}, "/", self._output, (self.lock,))
        return self.processes.identify(self.processes.start(launch))

    def waiting(self) -> ProcessId:
        return self._start("waiting")

    def deaf(self) -> ProcessId:
        return self._start("deaf")

    def exiting(self, code: int) -> ProcessId:
        process = self._start("exiting")
        self.machine.end(process.pid, exit_code=code)
        return process

    def parent(self, *, new_session: bool) -> tuple[ProcessId, int]:
        process = self._start("parent")
        return process, self.machine.fork(process.pid, new_session=new_session)

    def left_behind(self) -> tuple[ProcessId, int]:
        process, child = self.parent(new_session=True)
        self.machine.forget_mark(child)
        self.machine.end(process.pid)
        return process, child

    def missing(self) -> None:
        self._start("missing")

    def send(self, pid: int, number: int) -> None:
        self.machine.signal(pid, number)

    def until(self, condition: Callable[[], object]) -> None:
        assert condition()

    def close(self) -> None:
        os.close(self._output)
        os.close(self.lock)


class RealWorld:
    """This machine."""

    def __init__(self, directory: Path) -> None:
        self.processes: Processes = PosixProcesses(umask=0o022)
        self._path = directory / "output"
        self._output = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self._started: list[ProcessId] = []
        self.lock = locked(directory / "lock")

    def _start(self, *argv: str) -> ProcessId:
        launch = Launch(argv, {"PATH": "/usr/bin:/bin", "ANKITA_FIRE": "1"}, "/", self._output, (self.lock,))
        process = self.processes.identify(self.processes.start(launch))
        self._started.append(process)
        return process

    def _word(self) -> str:
        until(lambda: "\n" in self._path.read_text())
        return self._path.read_text().split()[0]

    def waiting(self) -> ProcessId:
        return self._start("sleep", "1000")

    def deaf(self) -> ProcessId:
        process = self._start("sh", "-c", "trap '' TERM; echo ready; exec sleep 1000")
        self._word()
        return process

    def exiting(self, code: int) -> ProcessId:
        return self._start("sh", "-c", f"exit {code}")

    def parent(self, *, new_session: bool) -> tuple[ProcessId, int]:
        how = "setsid " if new_session else ""
        process = self._start("sh", "-c", f"{how}sh -c 'echo $$; exec sleep 1000' & wait")
        return process, int(self._word())

    def left_behind(self) -> tuple[ProcessId, int]:
        process = self._start("sh", "-c", "(setsid env -i sh -c 'echo $$; exec sleep 1000' &)")
        return process, int(self._word())

    def missing(self) -> None:
        self._start("no-such-program")

    def send(self, pid: int, number: int) -> None:
        os.kill(pid, number)

    def until(self, condition: Callable[[], object]) -> None:
        until(condition)

    def close(self) -> None:
        for process in self._started:
            self.processes.signal_family(process, signal.SIGKILL)
        until(childless, "no child left, zombie or not")
        os.close(self._output)
        os.close(self.lock)
        ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)


@pytest.fixture(params=["fake", "real"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if request.param == "fake":
        fake = FakeWorld(tmp_path)
        yield fake
        fake.close()
        return
    if sys.platform != "linux":
        pytest.skip("needs /proc and a subreaper")
    real = RealWorld(tmp_path)
    yield real
    real.close()


def reaped(world: World) -> list[Ended]:
    """Everything that is reaped until something is."""
    ended: list[Ended] = []

    def some() -> bool:
        ended.extend(world.processes.reap())
        return bool(ended)

    world.until(some)
    return ended


@pytest.mark.parametrize("code", [0, 3, 255])
def test_an_exit_status_is_reaped_once(world: World, code: int) -> None:
    process = world.exiting(code)
    assert reaped(world) == [Ended(process.pid, code, None)]
    assert world.processes.reap() == []


def test_the_signal_that_ended_a_child_is_told(world: World) -> None:
    process = world.waiting()
    world.send(process.pid, signal.SIGKILL)
    assert reaped(world) == [Ended(process.pid, None, signal.SIGKILL)]


def test_what_cannot_be_started_is_told_and_there_is_no_process(world: World) -> None:
    with pytest.raises(LaunchFailed):
        world.missing()
    assert world.processes.reap() == []


def test_every_identity_is_of_this_boot_and_namespace_and_its_own(world: World) -> None:
    here, one, two = world.processes.this_process(), world.waiting(), world.waiting()
    assert len({here, one, two}) == 3
    assert {(each.boot, each.namespace) for each in (one, two)} == {(here.boot, here.namespace)}
    assert world.processes.observe(here) is Observed.RUNNING


def test_a_process_is_running_then_stopped_then_gone_already_as_a_zombie(world: World) -> None:
    process = world.waiting()
    assert world.processes.observe(process) is Observed.RUNNING
    world.send(process.pid, signal.SIGSTOP)
    world.until(lambda: world.processes.observe(process) is Observed.STOPPED)
    world.send(process.pid, signal.SIGKILL)
    world.until(lambda: world.processes.observe(process) is Observed.GONE)
    reaped(world)
    assert world.processes.observe(process) is Observed.GONE


@pytest.mark.parametrize(
    ("change", "observed"),
    [
        ({"ticks": 1}, Observed.GONE),
        ({"boot": "another"}, Observed.GONE),
        ({"namespace": 1}, Observed.UNKNOWN),
        ({"ticks": 0}, Observed.UNKNOWN),
    ],
)
def test_only_the_very_same_process_is_seen_and_signalled(
    world: World, change: dict[str, int | str], observed: Observed
) -> None:
    process = world.waiting()
    other = replace(process, **change)  # type: ignore[arg-type]
    assert world.processes.observe(other) is observed
    assert not world.processes.signal_recorded(other, signal.SIGKILL)
    assert world.processes.observe(process) is Observed.RUNNING
    assert world.processes.signal_recorded(process, signal.SIGKILL)
    assert reaped(world) == [Ended(process.pid, None, signal.SIGKILL)]


@pytest.mark.parametrize("new_session", [False, True])
def test_a_child_belongs_to_the_family_while_its_parent_lives_and_after(world: World, new_session: bool) -> None:
    process, child = world.parent(new_session=new_session)
    assert set(world.processes.family(process)) >= {process.pid, child}
    world.send(process.pid, signal.SIGKILL)
    reaped(world)
    world.until(lambda: world.processes.family(process) == [child])
    world.send(child, signal.SIGKILL)
    assert [ended.pid for ended in reaped(world)] == [child]
    assert world.processes.family(process) == []


@pytest.mark.parametrize("new_session", [False, True])
def test_an_orphan_is_found_by_who_never_looked_before(world: World, new_session: bool) -> None:
    process, child = world.parent(new_session=new_session)
    world.send(process.pid, signal.SIGKILL)
    reaped(world)
    assert world.processes.families([process]) == {process: [child]}


def test_an_orphan_without_session_and_variables_is_found_by_the_lock_it_inherited(world: World) -> None:
    process, child = world.left_behind()
    assert reaped(world) == [Ended(process.pid, 0, None)]
    assert world.processes.family(process) == [child]
    world.processes.signal_family(process, signal.SIGKILL)
    assert [ended.pid for ended in reaped(world)] == [child]
    assert world.processes.family(process) == []


def test_who_keeps_a_lock_held_is_told_and_who_merely_opened_the_file_is_not(world: World, tmp_path: Path) -> None:
    assert world.processes.holders(world.lock) == []
    process, child = world.parent(new_session=True)
    opened = os.open(tmp_path / "lock", os.O_RDWR)
    found = world.processes.holders(opened)
    os.close(opened)
    assert {holder.process.pid for holder in found} == {process.pid, child}
    groups = {holder.process.pid: holder.group for holder in found}
    assert groups == {process.pid: process.pid, child: child}
    assert process in [holder.process for holder in found]
    assert all(holder.name and holder.taker == world.processes.this_process().pid for holder in found)


def test_one_process_is_signalled_only_while_it_is_that_very_one(world: World) -> None:
    process = world.waiting()
    world.processes.signal_one(replace(process, ticks=process.ticks + 1), signal.SIGKILL)
    assert world.processes.observe(process) is Observed.RUNNING
    world.processes.signal_one(process, signal.SIGKILL)
    assert reaped(world) == [Ended(process.pid, None, signal.SIGKILL)]
    world.processes.signal_one(process, signal.SIGKILL)


def test_few_descriptors_are_allowed_and_more_than_any_kernel_gives_are_not(world: World) -> None:
    assert world.processes.allow_descriptors(10)
    assert not world.processes.allow_descriptors(10**10)


def test_two_families_are_told_apart(world: World) -> None:
    one, two = world.waiting(), world.waiting()
    assert world.processes.families([one, two]) == {one: [one.pid], two: [two.pid]}


def test_a_family_is_signalled_also_beyond_its_group_and_after_its_leader(world: World) -> None:
    process, child = world.parent(new_session=True)
    world.processes.signal_family(process, signal.SIGKILL)
    pids: set[int] = set()

    def nobody_left() -> bool:
        pids.update(ended.pid for ended in world.processes.reap())
        return not world.processes.family(process)

    world.until(nobody_left)
    assert pids == {process.pid, child}


def test_a_group_is_signalled_and_nothing_beyond_it(world: World) -> None:
    process, child = world.parent(new_session=True)
    world.processes.signal_group(process, signal.SIGKILL)
    reaped(world)
    world.until(lambda: world.processes.family(process) == [child])
    world.processes.signal_group(process, signal.SIGKILL)
    assert world.processes.family(process) == [child]


def test_a_deaf_process_survives_sigterm_and_not_sigkill(world: World) -> None:
    process = world.deaf()
    world.processes.signal_group(process, signal.SIGTERM)
    assert world.processes.family(process) == [process.pid]
    world.processes.signal_group(process, signal.SIGKILL)
    assert reaped(world) == [Ended(process.pid, None, signal.SIGKILL)]


def test_sigterm_waits_for_a_stopped_process_to_go_on(world: World) -> None:
    process = world.waiting()
    world.send(process.pid, signal.SIGSTOP)
    world.until(lambda: world.processes.observe(process) is Observed.STOPPED)
    world.processes.signal_family(process, signal.SIGTERM)
    assert world.processes.observe(process) is Observed.STOPPED
    world.processes.signal_family(process, signal.SIGCONT)
    assert reaped(world) == [Ended(process.pid, None, signal.SIGTERM)]


def test_a_forgotten_attempt_has_no_family_and_gets_no_signals(world: World) -> None:
    process = world.waiting()
    world.processes.forget(process)
    world.processes.forget(process)
    assert world.processes.family(process) == []
    world.processes.signal_family(process, signal.SIGKILL)
    assert world.processes.observe(process) is Observed.RUNNING
    world.send(process.pid, signal.SIGKILL)
    reaped(world)


def test_a_signal_to_who_has_gone_is_no_error(world: World) -> None:
    process = world.exiting(0)
    reaped(world)
    world.processes.signal_group(process, signal.SIGTERM)
    world.processes.signal_family(process, signal.SIGTERM)
    assert not world.processes.signal_recorded(process, signal.SIGTERM)
