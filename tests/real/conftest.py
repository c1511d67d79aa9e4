"""The place in which a test runs its agents."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.real.agents import Place


@pytest.fixture
def places(tmp_path: Path) -> Iterator[list[Place]]:
    """Several of them, for tests that hit agents at many random moments."""
    with ExitStack() as stack:
        roots = [tmp_path / f"place-{number}" for number in range(4)]
        for root in roots:
            root.mkdir()
        yield [stack.enter_context(Place(root)) for root in roots]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Directories for the agents of this test; whatever runs there ends with it."""
    with Place(tmp_path) as found:
        yield found
