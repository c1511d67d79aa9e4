"""Commands with something in the way: closed streams, lost directories, a damaged ledger, text that steers terminals.

Each runs as a process of its own, for what is tested happens before and behind what a runner within this one sees.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from ankita_agent.adapters.sqlite_ledger import open_owner
from ankita_agent.app.queries import next_document
from ankita_agent.core.instants import Instant, parse_instant
from ankita_agent.core.outcomes import Outcome, Reason
from ankita_agent.core.rows import End, Start
from ankita_agent.core.schedule import Timetable, parse_schedule
from ankita_agent.core.zones import zone_named
from tests.ledgers import AGENT, at, claim, routine, seated

SOURCES: Final = Path(__file__).parents[2] / "agent"
ROUTINES: Final = "routines: {a: {schedule: '0 8 * * *', run: x}, b: {schedule: every 1h, run: x}}\n"
STEERING: Final = "\x1b[2J\x9b31m\r\u202e\nforged"


class Place:
    """A state and a configuration directory, and commands over them."""

    def __init__(self, root: Path) -> None:
        self.root, self.state, self.config = root, root / "state", root / "config"
        self.config.mkdir()
        self.state.mkdir(mode=0o700)
        (self.config / "routines.yaml").write_text(ROUTINES)
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(SOURCES),
            "ANKITA_STATE_DIR": str(self.state),
            "ANKITA_CONFIG_DIR": str(self.config),
        }

    def command(self, *arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
        """Run `ankita-agent ARGUMENTS`."""
        options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | how
        words = [sys.executable, "-m", "ankita_agent", *arguments]
        return subprocess.run(words, env=self.environment, text=True, timeout=60, check=False, **options)

    def record(self, detail: str = "", description: str = "") -> None:
        """A ledger in which `backup` failed with that detail."""
        with closing(open_owner(str(self.state / "ledger.db"))) as ledger:
            term = seated(ledger, replace(routine(), description=description))
            (fire,) = ledger.settle_pass(term, at(0), [claim(0)], (), {"backup": at(0)})
            assert fire is not None
            ledger.record(
                [Start(fire, AGENT, at(0), 1, f"logs/backup/{fire}.log")],
                [End(fire, Outcome.FAILED, Reason.SPAWN, at(1), detail=detail)],
            )

    def damage(self) -> None:
        """A ledger that is no database."""
        (self.state / "ledger.db").write_bytes(b"no database at all" * 1000)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def without(descriptor: int) -> Callable[[], None]:
    """What a shell does for `2>&-`."""
    return lambda: os.close(descriptor)


@pytest.mark.parametrize(
    "arguments", [["status"], ["next"], ["history", "no"], ["bogus"], ["run", "x"], ["--help"], ["check"]]
)
@pytest.mark.parametrize("descriptor", [0, 1, 2])
def test_a_command_with_a_closed_stream_ends_as_it_would_and_is_no_fault_of_ours(
    place: Place, arguments: list[str], descriptor: int
) -> None:
    usual = place.command(*arguments)
    closed = place.command(*arguments, preexec_fn=without(descriptor))
    assert closed.returncode == usual.returncode
    assert closed.stdout == ("" if descriptor == 1 else usual.stdout)
    assert closed.stderr == ("" if descriptor == 2 else usual.stderr)


def test_the_agent_runs_without_a_stderr(place: Place) -> None:
    (place.config / "routines.yaml").write_text("routines: [")
    assert place.command("run", preexec_fn=without(2)).returncode == place.command("run").returncode == 78


def test_a_command_in_a_directory_that_was_deleted_needs_none(place: Place) -> None:
    gone = place.root / "gone"

    def be_there() -> None:
        gone.mkdir()
        os.chdir(gone)
        gone.rmdir()

    done = place.command("next", preexec_fn=be_there)
    assert (done.returncode, done.stderr) == (0, "")
    place.environment["ANKITA_STATE_DIR"] = "state"
    done = place.command("next", preexec_fn=be_there)
    assert done.returncode == 73
    assert "ANKITA_STATE_DIR=state is a relative path: the current directory cannot be found" in done.stderr
    assert "whole path" in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", [["--help"], ["next"], ["next", "-n", "9000"], ["check"], ["status", "--json"]])
def test_output_that_cannot_be_written_is_told_as_that(place: Place, arguments: list[str]) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = place.command(*arguments, stdout=full)
    assert done.returncode == 1
    assert done.stderr == "ankita-agent: cannot write the output: No space left on device\n"


TELLING: Final = """
import os, sys
from ankita_agent.cli.output import hold_output_faults, say, tell_output_from_input
tell_output_from_input()
held = hold_output_faults()
say("one")
say("two")
os.write(2, repr([type(fault).__name__ for fault in held]).encode())
"""


@pytest.mark.parametrize(("taken", "fault"), [("full", "CannotPrint"), ("closed", "BrokenPipeError")])
def test_what_changes_things_goes_on_where_nobody_takes_its_output(taken: str, fault: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-c", TELLING],
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
            stdout=full if taken == "full" else writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    os.close(writing)
    assert done.stderr.startswith(repr([fault, fault]))


@pytest.mark.parametrize("verb", ["trigger", "doctor"])
def test_its_own_fault_comes_before_that_of_its_output(place: Place, verb: str) -> None:
    usual = place.command(verb, *(["a"] if verb == "trigger" else []))
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = place.command(verb, *(["a"] if verb == "trigger" else []), stdout=full)
    assert done.returncode == usual.returncode
    assert ("cannot write the output" in done.stderr) == bool(usual.stdout)


def test_a_reader_that_goes_away_is_no_fault(place: Place) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = place.command("next", "-n", "9000", stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("way", ["logs", "logs/backup"])
def test_a_log_that_cannot_be_read_is_told_as_that_with_its_path(place: Place, way: str) -> None:
    place.record("why")
    (place.state / way).parent.mkdir(exist_ok=True)
    (place.state / way).symlink_to("/")
    done = place.command("logs", "backup")
    assert done.returncode == 1
    assert f"cannot read its output {place.state}/logs/backup/" in done.stderr
    assert "cannot write" not in done.stderr


@pytest.mark.parametrize("arguments", [["logs", "a"], ["history"], ["history", "a"], ["history", "--json"], ["list"]])
def test_a_damaged_ledger_is_told_by_whoever_needs_it(place: Place, arguments: list[str]) -> None:
    place.damage()
    done = place.command(*arguments)
    assert (done.returncode, done.stdout) == (73, "")
    assert f"the ledger {place.state}/ledger.db is damaged" in done.stderr


@pytest.mark.parametrize("arguments", [["status"], ["status", "a"], ["status", "no-such"]])
def test_status_tells_of_a_damaged_ledger_and_never_that_there_is_no_routine(
    place: Place, arguments: list[str]
) -> None:
    place.damage()
    done = place.command(*arguments)
    assert (done.returncode, done.stderr) == (3, "")
    assert "degraded the ledger" in done.stdout
    document = json.loads(place.command(*arguments, "--json").stdout)
    assert "is damaged" in document["degraded"][0]
    assert document["routines"] == []


def test_next_tells_of_a_damaged_ledger_and_shows_the_file(place: Place) -> None:
    place.damage()
    done = place.command("next", "a")
    assert done.returncode == 0
    assert "is damaged" in done.stderr
    assert "08:00" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["logs", "backup"],
        ["history"],
        ["history", "--json"],
        ["list"],
        ["list", "--json"],
        ["status"],
        ["status", "--json"],
    ],
)
def test_nothing_that_is_shown_steers_the_terminal(place: Place, arguments: list[str]) -> None:
    place.record(STEERING, STEERING)
    done = place.command(*arguments)
    shown = done.stdout + done.stderr
    assert "backup" in shown
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    assert not any(line.startswith("forged") for line in shown.splitlines())


def test_json_holds_the_very_text_that_was_recorded(place: Place) -> None:
    place.record(STEERING)
    (row,) = json.loads(place.command("history", "--json").stdout)
    assert row["detail"] == STEERING


@pytest.mark.parametrize("start", ["9999-12-31T23:59:59Z", "9899-12-31T23:59:59Z", "9950-01-01"])
@pytest.mark.parametrize("name", ["a", "b"])
def test_after_the_last_slot_none_comes_and_that_is_what_is_said(place: Place, name: str, start: str) -> None:
    done = place.command("next", name, "--from", start)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("no slot comes after 9")
    assert "disabled" not in done.stderr


@pytest.mark.parametrize("name", ["a", "b"])
def test_before_the_first_slot_all_come(place: Place, name: str) -> None:
    done = place.command("next", name, "--from", "0001-01-02T00:00:00Z", "-n", "1")
    assert done.returncode == 0
    assert "1800-01-01" in done.stdout


class Counted(Timetable):
    """A timetable that counts the searches in it."""

    searches = 0

    def next_after(self, after: Instant) -> Instant | None:
        Counted.searches += 1
        return super().next_after(after)


def test_next_searches_for_no_more_slots_than_it_shows() -> None:
    zone = zone_named("Europe/Berlin")
    plans = [
        (f"r{number}", Counted(parse_schedule(f"{number % 60} {number % 24} * * *"), zone), True)
        for number in range(120)
    ]
    document = next_document(plans, parse_instant("2026-03-03T12:00:00Z"), 500)
    assert len(document) == 500
    assert [row["slot"] for row in document] == sorted(row["slot"] for row in document)
    assert Counted.searches <= 500 + len(plans)
