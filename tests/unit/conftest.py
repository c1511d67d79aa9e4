"""What tests of one module need of others."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runner_bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    state = tmp_path / "state"
    state.mkdir()
    before = set(os.listdir("/dev/fd"))
    bench = Bench(state)
    yield bench
    for descriptor in set(os.listdir("/dev/fd")) - before:
        try:
            os.close(int(descriptor))
        except OSError:  # the descriptor of the listing itself
            pass
