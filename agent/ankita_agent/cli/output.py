"""Printing: data to stdout, talk to stderr, tables and colour only on a terminal."""

import io
import json
import os
import re
import select
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import click

from ankita_agent.core.durations import approximate
from ankita_agent.core.instants import DAY, SECOND, Instant, in_seconds, parse_instant

_LINES_KEPT = 1000
"""Lines for people that wait for a terminal or a pipe to take them."""

_ERROR, _WARNING = "<3>", "<4>"
"""What a line begins with for a journal to give it that rank: sd-daemon(3)."""

_UNUSUAL = re.compile(r"[^\n\x20-\x7e]")

_COLOURS = {
    "ok": "green",
    "succeeded": "green",
    "failing": "red",
    "failed": "red",
    "timed": "red",
    "stalled": "red",
    "lost": "red",
    "skipped": "yellow",
    "missed": "yellow",
    "stopped": "yellow",
}


def print_json(document: object) -> None:
    """A document for a program; what could steer a terminal is written as JSON's escapes, which mean the same."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    click.echo(_UNUSUAL.sub(lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], text))


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns for a person, cut to the width of a terminal; on one, words of outcome are coloured."""
    table = [list(heads), *[[printable(cell) for cell in row] for row in rows]]
    widths = [max(len(row[column]) for row in table) for column in range(len(heads) - 1)] + [0]
    click.echo(click.style(_cut(_joined(table[0], widths)), bold=True))
    for row in table[1:]:
        line = _joined(row, widths)
        cut = _cut(line)
        click.echo(cut if cut != line else "  ".join(map(coloured, row, widths)).rstrip())


def _joined(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def coloured(word: str, width: int = 0) -> str:
    """A word in its colour, padded to `width`; click takes the colour away where nobody sees it."""
    colour = _COLOURS.get(word.split(" ", 1)[0])
    padding = " " * (width - len(word))
    return (click.style(word, fg=colour) if colour else word) + padding


def _cut(line: str) -> str:
    if sys.stdout is None or not sys.stdout.isatty():
        return line
    width = max(20, shutil.get_terminal_size().columns)
    return line if len(line) <= width else line[: width - 1] + "…"


def local_time(instant: Instant | str) -> str:
    """An instant in the machine's local time, for a person: `2026-11-30 15:04:05`."""
    moment = parse_instant(instant) if isinstance(instant, str) else instant
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(in_seconds(moment)))


def near_time(instant: str | None, now: Instant) -> str:
    """An instant as short as it is clear: the time today, the weekday within a week, else the date."""
    if instant is None:
        return "-"
    moment = time.localtime(in_seconds(parse_instant(instant)))
    today = time.localtime(in_seconds(now))
    if moment[:3] == today[:3]:
        return time.strftime("%H:%M:%S", moment)
    within_a_week = abs(parse_instant(instant) - now) < 6 * DAY
    return time.strftime("%a %H:%M" if within_a_week else "%Y-%m-%d %H:%M", moment)


def time_left(instant: str | None, now: Instant) -> str:
    """How long it is until an instant, in whole seconds; `due` when it has come."""
    if instant is None:
        return "-"
    left = parse_instant(instant) - now
    return "due" if left <= 0 else approximate(left - left % SECOND)


def say(text: str, *, err: bool = False) -> None:
    """Lines for a person; what could steer the terminal in them is made visible."""
    click.echo(printable(text, newlines=True), err=err)


class CannotPrint(OSError):
    """The disk or the terminal behind stdout or stderr does not take what is printed."""


class _Output(io.FileIO):
    """Raises CannotPrint, so that a fault of output is not taken for one of input; a closed pipe stays what it is.

    With `held` what cannot be written is left out instead, and the faults are collected there.
    """

    held: list[OSError] | None = None

    def write(self, data: Any, /) -> int:
        """Write what can be written."""
        try:
            return super().write(data)
        except OSError as error:
            pipe = isinstance(error, BrokenPipeError)
            fault = error if pipe else CannotPrint(error.errno, error.strerror)
            if self.held is None:
                raise fault from None
            self.held.append(fault)
            return memoryview(data).nbytes


def tell_output_from_input() -> None:
    """From now on stdout and stderr raise CannotPrint where they cannot be written."""
    for name in ("stdout", "stderr"):
        old: io.TextIOWrapper | None = getattr(sys, name)
        if old is not None:
            raw = io.BufferedWriter(_Output(old.fileno(), "w", closefd=False))
            new = io.TextIOWrapper(
                raw, encoding=old.encoding, errors=old.errors, line_buffering=name == "stderr" or old.isatty()
            )
            setattr(sys, name, new)


def hold_output_faults() -> list[OSError]:
    """From now on a fault of stdout or stderr ends nothing: it is put into the list, and its text is lost.

    For what changes things: a reader that went away is no reason to leave it half done.
    """
    held: list[OSError] = []
    for stream in (sys.stdout, sys.stderr):
        raw = getattr(getattr(stream, "buffer", None), "raw", None)
        if isinstance(raw, _Output):
            raw.held = held
    return held


def occupy_standard_descriptors() -> None:
    """Give descriptors 0 to 2 that were closed to /dev/null, lest a file of ours becomes somebody's stderr."""
    while True:
        descriptor = os.open(os.devnull, os.O_RDWR)
        if descriptor > 2:
            os.close(descriptor)
            return
        os.set_inheritable(descriptor, True)


def takes_ranks() -> bool:
    """Whether stderr leads to a journal, which stamps lines itself and reads their rank: sd-daemon(3), systemd.exec(5).

    JOURNAL_STREAM alone does not tell: it is inherited by who writes elsewhere.
    """
    try:
        status = os.fstat(sys.stderr.fileno())
    except (AttributeError, OSError, ValueError):  # closed, from the start or by now
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


def _ranked(text: str, rank: str) -> str:
    return "\n".join(f"{rank}{line}" for line in text.split("\n"))


class Teller:
    """Tells one line at a time on stderr, stamped with the time; `ranked`, with the rank of a warning instead.

    Never waits: a terminal stopped by Ctrl-S or a pipe that nobody reads must not hold the agent up. What cannot be
    written now is kept, the newest lines of it, and follows as soon as it can. A terminal that went away is no
    reason to fail: the lines are lost, the ledger has the facts.
    """

    def __init__(self, *, ranked: bool) -> None:
        on_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._form = "" if ranked else "%H:%M:%S " if on_terminal else "%Y-%m-%d %H:%M:%S "
        self._ranked = ranked
        self._waiting: deque[bytes] = deque(maxlen=_LINES_KEPT)

    def __call__(self, line: str, /, *, warning: bool = False) -> None:
        """Tell a line."""
        text = printable(line, newlines=True)
        if warning and self._ranked:
            text = _ranked(text, _WARNING)
        # time.time(), not strftime's own clock: that one ticks late and would show a second before the slot's
        stamp = time.strftime(self._form, time.localtime(time.time()))
        self._waiting.append(f"{stamp}{text}\n".encode(errors="backslashreplace"))
        try:
            # past the buffer: what a closed pipe did not take would fail once more when the interpreter ends
            while self._waiting and _takes_more(sys.stderr.fileno()):
                os.write(sys.stderr.fileno(), self._waiting.popleft())
        except (AttributeError, OSError, ValueError):  # closed, from the start or by now
            self._waiting.clear()


def _takes_more(descriptor: int) -> bool:
    """Whether a line can be written without waiting (poll(2)); for a pipe that means PIPE_BUF bytes, pipe(7)."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(0))


def printable(text: str, *, newlines: bool = False) -> str:
    """Control characters made visible: output must not be able to move a terminal's cursor."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or (newlines and letter == "\n") else letter.encode("unicode_escape").decode()
        for letter in text
    )


def say_if_possible(text: str) -> None:
    """Tell a fault on stderr, which may be the very thing that is at fault; to a journal it is an error."""
    try:
        say(_ranked(text, _ERROR) if takes_ranks() else text, err=True)
    except OSError:
        pass


def flush_or_forget() -> None:
    """Write what is still buffered; what cannot be written any more must not change how we end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            end_quietly()


def end_quietly() -> None:
    """The reader of our output went away: end without a word, and without the interpreter's complaint."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            os.dup2(null, stream.fileno())
        except (AttributeError, OSError, ValueError):  # closed from the start
            pass


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The --json option that every reading command has."""
    return click.option("--json", "as_json", is_flag=True, help="Print a document for programs.")(command)
