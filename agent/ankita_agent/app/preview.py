"""The routines of the file as they would come into force, read without touching any state."""

from collections.abc import Callable

from ankita_agent.app.routines import place_of
from ankita_agent.core.errors import BadConfiguration
from ankita_agent.core.problems import Problem
from ankita_agent.core.routine import NO_ROUTINES, RoutineFile
from ankita_agent.core.routine_file import Judgement
from ankita_agent.ports.routine_source import Absent, RoutineSource, Unusable


def preview(source: RoutineSource, parse: Callable[[bytes], Judgement]) -> RoutineFile:
    """The routines of the file as it stands; none when there is no file. Raises BadConfiguration when it is bad."""
    seen = source.read()
    if isinstance(seen, Absent):
        return NO_ROUTINES
    if isinstance(seen, Unusable):
        raise _bad(source.path, seen.problem)
    judgement = parse(seen.content)
    if judgement.file is None:
        raise _bad(source.path, judgement.errors[0])
    return judgement.file


def _bad(path: str, problem: Problem) -> BadConfiguration:
    return BadConfiguration(
        f"cannot use {place_of(path, problem)}",
        fact=problem.fix,
        now="nothing was computed",
        do="see all that is wrong with it: ankita-agent check",
    )
