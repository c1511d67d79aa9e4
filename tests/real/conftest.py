"""The place in which a test runs its agents."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.agents import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Directories for the agents of this test; whatever runs there ends with it."""
    with Place(tmp_path) as found:
        yield found
