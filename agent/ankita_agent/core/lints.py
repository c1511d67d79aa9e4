"""What works in a routines.yaml but was probably not meant: warnings, for which no start refuses it."""

import re
from collections.abc import Iterator
from collections.abc import Mapping as MappingABC
from collections.abc import Sequence as SequenceABC
from typing import Final

from ankita_agent.core.first_mistakes import LONGEST_LINE, as_line, quote
from ankita_agent.core.problems import Problem, Severity
from ankita_agent.core.tree import Kind, Mapping, Node, Scalar, Sequence

_ONE_SPACE_COMMENT: Final = re.compile(r" #")
_OF_THE_SHELL: Final = frozenset({"|", "||", "&&", ";", "&", ">", ">>", "<", "2>", "2>&1", ">&2"})
_VARIABLE: Final = re.compile(r"\$\{?(?:HOME|PATH|USER|PWD|XDG_\w+)\b")


def in_values(written: MappingABC[str, Node], lines: SequenceABC[str], found: list[Problem]) -> None:
    """Add the warnings about the values of a routine, or of the defaults, to `found`."""
    for key, node in written.items():
        if key in ("run", "env", "description", "quiet_output"):
            found.extend(_cut_comments(key, node, lines))
    run, env = written.get("run"), written.get("env")
    if isinstance(run, Sequence):
        found.extend(_shell_words(run))
    if isinstance(env, Mapping):
        found.extend(_unexpanded(env))


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
        fix = as_line(_with_rest_quoted(line, scalar))
        yield _warning(
            scalar.end_line,
            column,
            f"everything from this # on is a comment, so `{key}` is {scalar.text!r}",
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
        if isinstance(item, Scalar) and item.kind is Kind.PLAIN and item.text in _OF_THE_SHELL:
            yield _warning(
                item.line,
                item.column,
                f"a list is run without a shell, so the program is given {item.text!r} as an argument",
                "write run as a single text in quotes",
            )
        elif isinstance(item, Scalar) and (item.text.startswith("~/") or _VARIABLE.match(item.text)):
            yield _warning(
                item.line,
                item.column,
                f"a list is run without a shell, so {item.text!r} stays as it is",
                "write the whole path, or write run as a single text",
            )


def _unexpanded(env: Mapping) -> Iterator[Problem]:
    for name, value in env.pairs:
        if isinstance(value, Scalar) and (_VARIABLE.search(value.text) or value.text.startswith("~/")):
            yield _warning(
                value.line,
                value.column,
                f"{name.text} is the text {value.text!r}: nothing is expanded in `env`",
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
