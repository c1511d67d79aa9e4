"""Printing: data to stdout, talk to stderr, tables and colour only on a terminal."""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import click

from ankita_agent.core.instants import Instant, in_seconds, parse_instant

_COLOURS = {
    "ok": "green",
    "succeeded": "green",
    "failing": "red",
    "failed": "red",
    "timed_out": "red",
    "stalled": "red",
    "lost": "red",
    "skipped": "yellow",
    "missed": "yellow",
    "stopped": "yellow",
}


def print_json(document: object) -> None:
    """A document for a program."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns for a person; the last is not padded, and words of outcome are coloured on a terminal."""
    table = [list(heads), *[[_printable(cell) for cell in row] for row in rows]]
    widths = [max(len(row[column]) for row in table) for column in range(len(heads))]
    for number, row in enumerate(table):
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)] + [row[-1]]
        click.echo(
            "  ".join(click.style(cell, bold=True) if number == 0 else coloured(cell) for cell in cells)
        )


def coloured(cell: str) -> str:
    """The cell in the colour of its first word; click takes the colour away where nobody sees it."""
    words = cell.split(" ", 1)
    colour = _COLOURS.get(words[0]) if words else None
    return click.style(cell, fg=colour) if colour else cell


def local_time(instant: str | None) -> str:
    """An instant of a document as the machine's local time, for a person."""
    return "-" if instant is None else local_time_of(parse_instant(instant))


def local_time_of(instant: Instant) -> str:
    """An instant in local time: `Mon 2026-11-30 15:04:05`."""
    return time.strftime("%a %Y-%m-%d %H:%M:%S", time.localtime(in_seconds(instant)))


def teller() -> Callable[[str], None]:
    """Tells one line at a time on stderr, with the time of day on a terminal (a journal has its own).

    A terminal that went away is no reason to fail: the line is lost, the ledger has the facts.
    """
    stamped = sys.stderr.isatty()

    def tell(line: str) -> None:
        stamp = time.strftime("%H:%M:%S ") if stamped else ""
        try:
            sys.stderr.write(f"{stamp}{_printable(line, newlines=True)}\n")
            sys.stderr.flush()
        except (OSError, ValueError):
            pass

    return tell


def _printable(text: str, *, newlines: bool = False) -> str:
    """Control characters made visible: output must not be able to move a terminal's cursor."""
    if text.isprintable():
        return text
    return "".join(
        letter
        if letter.isprintable() or (newlines and letter == "\n")
        else letter.encode("unicode_escape").decode()
        for letter in text
    )


def end_quietly() -> None:
    """The reader of our output went away: end without a word, and without the interpreter's complaint."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The --json option that every reading command has."""
    return click.option("--json", "as_json", is_flag=True, help="Print a document for programs.")(command)
