"""Advice is followed to the letter, for a corpus of mistakes: the problem is gone then, and nothing new is wrong."""

import re
from itertools import islice
from random import Random
from typing import Final

import pytest

from ankita_agent.core.problems import Problem, Severity
from ankita_agent.core.routine import Routine
from tests.fuzz.broken_files import broken_files
from tests.fuzz.fuzz_routines import examine
from tests.mistakes import OTHER_LINES, RUNS, SCHEDULES, TEXTS
from tests.routine_texts import BAD, BAD_BEYOND_A_SCHEMA, in_routine, judged

_TO_TYPE: Final = re.compile(r"(?:write|as in|with) `(.+?)`(?=$| or |[,;: ])")
_ENTRY: Final = re.compile(r"(?P<lead>\s*)(?P<key>[^\s:]+):(?P<value>.*)")
_MOST_STEPS: Final = 6

BY_HAND: Final = re.compile(
    r"move it |give it |choose |leave out |write it flatter|write the value in quotes|write the whole |write letters"
    r"|write the path|write the five|write a number|write one,|write some text|write names"
    r"|write a schedule and a run|in place of '"
)
"""How advice begins, or what is in it, that a program cannot follow: it leaves something to decide."""


def followed(text: str, problem: Problem) -> str | None:
    """The file after a person did what the first advice says; None when it leaves something to decide."""
    lines, at = text.split("\n"), problem.line - 1
    if match := re.match(r"indent (?:line|the lines) ([0-9]+)(?: to ([0-9]+))? by two more", problem.fix):
        for number in range(int(match[1]) - 1, int(match[2] or match[1])):
            lines[number] = "  " + lines[number]
    elif match := re.search(r"^indent it by ([0-9]+)|this line by ([0-9]+)$", problem.fix):
        lines[at] = " " * int(match[1] or match[2]) + lines[at].strip()
    elif match := re.match(r"remove one of the lines [0-9]+ and ([0-9]+)", problem.fix):
        _remove(lines, int(match[1]) - 1)
    elif problem.fix.startswith("remove it"):
        _remove(lines, at)
    elif match := _TO_TYPE.search(problem.fix):
        _type(lines, at, problem.column, match[1], problem.fix)
    else:
        return None
    return "\n".join(lines)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _remove(lines: list[str], at: int) -> None:
    """Take out a line with all that stands below it."""
    depth = _depth(lines[at])
    del lines[at]
    while at < len(lines) and _depth(lines[at]) > depth:
        del lines[at]


def _type(lines: list[str], at: int, column: int, typed: str, advice: str) -> None:
    """Put what was typed where the advice says: a line, below a line, a key, or a value."""
    if match := re.search(r"on line ([0-9]+)", advice):
        at = int(match[1]) - 1
    line = lines[at]
    entry, lead = _ENTRY.fullmatch(line), line[: _depth(line)]
    if "no-break spaces" in advice:
        lines[at] = line.replace("\xa0", "")
    elif "{" in line[: column - 1]:
        lines[at] = _typed_between_braces(line, column, typed)
    elif "for it below" in advice:
        lines.insert(at + 1, f"{lead}  {typed}")
    elif typed.endswith(":") and entry and entry["value"] and entry["key"] != typed[:-1]:
        lines[at] = f"{lead}{typed}{entry['value']}"
    elif re.match(r"[\w.-]+:( |$)|- |['\"]?[\w.-]+['\"]?:", typed) or not entry or match:
        if "in place of the list" in advice or ": - " in f":{line}" or line.lstrip().startswith("- "):
            _type_over_list(lines, at, typed)
        else:
            lines[at] = lead + typed
    else:
        lines[at] = f"{lead}{entry['key']}: {typed}"


def _typed_between_braces(line: str, column: int, typed: str) -> str:
    """A key, a value or both in place of the one at that column of `{key: value, …}`."""
    before, behind = line[: column - 1], line[column - 1 :]
    old = re.match(r"[^:,}]+:" if typed.endswith(":") else r"\[[^\]]*\]|[^,}\n]+", behind)
    assert old is not None
    if ": " in typed:
        before = re.sub(r"[\w.-]+:\s*$", "", before)
    return before + typed + behind[old.end() :]


def _type_over_list(lines: list[str], at: int, typed: str) -> None:
    """Replace one item by an item, and a whole list by an entry."""
    if typed.startswith("- "):
        lines[at] = lines[at][: _depth(lines[at])] + typed
        return
    first = at
    while lines[first].lstrip().startswith("- "):
        first -= 1
    last = first + 1
    while last < len(lines) and lines[last].lstrip().startswith("- "):
        last += 1
    lines[first:last] = [lines[first][: _depth(lines[first])] + typed]


def said(text: str) -> set[tuple[str, Severity]]:
    return {(each.problem, each.severity) for each in judged(text).problems}


def mended(text: str) -> str:
    """The file after its advice was followed, one problem after another, until none is left or can be."""
    for _ in range(_MOST_STEPS):
        steps = (followed(text, problem) for problem in judged(text).problems)
        following = next((step for step in steps if step is not None), None)
        if following is None:
            return text
        text = following
    raise AssertionError(f"advice without end:\n{text}")


def the_routine_of(text: str) -> Routine:
    judgement = judged(mended(text))
    assert judgement.problems == (), mended(text)
    assert judgement.file is not None
    (routine,) = judgement.file.routines
    return routine


@pytest.mark.parametrize("text", TEXTS)
def test_each_advice_followed_to_the_letter_ends_its_problem_and_begins_no_other(text: str) -> None:
    problems = judged(text).problems
    assert problems, "a mistake is noticed"
    for problem in problems:
        after = followed(text, problem)
        if after is None:
            assert BY_HAND.search(problem.fix), problem.fix
            continue
        left = said(after)
        assert (problem.problem, problem.severity) not in left, (problem.fix, after)
        assert left <= said(text), (problem.fix, after)


@pytest.mark.parametrize("line", RUNS)
def test_a_command_is_run_as_it_was_meant_once_the_advice_is_followed(line: str) -> None:
    assert the_routine_of(in_routine(run=line)).run == RUNS[line]


@pytest.mark.parametrize("line", SCHEDULES)
def test_a_schedule_is_what_was_meant_once_the_advice_is_followed(line: str) -> None:
    meant = SCHEDULES[line]
    assert (
        the_routine_of(in_routine(schedule=line)).schedule
        == the_routine_of(in_routine(schedule=f"schedule: '{meant}'")).schedule
    )


@pytest.mark.parametrize(
    ("line", "field", "meant"),
    [
        ("disabled: true", "enabled", False),
        ("disabled: no", "enabled", True),
        ("paused: yes", "enabled", False),
        ("persistent: true", "catch_up", "latest"),
        ("persistent: false", "catch_up", "none"),
        ("timeout: 5 minutes", "timeout", 300 * 10**9),
        ("timeout: 1.5h", "timeout", 5400 * 10**9),
        ("env: [A=b, 'C=d: e']", "env", {"A": "…", "C": "…"}),  # for every value, which may be a secret
        ("cwd: $HOME/x", "cwd", "~/x"),
        ("timezone: berlin", "timezone", "Europe/Berlin"),
        ("description: [draft] x", "description", "[draft] x"),
    ],
)
def test_a_value_means_what_it_meant_once_the_advice_is_followed(line: str, field: str, meant: object) -> None:
    assert getattr(the_routine_of(in_routine(line)), field) == meant


ALL_TEXTS: Final = (*TEXTS, *BAD, *BAD_BEYOND_A_SCHEMA)


@pytest.mark.parametrize("text", ALL_TEXTS)
def test_messages_quote_what_was_written_and_show_what_to_write_in_one_style(text: str) -> None:
    for problem in judged(text).problems:
        assert "`" not in problem.problem
        assert not re.search(r'"[\w@*/ -]+"', problem.problem.replace("'", "")), problem.problem
        for typed in re.findall(r"`([^`]+)`(?=$| or |[,;: ])", problem.fix):
            assert typed[0] not in "@*&!%|>", problem.fix
        prose = re.sub(r"`.*`", "``", problem.fix)
        assert not re.search(r"write:|instead|nearest is|\badd\b|\buse\b|\bput\b(?! two spaces)", prose), problem.fix
        assert '"' not in prose, problem.fix
        assert len(problem.fix) < 250, problem.fix


def test_no_mistake_is_answered_with_two_advices_that_contradict_each_other() -> None:
    text = "routines:\n  a:\n    cron: 0 8 * * *\n    command: date\n"
    assert [each.fix for each in judged(text).problems] == ["write `schedule:`", "write `run:`"]


@pytest.mark.parametrize("line", OTHER_LINES)
def test_a_mistake_hides_no_other_one_below_it(line: str) -> None:
    below = "  b:\n    schedule: sometimes\n    run: ''\n"
    problems = said(in_routine(line) + below)
    assert {problem for problem, _ in said("routines:\n" + below)} <= {problem for problem, _ in problems}


@pytest.mark.parametrize("head", ["jobs:", "Routines:", "routines", "tasks:"])
def test_a_wrong_name_above_routines_hides_nothing_in_them(head: str) -> None:
    below = "  b:\n    schedule: sometimes\n    run: ''\n    timeout: 5\n"
    assert len(judged(f"{head}\n{below}").problems) == 4


@pytest.mark.parametrize(
    "line", ["run: |\n    echo a\n    echo b", "run: [echo, hi", "run echo hi", 'run: "echo "hi" there"', "run: @x"]
)
def test_what_is_no_yaml_hides_nothing_below_it(line: str) -> None:
    text = f"routines:\n  a:\n    {line}\n    schedule: dayly\n    timeout: 5\n  b: {{}}\n"
    assert len(judged(text).problems) == 5


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("routines\n  a:\n    schedule: daily 08:00\n    run: date\n", 1, "routines"),
        ("routines:\n  backup\n    schedule: daily 08:00\n    run: date\n", 2, "backup"),
        ("routines:\n  backup\n  a:\n    schedule: daily 08:00\n    run: date\n", 2, "backup"),
        ("routines:\n  a:\n    schedule daily 8:30\n    run: date\n", 3, "schedule"),
        ("routines:\n  a:\n    run: date\n    schedule daily 8:30\n", 4, "schedule"),
        ("routines:\n  a:\n    schedule: daily 08:00\n    run date\n    timeout: 5m\n", 4, "run"),
        ("routines:\n  a:\n    schedule: daily 08:00\n    run: date\n    env\n      A: b\n", 5, "env"),
        ("routines:\n  a:\n    run: |\n      run it\n      schedule\n    schedule daily 08:00\n", 6, "schedule"),
    ],
)
def test_a_missing_colon_is_told_on_its_own_line(text: str, line: int, key: str) -> None:
    found = [(each.line, each.problem) for each in judged(text).problems if "colon" in each.problem]
    assert found == [(line, f"a colon is missing after '{key}'")]


def test_the_text_of_a_block_is_never_taken_for_a_key_without_its_colon() -> None:
    text = "routines:\n  a:\n    schedule: daily 08:00\n    run: |\n      run it\n      timeout\n   timeout: 5m\n"
    assert not any("colon" in each.problem for each in judged(text).problems)


def test_the_corpus_broken_further_at_random_is_judged_in_order() -> None:
    for content in islice(broken_files(Random(20261201), [text.encode() for text in TEXTS]), 600):
        examine(content)
