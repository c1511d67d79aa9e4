"""What works in a routines.yaml but was probably not meant: warnings, for which no start refuses it."""

import re
from collections.abc import Iterator
from collections.abc import Mapping as MappingABC
from collections.abc import Sequence as SequenceABC
from typing import Final

from ankita_agent.core.durations import format_duration
from ankita_agent.core.instants import SECOND, Duration
from ankita_agent.core.problems import Problem, Severity
from ankita_agent.core.run_readings import SHELL_WORDS, as_shell_text
from ankita_agent.core.tree import Kind, Mapping, Node, Scalar, Sequence
from ankita_agent.core.wording import as_value, quote, shown, write
from ankita_agent.core.yaml_lines import LONGEST_LINE, write_line

STOPS_WITHIN: Final = Duration(45 * SECOND)
"""TimeoutStopSec= of the unit that installing writes; tests/unit/test_lints.py compares."""

KILL_AFTER: Final = Duration(10 * SECOND)
"""`kill_after` of a routine that says nothing of it."""

_ROOM: Final = Duration(5 * SECOND)  # for what is written down after the last run has ended
_ONE_SPACE_COMMENT: Final = re.compile(r" #")
_VARIABLE: Final = re.compile(r"\$\{?(?:HOME|PATH|USER|PWD|XDG_\w+)\b")
_CRONTAB_PERCENT: Final = re.compile(r"\\%(?![/^.\[(\\])")  # but for sed, where \% begins a pattern
_POSIX_SHELLS: Final = frozenset({"sh", "ash", "bash", "dash", "ksh", "mksh", "zsh"})
_NESTING: Final = ("$(", "`", "${", "$'", "<<")


def in_values(written: MappingABC[str, Node], lines: SequenceABC[str], shell: str, found: list[Problem]) -> None:
    """Add the warnings about the values of a routine, or of the defaults, to `found`; `shell` reads a `run`."""
    for key, node in written.items():
        if key in ("run", "env", "description", "quiet_output"):
            found.extend(_cut_comments(key, node, lines))
    run, env = written.get("run"), written.get("env")
    if isinstance(run, Sequence):
        found.extend(_shell_words(run))
    if run is not None:
        found.extend(_crontab_percents(run, lines))
    if isinstance(run, Scalar) and shell.rpartition("/")[2] in _POSIX_SHELLS:
        found.extend(_open_quotes(run, found))
    if isinstance(env, Mapping):
        found.extend(_unexpanded(env))


def in_agent(written: MappingABC[str, Node], drain: Duration, found: list[Problem]) -> None:
    """Add the warning about a `drain` after which the service would be killed before it has ended its runs."""
    node = written.get("stop_drain")
    if node is None or drain + KILL_AFTER < STOPS_WITHIN:
        return
    takes = Duration(drain + KILL_AFTER)
    problem = (
        f"a stop may take {format_duration(takes)}, with kill_after {format_duration(KILL_AFTER)}, and the service is "
        f"killed after {format_duration(STOPS_WITHIN)}"
    )
    longest, needed = format_duration(Duration(STOPS_WITHIN - KILL_AFTER - _ROOM)), (takes + _ROOM) // SECOND
    fix = (
        f"{write(f'stop_drain: {longest}')} or less; a service gets more time by `TimeoutStopSec={needed}` below "
        "[Service] in `systemctl --user edit ankita-agent`"
    )
    found.append(_warning(node.line, node.column, problem, fix))


def open_quote(text: str) -> int | None:
    """Where a shell would wait for the end of a quote (an index); None when it would not, or when that is unsure.

    Less than a shell knows, so that what it finds is so: a text that nests (`$(…)`, a here-document) is
    judged only when it has one kind of quote and no backslash.
    """
    if any(mark in text for mark in _NESTING):
        places = [at for at, letter in enumerate(text) if letter in "\"'"]
        sure = "\\" not in text and len({text[at] for at in places}) == 1
        return places[-1] if sure and len(places) % 2 else None
    opened, at = -1, 0
    while at < len(text):
        letter = text[at]
        if opened < 0 and letter == "#" and (at == 0 or text[at - 1].isspace()):
            return None
        if letter == "\\" and (opened < 0 or text[opened] == '"'):
            at += 1
        elif opened < 0 and letter in "\"'":
            opened = at
        elif opened >= 0 and letter == text[opened]:
            opened = -1
        at += 1
    return opened if opened >= 0 else None


def _open_quotes(run: Scalar, found: list[Problem]) -> Iterator[Problem]:
    if run.kind is Kind.BLOCK or run.line != run.end_line or len(run.text) > LONGEST_LINE:
        return
    opened = open_quote(run.text)
    if opened is None:
        return
    if any(each.line == run.line and each.severity is Severity.WARNING for each in found):
        return  # cut by a comment: the quote may end behind it
    before, mark, behind = run.text[:opened], run.text[opened], run.text[opened + 1 :]
    apostrophe = mark == "'" and before[-1:].isalnum() and behind[:1].isalnum()
    meant = f"{before}\\'{behind}" if apostrophe else run.text + mark
    column = run.column + opened + (run.kind is Kind.QUOTED)
    problem = f"the shell finds no end of the quote {mark} that begins here"
    yield _warning(run.line, column, problem, write(f"run: {as_value(meant)}"))


def _crontab_percents(run: Node, lines: SequenceABC[str]) -> Iterator[Problem]:
    """`date +\\%H`: crontab(5) takes a bare % for a line break; nothing here does."""
    for scalar in _scalars(run):
        if "\\%" not in scalar.text:
            continue
        for number in range(scalar.line, min(scalar.end_line, len(lines)) + 1):
            line = lines[number - 1]
            start = scalar.column - 1 if number == scalar.line else 0
            found = _CRONTAB_PERCENT.search(line, start) if len(line) <= LONGEST_LINE else None
            if found:
                problem = "'\\%' is how crontab needs a %; a shell needs no backslash"
                meant = line[:start] + _CRONTAB_PERCENT.sub("%", line[start:])
                yield _warning(number, found.start() + 1, problem, write_line(meant))
                return


def _cut_comments(key: str, node: Node, lines: SequenceABC[str]) -> Iterator[Problem]:
    """Where a `#` may have cut a value short.

    A comment is recognised by two spaces before it, as yamllint wants them; after a single one, or where
    the cut leaves a quote open, the `#` was probably meant as part of the value.
    """
    for scalar in _scalars(node):
        if scalar.kind is not Kind.PLAIN or scalar.end_line > len(lines):
            continue
        line = lines[scalar.end_line - 1]
        if len(line) > LONGEST_LINE:
            continue
        rest = line[scalar.end_column - 1 :]
        if not rest.lstrip().startswith("#") or not rest[:1].isspace():
            continue
        opened = scalar.text.count('"') % 2 or scalar.text.count("'") % 2
        if not opened and not _ONE_SPACE_COMMENT.match(rest):
            continue
        column = scalar.end_column + len(rest) - len(rest.lstrip())
        fix = write_line(_with_rest_quoted(line, scalar))
        yield _warning(
            scalar.end_line,
            column,
            f"everything from this # on is a comment, so {shown(key)} is {shown(scalar.text)}",
            f"{fix}; if it is a comment, put two spaces before it",
        )


def _with_rest_quoted(line: str, scalar: Scalar) -> str | None:
    """The line with its value quoted up to its end, the supposed comment included."""
    start = line[: scalar.column - 1]
    if scalar.line != scalar.end_line or "{" in start or "[" in start:
        return None
    return start + quote(line[scalar.column - 1 :].rstrip())


def _shell_words(run: Sequence) -> Iterator[Problem]:
    for item in run.items[1:]:
        if isinstance(item, Scalar) and item.kind is Kind.PLAIN and item.text in SHELL_WORDS:
            yield _warning(
                item.line,
                item.column,
                f"a list is run without a shell, so the program is given {shown(item.text)} as an argument",
                as_shell_text(run),
            )
        elif isinstance(item, Scalar) and (item.text.startswith("~/") or _VARIABLE.match(item.text)):
            yield _warning(
                item.line,
                item.column,
                f"a list is run without a shell, so {shown(item.text)} stays as it is",
                f"{as_shell_text(run)}, or the whole path",
            )


def _unexpanded(env: Mapping) -> Iterator[Problem]:
    for name, value in env.pairs:
        if isinstance(value, Scalar) and (_VARIABLE.search(value.text) or value.text.startswith("~/")):
            what = "begins with ~/, which" if value.text.startswith("~/") else "holds a variable, which"
            yield _warning(
                value.line,
                value.column,
                f"{shown(name.text)} {what} stays as it is: nothing is expanded in 'env'",
                "write the whole value, or set the variable in the command itself",
            )


def _scalars(node: Node) -> Iterator[Scalar]:
    """The scalars of a value, one level deep."""
    match node:
        case Scalar():
            yield node
        case Sequence(items=items):
            yield from (item for item in items if isinstance(item, Scalar))
        case Mapping(pairs=pairs):
            yield from (value for _, value in pairs if isinstance(value, Scalar))


def _warning(line: int, column: int, problem: str, fix: str) -> Problem:
    return Problem(line, column, problem, fix, Severity.WARNING)
