"""The properties of a unit as systemd words them, and the names that units can bear."""

import pytest

from ankita_agent.core.service import Activity
from ankita_agent.core.unit_properties import is_unit_name, read_unit, read_version

RUNS = {
    "LoadState": "loaded",
    "UnitFileState": "enabled",
    "ActiveState": "active",
    "SubState": "running",
    "FragmentPath": "/x",
    "NeedDaemonReload": "no",
    "MainPID": "17",
    "NRestarts": "2",
    "Result": "success",
    "ExecMainCode": "0",
    "ExecMainStatus": "0",
    "StatusText": "1 of 3",
}


def test_what_runs_has_a_process_and_no_exit_status() -> None:
    state = read_unit(RUNS, ("/d",))
    assert (state.activity, state.main_pid, state.restarts) == (Activity.ACTIVE, 17, 2)
    assert (state.exit_status, state.by_signal) == (None, False)
    assert (state.drop_ins, state.status_text, state.needs_reload) == (("/d",), "1 of 3", False)


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [("1", "0", (0, False)), ("1", "9", (9, False)), ("2", "9", (9, True)), ("3", "6", (6, True))],
    ids=["exited", "exited with 9", "killed", "dumped core"],
)
def test_a_status_is_an_exit_status_or_a_signal_as_its_code_says(
    code: str, status: str, expected: tuple[int, bool]
) -> None:
    state = read_unit(RUNS | {"MainPID": "0", "ExecMainCode": code, "ExecMainStatus": status}, ())
    assert (state.exit_status, state.by_signal) == expected
    assert state.main_pid is None


def test_a_unit_that_is_no_service_has_no_process() -> None:
    state = read_unit({"LoadState": "loaded", "ActiveState": "active"}, ())
    assert (state.main_pid, state.restarts, state.result, state.exit_status) == (None, 0, "", None)


@pytest.mark.parametrize("shown", [{}, {"LoadState": "loaded"}, RUNS | {"ActiveState": "resting"}])
def test_what_is_not_the_state_of_a_unit_is_not_taken_for_one(shown: dict[str, str]) -> None:
    with pytest.raises((KeyError, ValueError)):
        read_unit(shown, ())


@pytest.mark.parametrize(
    ("text", "number"),
    [("252.39-1~deb12u2", 252), ("v257", 257), ("258~rc1", 258), ("249 (249.11-0ubuntu3)", 249)],
)
def test_the_major_number_of_a_version_is_read_whatever_a_distribution_adds(text: str, number: int) -> None:
    assert read_version(text) == number


@pytest.mark.parametrize("text", ["", "unknown", "-1"])
def test_a_version_without_a_number_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="is no version"):
        read_version(text)


@pytest.mark.parametrize(
    "name", ["a.service", "-a.path", "a@.service", "a@b-c.timer", r"a\x2db.slice", f"{'x' * 247}.service"]
)
def test_a_name_of_a_unit_is_known(name: str) -> None:
    assert is_unit_name(name)


@pytest.mark.parametrize(
    "name",
    ["", ".service", "a", "a.conf", "a b.service", "*.service", "@a.service", "a/b.service", f"{'x' * 248}.service"],
)
def test_another_text_is_no_name_of_a_unit(name: str) -> None:
    assert not is_unit_name(name)
