"""No message about a mistake in `env` tells a value: it may be a secret, and messages go to the journal."""

from collections.abc import Iterator
from textwrap import indent
from typing import Final

import pytest

from ankita_agent.core.concealment import conceal
from ankita_agent.core.problems import Problem
from ankita_agent.core.routine import in_force
from tests.routine_texts import judged

SECRET: Final = "s3cr3t"

ON_A_LINE: Final = (
    'env: ["TOKEN=s3cr3t"]',
    "env: TOKEN=s3cr3t",
    'env: "TOKEN: s3cr3t"',
    "env: TOKEN: s3cr3t",
    "env: {TOKEN=s3cr3t}",
    "env: {TOKEN:s3cr3t}",
    "env: {TOKEN s3cr3t}",
    'env: {"TOKEN=s3cr3t": x}',
    "env: {TOKEN: [s3cr3t]}",
    "env: {TOKEN: {a: s3cr3t}}",
    "env: {TOKEN: {s3cr3t: a}}",
    'env: {TOKEN: "s3cr3t\\0"}',
    'env: {TOKEN: "s3cr3t\\ud800"}',
    'env: {TOKEN: "s3cr3t}',
    "env: {TOKEN: 's3cr3t}",
    "env: {TOKEN: s3cr3t",
    "env: {TOKEN: @s3cr3t}",
    "env: {TOKEN: `s3cr3t}",
    "env: {TOKEN: %s3cr3t}",
    "env: {TOKEN: *s3cr3t}",
    "env: {TOKEN: $s3cr3t}",
    "env: {TOKEN: ~/s3cr3t}",
    "env: {TOKEN: '$x s3cr3t'}",
    "env: {TOKEN: &s3cr3t }",
    "env: {TOKEN: !s3cr3t x}",
    "env: {TOKEN: !!s3cr3t x}",
    "env: {TOKEN: ${s3cr3t}}",
    "env: {TOKEN: {{s3cr3t}}}",
    "env: {TOKEN: a: s3cr3t}",
    "env: {TOKEN: s3cr3t, TOKEN: s3cr3t}",
    "env: {ANKITA_X: s3cr3t}",
    "env: {my-var: s3cr3t}",
    "env: {1TOKEN: s3cr3t}",
    'env: {TOKEN: "\\qs3cr3t"}',
    'env: "s3cr3t',
    "env: 's3cr3t",
    "env: [{TOKEN: s3cr3t}]",
    "env: [TOKEN: s3cr3t]",
    "env: [TOKEN, s3cr3t]",
    "env: [s3cr3t]",
    "env: s3cr3t",
    "env: @s3cr3t",
    "env: !s3cr3t x",
    "env: *s3cr3t",
    "env: &s3cr3t",
    "env: {<<: s3cr3t}",
    "env: {? [s3cr3t] : x}",
    'env: {"=s3cr3t": x}',
    "env: {[s3cr3t]: x}",
    "environment: {TOKEN: s3cr3t}",
    'environment: ["TOKEN=s3cr3t"]',
    "environment: TOKEN=s3cr3t",
    "Environment: TOKEN=s3cr3t",
    "environ: TOKEN=s3cr3t",
    "Env: {TOKEN: s3cr3t}",
    "ENV: TOKEN=s3cr3t",
    "evn: TOKEN=s3cr3t",
    "envs: {TOKEN: s3cr3t}",
    "env_vars: TOKEN=s3cr3t",
    "variables: {TOKEN: s3cr3t}",
    "vars: TOKEN=s3cr3t",
    "EnvironmentVariables: {TOKEN: s3cr3t}",
    "env TOKEN=s3cr3t",
    "env=TOKEN=s3cr3t",
    "env : TOKEN=s3cr3t",
    "env:TOKEN=s3cr3t",
    "env:TOKEN: s3cr3t",
    "env: TOKEN=\"s3cr3t\" X='y'",
    'env: {TOKEN: "s3cr3t" "x"}',
    'env: {TOKEN: "a"s3cr3t}',
    "env: {export TOKEN: s3cr3t}",
    'env: {"export TOKEN=s3cr3t": }',
    "env: {TOKEN: |s3cr3t}",
    "env: {TOKEN: >s3cr3t}",
    'env: ["export TOKEN=s3cr3t"]',
    'env: ["TOKEN = s3cr3t"]',
    'env: ["TOKEN s3cr3t=x"]',
    "TOKEN: s3cr3t",
    "env_file: {TOKEN: s3cr3t}",
    "env_file: [TOKEN=s3cr3t]",
    "env: {TOKEN: \ts3cr3t\x01}",
    "env: {TOKEN: s3\x07cr3t}",
)

ON_MORE_LINES: Final = (
    "env:\n  - TOKEN=s3cr3t\n  - X=y",
    "env:\n  - TOKEN: s3cr3t",
    "env:\n  TOKEN=s3cr3t",
    "env:\n  TOKEN=s3cr3t\n  X: y",
    "env:\n  TOKEN: s3cr3t\n  X=y",
    "env:\n  X: y\n  TOKEN=s3cr3t\n  Z: y",
    "env:\n  TOKEN: a: s3cr3t",
    'env:\n  TOKEN: "s3cr3t',
    "env:\n  TOKEN: 's3cr3t",
    "env:\n  TOKEN: @s3cr3t",
    "env:\n  TOKEN: %s3cr3t",
    "env:\n  TOKEN: `s3cr3t",
    "env:\n  TOKEN: *s3cr3t",
    "env:\n  TOKEN: &s3cr3t",
    "env:\n  TOKEN: !s3cr3t",
    'env:\n  TOKEN: "s3cr3t" x',
    'env:\n  TOKEN: "a"s3cr3t',
    "env:\n  TOKEN: {s3cr3t",
    "env:\n  TOKEN: [s3cr3t",
    "env:\n  TOKEN: s3cr3t: ",
    "env:\n  TOKEN:s3cr3t",
    "env:\n  TOKEN:s3cr3t\n  X: y",
    "env:\n  TOKEN s3cr3t\n  X: y",
    "env:\n  TOKEN: |s3cr3t",
    "env:\n  TOKEN: >s3cr3t",
    "env:\n TOKEN: s3cr3t\n  X: y",
    "env:\n    TOKEN: s3cr3t\n  X: y",
    "env:\n\tTOKEN: s3cr3t",
    "env:\nTOKEN: s3cr3t",
    'env:\n  TOKEN: "\\qs3cr3t"',
    "env:\n  TOKEN: s3cr3t\n   more: x",
    "env:\n  TOKEN: s3cr3t\n  TOKEN: s3cr3t",
    "env:\n  <<: *s3cr3t",
    "env:\n  <<: {TOKEN: s3cr3t}\n  X-Y: a",
    "env:\n  TOKEN: - s3cr3t",
    "env:\n  TOKEN: ? s3cr3t",
    "env:\n  TOKEN: } s3cr3t",
    "env:\n  TOKEN: ] s3cr3t",
    "env:\n  TOKEN: , s3cr3t",
    'environment:\n  TOKEN: "s3cr3t" x',
    "environment:\n  - TOKEN=s3cr3t",
)


def files(mistake: str) -> Iterator[str]:
    """Files that hold the mistake, in a routine, in the defaults, at the top and in braces."""
    routine = "routines:\n  a:\n    schedule: daily 08:00\n    run: x\n"
    yield f"{routine}{indent(mistake, '    ')}\n"
    yield f"defaults:\n{indent(mistake, '  ')}\n{routine}"
    yield f"{mistake}\n{routine}"
    if "\n" not in mistake:
        yield f"routines:\n  a: {{schedule: daily 08:00, run: x, {mistake}}}\n"


@pytest.mark.parametrize("mistake", [*ON_A_LINE, *ON_MORE_LINES])
def test_no_message_about_env_tells_a_value(mistake: str) -> None:
    for text in files(mistake):
        for problem in judged(text).problems:
            assert SECRET not in problem.problem + problem.fix, text


@pytest.mark.parametrize(
    ("mistake", "fix"),
    [
        ('env: ["TOKEN=s3cr3t", A=b]', "write `env: {TOKEN: …, A: …}`"),
        ("env: {TOKEN: @s3cr3t}", 'write `env: {TOKEN: "…"}`'),
        ("env: {TOKEN: s3cr3t", "close the mapping: write `env: {TOKEN: …}`"),
        ('env:\n  TOKEN: "s3cr3t', 'write `TOKEN: "…"`'),
        ("env:\n  TOKEN: [a, s3cr3t", "close the list: write `TOKEN: […]`"),
        ("env: {my-var: s3cr3t}", "write letters, digits and _, not beginning with a digit, as in `my_var:`"),
    ],
)
def test_names_quotes_and_brackets_stay_in_the_advice(mistake: str, fix: str) -> None:
    problem, *_ = judged(next(files(mistake))).problems
    assert problem.fix == fix


def test_advice_for_other_keys_and_for_a_routine_that_is_named_env_keeps_its_values() -> None:
    lines = ["routines:", "  env:", "    schedule: @daily", "    run: x", "  b:", "    env_file: @x"]
    problems = [Problem(3, 5, "'a=b' is wrong", 'write `schedule: "@daily"`'), Problem(6, 5, "p", 'write `"@x"`')]
    assert conceal(problems, lines) == problems


def meaning(env: str) -> str:
    file = judged(f"routines: {{a: {{schedule: daily 08:00, run: x, env: {env}}}}}").file
    assert file is not None
    return in_force(file.routines[0]).meaning


def test_what_the_ledger_keeps_of_env_is_not_its_values_and_changes_with_them() -> None:
    assert SECRET not in meaning(f"{{TOKEN: {SECRET}}}")
    assert meaning("{A: a, B: b}") == meaning("{B: b, A: a}")
    assert len({meaning(env) for env in ("{}", "{A: a}", "{A: b}", "{B: a}", "{A: a, B: b}", "{A: 'a, B: b'}")}) == 6
