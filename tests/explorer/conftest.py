"""What all explorations share."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def seldom_collected() -> Iterator[None]:
    """An exploration keeps all that it makes, so that looking for garbage would take a third of its time."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 50, 100)
    yield
    gc.set_threshold(*before)
