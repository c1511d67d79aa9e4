"""What holds for every test: a home of its own, capabilities asked for by name, examples that repeat."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import capabilities

settings.register_profile("here", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")

pytest_plugins = ["tests.rig.fixtures"]

_REQUIRED = pytest.StashKey[frozenset[str]]()
_NEVER_INHERITED = ("ANKITA_", "XDG_", "NOTIFY_SOCKET", "WATCHDOG_", "LISTEN_")
_numbers = itertools.count()


def pytest_configure(config: pytest.Config) -> None:
    """Read ANKITA_REQUIRE now: afterwards every test runs without it."""
    try:
        config.stash[_REQUIRED] = capabilities.required(os.environ.get("ANKITA_REQUIRE", ""))
    except ValueError as error:
        raise pytest.UsageError(f"ANKITA_REQUIRE: {error}") from error


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what this machine cannot do; fail instead when ANKITA_REQUIRE says that it can."""
    for marker in item.iter_markers("needs"):
        for capability in marker.args:
            lacking = capabilities.judge(capability, item.config.stash[_REQUIRED])
            if lacking is not None and lacking.fails:
                pytest.fail(lacking.reason, pytrace=False)
            if lacking is not None:
                pytest.skip(lacking.reason)


def _move_home(environment: pytest.MonkeyPatch, home: Path) -> None:
    for name in list(os.environ):
        if name.startswith(_NEVER_INHERITED):
            environment.delenv(name)
    environment.setenv("HOME", str(home))
    for name in ("CONFIG", "STATE", "DATA", "CACHE"):
        environment.setenv(f"XDG_{name}_HOME", str(home / name.lower()))
    environment.setenv("XDG_RUNTIME_DIR", str(home / "runtime"))


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of all homes; what is set up for many tests at once lives in one of them as well."""
    base = tmp_path_factory.mktemp("homes")
    shared = base / "shared"
    shared.mkdir()
    with pytest.MonkeyPatch.context() as environment:
        _move_home(environment, shared)
        yield base


@pytest.fixture(autouse=True)
def home(homes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory for this test alone: no test reads or writes the files of the person who runs it."""
    mine = homes / str(next(_numbers))
    mine.mkdir()
    _move_home(monkeypatch, mine)
    return mine
