"""Why a service is not up is told in words that lead somewhere."""

from dataclasses import replace
from typing import Final

import pytest

from ankita_agent.core.service import Activity, JobEnd, UnitState
from ankita_agent.core.service_ends import LINES, explain_end, lines_for

FAILED: Final = UnitState(
    load="loaded",
    file="enabled",
    activity=Activity.FAILED,
    sub="failed",
    fragment="/u",
    drop_ins=(),
    needs_reload=False,
    main_pid=None,
    restarts=0,
    result="exit-code",
    exit_status=1,
    status_text="",
)


@pytest.mark.parametrize(
    ("status", "fact", "do"),
    [
        (1, "exit status 1", LINES),
        (73, "cannot write its state", LINES),
        (78, "no usable routines.yaml", "ankita-agent check"),
        (127, "its program is gone", "ankita-agent install"),
        (203, "its program is gone", "ankita-agent install"),
        (228, "a drop-in", "ankita-agent install --no-hardening"),
    ],
)
def test_an_exit_status_is_told_with_what_it_means_and_what_mends_it(status: int, fact: str, do: str) -> None:
    told = explain_end(replace(FAILED, exit_status=status), JobEnd.FAILED)
    assert fact in told.fact
    assert do in told.do
    assert told.do.endswith(LINES)


@pytest.mark.parametrize(
    ("result", "fact"),
    [
        ("signal", "it was ended by signal 9"),
        ("core-dump", "it was ended by signal 9"),
        ("watchdog", "it made no progress"),
        ("timeout", "not get ready in time"),
        ("oom-kill", "out of memory"),
        ("brand-new", "result brand-new"),
    ],
)
def test_what_ended_it_otherwise_is_told_and_a_signal_is_never_taken_for_a_status(result: str, fact: str) -> None:
    told = explain_end(replace(FAILED, result=result, exit_status=9, by_signal=True), JobEnd.FAILED)
    assert fact in told.fact


@pytest.mark.parametrize(
    ("activity", "now"),
    [
        (Activity.ACTIVATING, "tries again"),
        (Activity.FAILED, "does not try again"),
        (Activity.ACTIVE, "runs by now"),
    ],
)
def test_it_is_told_whether_the_manager_tries_again(activity: Activity, now: str) -> None:
    assert now in explain_end(replace(FAILED, activity=activity), JobEnd.FAILED).now


@pytest.mark.parametrize("status", [1, 78, 126, 127, 203, 226])
def test_a_drop_in_is_named_where_it_can_be_the_cause(status: int) -> None:
    state = replace(FAILED, exit_status=status, drop_ins=("/u.d/a b.conf",))
    assert ("'/u.d/a b.conf'" in explain_end(state, JobEnd.FAILED).do) == (status >= 126)
    assert "beside" not in explain_end(replace(state, drop_ins=()), JobEnd.FAILED).do


def test_what_the_service_of_a_system_account_said_is_for_root_to_read() -> None:
    assert lines_for(1000) == LINES
    assert lines_for(999).startswith("sudo journalctl _SYSTEMD_USER_UNIT=ankita-agent.service _UID=999 ")
    assert explain_end(FAILED, JobEnd.FAILED, lines_for(999)).do.endswith(lines_for(999))
