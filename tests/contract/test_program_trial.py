"""Trying a program as its service would start it, with real ones."""

import sys
from pathlib import Path

from ankita_agent.adapters.program_trial import find_fault
from ankita_agent.core.instants import MILLISECOND, Duration


def test_a_program_that_begins_has_no_fault() -> None:
    assert find_fault((sys.executable, "-P", "-c", "pass"), {}) == ""


def test_a_module_that_is_not_there_is_named_in_its_own_words() -> None:
    said = find_fault((sys.executable, "-P", "-m", "no_such_module", "--version"), {})
    assert said.endswith("No module named no_such_module")


def test_only_the_variables_that_are_given_count(tmp_path: Path) -> None:
    (tmp_path / "somewhere_else.py").touch()
    program = (sys.executable, "-P", "-m", "somewhere_else")
    assert find_fault(program, {"PYTHONPATH": str(tmp_path)}) == ""
    assert "No module named" in find_fault(program, {})


def test_a_program_that_is_not_there_or_says_nothing_has_a_fault() -> None:
    assert find_fault(("/no/such/program",), {}) == "/no/such/program: No such file or directory"
    assert find_fault(("/bin/false",), {}) == "exit status 1"


def test_a_program_that_does_not_end_is_not_waited_for_without_end() -> None:
    assert find_fault((sys.executable, "-c", "import signal; signal.pause()"), {}, Duration(500 * MILLISECOND)) == ""
