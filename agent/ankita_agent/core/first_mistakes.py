"""The messages for values that people write wrongly first, where YAML reads them and means something else.

Each shows the same line written correctly. Where a file is no YAML at all, core/mendings.py speaks.

tests/unit/test_first_mistakes.py holds the list.
"""

import re
from collections.abc import Sequence
from typing import Final

from ankita_agent.core.mendings import unquoted
from ankita_agent.core.problems import Problem
from ankita_agent.core.schedule import joined_schedule
from ankita_agent.core.tree import Kind, Mapping, Node, Scalar
from ankita_agent.core.tree import Sequence as Items
from ankita_agent.core.wording import as_value, quote, shown, write
from ankita_agent.core.yaml_lines import line_at, quoted_line, write_line

_TIME: Final = re.compile(r"([01]?[0-9]|2[0-3])[:.]([0-5][0-9])")
_TEXTS: Final = frozenset({"description", "quiet_output"})
_TYPOGRAPHIC: Final = (
    "\N{LEFT DOUBLE QUOTATION MARK}",
    "\N{RIGHT DOUBLE QUOTATION MARK}",
    "\N{DOUBLE LOW-9 QUOTATION MARK}",
)
_TYPOGRAPHIC_TO_PLAIN: Final = {ord(letter): '"' for letter in _TYPOGRAPHIC}


def in_value(key: str, node: Node, lines: Sequence[str]) -> Problem | None:
    """The first mistake in the value of a routine's key, if it is one that this module knows."""
    if isinstance(node, Scalar) and node.kind is Kind.PLAIN and node.text[:1] in _TYPOGRAPHIC:
        line = line_at(lines, node.line).translate(_TYPOGRAPHIC_TO_PLAIN)
        return Problem(node.line, node.column, f"{node.text[0]} is no quote that YAML knows", write_line(line or None))
    if key == "schedule":
        return _lone_time(node) if isinstance(node, Scalar) else _several_schedules(node)
    if key == "run":
        return _in_command(node, lines)
    if key in _TEXTS and not isinstance(node, Scalar) and node.flow:
        return unquoted(line_at(lines, node.line), node.line, node.column)
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
        f"the schedule {shown(node.text)} is a time without its days{also}",
        write(f"schedule: daily {hour:0>2}:{minute}", f"schedule: weekdays {hour:0>2}:{minute}"),
    )


def _several_schedules(node: Mapping | Items) -> Problem | None:
    texts = [item.text for item in node.items if isinstance(item, Scalar)] if isinstance(node, Items) else []
    if not texts:
        return None
    joined = joined_schedule(texts)
    fix = f"{write(f'schedule: {as_value(joined)}')}, which has the slots of all" if joined else ""
    if not joined:
        each = " and ".join(f"`schedule: {as_value(text)}`" for text in texts[:3])
        fix = f"write a routine for each, with {each}"
    return Problem(node.line, node.column, "a routine has one schedule, and this is a list", fix)


def _in_command(node: Node, lines: Sequence[str]) -> Problem | None:
    line = line_at(lines, node.line)
    match node:
        case Mapping(flow=True):
            return unquoted(line, node.line, node.column)
        case Items(flow=True, items=[Scalar(kind=Kind.PLAIN, text=text), *_]) if text.startswith("-"):
            problem = f"an unquoted [ begins a list in YAML, and {shown(text.split()[0])} is no program"
            return Problem(node.line, node.column, problem, write_line(quoted_line(line)))
        case Items(flow=False, items=items):
            return next((_split_item(item, lines) for item in items if isinstance(item, Mapping)), None)
        case _:
            return None


def _split_item(item: Mapping, lines: Sequence[str]) -> Problem:
    problem = "a colon with a space after it begins a mapping in YAML"
    start, written = line_at(lines, item.line)[: item.column - 1], line_at(lines, item.line)[item.column - 1 :]
    return Problem(item.line, item.column, problem, write_line(start + quote(written.rstrip())))
