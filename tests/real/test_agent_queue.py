"""More that is due than may run at once: fair, nothing lost, and what waits can be seen."""

import json
import os
from itertools import pairwise
from typing import Any, Final

import pytest

from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.app.requests import Request, Requests
from ankita_agent.core.instants import Instant
from ankita_agent.core.outcomes import Outcome, Reason, Trigger
from tests.real.agents import Place, every_second, noted, noting, unaccounted
from tests.real.waiting import until

NAMES: Final = ("a", "b", "c", "d")
ONE: Final = "settle: 1s, stop_drain: 1s, concurrency: 1"


def report(place: Place) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((place.state / "own" / "report.json").read_text())
    return document


def test_with_room_for_one_everybody_has_a_turn_and_nothing_is_lost(place: Place) -> None:
    log = place.root / "fired"
    place.write(every_second(*NAMES, run=f"{noting(log)}; exec sleep 0.3", settings=ONE, more="grace: 1h"))
    agent = place.start()
    until(lambda: len(noted(log)) >= 12)
    agent.stop()
    fired = noted(log)
    assert len(fired) == len(set(fired))
    first = [name for name, _ in fired[:4]]
    assert sorted(first) == list(NAMES), "nobody runs twice while another has not run"
    runs = {name: sum(name == each for each, _ in fired) for name in NAMES}
    assert max(runs.values()) - min(runs.values()) <= 1
    for name in NAMES:
        rows = place.rows(name)
        assert unaccounted(rows) == []
        assert {row.reason for row in rows if row.outcome is Outcome.SKIPPED} <= {
            Reason.SUPERSEDED,
            Reason.OVERLAP,
        }
    by_start = sorted((row for row in place.rows() if row.started_at is not None), key=lambda row: row.started_at or 0)
    for row, following in pairwise(by_start):
        assert row.ended_at is not None
        assert following.started_at is not None
        assert row.ended_at <= following.started_at, "one at a time"


def test_what_waits_for_room_is_listed(place: Place) -> None:
    pipe = place.root / "go"
    os.mkfifo(pipe)
    place.write(every_second("a", "b", run=f"read line < {pipe}", settings=ONE, more="grace: 1h"))
    place.start()
    place.until_row("a", None)
    (waiting, *_) = until(lambda: report(place)["waiting"])
    assert (waiting["routine"], waiting["wait"]) == ("b", "room")
    pipe.write_text("\n")
    (row, *_) = place.until_row("b", None)
    assert row.trigger is Trigger.SCHEDULE
    until(lambda: [each["routine"] for each in report(place)["waiting"]] == ["a"])
    pipe.write_text("\n")


def test_a_request_waits_for_room_and_then_runs(place: Place) -> None:
    pipe = place.root / "go"
    os.mkfifo(pipe)
    once = f"  once: {{schedule: every 1d, run: 'read line < {pipe}'}}\n  other: {{schedule: every 1d, run: 'true'}}\n"
    place.write(f"agent: {{{ONE}}}\nroutines:\n{once}")
    place.start()
    assert place.command("trigger", "once").code == 0
    place.until_row("once", None)
    asking = place.background("trigger", "other", "--wait")
    until(lambda: os.listdir(place.state / "requests"))
    assert place.rows("other") == []
    pipe.write_text("\n")
    assert asking.wait(timeout=30) == 0
    assert os.listdir(place.state / "requests") == []
    (row,) = place.rows("other")
    assert (row.outcome, row.trigger) == (Outcome.SUCCEEDED, Trigger.MANUAL)


def test_a_request_for_a_routine_that_is_removed_while_it_waits_is_answered(place: Place) -> None:
    pipe = place.root / "go"
    os.mkfifo(pipe)
    first = f"agent: {{{ONE}}}\nroutines:\n  first: {{schedule: every 1d, run: 'read line < {pipe}'}}\n"
    place.write(first + "  other: {schedule: every 1d, run: 'true'}\n")
    agent = place.start()
    assert place.command("trigger", "first").code == 0
    asking = place.background("trigger", "other", "--wait")
    until(lambda: os.listdir(place.state / "requests"))
    place.write(first)
    agent.says("removed: other")
    pipe.write_text("\n")
    assert asking.wait(timeout=30) == 4


def test_a_request_that_waits_longer_than_it_may_is_taken_back(place: Place) -> None:
    place.write(
        f"agent: {{{ONE}}}\nroutines:\n"
        "  first: {schedule: every 1d, run: exec sleep 60}\n  other: {schedule: every 1d, run: 'true'}\n"
    )
    place.start()
    assert place.command("trigger", "first").code == 0
    done = place.command("trigger", "other", "--wait", "--timeout", "300ms")
    assert done.code == 75
    assert "taken back" in done.err
    assert os.listdir(place.state / "requests") == []


def test_a_slot_that_comes_while_the_run_before_goes_on_is_skipped_with_what_was_in_the_way(place: Place) -> None:
    place.write(every_second("slow", run="exec sleep 2.5"))
    agent = place.start()
    rows = until(lambda: (found := place.rows("slow"))[2:] and found)
    (fire,) = (row.fire for row in rows[:1])
    assert [(row.outcome, row.reason, row.blocked_by) for row in rows[1:2]] == [(Outcome.SKIPPED, Reason.OVERLAP, fire)]
    assert "slow" in place.command("status").out
    agent.stop()
    assert unaccounted(place.rows("slow")) == []


def test_of_many_requests_at_once_each_runs_once_or_is_skipped(place: Place) -> None:
    log = place.root / "log"
    place.write(f"agent: {{{ONE}}}\nroutines:\n  once: {{schedule: every 1d, run: echo x >> {log}}}\n")
    agent = place.start()
    claim = json.loads((place.state / "own" / "claim.json").read_text())
    files = PosixFiles()
    requests = Requests(files, files.open_directory(str(place.state)))
    for number in range(100):
        requests.ask(Request(f"{number:016x}", "once", Instant(1), Trigger.MANUAL, claim["token"]))
    until(lambda: os.listdir(place.state / "requests") == [])
    until(lambda: place.open_fires() == [])
    rows = place.rows("once")
    assert len(rows) == 100
    succeeded = [row for row in rows if row.outcome is Outcome.SUCCEEDED]
    assert len(succeeded) == len(log.read_text().splitlines()) >= 1
    assert {row.reason for row in rows} <= {None, Reason.OVERLAP}
    agent.stop()


def test_what_is_no_request_is_removed_and_disturbs_nobody(place: Place) -> None:
    place.write(every_second("beat"))
    agent = place.start()
    for number, content in enumerate(["", "[]", '{"routine": "be']):
        (place.state / "requests" / f"{number:016x}.json").write_text(content)
    (place.state / "requests" / f"{9:016x}.json").mkdir()
    (place.state / "requests" / "login.json").write_text("somebody's own")
    until(lambda: sorted(os.listdir(place.state / "requests")) == [f"{9:016x}.json", "login.json"])
    count = len(place.rows("beat"))
    until(lambda: len(place.rows("beat")) > count + 1)
    assert place.command("trigger", "beat", "--wait").code in (0, 75)
    assert agent.stop() == 0


@pytest.mark.parametrize(("limit", "raised"), [("-n", False), ("-Sn", True)])
def test_with_few_descriptors_what_is_due_together_waits_and_nothing_fails(
    place: Place, limit: str, raised: bool
) -> None:
    names = [f"r{number}" for number in range(60)]
    settings = "settle: 1s, stop_drain: 1s, concurrency: 60"
    place.write(every_second(*names, run="exec sleep 0.2", settings=settings, more="grace: 1h"))
    agent = place.start(before=("sh", "-c", f'ulimit {limit} 110 && exec "$@"', "sh"))
    succeeded = {name: place.until_row(name, Outcome.SUCCEEDED) for name in names}
    assert len(succeeded) == len(names)
    assert [row.detail for row in place.rows() if row.outcome is Outcome.FAILED] == []
    assert ("no room to start routine" in agent.said) is not raised
    assert agent.stop() == 0
