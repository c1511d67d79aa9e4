"""Judges a whole routines.yaml: the routines that it means, or all that is wrong with it.

Everything is reported at once. A key that is refused is left out and judging goes on, so that one problem
hides no other; what is wrong in `defaults` is said there and not again in every routine that would have
used it.
"""

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from ankita_agent.core import first_mistakes, lints
from ankita_agent.core.durations import format_duration
from ankita_agent.core.problems import Problem, Severity
from ankita_agent.core.readings import LONGEST_NAME, Misfit, kind_of, refuse_name, shown
from ankita_agent.core.routine import AgentSettings, CatchUp, Overlap, Routine, RoutineFile, Settings
from ankita_agent.core.schedule import Timetable, warnings_of
from ankita_agent.core.tree import Document, Mapping, Node, Scalar
from ankita_agent.core.zones import UnknownZone, zone_named

AGENT_KEYS: Final = frozenset(each.name for each in fields(AgentSettings))
DEFAULT_KEYS: Final = frozenset(each.name for each in fields(Settings))
ROUTINE_KEYS: Final = frozenset(each.name for each in fields(Routine)) - {"name"}
FILE_KEYS: Final = frozenset({"agent", "defaults", "routines"})

NOT_YET: Final = frozenset(
    {"lease", "on_lost", "condition", "wait_for", "retries", "on_failure", "on_success", "max_runs_per_day"}
)
"""Keys that are planned. They are refused, because a key that is read and does nothing is a lie."""

MOST_PROBLEMS: Final = 1000
"""When a file has this many, the routines that follow are not judged any more."""

_NOT_YET_VALUES: Final = {"overlap": frozenset({"queue", "replace", "allow"}), "catch_up": frozenset({"all"})}
_INSTEAD: Final = {"overlap": Overlap.SKIP, "catch_up": CatchUp.LATEST}

_MEANT: Final = {
    "cron": "schedule", "when": "schedule", "at": "schedule", "every": "schedule", "interval": "schedule",
    "command": "run", "cmd": "run", "script": "run", "exec": "run", "execstart": "run", "args": "run",
    "tz": "timezone", "time_zone": "timezone", "environment": "env", "vars": "env",
    "environment_file": "env_file",
    "dir": "cwd", "directory": "cwd", "workdir": "cwd", "working_dir": "cwd", "working_directory": "cwd",
    "disabled": "enabled", "paused": "enabled", "desc": "description", "comment": "description",
    "max_runtime": "timeout", "randomized_delay": "jitter", "persistent": "catch_up",
    "concurrency_policy": "overlap",
    "max_concurrent": "concurrency", "parallel": "concurrency", "jobs": "routines", "tasks": "routines",
    "default": "defaults", "global": "agent", "settings": "agent",
}  # fmt: skip
"""What other schedulers call our keys."""

_Model = TypeVar("_Model", AgentSettings, Settings, Routine)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a file means: the routines (None when it has an error), and all problems, by line."""

    file: RoutineFile | None
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems for which a start would refuse the file."""
        return tuple(each for each in self.problems if each.severity is Severity.ERROR)


def judge(document: Document, local_zone: str) -> Judgement:
    """Judge a document. Routines without a time zone get `local_zone`, the machine's."""
    judging = _Judging(document, local_zone)
    file = judging.file()
    problems = tuple(sorted(set(judging.problems)))
    refused = any(each.severity is Severity.ERROR for each in problems)
    return Judgement(None if refused else file, problems)


class _Judging:
    """One judging of one document; collects the problems."""

    def __init__(self, document: Document, local_zone: str) -> None:
        self.problems = list(document.problems)
        self._root, self._lines = document.root, document.lines
        self._local_zone = self._known_zone(local_zone)
        self._defaults: dict[str, Any] = {}

    def _known_zone(self, name: str) -> str:
        try:
            zone_named(name)
        except UnknownZone as error:
            problem = f"the machine's time zone is not known ({error.problem}), so UTC holds where none is given"
            fix = "write for instance: defaults: {timezone: Europe/Berlin}"
            self.problems.append(Problem(0, 0, problem, fix, Severity.WARNING))
            return "UTC"
        return name

    def file(self) -> RoutineFile:
        """The file, as far as it has no problems."""
        parts = self._parts()
        agent = self._agent(parts.get("agent"))
        self._read_defaults(parts.get("defaults"))
        return RoutineFile(agent, tuple(self._routines(parts.get("routines"))))

    def _parts(self) -> dict[str, Node]:
        root = self._root
        if root is None or (isinstance(root, Scalar) and root.null):
            return {}
        if not isinstance(root, Mapping):
            self._report(
                root,
                f"the file holds {kind_of(root)} where it needs the key routines",
                "begin with the line: routines:",
            )
            return {}
        parts = {}
        for key, value in root.pairs:
            if key.text in FILE_KEYS:
                parts[key.text] = value
            else:
                self._report(key, *self._misplaced(key.text, value))
        return parts

    def _misplaced(self, key: str, value: Node) -> tuple[str, str]:
        if key in AGENT_KEYS:
            return f"{shown(key)} stands at the top level", f"put it under agent: as in agent: {{{key}: …}}"
        if key in ROUTINE_KEYS | NOT_YET:
            return (
                f"{shown(key)} stands at the top level and belongs to a routine",
                "put it under routines: and the name of a routine, indented by four",
            )
        if isinstance(value, Mapping) and any(each.text in ("schedule", "run") for each, _ in value.pairs):
            return (
                f"the routine {shown(key)} stands at the top level",
                "put it under routines: and indent it by two",
            )
        return f"unknown key {shown(key)}", self._nearest(key, FILE_KEYS)

    def _agent(self, node: Node | None) -> AgentSettings:
        known = self._known(node, "agent", AGENT_KEYS)
        return self._built(AgentSettings, known, {}) or AgentSettings()

    def _read_defaults(self, node: Node | None) -> None:
        written = self._known(node, "defaults", DEFAULT_KEYS)
        lints.in_values(written, self._lines, self.problems)
        base = {"timezone": self._local_zone}
        settings = self._built(Settings, written, base) or self._built(Settings, written, base)
        assert settings is not None, "what misfits has been taken out"
        self._defaults = base | {key: getattr(settings, key) for key in written}

    def _routines(self, node: Node | None) -> list[Routine]:
        found = []
        names: dict[str, Scalar] = {}
        for name, body in self._named_bodies(node):
            if len(self.problems) >= MOST_PROBLEMS:
                self._report(name, "from here on nothing was looked at: too many problems", "mend those above")
                break
            if not self._accept_name(name, names):
                continue
            routine = self._routine(name, body)
            if routine is not None:
                found.append(routine)
        return found

    def _named_bodies(self, node: Node | None) -> list[tuple[Scalar, Node]]:
        if node is None or (isinstance(node, Scalar) and node.null):
            return []
        if isinstance(node, Mapping):
            return self._unless_nameless(node)
        example = "write the name of a routine below it, indented by two, as in morning-briefing:"
        if isinstance(node, Scalar):
            self._report(node, "`routines` holds a single value", example)
            return []
        first = _name_in(node.items[0]) if node.items else None
        instead = f"write {first[0].text}: in place of - name: {first[0].text}" if first else example
        self._report(node, "`routines` is a list, and routines stand by name", instead)
        return [named for named in map(_name_in, node.items) if named is not None]

    def _unless_nameless(self, node: Mapping) -> list[tuple[Scalar, Node]]:
        bare = [key for key, value in node.pairs if key.text in ROUTINE_KEYS and not isinstance(value, Mapping)]
        if not any(key.text in ("schedule", "run") for key in bare):
            return list(node.pairs)
        self._report(
            bare[0],
            f"{bare[0].text!r} stands where the name of a routine belongs",
            "put a name above it: morning-briefing:",
        )
        return [(key, value) for key, value in node.pairs if key not in bare]

    def _accept_name(self, name: Scalar, names: dict[str, Scalar]) -> bool:
        try:
            refuse_name(name)
        except Misfit as error:
            self.problems += error.problems
            return True
        # A routine's files bear its name, and some file systems see no difference between A and a.
        first = names.setdefault(name.text.lower(), name)
        if first is not name:
            self._report(
                name,
                f"the routine {shown(name.text)} is named like {first.text!r} on line {first.line}",
                "give it another name",
            )
        return first is name

    def _routine(self, name: Scalar, body: Node) -> Routine | None:
        if not isinstance(body, Mapping):
            self._report(
                name if isinstance(body, Scalar) and body.null else body,
                f"the routine {shown(name.text)} holds {kind_of(body)}",
                "give it a schedule and a run, each on a line of its own, indented below its name",
            )
            return None
        before = len(self.problems)
        written = {key.text for key, _ in body.pairs}
        known = self._known(body, f"the routine {shown(name.text)}", ROUTINE_KEYS)
        for key, example in (("schedule", "schedule: weekdays 08:00"), ("run", "run: ~/bin/briefing")):
            if key not in written:
                self._report(name, f"the routine {shown(name.text)} has no {key}", f"add a line: {example}")
        lints.in_values(known, self._lines, self.problems)
        routine = self._built(Routine, dict(known), {**self._defaults, "name": name.text})
        if routine is None or any(each.severity is Severity.ERROR for each in self.problems[before:]):
            return None
        self._check_timetable(routine, name, known)
        return routine

    def _check_timetable(self, routine: Routine, name: Scalar, known: MappingABC[str, Node]) -> None:
        """Report what the schedule shows as a whole: shapes that surprise, a jitter that is too long."""
        place = known.get("schedule", name)
        for problem, fix in warnings_of(routine.schedule):
            self.problems.append(Problem(place.line, place.column, problem, fix, Severity.WARNING))
        if not routine.jitter:
            return
        gap = Timetable(routine.schedule, zone_named(routine.timezone)).shortest_gap()
        if gap is None or routine.jitter < gap:
            return
        jitter, limit = format_duration(routine.jitter), format_duration(gap)
        whose = "" if "jitter" in known else " of the defaults"
        self._report(
            known.get("jitter", name),
            f"the jitter {jitter}{whose} is not shorter than {limit}, the shortest gap of the schedule "
            f"{routine.schedule.text!r} of {routine.name!r}",
            f"write jitter: {format_duration(gap // 2)} or less in this routine",
        )

    def _known(self, node: Node | None, owner: str, keys: frozenset[str]) -> dict[str, Node]:
        """The pairs whose keys belong here and whose values are no known mistake; the others are reported."""
        if node is None or (isinstance(node, Scalar) and node.null):
            return {}
        if not isinstance(node, Mapping):
            self._report(node, f"{owner} holds {kind_of(node)}", f"write keys below it, as in {sorted(keys)[0]}: …")
            return {}
        known = {}
        for key, value in node.pairs:
            problem = self._refused(key, value, owner, keys)
            if problem is None:
                known[key.text] = value
            else:
                self.problems.append(problem)
        return known

    def _refused(self, key: Scalar, value: Node, owner: str, keys: frozenset[str]) -> Problem | None:
        text = key.text
        if text in keys:
            word = value.text if isinstance(value, Scalar) else _first_key(value)
            if word in _NOT_YET_VALUES.get(text, ()):
                return Problem(
                    value.line,
                    value.column,
                    f"`{text}: {word}` is not supported yet",
                    f"write {text}: {_INSTEAD[text]}, or leave it out",
                )
            return first_mistakes.in_value(text, value, self._lines)
        if text in NOT_YET:
            return Problem(key.line, key.column, f"{text!r} is not supported yet", "remove it")
        if text in ROUTINE_KEYS:
            return Problem(
                key.line,
                key.column,
                f"{text!r} cannot stand in {owner}",
                "put it into the routines themselves",
            )
        if text in AGENT_KEYS:
            return Problem(key.line, key.column, f"{text!r} belongs to the agent", f"put it under agent: as {text}: …")
        return Problem(key.line, key.column, f"unknown key {shown(text)} in {owner}", self._nearest(text, keys))

    def _built(self, model: type[_Model], written: dict[str, Node], base: dict[str, Any]) -> _Model | None:
        """The model of what was written over `base`; None when keys misfit: reported and taken out."""
        values = {**base, **written}
        try:
            built = model(**values)
        except ValidationError as error:
            for fault in error.errors(include_url=False, include_input=False):
                misfit = fault.get("ctx", {}).get("error")
                if isinstance(misfit, Misfit):
                    self.problems += misfit.problems
                written.pop(str(fault["loc"][0]), None)
            return None
        if isinstance(built, Settings) and "env" in base and "env" in written:
            return replace(built, env={**base["env"], **built.env})
        return built

    def _nearest(self, key: str, keys: frozenset[str]) -> str:
        plain = key[:LONGEST_NAME].lower().replace("-", "_").strip("\N{NO-BREAK SPACE} ")
        if plain in keys and "\N{NO-BREAK SPACE}" in key:
            return "write ordinary spaces before it: there are no-break spaces, which YAML takes for letters"
        words = {
            **{word: meant for word, meant in _MEANT.items() if meant in keys},
            **{word: word for word in keys},
        }
        near = get_close_matches(plain, sorted(words), n=1, cutoff=0.7)
        return f"write {words[near[0]]}: instead" if near else f"the keys here are {', '.join(sorted(keys))}"

    def _report(self, node: Node, problem: str, fix: str) -> None:
        self.problems.append(Problem(node.line, node.column, problem, fix))


def _name_in(item: Node) -> tuple[Scalar, Node] | None:
    """The name and the rest of a routine that was written as an item of a list."""
    if not isinstance(item, Mapping):
        return None
    names = [value for key, value in item.pairs if key.text == "name" and isinstance(value, Scalar)]
    rest = tuple(pair for pair in item.pairs if pair[0].text != "name")
    return (names[0], item._replace(pairs=rest)) if names else None


def _first_key(node: Node) -> str:
    return node.pairs[0][0].text if isinstance(node, Mapping) and node.pairs else ""
