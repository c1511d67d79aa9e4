"""JSON files that others may have damaged: bytes to a document, or to nothing, and never an error.

The problem: what lies in the state directory may be torn, written by another version, or left by anybody. A file of
four thousand `[`, a year 9999 or a term of 1e999 then raised, each at another place, what no caller had thought of:
RecursionError, OverflowError, a fault of SQLite a pass later. An agent that dies of a file dies at every start.

The rule: only `parse` reads JSON that was not written by this process, and a value leaves a `Document` by a question
that names its type and its bounds. Whatever does not answer it is `Garbage`, the only error there is.

tests/unit/test_damaged_files.py holds it. Rejected: pydantic (it takes longer to import than `status` may).
"""

import json
from typing import Any, Final, NoReturn

from ankita_agent.core.instants import Instant, parse_instant

LONGEST_TEXT: Final = 256
"""Characters of a text, where its reader asks for no other bound."""

LATEST: Final = parse_instant("2200-01-01T00:00:00Z")
"""Instants of files lie between 1970 and here, and so within 64 bits."""

MOST: Final = 2**63 - 1
"""The largest whole number that SQLite can hold, and with it what we ever write."""


_MOST_DIGITS: Final = 64


class Garbage(ValueError):
    """The document does not hold what was asked for."""


class Document:
    """A JSON object, asked for its fields one by one. Unknown fields are ignored: a newer version may write them."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def text(self, name: str, longest: int = LONGEST_TEXT) -> str:
        """A text of at most so many characters; half a surrogate pair in it, which no file takes, becomes `?`."""
        return _text(self._field(name), longest)

    def text_or_none(self, name: str, longest: int = LONGEST_TEXT) -> str | None:
        """A text, or null."""
        return None if self._field(name) is None else self.text(name, longest)

    def whole(self, name: str, least: int = 0, most: int = MOST) -> int:
        """A whole number within these bounds, inclusive."""
        found = self._field(name)
        if type(found) is not int or not least <= found <= most:  # a bool is an int, and no number
            raise Garbage(name)
        return found

    def whole_or_none(self, name: str, least: int = 0, most: int = MOST) -> int | None:
        """A whole number, or null."""
        return None if self._field(name) is None else self.whole(name, least, most)

    def flag(self, name: str) -> bool:
        """True or false."""
        found = self._field(name)
        if not isinstance(found, bool):
            raise Garbage(name)
        return found

    def instant(self, name: str) -> Instant:
        """An instant, written as RFC 3339."""
        try:
            found = parse_instant(self.text(name))
        except (ValueError, OverflowError):
            raise Garbage(name) from None
        if not 0 <= found < LATEST:
            raise Garbage(name)
        return found

    def within(self, name: str) -> "Document":
        """An object inside."""
        return _document(self._field(name))

    def each_within(self, name: str) -> tuple["Document", ...]:
        """A list of objects."""
        return tuple(_document(item) for item in self._list(name))

    def texts(self, name: str, longest: int = LONGEST_TEXT) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(_text(item, longest) for item in self._list(name))

    def _list(self, name: str) -> list[Any]:
        found = self._field(name)
        if not isinstance(found, list):
            raise Garbage(name)
        return found

    def _field(self, name: str) -> Any:
        try:
            return self._fields[name]
        except KeyError:
            raise Garbage(name) from None


def parse(content: bytes, limit: int) -> Document:
    """The JSON object in those bytes. Raises Garbage: more than `limit` bytes, no JSON, too deep, no object."""
    if len(content) > limit:
        raise Garbage("longer than it may be")
    try:
        return _document(json.loads(content, parse_constant=_refuse))
    except (ValueError, RecursionError):  # UnicodeDecodeError and numbers of too many digits are ValueErrors
        raise Garbage("no JSON object") from None


def whole_number(content: bytes, least: int, most: int) -> int:
    """The whole number that is all of a file, in ASCII digits and a line feed. Raises Garbage."""
    digits = content.strip()
    if not digits.isdigit() or len(digits) > _MOST_DIGITS or not least <= int(digits) <= most:
        raise Garbage("no number within its bounds")
    return int(digits)


def _refuse(constant: str) -> NoReturn:
    raise Garbage(f"{constant} is no JSON")


def _document(found: object) -> Document:
    if not isinstance(found, dict):
        raise Garbage("no object")
    return Document(found)


def _text(found: object, longest: int) -> str:
    if not isinstance(found, str) or len(found) > longest:
        raise Garbage("no text, or too long")
    return found if found.isascii() else found.encode(errors="replace").decode()
