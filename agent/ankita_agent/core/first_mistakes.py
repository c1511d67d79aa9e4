"""The messages for what people write wrongly first, each with the same line written correctly.

The problem: YAML gives a meaning to characters that commands and schedules begin with. `*/5` is an alias,
`@daily` a reserved word, `[ -f x ] && y` a list with a tail, and the parser says so in words of its own,
often at another line. The rule: the *lines* are looked at, not the parser's words; a suggestion is the line
itself with its value quoted, and it is applied so that the rest of the file can be read and judged in the
same run. Whoever applies it stops when the fault does not move on, so a wrong guess costs one message and
never a loop.

tests/unit/test_first_mistakes.py holds the list.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ankita_agent.core.problems import Problem
from ankita_agent.core.tree import Kind, Mapping, Node, Scalar
from ankita_agent.core.tree import Sequence as Items

LONGEST_LINE: Final = 1000
"""Longer lines get no suggestion: it would help nobody, and many of them would take long to find."""

_KEY: Final = r"""(?:[\w.-]+|"[^"]*"|'[^']*')"""
_ENTRY: Final = re.compile(rf"(?P<lead>\s*(?:-\s+)*)(?P<key>{_KEY}:\s+)?(?P<value>\S.*)")
_GLUED: Final = re.compile(r"(?P<lead>\s*(?:- )?)(?P<key>[a-z_]+):(?P<value>[^\s/].*)")
_TIME: Final = re.compile(r"([01]?[0-9]|2[0-3])[:.]([0-5][0-9])")
_COMMENT: Final = re.compile(r"\s+#")

_TYPOGRAPHIC: Final = (
    "\N{LEFT DOUBLE QUOTATION MARK}",
    "\N{RIGHT DOUBLE QUOTATION MARK}",
    "\N{DOUBLE LOW-9 QUOTATION MARK}",
)
_TYPOGRAPHIC_TO_PLAIN: Final = {ord(letter): '"' for letter in _TYPOGRAPHIC}

_MEANING: Final = {
    "*": "an unquoted * begins an alias in YAML",
    "&": "an unquoted & begins an anchor in YAML",
    "!": "an unquoted ! begins a tag in YAML",
    "@": "YAML allows no unquoted text that begins with @",
    "`": "YAML allows no unquoted text that begins with `",
    "%": "YAML allows no unquoted text that begins with %",
    "[": "an unquoted [ begins a list in YAML",
    "{": "an unquoted { begins a mapping in YAML",
    "]": "YAML allows no unquoted text that begins with ]",
    "}": "YAML allows no unquoted text that begins with }",
    ",": "YAML allows no unquoted text that begins with a comma",
    "|": "| begins a text on the lines below, and nothing may follow it on its own line",
    ">": "> begins a text on the lines below, and nothing may follow it on its own line",
    "-": "an unquoted - with a space after it begins a list in YAML",
    "?": "an unquoted ? with a space after it begins a key in YAML",
}


class SyntaxFault(NamedTuple):
    """Where a parser gave up, what it said, and where what it was reading began (0: it did not say)."""

    line: int
    column: int
    said: str
    context_line: int = 0
    context_column: int = 0


class Mending(NamedTuple):
    """What is wrong, and the lines (by number) that would make it right; none when nobody can tell."""

    problem: Problem
    lines: dict[int, str]


def mend(lines: Sequence[str], fault: SyntaxFault) -> Mending:
    """What the person most likely meant at a place where the file stops being YAML."""
    for find in (_tabs, _unclosed_quote, _glued_key, _unquoted, _indentation):
        mending = find(lines, fault)
        if mending is not None:
            return mending
    problem = Problem(
        fault.line,
        fault.column,
        f"this is not YAML: {fault.said}",
        "put the value of this line, or of the one above, in quotes, or mend the indentation",
    )
    return Mending(problem, {})


def quoted_line(line: str) -> str | None:
    """The same line with its value in quotes, its comment kept; None when it has no value to quote."""
    entry = _ENTRY.fullmatch(line.rstrip())
    if entry is None:
        return None
    value, comment = _without_comment(entry["value"])
    quoted = entry["lead"] + (entry["key"] or "") + quote(_bare(value)) + comment
    return None if quoted == line.rstrip() else quoted


def quote(text: str) -> str:
    """A text as YAML reads it back unchanged."""
    return "'" + text.replace("'", "''") + "'" if '"' in text or "\\" in text else f'"{text}"'


def unquoted(line: str, number: int, column: int) -> Problem:
    """The problem of a value whose first character means something else in YAML, at that place."""
    entry = _ENTRY.fullmatch(line.rstrip()) if len(line) <= LONGEST_LINE else None
    meaning = _MEANING.get(line[column - 1 : column], "YAML reads this value as something else than text")
    whole = entry is not None and entry.start("value") == column - 1
    return Problem(number, column, meaning, as_line(quoted_line(line) if whole else None))


def as_line(line: str | None) -> str:
    """The advice to write a line."""
    return "put the value in quotes" if line is None else f"write: {line.strip()}"


def in_value(key: str, node: Node, lines: Sequence[str]) -> Problem | None:
    """The first mistake in the value of a routine's key, if it is one that this module knows."""
    if isinstance(node, Scalar) and node.kind is Kind.PLAIN and node.text[:1] in _TYPOGRAPHIC:
        line = _at(lines, node.line).translate(_TYPOGRAPHIC_TO_PLAIN)
        return Problem(node.line, node.column, f"{node.text[0]} is no quote that YAML knows", as_line(line or None))
    if key == "schedule" and isinstance(node, Scalar):
        return _lone_time(node)
    if key == "run":
        return _in_command(node, lines)
    if key not in ("env", "success_exit_status") and not isinstance(node, Scalar) and node.flow:
        return unquoted(_at(lines, node.line), node.line, node.column)
    return None


def _lone_time(node: Scalar) -> Problem | None:
    time = _TIME.fullmatch(node.text)
    if time is None:
        return None
    hour, minute = time.groups()
    also = f" (YAML 1.1 even reads it as the number {int(hour) * 60 + int(minute)})" if ":" in node.text else ""
    return Problem(
        node.line,
        node.column,
        f"the schedule {node.text} is a time without its days{also}",
        f"write: schedule: daily {hour:0>2}:{minute}, or: schedule: weekdays {hour:0>2}:{minute}",
    )


def _in_command(node: Node, lines: Sequence[str]) -> Problem | None:
    line = _at(lines, node.line)
    match node:
        case Mapping(flow=True):
            return unquoted(line, node.line, node.column)
        case Items(flow=True, items=[Scalar(kind=Kind.PLAIN, text=text), *_]) if text.startswith("-"):
            problem = f"an unquoted [ begins a list in YAML, and {text.split()[0]} is no program"
            return Problem(node.line, node.column, problem, as_line(quoted_line(line)))
        case Items(flow=False, items=items):
            return next((_split_item(item, lines) for item in items if isinstance(item, Mapping)), None)
        case _:
            return None


def _split_item(item: Mapping, lines: Sequence[str]) -> Problem:
    problem = "a colon with a space after it begins a mapping in YAML"
    start, written = _at(lines, item.line)[: item.column - 1], _at(lines, item.line)[item.column - 1 :]
    return Problem(item.line, item.column, problem, as_line(start + quote(written.rstrip())))


def _tabs(lines: Sequence[str], fault: SyntaxFault) -> Mending | None:
    line = _at(lines, fault.line)
    if "\t" not in _indent(line):
        return None
    spaced = _respaced(lines)
    more = f" (and {len(spaced) - 1} more)" if len(spaced) > 1 else ""
    rest = line.strip()
    problem = Problem(
        fault.line,
        _indent(line).index("\t") + 1,
        f"a tab indents this line{more}, and YAML allows only spaces there",
        f"use two spaces for each level instead, before: {rest}" if rest else "empty the line",
    )
    return Mending(problem, spaced)


def _respaced(lines: Sequence[str]) -> dict[int, str]:
    """The lines that are indented with tabs, each as deep as it was probably meant."""
    spaced: dict[int, str] = {}
    widths: dict[str, int] = {}
    width, opens = 0, False
    for number, line in enumerate(lines, start=1):
        indent = _indent(line)
        if not line.strip():
            if indent:
                spaced[number] = ""
            continue
        if "\t" in indent:
            width = widths.setdefault(indent, width + 2 if opens else width)
            spaced[number] = " " * width + line[len(indent) :]
        else:
            width = len(indent)
            widths = {}
        opens = line.rstrip().endswith(":")
    return spaced


def _unclosed_quote(lines: Sequence[str], fault: SyntaxFault) -> Mending | None:
    if "end of stream" in fault.said and fault.context_line:
        suspects: Iterator[int] = iter((fault.context_line,))
    else:
        suspects = iter(range(fault.line, max(0, fault.line - 50), -1))
    for number in suspects:
        entry = _ENTRY.fullmatch(_at(lines, number).rstrip())
        if entry is None or entry["value"][0] not in "\"'" or entry["value"].count(entry["value"][0]) != 1:
            continue
        if number == fault.line and fault.column <= entry.start("value"):
            continue
        quoted = quoted_line(_at(lines, number))
        problem = f"the quote {entry['value'][0]} that opens here is not closed on this line"
        return _requoted(number, entry.start("value") + 1, problem, quoted)
    return None


def _glued_key(lines: Sequence[str], fault: SyntaxFault) -> Mending | None:
    for number in (_line_above(lines, fault.line), fault.line):
        glued = _GLUED.fullmatch(_at(lines, number).rstrip())
        if glued is None:
            continue
        spaced = f"{glued['lead']}{glued['key']}: {glued['value']}"
        problem = Problem(number, glued.end("key") + 1, "a space is missing after the colon", as_line(spaced))
        return Mending(problem, {number: spaced})
    return None


def _unquoted(lines: Sequence[str], fault: SyntaxFault) -> Mending | None:
    for number, column in ((fault.line, fault.column), (fault.context_line, fault.context_column)):
        line = _at(lines, number)
        entry = _ENTRY.fullmatch(line.rstrip())
        if entry is None or column <= entry.start("value") or not (entry["key"] or "-" in entry["lead"]):
            continue
        value, _ = _without_comment(entry["value"])
        why = _why_unreadable(value)
        quoted = _with_items_quoted(line, value) or quoted_line(line)
        if why is not None and quoted is not None:
            return _requoted(number, entry.start("value") + 1, why, quoted)
    return None


def _with_items_quoted(line: str, value: str) -> str | None:
    """The line with what YAML cannot read in its [list] or {mapping} quoted; None when all of it can be."""
    inside = value[1:-1]
    if value[0] + value[-1] not in ("[]", "{}") or any(letter in inside for letter in "[]{}\"'"):
        return None
    items = [item.strip() for item in inside.split(",")]
    mended = [_item_quoted(item, named=value[0] == "{") for item in items]
    return None if mended == items else line.replace(value, value[0] + ", ".join(mended) + value[-1])


def _item_quoted(item: str, named: bool) -> str:
    name, colon, text = item.partition(": ") if named else ("", "", item)
    return f"{name}{colon}{quote(text)}" if text and _why_unreadable(text) else item


def _why_unreadable(value: str) -> str | None:
    """Why YAML cannot read the value as a text, or None when it can."""
    begins = value[0]
    if begins in "\"'":
        if begins == '"' and "\\" in value and value.count('"') == 2:
            return "YAML gives \\ a meaning between double quotes, and does not know this one"
        return f"text follows after the closing {begins}" if value.count(begins) > 1 else None
    if begins in "-?" and value[1:2] not in ("", " "):
        begins = ""
    if begins in _MEANING:
        return _MEANING[begins]
    if ": " in value or value.endswith(":"):
        return "a colon with a space after it begins a mapping in YAML"
    return None


def _indentation(lines: Sequence[str], fault: SyntaxFault) -> Mending | None:
    line = _at(lines, fault.line)
    levels = _levels_above(lines, fault.line)
    own = len(_indent(line))
    if not line.strip() or not levels or own in levels:
        return None
    level = min(levels, key=lambda each: (abs(each - own), -each))
    problem = Problem(
        fault.line,
        own + 1,
        f"this line is indented by {own}, which fits no line above it",
        f"indent it by {level}, as line {levels[level]} is",
    )
    return Mending(problem, {fault.line: " " * level + line[own:]})


def _levels_above(lines: Sequence[str], number: int) -> dict[int, int]:
    """The indentations that enclose a line, each with the nearest line that has it."""
    levels: dict[int, int] = {}
    lowest: int | None = None
    for above in range(number - 1, 0, -1):
        line = lines[above - 1]
        indent = len(_indent(line))
        if not line.strip() or line.lstrip().startswith("#") or (lowest is not None and indent >= lowest):
            continue
        levels[indent] = above
        lowest = indent
        if indent == 0:
            break
    return levels


def _requoted(number: int, column: int, problem: str, quoted: str | None) -> Mending:
    replaced = {} if quoted is None else {number: quoted}
    return Mending(Problem(number, column, problem, as_line(quoted)), replaced)


def _bare(value: str) -> str:
    """The value without the quotes around it, unless they are part of what is meant."""
    quote = value[0]
    if quote not in "\"'":
        return value.lstrip("|> ") if value[0] in "|>" else value
    if value.count(quote) == 1:
        return value[1:]
    closed = value.endswith(quote)
    return value[1:-1] if closed and (value.count(quote) == 2 or quote == "'") else value


def _without_comment(value: str) -> tuple[str, str]:
    """The value and the comment behind it: a ` #` that is not between quotes."""
    for comment in _COMMENT.finditer(value):
        before = value[: comment.start()]
        if before.count('"') % 2 == 0 and before.count("'") % 2 == 0:
            return before, value[comment.start() :]
    return value, ""


def _at(lines: Sequence[str], number: int) -> str:
    """The line of that number; empty where there is none, or one so long that nobody wrote it by hand."""
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    return line if len(line) <= LONGEST_LINE else ""


def _line_above(lines: Sequence[str], number: int) -> int:
    above = min(number - 1, len(lines))
    while above > 0 and not lines[above - 1].strip():
        above -= 1
    return above


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]
