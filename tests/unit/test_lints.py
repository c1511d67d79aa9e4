"""What works in a routines.yaml and was probably not meant: what holds for the agent."""

import re

import pytest

from ankita_agent.adapters.yaml_files import read_document
from ankita_agent.core.instants import SECOND
from ankita_agent.core.lints import KILL_AFTER, STOPS_WITHIN
from ankita_agent.core.problems import Problem, Severity
from ankita_agent.core.routine import AgentSettings
from ankita_agent.core.routine_file import Judgement, judge
from ankita_agent.shipped import shipped_text


def judged(settings: str) -> Judgement:
    text = f"agent: {{{settings}}}\nroutines: {{a: {{schedule: daily 08:00, run: x}}}}\n"
    return judge(read_document(text.encode()), "UTC")


def problems(settings: str) -> tuple[Problem, ...]:
    return judged(settings).problems


def test_a_drain_after_which_the_service_would_be_killed_is_warned_of() -> None:
    [found] = problems("stop_drain: 2m")
    assert (found.line, found.column, found.severity) == (1, 21, Severity.WARNING)
    assert found.problem == "a stop may take 2m10s, with kill_after 10s, and the service is killed after 45s"
    assert "write `stop_drain: 30s` or less" in found.fix
    assert "`TimeoutStopSec=135` below [Service] in `systemctl --user edit ankita-agent`" in found.fix


@pytest.mark.parametrize("settings", ["", "stop_drain: 30s", "concurrency: 2", "stop_drain: 0s"])
def test_a_drain_that_fits_is_not(settings: str) -> None:
    assert problems(settings) == ()


def test_a_drain_that_is_wrong_is_only_told_to_be_wrong() -> None:
    [found] = problems("stop_drain: 2 fortnights")
    assert found.severity is Severity.ERROR


def test_the_service_is_killed_after_as_long_as_its_unit_says() -> None:
    [told] = re.findall(r"^TimeoutStopSec=(\d+)$", shipped_text("units", "ankita-agent.service"), re.MULTILINE)
    assert int(told) * SECOND == STOPS_WITHIN
    assert AgentSettings().stop_drain + KILL_AFTER < STOPS_WITHIN


def test_a_run_that_says_nothing_of_it_is_killed_after_as_long_as_is_reckoned_with() -> None:
    found = judged("").file
    assert found is not None
    assert found.routines[0].kill_after == KILL_AFTER
