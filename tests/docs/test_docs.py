"""The documents agree with the code and with each other."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from ankita_agent.core.outcomes import Health, Outcome, Reason, Trigger

ROOT: Final = Path(__file__).parents[2]
DOCUMENTS: Final = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def links(text: str) -> Iterator[str]:
    """The targets of the Markdown links outside code."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    yield from re.findall(r"\]\(([^)\s]+)\)", prose)


def anchors(text: str) -> set[str]:
    """The anchors that the headings of a document make, as Markdown viewers write them."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(document: Path) -> list[str]:
    """The relative links of a document that lead nowhere."""
    dead = []
    for link in links(document.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            dead.append(link)
    return dead


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(document: Path) -> None:
    assert dead_links(document) == []


def test_a_link_that_leads_nowhere_is_seen(tmp_path: Path) -> None:
    document = tmp_path / "a.md"
    document.write_text("# A b\n[x](gone.md) [y](a.md) [z](#a-b) [w](#gone) [v](https://a.example) `[u](no)`")
    assert dead_links(document) == ["gone.md", "#gone"]


def test_the_glossary_explains_every_outcome() -> None:
    rows = set(re.findall(r"^\| `(\w+)` \| [^|]+ \| (?:yes|no) \|$", _glossary(), re.MULTILINE))
    assert rows == {outcome.value for outcome in Outcome}


def test_the_glossary_calls_only_that_outcome_a_success_which_is_one() -> None:
    successes = re.findall(r"^\| `(\w+)` \| [^|]+ \| yes \|$", _glossary(), re.MULTILINE)
    assert successes == [outcome.value for outcome in Outcome if outcome.success]


def test_the_glossary_explains_every_reason_once_under_an_outcome() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| [^|]+ \|$", _glossary(), re.MULTILINE)
    assert sorted(reason for _, reason in rows) == sorted(reason.value for reason in Reason)
    assert {outcome for outcome, _ in rows} == {outcome.value for outcome in Outcome} - {"succeeded"}


@pytest.mark.parametrize(("heading", "words"), [("## Triggers", Trigger), ("## Health", Health)])
def test_the_glossary_explains_every_trigger_and_every_health(
    heading: str, words: type[Trigger] | type[Health]
) -> None:
    section = _glossary().partition(heading)[2].partition("\n## ")[0]
    assert [word.value for word in words if f"`{word.value}`" not in section] == []


def test_the_changelog_tells_of_this_version_first_and_of_double_or_missed_fires_before_all_else() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    headings = re.findall(r"^##+ (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0].split()[0] == version
    assert headings[1] == "Important notes"


def _glossary() -> str:
    return (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")


def test_the_map_of_the_design_names_every_module_of_the_house() -> None:
    floors = ("core", "ports", "app", "adapters")
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", design.partition("## The house")[2].partition("\n## ")[0]))
    package = ROOT / "agent" / "ankita_agent"
    modules = {path.stem for floor in floors for path in (package / floor).glob("*") if not path.name.startswith("_")}
    assert sorted(modules - named) == []
