"""Makes broken files of routines out of good ones, at random and the same for the same seed."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

from tests.routine_texts import BAD, BAD_BEYOND_A_SCHEMA, GOOD, UNREADABLE

_SAMPLE: Final = Path(__file__).parents[2] / "config" / "routines.yaml"
_TOKENS: Final = [
    token.encode()
    for token in (
        "\n", "\n\n", "\r\n", "\r", "\t", " ", "  ", "    ", ": ", ":", "- ", "-", "? ", "[", "]", "{",
        "}", ",", "&a ", "*a", "*", "&", "!", "!!str ", "!!binary ", "|", "|2-\n", ">", ">+\n", "'",
        "\"", "''", "\\\"", "\\", "\\x00", "\\ud800", "%", "%YAML 1.2\n", "%TAG ! x:\n", "---", "---\n",
        "...", "#", " #", "# ", "@", "`", "<<: *a", "~", "null", "yes", "0755", "8:30", "1e9", "=",
        "routines:", "agent:", "defaults:", "schedule: ", "run: ", "env: ", "timeout: ", "name: ",
        "@daily", "*/5 * * * *", "every 5m", "daily 08:00", "none", "\x00", "\x7f", "\x85", "\u2028",
        "\ufeff", "\U0001f389", "é", "\xa0", "$HOME", "9" * 30, "-1", "0", "inf", "x" * 300,
    )
]  # fmt: skip


def seeds() -> list[bytes]:
    """The files that are broken, real ones first."""
    texts = [text.encode() for text in (*GOOD, *BAD, *BAD_BEYOND_A_SCHEMA)]
    return [_SAMPLE.read_bytes(), *texts, *UNREADABLE]


def broken_files(random: Random, corpus: list[bytes]) -> Iterator[bytes]:
    """Files without end, each made of one of the corpus by a few changes of bytes and tokens."""
    while True:
        content = random.choice(corpus)
        for _ in range(random.choice((1, 1, 2, 3, 5, 9))):
            content = random.choice(_CHANGES)(random, content, corpus)
        yield content[:20_000]


def _flip(random: Random, content: bytes, corpus: list[bytes]) -> bytes:
    at = random.randrange(len(content) + 1)
    return content[:at] + bytes([random.randrange(256)]) + content[at + 1 :]


def _insert(random: Random, content: bytes, corpus: list[bytes]) -> bytes:
    at = random.randrange(len(content) + 1)
    return content[:at] + random.choice(_TOKENS) + content[at:]


def _replace(random: Random, content: bytes, corpus: list[bytes]) -> bytes:
    """Put a token in place of one of the words that stand there."""
    words = content.split(b" ")
    words[random.randrange(len(words))] = random.choice(_TOKENS)
    return b" ".join(words)


def _cut(random: Random, content: bytes, corpus: list[bytes]) -> bytes:
    start = random.randrange(len(content) + 1)
    return content[:start] + content[start + random.randrange(1, 40) :]


def _repeat(random: Random, content: bytes, corpus: list[bytes]) -> bytes:
    start = random.randrange(len(content) + 1)
    piece = content[start : start + random.randrange(1, 60)]
    return content[:start] + piece * random.choice((2, 3, 50)) + content[start:]


def _shift_line(random: Random, content: bytes, corpus: list[bytes]) -> bytes:
    """Indent one line otherwise, or swap it with another."""
    lines = content.split(b"\n")
    at = random.randrange(len(lines))
    lines[at] = random.choice((b" ", b"\t", b"   ", b"")) + lines[at].strip(b" ")
    other = random.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]
    return b"\n".join(lines)


def _splice(random: Random, content: bytes, corpus: list[bytes]) -> bytes:
    other = random.choice(corpus)
    return content[: random.randrange(len(content) + 1)] + other[random.randrange(len(other) + 1) :]


_CHANGES: Final = (_flip, _insert, _insert, _replace, _replace, _cut, _repeat, _shift_line, _splice)
