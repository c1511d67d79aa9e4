"""SQL lives in .sql files beside this module; here it gets its names."""

import functools
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

_HERE: Final = files(__package__)
_NAMED: Final = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def named_queries(file: str) -> Mapping[str, str]:
    """The statements of a file by the name that `-- name: …` gives each."""
    return _parsed(read_sql(file))


@functools.cache
def read_sql(file: str) -> str:
    """The text of a file beside this module, from a wheel as from a checkout; read once."""
    return _HERE.joinpath(file).read_text(encoding="utf-8")


def migration_files() -> list[str]:
    """The files of migrations/, in the order of their numbers."""
    return sorted(f"migrations/{found.name}" for found in _HERE.joinpath("migrations").iterdir())


@functools.cache
def _parsed(text: str) -> Mapping[str, str]:
    _, *rest = _NAMED.split(text)
    return dict(zip(rest[::2], (sql.strip() for sql in rest[1::2]), strict=True))
