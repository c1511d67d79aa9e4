"""The first load comes after the claim; one that fails gives the ownership back."""

from pathlib import Path

import pytest

from ankita_agent.adapters.sqlite_ledger import open_owner, open_reader
from ankita_agent.core.errors import BadConfiguration
from tests.simulation import Machine


def test_a_first_file_that_is_bad_ends_the_term_in_good_order(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.db")
    machine = Machine(tmp_path, "routines: {r: {schedule: sometimes, run: work}}", ledger=lambda: open_owner(ledger))
    with pytest.raises(BadConfiguration):
        machine.begin()
    reader = open_reader(ledger)
    assert reader is not None
    newest = reader.newest_term()
    reader.close()
    assert newest is not None
    assert newest.ended_at is not None
    assert not (tmp_path / "own" / "claim.json").exists()
