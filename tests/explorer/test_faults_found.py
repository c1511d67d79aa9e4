"""The explorer finds what it is there for: each fault, put into ownership or made of another protocol, is told.

A fault is a subclass of the production code that lives here, or one of the protocols that were rejected. Where the
fault is one of two halves, the other half is there as well: the sound code is explored in the same world and passes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from ankita_agent.app.owner import CLAIM, FIRED, GUARD, LIFE, TERM, Owner
from ankita_agent.ports.files import Descriptor
from ankita_agent.testing.explorer import Bounds, Watch
from tests.explorer.actors import MakeOwner, agent
from tests.explorer.watches import claims_are_whole, never_two_owners, never_two_seated, terms_grow
from tests.explorer.worlds import QUICK, USED, World, standby


class UnlinksTheGuard(Owner):
    """Tidies up when it lets go."""

    def _let_go(self) -> None:
        assert self._locks is not None
        self._files.unlink(self._locks.directory, GUARD)
        super()._let_go()


class LocksNoDirectory(Owner):
    """Thinks that the guard is enough."""

    def _take(self, lock: Callable[[Descriptor], bool]) -> bool:
        return super()._take(lambda descriptor: self._files.facts(descriptor).directory or lock(descriptor))


class UnlinksTheOnlyLock(UnlinksTheGuard, LocksNoDirectory):
    """The classic: a lock file that is removed on release, and nothing compared."""

    def _names(self, parent: Descriptor, name: str, opened: Descriptor) -> bool:
        return True


class OwnsWhatItWaitedFor(Owner):
    """Believes, once it has the locks, that the path still names what it opened before it waited."""

    def _is_where_it_was(self, directory: Descriptor) -> bool:
        return True

    def _names(self, parent: Descriptor, name: str, opened: Descriptor) -> bool:
        return True


class ChecksTheClaimAlone(Owner):
    """Believes, at each pass, the claim that it finds in the directory that it has open."""

    def check(self) -> bool:
        return self.claim() is None


class UnlocksInTheChild(Owner):
    """Lets go, in a fork, of what the parent holds."""

    def _in_child(self) -> None:
        if self._locks is not None:
            self._files.unlock(self._locks.guard)
            self._files.unlock(self._locks.directory)
        super()._in_child()


class LocksNothing(Owner):
    """On a file system where flock succeeds and does nothing."""

    def _take(self, lock: Callable[[Descriptor], bool]) -> bool:
        return super()._take(lambda descriptor: True)


class WritesInPlace(Owner):
    """Writes the claim where it is."""

    def _publish(self) -> None:
        claim = self._files.open_file(self._own, CLAIM)
        self._files.overwrite(claim, 0, self._written_claim())
        self._files.close(claim)


class KeepsNoTerm(Owner):
    """Leaves the term to the claim, which goes with its owner."""

    def keep_term(self) -> None:
        self._term_is_kept = True
        self._fired = self._files.open_file(self._own, FIRED)


class KeepsTheTermUnflushed(Owner):
    """Trusts that what was written is on the disk."""

    def keep_term(self) -> None:
        term = self._files.open_file(self._own, TERM)
        self._files.overwrite(term, 0, f"{self._term}\n".encode())
        self._files.close(term)
        self._term_is_kept = True
        self._fired = self._files.open_file(self._own, FIRED)


class SweepsTheLiving(Owner):
    """Removes life files without asking their locks."""

    def _look_at_life(self, token: str, *, bury: bool) -> bool:
        assert self._life_directory is not None
        if bury and token != self._card.token:
            self._files.unlink(self._life_directory, token)
        return True


class AnnouncesOnce(Owner):
    """Does not look whether the life file is still there once it is locked."""

    def announce(self) -> None:
        self._files.make_directory(self._own, LIFE)
        self._life_directory = self._files.open_directory_at(self._own, LIFE)
        self._life = self._files.open_file(self._life_directory, self._card.token)
        self._files.wait_lock(self._life)


@dataclass(frozen=True)
class Fault:
    """A fault, a world in which sound ownership passes, and what is told of it there."""

    make: MakeOwner
    world: World
    told: str


def only(world: World, *watches: Watch) -> World:
    """A world with some of its watches, so that no other one speaks first, and without deaths."""
    return replace(world, must_hold=watches, bounds=replace(world.bounds, crashes=0))


FORKS = QUICK["an owner that forks, a contender and a death"]
MOVED = QUICK["agent, standby and one who moves the directory away, a death"]
REMOVED = QUICK["agent, standby and one who removes the guard, two deaths"]
BEGIN = QUICK["two that begin together in a used directory, two deaths"]
POWER = QUICK["agent and standby, a death, the power goes, the ledger is lost"]
THREE = World(USED, {"one": agent, "two": standby, "three": standby}, bounds=Bounds(ready=True))

FAULTS = [
    Fault(UnlinksTheGuard, QUICK["three contenders, two deaths"], "the guard was removed"),
    Fault(UnlinksTheOnlyLock, only(THREE, never_two_seated), "two owners"),
    Fault(LocksNoDirectory, only(REMOVED, never_two_seated), "two owners"),
    Fault(OwnsWhatItWaitedFor, MOVED, "became owner, and another directory or guard stands in its place"),
    Fault(ChecksTheClaimAlone, MOVED, "passed a check, and another directory or guard stands in its place"),
    Fault(UnlocksInTheChild, only(FORKS, never_two_owners), "two owners"),
    Fault(LocksNothing, only(BEGIN, never_two_owners), "two owners"),
    Fault(WritesInPlace, only(BEGIN, claims_are_whole), "the claim is torn"),
    Fault(KeepsNoTerm, only(POWER, terms_grow), "had term 4 before"),
    Fault(KeepsTheTermUnflushed, only(POWER, terms_grow), "had term 4 before"),
    Fault(SweepsTheLiving, BEGIN, "its life file says that it does not"),
    Fault(AnnouncesOnce, BEGIN, "its life file says that it does not"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.make.__name__)
def test_a_fault_that_was_put_in_is_found_and_told(fault: Fault) -> None:
    story = fault.world.explored(fault.make).story
    assert story is not None
    assert fault.told in story, story


EXHAUSTED_ELSEWHERE = list(QUICK.values())


@pytest.mark.parametrize(
    "fault",
    [fault for fault in FAULTS if fault.world not in EXHAUSTED_ELSEWHERE],
    ids=lambda fault: fault.make.__name__,
)
def test_sound_ownership_passes_where_a_fault_is_found(fault: Fault) -> None:
    report = fault.world.explored()
    assert report.story is None, report.story
    assert report.exhausted
