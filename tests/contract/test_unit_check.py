"""What systemd says against a unit, by a checker that speaks, is silent, hangs or is not there."""

import os
from pathlib import Path

import pytest

from ankita_agent.adapters.unit_check import find_complaints
from ankita_agent.core.instants import MILLISECOND, Duration

UNIT = "ankita-agent.service"
SPEAKS = f"""echo 'nobody reads this'
echo '{UNIT}: Service has more than one ExecStart= setting.' >&2
echo '/home/ann/x.conf:1: Assignment outside of section.' >&2
echo 'Unit {UNIT} has a bad unit file setting.' >&2
exit 1
"""


def checker(directory: Path, script: str) -> str:
    program = directory / "systemd-analyze"
    with open(os.open(program, os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\n{script}")
    return str(program)


def said(program: str) -> list[str]:
    return find_complaints(program, UNIT, {"PATH": "/usr/bin:/bin"}, Duration(500 * MILLISECOND))


def test_why_a_unit_is_not_taken_is_told_without_its_name_and_without_what_says_nothing(tmp_path: Path) -> None:
    assert said(checker(tmp_path, SPEAKS)) == [
        "Service has more than one ExecStart= setting.",
        "/home/ann/x.conf:1: Assignment outside of section.",
    ]


@pytest.mark.parametrize("script", ["exit 0\n", "exec sleep 60\n", "exit 1\n"])
def test_a_checker_that_says_nothing_or_takes_too_long_is_no_fault(tmp_path: Path, script: str) -> None:
    assert said(checker(tmp_path, script)) == []


def test_a_checker_that_is_not_there_is_no_fault(tmp_path: Path) -> None:
    assert said(str(tmp_path / "systemd-analyze")) == []


@pytest.mark.needs("systemd-analyze")
def test_the_real_one_says_why_a_unit_with_a_drop_in_is_not_taken(tmp_path: Path) -> None:
    units = tmp_path / ".config/systemd/user"
    (units / f"{UNIT}.d").mkdir(parents=True)
    (units / UNIT).write_text("[Service]\nType=notify\nExecStart=/bin/true\n")
    (units / f"{UNIT}.d" / "mine.conf").write_text("[Service]\nExecStart=/bin/false\n")
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    [line] = find_complaints("/usr/bin/systemd-analyze", UNIT, environment)
    assert "more than one ExecStart=" in line
