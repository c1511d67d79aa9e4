"""No mocks, no patches of the world, no sleeps: a test that seems to need one shows that a port is
missing."""

import ast
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parents[1]

WORLD: Final = frozenset({"time", "os", "subprocess", "random", "socket", "datetime", "signal", "sqlite3"})
MOCKS: Final = frozenset({"mock", "unittest.mock", "pytest_mock", "freezegun", "time_machine"})


def may_sleep(path: Path) -> bool:
    """Whether the file may poll: shared modules of the tests with real processes, and the benchmarks."""
    floor = path.relative_to(TESTS).parts[0]
    return floor == "bench" or (floor == "real" and not path.name.startswith("test_"))


def patches(source: str) -> list[str]:
    """Each mock, and each attempt to put something else into a module of the outside world."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found += [f"imports {alias.name}" for alias in names if alias.name in MOCKS]
            case ast.ImportFrom(module=str(module), names=names):
                whole = {module, *(f"{module}.{alias.name}" for alias in names)}
                found += [f"imports {name}" for name in sorted(whole & MOCKS)]
            case ast.arg(arg="mocker"):
                found.append("asks for mocker")
            case ast.Call(func=ast.Attribute(attr="setattr" | "delattr"), args=[at, *_]) if _world(at):
                found.append(f"line {node.lineno} patches {_world(at)}")
            case ast.Assign(targets=targets):
                places = [place for place in targets if isinstance(place, ast.Attribute) and _world(place)]
                found += [f"line {node.lineno} assigns to {_world(place)}" for place in places]
    return found


def sleeps(source: str) -> list[str]:
    """Each wait for time to pass."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="time"), attr="sleep")):
                found.append(f"line {node.lineno} sleeps")
            case ast.ImportFrom(module="time", names=names) if any(alias.name == "sleep" for alias in names):
                found.append(f"line {node.lineno} imports sleep")
    return found


def _world(node: ast.expr) -> str:
    """The module of the outside world that an expression reaches into, or ""."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        parts = node.value.split(".")
    else:
        parts = ast.unparse(node).split(".") if isinstance(node, ast.Name | ast.Attribute) else []
    return next((part for part in parts if part in WORLD), "")


def _all(path: Path) -> str:
    return path.read_text(encoding="utf-8")


FILES: Final = sorted(TESTS.rglob("*.py"))


def test_no_test_patches_the_world() -> None:
    found = {str(path.relative_to(TESTS)): patches(_all(path)) for path in FILES}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_no_test_sleeps() -> None:
    found = {str(path.relative_to(TESTS)): sleeps(_all(path)) for path in FILES if not may_sleep(path)}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        "from unittest import mock",
        "import unittest.mock",
        "from unittest.mock import patch",
        "def test_x(mocker): ...",
        "monkeypatch.setattr(time, 'time', lambda: 0)",
        "monkeypatch.setattr('os.getpid', lambda: 1)",
        "monkeypatch.setattr('ankita_agent.app.owner.os.getpid', lambda: 1)",
        "monkeypatch.setattr(owner.subprocess, 'run', f)",
        "monkeypatch.delattr(os, 'pidfd_open')",
        "time.sleep = lambda s: None",
        "owner.time.sleep = f",
    ],
)
def test_a_patch_is_seen(source: str) -> None:
    assert len(patches(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "monkeypatch.setenv('HOME', '/')",
        "monkeypatch.chdir(tmp_path)",
        "clock.awake = 5",
        "from unittest import TestCase",
    ],
)
def test_what_is_no_patch_is_left_alone(source: str) -> None:
    assert patches(source) == []


@pytest.mark.parametrize("source", ["time.sleep(1)", "from time import sleep"])
def test_a_sleep_is_seen(source: str) -> None:
    assert len(sleeps(source)) == 1


def test_only_the_shared_modules_of_real_tests_and_the_benchmarks_may_sleep() -> None:
    assert may_sleep(TESTS / "real" / "waiting.py")
    assert may_sleep(TESTS / "bench" / "peers.py")
    assert not may_sleep(TESTS / "real" / "test_agent.py")
    assert not may_sleep(TESTS / "unit" / "test_agent.py")
