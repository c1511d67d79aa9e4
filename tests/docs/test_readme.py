"""What the README and its neighbours show is what the program does."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import click
import pytest

from ankita_agent.cli.main import COMMANDS, ankita_agent
from ankita_agent.wiring.routines import routine_judge

ROOT: Final = Path(__file__).parents[2]
README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
JSON: Final = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
FIRST_SCREEN: Final = "\n".join(README.splitlines()[:45])


def commands_in(text: str) -> set[str]:
    """The commands of ours that a text tells people to type."""
    return set(re.findall(r"ankita-agent ([a-z][a-z-]+)(?=[ `\n])", text))


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the program as a person would."""
    program = [sys.executable, "-m", "ankita_agent", *arguments]
    return subprocess.run(program, input=stdin, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("document", [*sorted(ROOT.glob("docs/*.md")), ROOT / "README.md"], ids=lambda path: path.name)
def test_every_command_that_a_document_names_exists(document: Path) -> None:
    assert commands_in(document.read_text(encoding="utf-8")) <= COMMANDS.keys()


def test_every_command_is_in_the_readme() -> None:
    assert COMMANDS.keys() <= commands_in(README)


def test_the_two_commands_are_the_first_thing_in_the_readme_with_what_they_print() -> None:
    assert FIRST_SCREEN.index("$ make run") < FIRST_SCREEN.index("$ make test") < FIRST_SCREEN.index("| it promises")


def test_the_readme_and_the_makefile_agree_on_what_make_run_says() -> None:
    said = re.search(r"^Routines: .+$", README, re.MULTILINE)
    assert said is not None
    assert said[0] in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_the_routine_of_the_readme_is_a_good_file() -> None:
    [text] = re.findall(r"```yaml\n(.+?)```", README, re.DOTALL)
    judgement = routine_judge()(text.encode())
    assert judgement.problems == ()
    assert judgement.file is not None
    assert [routine.name for routine in judgement.file.routines] == ["morning-briefing"]


def test_the_bad_file_of_the_readme_prints_what_the_readme_shows() -> None:
    [(command, shown)] = re.findall(r"\$ printf '(.+?)' \| ankita-agent check -\n(.+?)```", README, re.DOTALL)
    result = run("check", "-", stdin=command.replace("\\n", "\n"))
    assert (result.stdout, result.returncode) == (shown, 78)


def test_the_exit_statuses_of_the_readme_are_those_of_the_faults() -> None:
    from ankita_agent.core import errors

    codes = {
        fault.exit_code
        for fault in vars(errors).values()
        if isinstance(fault, type) and issubclass(fault, errors.AnkitaError)
    }
    [line] = re.findall(r"Exit statuses: (.+?)\.\n", README, re.DOTALL)
    told = {int(number) for number in re.findall(r"(?:^|· )\s*(\d+) ", line)}
    assert codes - {70} <= told


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_that_ends_with_an_example(name: str) -> None:
    command = ankita_agent.get_command(click.Context(ankita_agent), name)
    assert command is not None
    assert command.help is not None
    assert "Example:" in command.help.split("\n\n")[-1]
    assert f"ankita-agent {name}" in command.help.split("\n\n")[-1]


def test_the_example_of_status_in_the_contract_is_valid_and_whole(home: Path) -> None:
    text = re.findall(r"```json\n(.+?)```", JSON, re.DOTALL)[0]
    example: dict[str, Any] = json.loads(text)
    result = run("status", "--json")
    assert result.returncode == 3
    shown = json.loads(result.stdout)
    assert shown.keys() == example.keys()
    assert shown["config"].keys() == example["config"].keys()
    assert shown["service"].keys() == example["service"].keys()
