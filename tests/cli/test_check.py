"""`ankita-agent check`: what is printed, for people and for programs, and how it ends."""

import json
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from ankita_agent.cli.check import MOST_SHOWN, check_command
from ankita_agent.cli.check import command as installed_command
from ankita_agent.core.problems import Problem
from ankita_agent.core.routine_file import Judgement
from ankita_agent.ports.routine_source import Absent, Found, Unusable
from tests.routine_texts import in_routine, judged

BAD = in_routine(schedule="schedule: @daily")


@dataclass
class Source:
    """The file that the agent would read."""

    seen: Found | Absent | Unusable
    path: str = "/etc/me/routines.yaml"

    def read(self) -> Found | Absent | Unusable:
        return self.seen


def parse(content: bytes) -> Judgement:
    return judged(content)


NO_FILE = Absent(())
SAMPLE = "/usr/share/a sample.yaml"


def command(seen: Found | Absent | Unusable = NO_FILE) -> click.Command:
    return check_command(lambda: Source(seen), parse, lambda: SAMPLE)


def check(*arguments: str, seen: Found | Absent | Unusable = NO_FILE, stdin: str | bytes = "") -> Result:
    return CliRunner().invoke(command(seen), arguments, input=stdin, catch_exceptions=False)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory to write files in, and to be in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_good_file_is_said_to_be_good(here: Path) -> None:
    (here / "routines.yaml").write_text(in_routine())
    result = check("routines.yaml")
    assert (result.exit_code, result.output) == (0, "routines.yaml: 1 routine, no problems\n")


def test_a_problem_is_shown_with_its_place_what_to_write_and_the_line_itself(here: Path) -> None:
    (here / "routines.yaml").write_text(BAD)
    result = check("routines.yaml")
    assert result.exit_code == 78
    assert result.output == (
        "routines.yaml:3:15: error: YAML allows no unquoted text that begins with @\n"
        '    write `schedule: "@daily"`\n'
        "    3 |     schedule: @daily\n"
        "      |               ^\n"
    )


def test_a_warning_alone_ends_with_1(here: Path) -> None:
    (here / "routines.yaml").write_text(in_routine(run="run: echo a # b"))
    result = check("routines.yaml")
    assert result.exit_code == 1
    assert "routines.yaml:4:17: warning: everything from this # on is a comment" in result.output
    assert result.output.endswith("routines.yaml: 1 routine, 1 warning\n")


def test_a_dash_reads_standard_input() -> None:
    assert check("-", stdin=in_routine()).output == "-: 1 routine, no problems\n"
    assert check("-", stdin=BAD).exit_code == 78


def test_without_a_name_the_file_of_the_agent_is_checked() -> None:
    seen = Found(in_routine().encode(), ())
    assert check(seen=seen).output == "/etc/me/routines.yaml: 1 routine, no problems\n"


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_file_needs_a_look_as_an_agent_says_of_it(text: str) -> None:
    result = check(seen=Found(text.encode(), ()))
    assert result.exit_code == 1
    assert "/etc/me/routines.yaml: warning: the file is empty, as if it was only half saved" in result.output
    assert "write `routines: {}`" in result.output
    assert result.output.endswith("/etc/me/routines.yaml: 0 routines, 1 warning\n")
    assert check(seen=Found(b"routines: {}\n", ())).exit_code == 0
    assert check(seen=Found(b"# none yet\n", ())).exit_code == 0


def test_no_file_is_an_agent_without_routines_and_needs_a_look() -> None:
    result = check()
    assert result.exit_code == 1
    assert result.output == (
        "/etc/me/routines.yaml: warning: there is no such file\n"
        "    write one there and it is in force at once, where an agent runs; a sample to begin with: "
        "cp '/usr/share/a sample.yaml' /etc/me/routines.yaml\n"
    )


def test_a_file_that_is_not_trusted_would_be_refused_by_a_start() -> None:
    result = check(seen=Unusable(Problem(0, 0, "may be written to by everybody", "close it: chmod o-w"), ()))
    assert result.exit_code == 78
    assert result.output.startswith("/etc/me/routines.yaml: error: may be written to by everybody\n    close it")


def test_a_named_file_that_is_not_there_or_not_readable_is_said(here: Path) -> None:
    assert check("gone.yaml").exit_code == 1
    result = check(".")
    assert result.exit_code == 78
    assert ".: error: cannot be read: Is a directory" in result.output


def test_json_is_as_the_contract_has_it(here: Path) -> None:
    (here / "routines.yaml").write_text(BAD)
    result = check("--json", "routines.yaml")
    assert result.exit_code == 78
    assert json.loads(result.output) == [
        {
            "file": "routines.yaml",
            "line": 3,
            "column": 15,
            "problem": "YAML allows no unquoted text that begins with @",
            "fix": 'write `schedule: "@daily"`',
            "severity": "error",
        }
    ]


def test_json_of_a_good_file_is_an_empty_list(here: Path) -> None:
    (here / "routines.yaml").write_text(in_routine())
    result = check("--json", "routines.yaml")
    assert (result.exit_code, json.loads(result.output)) == (0, [])


def test_very_many_problems_are_cut_for_people_and_whole_for_programs(here: Path) -> None:
    text = "routines:\n" + "".join(f"  r{n}: {{schedule: daily 08:00, run: x, timeout: 5}}\n" for n in range(300))
    (here / "routines.yaml").write_text(text)
    shown = check("routines.yaml").output
    assert shown.count(": error: ") == MOST_SHOWN
    assert shown.endswith("… and 200 more; all of them: ankita-agent check --json\n")
    assert len(json.loads(check("--json", "routines.yaml").output)) == 300


def test_colour_is_for_terminals_alone(here: Path) -> None:
    (here / "routines.yaml").write_text(BAD)
    assert "\x1b" not in check("routines.yaml").output
    coloured = CliRunner().invoke(command(), ["routines.yaml"], color=True)
    assert "\x1b[31m" in coloured.output
    without = CliRunner(env={"NO_COLOR": "1"}).invoke(command(), ["routines.yaml"], color=True)
    assert "\x1b" not in without.output


def test_a_file_cannot_steer_the_terminal_on_which_it_is_shown(here: Path) -> None:
    (here / "routines.yaml").write_bytes(b"routines: \x1b]0;title\x07 {}\n")
    result = check("routines.yaml")
    assert result.exit_code == 78
    assert "\x1b" not in result.output


def test_a_long_line_is_cut_around_its_place(here: Path) -> None:
    (here / "routines.yaml").write_text(
        "routines: {a: {schedule: daily 08:00, run: x, " + "#" * 10 + "x" * 500 + ": 1}}"
    )
    excerpts = [line for line in check("routines.yaml").output.splitlines() if " | " in line]
    assert excerpts
    assert max(map(len, excerpts)) <= 120


def test_the_command_itself_finds_the_file_of_the_person_who_runs_it(home: Path) -> None:
    directory = home / "config" / "ankita-agent"
    directory.mkdir(parents=True, mode=0o700)
    (directory / "routines.yaml").write_text(BAD)
    result = CliRunner().invoke(installed_command, [], catch_exceptions=False)
    assert result.exit_code == 78
    assert result.output.startswith(f"{directory}/routines.yaml:3:15: error: ")


def test_the_help_ends_with_an_example() -> None:
    example = check("--help").output.partition("Example:")[2]
    assert [line.strip() for line in example.splitlines()[1:3]] == [
        "$ ankita-agent check",
        "routines.yaml: 3 routines, no problems",
    ]
