"""The model of routines.yaml: one list of fields that is the model, the value in use and the JSON schema.

`Settings` are the keys that `defaults:` may hold too; `Routine` adds what belongs to one routine alone. All
are frozen, and every field has one normal form: spans in nanoseconds, `run` as the argument vector with its
shell applied. core/readings.py turns what was written into it, core/routine_file.py judges a whole file,
core/routine_schema.py makes the schema of it.

Rejected: a pydantic model beside a plain dataclass (two field lists drift apart); `BaseModel` (a dictionary
and a set for each routine, kept for as long as it is in force).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Annotated, Final

from ankita_agent.core import readings, run_readings
from ankita_agent.core.durations import LONGEST
from ankita_agent.core.instants import HOUR, MINUTE, SECOND, Duration
from ankita_agent.core.readings import Written
from ankita_agent.core.rows import InForce
from ankita_agent.core.run_readings import STANDARD_SHELL
from ankita_agent.core.schedule import Schedule

DURATION_PATTERN: Final = r"^\s*([0-9]+(ms|[dhms])\s*)+$"


class CatchUp(StrEnum):
    """What happens to slots that passed while nobody was there to fire them."""

    LATEST = "latest"
    NONE = "none"


class Overlap(StrEnum):
    """What happens to a slot while an earlier run of the routine still lives."""

    SKIP = "skip"


_TEXT: Final = {"type": "string", "minLength": 1}
_STATUS: Final = {"type": "integer", "minimum": 0, "maximum": 255}
_WORD: Final = {"type": ["string", "number", "boolean"]}
_SPAN: Final = {"type": "string", "pattern": DURATION_PATTERN, "examples": ["90s", "30m", "2h", "1d"]}
_SPAN_OR_NONE: Final = {"anyOf": [{"const": "none"}, _SPAN]}

_FLAG: Final = {"enum": [True, False, "yes", "no", "on", "off"]}
_PATH: Final = {**_TEXT, "examples": ["~/.config/backup.env"]}
_VARIABLES: Final = {
    "type": ["object", "null"],
    "propertyNames": {"pattern": "^(?!ANKITA_|NOTIFY_SOCKET$|WATCHDOG_|LISTEN_)[A-Za-z_][A-Za-z0-9_]*$"},
    "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
    "examples": [{"LANG": "en_US.UTF-8"}],
}
_STATUSES: Final = {"anyOf": [_STATUS, {"type": "array", "items": _STATUS, "minItems": 1}]}
_SCHEDULE: Final = {
    **_TEXT,
    "examples": ["weekdays 08:00", "daily 22:30", "every 30m", "*/5 * * * *", "@daily", "@reboot"],
}
_COMMAND: Final = {
    "anyOf": [
        {"type": "string", "pattern": r"\S"},
        {"type": "array", "items": _WORD, "minItems": 1},
    ],
    "examples": ["~/bin/briefing --short", ["/usr/bin/rsync", "-a", "src/", "dst/"]],
}


def _span(shortest: int, description: str, longest: int = LONGEST) -> Written:
    return Written(readings.duration_between(shortest, longest), _SPAN, description)


def _whole(least: int, most: int, description: str) -> Written:
    schema = {"type": "integer", "minimum": least, "maximum": most}
    return Written(readings.whole_between(least, most), schema, description)


def _choice(words: type[StrEnum], description: str) -> Written:
    return Written(readings.choice_of(words), {"enum": [word.value for word in words]}, description)


def _flag(description: str) -> Written:
    return Written(readings.read_flag, _FLAG, description)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """What holds for the agent as a whole: the key `agent`."""

    concurrency: Annotated[int, _whole(1, 1000, "How many routines may run at the same time.")] = 4
    settle: Annotated[
        Duration,
        _span(0, "How long after a start or a wake-up missed routines wait before they are caught up.", longest=HOUR),
    ] = field(default=Duration(30 * SECOND))
    stop_drain: Annotated[
        Duration,
        _span(
            0,
            "How long running routines may go on when the agent is stopped. "
            "With kill_after it must fit within the service's TimeoutStopSec (45 s).",
            longest=10 * MINUTE,
        ),
    ] = field(default=Duration(20 * SECOND))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a routine may take from `defaults`; `env` is merged name by name, everything else is replaced.

    `timeout` None is no limit; `grace` None is one period of the schedule, at most 24 h; `stale_after` None
    leaves it to the last three slots. Paths are as written: `expand_home` resolves them when a run starts.
    """

    timezone: Annotated[
        str,
        Written(
            readings.read_zone,
            {**_TEXT, "examples": ["Europe/Berlin", "America/New_York", "UTC"]},
            "The time zone of the schedule, an IANA name. Without it: the machine's.",
        ),
    ]
    timeout: Annotated[
        Duration | None,
        Written(
            readings.duration_between(SECOND, none=True),
            _SPAN_OR_NONE,
            "How long a run may take, in time awake; then it is stopped. `none` for no limit.",
        ),
    ] = HOUR
    kill_after: Annotated[
        Duration,
        _span(0, "How long a run that is being stopped has between SIGTERM and SIGKILL.", longest=10 * MINUTE),
    ] = field(default=Duration(10 * SECOND))
    grace: Annotated[
        Duration | None,
        _span(0, "How late a run may still start. Without it: one period of the schedule, at most 24h."),
    ] = None
    catch_up: Annotated[
        CatchUp,
        _choice(CatchUp, "After sleep or a pause of the agent: run the latest missed slot once, or none."),
    ] = CatchUp.LATEST
    overlap: Annotated[
        Overlap,
        _choice(Overlap, "What happens when a run is due while the one before still runs: it is skipped."),
    ] = Overlap.SKIP
    jitter: Annotated[
        Duration,
        _span(
            0,
            "Delays each start by a span below this, always the same for a routine on a machine. "
            "Shorter than the shortest gap of the schedule.",
        ),
    ] = field(default=Duration(0))
    env: Annotated[
        Mapping[str, str],
        Written(
            run_readings.read_environment,
            _VARIABLES,
            "Environment variables, taken exactly as written: `DEBUG: no` is the text no.",
        ),
    ] = field(default_factory=dict)
    env_file: Annotated[
        str | None,
        Written(
            readings.read_path,
            _PATH,
            "A file of NAME=value lines, read when a run starts. On a mount that hangs it holds up all routines.",
        ),
    ] = None
    shell: Annotated[
        str,
        Written(
            readings.read_shell,
            {**_TEXT, "pattern": r"^\S+$", "examples": ["/bin/bash"]},
            "The shell that is given a `run` written as a text.",
        ),
    ] = STANDARD_SHELL
    cwd: Annotated[
        str,
        Written(
            readings.read_directory,
            {"type": ["string", "null"], "minLength": 1, "examples": ["~/projects"]},
            "The directory a run starts in; relative to the home directory, which `~` stands for. "
            "On a mount that hangs it holds up all routines: let the command enter such a directory itself.",
        ),
    ] = "~"
    success_exit_status: Annotated[
        tuple[int, ...],
        Written(run_readings.read_statuses, _STATUSES, "The exit statuses that count as success."),
    ] = (0,)
    quiet_output: Annotated[
        str | None,
        Written(readings.read_text, _TEXT, "A successful run whose output is exactly this text had nothing to report."),
    ] = None
    leave_running: Annotated[bool, _flag("Whether processes that a run started may live on after it has ended.")] = (
        False
    )
    stale_after: Annotated[
        Duration | None,
        _span(MINUTE, "The routine counts as stalled when it has had no success for this long."),
    ] = None
    keep_logs: Annotated[int, _whole(1, 10_000, "How many runs keep their output.")] = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Routine(Settings):
    """A routine as the rest of the program uses it. `run` is the argument vector, its shell applied."""

    name: str
    schedule: Annotated[
        Schedule,
        Written(
            readings.read_schedule,
            _SCHEDULE,
            "When it runs: `every 30m`, `daily 08:00`, `weekdays 8am`, cron fields, @ aliases.",
        ),
    ]
    run: Annotated[
        tuple[str, ...],
        Written(
            run_readings.read_command,
            _COMMAND,
            "What it runs: a text for the shell, or a list of program and arguments.",
            after="shell",
        ),
    ]
    description: Annotated[str, Written(readings.read_text, _TEXT, "What it is for, in a line; shown by `list`.")] = ""
    enabled: Annotated[bool, _flag("Whether its schedule is followed.")] = True
    rerun_lost: Annotated[
        bool, _flag("Whether a run whose end nobody knows is run again. Only for what may happen twice.")
    ] = False


@dataclass(frozen=True, slots=True)
class RoutineFile:
    """A whole file in normal form; the routines in the order of the file, names unique."""

    agent: AgentSettings
    routines: tuple[Routine, ...]


NO_ROUTINES: Final = RoutineFile(AgentSettings(), ())

_NOT_OF_A_RUN: Final = frozenset({"name", "description"})


def in_force(routine: Routine) -> InForce:
    """The routine as the ledger keeps it. Two routines mean the same when their `meaning` is the same text.

    The description is carried but is no part of the meaning. Of `env` only a digest (SHA-256) is, for its values may
    be secrets, and ledgers are copied to where routines.yaml is not.
    """
    meaning = {each.name: getattr(routine, each.name) for each in fields(routine) if each.name not in _NOT_OF_A_RUN}
    meaning["schedule"] = routine.schedule.text
    if routine.env:
        meaning["env"] = _digest(routine.env)
    return InForce(
        routine=routine.name,
        schedule=routine.schedule.text,
        timezone=routine.timezone,
        jitter=routine.jitter,
        enabled=routine.enabled,
        description=routine.description,
        meaning=json.dumps(meaning, sort_keys=True, separators=(",", ":"), ensure_ascii=False),
    )


def _digest(variables: Mapping[str, str]) -> str:
    from hashlib import sha256  # here, because it brings 3 MB of OpenSSL into every agent, and few routines have an env

    return sha256(json.dumps(variables, sort_keys=True).encode()).hexdigest()


def expand_home(path: str, home: str) -> str:
    """The whole path of a `cwd` or `env_file`: `~` is the home directory, a relative path begins there."""
    if path == "~":
        return home
    if path.startswith("/"):
        return path
    return f"{home.rstrip('/')}/{path.removeprefix('~/')}"
