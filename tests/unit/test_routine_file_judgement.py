"""A whole file: every problem at once, each key in its place, warnings that refuse nothing."""

import time

import pytest

from ankita_agent.core.keys import NOT_YET
from ankita_agent.core.problems import Severity
from ankita_agent.core.routine_file import MOST_PROBLEMS
from tests.routine_texts import BAD, BAD_BEYOND_A_SCHEMA, GOOD, UNREADABLE, in_routine, judged, the_problem


@pytest.mark.parametrize("text", GOOD)
def test_a_good_file_has_no_problems(text: str) -> None:
    judgement = judged(text)
    assert judgement.problems == ()
    assert judgement.file is not None


@pytest.mark.parametrize("content", [*BAD, *BAD_BEYOND_A_SCHEMA, *UNREADABLE])
def test_a_bad_file_gives_no_routines_and_every_problem_a_place_and_a_fix(content: str | bytes) -> None:
    judgement = judged(content)
    assert judgement.file is None
    assert judgement.errors
    for problem in judgement.problems:
        assert problem.line >= 1
        assert problem.column >= 1
        assert problem.problem
        assert problem.fix


def test_all_problems_are_told_at_once_in_the_order_of_the_lines() -> None:
    text = """\
agent: {concurrency: many}
defaults: {timeout: 5, env: {1: x}}
routines:
  a: {schedule: never, run: '', timeout: 5}
  b: {schedule: daily 08:00, run: x, colour: red}
"""
    places = [(problem.line, problem.column) for problem in judged(text).problems]
    assert places == [(1, 22), (2, 21), (2, 30), (4, 17), (4, 29), (4, 42), (5, 38)]


def test_a_mistake_in_the_defaults_is_told_there_and_not_in_every_routine() -> None:
    problem = the_problem("defaults: {timeout: 5}\n" + in_routine())
    assert problem.line == 1


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("shedule", "schedule"),
        ("kill-after", "kill_after"),
        ("Timeout", "timeout"),
        ("command", "run"),
        ("cmd", "run"),
        ("comand", "run"),
        ("cron", "schedule"),
        ("tz", "timezone"),
        ("working_dir", "cwd"),
        ("environment", "env"),
        ("disabled", "enabled"),
    ],
)
def test_an_unknown_key_is_answered_with_the_nearest_known_one(written: str, meant: str) -> None:
    good = {"kill_after": "5s", "timeout": "5s", "timezone": "UTC", "env": "{A: b}", "schedule": "every 5m"}
    others = [each for each in ("schedule: daily 08:00", "run: date") if not each.startswith(meant)]
    text = "routines:\n  a:\n" + "".join(f"    {each}\n" for each in (f"{written}: {good.get(meant, 'x')}", *others))
    problem = the_problem(text)
    assert problem.problem == f"unknown key '{written}' in the routine 'a'"
    assert problem.fix.startswith(f"write `{meant}:")
    assert (problem.line, problem.column) == (3, 5)


def test_an_unknown_key_whose_meaning_stands_there_already_is_to_be_removed() -> None:
    assert the_problem(in_routine("cron: 0 8 * * *")).fix == "remove it: 'schedule' stands here already"


def test_an_unknown_key_that_is_near_to_none_is_answered_with_the_nearest_few() -> None:
    fix = the_problem(in_routine("zzz: x")).fix
    assert fix.startswith("remove it; the nearest keys here are '")
    assert fix.count("'") == 6


@pytest.mark.parametrize("key", sorted(NOT_YET))
def test_a_key_that_is_not_supported_yet_is_refused_and_not_swallowed(key: str) -> None:
    problem = the_problem(in_routine(f"{key}: 1"))
    assert problem.problem == f"'{key}' is not supported yet"
    assert (problem.line, problem.column) == (5, 5)


@pytest.mark.parametrize(
    "line", ["overlap: queue", "overlap: replace", "overlap: allow", "catch_up: all", "catch_up: {all: 3}"]
)
def test_a_value_that_is_not_supported_yet_is_refused_and_not_swallowed(line: str) -> None:
    assert "not supported yet" in the_problem(in_routine(line)).problem


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("schedule: daily 08:00\n", "'schedule' stands at the top level and belongs to a routine"),
        ("concurrency: 3\n", "'concurrency' stands at the top level"),
        ("backup: {schedule: daily 08:00, run: x}\n", "the routine 'backup' stands at the top level"),
        ("jobs: {}\n", "unknown key 'jobs'"),
        (
            "routines:\n  schedule: daily 08:00\n  run: x\n",
            "'schedule' stands where the name of a routine belongs",
        ),
        ("defaults: {schedule: daily 08:00}\n", "'schedule' cannot stand in defaults"),
        ("defaults: {concurrency: 3}\n", "'concurrency' belongs to the agent"),
        ("agent: {timeout: 3m}\n", "'timeout' cannot stand in agent"),
        (in_routine("concurrency: 3"), "'concurrency' belongs to the agent"),
        ("routines: 3\n", "'routines' holds a single value"),
        ("agent: 3\n", "'agent' holds a single value"),
        ("defaults: []\n", "'defaults' holds a list"),
        ("- a\n", "the file holds a list where it needs the key 'routines'"),
        ("routines:\n  a: date\n", "the routine 'a' holds a single value"),
        ("routines:\n  a:\n", "the routine 'a' holds nothing"),
    ],
)
def test_what_stands_on_the_wrong_level_is_told_where_it_belongs(text: str, said: str) -> None:
    problem = the_problem(text)
    assert problem.problem == said
    assert problem.fix


def test_a_routine_needs_a_schedule_and_a_run() -> None:
    missing = judged("routines:\n  a: {timeout: 3m}\n").problems
    assert [problem.problem for problem in missing] == [
        "the routine 'a' has no run",
        "the routine 'a' has no schedule",
    ]
    assert {(problem.line, problem.column) for problem in missing} == {(2, 3)}


HOME_STAYS = "'PATH' holds a variable, which stays as it is: nothing is expanded in 'env'"


def test_a_warning_refuses_nothing() -> None:
    judgement = judged(in_routine(run="run: echo a # b"))
    assert [problem.severity for problem in judgement.problems] == [Severity.WARNING]
    assert judgement.errors == ()
    assert judgement.file is not None


@pytest.mark.parametrize(
    ("line", "run", "said"),
    [
        ("", "run: [cat, x, '|', sort]", None),
        ("", "run: [cat, x, '>', y]", None),
        ("", "run: [cat, x, &&, y]", "an unquoted [ begins a list in YAML"),
        ("", "run: [cat, ;, y]", "a list is run without a shell, so the program is given ';' as an argument"),
        ("", "run: [ls, ~/x]", "a list is run without a shell, so '~/x' stays as it is"),
        ("", "run: [ls, $HOME]", "a list is run without a shell, so '$HOME' stays as it is"),
        ("env: {PATH: $HOME/bin}", "run: x", HOME_STAYS),
        ("env: {P: pa$word}", "run: x", None),
    ],
)
def test_what_only_a_shell_would_expand_is_warned_of(line: str, run: str, said: str | None) -> None:
    lines = [line] if line else []
    assert [problem.problem for problem in judged(in_routine(*lines, run=run)).problems] == ([said] if said else [])


def test_the_defaults_are_warned_of_where_they_stand() -> None:
    assert the_problem("defaults: {env: {PATH: $HOME/bin}}\n" + in_routine()).line == 1


def test_a_schedule_that_surprises_is_warned_of_at_its_place() -> None:
    problem = the_problem(in_routine(schedule="schedule: '*/35 * * * *'"))
    assert problem.severity is Severity.WARNING
    assert (problem.line, problem.column) == (3, 15)
    assert "every 35m" in problem.fix


def test_an_anchor_with_a_mistake_is_told_once_however_often_it_is_used() -> None:
    text = "routines:\n  a: &a {schedule: daily 08:00, run: x, timeout: 5}\n  b: *a\n  c: *a\n"
    assert the_problem(text).line == 2


def test_very_many_problems_are_cut_short_and_said_to_be() -> None:
    text = "routines:\n" + "".join(f"  r{n}: {{schedule: x, run: ''}}\n" for n in range(10_000))
    problems = judged(text).problems
    assert MOST_PROBLEMS <= len(problems) <= MOST_PROBLEMS + 10
    assert "too many problems" in problems[-1].problem


def test_very_many_warnings_are_cut_short_and_refuse_nothing() -> None:
    text = "routines:\n" + "".join(f"  r{n}:\n    schedule: daily 08:00\n    run: echo 'x\n" for n in range(3000))
    judgement = judged(text)
    assert judgement.file is not None
    assert len(judgement.file.routines) == 3000
    assert len(judgement.problems) <= MOST_PROBLEMS + 10
    assert "no further warnings" in judgement.problems[-1].problem


def test_a_time_zone_that_is_wrong_in_another_way_in_every_routine_costs_little() -> None:
    text = "routines:\n" + "".join(
        f"  r{n}: {{schedule: daily 08:00, run: x, timezone: Europe/Place{n}}}\n" for n in range(10_000)
    )
    began = time.process_time()
    assert len(judged(text).problems) >= MOST_PROBLEMS
    assert time.process_time() - began < 5


def test_reading_ten_thousand_routines_keeps_all_of_them() -> None:
    text = "routines:\n" + "".join(f"  r{n}:\n    schedule: every {n % 59 + 1}m\n    run: x\n" for n in range(10_000))
    judgement = judged(text)
    assert judgement.file is not None
    assert len(judgement.file.routines) == 10_000
