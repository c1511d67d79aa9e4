"""The JSON schema of routines.yaml, made from the model, for editors that complete and mark as you type.

`config/routines.schema.json` is its checked-in copy (tests/unit/test_schema.py compares them). A schema
cannot say all that the judge says: whether a schedule has slots, whether a time zone exists, whether a
jitter is too long. Source: JSON Schema draft 2020-12.
"""

from typing import Any, Final

from pydantic import TypeAdapter

from ankita_agent.core.durations import format_duration
from ankita_agent.core.readings import NAME_PATTERN
from ankita_agent.core.routine import DURATION_PATTERN, AgentSettings, Routine, Settings

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_SAMPLE: Final = {"morning-briefing": {"schedule": "weekdays 08:00", "run": "~/bin/briefing"}}


def routines_schema() -> dict[str, Any]:
    """The schema of a whole file."""
    routine = _schema_of(Routine, "A routine", without="name")
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


def _schema_of(model: type[Any], title: str, without: str | None = None) -> dict[str, Any]:
    made = TypeAdapter(model).json_schema()
    properties = {key: _tidy(value) for key, value in made["properties"].items() if key != without}
    nothing = {} if model is Routine else {"type": ["object", "null"]}
    return {
        "title": title,
        "type": "object",
        **nothing,
        "additionalProperties": False,
        "properties": properties,
    }


def _tidy(written: dict[str, Any]) -> dict[str, Any]:
    """A property as a person would write it: no made-up title, durations as text."""
    own = {key: value for key, value in written.items() if key != "title"}
    default = own.pop("default", None)
    if default is not None and default != "" and default != {}:
        own["default"] = format_duration(default) if _is_span(own) else default
    if own.get("default") == [0]:
        own["default"] = 0
    return dict(sorted(own.items(), key=lambda pair: pair[0] != "description"))


def _is_span(schema: dict[str, Any]) -> bool:
    return any(each.get("pattern") == DURATION_PATTERN for each in (schema, *schema.get("anyOf", ())))
