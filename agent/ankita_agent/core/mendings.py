"""Where a file stops being YAML: what the person most likely meant, so that the rest can be read and judged.

The problem: YAML gives a meaning to characters that commands and schedules begin with. `*/5` is an alias,
`@daily` a reserved word, `[ -f x ] && y` a list with a tail, a key without its colon is a text that goes on
below; and the parser says so in words of its own, often at another line. The rule: the *lines* are looked
at, not the parser's words; a suggestion is the line itself written correctly, and it is applied so that the
rest of the file is judged in the same run. Whoever applies it stops when the fault does not move on, so a
wrong guess costs one message and never a loop.

tests/unit/test_first_mistakes.py and tests/unit/test_advice.py hold it.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ankita_agent.core.keys import EVERY_KEY
from ankita_agent.core.problems import Problem
from ankita_agent.core.wording import quote, shown
from ankita_agent.core.yaml_lines import (
    ENTRY,
    in_block,
    indent_of,
    line_above,
    line_at,
    line_below,
    opens_block,
    quoted_line,
    without_comment,
    write_line,
)

_GLUED: Final = re.compile(r"(?P<lead>\s*(?:- )?)(?P<key>[a-z_]+):(?P<value>[^\s/].*)")
_BARE_KEY: Final = re.compile(r"(?P<lead>\s*)(?P<key>[\w.-]+)(?P<rest>\s+[^\s:=].*)?")
_WELL_FORMED: Final = re.compile(r"""\"[^"\\]*\"|'[^']*'|\[[^\[\]]*\]|\{[^{}]*\}|[|>][-+]?""")
_KNOWN_ENTRY: Final = re.compile(r"\s*(?P<key>[a-z_]+):(?:\s.*)?")

_MEANING: Final = {
    "*": "an unquoted * begins an alias in YAML",
    "&": "an unquoted & begins an anchor in YAML",
    "!": "an unquoted ! begins a tag in YAML",
    "@": "YAML allows no unquoted text that begins with @",
    "`": "YAML allows no unquoted text that begins with a backtick",
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
    for find in _FINDERS:
        mending = find(lines, fault)
        if mending is not None:
            return mending
    problem = Problem(
        fault.line,
        fault.column,
        f"this is not YAML: {fault.said}",
        "write the value of this line, or of the one above, in quotes, or mend the indentation",
    )
    return Mending(problem, {})


def unquoted(line: str, number: int, column: int) -> Problem:
    """The problem of a value whose first character means something else in YAML, at that place."""
    entry = ENTRY.fullmatch(line.rstrip())
    meaning = _MEANING.get(line[column - 1 : column], "YAML reads this value as something else than text")
    whole = entry is not None and entry.start("value") == column - 1
    return Problem(number, column, meaning, write_line(quoted_line(line) if whole else None))


def missing_colon(lines: Sequence[str], number: int, *, surely: bool = False) -> Mending | None:
    """The mending of a line that begins with a key and has no colon; `surely` when a key must stand there.

    Else it is one when the key is known, or stands alone over lines that are indented deeper.
    """
    line = line_at(lines, number).rstrip()
    written, comment = without_comment(line)
    bare = _BARE_KEY.fullmatch(written)
    if bare is None or in_block(lines, number):
        return None
    key, rest = bare["key"], (bare["rest"] or "").strip()
    if key not in EVERY_KEY:
        heads = len(indent_of(line_at(lines, line_below(lines, number)))) > len(indent_of(line))
        if rest or not (heads or surely) or not _in_mapping(lines, number):
            return None
    mended = _readable(f"{bare['lead']}{key}:{' ' if rest else ''}{rest}{comment}")
    problem = Problem(number, bare.end("key") + 1, f"a colon is missing after {shown(key)}", write_line(mended))
    return Mending(problem, {number: mended})


def _in_mapping(lines: Sequence[str], number: int) -> bool:
    """Whether the line stands below a key without a value, or at the outermost level."""
    own = len(indent_of(line_at(lines, number)))
    above = line_above(lines, number)
    while above and len(indent_of(line_at(lines, above))) >= own:
        above = line_above(lines, above)
    return own == 0 or without_comment(line_at(lines, above))[0].rstrip().endswith(":")


def _missing_colon(lines: Sequence[str], fault: SyntaxFault) -> Mending | None:
    begun = fault.context_line or line_above(lines, fault.line)
    suspects = [fault.line, *range(fault.line - 1, max(0, begun - 1, fault.line - 20), -1)]
    wants_colon = "expected ':'" in fault.said or "mapping values" in fault.said
    for number in sorted({*suspects, line_above(lines, fault.line)}):
        mending = missing_colon(lines, number, surely=wants_colon and number == begun)
        if mending is not None and (number != fault.line or number == begun):
            return mending
    return None


def _flat_block(lines: Sequence[str], fault: SyntaxFault) -> Mending | None:
    """The lines after a `|` that are not indented deeper than its key."""
    header = line_above(lines, fault.line)
    while header and not opens_block(line_at(lines, header)) and not _is_known_entry(line_at(lines, header)):
        header = line_above(lines, header)
    own = len(indent_of(line_at(lines, header)))
    if not header or not opens_block(line_at(lines, header)):
        return None
    last = first = line_below(lines, header)
    while first and len(indent_of(line_at(lines, first))) == own and not _is_known_entry(line_at(lines, last)):
        following = line_below(lines, last)
        if not following or len(indent_of(line_at(lines, following))) < own:
            break
        if _is_known_entry(line_at(lines, following)):
            break
        last = following
    if not first or len(indent_of(line_at(lines, first))) != own or _is_known_entry(line_at(lines, first)):
        return None
    key = line_at(lines, header).strip().partition(":")[0]
    which = f"line {first}" if last == first else f"the lines {first} to {last}"
    return Mending(
        Problem(first, own + 1, f"the text of {shown(key)} is not indented below it", f"indent {which} by two more"),
        {number: f"  {line_at(lines, number)}" for number in range(first, last + 1) if lines[number - 1].strip()},
    )


def _is_known_entry(line: str) -> bool:
    entry = _KNOWN_ENTRY.fullmatch(line.rstrip())
    return entry is not None and entry["key"] in EVERY_KEY


def _tabs(lines: Sequence[str], fault: SyntaxFault) -> Mending | None:
    line = line_at(lines, fault.line)
    if "\t" not in indent_of(line):
        return None
    spaced = _respaced(lines)
    more = f" (and {len(spaced) - 1} more)" if len(spaced) > 1 else ""
    rest = line.strip()
    problem = Problem(
        fault.line,
        indent_of(line).index("\t") + 1,
        f"a tab indents this line{more}, and YAML allows only spaces there",
        f"indent with two spaces for each level: this line by {len(indent_of(spaced[fault.line]))}"
        if rest
        else "empty the line",
    )
    return Mending(problem, spaced)


def _respaced(lines: Sequence[str]) -> dict[int, str]:
    """The lines that are indented with tabs, each as deep as it was probably meant."""
    spaced: dict[int, str] = {}
    widths: dict[str, int] = {}
    width, opens = 0, False
    for number, line in enumerate(lines, start=1):
        indent = indent_of(line)
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


def _unclosed_list(lines: Sequence[str], fault: SyntaxFault) -> Mending | None:
    """`run: [echo, hi` without its `]`, also when it goes on below."""
    for number in dict.fromkeys((fault.context_line, *range(fault.line, max(0, fault.line - 20), -1))):
        entry = ENTRY.fullmatch(line_at(lines, number).rstrip())
        if entry is None or entry["value"][0] not in "[{" or not entry["key"]:
            continue
        value, comment = without_comment(entry["value"])
        opened, closer = value[0], "]" if value[0] == "[" else "}"
        own, last = len(indent_of(line_at(lines, number))), number
        while (below := line_below(lines, last)) and len(indent_of(line_at(lines, below))) > own:
            last = below
        if closer in "".join(lines[number - 1 : last]) or value[1:].lstrip().startswith("-"):
            continue
        if opened == "{" and ": " not in value:
            continue
        if last != number:
            value, comment = without_comment(line_at(lines, last).rstrip())
        lead = "" if last != number else entry["lead"] + entry["key"]
        closed = f"{lead}{value.rstrip().rstrip(',')}{closer}{comment}"
        what = "list" if opened == "[" else "mapping"
        where = "" if last == number else f" on line {last}"
        problem = f"the {what} that {opened} opens here is not closed"
        advice = f"close the {what}{where}: {write_line(closed)}"
        return Mending(Problem(number, entry.start("value") + 1, problem, advice), {last: closed})
    return None


def _unclosed_quote(lines: Sequence[str], fault: SyntaxFault) -> Mending | None:
    if "end of stream" in fault.said and fault.context_line:
        suspects: Iterator[int] = iter((fault.context_line,))
    else:
        suspects = iter(range(fault.line, max(0, fault.line - 50), -1))
    for number in suspects:
        entry = ENTRY.fullmatch(line_at(lines, number).rstrip())
        if entry is None or entry["value"][0] not in "\"'" or entry["value"].count(entry["value"][0]) != 1:
            continue
        if number == fault.line and fault.column <= entry.start("value"):
            continue
        quoted = quoted_line(line_at(lines, number))
        problem = f"the quote {entry['value'][0]} that opens here is not closed on this line"
        return _requoted(number, entry.start("value") + 1, problem, quoted)
    return None


def _glued_key(lines: Sequence[str], fault: SyntaxFault) -> Mending | None:
    for number in (line_above(lines, fault.line), fault.line):
        glued = _GLUED.fullmatch(line_at(lines, number).rstrip())
        if glued is None:
            continue
        spaced = _readable(f"{glued['lead']}{glued['key']}: {glued['value']}")
        problem = Problem(number, glued.end("key") + 1, "a space is missing after the colon", write_line(spaced))
        return Mending(problem, {number: spaced})
    return None


def _unquoted(lines: Sequence[str], fault: SyntaxFault) -> Mending | None:
    for number, column in ((fault.line, fault.column), (fault.context_line, fault.context_column)):
        line = line_at(lines, number)
        entry = ENTRY.fullmatch(line.rstrip())
        if entry is None or column <= entry.start("value") or not (entry["key"] or "-" in entry["lead"]):
            continue
        value, _ = without_comment(entry["value"])
        why = _why_unreadable(value)
        quoted = _with_items_quoted(line, value) or quoted_line(line)
        if why is not None and quoted is not None:
            return _requoted(number, entry.start("value") + 1, why, quoted)
    return None


def _readable(line: str) -> str:
    """The line, its value quoted where YAML cannot read it."""
    entry = ENTRY.fullmatch(line)
    if entry is None or entry["key"] is None:
        return line
    value, _ = without_comment(entry["value"])
    if _WELL_FORMED.fullmatch(value) or _why_unreadable(value) is None:
        return line
    return quoted_line(line) or line


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
    line = line_at(lines, fault.line)
    levels = _levels_above(lines, fault.line)
    own = len(indent_of(line))
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
        indent = len(indent_of(line))
        if not line.strip() or line.lstrip().startswith("#") or (lowest is not None and indent >= lowest):
            continue
        levels[indent] = above
        lowest = indent
        if indent == 0:
            break
    return levels


def _requoted(number: int, column: int, problem: str, quoted: str | None) -> Mending:
    replaced = {} if quoted is None else {number: quoted}
    return Mending(Problem(number, column, problem, write_line(quoted)), replaced)


_FINDERS: Final = (
    _tabs,
    _flat_block,
    _missing_colon,
    _unclosed_list,
    _unclosed_quote,
    _glued_key,
    _unquoted,
    _indentation,
)
