"""Saving routines.yaml: the good is in force within two seconds, the bad changes nothing and is said."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Final

import pytest

from ankita_agent.core.outcomes import Outcome
from tests.real.agents import Agent, Place, every_second, lines_of
from tests.real.waiting import until

BEFORE: Final = every_second("before")
AFTER: Final = every_second("after")
BAD: Final = "routines:\n  before: {schedule: never ever, run: echo}\n"
IN_FORCE_WITHIN: Final = 2.0


def write_in_place(place: Place, text: str) -> None:
    place.write(text)


def write_slowly(place: Place, text: str) -> None:
    """As an editor that truncates, then writes in pieces."""
    with place.file.open("w") as file:
        for piece in (text[:10], text[10:]):
            file.write(piece)
            file.flush()


def rename_over(place: Place, text: str) -> None:
    fresh = place.config / "routines.yaml.new"
    fresh.write_text(text)
    fresh.rename(place.file)


def delete_and_put_back(place: Place, text: str) -> None:
    place.file.unlink()
    place.write(text)


def swap_target(place: Place, text: str) -> None:
    """As a dotfile manager: the file is a link, and its target is replaced by another."""
    target = place.root / "dotfiles" / "routines.yaml"
    fresh = target.with_name("fresh")
    fresh.write_text(text)
    fresh.rename(target)


def swap_link(place: Place, text: str) -> None:
    """As home-manager: the link itself is replaced by one to another directory."""
    generation = place.root / "generation-2"
    generation.mkdir()
    (generation / "routines.yaml").write_text(text)
    link = place.config / "link"
    link.symlink_to(generation / "routines.yaml")
    link.rename(place.file)


SAVES: Final = [write_in_place, write_slowly, rename_over, delete_and_put_back, swap_target, swap_link]


@pytest.mark.parametrize("save", SAVES, ids=lambda each: each.__name__)
def test_a_saved_file_is_in_force_within_two_seconds(place: Place, save: Callable[[Place, str], None]) -> None:
    if save in (swap_target, swap_link):
        (place.root / "dotfiles").mkdir()
        target = place.root / "dotfiles" / "routines.yaml"
        target.write_text(BEFORE)
        place.file.symlink_to(target)
    else:
        place.write(BEFORE)
    agent = place.start()
    saved = time.monotonic()
    save(place, AFTER)
    agent.says("new: after; removed: before")
    assert time.monotonic() - saved < IN_FORCE_WITHIN
    place.until_row("after", Outcome.SUCCEEDED)
    assert [routine["name"] for routine in place.status()["routines"]] == ["after"]
    assert place.status()["degraded"] == []


def test_a_bad_file_leaves_what_was_good_in_force_also_across_a_kill_until_it_is_mended(place: Place) -> None:
    place.write(BEFORE)
    agent = place.start()
    place.write(BAD)
    agent.says(f"{place.file}:2")
    refused(place)
    count = len(place.rows("before"))
    until(lambda: len(place.rows("before")) > count + 1)
    agent.kill()
    agent = place.start(says=f"{place.file}:2")
    refused(place)
    count = len(place.rows("before"))
    until(lambda: len(place.rows("before")) > count + 1)
    place.write(AFTER)
    agent.says("well again")
    done = place.command("status", "--json")
    assert (done.code, done.json["config"]["ok"], done.json["config"]["error"]) == (0, True, None)
    assert place.command("check").code == 0
    assert agent.stop() == 0


def refused(place: Place) -> None:
    """The newest edit is not in force, and every way of asking says so."""
    until(lambda: not place.status()["config"]["ok"])
    done = place.command("status", "--json")
    assert done.code == 1
    assert "routines.yaml:2" in done.json["config"]["error"]
    assert done.json["degraded"]
    assert [routine["name"] for routine in done.json["routines"]] == ["before"]
    text = place.command("status")
    assert text.code == 1
    assert "degraded" in text.out
    assert place.command("check").code == 78


def test_a_file_that_is_deleted_leaves_its_routines_in_force_and_that_is_said(place: Place) -> None:
    place.write(BEFORE)
    agent = place.start()
    place.file.unlink()
    agent.says("the file is gone")
    count = len(place.rows("before"))
    until(lambda: len(place.rows("before")) > count + 1)
    assert place.command("status").code == 1
    place.write(BEFORE)
    agent.says("well again")
    assert place.command("status").code == 0


def test_a_file_that_was_moved_away_before_a_start_is_missed_loudly_until_it_is_back(place: Place) -> None:
    place.write(BEFORE)
    place.start().stop()
    place.file.unlink()
    agent = place.start(says="does not fire: before")
    until(lambda: place.status()["degraded"])
    shown = place.command("status")
    assert (shown.code, "1 routine from before does not fire: before" in shown.out) == (1, True)
    assert place.status()["config"]["ok"] is False
    command = place.degraded().partition("to have it again: ")[2].partition("    to have none")[0]
    assert subprocess.run(["sh", "-c", command], check=True).returncode == 0
    agent.says("1 routine in force")
    until(lambda: place.command("status").code == 0)


def test_comments_and_order_change_nothing_and_runs_end_as_they_began(place: Place) -> None:
    pipe = place.root / "go"
    os.mkfifo(pipe)
    slow = f"  slow: {{schedule: every 1s, run: 'read line < {pipe}', description: the same}}\n"
    place.write(every_second("beat") + slow)
    agent = place.start()
    (row,) = place.until_row("slow", None)
    head, beat = every_second("beat").split("routines:\n")
    same = f"# a comment\n{head}routines:\n{slow}{beat}"
    place.write(same)
    until(lambda: (place.state / "last-good.yaml").read_text() == same)
    assert lines_of(agent.said, r"\((new|changed|removed)") == []
    count = len(place.rows("beat"))
    until(lambda: len(place.rows("beat")) > count + 1)
    pipe.write_text("\n")
    until(lambda: place.rows("slow")[0].outcome is Outcome.SUCCEEDED)
    assert place.rows("slow")[0].fire == row.fire


def test_a_routine_that_is_removed_while_it_runs_ends_as_it_began(place: Place) -> None:
    pipe = place.root / "go"
    os.mkfifo(pipe)
    place.write(every_second("slow", run=f"read line < {pipe}; exit 7"))
    agent = place.start()
    place.until_row("slow", None)
    place.write(AFTER)
    agent.says("removed: slow")
    pipe.write_text("\n")
    agent.says("failed with exit status 7")
    (row, *_) = place.until_row("slow", Outcome.FAILED)
    assert row.exit_code == 7


def test_a_bad_file_where_there_never_was_a_good_one_is_refused_with_78(place: Place) -> None:
    place.write(BAD)
    agent = place.begin()
    assert agent.ended() == 78
    assert "routines.yaml:2" in agent.said
    assert "ankita-agent check" in agent.said


def test_without_a_file_an_agent_owns_and_waits_for_one(place: Place) -> None:
    agent = place.start(says="no routine is in force")
    assert place.command("status").code == 0
    place.write(AFTER)
    agent.says("new: after")
    place.until_row("after", Outcome.SUCCEEDED)


def test_a_configuration_directory_that_is_made_later_is_noticed(place: Place) -> None:
    place.config.rmdir()
    agent = place.start(says="no routine is in force")
    place.config.mkdir()
    saved = time.monotonic()
    place.write(AFTER)
    agent.says("new: after")
    assert time.monotonic() - saved < IN_FORCE_WITHIN


def test_a_configuration_directory_below_others_that_are_made_later_is_noticed(place: Place) -> None:
    place.config = place.root / "some" / "where"
    place.file = place.config / "routines.yaml"
    agent = place.start(says="no routine is in force")
    place.config.mkdir(parents=True)
    place.write(AFTER)
    agent.says("new: after")


def test_a_configuration_directory_that_is_replaced_is_noticed(place: Place) -> None:
    place.write(BEFORE)
    agent = place.start()
    place.config.rename(place.root / "old")
    place.config.mkdir()
    place.write(AFTER)
    agent.says("new: after; removed: before")
    place.write(BEFORE)
    agent.says("new: before; removed: after")


def test_a_hang_up_without_a_terminal_reloads(place: Place) -> None:
    place.write(BEFORE)
    agent = place.start()
    agent.send(signal.SIGHUP)
    agent.says("in force", times=1)
    until(lambda: alive_and_firing(agent, place))
    assert agent.stop() == 0


def alive_and_firing(agent: Agent, place: Place) -> bool:
    assert agent.alive
    return len([row for row in place.rows("before") if row.outcome is Outcome.SUCCEEDED]) > 1


def test_a_changed_schedule_begins_now_and_never_catches_up(place: Place) -> None:
    place.write("routines:\n  it: {schedule: daily 00:00, run: 'true'}\n")
    agent = place.start()
    place.write("routines:\n  it: {schedule: every 1s, run: 'true'}\n")
    agent.says("changed: it")
    rows = place.until_row("it", Outcome.SUCCEEDED, count=2)
    assert {row.trigger.value for row in rows} == {"schedule"}
    assert {row.outcome for row in place.rows("it")} <= {Outcome.SUCCEEDED, None}
