"""Reads YAML into core.tree with PyYAML's scanner and parser, and refuses what has no place in routines.yaml.

The problem: a composed YAML document can be endless (aliases of aliases), can overflow the C stack (the
composer recurses) and forgets what was written (`no` is False, a second key wins in silence). The rule:
only PyYAML's *events* are used, which come one after another; the tree is built from them with an explicit
stack, counting what it would be with every alias written out. Scalars stay text. Every refusal is a Problem
with its place; no content, however broken, raises.

An alias (`*name`) stands for what its anchor (`&name`) marked, anywhere a value may stand. Merge keys
(`<<`), tags (`!name`) and several documents are refused: `defaults:` is the one way to share settings, and
two ways to say the same would hide where a value comes from.

tests/unit/test_yaml_files.py and tests/fuzz/fuzz_routines.py hold it. Rejected: composing nodes and walking
them.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, NoReturn

import yaml

from ankita_agent.core.mendings import SyntaxFault, mend, unquoted
from ankita_agent.core.problems import Problem
from ankita_agent.core.tree import Document, Kind, Mapping, Node, Scalar, Sequence, lines_of
from ankita_agent.core.wording import shown

LARGEST: Final = 10 * 1024 * 1024
DEEPEST: Final = 50
MOST_NODES: Final = 500_000
"""10 000 routines have about 100 000."""

_MOST_ROUNDS: Final = 50
_MOST_PROBLEMS: Final = 1000
_LONGEST_MEANT: Final = 200
_BYTES_REREAD: Final = 5_000_000
_UNPRINTABLE: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_document(content: bytes, loader: Any = _LOADER) -> Document:
    """The document that the bytes of a file hold. Never raises; UTF-8, with or without a byte order mark.

    A first mistake is corrected as its message suggests and reading goes on, so that all problems of a file
    are found at once, within a bounded number of rounds.
    """
    if len(content) > LARGEST:
        size = f"the file has {len(content)} bytes, and the most is {LARGEST}"
        return _unreadable(Problem(0, 0, size, "10 000 routines fit; keep data of your commands in files of their own"))
    try:
        text = content.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        return _unreadable(_not_utf8(content, error))
    lines = lines_of(text)
    strange = _UNPRINTABLE.search(text)
    if strange is not None:
        return Document(None, lines, (_control_character(text, strange),))
    return _read_with_corrections(text, lines, loader)


def _read_with_corrections(text: str, lines: tuple[str, ...], loader: Any) -> Document:
    found: list[Problem] = []
    current, mended = list(lines), set[int]()
    for _ in range(max(3, min(_MOST_ROUNDS, _BYTES_REREAD // (len(text) + 1)))):
        builder = _TreeBuilder(current)
        try:
            root = builder.build(yaml.parse(text, Loader=loader))
        except _Refused as refused:
            return Document(None, lines, (*found, *builder.problems, refused.problem))
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            fault = _fault_of(error, current)
            if "nesting depth" in fault.said:  # the scanner's own limit comes before ours
                return Document(None, lines, (*found, _too_deep(fault.line, fault.column)))
            mending = mend(current, fault)
            stuck = not mending.lines or not mended.isdisjoint(mending.lines)
            if not stuck or not found:
                found.append(mending.problem)
            if stuck:
                break
            mended.update(mending.lines)
            for number, line in mending.lines.items():
                current[number - 1] = line
            text = "\n".join(current)
            continue
        return Document(root, lines, (*found, *builder.problems))
    return Document(None, lines, tuple(found))


class _Refused(Exception):
    """The document is not read any further."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.problem)
        self.problem = problem


class _Anchored(NamedTuple):
    node: Node
    size: int


class _Open:
    """A mapping or list whose end has not come yet."""

    __slots__ = ("again", "anchor", "flow", "is_mapping", "key", "nodes", "places", "start", "total")

    def __init__(self, event: Any, total: int) -> None:
        self.is_mapping = isinstance(event, yaml.MappingStartEvent)
        self.flow = bool(event.flow_style)
        self.start = event.start_mark
        self.anchor: str | None = event.anchor
        self.total = total  # nodes before it, to know its size at its end
        self.key: Scalar | None = None
        self.nodes: list[Any] = []
        self.again: list[tuple[Scalar, Node]] = []
        self.places: dict[str, Scalar] = {}

    def close(self) -> Node:
        """The finished node."""
        nodes, line, column = tuple(self.nodes), self.start.line + 1, self.start.column + 1
        if self.is_mapping:
            return Mapping(nodes, self.flow, line, column, tuple(self.again))
        return Sequence(nodes, self.flow, line, column)


class _TreeBuilder:
    """Builds the tree from events, without recursion."""

    def __init__(self, lines: list[str]) -> None:
        self.problems: list[Problem] = []
        self._lines = lines
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored] = {}
        self._total = 0
        self._root: Node | None = None
        self._ended = False

    def build(self, events: Iterator[Any]) -> Node | None:
        """The root of the one document, None when there is nothing. Raises _Refused and yaml.YAMLError."""
        for event in events:
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self._count(event, 1)
                self._place(self._scalar(event), event.anchor, 1)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self._start(event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                done = self._open.pop()
                self._place(done.close(), done.anchor, self._total - done.total)
            elif kind is yaml.AliasEvent:
                self._alias(event)
            elif kind is yaml.DocumentStartEvent:
                if self._ended:
                    self._refuse(
                        event,
                        "a second document begins here, and a file is one",
                        "remove the line --- or ...",
                    )
            elif kind is yaml.DocumentEndEvent:
                self._ended = True
        return self._root

    def _start(self, event: Any) -> None:
        if len(self._open) >= DEEPEST:
            raise _Refused(_too_deep(*_mark(event)))
        if event.tag is not None:
            self._report(*_mark(event), "tags (words that begin with !) are not read", "remove the tag")
        self._count(event, 1)
        self._open.append(_Open(event, self._total - 1))

    def _scalar(self, event: Any) -> Scalar:
        style = event.style
        kind = Kind.BLOCK if style in ("|", ">") else Kind.QUOTED if style in ("'", '"') else Kind.PLAIN
        text: str = event.value
        if event.tag is not None or (event.anchor is not None and not text and kind is Kind.PLAIN):
            return _scalar_of(event, self._meant_as_text(event), Kind.QUOTED)
        return _scalar_of(event, text, kind)

    def _alias(self, event: Any) -> None:
        anchored = self._anchors.get(event.anchor)
        if anchored is not None:
            self._count(event, anchored.size)
            self._place(anchored.node, None, anchored.size)
        elif any(each.anchor == event.anchor for each in self._open):
            self._refuse(event, "this alias stands inside of what it stands for", "remove the alias")
        else:
            self._count(event, 1)
            self._place(_scalar_of(event, self._meant_as_text(event), Kind.QUOTED), None, 1)

    def _meant_as_text(self, event: Any) -> str:
        """Report a value that YAML takes for an alias, an anchor or a tag; the text that was meant."""
        line, column = _mark(event)
        written = self._lines[line - 1] if line <= len(self._lines) else ""
        problem = unquoted(written, line, column)
        self._report(line, column, problem.problem, problem.fix)
        return written[column - 1 : column - 1 + _LONGEST_MEANT].strip()

    def _place(self, node: Node, anchor: str | None, size: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = _Anchored(node, size)
        if not self._open:
            self._root = node
            return
        parent = self._open[-1]
        if not parent.is_mapping:
            parent.nodes.append(node)
        elif parent.key is None:
            parent.key = self._key(node)
        else:
            self._add_pair(parent, parent.key, node)
            parent.key = None

    def _key(self, node: Node) -> Scalar:
        if isinstance(node, Scalar):
            return node
        raise _Refused(Problem(node.line, node.column, "a key is a list or a mapping", "write a name before the colon"))

    def _add_pair(self, parent: _Open, key: Scalar, value: Node) -> None:
        first = parent.places.setdefault(key.text, key)
        if first is not key:
            self._report(
                key.line,
                key.column,
                f"{shown(key.text)} stands here a second time, after line {first.line}",
                f"remove one of the lines {first.line} and {key.line}"
                + (", or give one another name" if isinstance(value, Mapping) else ""),
            )
            parent.again.append((key, value))
        elif key.text == "<<" and key.kind is Kind.PLAIN:
            fix = "move what routines share below `defaults:`"
            self._report(key.line, key.column, "merge keys (<<) are not read", fix)
        else:
            parent.nodes.append((key, value))

    def _count(self, event: Any, nodes: int) -> None:
        self._total += nodes
        if self._total > MOST_NODES:
            self._refuse(
                event,
                f"the file holds more than {MOST_NODES} values, aliases written out",
                "use fewer aliases",
            )

    def _report(self, line: int, column: int, problem: str, fix: str) -> None:
        self.problems.append(Problem(line, column, problem, fix))
        if len(self.problems) >= _MOST_PROBLEMS:
            problem = "nothing further was read: too many problems"
            raise _Refused(Problem(line, column, problem, "mend those above"))

    def _refuse(self, event: Any, problem: str, fix: str) -> NoReturn:
        raise _Refused(Problem(*_mark(event), problem, fix))


def _scalar_of(event: Any, text: str, kind: Kind) -> Scalar:
    start, end = event.start_mark, event.end_mark
    return Scalar(text, kind, start.line + 1, start.column + 1, end.line + 1, end.column + 1)


def _too_deep(line: int, column: int) -> Problem:
    problem = f"this is nested more than {DEEPEST} levels deep"
    return Problem(line, column, problem, "write it flatter: a routine needs four levels")


def _mark(event: Any) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _fault_of(error: Exception, lines: list[str]) -> SyntaxFault:
    mark, context = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    context_said = getattr(error, "context", None)
    said = f"{getattr(error, 'problem', None) or error}" + (f" {context_said}" if context_said else "")
    place = mark or context
    line, column = (place.line + 1, place.column + 1) if place else (1, 1)
    if line > len(lines):  # behind the end
        line, column = len(lines), len(lines[-1]) + 1
    return SyntaxFault(
        line,
        column,
        " ".join(said.split()),
        context.line + 1 if context else 0,
        context.column + 1 if context else 0,
    )


def _unreadable(problem: Problem) -> Document:
    return Document(None, (), (problem,))


def _not_utf8(content: bytes, error: UnicodeDecodeError) -> Problem:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Problem(1, 1, "the file is in UTF-16", "save it as UTF-8")
    good = error.object[: error.start]
    at = error.start + (len(BOM_UTF8) if content.startswith(BOM_UTF8) else 0)
    problem = f"byte {at} (0x{content[at]:02x}) is not UTF-8"
    return Problem(*_end_of(good.decode()), problem, "save the file as UTF-8")


def _control_character(text: str, strange: re.Match[str]) -> Problem:
    return Problem(
        *_end_of(text[: strange.start()]),
        f"the character U+{ord(strange[0]):04X} cannot stand in a text file",
        "remove it, or between double quotes write it with `\\x` and two digits",
    )


def _end_of(text: str) -> tuple[int, int]:
    """The line and column at which the text ends."""
    lines = lines_of(text)
    return len(lines), len(lines[-1]) + 1
