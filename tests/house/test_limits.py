"""Limits that keep a reader's afternoon short: lengths, docstrings, annotations."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PRODUCT: Final = sorted((ROOT / "agent").rglob("*.py"))
TESTS: Final = sorted((ROOT / "tests").rglob("*.py"))

LONGEST_FUNCTION: Final = 80
MOST_FUNCTIONS: Final = 40  # 95 of 100 are no longer
LONGEST_FILE: Final = {"agent": 400, "tests": 600}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(source: str) -> Iterator[Function]:
    """Every function and method in the source."""
    return (node for node in ast.walk(ast.parse(source)) if isinstance(node, Function))


def length(function: Function) -> int:
    """Lines from `def` to its last one, docstring included, decorators not."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def percentile_95(lengths: list[int]) -> int:
    """The smallest length that at least 95 of 100 do not exceed."""
    ordered = sorted(lengths)
    return ordered[-(-len(ordered) * 95 // 100) - 1] if ordered else 0


def without_docstring(source: str) -> list[str]:
    """Public modules, classes, functions and methods that do not say what they are."""
    tree = ast.parse(source)
    bare = [] if ast.get_docstring(tree) else ["the module"]

    def look(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if not isinstance(node, ast.ClassDef | Function) or node.name.startswith("_"):
                continue
            if not ast.get_docstring(node):
                bare.append(prefix + node.name)
            if isinstance(node, ast.ClassDef):
                look(node.body, f"{prefix}{node.name}.")

    look(tree.body, "")
    return bare


def without_annotation(source: str) -> list[str]:
    """Functions with a parameter or a result that has no type."""
    bare = []
    for function in functions(source):
        spec = function.args
        given = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *filter(None, (spec.vararg, spec.kwarg))]
        untyped = [arg.arg for arg in given if arg.annotation is None and arg.arg not in {"self", "cls"}]
        if untyped or function.returns is None:
            bare.append(function.name)
    return bare


def _named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_function_is_longer_than_a_screen() -> None:
    assert [
        f"{_named(path)}: {function.name} has {length(function)} lines"
        for path in (*PRODUCT, *TESTS)
        for function in functions(path.read_text(encoding="utf-8"))
        if length(function) > LONGEST_FUNCTION
    ] == []


def test_most_functions_are_much_shorter_than_that() -> None:
    sources = [path.read_text(encoding="utf-8") for path in PRODUCT]
    lengths = [length(function) for source in sources for function in functions(source)]
    assert len(lengths) > 50
    assert percentile_95(lengths) <= MOST_FUNCTIONS


@pytest.mark.parametrize("tree", sorted(LONGEST_FILE))
def test_no_file_is_longer_than_one_sitting(tree: str) -> None:
    files = PRODUCT if tree == "agent" else TESTS
    sizes = {_named(path): len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    assert {name: lines for name, lines in sizes.items() if lines > LONGEST_FILE[tree]} == {}


def test_every_public_name_of_the_product_says_what_it_is() -> None:
    found = {_named(path): without_docstring(path.read_text(encoding="utf-8")) for path in PRODUCT}
    assert {name: bare for name, bare in found.items() if bare} == {}


def test_every_function_is_annotated() -> None:
    found = {_named(path): without_annotation(path.read_text("utf-8")) for path in (*PRODUCT, *TESTS)}
    assert {name: bare for name, bare in found.items() if bare} == {}


def test_a_long_function_is_seen() -> None:
    (function,) = functions("@cached\ndef f() -> None:\n" + "    x = 1\n" * 80)
    assert length(function) == LONGEST_FUNCTION + 1


def test_many_long_functions_are_seen_and_a_few_are_not() -> None:
    assert percentile_95([10] * 94 + [41] * 6) == 41
    assert percentile_95([10] * 95 + [41] * 5) == 10


def test_a_public_name_without_a_docstring_is_seen() -> None:
    source = '"""M."""\nclass A:\n    """A."""\n    def b(self): ...\n    def _c(self): ...\ndef d(): ...'
    assert without_docstring(source) == ["A.b", "d"]
    assert without_docstring("x = 1") == ["the module"]


def test_a_missing_annotation_is_seen() -> None:
    source = "def a(x) -> int: ...\ndef b(x: int): ...\ndef c(*y) -> int: ...\ndef d(self) -> int: ..."
    assert without_annotation(source) == ["a", "b", "c"]
