"""The worlds that are explored: who is there, what is left from before, what may go wrong, and what must hold.

`QUICK` ones are exhausted in every run of the suite; `LARGE` ones by `make explore`. Another actor is a function of a
process (tests/explorer/actors.py), and another promise is a watch (tests/explorer/watches.py).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from ankita_agent.app.owner import Owner
from ankita_agent.testing.explorer import Bounds, Explorer, Report, Watch
from ankita_agent.testing.kernel import Kernel
from ankita_agent.testing.programs import Program
from tests.explorer.actors import (
    MakeOwner,
    agent,
    claim_only,
    cleaner,
    forking,
    guard_remover,
    machine,
    mover,
    newcomer,
    thorough_cleaner,
)
from tests.explorer.watches import (
    all_of,
    claims_are_whole,
    never_two_owners,
    never_two_seated,
    owners_hold_both_locks,
    terms_grow,
    the_guard_stays,
    the_living_are_seen_to_live,
    who_owns_has_looked,
)

USED: Final = machine(claimed_by=99)
"""A state directory whose last owner died and left its claim."""

NEW: Final = machine(used=False)

ALWAYS: Final = (never_two_owners, owners_hold_both_locks, who_owns_has_looked, terms_grow, claims_are_whole)
AMONG_US: Final = (*ALWAYS, never_two_seated, the_guard_stays, the_living_are_seen_to_live)
"""What holds where no stranger removes anything."""


@dataclass(frozen=True)
class World:
    """Where an exploration begins. Programs are made for an owner, so that one with a fault can take its place."""

    kernel: Kernel
    actors: Mapping[str, Callable[..., None]]
    must_hold: tuple[Watch, ...] = AMONG_US
    bounds: Bounds = field(default_factory=Bounds)
    files_know: bool = False

    def explorer(self, make: MakeOwner = Owner) -> Explorer:
        """The explorer of it."""
        late = partial(newcomer, make=make, files_know=self.files_know)
        return Explorer(self.kernel, self.programs(make), all_of(*self.must_hold), late, self.bounds)

    def programs(self, make: MakeOwner = Owner) -> dict[str, Program]:
        """Who is there."""
        return {name: self._made(actor, make) for name, actor in self.actors.items()}

    def explored(self, make: MakeOwner = Owner) -> Report:
        """What there is to find."""
        return self.explorer(make).explore()

    def _made(self, actor: Callable[..., None], make: MakeOwner) -> Program:
        if actor in (cleaner, thorough_cleaner, claim_only, guard_remover, mover):
            return actor
        return partial(actor, make=make, **({"files_know": True} if self.files_know else {}))


standby: Final = partial(agent, waits=True)
twice: Final = partial(agent, tries=2, passes=2)

CONTENDERS: Final = {"contender 1": agent, "contender 2": agent, "contender 3": agent}
TWO: Final = {"contender 1": agent, "contender 2": agent}
WITH_STANDBY: Final[dict[str, Callable[..., None]]] = {"agent": agent, "standby": standby, "contender": agent}

QUICK: Final[dict[str, World]] = {
    "three contenders, two deaths": World(USED, CONTENDERS, bounds=Bounds(crashes=2, ready=True)),
    "owner, standby and contender, two deaths": World(USED, WITH_STANDBY, bounds=Bounds(crashes=2, ready=True)),
    "two that begin together in a new directory, two deaths": World(
        NEW,
        {"one": twice, "other": standby},
        tuple(each for each in AMONG_US if each is not the_guard_stays),
        Bounds(crashes=2),
    ),
    "two that begin together in a used directory, two deaths": World(
        USED, {"one": agent, "standby": standby}, bounds=Bounds(crashes=2)
    ),
    "two contenders and a cleaner, a death": World(
        USED, {**TWO, "cleaner": cleaner}, ALWAYS, Bounds(crashes=1, ready=True)
    ),
    "agent, standby and one who moves the directory away, a death": World(
        USED, {"agent": twice, "standby": standby, "mover": mover}, ALWAYS, Bounds(crashes=1, ready=True)
    ),
    "agent, standby and one who removes the guard, two deaths": World(
        USED,
        {"agent": agent, "standby": standby, "remover": guard_remover},
        (*ALWAYS, never_two_seated, the_living_are_seen_to_live),
        Bounds(crashes=2, ready=True),
    ),
    "two contenders and a program that knows only the claim, a death": World(
        USED, {**TWO, "stranger": claim_only}, bounds=Bounds(crashes=1, ready=True)
    ),
    "an owner that forks, a contender and a death": World(
        USED, {"owner": forking, "contender": partial(agent, tries=2)}, bounds=Bounds(crashes=1, ready=True)
    ),
    "agent and standby, a death, a call that fails": World(
        USED, {"agent": twice, "standby": standby}, bounds=Bounds(crashes=1, faults=1, ready=True)
    ),
    "agent and standby, a death, the power goes, the ledger is lost": World(
        USED, {"agent": agent, "standby": standby}, bounds=Bounds(crashes=1, power=True, ready=True), files_know=True
    ),
    "agent and standby, a call that fails, the ledger is lost": World(
        USED, {"agent": agent, "standby": standby}, bounds=Bounds(crashes=1, faults=1, ready=True), files_know=True
    ),
}

LARGE: Final[dict[str, World]] = {
    "three contenders from their start, a death": World(USED, CONTENDERS, bounds=Bounds(crashes=1, states=9_000_000)),
    "three contenders, three deaths, two tries, two passes": World(
        USED, dict.fromkeys(CONTENDERS, twice), bounds=Bounds(crashes=3, ready=True, states=9_000_000)
    ),
    "owner and two standbys, three deaths": World(
        USED, {"agent": agent, "standby 1": standby, "standby 2": standby}, bounds=Bounds(crashes=3, ready=True)
    ),
    "two contenders and a program that knows only the claim, two deaths": World(
        USED, {**TWO, "stranger": claim_only}, bounds=Bounds(crashes=2, ready=True)
    ),
    "two contenders and a cleaner, two deaths": World(
        USED, {**TWO, "cleaner": cleaner}, ALWAYS, Bounds(crashes=2, ready=True)
    ),
    "agent, standby and a thorough cleaner, a death": World(
        USED, {"agent": agent, "standby": standby, "cleaner": thorough_cleaner}, ALWAYS, Bounds(crashes=1, ready=True)
    ),
    "two contenders from their start, two deaths, two calls that fail": World(
        NEW, TWO, tuple(each for each in AMONG_US if each is not the_guard_stays), Bounds(crashes=2, faults=2)
    ),
    "three contenders, a death, the power goes": World(
        USED, CONTENDERS, bounds=Bounds(crashes=1, power=True, ready=True), files_know=True
    ),
}
