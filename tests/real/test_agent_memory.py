"""What an agent takes while nothing is due, whoever else runs: what it maps, and how much of that is in memory."""

import re
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.bench.mix import sleeping_file
from tests.real.agents import Place

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

MOST: Final = 35 * 1024
"""KiB of RSS: PSS is never more, and shrinks with every other Python that shares the pages."""


def test_an_idle_agent_with_fifty_routines_takes_at_most_35_mib(place: Place) -> None:
    place.write(sleeping_file(50))
    pid = place.start().pid
    resident = re.search(r"^VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert resident is not None
    assert int(resident[1]) <= MOST


def test_an_agent_brings_neither_what_makes_the_schema_nor_openssl(place: Place) -> None:
    place.write(sleeping_file(1))
    mapped = Path(f"/proc/{place.start().pid}/maps").read_text()
    assert "_yaml" in mapped
    assert "pydantic" not in mapped
    assert "libcrypto" not in mapped
