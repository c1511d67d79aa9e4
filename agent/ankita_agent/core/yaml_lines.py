"""The lines of a YAML file as text: the entry that stands on one, its indentation, the same line quoted.

For messages about what YAML cannot read, where no tree exists yet; nothing here decides what a file means.
"""

import re
from collections.abc import Sequence
from typing import Final

from ankita_agent.core.wording import quote, write

LONGEST_LINE: Final = 1000
"""Longer lines get no suggestion: it would help nobody, and many of them would take long to find."""

_KEY: Final = r"""(?:[\w.-]+|"[^"]*"|'[^']*')"""
ENTRY: Final = re.compile(rf"(?P<lead>\s*(?:-\s+)*)(?P<key>{_KEY}:\s+)?(?P<value>\S.*)")
"""A line with a value: what stands before it, its key with the colon, the value with its comment."""

_COMMENT: Final = re.compile(r"\s+#")
_BLOCK_HEADER: Final = re.compile(r"(?:.*[:\s])?[|>][-+0-9]{0,2}(?:\s+#.*)?")
_OPENING: Final = re.compile(r"(?:[\s=(]|^)$")


def line_at(lines: Sequence[str], number: int) -> str:
    """The line of that number; empty where there is none, or one so long that nobody wrote it by hand."""
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    return line if len(line) <= LONGEST_LINE else ""


def line_above(lines: Sequence[str], number: int) -> int:
    """The number of the nearest line above that holds something; 0 when there is none."""
    above = min(number - 1, len(lines))
    while above > 0 and not lines[above - 1].strip():
        above -= 1
    return above


def line_below(lines: Sequence[str], number: int) -> int:
    """The number of the nearest line below that holds something; 0 when there is none."""
    for below in range(number + 1, min(len(lines), number + 50) + 1):
        if lines[below - 1].strip():
            return below
    return 0


def indent_of(line: str) -> str:
    """The blanks and tabs that a line begins with."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def opens_block(line: str) -> bool:
    """Whether the line ends with `|` or `>`, so that a text follows on the lines below it."""
    return _BLOCK_HEADER.fullmatch(line.rstrip()) is not None


def in_block(lines: Sequence[str], number: int) -> bool:
    """Whether the line belongs to the text of a `|` or `>` above it."""
    own = len(indent_of(line_at(lines, number)))
    for above in range(number - 1, max(0, number - 200), -1):
        line = lines[above - 1]
        if line.strip() and len(indent_of(line)) < own:
            return opens_block(line)
    return False


def without_comment(value: str) -> tuple[str, str]:
    """The value and the comment behind it: a ` #` that is not between quotes."""
    for comment in _COMMENT.finditer(value):
        before = value[: comment.start()]
        if before.count('"') % 2 == 0 and before.count("'") % 2 == 0:
            return before, value[comment.start() :]
    return value, ""


def quoted_line(line: str) -> str | None:
    """The same line with its value in quotes, its comment kept; None when it has no value to quote."""
    entry = ENTRY.fullmatch(line.rstrip())
    if entry is None:
        return None
    value, comment = without_comment(entry["value"])
    quoted = entry["lead"] + (entry["key"] or "") + quote(_bare(value)) + comment
    return None if quoted == line.rstrip() else quoted


def write_line(line: str | None) -> str:
    """The advice to write a line."""
    return "write the value in quotes" if line is None else write(line.strip())


def _bare(value: str) -> str:
    """The value without the quotes around it, unless they are part of what is meant."""
    mark = value[0]
    if mark not in "\"'":
        return value.lstrip("|> ") if value[0] in "|>" else value
    marks = [at for at, letter in enumerate(value) if letter == mark and value[at - 1 : at] != "\\"]
    if len(marks) == 1:
        return value[1:]
    if marks[-1] != len(value) - 1:
        return value
    inside = value[1:-1]
    if len(marks) == 2:
        return inside.replace('\\"', '"') if mark == '"' else inside
    # "echo "hi" there": the second quote opens once more, so the outer ones are YAML's. In "a b" -c "d" it
    # closes, and all are the shell's.
    opens_again = _OPENING.search(value[: marks[1]]) and not value[marks[1] + 1 : marks[1] + 2].isspace()
    return inside if opens_again or (mark == "'" and len(marks) % 2) else value
