"""What is the matter with the file of routines, and whether runs find what they start: facts in, findings out."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ankita_agent.core.advice import split_advice
from ankita_agent.core.environment import UserFacts, service_environment
from ankita_agent.core.findings import Finding, FindingId, Severity
from ankita_agent.core.problems import Problem
from ankita_agent.core.problems import Severity as Refusal

_NAMED: Final = 5
_SHELL_SIGNS: Final = frozenset("|&;<>()$`\\\"'*?[]#~=%!{}\n")


@dataclass(frozen=True, slots=True)
class CommandSeen:
    """A program that a routine starts and that the shell finds in `directory`, while the service finds none."""

    routine: str
    program: str
    directory: str


@dataclass(frozen=True, slots=True)
class RoutinesSeen:
    """The file of routines. `problems` as `check` tells them; `commands` that only the shell finds.

    `before` are the routines of the copy at `copy` that the agent keeps of what was in force last; `stay` is whether
    an agent has them in force now, and `none` whether one runs that has no routine in force. `installed` is whether
    the service is, and is that of this shell.
    """

    path: str
    there: bool
    problems: tuple[Problem, ...] = ()
    commands: tuple[CommandSeen, ...] = ()
    before: tuple[str, ...] = ()
    copy: str = ""
    stay: bool = False
    none: bool = False
    installed: bool = False


def judge_routines(seen: RoutinesSeen, user: UserFacts) -> Iterator[Finding]:
    """The file of routines, and whether the service finds what it starts."""
    if not seen.there:
        yield _gone(seen) if seen.before else _absent(seen)
    yield from _problems(seen)
    path = service_environment(user)["PATH"]
    for command in seen.commands:
        yield Finding(
            FindingId.COMMAND_NOT_FOUND,
            Severity.WARNING,
            f"{command.routine}: your shell finds {command.program}, and runs of the agent do not",
            f"it is in {command.directory}, and their PATH is {path}",
            f"in {seen.path}, write `{command.directory}/{command.program}`, or for all routines "
            f'`defaults: {{env: {{PATH: "{command.directory}:{path}"}}}}`',
        )


def _absent(seen: RoutinesSeen) -> Finding:
    return Finding(
        FindingId.ROUTINES_ABSENT,
        Severity.NOTE,
        f"there is no {seen.path}: an agent that looks there has no routines",
        do="to begin with a sample" if seen.installed else "to see how to begin with a sample",
        command=f"ankita-agent {'install' if seen.installed else 'check'}",
    )


def _gone(seen: RoutinesSeen) -> Finding:
    """Those of before are in force until their agent ends, and never again after that."""
    count = len(seen.before)
    those = f"{count} routine{'' if count == 1 else 's'} from before"
    do_not = "does not fire" if count == 1 else "do not fire"
    named = f"{', '.join(seen.before[:_NAMED])}{' …' if count > _NAMED else ''}"
    what = f"{those} {do_not}: {named}"
    if seen.stay:
        what = f"{those} will not fire any more once the agent has started again: {named}"
    directory = shlex.quote(seen.path.rpartition("/")[0])
    return Finding(
        FindingId.ROUTINES_GONE,
        Severity.WARNING if seen.stay else Severity.ERROR,
        what,
        f"there is no {seen.path}",
        f"to have none, write `routines: {{}}` there; to have {'it' if count == 1 else 'them'} again",
        f"mkdir -p {directory} && cp {shlex.quote(seen.copy)} {shlex.quote(seen.path)}",
    )


def _problems(seen: RoutinesSeen) -> Iterator[Finding]:
    refused = [each for each in seen.problems if each.severity is Refusal.ERROR]
    told = refused or list(seen.problems)
    if not told:
        return
    first = told[0]
    place = f":{first.line}:{first.column}" if first.line else ""
    more = f", and {len(told) - 1} more" if len(told) > 1 else ""
    within = repr(seen.path) in first.problem  # which then says for itself what it is about
    what = first.problem if within else f"{seen.path}{place}: {first.problem}{more}"
    do, command = split_advice(first.fix)
    if not command:
        do, command = f"{do}; to look again", "ankita-agent check"
    if not refused:
        fact = "it is taken as it stands, and hardly means that"
        yield Finding(FindingId.ROUTINES_WARNED, Severity.WARNING, what, fact, do, command)
    elif seen.none:
        fact = "the file is refused, and no routine is in force until that is mended"
        yield Finding(FindingId.ROUTINES_REFUSED, Severity.ERROR, what, fact, do, command)
    elif seen.before:
        fact = "the file is refused, and an agent goes on with the routines from before"
        yield Finding(FindingId.ROUTINES_REFUSED, Severity.WARNING, what, fact, do, command)
    else:
        fact = "the file is refused, and there are no routines from before to go on with"
        yield Finding(FindingId.ROUTINES_REFUSED, Severity.ERROR, what, fact, do, command)


def program_of(argv: Sequence[str], shell: str) -> str | None:
    """The bare name of the program that a routine starts, where a PATH decides which it is; else None.

    A text for the shell counts where its first word is a plain one, with nothing that only a shell understands.
    """
    first = argv[0]
    if len(argv) == 3 and argv[:2] == (shell, "-c"):
        words = argv[2].split(maxsplit=1)
        first = words[0] if words else ""
    if not first or "/" in first or _SHELL_SIGNS & set(first):
        return None
    return first
