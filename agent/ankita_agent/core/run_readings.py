"""How the readings of a run come to be: its command, its environment, the exit statuses that are a success.

As core/readings.py, for values made of several parts, each part with problems of its own.
"""

import re
import shlex
from typing import Final

from ankita_agent.core.concealment import HIDDEN
from ankita_agent.core.problems import Problem
from ankita_agent.core.readings import (
    Misfit,
    kind_of,
    misfit,
    refuse_unusable,
    whole_number,
    written_text,
)
from ankita_agent.core.tree import Mapping, Node, Scalar, Sequence
from ankita_agent.core.wording import as_value, shown, write

STANDARD_SHELL: Final = "/bin/sh"
SHELL_WORDS: Final = frozenset({"|", "||", "&&", ";", "&", ">", ">>", "<", "2>", "2>&1", ">&2"})
"""Words of a list that only a shell gives a meaning to."""

_FOR_THE_SHELL: Final = re.compile(r"(?:~/)?[\w/.${}:=@%+-]*")
_MOST_PAIRS: Final = 20
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME_ALONE: Final = re.compile(r"[$A-Za-z0-9_.-]+")
_BEFORE_A_VALUE: Final = re.compile(r"(?:export )?[A-Za-z0-9_.-]+(?=[\s=:])")
_OURS: Final = re.compile(r"ANKITA_|(?:NOTIFY_SOCKET$|WATCHDOG_|LISTEN_)")


def read_statuses(node: Node, key: str) -> tuple[int, ...]:
    """One exit status or a list of them, ascending and each once."""
    nodes = node.items if isinstance(node, Sequence) else (node,)
    problems: list[Problem] = []
    found = set()
    for each in nodes:
        try:
            found.add(whole_number(written_text(each, key, f"{key}: [0, 1]"), key, 0, 255))
        except Misfit as error:
            problems += error.problems
    if not nodes:
        problems.append(Problem(node.line, node.column, f"{shown(key)} is an empty list", write(f"{key}: 0")))
    if problems:
        raise Misfit(*problems)
    return tuple(sorted(found))


def read_environment(node: Node, key: str) -> dict[str, str]:
    """Variables with their values as written: `no` is the text no, 0755 is 0755, nothing the empty text."""
    if isinstance(node, Scalar) and node.null:
        return {}
    if not isinstance(node, Mapping):
        raise misfit(
            node,
            f"{shown(key)} takes names with values and holds {kind_of(node)}",
            _as_pairs(node, key),
        )
    problems: list[Problem] = []
    variables = {}
    for name, value in node.pairs:
        try:
            _refuse_variable(name)
            variables[name.text] = _variable_value(name.text, value)
        except Misfit as error:
            problems += error.problems
    if problems:
        raise Misfit(*problems)
    return variables


def _as_pairs(node: Node, key: str) -> str:
    """The advice to write a list of NAME=value as a mapping."""
    items = node.items if isinstance(node, Sequence) else (node,)
    texts = [item.text for item in items if isinstance(item, Scalar) and "=" in item.text]
    names = [text.partition("=")[0].strip() for text in texts]
    pairs = [f"{name}: {HIDDEN}" for name in names if _VARIABLE.fullmatch(name)]  # the values may be secrets
    if not pairs or len(pairs) > _MOST_PAIRS:
        return f"write names with values, as in `{key}: {{NAME: value}}`"
    in_place = "" if isinstance(node, Scalar) or node.flow else " in place of the list"
    return write(f"{key}: {{{', '.join(pairs)}}}") + in_place


def _refuse_variable(name: Scalar) -> None:
    if not _VARIABLE.fullmatch(name.text):
        written = name.text if _NAME_ALONE.fullmatch(name.text) else ""
        fitting = re.sub(r"[^A-Za-z0-9_]", "_", written)
        hint = f", as in `{fitting}:`" if _VARIABLE.fullmatch(fitting) else ""
        raise misfit(
            name,
            f"{shown(written or _named(name.text))} is not the name of a variable",
            f"write letters, digits and _, not beginning with a digit{hint}",
        )
    if _OURS.match(name.text):
        raise misfit(name, f"{shown(name.text)} is set or taken out by the agent for every run", "choose another name")


def _named(text: str) -> str:
    """What may be shown of `NAME=value` where a name was due: the value may be a secret."""
    match = _BEFORE_A_VALUE.match(text)
    return f"{match[0] if match else ''}{HIDDEN}"


def _variable_value(name: str, value: Node) -> str:
    if not isinstance(value, Scalar):
        raise misfit(
            value,
            f"the variable {shown(name)} takes one text and holds {kind_of(value)}",
            f"write a text, as in `{name}: the text`",
        )
    refuse_unusable(value, name)
    return value.text


def read_command(node: Node, key: str, shell: str | None) -> tuple[str, ...]:
    """The argument vector of `run`: a text goes to the shell, a list is taken as it is."""
    if not isinstance(node, Sequence):
        scalar = written_text(node, key, f"{key}: the command")
        if not scalar.text.strip():
            raise misfit(node, f"{shown(key)} is empty", f"write the command, as in `{key}: ~/bin/backup`")
        return (shell or STANDARD_SHELL, "-c", scalar.text)
    if not node.items:
        raise misfit(
            node, f"{shown(key)} is an empty list", f"write the program and its arguments, as in `{key}: [echo, hello]`"
        )
    problems: list[Problem] = []
    words = []
    for item in node.items:
        try:
            words.append(written_text(item, key, f"{key}: [echo, 'an argument']").text)
        except Misfit as error:
            problems += error.problems
    if not problems:
        problems += _program_problems(node, words[0])
    if problems:
        raise Misfit(*problems)
    return tuple(words)


def as_shell_text(run: Sequence) -> str:
    """The advice to write a list as the text for a shell that it was meant to be."""
    words = [item.text for item in run.items if isinstance(item, Scalar)]
    plain = (word if word in SHELL_WORDS or _FOR_THE_SHELL.fullmatch(word) else shlex.quote(word) for word in words)
    return write(f"run: {as_value(' '.join(plain))}") + ("" if run.flow else " in place of the list")


def _program_problems(run: Sequence, program: str) -> list[Problem]:
    """What keeps the first word of a list from ever being a program."""
    node = run.items[0]
    if not program.strip():
        return [Problem(node.line, node.column, "the program of 'run' is empty", "write its name or path first")]
    if program.startswith("~"):
        return [
            Problem(
                node.line,
                node.column,
                f"{shown(program)}: a list is run as it is, and only a shell knows what ~ means",
                f"{as_shell_text(run)}, or the whole path",
            )
        ]
    return []
