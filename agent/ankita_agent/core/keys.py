"""The keys of routines.yaml: where each belongs, what else people call them, and what they mean by that.

Other schedulers' keys seldom differ by name alone: `disabled: true` is `enabled: false`, and `every: 5m` is
`schedule: every 5m`. So what to write is shown with its value where the value has to change with the key.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import fields
from difflib import get_close_matches
from typing import Final, NamedTuple

from ankita_agent.core.readings import FLAGS, LONGEST_NAME
from ankita_agent.core.routine import AgentSettings, CatchUp, Overlap, Routine, Settings
from ankita_agent.core.schedule import ScheduleError, parse_schedule
from ankita_agent.core.tree import Kind, Node, Scalar
from ankita_agent.core.wording import as_value, shown, write

AGENT_KEYS: Final = frozenset(each.name for each in fields(AgentSettings))
DEFAULT_KEYS: Final = frozenset(each.name for each in fields(Settings))
ROUTINE_KEYS: Final = frozenset(each.name for each in fields(Routine)) - {"name"}
FILE_KEYS: Final = frozenset({"agent", "defaults", "routines"})

NOT_YET: Final = frozenset(
    {"lease", "on_lost", "condition", "wait_for", "retries", "on_failure", "on_success", "max_runs_per_day"}
)
"""Keys that are planned. They are refused, because a key that is read and does nothing is a lie."""

EVERY_KEY: Final = AGENT_KEYS | ROUTINE_KEYS | FILE_KEYS | NOT_YET

_OTHER_NAMES: Final = {
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


class Meant(NamedTuple):
    """What was meant by an unknown key: the known one with its value (None when nobody can tell), and the advice."""

    key: str | None
    value: Node
    fix: str


def meant_by(written: str, value: Node, keys: frozenset[str], taken: Collection[str]) -> Meant:
    """What an unknown key with that value means where these `keys` may stand and those in `taken` do."""
    plain = written[:LONGEST_NAME].lower().replace("-", "_").strip("\N{NO-BREAK SPACE} ")
    words = {word: meant for word, meant in _OTHER_NAMES.items() if meant in keys} | {word: word for word in keys}
    near = get_close_matches(plain, sorted(words), n=1, cutoff=0.7)
    if not near:
        *most, last = (shown(key) for key in get_close_matches(plain, sorted(keys), n=3, cutoff=0))
        return Meant(None, value, f"remove it; the nearest keys here are {', '.join(most)} and {last}")
    word, key = near[0], words[near[0]]
    if key in taken:
        return Meant(None, value, f"remove it: {shown(key)} stands here already")
    if plain in keys and "\N{NO-BREAK SPACE}" in written:
        blanks = "the no-break spaces before it, which YAML takes for letters"
        return Meant(key, value, f"{write(f'{plain}:')} without {blanks}")
    changed = _CHANGES[word](value.text) if word in _CHANGES and isinstance(value, Scalar) else None
    if changed is None or not isinstance(value, Scalar):
        return Meant(key, value, write(f"{key}:"))
    return Meant(key, value._replace(text=changed, kind=Kind.QUOTED), write(f"{key}: {as_value(changed)}"))


def _opposite(text: str) -> str:
    return "true" if FLAGS.get(text.lower()) is False else "false"


def _of_interval(text: str) -> str | None:
    return _schedule_of(f"every {text}")


def _of_time(text: str) -> str | None:
    return _schedule_of(f"daily {text}")


def _schedule_of(text: str) -> str | None:
    """The text when it is a schedule, else the one that its refusal proposes; None when there is none."""
    try:
        parse_schedule(text)
    except ScheduleError as wrong:
        proposed = re.match('write `"?([^`"]+)', wrong.fix)
        return proposed[1] if proposed else None
    return text


def _catching_up(text: str) -> str:
    return CatchUp.NONE if FLAGS.get(text.lower()) is False else CatchUp.LATEST


def _skipping(_: str) -> str:
    return Overlap.SKIP


_CHANGES: Final[dict[str, Callable[[str], str | None]]] = {
    "disabled": _opposite,
    "paused": _opposite,
    "every": _of_interval,
    "interval": _of_interval,
    "at": _of_time,
    "persistent": _catching_up,
    "concurrency_policy": _skipping,
}
"""What becomes of the value where another scheduler's key says the same in other words."""
