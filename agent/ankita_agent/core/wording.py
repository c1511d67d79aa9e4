"""How messages show things, everywhere in one way: what was written in 'single quotes', what to write in `backticks`.

The problem: advice is copied. `write @hourly` was correct English and a broken file. The rule: the verb is
"write", and what stands in backticks behind it can be pasted as it is: a value in place of the value,
`key: value` in place of the line, `key:` in place of the key. So whatever YAML reads as something else than
a text is shown in quotes.

tests/unit/test_advice.py follows every advice for a corpus of mistakes and judges the file again.
"""

import re
from collections.abc import Iterable
from typing import Final

_LONGEST_SHOWN: Final = 60
_PLAIN: Final = re.compile(r"(?![-?:](?:\s|$))[^\s\"'&*!|>%@`#,\[\]{}][^,\[\]{}]*")
_ENDS_PLAIN: Final = re.compile(r": |:$| #|\s$|[^\x20-\x7e\xa1-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def shown(text: str) -> str:
    """What was written, as a message shows it: in single quotes, on one line, not too long."""
    cut = text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
    return f"'{cut if cut.isprintable() else repr(cut)[1:-1]}'"


def write(*choices: str) -> str:
    """The advice to write one of these, each as it has to stand in the file."""
    return f"write {any_of(choices)}"


def any_of(choices: Iterable[str]) -> str:
    """The choices in backticks: `a`, `b` or `c`."""
    *most, last = (f"`{choice}`" for choice in choices)
    return f"{', '.join(most)} or {last}" if most else last


def as_value(text: str) -> str:
    """A text as a value of YAML, in quotes where it needs them, also within brackets or braces."""
    return text if _PLAIN.fullmatch(text) and not _ENDS_PLAIN.search(text) else quote(text)


def quote(text: str) -> str:
    """A text in quotes, as YAML reads it back unchanged."""
    return "'" + text.replace("'", "''") + "'" if '"' in text or "\\" in text else f'"{text}"'
