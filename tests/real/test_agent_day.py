"""The main path: an agent fires on time, records, and answers every command that asks it."""

import json
import re
import shlex
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

import pytest

from ankita_agent.core.instants import SECOND, format_instant
from ankita_agent.core.outcomes import Outcome, Trigger
from tests.real.agents import COMMAND, ROOT, Place, every_second, noted, noting, unaccounted
from tests.real.waiting import until

FILE: Final = """\
agent: {concurrency: 6, settle: 1s}
defaults: {timezone: Europe/Berlin}
routines:
  beat: {schedule: every 1s, run: echo a line}
  nightly: {schedule: "daily 02:30", run: "echo one; echo two"}
  broken: {schedule: "daily 02:31", run: "echo no >&2; exit 3"}
  long: {schedule: every 1h, run: exec sleep 60, description: sleeps}
  off: {schedule: every 1s, run: "true", enabled: false}
"""

INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
MAYBE_INSTANT: Final = (INSTANT, None)

STATUS: Final = {
    "version": str,
    "state_dir": str,
    "config": {"path": str, "ok": bool, "error": (str, None)},
    "owner": {
        "pid": int,
        "term": int,
        "since": INSTANT,
        "manager": (str, None),
        "version": str,
        "progress_age_s": float,
        "state": ("busy", "idle", "wedged", "stopped"),
    },
    "standbys": int,
    "degraded": [str],
    "service": {"manager": (str, None), "installed": bool, "enabled": bool, "active": bool},
    "routines": [
        {
            "name": str,
            "health": ("ok", "failing", "stalled", "paused", "new"),
            "reason": (str, None),
            "next_slot": MAYBE_INSTANT,
            "last_success": MAYBE_INSTANT,
            "last": ({"slot": INSTANT, "outcome": str, "reason": (str, None)}, None),
            "running": bool,
        }
    ],
}

HISTORY: Final = [
    {
        "fire": int,
        "routine": str,
        "slot": INSTANT,
        "until": MAYBE_INSTANT,
        "count": int,
        "trigger": ("schedule", "catch_up", "manual", "retry"),
        "outcome": (*(outcome.value for outcome in Outcome), None),
        "reason": (str, None),
        "quiet": bool,
        "late_s": (float, None),
        "started_at": MAYBE_INSTANT,
        "ended_at": MAYBE_INSTANT,
        "exit_code": (int, None),
        "attempts": int,
        "term": int,
        "log": (str, None),
    }
]

LIST: Final = [
    {
        "name": str,
        "next_slot": MAYBE_INSTANT,
        "last_slot": MAYBE_INSTANT,
        "outcome": (str, None),
        "schedule": str,
        "timezone": str,
        "enabled": bool,
        "description": str,
    }
]

NEXT: Final = [{"routine": str, "slot": INSTANT, "local": str, "note": str}]


def misfits(value: Any, shape: Any, at: str = "it") -> list[str]:
    """Where a document is not of that shape: types, patterns, choices in a tuple, fields, elements."""
    match shape:
        case dict():
            if not isinstance(value, dict):
                return [f"{at} is {value!r}"]
            missing = [f"{at} lacks {key}" for key in shape.keys() - value.keys()]
            found = (misfits(value[key], shape[key], f"{at}.{key}") for key in shape.keys() & value.keys())
            return [*missing, *chain.from_iterable(found)]
        case [element]:
            if not isinstance(value, list):
                return [f"{at} is {value!r}"]
            each = (misfits(one, element, f"{at}[{number}]") for number, one in enumerate(value))
            return list(chain.from_iterable(each))
        case tuple():
            return [] if any(not misfits(value, choice) for choice in shape) else [f"{at} is {value!r}"]
        case re.Pattern():
            fits = isinstance(value, str) and shape.fullmatch(value) is not None
        case type():
            fits = type(value) is shape or (shape is float and type(value) is int)
        case _:
            fits = type(value) is type(shape) and value == shape
    return [] if fits else [f"{at} is {value!r}"]


def test_every_slot_is_fired_once_and_on_time(place: Place) -> None:
    log = place.root / "fired"
    place.write(every_second("beat", "pulse", run=noting(log)))
    agent = place.start()
    place.until_row("beat", Outcome.SUCCEEDED, count=4)
    assert agent.stop() == 0
    fired = noted(log)
    assert len(fired) == len(set(fired))
    for routine in ("beat", "pulse"):
        rows = place.rows(routine)
        assert unaccounted(rows) == []
        assert {(row.outcome, row.exit_code, row.attempts) for row in rows} == {(Outcome.SUCCEEDED, 0, 1)}
        assert [slot for name, slot in fired if name == routine] == [format_instant(row.slot) for row in rows]
        assert all(row.started_at is not None and 0 <= row.started_at - row.slot < SECOND for row in rows)


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One agent for everybody who only asks."""
    with Place(tmp_path_factory.mktemp("day")) as found:
        found.write(FILE)
        found.start()
        found.until_row("beat", Outcome.SUCCEEDED, count=2)
        yield found


def test_status_is_of_the_written_form_and_says_0_while_all_is_well(day: Place) -> None:
    done = day.command("status", "nightly", "--json")
    assert misfits(done.json, STATUS) == []
    whole = day.status()
    assert misfits(whole, STATUS) == []
    assert [routine["name"] for routine in whole["routines"]] == ["beat", "nightly", "broken", "long", "off"]
    assert (whole["degraded"], whole["standbys"], whole["config"]["ok"]) == ([], 0, True)
    assert whole["owner"]["progress_age_s"] < 10


def test_status_as_text_names_owner_directories_and_routines(day: Place) -> None:
    text = day.command("status").out
    for word in ("pid ", "owner for ", str(day.state), str(day.file), "nightly", "next "):
        assert word in text


def test_history_is_of_the_written_form_newest_first(day: Place) -> None:
    rows = day.command("history", "--json", "-n", "2").json
    assert misfits(rows, HISTORY) == []
    assert len(rows) == 2
    assert rows[0]["slot"] >= rows[1]["slot"]
    (ended, *_) = (row for row in day.command("history", "beat", "--json").json if row["outcome"])
    assert (ended["exit_code"], ended["count"], ended["until"]) == (0, 1, None)
    assert ended["late_s"] < 1


def test_list_is_of_the_written_form_what_comes_next_first(day: Place) -> None:
    rows = day.command("list", "--json").json
    assert misfits(rows, LIST) == []
    slots = [row["next_slot"] for row in rows]
    assert [slot for slot in slots if slot] == sorted(filter(None, slots))
    assert slots[-1] is None, "a disabled one never comes"


def test_list_of_one_routine_is_that_one_alone(day: Place) -> None:
    assert [row["name"] for row in day.command("list", "--json", "beat").json] == ["beat"]
    wrong = day.command("list", "baet")
    assert (wrong.code, "did you mean beat" in wrong.err) == (4, True)


def test_next_is_of_the_written_form_in_the_order_of_time(day: Place) -> None:
    start = "2026-10-24T00:00:00+02:00"
    rows = day.command("next", "nightly", "--from", start, "--count", "3", "--json").json
    assert misfits(rows, NEXT) == []
    assert [row["slot"] for row in rows] == [
        "2026-10-24T00:30:00Z",
        "2026-10-25T00:30:00Z",  # once, although 02:30 comes twice that night
        "2026-10-26T01:30:00Z",
    ]
    assert rows[1]["note"]
    every = day.command("next", "--json").json
    assert [row["slot"] for row in every] == sorted(row["slot"] for row in every)
    assert "off" not in {row["routine"] for row in every}


def test_a_run_that_is_asked_for_happens_beside_the_schedule_and_its_output_is_kept(day: Place) -> None:
    done = day.command("trigger", "nightly", "--wait")
    assert done.code == 0, done.err
    row = day.rows("nightly")[-1]
    assert (row.outcome, row.trigger) == (Outcome.SUCCEEDED, Trigger.MANUAL)
    logs = day.command("logs", "nightly")
    assert (logs.code, logs.out) == (0, "one\ntwo\n")
    assert str(row.fire) in logs.err
    assert day.command("logs", "nightly", "-n", "1").out == "two\n"


def test_waiting_for_a_run_that_fails_ends_with_1_and_status_then_says_so(place: Place) -> None:
    place.write(FILE)
    place.start()
    assert place.command("status").code == 0
    done = place.command("trigger", "broken", "--wait")
    assert (done.code, done.out.endswith("; see: ankita-agent logs broken\n")) == (1, True), done.out
    assert "; see: ankita-agent logs broken\n" in place.command("status").out
    done = place.command("status", "--json")
    assert done.code == 1
    (broken,) = (each for each in done.json["routines"] if each["name"] == "broken")
    assert broken["health"] == "failing"
    assert "exit status 3" in broken["reason"]
    assert place.command("logs", "broken").out == "no\n"


def test_a_run_that_is_asked_for_while_it_runs_is_skipped_with_75(place: Place) -> None:
    place.write(FILE)
    place.start()
    started = place.command("trigger", "long")
    assert started.code == 0
    assert place.status()["routines"][3]["running"] is True
    assert place.command("status", "long").out.count("running")
    (fire,) = (row.fire for row in place.rows("long"))
    done = place.command("trigger", "long", "--wait")
    assert done.code == 75
    assert re.search(rf"skipped \(overlap with \w+ {fire}\)", done.out)
    late = place.command("trigger", "long", "--wait", "--timeout", "1s")
    assert late.code == 75


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["status", "nope"], 4),
        (["history", "nope"], 4),
        (["next", "nope"], 4),
        (["logs", "nope"], 4),
        (["trigger", "nope"], 4),
        (["logs", "broken"], 1),
        (["trigger", "beat", "--wait", "--timeout", "soon"], 2),
        (["run", "beat"], 2),
        (["run", "--takeover"], 2),
        (["status", "--nope"], 2),
        (["nope"], 2),
        (["next", "--from", "yesterday"], 2),
        (["check"], 0),
        (["run"], 75),
    ],
)
def test_each_command_ends_with_the_code_that_is_written_down(day: Place, arguments: list[str], code: int) -> None:
    done = day.command(*arguments)
    assert done.code == code, done.err
    if code:
        assert done.err, "a refusal says why"


def test_without_an_agent_status_and_trigger_end_with_3_and_say_how_to_start_one(place: Place) -> None:
    place.write(FILE)
    for arguments in (["status"], ["trigger", "beat"]):
        done = place.command(*arguments)
        assert done.code == 3
        assert "ankita-agent run" in done.out + done.err
    assert place.status()["owner"] is None
    assert not place.state.exists(), "looking makes nothing"
    assert [row["routine"] for row in place.command("next", "nightly", "--json", "-n", "1").json] == ["nightly"]


def test_after_the_agent_has_ended_the_history_is_still_there(place: Place) -> None:
    place.write(FILE)
    agent = place.start()
    place.until_row("beat", Outcome.SUCCEEDED)
    agent.stop()
    done = place.command("status", "--json")
    assert done.code == 3
    assert done.json["owner"] is None
    assert misfits(done.json | {"owner": STATUS_OWNER}, STATUS) == []
    assert place.command("history", "--json").json
    assert place.command("logs", "beat").out == "a line\n"


STATUS_OWNER: Final = {
    "pid": 1,
    "term": 1,
    "since": "2026-01-01T00:00:00Z",
    "manager": None,
    "version": "",
    "progress_age_s": 0,
    "state": "idle",
}


def test_waiting_for_a_run_ends_when_the_agent_dies(place: Place) -> None:
    place.write(FILE)
    agent = place.start()
    waiting = place.background("trigger", "long", "--wait")
    place.until_row("long", None)
    agent.kill()
    assert until(lambda: waiting.poll() is not None)
    assert waiting.returncode == 3


def test_a_command_within_a_routine_finds_the_agent_that_started_it(place: Place) -> None:
    seen = place.root / "seen"
    command = f"PYTHONPATH={ROOT}/agent {shlex.join(COMMAND)}"
    place.write(every_second("asks", run=f"{command} status --json > {seen}.new; mv {seen}.new {seen}"))
    agent = place.start()
    until(seen.exists)
    document = json.loads(seen.read_text())
    assert document["state_dir"] == str(place.state)
    assert document["config"]["path"] == str(place.file)
    assert document["owner"]["pid"] == agent.pid
    assert agent.stop() == 0
