"""What must hold of ownership at every state: the invariants, each a watch; `all_of` makes one of several.

What a watch keeps is part of the state, so it keeps little.
"""

import functools
from collections.abc import Hashable
from typing import Any, Final, NamedTuple

from ankita_agent.app.claim import read_claim
from ankita_agent.app.owner import CLAIM, GUARD, LIFE, OWN
from ankita_agent.app.owner import Standing as Stands
from ankita_agent.testing.explorer import Broken, Shown, Watch
from ankita_agent.testing.kernel import ROOT, Kernel
from tests.explorer.actors import STATE


class Places(NamedTuple):
    """The inodes that bear the names now."""

    own: int | None
    guard: int | None
    claim: int | None
    life: int | None


_NOWHERE: Final = Places(None, None, None, None)


def places(kernel: Kernel) -> Places:
    """Where the paths lead."""
    own = kernel.names.get((kernel.names[ROOT, STATE.strip("/")], OWN))
    if own is None:
        return _NOWHERE
    return Places(own, *(kernel.names.get((own, name)) for name in (GUARD, CLAIM, LIFE)))


def all_of(*watches: Watch) -> Watch:
    """All of them; each has a memory of its own."""

    def watch(kernel: Kernel, shown: Shown, memory: Hashable) -> Hashable:
        before = memory if isinstance(memory, tuple) else (None,) * len(watches)
        return tuple(each(kernel, shown, kept) for each, kept in zip(watches, before, strict=True))

    return watch


def never_two_owners(kernel: Kernel, shown: Shown, _: Hashable) -> Hashable:
    """At most one process stands as owner in its place, so that its next check passes: the one that would claim."""
    _at_most_one([pid for pid in _seated(shown) if _in_place(kernel, pid)])
    return None


def never_two_seated(_: Kernel, shown: Shown, __: Hashable) -> Hashable:
    """At most one process stands as owner at all. It holds where nobody takes the directory away."""
    _at_most_one(_seated(shown))
    return None


def owners_hold_both_locks(kernel: Kernel, shown: Shown, _: Hashable) -> Hashable:
    """Who stands as owner in its place holds the locks of directory and guard."""
    for pid in _seated(shown):
        if _in_place(kernel, pid):
            for inode in places(kernel)[:2]:
                if inode is not None and not _holds(kernel, pid, inode):
                    raise Broken(f"{pid} stands as owner and does not hold the lock of {kernel.path_of(inode)}")
    return None


def who_owns_has_looked(kernel: Kernel, shown: Shown, memory: Hashable) -> Hashable:
    """Who becomes owner was in its place before; who passes a check was in it at some moment of that check.

    What is kept: of each agent its number of checks, or -1 before it owns, and whether it was in its place since then.
    """
    before = dict(memory) if isinstance(memory, tuple) else {}
    now = {}
    for pid, each in shown:
        if each is None or each.stands == Stands.CHILD.name:
            continue
        known, was = before.get(pid, (-1, False))
        checking = known > 0 and known % 2 == 1
        if checking and each.checks > known and not was:
            raise Broken(f"{pid} passed a check, and another directory or guard stands in its place")
        if each.stands == Stands.RELEASED.name:
            continue
        checks, there = each.checks if _stands_as_owner(each) else -1, _in_place(kernel, pid)
        if known == -1 != checks and not (was or there):
            raise Broken(f"{pid} became owner, and another directory or guard stands in its place")
        now[pid] = (checks, there or (was and checks == known))
    return tuple(now.items())


def terms_grow(kernel: Kernel, shown: Shown, memory: Hashable) -> Hashable:
    """Every term that an owner in its place has published is above all that were before.

    What is kept: the newest term, and who of those that are there has shown it. An owner whose directory was taken
    away publishes where nobody looks.
    """
    newest, known = memory if isinstance(memory, tuple) else (0, ())
    showing = {pid: each.term for pid, each in shown if each is not None and each.term is not None}
    now = tuple(pid for pid in known if pid in showing)
    for pid, term in showing.items():
        if pid not in now and _in_place(kernel, pid):
            if term <= newest:
                raise Broken(f"{pid} owns with term {term}, and somebody had term {newest} before")
            newest, now = term, (*now, pid)
    return newest, now


def claims_are_whole(kernel: Kernel, _: Shown, __: Hashable) -> Hashable:
    """Nobody ever finds half of a claim."""
    claim = places(kernel).claim
    if claim is not None and not _is_whole(kernel.inodes[claim].content):
        raise Broken("the claim is torn")
    return None


def the_guard_stays(kernel: Kernel, _: Shown, memory: Hashable) -> Hashable:
    """No agent removes or replaces the guard. It holds where no stranger does."""
    guard = places(kernel).guard
    if memory is not None and guard != memory:
        raise Broken("the guard was removed or replaced")
    return guard


def the_living_are_seen_to_live(kernel: Kernel, shown: Shown, _: Hashable) -> Hashable:
    """Every agent that has announced itself holds the lock of the life file that bears its token's name."""
    life = places(kernel).life
    for pid, each in shown:
        if each is not None and each.life is not None:
            inode = None if life is None else kernel.names.get((life, each.life))
            if inode is None or not _holds(kernel, pid, inode):
                raise Broken(f"{pid} lives, and its life file says that it does not")
    return None


def _at_most_one(owners: list[int]) -> None:
    if len(owners) > 1:
        raise Broken(f"two owners: {' and '.join(map(str, owners))}")


def _seated(shown: Shown) -> list[int]:
    return [pid for pid, each in shown if _stands_as_owner(each)]


def _stands_as_owner(each: Any) -> bool:
    return each is not None and each.stands == Stands.SEATED.name


def _in_place(kernel: Kernel, pid: int) -> bool:
    """Whether the guard at the path is one that the process has open, so that both paths name what it locked."""
    guard = places(kernel).guard
    return guard is not None and kernel.has_open(pid, guard)


def _holds(kernel: Kernel, pid: int, inode: int) -> bool:
    return kernel.locks.get(inode) in {each for (owner, _), each in kernel.tables.items() if owner == pid}


@functools.cache
def _is_whole(content: bytes) -> bool:
    return read_claim(content) is not None
