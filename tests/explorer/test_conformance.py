"""Schedules of the explorer, step by step with real processes on real file systems: every answer is the same.

So what the simulated kernel says of flock, rename, unlink, fork and death, in these orders, the real one says too.
"""

import os
from collections.abc import Iterator
from contextlib import nullcontext
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from ankita_agent.testing.explorer import DIES, FIRST, LOCAL, Move, answer_of
from ankita_agent.testing.kernel import Kernel, Kind
from ankita_agent.testing.programs import Place
from ankita_agent.testing.system_calls import Facts
from tests.contract.test_files_contract import tmpfs
from tests.explorer.actors import STATE
from tests.explorer.stepping import Stepper, started
from tests.explorer.worlds import QUICK, World

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd_open(2)")


class Replay:
    """One schedule, in the simulated kernel and on a real file system at once."""

    def __init__(self, world: World, state: Path) -> None:
        self.kernel: Kernel = world.kernel
        self.answers = 0
        self._state = state
        self._inodes: dict[int, int] = {}
        self._places: dict[int, Place] = {}
        self._real: dict[int, Stepper] = {}
        self._spare: dict[int, Connection] = {}
        _lay_out(self.kernel, self.kernel.find(STATE), state)
        for pid, program in enumerate(world.programs().values(), FIRST):
            self._places[pid] = Place(program, pid)
            self._real[pid], self._spare[pid] = started(program, pid, str(state))

    def make_ready(self) -> None:
        """Bring each program, in turn, to where it is ready."""
        for pid in list(self._places):
            while (call := self._places[pid].call) is not None:
                self._step(pid)
                if call.name == "ready":
                    break
            self._follow(pid)

    def make(self, move: Move) -> None:
        """Make one move in both."""
        if move.how == DIES:
            self._real[move.pid].kill()
            self._end(move.pid)
            return
        self._step(move.pid)
        self._follow(move.pid)

    def end(self) -> None:
        """Whatever still runs is over."""
        for stepper in self._real.values():
            stepper.end()
        for spare in self._spare.values():
            spare.close()

    def same_files(self) -> bool:
        """Whether the same names hold the same contents in both."""
        return _contents(self.kernel, self.kernel.find(STATE), "") == dict(_files(self._state, ""))

    def _follow(self, pid: int) -> None:
        while pid in self._places and (call := self._places[pid].call) is not None and call.name in LOCAL:
            self._step(pid)

    def _step(self, pid: int) -> None:
        place, real = self._places[pid], self._real[pid]
        call = place.call
        assert call is not None
        assert real.call == call, f"{pid} does something else"
        self.kernel, answer = answer_of(self.kernel, pid, call)
        really = real.answer(answer)
        self.answers += 1
        assert self._same(answer, really), f"{pid}: {call}: {really}, and simulated {answer}"
        self._places[pid] = place.answered(answer)
        if call.name == "fork":
            self._places[answer] = place.answered(0)
            self._real[answer] = Stepper(self._spare[pid], answer)
        if self._places[pid].call is None:
            assert real.ended
            assert self._places[pid].fault is None
            self._end(pid)

    def _end(self, pid: int) -> None:
        self.kernel = self.kernel.without_processes((pid,))
        del self._places[pid]

    def _same(self, simulated: object, real: object) -> bool:
        """Equal; inode numbers are equal when one always stands for the other, for as long as the file is."""
        self._inodes = {here: there for here, there in self._inodes.items() if here in self.kernel.inodes}
        if not isinstance(simulated, Facts) or not isinstance(real, Facts):
            return simulated == real
        there = self._inodes.setdefault(simulated.number, real.number)
        alone = list(self._inodes.values()).count(there) == 1
        return alone and simulated._replace(number=there) == real


def _lay_out(kernel: Kernel, directory: int, path: Path) -> None:
    path.mkdir(0o700)
    for name in kernel.names_in(directory):
        inode = kernel.named(directory, name)
        if kernel.inodes[inode].kind is Kind.DIRECTORY:
            _lay_out(kernel, inode, path / name)
        else:
            (path / name).touch(0o600)
            (path / name).write_bytes(kernel.inodes[inode].content)


def _contents(kernel: Kernel, directory: int, prefix: str) -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {}
    for name in kernel.names_in(directory):
        inode = kernel.named(directory, name)
        below = kernel.inodes[inode].kind is Kind.DIRECTORY
        found[prefix + name] = None if below else kernel.inodes[inode].content
        if below:
            found |= _contents(kernel, inode, f"{prefix}{name}/")
    return found


def _files(path: Path, prefix: str) -> Iterator[tuple[str, bytes | None]]:
    for each in path.iterdir():
        yield prefix + each.name, None if each.is_dir() else each.read_bytes()
        if each.is_dir():
            yield from _files(each, f"{prefix}{each.name}/")


def replayed(name: str, seed: int, path: Path) -> int:
    """Replay one way through a world, chosen by the seed; how many answers were compared."""
    world = QUICK[name]
    way = world.explorer().schedule(seed)
    replay = Replay(world, path / f"state-{seed}")
    try:
        if world.bounds.ready:
            replay.make_ready()
        for move in way:
            replay.make(move)
        assert replay.same_files()
        return replay.answers
    finally:
        replay.end()


CHOSEN = [
    "three contenders, two deaths",
    "owner, standby and contender, two deaths",
    "two that begin together in a new directory, two deaths",
    "two contenders and a cleaner, a death",
    "agent, standby and one who moves the directory away, a death",
    "agent, standby and one who removes the guard, two deaths",
    "two contenders and a program that knows only the claim, a death",
    "an owner that forks, a contender and a death",
]


@pytest.mark.parametrize("disk", ["plain", pytest.param("tmpfs", marks=pytest.mark.needs("mount"))])
@pytest.mark.parametrize("name", CHOSEN)
def test_real_processes_on_a_real_disk_answer_as_the_simulated_ones_do(name: str, disk: str, tmp_path: Path) -> None:
    with tmpfs(tmp_path) if disk == "tmpfs" else nullcontext(tmp_path) as path:
        assert sum(replayed(name, seed, path) for seed in range(8)) > 300
