"""Every order of what agents do with ownership, with deaths, strangers, failing calls and a loss of power.

The code of app/owner.py runs as it is, on a simulated kernel. What is exhausted here holds within the bounds of its
world (tests/explorer/worlds.py), and not beyond them.
"""

import pytest

from ankita_agent.testing.explorer import Bounds
from tests.explorer.actors import cleaner, mover
from tests.explorer.worlds import ALWAYS, CONTENDERS, LARGE, QUICK, USED, World, standby, twice


@pytest.mark.parametrize("name", QUICK)
def test_ownership_holds_in_every_order(name: str) -> None:
    report = QUICK[name].explored()
    assert report.story is None, report.story
    assert report.exhausted
    assert report.states > 1000, "there was something to explore"


@pytest.mark.explore
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", LARGE)
def test_ownership_holds_in_every_order_of_more(name: str) -> None:
    report = LARGE[name].explored()
    assert report.story is None, report.story
    assert report.exhausted


CROWD = World(
    USED,
    {
        **dict.fromkeys(CONTENDERS, twice),
        "standby 1": standby,
        "standby 2": standby,
        "cleaner": cleaner,
        "mover": mover,
    },
    ALWAYS,
    Bounds(crashes=3, ready=True),
)


@pytest.mark.parametrize("seed", range(4))
def test_ownership_holds_on_ways_through_a_crowd_chosen_by_chance(seed: int) -> None:
    report = CROWD.explorer().walk(seed, walks=60)
    assert report.story is None, report.story


@pytest.mark.explore
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(100, 110))
def test_ownership_holds_on_many_ways_through_a_crowd_chosen_by_chance(seed: int) -> None:
    report = CROWD.explorer().walk(seed, walks=1000)
    assert report.story is None, report.story
