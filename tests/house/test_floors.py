"""The floors of docs/design.md: who may import whom, kept by reading the imports."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "agent" / "ankita_agent"
ROOF: Final = "ankita_agent"

MAY_IMPORT: Final = {
    "core": {"core"},
    "ports": {"core", "ports"},
    "app": {"core", "ports", "app"},
    "adapters": {"core", "ports"},  # and each its own package
    "testing": {"core", "ports", "testing"},
    "shipped": {"core"},
    "wiring": {"core", "ports", "app", "adapters", "testing", "shipped", "wiring", ""},
    "cli": {"core", "ports", "app", "wiring", "cli", "shipped", "testing", ""},
    "__main__": {"cli"},
    "": set(),  # ankita_agent itself: its version, nothing else
}
"""The floor of a module is the first part of its name under ankita_agent."""

PARTS: Final = {
    "posix_processes": {"launch_faults", "linux_process_table", "darwin_process_table"},
}
"""Adapters made of several modules, which only they import; any other adapter never sees its neighbours."""

PURE: Final = frozenset(
    re.findall(
        r"\w+",
        """__future__ abc bisect calendar collections contextlib copy croniter dataclasses datetime decimal
        difflib enum fractions functools hashlib heapq itertools json keyword math operator
        re shlex string textwrap types typing unicodedata zoneinfo""",
    )
)
"""What core may import: nothing here reaches a clock, a disk (but for the time zones), or chance."""

WORLD: Final = frozenset(
    re.findall(
        r"\w+",
        "os time datetime subprocess multiprocessing random secrets socket select selectors sqlite3 fcntl "
        "tempfile shutil psutil yaml inotify_simple",
    )
)
"""What app may not import: the world reaches it through its ports, so that no test of it needs a patch."""

IMPURE_CALLS: Final = frozenset({"now", "utcnow", "today", "open", "input", "print", "eval", "exec"})
VAGUE_NAMES: Final = frozenset({"utils", "util", "helpers", "helper", "common", "misc", "tools"})


def module_name(path: Path) -> str:
    """The dotted name of a product module."""
    return ".".join((ROOF, *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def imports_of(module: str, source: str) -> Iterator[str]:
    """Every module that the source imports, anywhere in it, as an absolute dotted name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                stem = module.split(".")[: -node.level]
                base = ".".join((*stem, base)).rstrip(".")
            yield from (f"{base}.{alias.name}" if base.count(".") < 2 else base for alias in node.names)


def floor_of(module: str) -> str:
    """The floor on which a product module stands; "" for the package itself and the names in its __init__."""
    first = module.split(".")[1] if "." in module else ""
    return first if first in MAY_IMPORT else ""


def broken_floors(module: str, source: str) -> list[str]:
    """Each import that the floors forbid."""
    mine = floor_of(module)
    broken = []
    for target in imports_of(module, source):
        if target.split(".")[0] != ROOF:
            outside = target.split(".")[0]
            if (mine == "core" and outside not in PURE) or (mine == "app" and outside in WORLD):
                broken.append(f"{module} imports {target}: {mine} does not reach the world itself")
            continue
        theirs = floor_of(target)
        if theirs not in MAY_IMPORT[mine] and not _own_part(module, target):
            broken.append(f"{module} imports {target}: {mine or ROOF} may not see {theirs or ROOF}")
    return broken


def _own_part(module: str, target: str) -> bool:
    """Whether one adapter reaches into its own package, or into a part that is listed as its own."""
    if not floor_of(module) == floor_of(target) == "adapters" or module.count(".") < 2 or target.count(".") < 2:
        return False
    whole, part = module.split(".")[2], target.split(".")[2]
    return whole == part or part in PARTS.get(whole, ())


def impure_calls(module: str, source: str) -> list[str]:
    """Each call in core that asks a clock, a disk or a person."""
    if floor_of(module) != "core":
        return []
    calls = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    names = (func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "") for func in calls)
    return [f"{module} calls {name}()" for name in names if name in IMPURE_CALLS]


def talk(module: str, source: str) -> list[str]:
    """Each place outside cli that prints, writes to a standard stream, or ends the process."""
    if floor_of(module) == "cli":
        return []
    told = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sys":
            if node.attr in {"exit", "stdout", "stderr"}:
                told.append(f"{module} uses sys.{node.attr}")
        elif isinstance(node, ast.Name) and node.id in {"print", "SystemExit", "exit", "quit"}:
            told.append(f"{module} uses {node.id}")
    return told


def modules() -> Iterator[tuple[str, str]]:
    """Every product module: its name and its source."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield module_name(path), path.read_text(encoding="utf-8")


def test_no_module_sees_a_floor_that_it_may_not_see() -> None:
    assert [line for module, source in modules() for line in broken_floors(module, source)] == []


def test_core_asks_no_clock_no_disk_and_no_person() -> None:
    assert [line for module, source in modules() for line in impure_calls(module, source)] == []


def test_only_the_command_line_prints_or_exits() -> None:
    assert [line for module, source in modules() for line in talk(module, source)] == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [name for name, _ in modules() if VAGUE_NAMES & set(name.split("."))] == []


def test_every_floor_has_modules_so_that_the_checks_above_look_at_something() -> None:
    floors = {floor_of(name) for name, _ in modules()}
    assert {"core", "ports", "app", "adapters", "testing", "cli", "shipped", "__main__", ""} <= floors


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("ankita_agent.app.agent", "from ankita_agent.adapters.posix_files import PosixFiles"),
        ("ankita_agent.app.agent", "import ankita_agent.adapters.posix_files"),
        ("ankita_agent.app.agent", "from ankita_agent import adapters"),
        ("ankita_agent.app.agent", "from ..adapters import posix_files"),
        ("ankita_agent.app.agent", "def late():\n    from ankita_agent.wiring import build"),
        ("ankita_agent.core.passes", "from ankita_agent.ports.clock import Clock"),
        ("ankita_agent.core.passes", "import time"),
        ("ankita_agent.core.passes", "from os import path"),
        ("ankita_agent.core.passes", "import secrets"),
        ("ankita_agent.core.passes", "import yaml"),
        ("ankita_agent.app.runner", "import subprocess"),
        ("ankita_agent.app.runner", "from os import getpid"),
        ("ankita_agent.ports.files", "from ankita_agent.app.owner import Owner"),
        ("ankita_agent.adapters.posix_files", "from ankita_agent.adapters.sd_notify import SdNotify"),
        ("ankita_agent.adapters.sqlite_ledger.reader", "from ankita_agent.app.queries import x"),
        ("ankita_agent.adapters.yaml_files", "from ankita_agent.adapters import launch_faults"),
        ("ankita_agent.testing.files", "from ankita_agent.adapters.posix_files import PosixFiles"),
        ("ankita_agent.cli.main", "from ankita_agent.adapters.posix_files import PosixFiles"),
        ("ankita_agent.app.agent", "from ankita_agent.shipped import shipped_text"),
        ("ankita_agent.app.agent", "from ankita_agent import __version__"),
        ("ankita_agent", "from ankita_agent.core import instants"),
    ],
)
def test_an_import_across_the_floors_is_seen(module: str, line: str) -> None:
    assert len(broken_floors(module, line)) == 1


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("ankita_agent.app.agent", "from ankita_agent.ports.files import Files\nimport threading"),
        ("ankita_agent.core.passes", "from zoneinfo import ZoneInfo\nfrom ankita_agent.core import zones"),
        ("ankita_agent.core.passes", "from . import zones\nfrom collections.abc import Mapping"),
        (
            "ankita_agent.adapters.sqlite_ledger.reader",
            "from ankita_agent.adapters.sqlite_ledger.rows import x",
        ),
        ("ankita_agent.adapters.posix_processes", "from ankita_agent.adapters.launch_faults import x"),
        ("ankita_agent.wiring", "from ankita_agent.adapters.posix_files import PosixFiles"),
        ("ankita_agent.cli.main", "from ankita_agent import __version__"),
    ],
)
def test_an_import_that_the_floors_allow_is_left_alone(module: str, line: str) -> None:
    assert broken_floors(module, line) == []


@pytest.mark.parametrize("line", ["datetime.now(UTC)", "date.today()", "open('f')", "datetime.utcnow()"])
def test_an_impure_call_in_core_is_seen(line: str) -> None:
    assert len(impure_calls("ankita_agent.core.passes", line)) == 1
    assert impure_calls("ankita_agent.adapters.system_clock", line) == []


@pytest.mark.parametrize("line", ["print('x')", "sys.exit(1)", "raise SystemExit(2)", "sys.stderr.write(x)"])
def test_talk_outside_the_command_line_is_seen(line: str) -> None:
    assert len(talk("ankita_agent.app.agent", line)) == 1
    assert talk("ankita_agent.cli.main", line) == []
