"""Words: the glossary's in public names, and none of a workplace in anything that a reader may open."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
TREES: Final = (".ci", "agent", "config", "docs", "launchd", "tests", "units")
SUFFIXES: Final = frozenset(["py", "sql", "lua", "md", "toml", "yaml", "yml", "json", "service", "path", "plist", "sh"])

FORBIDDEN: Final = re.compile(
    "|".join(
        [
            r"\bTO" + r"DO\b",
            r"\bFIX" + r"ME\b",
            r"\bX" + r"XX\b",
            r"/wo" + r"rk/",
            r"/tmp/" + r"w\b",
            r"\bpypi\." + r"org\b",
            r"python" + r"hosted\b",
            r"anth" + r"ropic",
            r"clau" + r"de",
        ]
    ),
    re.IGNORECASE,
)
"""Written in two halves, so that this file passes too."""


OF_SYSTEMD: Final = frozenset({"JobEnd"})
"""Names for what systemd itself calls so: another word would hide what is meant."""


def readable_files() -> Iterator[Path]:
    """Every text file of the project."""
    yield from (path for path in ROOT.iterdir() if path.is_file())
    for tree in TREES:
        for path in sorted((ROOT / tree).rglob("*")):
            if path.is_file() and (path.suffix.lstrip(".") in SUFFIXES or path.suffix == ""):
                yield path


def forbidden_words(text: str) -> list[str]:
    """Each forbidden word, with the number of its line."""
    return [
        f"line {number}: {found.group()}"
        for number, line in enumerate(text.splitlines(), start=1)
        for found in FORBIDDEN.finditer(line)
    ]


def never_called(glossary: str) -> dict[str, str]:
    """The words that the glossary's last column forbids, each with the word that stands in its place."""
    rows = re.findall(r"^\| \*\*(.+?)\*\* \|.*\| ([^|]*) \|$", glossary, re.MULTILINE)
    return {wrong: right for right, cell in rows for wrong in re.findall(r"\w+", cell)}


def misnamed(source: str, instead: dict[str, str]) -> list[str]:
    """Public classes, functions and parameters whose name uses a word that the glossary replaces."""
    found = []
    for node in ast.walk(ast.parse(source)):
        name = getattr(node, "arg", None) or getattr(node, "name", None)
        if (
            not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.arg)
            or not name
            or name.startswith("_")
            or name in OF_SYSTEMD
        ):
            continue
        words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}
        found += [f"{name}: say {instead[word]}" for word in sorted(words & instead.keys())]
    return found


def _instead() -> dict[str, str]:
    return never_called((ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"))


def test_the_project_speaks_of_itself_alone() -> None:
    found = {str(path.relative_to(ROOT)): forbidden_words(path.read_text()) for path in readable_files()}
    assert len(found) > 40
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_public_names_use_the_words_of_the_glossary() -> None:
    product = sorted((ROOT / "agent").rglob("*.py"))
    found = {str(path.relative_to(ROOT)): misnamed(path.read_text("utf-8"), _instead()) for path in product}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "text", ["# TO" + "DO: later", "# fix" + "me", "see /wo" + "rk/main", "https://pypi." + "org/simple"]
)
def test_a_forbidden_word_is_seen_with_its_line(text: str) -> None:
    (found,) = forbidden_words(f"a harmless line\n{text}")
    assert found.startswith("line 2")


def test_a_word_that_only_contains_a_forbidden_one_is_left_alone() -> None:
    assert forbidden_words("method to dowse; /var/works; network/workers") == []


def test_the_glossary_names_what_each_word_is_never_called() -> None:
    assert _instead()["job"] == "routine"
    assert len(_instead()) > 10


@pytest.mark.parametrize(
    "source", ["class JobStore: ...", "def run_job() -> None: ...", "def f(job: str) -> None: ..."]
)
def test_a_name_with_a_word_that_the_glossary_replaces_is_seen(source: str) -> None:
    assert len(misnamed(source, {"job": "routine"})) == 1


def test_a_private_name_or_a_longer_word_is_left_alone() -> None:
    assert misnamed("def _job() -> None: ...\nclass Jobless: ...", {"job": "routine"}) == []
