"""Loading and reloading routines.yaml: the good comes into force, the bad changes nothing and is said.

The problem: the file is edited by hand while routines depend on it, and a slip of the finger must not stop
the backup of tonight, nor may a restart a week later. The rule: a file is judged as a whole; a good one is
put in force and its bytes are kept as `last-good.yaml`; a bad one leaves what is in force as it is, also
across a restart, loudly. Only where there never was a good one does the agent refuse to start.

What counts as bad besides errors in it, while something is in force: a file that is gone, that others may
write to, or that is quite empty (an editor that truncates before it writes, a full disk). Whoever wants no
routines writes `routines: {}`. An agent that starts without a file has no routine in force; where there were some
before, it is degraded and names them: a file that was moved away must not be the quiet end of every backup.

tests/unit/test_routines_reload.py holds it. Rejected: taking the good routines of a bad file (half an edit
is in force then, and which half nobody can say).
"""

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from ankita_agent.core.errors import BadConfiguration, CannotWriteState
from ankita_agent.core.instants import SECOND, Instant, format_instant
from ankita_agent.core.problems import Problem
from ankita_agent.core.routine import NO_ROUTINES, RoutineFile, in_force
from ankita_agent.core.routine_file import Judgement
from ankita_agent.ports.clock import Clock
from ankita_agent.ports.routine_source import Absent, Found, LastGood, RoutineSource, Unusable

_GONE: Final = Problem(0, 0, "the file is gone", "put it back; to have no routines, write a file with `routines: {}`")
EMPTY: Final = Problem(
    0, 0, "the file is empty, as if it was only half saved", "save it again; to have no routines, write `routines: {}`"
)
_CHECK: Final = "see: ankita-agent check"
_MOST_NAMED: Final = 5


class Standing(StrEnum):
    """How the file that a person sees stands to the routines in force."""

    IN_FORCE = "in_force"  # they are its routines
    REJECTED = "rejected"  # it was refused; those from before are in force
    ABSENT = "absent"  # there is none, and no routine is in force


@dataclass(frozen=True, slots=True)
class Changes:
    """What a load changed, by meaning: comments, order and descriptions change nothing."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is in force after a load, and how it stands to the file at `path`.

    `problems` are the errors of a rejected file, else warnings. `since` is when this agent first saw just
    these. `directories` are to be watched for the next change. `unkept` says why `last-good.yaml` could not be
    written: the routines are in force, and would not outlive a restart with a bad file. `aside` names the routines
    from before that are not in force because the agent started without a file; `copy` is where they are kept.
    """

    file: RoutineFile
    standing: Standing
    path: str
    directories: tuple[str, ...]
    problems: tuple[Problem, ...] = ()
    since: Instant | None = None
    changes: Changes = Changes()
    unkept: str = ""
    aside: tuple[str, ...] = ()
    copy: str = ""

    @property
    def error(self) -> str:
        """What makes the agent degraded, in a line; empty when nothing does."""
        if self.standing is Standing.REJECTED and self.since is not None:
            since = format_instant(Instant(self.since // SECOND * SECOND))
            stay = "the routines from before stay in force" if self.file.routines else "no routine is in force"
            return f"{self._first_problem}, since {since}; {stay}; {self._remedy}"
        return self._gone if self.standing is Standing.ABSENT and self.aside else self.unkept

    @property
    def _gone(self) -> str:
        count = len(self.aside)
        those = "1 routine from before does" if count == 1 else f"{count} routines from before do"
        more = " …" if count > _MOST_NAMED else ""
        back = f"cp {shlex.quote(self.copy)} {shlex.quote(self.path)}"
        return (
            f"there is no {self.path}, so {those} not fire: {', '.join(self.aside[:_MOST_NAMED])}{more}; "
            f"to have {'it' if count == 1 else 'them'} again: {back}    to have none, write there: `routines: {{}}`"
        )

    @property
    def _first_problem(self) -> str:
        return f"{place_of(self.path, self.problems[0])}{_more(self.problems)}"

    @property
    def _remedy(self) -> str:
        """What to do about a rejected file: `check` knows it, unless the fault is that nothing is there to check."""
        return self.problems[0].fix if self.problems[0] in (_GONE, EMPTY) else _CHECK

    @property
    def told(self) -> str:
        """What the journal is told."""
        count = len(self.file.routines)
        routines = f"{count} routine" + ("" if count == 1 else "s")
        match self.standing:
            case Standing.REJECTED:
                stay = f"{routines} from before {'stays' if count == 1 else 'stay'}" if count else "no routine is"
                return f"{self._first_problem}; {stay} in force; {self._remedy}"
            case Standing.ABSENT if self.aside:
                return self._gone
            case Standing.ABSENT:
                next_step = "write one there and it is in force at once"
                return f"there is no {self.path}, so no routine is in force; {next_step}"
            case Standing.IN_FORCE:
                return "; ".join(filter(None, (f"{routines} in force from {self.path}{self._changes()}", self.unkept)))

    def _changes(self) -> str:
        kinds = (
            ("new", self.changes.added),
            ("changed", self.changes.changed),
            ("removed", self.changes.removed),
        )
        told = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds if names)
        return f" ({told})" if told else ""


class Routines:
    """The routines in force. `start` once, then `reload` whenever the file may have changed."""

    def __init__(
        self, source: RoutineSource, last_good: LastGood, parse: Callable[[bytes], Judgement], clock: Clock
    ) -> None:
        self._source, self._last_good, self._parse, self._clock = source, last_good, parse, clock
        self._loaded: Loaded | None = None
        self._content: bytes | None = None  # of the file that `_loaded` came from

    def start(self) -> Loaded:
        """Load for the first time.

        Raises BadConfiguration when the file is bad and no good one is remembered.
        """
        seen = self._source.read()
        before = self._remembered()
        if isinstance(seen, Absent):
            aside = tuple(routine.name for routine in before.routines) if before else ()
            return self._settle(self._absent(seen, aside), None)
        blank = Loaded(before or NO_ROUTINES, Standing.ABSENT, self._source.path, seen.watch)
        loaded = self._judged(seen, blank)
        if loaded.standing is Standing.REJECTED and before is None:
            raise self._refusal(loaded.problems)
        return self._settle(replace(loaded, changes=Changes()), seen)

    def reload(self) -> Loaded:
        """Load again. Never raises for what stands in the file; an unchanged one costs one read."""
        current = self._loaded
        if current is None:
            return self.start()
        seen = self._source.read()
        if isinstance(seen, Absent) and current.standing is Standing.ABSENT:
            return self._settle(replace(current, directories=seen.watch), seen)
        if isinstance(seen, Found) and seen.content == self._content and not current.unkept:
            return self._settle(replace(current, directories=seen.watch, changes=Changes()), seen)
        return self._settle(self._judged(seen, current), seen)

    def _judged(self, seen: Found | Absent | Unusable, current: Loaded) -> Loaded:
        if isinstance(seen, Absent):
            if not current.file.routines:
                return self._absent(seen, current.aside)
            return self._rejected((_GONE,), seen.watch, current)
        if isinstance(seen, Unusable):
            return self._rejected((seen.problem,), seen.watch, current)
        if not seen.content.strip() and (current.file.routines or current.aside):
            return self._rejected((EMPTY,), seen.watch, current)
        judgement = self._parse(seen.content)
        if judgement.file is None:
            return self._rejected(judgement.errors, seen.watch, current)
        return Loaded(
            judgement.file,
            Standing.IN_FORCE,
            self._source.path,
            seen.watch,
            judgement.problems,
            changes=changes_between(current.file, judgement.file),
            unkept=self._keep(seen.content),
        )

    def _rejected(self, problems: tuple[Problem, ...], watch: tuple[str, ...], current: Loaded) -> Loaded:
        still = current.standing is Standing.REJECTED and current.problems == problems
        since = current.since if still else self._clock.now()
        path, aside, copy = self._source.path, current.aside, current.copy
        return Loaded(current.file, Standing.REJECTED, path, watch, problems, since, aside=aside, copy=copy)

    def _absent(self, seen: Absent, aside: tuple[str, ...]) -> Loaded:
        path, copy = self._source.path, self._last_good.path
        return Loaded(NO_ROUTINES, Standing.ABSENT, path, seen.watch, aside=aside, copy=copy)

    def _settle(self, loaded: Loaded, seen: Found | Absent | Unusable | None) -> Loaded:
        self._content = seen.content if isinstance(seen, Found) else None
        self._loaded = loaded
        return loaded

    def _remembered(self) -> RoutineFile | None:
        """The routines that were good last; None when there are none, or when they are good no more."""
        try:
            content = self._last_good.read()
        except CannotWriteState:
            return None
        return None if content is None else self._parse(content).file

    def _keep(self, content: bytes) -> str:
        """Remember the file as good; why that failed, or nothing."""
        try:
            if self._last_good.read() != content:
                self._last_good.write(content)
        except CannotWriteState as fault:
            return f"{fault.what}: {fault.fact}; {fault.now}"
        return ""

    def _refusal(self, problems: tuple[Problem, ...]) -> BadConfiguration:
        return BadConfiguration(
            f"cannot use {place_of(self._source.path, problems[0])}",
            fact=f"{problems[0].fix}{_more(problems)}",
            now="nothing runs: no earlier routines are known that could stay in force",
            do=_CHECK,
        )


def changes_between(before: RoutineFile, after: RoutineFile) -> Changes:
    """What differs between two files, by meaning."""
    old = {routine.name: in_force(routine).meaning for routine in before.routines}
    new = {routine.name: in_force(routine).meaning for routine in after.routines}
    return Changes(
        added=tuple(name for name in new if name not in old),
        changed=tuple(name for name in new if name in old and new[name] != old[name]),
        removed=tuple(name for name in old if name not in new),
    )


def place_of(path: str, problem: Problem) -> str:
    """A problem with its place, in a line: `/…/routines.yaml:12:5: unknown key`."""
    place = f":{problem.line}:{problem.column}" if problem.line else ""
    return f"{path}{place}: {problem.problem}"


def _more(problems: tuple[Problem, ...]) -> str:
    return f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
