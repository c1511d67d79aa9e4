"""A YAML document as plain values with places: what was written and where, and nothing of YAML's types.

A scalar stays the text that was written, so that `no`, `0755` and `8:30` mean what the model says they mean
and not what YAML 1.1 makes of them (`False`, 493, 510). Lines and columns count from 1, columns in
characters.
"""

import re
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from ankita_agent.core.problems import Problem

_LINE_BREAK: Final = re.compile("\r\n|[\r\n\x85\u2028\u2029]")


class Kind(Enum):
    """How a scalar was written."""

    PLAIN = "plain"
    QUOTED = "quoted"
    BLOCK = "block"  # after | or >


class Scalar(NamedTuple):
    """One value as text, from (line, column) up to, and without, (end_line, end_column)."""

    text: str
    kind: Kind
    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def null(self) -> bool:
        """Whether YAML reads it as no value at all."""
        return self.kind is Kind.PLAIN and self.text in ("", "~", "null", "Null", "NULL")


class Mapping(NamedTuple):
    """Keys with their values in the order of the file; no key comes twice. `flow` when written in braces.

    `again` are the pairs whose keys stood there before: they are refused, and kept to be judged as well.
    """

    pairs: "tuple[tuple[Scalar, Node], ...]"
    flow: bool
    line: int
    column: int
    again: "tuple[tuple[Scalar, Node], ...]" = ()


class Sequence(NamedTuple):
    """Items in the order of the file. `flow` when written in brackets."""

    items: "tuple[Node, ...]"
    flow: bool
    line: int
    column: int


Node: TypeAlias = Scalar | Mapping | Sequence


class Document(NamedTuple):
    """A file as read: its root (None when it holds nothing), its lines, and what kept it from being read.

    With problems the root is what the file would hold with the suggested corrections, so that the rest of
    it can be judged too; None when that is not possible.
    """

    root: Node | None
    lines: tuple[str, ...]
    problems: tuple[Problem, ...] = ()


def lines_of(text: str) -> tuple[str, ...]:
    """The lines of a text, as YAML 1.1 counts them, without their line breaks."""
    return tuple(_LINE_BREAK.split(text))
