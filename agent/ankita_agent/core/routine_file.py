"""Judges a whole routines.yaml: the routines that it means, or all that is wrong with it.

Everything is reported at once. A key that is refused is left out and judging goes on, so that one problem
hides no other; what is wrong in `defaults` is said there and not again in every routine that would have
used it.
"""

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from typing import Any, Final

from ankita_agent.core import first_mistakes, lints
from ankita_agent.core.concealment import conceal
from ankita_agent.core.durations import format_duration
from ankita_agent.core.keys import AGENT_KEYS, DEFAULT_KEYS, FILE_KEYS, NOT_YET, ROUTINE_KEYS, meant_by
from ankita_agent.core.mendings import Mending, missing_colon
from ankita_agent.core.problems import Problem, Severity
from ankita_agent.core.readings import Misfit, Readings, kind_of, read_schedule, readings_of, refuse_name
from ankita_agent.core.routine import AgentSettings, CatchUp, Overlap, Routine, RoutineFile, Settings
from ankita_agent.core.run_readings import STANDARD_SHELL
from ankita_agent.core.schedule import Timetable, warnings_of
from ankita_agent.core.tree import Document, Kind, Mapping, Node, Scalar
from ankita_agent.core.wording import shown, write
from ankita_agent.core.zones import UnknownZone, zone_named

MOST_PROBLEMS: Final = 1000
"""When a file has so many errors, the routines that follow are not judged; when so many findings, not warned of."""

_NOT_YET_VALUES: Final = {"overlap": frozenset({"queue", "replace", "allow"}), "catch_up": frozenset({"all"})}
_INSTEAD: Final = {"overlap": Overlap.SKIP, "catch_up": CatchUp.LATEST}

_OF_AGENT, _OF_DEFAULTS, _OF_ROUTINE = readings_of(AgentSettings), readings_of(Settings), readings_of(Routine)
_NOTHING: Final[MappingABC[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a file means: the routines (None when it has an error), and all problems, by line."""

    file: RoutineFile | None
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems for which the file does not come into force."""
        return tuple(each for each in self.problems if each.severity is Severity.ERROR)


def judge(document: Document, local_zone: str) -> Judgement:
    """Judge a document. Routines without a time zone get `local_zone`, the machine's."""
    judging = _Judging(document, local_zone)
    file = judging.file()
    problems = tuple(sorted(set(conceal(judging.problems, document.lines))))
    refused = any(each.severity is Severity.ERROR for each in problems)
    return Judgement(None if refused else file, problems)


class _Judging:
    """One judging of one document; collects the problems."""

    def __init__(self, document: Document, local_zone: str) -> None:
        self.problems = list(document.problems)
        self._root, self._lines = document.root, document.lines
        self._local_zone = self._known_zone(local_zone)
        self._defaults: dict[str, Any] = {}
        self._seen = self._errors = 0  # how many problems have been counted, and how many of them are errors
        self._silent = False
        self._strays: list[tuple[Scalar, Node]] = []  # routines that stand at the top level

    def _known_zone(self, name: str) -> str:
        try:
            zone_named(name)
        except UnknownZone as error:
            problem = f"the machine's time zone is not known ({error.problem}), so UTC holds where none is given"
            fix = "write it, as in `defaults: {timezone: Europe/Berlin}`"
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
                f"the file holds {kind_of(root)} where it needs the key 'routines'",
                "write `routines:` as the first line, and the routines below it",
            )
            return {}
        parts = {key.text: value for key, value in root.pairs if key.text in FILE_KEYS}
        for key, value in root.pairs:
            if key.text in FILE_KEYS:
                continue
            if key.text in AGENT_KEYS | ROUTINE_KEYS | NOT_YET or _is_routine(value):
                self._misplaced(key, value)
                continue
            meant = meant_by(key.text, value, FILE_KEYS, parts)
            self._report(key, f"unknown key {shown(key.text)}", meant.fix)
            if meant.key is not None:
                parts[meant.key] = meant.value
        return parts

    def _misplaced(self, key: Scalar, value: Node) -> None:
        """Report what stands at the top level and belongs further down, and what is wrong with its value."""
        if key.text in AGENT_KEYS:
            self._report(key, f"{shown(key.text)} stands at the top level", "move it below `agent:`")
            self._judge_alone(key.text, value)
        elif key.text in ROUTINE_KEYS | NOT_YET:
            self._report(
                key,
                f"{shown(key.text)} stands at the top level and belongs to a routine",
                "move it below `routines:` and the name of a routine, indented by four",
            )
            self._judge_alone(key.text, value)
        else:
            self._report(
                key,
                f"the routine {shown(key.text)} stands at the top level",
                "move it below `routines:` and indent it by two",
            )
            self._strays.append((key, value))

    def _judge_alone(self, key: str, value: Node) -> None:
        """Report what is wrong with the value of a key that stands in the wrong place."""
        if key in NOT_YET:
            return
        mistake = first_mistakes.in_value(key, value, self._lines)
        if mistake is not None:
            self.problems.append(mistake)
        else:
            self._read(_OF_AGENT if key in AGENT_KEYS else _OF_ROUTINE, {key: value})

    def _agent(self, node: Node | None) -> AgentSettings:
        written = self._known(node, "agent", AGENT_KEYS)
        settings = AgentSettings(**self._read(_OF_AGENT, written))
        lints.in_agent(written, settings.stop_drain, self.problems)
        return settings

    def _read_defaults(self, node: Node | None) -> None:
        written = self._known(node, "defaults", DEFAULT_KEYS)
        lints.in_values(written, self._lines, STANDARD_SHELL, self.problems)
        self._defaults = {"timezone": self._local_zone, **self._read(_OF_DEFAULTS, written)}

    def _routines(self, node: Node | None) -> list[Routine]:
        found = []
        names: dict[str, Scalar] = {}
        for name, body in [*self._named_bodies(node), *self._strays]:
            if self._has_too_many_errors():
                self._report(name, "from here on nothing was looked at: too many problems", "mend those above")
                break
            accepted = self._accept_name(name, names)
            routine = self._routine(name, body)
            if routine is not None and accepted:
                found.append(routine)
        return found

    def _has_too_many_errors(self) -> bool:
        new = self.problems[self._seen :]
        self._seen += len(new)
        self._errors += sum(each.severity is Severity.ERROR for each in new)
        return self._errors >= MOST_PROBLEMS

    def _named_bodies(self, node: Node | None) -> list[tuple[Scalar, Node]]:
        if node is None or (isinstance(node, Scalar) and node.null):
            return []
        if isinstance(node, Mapping):
            return self._unless_nameless(node)
        example = "write `routines:` and below it, indented by two, the name of a routine, as in `morning-briefing:`"
        if isinstance(node, Scalar):
            return list(self._pairs_of_text(node, "'routines' holds a single value", example, surely=True))
        first = _name_in(node.items[0]) if node.items else None
        instead = f"{write(f'{first[0].text}:')} in place of {shown(f'- name: {first[0].text}')}" if first else example
        self._report(node, "'routines' is a list, and routines stand by name", instead)
        return [named for named in map(_name_in, node.items) if named is not None]

    def _unless_nameless(self, node: Mapping) -> list[tuple[Scalar, Node]]:
        bare = [key for key, value in node.pairs if key.text in ROUTINE_KEYS and not isinstance(value, Mapping)]
        if not any(key.text in ("schedule", "run") for key in bare):
            return [*node.pairs, *node.again]
        self._report(
            bare[0],
            f"{shown(bare[0].text)} stands where the name of a routine belongs",
            "write a name above it, as in `morning-briefing:`, and indent this by two more",
        )
        nameless = Mapping(tuple(pair for pair in node.pairs if pair[0] in bare), False, node.line, node.column)
        unnamed = (bare[0]._replace(text="morning-briefing"), nameless)
        return [unnamed, *(pair for pair in node.pairs if pair[0] not in bare)]

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
                f"the routine {shown(name.text)} is named like {shown(first.text)} on line {first.line}",
                "give it another name",
            )
        return first is name

    def _routine(self, name: Scalar, body: Node) -> Routine | None:
        before = len(self.problems)
        if not isinstance(body, Mapping):
            pairs = self._pairs_of_text(
                name if isinstance(body, Scalar) and body.null else body,
                f"the routine {shown(name.text)} holds {kind_of(body)}",
                "write a schedule and a run below its name, each on a line of its own, indented deeper",
            )
            if not pairs:
                return None
            body = Mapping(pairs, False, body.line, body.column)
        named: set[str] = set()
        known = self._known(body, f"the routine {shown(name.text)}", ROUTINE_KEYS, named)
        for key, example in (("schedule", "schedule: weekdays 08:00"), ("run", "run: ~/bin/briefing")):
            if key not in named:
                problem = f"the routine {shown(name.text)} has no {key}"
                self._report(name, problem, f"write a line for it below, as in `{example}`")
        fitting = dict(known)
        values = self._read(_OF_ROUTINE, fitting, self._defaults)
        self._warn(name, known, fitting.get("schedule"))
        if any(each.severity is Severity.ERROR for each in self.problems[before:]):
            return None
        routine = Routine(name=name.text, **values)
        self._check_jitter(routine, name, known)
        return routine

    def _warn(self, name: Scalar, known: MappingABC[str, Node], schedule: Node | None) -> None:
        """Report what works and was probably not meant; `schedule` is the routine's, when it is good."""
        if len(self.problems) >= MOST_PROBLEMS:
            if not self._silent:
                problem = "from here on no further warnings are given: too many problems"
                self.problems.append(Problem(name.line, name.column, problem, "mend those above", Severity.WARNING))
            self._silent = True
            return
        shell = known.get("shell", self._defaults.get("shell", STANDARD_SHELL))
        lints.in_values(known, self._lines, shell.text if isinstance(shell, Scalar) else str(shell), self.problems)
        if schedule is not None:
            for problem, fix in warnings_of(read_schedule(schedule, "schedule")):
                self.problems.append(Problem(schedule.line, schedule.column, problem, fix, Severity.WARNING))

    def _check_jitter(self, routine: Routine, name: Scalar, known: MappingABC[str, Node]) -> None:
        """Report a jitter that is too long for the schedule."""
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
            f"{shown(routine.schedule.text)} of {shown(routine.name)}",
            f"{write(f'jitter: {format_duration(gap // 2)}')} or less in this routine",
        )

    def _known(
        self, node: Node | None, owner: str, keys: frozenset[str], named: set[str] | None = None
    ) -> dict[str, Node]:
        """The pairs whose keys belong here and whose values are no known mistake; the others are reported.

        A key that is another's word for one of ours is judged like ours. `named` gets every key that was meant.
        """
        if node is None or (isinstance(node, Scalar) and node.null):
            return {}
        if not isinstance(node, Mapping):
            example = f"{owner}: {{{'concurrency: 4' if keys == AGENT_KEYS else 'timeout: 5m'}}}"
            problem = f"{shown(owner)} holds {kind_of(node)}"
            pairs = self._pairs_of_text(node, problem, f"write keys with values, as in `{example}`")
            node = Mapping(pairs, False, node.line, node.column)
        known: dict[str, Node] = {}
        named = set() if named is None else named
        named.update(key.text for key, _ in node.pairs)
        for key, value in node.pairs:
            text, judged = key.text, value
            if (mending := self._colon_missing_in(key)) is not None:
                self.problems.append(mending.problem)
                wrong, judged = _pair_on(mending.lines[key.line], key.line)
                text = wrong.text
                named.add(text)
            elif text not in ROUTINE_KEYS | AGENT_KEYS | NOT_YET:
                meant = meant_by(text, value, keys, named)
                self._report(key, f"unknown key {shown(text)} in {owner}", meant.fix)
                if meant.key is None:
                    continue
                text, judged = meant.key, meant.value
                named.add(text)
            refused = self._refused(key, text, judged, owner, keys)
            if refused is None:
                known[text] = judged
            else:
                self.problems.append(refused)
        return known

    def _colon_missing_in(self, key: Scalar) -> Mending | None:
        """The mending of `run echo "a: b"`, whose key is `run echo "a` to YAML."""
        return missing_colon(self._lines, key.line) if " " in key.text and key.kind is Kind.PLAIN else None

    def _refused(self, key: Scalar, text: str, value: Node, owner: str, keys: frozenset[str]) -> Problem | None:
        if text in keys:
            word = value.text if isinstance(value, Scalar) else _first_key(value)
            if word in _NOT_YET_VALUES.get(text, ()):
                return Problem(
                    value.line,
                    value.column,
                    f"{shown(f'{text}: {word}')} is not supported yet",
                    f"{write(f'{text}: {_INSTEAD[text]}')}, or leave it out",
                )
            return first_mistakes.in_value(text, value, self._lines)
        if text in NOT_YET:
            return Problem(key.line, key.column, f"{shown(text)} is not supported yet", "remove it")
        self._judge_alone(text, value)
        if text in ROUTINE_KEYS:
            problem = f"{shown(text)} cannot stand in {owner}"
            return Problem(key.line, key.column, problem, "move it into the routines themselves")
        return Problem(key.line, key.column, f"{shown(text)} belongs to the agent", "move it below `agent:`")

    def _read(
        self, readings: Readings, written: dict[str, Node], base: MappingABC[str, Any] = _NOTHING
    ) -> dict[str, Any]:
        """The values of what was written, over those of `base`. What misfits is reported and taken out of `written`."""
        values = dict(base)
        for key, reading in readings:
            if key not in written:
                continue
            earlier = () if reading.after is None else (values.get(reading.after),)
            try:
                values[key] = reading.read(written[key], key, *earlier)
            except Misfit as error:
                self.problems += error.problems
                del written[key]
        if "env" in base and "env" in written:
            values["env"] = {**base["env"], **values["env"]}
        return values

    def _pairs_of_text(
        self, node: Node, problem: str, fix: str, *, surely: bool = False
    ) -> tuple[tuple[Scalar, Node], ...]:
        """Report what is no mapping; the pairs of it, where it is keys (`surely`: any word is one) without a colon."""
        pairs: list[tuple[Scalar, Node]] = []
        if isinstance(node, Scalar) and node.kind is Kind.PLAIN:
            for number in range(node.line, node.end_line + 1):
                mending = missing_colon(self._lines, number, surely=surely)
                if mending is not None:
                    self.problems.append(mending.problem)
                    pairs.append(_pair_on(mending.lines[number], number))
        if not pairs:
            self._report(node, problem, fix)
        return tuple(pairs)

    def _report(self, node: Node, problem: str, fix: str) -> None:
        self.problems.append(Problem(node.line, node.column, problem, fix))


def _name_in(item: Node) -> tuple[Scalar, Node] | None:
    """The name and the rest of a routine that was written as an item of a list."""
    if not isinstance(item, Mapping):
        return None
    names = [value for key, value in item.pairs if key.text == "name" and isinstance(value, Scalar)]
    rest = tuple(pair for pair in item.pairs if pair[0].text != "name")
    return (names[0], item._replace(pairs=rest)) if names else None


def _is_routine(node: Node) -> bool:
    return isinstance(node, Mapping) and any(each.text in ("schedule", "run") for each, _ in node.pairs)


def _pair_on(line: str, number: int) -> tuple[Scalar, Scalar]:
    """The key and the plain value that stand on a line."""
    key, _, value = line.strip().partition(":")
    kind = Kind.QUOTED if value.strip()[:1] in ("'", '"') else Kind.PLAIN
    start = line.index(key) + 1
    behind = start + len(key) + 1
    place = (number, behind, number, len(line) + 1)
    return Scalar(key, Kind.PLAIN, number, start, number, behind), Scalar(value.strip().strip("'\""), kind, *place)


def _first_key(node: Node) -> str:
    return node.pairs[0][0].text if isinstance(node, Mapping) and node.pairs else ""
