"""The model: what each key may hold, what it becomes, and what is said when it does not fit."""

from dataclasses import FrozenInstanceError, replace

import pytest

from ankita_agent.core.instants import DAY, HOUR, MINUTE, SECOND, Duration
from ankita_agent.core.problems import Problem
from ankita_agent.core.routine import CatchUp, Overlap, Routine, expand_home, in_force
from ankita_agent.core.schedule import parse_schedule
from tests.routine_texts import DESIGN, EVERYTHING, in_routine, judged, the_problem, the_routine


def test_the_example_of_the_documents_is_read_as_it_says() -> None:
    routine = the_routine(DESIGN)
    assert routine.name == "morning-briefing"
    assert routine.schedule == parse_schedule("weekdays 08:00")
    assert routine.run == ("/bin/sh", "-c", "~/bin/briefing")
    assert (routine.timezone, routine.timeout, routine.grace) == ("Europe/Berlin", 3 * MINUTE, 2 * HOUR)


def test_every_key_reaches_its_field() -> None:
    judgement = judged(EVERYTHING)
    assert judgement.problems == ()
    assert judgement.file is not None
    agent = judgement.file.agent
    assert (agent.concurrency, agent.settle, agent.stop_drain) == (2, MINUTE, 5 * SECOND)
    assert judgement.file.routines == (
        Routine(
            name="all.of-it_1",
            schedule=parse_schedule("*/5 8-18 * * mon-fri"),
            run=("/usr/bin/env", "printf", "%s", "5"),
            description="every key there is",
            cwd="~/projects",
            env={"LANG": "de_DE.UTF-8", "EDITOR": "ed", "DEBUG": "no", "MODE": "0755", "EMPTY": ""},
            env_file="~/.config/secrets.env",
            shell="/bin/bash",
            timezone="America/New_York",
            enabled=True,
            timeout=None,
            kill_after=Duration(30 * SECOND),
            grace=Duration(10 * MINUTE),
            catch_up=CatchUp.NONE,
            overlap=Overlap.SKIP,
            jitter=Duration(90 * SECOND),
            success_exit_status=(0, 3),
            quiet_output="nothing to report",
            rerun_lost=True,
            leave_running=False,
            stale_after=Duration(2 * DAY),
            keep_logs=7,
        ),
    )


def test_what_is_left_out_has_the_documented_default() -> None:
    routine = the_routine(in_routine())
    assert (routine.timeout, routine.kill_after, routine.grace) == (HOUR, 10 * SECOND, None)
    assert (routine.catch_up, routine.overlap, routine.jitter) == (CatchUp.LATEST, Overlap.SKIP, 0)
    assert (routine.cwd, routine.shell, routine.env, routine.env_file) == ("~", "/bin/sh", {}, None)
    assert (routine.enabled, routine.rerun_lost, routine.leave_running) == (True, False, False)
    assert (routine.success_exit_status, routine.quiet_output, routine.keep_logs) == ((0,), None, 30)


def test_a_routine_without_a_zone_has_that_of_the_machine() -> None:
    judgement = judged(in_routine(), "Asia/Tokyo")
    assert judgement.file is not None
    assert judgement.file.routines[0].timezone == "Asia/Tokyo"


def test_a_machine_whose_zone_nobody_knows_gets_utc_and_a_warning() -> None:
    judgement = judged(in_routine(), "Nowhere/Land")
    assert judgement.file is not None
    assert judgement.file.routines[0].timezone == "UTC"
    assert "the machine's time zone is not known" in judgement.problems[0].problem


def test_the_shell_of_a_routine_runs_its_text_and_not_its_list() -> None:
    assert the_routine(in_routine("shell: /bin/bash")).run == ("/bin/bash", "-c", "date")
    assert the_routine(in_routine("shell: /bin/bash", run="run: [date, -u]")).run == ("date", "-u")
    defaults = "defaults: {shell: /bin/zsh}\n" + in_routine()
    assert the_routine(defaults).run == ("/bin/zsh", "-c", "date")


def test_words_of_a_list_are_taken_as_written() -> None:
    assert the_routine(in_routine(run="run: [sleep, 0x10, yes, 1e3, '', 007]")).run == (
        "sleep", "0x10", "yes", "1e3", "", "007",
    )  # fmt: skip


def test_environments_are_merged_by_name_and_everything_else_is_replaced() -> None:
    text = "defaults:\n  env: {A: 1, B: 2}\n  success_exit_status: [1, 2]\n"
    routine = the_routine(text + in_routine("env: {B: 3, C: 4}", "success_exit_status: 5"))
    assert routine.env == {"A": "1", "B": "3", "C": "4"}
    assert routine.success_exit_status == (5,)


@pytest.mark.parametrize("word", ["true", "yes", "on", "True", "YES", "On"])
def test_every_word_of_yaml_for_yes_is_a_yes(word: str) -> None:
    assert the_routine(in_routine(f"rerun_lost: {word}")).rerun_lost is True


@pytest.mark.parametrize("word", ["false", "no", "off", "'no'", "OFF"])
def test_every_word_of_yaml_for_no_is_a_no(word: str) -> None:
    assert the_routine(in_routine(f"enabled: {word}")).enabled is False


@pytest.mark.parametrize("name", ["a", "0", "a.b", "A-b_c.9", "x" * 64])
def test_a_name_of_letters_digits_and_marks_is_accepted(name: str) -> None:
    assert the_routine(f"routines: {{{name}: {{schedule: daily 08:00, run: date}}}}").name == name


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("../x", "x"),
        ("a b", "a-b"),
        ("-a", "a"),
        (".hidden", "hidden"),
        ("Müll raus", "Mull-raus"),
        ("a/b", "a-b"),
        ("x" * 65, "x" * 64),
        ("日本", "morning-briefing"),
        ("''", "morning-briefing"),
        ("~", "morning-briefing"),
    ],
)
def test_any_other_name_is_refused_with_one_that_is_good(name: str, instead: str) -> None:
    problem = the_problem(f"routines:\n  {name}:\n    schedule: daily 08:00\n    run: date\n")
    assert problem.fix.startswith(f"write `{instead}:`;")
    assert (problem.line, problem.column) == (2, 3)


def test_names_that_differ_in_case_alone_are_refused_since_files_bear_them() -> None:
    problem = the_problem("routines:\n  a: {schedule: daily 08:00, run: x}\n  A: {schedule: daily 08:00, run: x}\n")
    assert problem == Problem(3, 3, "the routine 'A' is named like 'a' on line 2", "give it another name")


SAID = {
    "timeout: 0s": "'timeout': '0s' is shorter than 1s",
    "timeout: 999ms": "'timeout': '999ms' is shorter than 1s",
    "timeout: 500d": "'timeout': '500d' is longer than a year",
    "timeout: -5m": "'timeout': '-5m' is negative",
    "timeout: soon": "'timeout': 'soon' is not a duration",
    "timeout: soon; or later": "'timeout': 'soon; or later' is not a duration",
    "timeout: " + "1s " * 30: "'timeout': '1s 1s 1s",
    "timeout: [5m]": "'timeout' takes a single value and holds a list",
    "timeout:": "'timeout' has no value",
    "kill_after: 11m": "'kill_after': '11m' is longer than 10m",
    "grace: none": "'grace': 'none' is not a duration",
    "stale_after: 5s": "'stale_after': '5s' is shorter than 1m",
    "keep_logs: 0": "'keep_logs': '0' is not from 1 to 10000",
    "keep_logs: -1": "'keep_logs': '-1' is not a whole number",
    "keep_logs: 1.5": "'keep_logs': '1.5' is not a whole number",
    "keep_logs: ten": "'keep_logs': 'ten' is not a whole number",
    "enabled: perhaps": "'enabled': 'perhaps' is neither yes nor no",
    "enabled: 1": "'enabled': '1' is neither yes nor no",
    "catch_up: newest": "'catch_up': 'newest' is not known",
    "overlap: maybe": "'overlap': 'maybe' is not known",
    "cwd: ~bob/x": "'cwd': '~bob/x' names the home of another user",
    "cwd: $HOME/x": "'cwd': '$HOME/x' holds a variable, and no shell reads this value",
    "cwd: ''": "'cwd' is empty",
    "env_file:": "'env_file' has no value",
    "shell: bash -eu": "'shell': 'bash -eu' is not the path of one program",
    "shell: ''": "'shell': '' is not the path of one program",
    "env: x": "'env' takes names with values and holds a single value",
    "env: {A: [1]}": "the variable 'A' takes one text and holds a list",
    "env: {a-b: 1}": "'a-b' is not the name of a variable",
    "env: {ANKITA_SLOT: 1}": "'ANKITA_SLOT' is set or taken out by the agent for every run",
    "env: {NOTIFY_SOCKET: 1}": "'NOTIFY_SOCKET' is set or taken out by the agent for every run",
    'env: {A: "\\0"}': "'A' holds a NUL character",
    "success_exit_status: 256": "'success_exit_status': '256' is not from 0 to 255",
    "success_exit_status: []": "'success_exit_status' is an empty list",
    "success_exit_status: {a: 1}": "'success_exit_status' takes a single value and holds a mapping",
    "description: ''": "'description' is empty",
    "timezone: Europe/Berln": "no time zone is named 'Europe/Berln'",
    "timezone: ../../etc/passwd": "no time zone is named '../../etc/passwd'",
}


@pytest.mark.parametrize("line", SAID)
def test_what_does_not_fit_is_said_in_plain_words_with_its_place(line: str) -> None:
    problem = the_problem(in_routine(line))
    assert problem.problem.startswith(SAID[line])
    assert problem.line == 5
    assert problem.column >= 5
    assert problem.fix


RUNS = {
    "run:": "'run' has no value",
    "run: ''": "'run' is empty",
    "run: '  '": "'run' is empty",
    "run: []": "'run' is an empty list",
    "run: ['', a]": "the program of 'run' is empty",
    "run: [a, [b]]": "'run' takes a single value and holds a list",
    "run: [a, ]": None,
    "run: [a, ~]": "'run' has no value",
    "run: [~/bin/x]": "'~/bin/x': a list is run as it is, and only a shell knows what ~ means",
    'run: "a\\0b"': "'run' holds a NUL character",
    'run: ["a\\0b"]': "'run' holds a NUL character",
}


@pytest.mark.parametrize("line", RUNS)
def test_a_command_that_could_never_run_is_refused(line: str) -> None:
    problems = judged(in_routine(run=line)).problems
    said = RUNS[line]
    assert [problem.problem for problem in problems] == ([said] if said else [])


def test_no_message_speaks_in_the_words_of_the_model_library() -> None:
    texts = [in_routine(line) for line in SAID] + [in_routine(run=line) for line in RUNS]
    for text in texts:
        for problem in judged(text).problems:
            said = f"{problem.problem} {problem.fix}".lower()
            assert not any(word in said for word in ("input", "pydantic", "validation", "str_", "valueerror"))


def test_the_place_inside_of_a_schedule_is_told() -> None:
    plain = the_problem(in_routine(schedule="schedule: 0 25 * * *"))
    quoted = the_problem(in_routine(schedule="schedule: '0 25 * * *'"))
    assert (plain.line, plain.column) == (3, 17)
    assert (quoted.line, quoted.column) == (3, 18)


def test_a_jitter_is_compared_with_the_shortest_gap_and_both_are_named() -> None:
    problem = the_problem(in_routine("jitter: 5m", schedule="schedule: '*/5 * * * *'"))
    assert problem.problem == (
        "the jitter 5m is not shorter than 5m, the shortest gap of the schedule '*/5 * * * *' of 'a'"
    )
    assert problem.fix == "write `jitter: 2m30s` or less in this routine"
    assert judged(in_routine("jitter: 4m59s", schedule="schedule: '*/5 * * * *'")).problems == ()


def test_a_jitter_of_the_defaults_is_told_at_the_routine_that_it_does_not_fit() -> None:
    problem = the_problem("defaults: {jitter: 1h}\n" + in_routine(schedule="schedule: every 1m"))
    assert problem.line == 3
    assert "the jitter 1h of the defaults is not shorter than 1m" in problem.problem


def test_a_routine_is_frozen_and_may_be_replaced_in_part() -> None:
    routine = the_routine(in_routine())
    with pytest.raises(FrozenInstanceError):
        routine.name = "b"  # type: ignore[misc]
    assert replace(routine, timeout=None).timeout is None


def test_the_meaning_of_a_routine_holds_all_but_its_name_and_description() -> None:
    routine = the_routine(EVERYTHING)
    row = in_force(routine)
    assert (row.routine, row.timezone, row.jitter, row.enabled) == (
        "all.of-it_1",
        "America/New_York",
        90 * SECOND,
        True,
    )
    assert row.description == "every key there is"
    assert in_force(replace(routine, name="b", description="c")).meaning == row.meaning
    changes: list[dict[str, object]] = [{"timeout": HOUR}, {"env": {}}, {"run": ("a",)}, {"enabled": False}]
    for change in changes:
        assert in_force(replace(routine, **change)).meaning != row.meaning  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("schedule: weekdays 08:00", "schedule: 0 8 * * mon-fri"),
        ("schedule: '@daily'", "schedule: daily 00:00"),
        ("schedule: every 60s", "schedule: every 1m"),
    ],
)
def test_a_schedule_written_in_another_way_means_the_same(one: str, other: str) -> None:
    assert in_force(the_routine(in_routine(schedule=one))) == in_force(the_routine(in_routine(schedule=other)))


@pytest.mark.parametrize(
    ("path", "whole"),
    [
        ("~", "/home/me"),
        ("~/a", "/home/me/a"),
        ("a/b", "/home/me/a/b"),
        ("/a", "/a"),
        (".", "/home/me/."),
    ],
)
def test_a_path_begins_at_home_unless_it_is_whole(path: str, whole: str) -> None:
    assert expand_home(path, "/home/me") == whole
