"""Messages about `env` without its values: they may be secrets, and messages go to journals and terminals.

The problem: advice shows what to write with what was written, and a file that is no YAML has no `env` yet, only
lines. The rule: what was said of a line that looks like one of `env` keeps names, quotes and brackets, and `…`
stands for every value. So nobody need remember it where a message is made.

tests/unit/test_concealment.py holds it, with every kind of mistake that we know.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from ankita_agent.core.problems import Problem

_WORDS: Final = r"(?:env|envs|evn|environ|environment|environmentvariables|env_?vars|vars|variables)"
_BEGINS: Final = re.compile(rf"(?:- +)?[\"']?{_WORDS}[\"']?(?=\s*[:=]|\s|$)", re.IGNORECASE)
_INSIDE: Final = re.compile(rf"[{{,]\s*[\"']?{_WORDS}[\"']?\s*[:=\s]", re.IGNORECASE)
_ADVICE: Final = re.compile(r"`(?P<key>[\w.-]+): (?P<value>.*)`", re.DOTALL)
_NAMED: Final = r"[A-Za-z_]\w*: (?:\"[^\"]*\"|'(?:[^']|'')*'|[^,{}\[\]\"']*)"
_PAIRS: Final = re.compile(rf"\{{{_NAMED}(?:, {_NAMED})*\}}")
_VALUE: Final = re.compile(r"(?<=: )(?:\"[^\"]*\"|'(?:[^']|'')*'|[^,{}\[\]\"']+)")
_BEHIND_A_NAME: Final = re.compile(r"'(?P<name>\$?\w+)[^\w'.-].*?'(?=$|[\s,:;])", re.DOTALL)
_CLOSED_BY: Final = {'"': '"', "'": "'", "[": "]", "{": "}"}

HIDDEN: Final = "…"
"""Stands for a value."""


def conceal(problems: Iterable[Problem], lines: Sequence[str]) -> list[Problem]:
    """The problems of a file with these lines, and in none of them a value of `env`."""
    found = list(problems)
    if not found:
        return found
    of_env = _lines_of_env(lines)
    return [_concealed(each) if each.line in of_env else each for each in found]


def _lines_of_env(lines: Sequence[str]) -> set[int]:
    """The numbers of the lines that may hold values of `env`."""
    found: set[int] = set()
    parents: list[tuple[int, str]] = []  # the lines above that are indented less, and by how much
    inside: int | None = None  # by how much the `env` is indented that we are in
    for number, line in enumerate(lines, start=1):
        text = line.lstrip()
        if not text:
            continue
        depth = len(line) - len(text)
        if inside is not None and (depth > inside or (depth == inside and text.startswith("-"))):
            found.add(number)
            continue
        inside = None
        while parents and parents[-1][0] >= depth:
            parents.pop()
        a_routine = bool(parents) and parents[-1][1].startswith("routines:")
        if _BEGINS.match(text) and not a_routine:
            inside = depth
            found.add(number)
        elif _INSIDE.search(text):
            found.add(number)
        parents.append((depth, text))
    return found


def _concealed(problem: Problem) -> Problem:
    fix = problem.fix
    if "`" in fix:
        advice = _ADVICE.search(fix)
        shown = None if advice is None else _without_values(advice["key"], advice["value"])
        if advice is None and _hint_of_a_name(fix):
            shown = fix
        elif advice is not None and shown is not None:
            shown = f"{fix[: advice.start()]}`{advice['key']}: {shown}`{fix[advice.end() :]}"
        fix = shown or "write the value in quotes"
    return replace(problem, problem=_BEHIND_A_NAME.sub(rf"'\g<name>{HIDDEN}'", problem.problem), fix=fix)


def _hint_of_a_name(fix: str) -> bool:
    return re.search(r"`[^`\s]+:`$", fix) is not None


def _without_values(key: str, value: str) -> str | None:
    """A value of YAML with `…` for all in it that may be secret; None where it is no value of `env` alone."""
    if _INSIDE.search(value) and not _BEGINS.match(key):
        return None
    if _PAIRS.fullmatch(value):
        return _VALUE.sub(lambda match: _hidden(match[0]), value)
    return _hidden(value)


def _hidden(value: str) -> str:
    first = value[:1]
    return f"{first}{HIDDEN}{_CLOSED_BY[first]}" if first in _CLOSED_BY else HIDDEN
