"""The JSON schema for editors: the model's, valid, and of one mind with the judge as far as it can be."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from jsonschema import Draft202012Validator

from ankita_agent.core.keys import DEFAULT_KEYS, ROUTINE_KEYS
from ankita_agent.core.routine_schema import routines_schema
from tests.routine_texts import BAD, GOOD, judged

CONFIG: Final = Path(__file__).parents[2] / "config"
VALIDATOR: Final = Draft202012Validator(routines_schema())


class _Core(yaml.SafeLoader):
    """Scalars as editors read them, by the core schema of YAML 1.2: `yes` and `8:30` are texts."""


_Core.yaml_implicit_resolvers = {}
for tag, pattern, letters in (
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", "[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    _Core.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), list(letters))


def read(text: str) -> Any:
    return yaml.load(text, Loader=_Core)


def test_the_checked_in_schema_is_that_of_the_model() -> None:
    checked_in = (CONFIG / "routines.schema.json").read_text(encoding="utf-8")
    assert json.loads(checked_in) == routines_schema()
    assert checked_in == json.dumps(routines_schema(), indent=2, ensure_ascii=False) + "\n"


def test_the_schema_is_a_valid_one() -> None:
    Draft202012Validator.check_schema(routines_schema())


def test_every_key_is_explained() -> None:
    definitions = routines_schema()["$defs"]
    assert set(definitions["routine"]["properties"]) == ROUTINE_KEYS
    assert set(definitions["defaults"]["properties"]) == DEFAULT_KEYS
    for definition in definitions.values():
        for name, value in definition["properties"].items():
            assert value.get("description"), name


def test_examples_and_defaults_fit_what_they_stand_for() -> None:
    for definition in routines_schema()["$defs"].values():
        for name, value in definition["properties"].items():
            validator = Draft202012Validator(value)
            for example in [*value.get("examples", ()), *([value["default"]] if "default" in value else [])]:
                assert validator.is_valid(example), (name, example)


@pytest.mark.parametrize("text", GOOD)
def test_what_the_judge_accepts_the_schema_accepts(text: str) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(read(text))] == []


@pytest.mark.parametrize("text", BAD)
def test_what_the_schema_can_see_it_refuses_as_the_judge_does(text: str) -> None:
    assert judged(text).file is None
    assert not VALIDATOR.is_valid(read(text))


def test_the_sample_file_is_good_as_it_stands_for_both() -> None:
    text = (CONFIG / "routines.yaml").read_text(encoding="utf-8")
    judgement = judged(text)
    assert judgement.problems == ()
    assert judgement.file is not None
    assert len(judgement.file.routines) == 3
    assert VALIDATOR.is_valid(read(text))


def test_the_sample_file_names_the_schema_beside_it_on_its_first_line() -> None:
    first = (CONFIG / "routines.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert first == "# yaml-language-server: $schema=routines.schema.json"
    assert (CONFIG / "routines.schema.json").is_file()
