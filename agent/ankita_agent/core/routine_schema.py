"""The JSON schema of routines.yaml, made from the model, for editors that complete and mark as you type.

`config/routines.schema.json` is its checked-in copy (tests/unit/test_schema.py compares them). A schema
cannot say all that the judge says: whether a schedule has slots, whether a time zone exists, whether a
jitter is too long. Source: JSON Schema draft 2020-12.
"""

from dataclasses import MISSING, fields
from typing import Any, Final

from ankita_agent.core.durations import format_duration
from ankita_agent.core.readings import NAME_PATTERN, Written, readings_of
from ankita_agent.core.routine import DURATION_PATTERN, AgentSettings, Routine, Settings

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_SAMPLE: Final = {"morning-briefing": {"schedule": "weekdays 08:00", "run": "~/bin/briefing"}}


def routines_schema() -> dict[str, Any]:
    """The schema of a whole file."""
    routine = _schema_of(Routine, "A routine")
    routine["required"] = ["schedule", "run"]
    routines = {
        "title": "Routines",
        "description": "The routines, each under its name: letters, digits, - _ and .",
        "type": ["object", "null"],
        "propertyNames": {"pattern": NAME_PATTERN},
        "additionalProperties": {"$ref": "#/$defs/routine"},
        "examples": [_SAMPLE],
    }
    agent = _schema_of(AgentSettings, "The agent as a whole")
    defaults = _schema_of(Settings, "What every routine has unless it says otherwise; env is merged name by name")
    return {
        "$schema": _DIALECT,
        "title": "routines.yaml of ankita-agent",
        "description": "What ankita-agent runs, and when. Check a file with: ankita-agent check",
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": {
            "agent": {"$ref": "#/$defs/agent"},
            "defaults": {"$ref": "#/$defs/defaults"},
            "routines": routines,
        },
        "$defs": {"agent": agent, "defaults": defaults, "routine": routine},
    }


def _schema_of(model: type[Any], title: str) -> dict[str, Any]:
    defaults = {field.name: field.default for field in fields(model) if field.default is not MISSING}
    nothing = {} if model is Routine else {"type": ["object", "null"]}
    return {
        "title": title,
        "type": "object",
        **nothing,
        "additionalProperties": False,
        "properties": {key: _property(note, defaults.get(key)) for key, note in readings_of(model)},
    }


def _property(note: Written, default: Any) -> dict[str, Any]:
    """A property as a person would write it: spans as text, and a list of one as that one."""
    own = {"description": note.description, **note.schema}
    if default is None or default == "":
        return own
    if isinstance(default, tuple):
        (default,) = default
    return {**own, "default": format_duration(default) if _is_span(own) else default}


def _is_span(schema: dict[str, Any]) -> bool:
    return any(each.get("pattern") == DURATION_PATTERN for each in (schema, *schema.get("anyOf", ())))
