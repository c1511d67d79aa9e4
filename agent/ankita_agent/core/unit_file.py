"""The unit files that we write: rendered from the shipped ones, and read back.

The problem: a unit file is a small language. A path with a space, a quote, `%` or `$` in it means something else
there unless it is written right, and a file that was written once is later found again: by another version, after
the program has moved, or edited by its user. The rule: the shipped file is the only text; rendering replaces its
`ExecStart=`, adds `Environment=`, and leaves out what the systemd at hand does not know. The first section gets
`X-Ankita-Version=` and `X-Ankita-Hash=` (names in X- are nobody's business but ours: systemd.unit(5)); a hash that
does not fit says that somebody edited the file. tests/unit/test_unit_file.py holds it, and has systemd judge it.
Rejected: comparing with what this version would write (an old version would look edited); a template language.

Sources: systemd.syntax(7), systemd.unit(5) "Specifiers", systemd.service(5) "Command lines".
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

SINCE: Final[Mapping[str, int]] = {
    "OOMPolicy": 243,
    "TimeoutAbortSec": 243,
    "TimeoutStartFailureMode": 246,
    "TimeoutStopFailureMode": 246,
}
"""Directives that a supported systemd may not know, and the version that brought each: its NEWS."""

VERSION_KEY: Final = "X-Ankita-Version"
HASH_KEY: Final = "X-Ankita-Hash"

_PLAIN: Final = re.compile(r"[\w./:=@,+-]+", re.ASCII)
_HARD_TO_EXECUTE: Final = re.compile(r"""[$"'\\\x00-\x1f\x7f\ud800-\udfff]""")
_WRAPPER: Final = ("/bin/sh", "-c", 'exec "$0" "$@"')
_ESCAPES: Final = {"\a": "a", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v"}
_UNESCAPES: Final = {letter: sign for sign, letter in _ESCAPES.items()} | {"s": " ", "\\": "\\", '"': '"', "'": "'"}
_NUMBERED: Final = re.compile(r"x([0-9a-fA-F]{2})|([0-3][0-7]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})")


@dataclass(frozen=True, slots=True)
class ServiceFacts:
    """What a service file is rendered for: the words of the program, the variables it needs, and versions.

    `version` is that of ankita-agent, `systemd` the major number of the manager's.
    """

    program: tuple[str, ...]
    environment: Mapping[str, str]
    version: str
    systemd: int


@dataclass(frozen=True, slots=True)
class UnitFile:
    """What a unit file says, whoever wrote it.

    `version` is the ankita-agent that wrote it, None when none did; `edited` whether anybody changed it since, or
    wrote it himself; `program` the words of its newest `ExecStart=`, without a wrapper of ours, empty without one.
    """

    version: str | None
    edited: bool
    program: tuple[str, ...]
    environment: Mapping[str, str]


def render_service(template: str, facts: ServiceFacts) -> str:
    """The shipped service file for these facts, stamped.

    Raises ValueError naming the variable whose value no `Environment=` can hold: systemd takes no control
    characters there, and nothing that is not UTF-8.
    """
    lines = []
    for line in template.split("\n"):
        key = line.partition("=")[0]
        if SINCE.get(key, 0) > facts.systemd:
            continue
        if key == "ExecStart":
            line = f"ExecStart={_command(facts.program)}"
        lines.append(line)
        if key == "ExecStart":
            lines += [f"Environment={_assignment(name, value)}" for name, value in sorted(facts.environment.items())]
    return stamp("\n".join(lines), facts.version)


def stamp(text: str, version: str) -> str:
    """The text of a unit file with the version and the hash of all the rest in its first section."""
    before, header, after = re.split(r"^(\[\w+\]\n)", text, maxsplit=1, flags=re.MULTILINE)
    start, rest = f"{before}{header}{VERSION_KEY}={version}\n", after
    return f"{start}{HASH_KEY}={_hash(start + rest)}\n{rest}"


def read_unit_file(text: str, home: str) -> UnitFile:
    """Read a unit file back; `home` is what `%h` stands for. Never raises: what makes no sense is not there."""
    version, stamped, command = None, None, ""
    environment: dict[str, str] = {}
    for key, value in _assignments(text):
        match key:
            case "X-Ankita-Version":
                version = value
            case "X-Ankita-Hash":
                stamped = value
            case "ExecStart":
                command = value
            case "Environment" if not value:
                environment.clear()
            case "Environment":
                words = read_words(value, home, command=False)
                environment |= {name: content for name, found, content in (w.partition("=") for w in words) if found}
    return UnitFile(version, stamped != _hash(_without_hash(text)), _program(command, home), environment)


def _program(command: str, home: str) -> tuple[str, ...]:
    words = tuple(read_words(command.lstrip("-:+!|"), home, command=True))
    return words[len(_WRAPPER) :] if words[: len(_WRAPPER)] == _WRAPPER else words


def _command(program: tuple[str, ...]) -> str:
    """The command line of a program.

    systemd refuses a path with quotes or backslashes as the one to execute, and expands `$` in what the program
    is told about its own name but not in the path: such a path is executed by a shell, which `exec` replaces.
    """
    words = (*_WRAPPER, *program) if _HARD_TO_EXECUTE.search(program[0]) else program
    return " ".join(write_word(word, command=True) for word in words)


def _assignment(name: str, value: str) -> str:
    if re.search(r"[\x00-\x1f\x7f\ud800-\udfff]", value):
        raise ValueError(f"{name}={value!r}")
    return write_word(f"{name}={value}", command=False)


def write_word(word: str, *, command: bool) -> str:
    """One word as it stands in a unit file; in a command line `$` is doubled, since systemd expands it there.

    A byte that is not UTF-8 stands in `word` as Python's file names have it (surrogateescape).
    """
    if _PLAIN.fullmatch(word):
        return word
    text = word.replace("%", "%%")
    return '"' + "".join(map(_written, text.replace("$", "$$") if command else text)) + '"'


def _written(sign: str) -> str:
    if sign in '"\\':
        return f"\\{sign}"
    if sign in _ESCAPES:
        return f"\\{_ESCAPES[sign]}"
    if "\udc80" <= sign <= "\udcff":
        return f"\\x{ord(sign) - 0xDC00:02x}"
    return f"\\x{ord(sign):02x}" if sign < " " or sign == "\x7f" else sign


def read_words(value: str, home: str, *, command: bool) -> list[str]:
    """The words of a value: quotes and escapes taken away, `%%`, `%h` and, in a command, `$$` put in.

    Another specifier or variable is left as it is written, for only the manager knows what it stands for.
    """
    return [_expanded(word, home, command=command) for word in _split(value)]


def _expanded(word: str, home: str, *, command: bool) -> str:
    told = re.sub("%([%h])", lambda found: "%" if found[1] == "%" else home, word)
    return told.replace("$$", "$") if command else told


def _split(value: str) -> Iterator[str]:
    word, quote, at = b"", "", 0
    begun = False
    while at < len(value):
        sign = value[at]
        at += 1
        if sign == "\\" and at < len(value):
            unescaped, at = _unescaped(value, at)
            word, begun = word + unescaped, True
        elif sign == quote:
            quote = ""
        elif not quote and sign in "\"'":
            quote, begun = sign, True
        elif not quote and sign in " \t\n\r":
            if begun:
                yield _decoded(word)
            word, begun = b"", False
        else:
            word, begun = word + _encoded(sign), True
    if begun:
        yield _decoded(word)


def _unescaped(value: str, at: int) -> tuple[bytes, int]:
    """What the escape at `at`, behind its backslash, stands for, and where the text goes on."""
    found = _NUMBERED.match(value, at)
    if found is None:
        return _encoded(_UNESCAPES.get(value[at], "\\" + value[at])), at + 1
    byte, octal, *points = found.groups()
    if byte or octal:
        return bytes([int(byte, 16) if byte else int(octal, 8)]), found.end()
    point = int(next(filter(None, points)), 16)
    return (_encoded(chr(point)) if point <= 0x10FFFF else b"?"), found.end()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape" if "\udc80" <= text <= "\udcff" else "replace")


def _decoded(word: bytes) -> str:
    return word.decode("utf-8", "surrogateescape")


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    """Each `key=value` in order; a backslash at the end of a line joins it to the next one that is no comment."""
    joined = ""
    for line in text.split("\n"):
        if line.lstrip()[:1] in ("#", ";"):
            continue
        if line.endswith("\\"):
            joined += line[:-1] + " "
            continue
        key, found, value = (joined + line).partition("=")
        joined = ""
        if found:
            yield key.strip(), value.strip()


def _without_hash(text: str) -> str:
    return re.sub(rf"^{HASH_KEY}=.*\n", "", text, flags=re.MULTILINE)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
