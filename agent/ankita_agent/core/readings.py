"""How what was written becomes a value: one reader for each kind of field of routines.yaml.

A reader takes a node of the tree and the name of its key, and gives the value or raises `Misfit` with every
problem of that node, each with its own place. `Written` makes the annotation of a field from it, so that
one field list serves as the model, as the value and as the JSON schema.

tests/unit/test_routine_model.py holds it. Rejected: letting pydantic read plain strings and translating its
messages (they speak of inputs and types, not of what the person wrote, and know no line); a pydantic model whose
validators are these readers (all that it then does itself is to call them in turn, and its modules are half
of an idle agent's memory).
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import fields
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, TypeAlias, get_args

from ankita_agent.core.durations import LONGEST, format_duration, parse_duration
from ankita_agent.core.instants import Duration
from ankita_agent.core.problems import Problem
from ankita_agent.core.schedule import Schedule, ScheduleError, parse_schedule
from ankita_agent.core.tree import Kind, Mapping, Node, Scalar, Sequence
from ankita_agent.core.wording import as_value, shown, write
from ankita_agent.core.zones import UnknownZone, zone_named

LONGEST_NAME: Final = 64
NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_WHOLE_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,17}")
FLAGS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_OF_HOME: Final = re.compile(r"^\$(?:HOME|\{HOME\})(?=/|$)")
_LONGEST_SHOWN: Final = 60
_LONGEST_SCHEDULE: Final = 500


class Misfit(ValueError):
    """What was written does not fit its field; `problems` says all that is wrong with it."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(problem.problem for problem in problems))
        self.problems = problems


class Written:
    """The annotation of a field: how it is read from a node, what it is for, and its JSON schema.

    `read` takes the node and the key, and the value of the earlier field `after` where one is named.
    """

    def __init__(
        self, read: Callable[..., Any], schema: dict[str, Any], description: str, after: str | None = None
    ) -> None:
        self.read, self.schema, self.description, self.after = read, schema, description, after


Readings: TypeAlias = tuple[tuple[str, Written], ...]


def readings_of(model: type[Any]) -> Readings:
    """The fields of a model that can be written, in its order, so that `after` always names an earlier one."""
    noted = ((each.name, note) for each in fields(model) for note in get_args(each.type))
    return tuple((name, note) for name, note in noted if isinstance(note, Written))


def misfit(node: Node, problem: str, fix: str, offset: int = 0) -> Misfit:
    """A single problem at a node, `offset` characters into it."""
    return Misfit(Problem(node.line, node.column + offset, problem, fix))


def kind_of(node: Node) -> str:
    """What a node is, in plain words."""
    match node:
        case Scalar():
            return "nothing" if node.null else "a single value"
        case Mapping():
            return "a mapping"
        case Sequence():
            return "a list"


def written_text(node: Node, key: str, example: str) -> Scalar:
    """The scalar that `node` must be.

    Raises Misfit for a list, a mapping, nothing, and for what no process can be given.
    """
    if not isinstance(node, Scalar):
        problem = f"{shown(key)} takes a single value and holds {kind_of(node)}"
        raise misfit(node, problem, f"write a single value, as in `{example}`")
    if node.null:
        raise misfit(node, f"{shown(key)} has no value", f"write one, as in `{example}`, or leave the key out")
    refuse_unusable(node, key)
    return node


def refuse_unusable(node: Scalar, key: str) -> None:
    """Raise Misfit for a NUL or half a surrogate pair: neither can be handed to a process (execve(2))."""
    if "\0" in node.text:
        raise misfit(node, f"{shown(key)} holds a NUL character", "leave out the '\\0'")
    if not node.text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in node.text):
        raise misfit(
            node,
            f"{shown(key)} holds half of a surrogate pair",
            "write the character itself, or '\\U' with 8 digits",
        )


def read_text(node: Node, key: str) -> str:
    """Any text that is not empty."""
    scalar = written_text(node, key, f"{key}: some text")
    if not scalar.text.strip():
        raise misfit(node, f"{shown(key)} is empty", "write some text, or leave the key out")
    return scalar.text


def duration_between(
    shortest: int, longest: int = LONGEST, none: bool = False
) -> Callable[[Node, str], Duration | None]:
    """A reader of durations within these bounds (inclusive); with `none` the word means no limit."""

    def read(node: Node, key: str) -> Duration | None:
        scalar = written_text(node, key, f"{key}: 30m")
        if none and scalar.text == "none":
            return None
        if len(scalar.text) > _LONGEST_SHOWN:
            raise misfit(
                node, f"{shown(key)}: {shown(scalar.text)} is not a duration", f"write one, as in `{key}: 30m`"
            )
        try:
            span = parse_duration(scalar.text)
        except ValueError as error:
            problem, _, fix = str(error).rpartition("; ")
            raise misfit(node, f"{shown(key)}: {problem}", fix) from None
        if not shortest <= span <= longest:
            bound = "shorter than" if span < shortest else "longer than"
            limit = format_duration(shortest if span < shortest else longest)
            problem = f"{shown(key)}: {shown(scalar.text)} is {bound} {limit}"
            raise misfit(node, problem, write(*(f"{key}: {each}" for each in (limit, "none")[: 1 + none])))
        return span

    return read


def whole_between(least: int, most: int) -> Callable[[Node, str], int]:
    """A reader of whole numbers within these bounds, inclusive."""

    def read(node: Node, key: str) -> int:
        scalar = written_text(node, key, f"{key}: {max(least, 1)}")
        return whole_number(scalar, key, least, most)

    return read


def whole_number(scalar: Scalar, key: str, least: int, most: int) -> int:
    """A whole number within these bounds, inclusive. Raises Misfit."""
    text = scalar.text
    if text.isdigit() and len(text) > 1 and text.startswith("0"):
        plain = text.lstrip("0")[:_LONGEST_SHOWN] or "0"
        raise misfit(
            scalar,
            f"{shown(key)}: {shown(text)} begins with 0, which YAML may read as octal",
            f"{write(plain)} without the 0",
        )
    if not _WHOLE_NUMBER.fullmatch(text):
        raise misfit(
            scalar, f"{shown(key)}: {shown(text)} is not a whole number", f"write a number from {least} to {most}"
        )
    if not least <= int(text) <= most:
        nearest = str(least if int(text) < least else most)
        problem = f"{shown(key)}: {shown(text)} is not from {least} to {most}"
        raise misfit(scalar, problem, f"{write(nearest)}, or a number from {least} to {most}")
    return int(text)


def read_flag(node: Node, key: str) -> bool:
    """Yes or no, in YAML's six words for it."""
    scalar = written_text(node, key, f"{key}: true")
    try:
        return FLAGS[scalar.text.lower()]
    except KeyError:
        raise misfit(
            node,
            f"{shown(key)}: {shown(scalar.text)} is neither yes nor no",
            write(f"{key}: true", f"{key}: false"),
        ) from None


def choice_of(words: type[StrEnum]) -> Callable[[Node, str], StrEnum]:
    """A reader of one of the words of a closed set."""

    def read(node: Node, key: str) -> StrEnum:
        scalar = written_text(node, key, f"{key}: {next(iter(words))}")
        try:
            return words(scalar.text)
        except ValueError:
            raise misfit(
                node,
                f"{shown(key)}: {shown(scalar.text)} is not known",
                write(*(f"{key}: {each}" for each in words)),
            ) from None

    return read


def read_schedule(node: Node, key: str) -> Schedule:
    """A schedule in any of its forms."""
    scalar = written_text(node, key, f"{key}: weekdays 08:00")
    if len(scalar.text) > _LONGEST_SCHEDULE:
        problem = f"{shown(key)} has {len(scalar.text)} characters"
        raise misfit(node, problem, f"write a schedule, as in `{key}: weekdays 08:00`")
    try:
        return _parsed(scalar.text)
    except ScheduleError as error:
        inside = 0 if scalar.kind is Kind.BLOCK or scalar.line != scalar.end_line else (error.offset or 0)
        quote = 1 if inside and scalar.kind is Kind.QUOTED else 0
        raise misfit(node, error.problem, error.fix, inside + quote) from None


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Schedule:
    """Many routines share a schedule, and a reload meets those of before."""
    return parse_schedule(text)


def read_zone(node: Node, key: str) -> str:
    """The name of a time zone that this machine knows."""
    scalar = written_text(node, key, f"{key}: Europe/Berlin")
    if len(scalar.text) > _LONGEST_SHOWN:
        raise misfit(node, f"no time zone is named {shown(scalar.text)}", f"write one, as in `{key}: Europe/Berlin`")
    try:
        zone_named(scalar.text)
    except UnknownZone as error:
        raise misfit(node, error.problem, error.fix) from None
    return scalar.text


def read_directory(node: Node, key: str) -> str:
    """A path; a bare `~`, which YAML reads as nothing, is the home directory."""
    if isinstance(node, Scalar) and node.text == "~":
        return node.text
    return read_path(node, key)


def read_path(node: Node, key: str) -> str:
    """A path: absolute, relative to the home directory, or beginning with `~/`."""
    scalar = written_text(node, key, f"{key}: ~/some/path")
    if not scalar.text.strip():
        raise misfit(node, f"{shown(key)} is empty", f"write a path, as in `{key}: ~/some/path`")
    if scalar.text.startswith("~") and not scalar.text.startswith("~/"):
        raise misfit(
            node,
            f"{shown(key)}: {shown(scalar.text)} names the home of another user",
            "write the whole path, or `~/` for your own home",
        )
    if "$" in scalar.text:
        raise misfit(
            node,
            f"{shown(key)}: {shown(scalar.text)} holds a variable, and no shell reads this value",
            _without_variable(key, scalar.text),
        )
    return scalar.text


def _without_variable(key: str, path: str) -> str:
    home = _OF_HOME.sub("~", path, count=1)
    if "$" not in home:
        return write(f"{key}: {as_value(home)}")
    return "write the path itself, and `~/` for your home directory"


def read_shell(node: Node, key: str) -> str:
    """The program that runs a `run` written as a string, as `PROGRAM -c TEXT`."""
    scalar = written_text(node, key, f"{key}: /bin/bash")
    if not scalar.text or any(letter.isspace() for letter in scalar.text):
        program = as_value((scalar.text.split() or ["/bin/sh"])[0])
        raise misfit(
            node,
            f"{shown(key)}: {shown(scalar.text)} is not the path of one program",
            f"{write(f'{key}: {program}')}; options need a list, as in `run: [{program}, -eu, -c, 'the command']`",
        )
    return scalar.text


def refuse_name(name: Scalar) -> None:
    """Raise Misfit unless the scalar can name a routine: it becomes part of file names and of commands."""
    if _NAME.fullmatch(name.text):
        return
    ascii_only = unicodedata.normalize("NFKD", name.text).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", ascii_only).strip("-._")[:LONGEST_NAME]
    hint = write(f"{slug if _NAME.fullmatch(slug) else 'morning-briefing'}:")
    why = f"is longer than {LONGEST_NAME} characters" if len(name.text) > LONGEST_NAME else "cannot name a routine"
    rule = f"a name is letters (a-z), digits, - _ and . (up to {LONGEST_NAME}), beginning with a letter or digit"
    raise misfit(name, f"{shown(name.text)} {why}", f"{hint}; {rule}")
