"""The watchdog hears of each pass that finished in order, and of no other."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from ankita_agent.adapters.sqlite_ledger import memory_ledger
from ankita_agent.core.errors import Fenced, LedgerDamaged, LedgerUnavailable
from ankita_agent.core.instants import HOUR, MINUTE, Duration
from ankita_agent.ports.ledger import Ledger
from tests.simulation import Machine, machine

ONE = "routines: {r: {schedule: every 10m, run: work}}"
MANY = "agent: {concurrency: 1}\nroutines:\n" + "".join(
    f"  r{number}: {{schedule: every 1m, run: work}}\n" for number in range(20)
)


def pings(found: Machine) -> int:
    """How often the manager was pinged."""
    return [kind for kind, _ in found.readiness.told].count("progress")


def pings_of(found: Machine, do: Callable[[], object]) -> int:
    before = pings(found)
    do()
    return pings(found) - before


class FailingLedger:
    """A ledger that takes nothing while `fault` is set."""

    def __init__(self) -> None:
        self.ledger = memory_ledger()
        self.fault: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        if self.fault is not None and name in ("settle_pass", "record"):
            raise self.fault
        return getattr(self.ledger, name)


def test_who_takes_over_has_finished_something_in_order(tmp_path: Path) -> None:
    with machine(tmp_path, ONE) as found:
        found.begin()
        assert [kind for kind, _ in found.readiness.told][-2:] == ["ready", "progress"]


def test_a_pass_without_work_is_one_ping(tmp_path: Path) -> None:
    with machine(tmp_path, ONE) as found:
        found.begin()
        assert pings_of(found, found.work) == 1


def test_a_pass_with_a_full_queue_and_a_run_that_goes_on_for_hours_is_one_ping(tmp_path: Path) -> None:
    with machine(tmp_path, MANY) as found:
        found.run_for = Duration(24 * HOUR)
        found.begin()
        for _ in range(10):
            found.live(MINUTE)
            assert pings_of(found, found.work) == 1
        assert len(found.runner.running()) == 1


def test_a_pass_whose_decisions_the_full_disk_did_not_take_is_one_ping(tmp_path: Path) -> None:
    ledger = FailingLedger()
    found = Machine(tmp_path, ONE, ledger=lambda: cast(Ledger, ledger))
    found.begin()
    ledger.fault = LedgerUnavailable("full")
    found.clock.pass_time(Duration(20 * MINUTE))
    for _ in range(3):
        assert pings_of(found, found.work) == 1
    ledger.fault = None
    found.kill()


@pytest.mark.parametrize("fault", [Fenced("another term"), LedgerDamaged("no database"), OSError(24, "no descriptors")])
def test_a_pass_that_ended_in_a_fault_is_no_ping(tmp_path: Path, fault: Exception) -> None:
    ledger = FailingLedger()
    found = Machine(tmp_path, ONE, ledger=lambda: cast(Ledger, ledger))
    found.begin()
    ledger.fault = fault
    before = pings(found)
    with pytest.raises(type(fault)):
        found.work()
    assert pings(found) == before
    ledger.fault = None
    found.kill()
