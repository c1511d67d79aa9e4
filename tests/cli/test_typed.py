"""What fingers type is answered by what was meant."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from ankita_agent.cli.main import run_command

ROUTINES: Final = """routines:
  heartbeat: {schedule: every 1h, run: x}
  backup: {schedule: 'daily 08:00', jitter: 0s, run: x}
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Directories of its own for every command of the test; the file of routines is the one to write."""
    monkeypatch.setenv("ANKITA_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("ANKITA_CONFIG_DIR", str(tmp_path))
    monkeypatch.delenv("SUDO_USER", raising=False)
    (tmp_path / "routines.yaml").write_text(ROUTINES)
    return tmp_path / "routines.yaml"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("stat", "status"), ("hist", "history"), ("inst", "install"), ("statsu", "status"), ("unins", "uninstall")],
)
def test_the_beginning_of_a_command_is_taken_for_it_before_what_looks_alike(
    typed: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command([typed]) == 2
    assert f"there is no command '{typed}'; did you mean: ankita-agent {meant}\n" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "asked"), [(["help"], ["--help"]), (["help", "check"], ["check", "--help"])])
def test_help_is_a_word_as_well(words: list[str], asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(words) == 0
    said = capsys.readouterr().out
    assert run_command(asked) == 0
    assert capsys.readouterr().out == said != ""


def test_logs_without_a_routine_names_those_there_are(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["logs"]) == 2
    assert "none was named: no routine has run yet" in capsys.readouterr().err


def test_a_name_that_nobody_knows_is_told_also_where_no_agent_runs(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["trigger", "hartbeat"]) == 3
    said = capsys.readouterr().err
    assert f"no agent runs, and there is no routine 'hartbeat' in {config} either\n" in said
    assert "did you mean heartbeat?    start it: ankita-agent start" in said
    assert run_command(["trigger", "heartbeat"]) == 3
    assert "either" not in capsys.readouterr().err
    config.write_text("routines: [")
    assert run_command(["trigger", "hartbeat"]) == 3
    assert "either" not in capsys.readouterr().err


def test_check_takes_a_file_and_says_so_to_who_names_a_routine(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["check", "backup"]) == 1
    assert "name a file; without a name it is the one that the agent reads" in capsys.readouterr().out


def test_times_in_one_column_all_have_seconds_or_none(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def local() -> set[int]:
        assert run_command(["next", "--from", "2026-11-30T06:00:00Z"]) == 0
        rows = capsys.readouterr().out.splitlines()[1:]
        return {row.split("  ")[0].count(":") for row in rows}

    assert local() == {1}
    config.write_text(ROUTINES + "  often: {schedule: every 7s, run: x}\n")
    assert local() == {2}


def test_mistakes_are_told_for_what_they_are_while_no_agent_runs(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text("routines: [")
    assert run_command(["status"]) == 3
    shown = capsys.readouterr().out
    assert f"mistakes cannot use {config}:1:" in shown
    assert "refuse" not in shown


STATUS: Final = "import sys; from ankita_agent.cli.main import run_command; sys.exit(run_command(sys.argv[1:]))"


@pytest.mark.needs("root")
@pytest.mark.parametrize(
    ("user", "arguments", "told"),
    [
        ("ann", ["status"], True),
        ("ann", ["trigger", "x"], True),
        ("ann", ["list"], True),
        ("ann", ["doctor", "--help"], False),
        ("root", ["status"], False),
        (None, ["status"], False),
    ],
)
def test_whoever_came_by_sudo_is_told_that_it_is_about_root(
    config: Path, user: str | None, arguments: list[str], told: bool
) -> None:
    environment: dict[str, Any] = {**os.environ, **({} if user is None else {"SUDO_USER": user})}
    done = subprocess.run(
        [sys.executable, "-c", STATUS, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    line = "by sudo, this is about the agent of root; for that of ann: without sudo\n"
    assert done.stderr.startswith(line) == told
    assert "by sudo" not in done.stdout
