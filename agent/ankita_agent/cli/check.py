"""`ankita-agent check`: what an agent would say of a routines.yaml."""

import json
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

import click

from ankita_agent.app.places import FILE
from ankita_agent.app.routines import EMPTY
from ankita_agent.core.errors import OurFault
from ankita_agent.core.problems import Problem, Severity
from ankita_agent.core.routine_file import Judgement
from ankita_agent.core.tree import lines_of
from ankita_agent.ports.routine_source import Absent, Found, RoutineSource, Unusable
from ankita_agent.shipped import shipped_path
from ankita_agent.wiring.routines import routine_judge, routine_source
from ankita_agent.wiring.user import find_this_user

FINE, WARNED, REFUSED = 0, 1, 78
MOST_SHOWN: Final = 100
_WIDEST: Final = 100
_MOST_READ: Final = 32 * 1024 * 1024  # more than any file may have, so that it is refused and not cut
_COLOURS: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow"}


class _Checked(NamedTuple):
    """What was found in one file. `content` is None where there was none to judge."""

    name: str
    problems: tuple[Problem, ...]
    content: bytes | None
    routines: int | None

    @property
    def exit_code(self) -> int:
        """78 if it would not come into force, 1 when it only needs a look."""
        if any(each.severity is Severity.ERROR for each in self.problems):
            return REFUSED
        return WARNED if self.problems else FINE


def check_command(
    find_source: Callable[[], RoutineSource], parse: Callable[[bytes], Judgement], find_sample: Callable[[], str | None]
) -> click.Command:
    """The command, given how to find the file that the agent reads, how to judge one, and where a sample is."""

    @click.command("check")
    @click.argument("file", required=False, type=click.Path(allow_dash=True))
    @click.option("--json", "as_json", is_flag=True, help="Print the problems as a JSON list.")
    @click.pass_context
    def check(context: click.Context, file: str | None, as_json: bool) -> None:
        """Say what is wrong with FILE, or with the file that the agent reads; - is standard input.

        With mistakes it does not come into force: the routines from before stay so, and where there are none an
        agent does not start. Only FILE is read: to see one routine: ankita-agent status ROUTINE

        \b
        Exit status: 0 no problems, 1 only warnings or no file, 78 mistakes.

        \b
        Example:
          $ ankita-agent check
          routines.yaml: 3 routines, no problems
        """
        checked = _configured(find_source(), parse, find_sample) if file is None else _given(file, parse)
        if as_json:
            click.echo(json.dumps(_as_json(checked), indent=2, ensure_ascii=False))
        else:
            _show(checked)
        context.exit(checked.exit_code)

    return check


def _configured(
    source: RoutineSource, parse: Callable[[bytes], Judgement], find_sample: Callable[[], str | None]
) -> _Checked:
    match source.read():
        case Found(content=content):
            return _judged(source.path, content, parse)
        case Absent():
            return _missing(source.path, _first_step(source.path, find_sample()))
        case Unusable(problem=problem):
            return _Checked(source.path, (problem,), None, None)


def _first_step(path: str, sample: str | None) -> str:
    copy = f"; a sample to begin with: cp {shlex.quote(sample)} {shlex.quote(path)}" if sample else ""
    return f"write one there and it is in force at once, where an agent runs{copy}"


def _given(file: str, parse: Callable[[bytes], Judgement]) -> _Checked:
    """Any file, as it is: who may write to it does not matter until the agent reads it."""
    try:
        content = sys.stdin.buffer.read(_MOST_READ) if file == "-" else _bytes_of(file)
    except FileNotFoundError:
        return _missing(file, "name a file; without a name it is the one that the agent reads: ankita-agent check")
    except OSError as error:
        problem = Problem(0, 0, f"cannot be read: {error.strerror}", "name a file that you can read")
        return _Checked(file, (problem,), None, None)
    return _judged(file, content, parse)


def _bytes_of(file: str) -> bytes:
    with open(file, "rb") as opened:
        return opened.read(_MOST_READ)


def _missing(name: str, fix: str) -> _Checked:
    return _Checked(name, (Problem(0, 0, "there is no such file", fix, Severity.WARNING),), None, None)


def _judged(name: str, content: bytes, parse: Callable[[bytes], Judgement]) -> _Checked:
    judgement = parse(content)
    count = None if judgement.file is None else len(judgement.file.routines)
    empty = () if content.strip() else (replace(EMPTY, severity=Severity.WARNING),)
    return _Checked(name, (*empty, *judgement.problems), content, count)


def _as_json(checked: _Checked) -> list[dict[str, str | int]]:
    return [
        {
            "file": checked.name,
            "line": each.line,
            "column": each.column,
            "problem": each.problem,
            "fix": each.fix,
            "severity": each.severity.value,
        }
        for each in checked.problems
    ]


def _show(checked: _Checked) -> None:
    lines = () if checked.content is None else lines_of(checked.content.decode("utf-8-sig", "replace"))
    for problem in checked.problems[:MOST_SHOWN]:
        _say(_headline(checked.name, problem))
        _say(f"    {_printable(problem.fix)}")
        for line in _excerpt(lines, problem):
            _say(f"    {line}")
    if len(checked.problems) > MOST_SHOWN:
        _say(f"… and {len(checked.problems) - MOST_SHOWN} more; all of them: ankita-agent check --json")
    if checked.routines is not None:
        count = f"{checked.routines} routine" + ("" if checked.routines == 1 else "s")
        _say(f"{checked.name}: {count}, {_counted(len(checked.problems))}")


def _counted(warnings: int) -> str:
    return f"{warnings} warning" + ("" if warnings == 1 else "s") if warnings else "no problems"


def _headline(name: str, problem: Problem) -> str:
    place = f"{name}:{problem.line}:{problem.column}" if problem.line else name
    severity = click.style(f"{problem.severity}:", fg=_COLOURS[problem.severity], bold=True)
    return f"{place}: {severity} {_printable(problem.problem)}"


def _printable(text: str) -> str:
    """The text with what could steer a terminal made visible, each character still one."""
    return (
        text
        if text.isprintable()
        else "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
    )


def _excerpt(lines: tuple[str, ...], problem: Problem) -> list[str]:
    """The line of the problem with a caret below its place, cut to a width that a terminal has."""
    if not 0 < problem.line <= len(lines):
        return []
    line = _printable(lines[problem.line - 1].replace("\t", " "))
    start = max(0, problem.column - _WIDEST // 2) if len(line) > _WIDEST else 0
    number = str(problem.line)
    shown = line[start : start + _WIDEST].rstrip()
    return [f"{number} | {shown}", f"{' ' * len(number)} | {' ' * (problem.column - 1 - start)}^"] if shown else []


def _say(text: str) -> None:
    click.echo(text, color=False if "NO_COLOR" in os.environ else None)


def _find_source() -> RoutineSource:
    return routine_source(find_this_user(dict(os.environ)).places)


def _parse(content: bytes) -> Judgement:
    return routine_judge()(content)


def _find_sample() -> str | None:
    try:
        return str(shipped_path("config", FILE))
    except OurFault:
        return None


command = check_command(_find_source, _parse, _find_sample)
