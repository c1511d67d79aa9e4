"""The suite's own guards: each test has a home of its own, and a missing capability is never passed over."""

import os
from pathlib import Path

import pytest

from tests import capabilities


def test_a_test_sees_a_home_of_its_own_and_no_directories_of_the_person(home: Path) -> None:
    assert os.environ["HOME"] == str(home)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        assert os.environ[name].startswith(str(home))
    assert not [name for name in os.environ if name.startswith("ANKITA_")]


def test_required_capabilities_are_read_from_a_comma_list() -> None:
    assert capabilities.required(" root, mount,") == {"root", "mount"}
    assert capabilities.required("") == frozenset()


def test_a_misspelled_capability_is_refused_and_not_silently_never_required() -> None:
    with pytest.raises(ValueError, match="unknown capability rooot"):
        capabilities.required("rooot")


def test_a_missing_capability_skips_its_test_with_the_reason() -> None:
    assert capabilities.judge("bindfs", frozenset({"root"}), _no_program) == capabilities.Lacking("no program", False)


def test_a_missing_capability_that_was_required_fails_its_test() -> None:
    lacking = capabilities.judge("bindfs", frozenset({"bindfs"}), _no_program)
    assert lacking is not None
    assert lacking.fails
    assert "'bindfs', and it is missing: no program" in lacking.reason


def test_a_capability_that_is_there_lets_its_test_run() -> None:
    assert capabilities.judge("root", frozenset({"root"}), lambda name: None) is None


def test_every_capability_gives_an_answer_on_this_machine() -> None:
    for name in capabilities.NAMES:
        assert capabilities.why_missing(name) != ""


def _no_program(name: str) -> str | None:
    return "no program"
