"""Reading the newest lines of a unit never waits for long and never fails."""

from pathlib import Path

import pytest

from ankita_agent.adapters.journal import newest_lines
from ankita_agent.core.instants import SECOND, Duration


def program(directory: Path, script: str) -> str:
    path = directory / "journalctl"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def read(path: str) -> list[str]:
    return newest_lines(path, "a.service", {"PATH": "/usr/bin:/bin"}, Duration(SECOND // 5))


def test_the_lines_that_it_prints_are_read_without_the_empty_ones(tmp_path: Path) -> None:
    assert read(program(tmp_path, r"printf 'one\n\n  two \351\n'")) == ["one", "  two \N{REPLACEMENT CHARACTER}"]


def test_it_is_asked_for_the_unit_of_the_user(tmp_path: Path) -> None:
    (line,) = read(program(tmp_path, 'echo "$@"'))
    assert line.startswith("--user --unit a.service --lines ")


@pytest.mark.parametrize("script", ["exit 1", "exec sleep 600"])
def test_a_journal_that_cannot_be_read_has_no_lines(tmp_path: Path, script: str) -> None:
    assert read(program(tmp_path, script)) == []


def test_a_program_that_is_gone_has_none_either(tmp_path: Path) -> None:
    assert read(str(tmp_path / "gone")) == []
