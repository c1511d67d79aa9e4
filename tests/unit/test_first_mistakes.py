"""What people write wrongly first: each gets its own message, which shows the same line written correctly."""

import pytest

from ankita_agent.core.lints import open_quote
from ankita_agent.core.problems import Severity
from ankita_agent.core.wording import quote
from ankita_agent.core.yaml_lines import quoted_line
from tests.routine_texts import in_routine, judged, the_problem, the_routine

REWRITTEN = {
    "schedule: */5 * * * *": 'schedule: "*/5 * * * *"',
    "schedule: * * * * *": 'schedule: "* * * * *"',
    "schedule: @daily": 'schedule: "@daily"',
    "schedule: @reboot": 'schedule: "@reboot"',
    "schedule: @daily  # at midnight": 'schedule: "@daily"  # at midnight',
    'schedule: "*/5 * * * *': 'schedule: "*/5 * * * *"',
    "schedule:daily 08:00": "schedule: daily 08:00",
    "run: [ -f x ] && y": 'run: "[ -f x ] && y"',
    "run: [ -f x ]": 'run: "[ -f x ]"',
    "run: [echo, a, |, b]": 'run: [echo, a, "|", b]',
    "run: echo a: b": 'run: "echo a: b"',
    'run: echo "a: b"': "run: 'echo \"a: b\"'",
    'run: "~/bin/x': 'run: "~/bin/x"',
    "run: '~/bin/x": 'run: "~/bin/x"',
    "run: 'it's'": 'run: "it\'s"',
    'run: "a" b': "run: '\"a\" b'",
    r'run: "grep \d x"': r"run: 'grep \d x'",
    "run: %h/x": 'run: "%h/x"',
    "run: *backup": 'run: "*backup"',
    "run: &x": 'run: "&x"',
    "run: !x": 'run: "!x"',
    "run: !x y": 'run: "!x y"',
    "run: {a, b}": 'run: "{a, b}"',
    "run: {a": 'run: "{a"',
    "run: `date`": 'run: "`date`"',
    "run: | x": 'run: "x"',
    "run: - x": 'run: "- x"',
}


@pytest.mark.parametrize("line", REWRITTEN)
def test_the_message_shows_the_same_line_written_correctly(line: str) -> None:
    key = line.partition(":")[0]
    text = in_routine(**{key: line})
    problem = next(each for each in judged(text).problems if each.severity is Severity.ERROR)
    assert problem.fix == f"write `{REWRITTEN[line]}`"
    assert problem.line == {"schedule": 3, "run": 4}[key]
    assert problem.severity is Severity.ERROR


@pytest.mark.parametrize("line", REWRITTEN)
def test_the_line_written_as_advised_is_accepted(line: str) -> None:
    key = line.partition(":")[0]
    judgement = judged(in_routine(**{key: REWRITTEN[line]}))
    assert judgement.errors == ()


@pytest.mark.parametrize(
    ("written", "meant"), [("8:30", "daily 08:30"), ("08:30", "daily 08:30"), ("8.30", "daily 08:30")]
)
def test_a_time_alone_is_no_schedule_and_the_number_that_yaml_makes_of_it_is_named(written: str, meant: str) -> None:
    problem = the_problem(in_routine(schedule=f"schedule: {written}"))
    assert f"schedule: {meant}" in problem.fix
    assert ("510" in problem.problem) == (":" in written)
    assert judged(in_routine(schedule=f"schedule: {meant}")).problems == ()


@pytest.mark.parametrize(
    ("text", "opened"),
    [
        ('echo "hi', 5),
        ("echo 'hi", 5),
        ("echo it's", 7),
        ('echo "a" "b', 9),
        ('echo "$(date)', 5),
        ('echo "it\'s"', None),
        ("echo 'say \"'", None),
        ('echo \\"', None),
        ('echo "a\\"b"', None),
        ("echo a # it's a comment", None),
        ("echo a#'b", 7),
        ('echo "$(echo "hi")"', None),
        ('echo "$(echo \'it"s\')"', None),
        ("echo $'it\\'s'", None),
        ("echo ${x#'}", 9),
        ("cat <<'EOF'", None),
    ],
)
def test_a_quote_is_called_open_only_where_a_shell_would_wait_for_its_end(text: str, opened: int | None) -> None:
    assert open_quote(text) == opened


def test_a_program_that_is_no_shell_may_have_quotes_of_its_own() -> None:
    run = "run: print(\"it's\", 5, '"
    assert judged(in_routine("shell: /usr/bin/python3", run=run)).problems == ()
    assert judged("defaults: {shell: /usr/bin/python3}\n" + in_routine(run=run)).problems == ()
    assert the_problem(in_routine("shell: /bin/bash", run=run)).severity is Severity.WARNING


@pytest.mark.parametrize("run", ["run: sed '\\%^/usr%d' x", "run: date +%H", "run: printf '100%%\\n'"])
def test_a_percent_that_crontab_knows_nothing_of_is_left_alone(run: str) -> None:
    assert judged(in_routine(run=run)).problems == ()


def test_a_percent_of_crontab_is_warned_of_on_its_line_in_a_text_of_many() -> None:
    problem = the_problem(in_routine(run="run: |\n      date\n      date +\\%H"))
    assert (problem.line, problem.column, problem.severity) == (6, 13, Severity.WARNING)
    assert problem.fix == "write `date +%H`"


def test_a_hash_that_leaves_a_quote_open_is_shown_with_the_line_quoted() -> None:
    problem = the_problem(in_routine(run='run: echo "issue # 5"'))
    assert problem.severity is Severity.WARNING
    assert problem.problem == "everything from this # on is a comment, so 'run' is 'echo \"issue'"
    assert problem.fix == "write `run: 'echo \"issue # 5\"'`; if it is a comment, put two spaces before it"
    assert (problem.line, problem.column) == (4, 22)
    assert the_routine(in_routine(run="run: 'echo \"issue # 5\"'")).run[-1] == 'echo "issue # 5"'


def test_a_hash_after_one_space_is_doubted_and_after_two_it_is_a_comment() -> None:
    assert the_problem(in_routine(run="run: echo a # b")).fix.startswith('write `run: "echo a # b"`')
    assert judged(in_routine(run="run: echo a  # b")).problems == ()


def test_a_hash_without_a_space_before_it_cuts_nothing() -> None:
    assert the_routine(in_routine(run="run: echo $# a#b")).run[-1] == "echo $# a#b"


def test_values_under_env_are_taken_as_written() -> None:
    env = the_routine(in_routine("env: {DEBUG: no, MODE: 0755, AT: 8:30, NONE: ~, EMPTY: , ON: on}")).env
    assert env == {"DEBUG": "no", "MODE": "0755", "AT": "8:30", "NONE": "~", "EMPTY": "", "ON": "on"}


def test_a_bare_tilde_as_cwd_means_home() -> None:
    assert the_routine(in_routine("cwd: ~")).cwd == "~"


@pytest.mark.parametrize("key", ["timeout", "grace", "kill_after", "jitter", "stale_after"])
def test_a_bare_number_as_a_duration_is_asked_for_its_unit(key: str) -> None:
    problem = the_problem(in_routine(f"{key}: 90"))
    assert problem.problem == f"'{key}': '90' has no unit"
    assert problem.fix == "write `90s`, `90m` or `90h`"


def test_a_leading_zero_is_not_taken_for_octal_nor_for_decimal() -> None:
    problem = the_problem(in_routine("keep_logs: 010"))
    assert "octal" in problem.problem
    assert problem.fix == "write `10` without the 0"


def test_routines_written_as_a_list_are_shown_as_names_and_judged_all_the_same() -> None:
    text = "routines:\n  - name: backup\n    schedule: daily 08:00\n    run: date\n    timeout: 5\n"
    problems = judged(text).problems
    assert [(problem.line, problem.fix) for problem in problems] == [
        (2, "write `backup:` in place of '- name: backup'"),
        (5, "write `5s`, `5m` or `5h`"),
    ]


def test_a_list_as_env_is_shown_as_names_without_the_values() -> None:
    assert the_problem(in_routine("env: [A=b, C=d=e]")).fix == "write `env: {A: …, C: …}`"


def test_an_item_that_became_a_mapping_is_shown_quoted() -> None:
    problem = the_problem(in_routine(run="run:\n    - echo\n    - a: b"))
    assert (problem.line, problem.fix) == (6, 'write `- "a: b"`')


def test_tabs_are_named_once_and_the_rest_of_the_file_is_read_as_meant() -> None:
    text = "routines:\n  a:\n\tschedule: daily 08:00\n\trun: date\n\tenv:\n\t\tA: b\n\ttimeout: 5\n"
    tab, timeout = judged(text).problems
    assert tab.problem == "a tab indents this line (and 4 more), and YAML allows only spaces there"
    assert (tab.line, tab.column) == (3, 1)
    assert timeout.line == 7


def test_a_no_break_space_from_a_web_page_is_named() -> None:
    problem = the_problem(in_routine("\xa0timeout: 3m"))
    assert problem.fix.startswith("write `timeout:` without the no-break spaces before it")


def test_a_line_that_fits_no_level_is_told_which_one_it_needs() -> None:
    problem = the_problem("routines:\n  a:\n    schedule: daily 08:00\n   run: date\n")
    assert problem.problem == "this line is indented by 3, which fits no line above it"
    assert problem.fix == "indent it by 4, as line 3 is"


def test_typographic_quotes_from_a_document_are_shown_straight() -> None:
    line = "run: \N{LEFT DOUBLE QUOTATION MARK}~/bin/x\N{RIGHT DOUBLE QUOTATION MARK}"
    assert the_problem(in_routine(run=line)).fix == 'write `run: "~/bin/x"`'


def test_a_quote_that_is_closed_by_a_later_line_is_found_where_it_was_opened() -> None:
    text = in_routine('description: "x"', run='run: "~/bin/x')
    assert the_problem(text).fix == 'write `run: "~/bin/x"`'


def test_after_a_fault_of_syntax_the_rest_of_the_file_is_still_judged() -> None:
    text = """\
routines:
  a:
    schedule:daily 08:00
    run: x
   timeout: 3
  b:
  ../c:
    run: @x
    schedule: *x
    timeout: 8
  a b: 3
  A:
    schedule: daily 08:00
    run: x
"""
    lines = [problem.line for problem in judged(text).problems]
    assert lines == [3, 5, 5, 6, 7, 8, 9, 9, 10, 11, 11, 12]


def test_a_fault_that_no_correction_moves_is_told_once() -> None:
    problems = judged("routines:\n  a: }\n  b: ]\n[[[[\n").problems
    assert 1 <= len(problems) <= 5


def test_faults_on_very_many_lines_are_read_in_a_bounded_number_of_rounds() -> None:
    text = "routines:\n" + "".join(f"  r{n}:\n    schedule: @daily\n    run: x\n" for n in range(300))
    assert 40 <= len(judged(text).problems) <= 60


@pytest.mark.parametrize(
    ("line", "quoted"),
    [
        ("  - @x  # why", '  - "@x"  # why'),
        ("key: a", 'key: "a"'),
        ('key: "a"', None),
        ("key:", None),
        ("", None),
        ('"a key": *x', '"a key": "*x"'),
    ],
)
def test_a_line_is_quoted_with_its_key_and_comment_kept(line: str, quoted: str | None) -> None:
    if line == "key:":
        assert quoted_line(line) == '"key:"'
    else:
        assert quoted_line(line) == quoted


@pytest.mark.parametrize("text", ["a", "it's", 'say "x"', "a\\b", "'\"\\"])
def test_a_quoted_text_is_read_back_unchanged(text: str) -> None:
    assert the_routine(in_routine(f"quiet_output: {quote(text)}")).quiet_output == text
