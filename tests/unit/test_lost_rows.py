"""A ledger that lost rows: nothing from before is fired again, whatever the loss was and whenever an agent died."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ankita_agent.adapters.sqlite_ledger import SqliteLedger, open_owner
from ankita_agent.core.errors import BadConfiguration
from ankita_agent.core.instants import HOUR, MINUTE, SECOND, Duration
from ankita_agent.testing.routine_files import KeptCopy
from tests.simulation import Machine

TEN = "routines: {r: {schedule: every 10m, run: work, rerun_lost: true}}"
REBOOT = "routines: {r: {schedule: '@reboot', run: work, grace: 10h}}"


class Restorable(Machine):
    """A machine whose ledger is a file, which can be copied and put back."""

    def __init__(self, path: Path, text: str) -> None:
        super().__init__(path, text, ledger=self._open)
        self._db = str(path / "ledger.db")

    def _open(self) -> SqliteLedger:
        self.ledger.close()
        self.ledger = open_owner(self._db)
        return self.ledger

    def back_up(self) -> None:
        with closing(sqlite3.connect(self._db)) as source, closing(sqlite3.connect(f"{self._db}.copy")) as copy:
            source.backup(copy)

    def restore(self) -> None:
        self.ledger.close()
        for suffix in ("", "-wal", "-shm"):
            Path(self._db + suffix).unlink(missing_ok=True)
        shutil.copy(f"{self._db}.copy", self._db)


@pytest.fixture
def on(tmp_path: Path) -> Iterator[Restorable]:
    made = Restorable(tmp_path, TEN)
    yield made
    if made.shift is not None:
        made.kill()
    made.ledger.close()


def test_a_copy_of_the_same_term_is_found_out_by_its_newest_fire(on: Restorable) -> None:
    on.begin()
    on.live(Duration(15 * MINUTE))
    on.back_up()
    on.live(Duration(20 * MINUTE))
    known = on.ledger.newest_number()
    on.kill()
    on.restore()
    on.begin()
    on.live(Duration(15 * MINUTE))
    assert on.ends() == ["succeeded", "missed ledger x2", "succeeded", "succeeded"]
    assert on.rows()[2].fire > known
    assert len(on.processes.launches) == 3 + 2


def test_a_copy_that_lacks_nothing_is_caught_up_as_ever(on: Restorable) -> None:
    on.begin()
    on.live(Duration(15 * MINUTE))
    on.back_up()
    on.kill()
    on.restore()
    on.begin()
    on.live(Duration(MINUTE))
    assert on.ends() == ["succeeded"]
    on.live(Duration(10 * MINUTE))
    assert on.ends() == ["succeeded"] * 2


def test_an_owner_that_dies_before_the_loss_is_written_off_leaves_it_to_the_next(on: Restorable) -> None:
    on.begin()
    on.live(Duration(15 * MINUTE))
    on.back_up()
    on.live(Duration(20 * MINUTE))
    on.kill()
    on.restore()
    on.kept, on.file.text = KeptCopy(), "routines: ["
    with pytest.raises(BadConfiguration):
        on.begin()  # its term has begun, and nothing is written off
    on.kill()
    on.file.text = TEN
    on.begin()
    on.live(Duration(MINUTE))
    assert on.ends() == ["succeeded", "missed ledger x2"]
    on.kill()
    on.begin()
    on.live(Duration(10 * MINUTE))
    assert on.ends()[2:] == ["succeeded"]


def test_what_was_running_when_the_copy_was_made_is_not_run_again(on: Restorable) -> None:
    on.run_for = Duration(5 * MINUTE)
    on.begin()
    on.live(Duration(10 * MINUTE))
    assert on.runner.running()
    on.back_up()
    on.live(Duration(15 * MINUTE))
    on.kill()
    launched = len(on.processes.launches)
    on.restore()
    on.begin()
    on.live(Duration(30 * SECOND))
    assert on.ends()[0].startswith("lost")
    assert len(on.processes.launches) == launched


def test_a_reboot_routine_whose_run_in_this_boot_was_lost_does_not_run_again(tmp_path: Path) -> None:
    on = Restorable(tmp_path, REBOOT)
    on.begin()
    on.back_up()
    on.reboot()
    on.begin()
    on.live(Duration(MINUTE))
    assert on.ends() == ["succeeded"]
    on.kill()
    on.restore()
    for _ in range(2):
        on.begin()
        on.live(HOUR)
        assert on.ends() == ["missed ledger"]
        on.kill()
    assert len(on.processes.launches) == 1
    on.ledger.close()


def test_a_number_of_a_fire_that_cannot_be_read_leaves_the_term_to_tell(on: Restorable) -> None:
    on.begin()
    on.live(Duration(15 * MINUTE))
    on.kill()
    os.unlink(on.path / "own" / "fired")
    on.begin()
    on.live(Duration(10 * MINUTE))
    assert on.ends() == ["succeeded"] * 2
