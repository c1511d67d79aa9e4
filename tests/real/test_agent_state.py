"""State that cannot be used, or not any more: refused with the cure, or degraded until it is mended."""

import os
import shutil
import signal
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

import pytest

from ankita_agent.core.outcomes import Outcome, Reason
from tests.real.agents import Agent, Place, every_second, noted, noting, unaccounted
from tests.real.disks import fill, mounted
from tests.real.waiting import until


def link(state: Path) -> None:
    state.with_name("target").mkdir(0o700)
    state.symlink_to("target")


def file(state: Path) -> None:
    state.write_text("")


def open_to_others(state: Path) -> None:
    state.mkdir(0o755)
    state.chmod(0o755)


REFUSALS: Final[dict[Callable[[Path], None], tuple[str, str]]] = {
    link: ("symbolic link", "ANKITA_STATE_DIR="),
    file: ("not a directory", "move"),
    open_to_others: ("mode is 0755", "chmod 700"),
}


@pytest.mark.parametrize("make", REFUSALS, ids=lambda each: each.__name__)
def test_a_state_directory_that_cannot_be_trusted_is_refused_with_the_cure(
    place: Place, make: Callable[[Path], None]
) -> None:
    make(place.state)
    place.write(every_second("beat"))
    agent = place.begin()
    assert agent.ended() == 73
    for words in REFUSALS[make]:
        assert words in agent.said
    assert "nothing was changed" in agent.said
    assert place.command("status").code in (3, 73)


@pytest.mark.needs("root")
def test_a_state_directory_of_another_user_is_refused(place: Place) -> None:
    place.state.mkdir(0o700)
    os.chown(place.state, 65534, 65534)
    agent = place.begin()
    assert agent.ended() == 73
    assert "belongs to user 65534" in agent.said


@pytest.fixture
def ordinary() -> Iterator[Place]:
    """A place of an ordinary user, for whom a mode means something."""
    with tempfile.TemporaryDirectory(prefix="ankita-") as name:
        root = Path(name)
        with Place(root) as found:
            found.inside = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
            for path in (root, found.config):
                shutil.chown(path, "nobody", "nogroup")
            yield found


@pytest.mark.needs("user-switch")
def test_a_state_directory_that_may_not_be_written_is_refused(ordinary: Place) -> None:
    ordinary.state.mkdir(0o500)
    shutil.chown(ordinary.state, "nobody", "nogroup")
    agent = ordinary.begin()
    assert agent.ended() == 73
    assert "Permission denied" in agent.said
    assert "ANKITA_STATE_DIR" in agent.said
    assert ordinary.command("status").code == 3


@pytest.mark.needs("user-switch")
def test_a_state_directory_that_may_not_be_made_is_refused(ordinary: Place) -> None:
    ordinary.root.chmod(0o500)
    agent = ordinary.begin()
    assert agent.ended() == 73
    assert "Permission denied" in agent.said


@pytest.mark.needs("user-switch")
def test_an_ordinary_user_whose_directories_lose_their_modes_is_degraded_and_goes_on(ordinary: Place) -> None:
    ordinary.write(every_second("beat", more="cwd: /"))
    shutil.chown(ordinary.file, "nobody", "nogroup")
    agent = ordinary.start()
    ordinary.until_row("beat", Outcome.SUCCEEDED)
    logs = ordinary.state / "logs" / "beat"
    logs.chmod(0o500)
    (row, *_) = ordinary.until_row("beat", Outcome.FAILED)
    assert row.reason is Reason.SPAWN
    assert "Permission denied" in row.detail
    logs.chmod(0o700)
    (ordinary.state / "run").chmod(0o000)
    (ordinary.state / "requests").chmod(0o000)
    ordinary.command("trigger", "beat")
    (ordinary.state / "run").chmod(0o700)
    (ordinary.state / "requests").chmod(0o700)
    count = len(ordinary.rows("beat"))
    until(lambda: any(row.outcome is Outcome.SUCCEEDED for row in ordinary.rows("beat")[count:]))
    assert agent.stop() == 0
    assert unaccounted(ordinary.rows("beat")) == []


@pytest.mark.needs("mount")
def test_a_read_only_disk_is_refused_with_the_cure(place: Place) -> None:
    with mounted(place, "mount", "-t", "tmpfs", "-o", "ro", "tmpfs"):
        agent = place.begin()
        assert agent.ended() == 73
        assert "Read-only file system" in agent.said
        assert "mount it writable" in agent.said


@pytest.mark.needs("bindfs")
def test_a_file_system_where_locks_may_lie_is_refused_with_the_cure(place: Place) -> None:
    (place.root / "below").mkdir()
    with mounted(place, "bindfs", str(place.root / "below")):
        agent = place.begin()
        assert agent.ended() == 73
        assert "fuse" in agent.said
        assert "local disk" in agent.said


@pytest.mark.needs("mount")
def test_a_full_disk_at_the_start_is_refused_with_the_cure_and_mended_by_room(place: Place) -> None:
    place.write(every_second("beat"))
    with mounted(place, "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs") as disk:
        ballast = fill(disk)
        agent = place.begin()
        assert agent.ended() == 73
        assert "No space left" in agent.said or "full" in agent.said
        assert "df -h" in agent.said or "free some space" in agent.said
        ballast.unlink()
        place.start()
        place.until_row("beat", Outcome.SUCCEEDED)


@pytest.mark.needs("mount")
def test_a_disk_that_fills_up_stops_every_fire_is_said_and_goes_on_by_itself(place: Place) -> None:
    log = place.root / "fired"
    place.write(every_second("beat", "pulse", run=noting(log)))
    with mounted(place, "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs") as disk:
        agent = place.start()
        place.until_row("beat", Outcome.SUCCEEDED)
        ballast = fill(disk)
        agent.says("degraded: ")
        until(lambda: (fill(disk), "nothing fires" in agent.said)[1])
        agent.says("degraded: nothing fires")
        fired = len(noted(log))
        until(lambda: place.command("status").code == 1)
        assert len(noted(log)) <= fired + 2
        ballast.unlink()
        agent.says("well again: ledger")
        until(lambda: len(noted(log)) > fired + 4)
        assert agent.stop() == 0
        fired_slots = noted(log)
        assert len(fired_slots) == len(set(fired_slots))
        for name in ("beat", "pulse"):
            assert unaccounted(place.rows(name)) == []
            fires = {row.slot for row in place.rows(name) if row.claimed_at}
            assert len([each for each, _ in fired_slots if each == name]) <= len(fires)
        assert place.open_fires() == []


def spoil(ledger: Path) -> None:
    """As a bad disk does: the pages of the database, in place."""
    with ledger.open("r+b") as opened:
        opened.seek(0)
        opened.write(b"\xde\xad" * 2048)


def test_a_ledger_that_is_damaged_at_the_start_is_set_aside(place: Place) -> None:
    log = place.root / "fired"
    place.write(every_second("beat", run=noting(log)))
    agent = place.start()
    place.until_row("beat", Outcome.SUCCEEDED)
    assert agent.stop() == 0
    spoil(place.state / "ledger.db")
    assert place.command("status").code in (1, 3)
    agent = place.start()
    assert "the ledger was damaged and is kept as" in agent.said
    place.until_row("beat", Outcome.SUCCEEDED)
    assert [name for name in os.listdir(place.state) if ".damaged-" in name]
    rows = place.rows("beat")
    assert (rows[0].outcome, rows[0].reason) == (Outcome.MISSED, Reason.LEDGER)
    assert rows[-1].term > 1
    assert agent.stop() == 0
    assert len(noted(log)) == len(set(noted(log)))


def test_a_ledger_that_is_damaged_under_a_running_agent_lets_nothing_fire_twice(place: Place) -> None:
    log = place.root / "fired"
    place.write(every_second("beat", run=noting(log)))
    agent = place.start()
    place.until_row("beat", Outcome.SUCCEEDED)
    spoil(place.state / "ledger.db")
    fired = len(noted(log))
    until(lambda: len(noted(log)) > fired + 1)  # what it needs is in its memory
    agent.kill()
    agent = place.start()
    fired = len(noted(log))
    until(lambda: len(noted(log)) > fired + 1)
    assert agent.stop() == 0
    assert len(noted(log)) == len(set(noted(log)))
    assert unaccounted(place.rows("beat")) == []


def test_a_ledger_of_a_newer_version_is_left_alone(place: Place) -> None:
    place.write(every_second("beat"))
    assert place.start().stop() == 0
    path = place.state / "ledger.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    agent = place.begin()
    assert agent.ended() == 73
    assert "version 99" in agent.said
    assert path.read_bytes() == before
    status = place.command("status", "--json")
    assert status.code == 3
    assert "version 99" in "\n".join(status.json["degraded"])


LEDGER: Final = ("ledger.db", "ledger.db-wal", "ledger.db-shm")


@pytest.mark.parametrize("names", [LEDGER[:1], LEDGER, LEDGER[1:2], LEDGER[1:]], ids=" ".join)
def test_a_ledger_that_is_deleted_while_the_agent_runs_is_noticed(place: Place, names: tuple[str, ...]) -> None:
    log = place.root / "fired"
    place.write(every_second("beat", run=noting(log)))
    agent = place.start()
    place.until_row("beat", Outcome.SUCCEEDED)
    for name in names:
        (place.state / name).unlink()
    agent.says(" was removed or replaced")
    fired = len(noted(log))
    until(lambda: len(noted(log)) > fired + 1)
    until(lambda: place.rows("beat"))
    assert place.rows("beat")[0].reason is Reason.LEDGER
    assert agent.stop() == 0
    assert len(noted(log)) == len(set(noted(log)))


def test_a_ledger_that_was_restored_from_an_older_copy_fires_nothing_twice(place: Place) -> None:
    log = place.root / "fired"
    place.write(every_second("beat", run=noting(log)))
    agent = place.start()
    place.until_row("beat", Outcome.SUCCEEDED)
    assert agent.stop() == 0
    path = place.state / "ledger.db"
    copy = path.read_bytes()
    agent = place.start()
    fired = len(noted(log))
    until(lambda: len(noted(log)) > fired + 1)
    assert agent.stop() == 0
    path.write_bytes(copy)
    agent = place.start()
    assert "owner of term 3" in agent.said
    fired = len(noted(log))
    until(lambda: len(noted(log)) > fired + 1)
    assert agent.stop() == 0
    assert len(noted(log)) == len(set(noted(log)))
    rows = place.rows("beat")
    assert unaccounted(rows) == []
    assert [row.count for row in rows if row.reason is Reason.LEDGER]
    fires = [row.fire for row in rows if row.term == 3 and row.claimed_at]
    assert min(fires) >= 3_000_000, "no number of a fire is given twice"


def backup(ledger: Path, copy: Path) -> None:
    """Copy a ledger in use, as `sqlite3 ledger.db .backup` does."""
    with closing(sqlite3.connect(ledger)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)


def restore(place: Place, copy: Path) -> None:
    """Put a copy in the place of the ledger."""
    for name in LEDGER:
        (place.state / name).unlink(missing_ok=True)
    shutil.copy(copy, place.state / LEDGER[0])


@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
def test_a_ledger_that_was_restored_from_a_copy_of_the_same_term_fires_nothing_twice(
    place: Place, killed: bool
) -> None:
    log, copy = place.root / "fired", place.root / "copy"
    place.write(every_second("beat", run=noting(log)))
    agent = place.start()
    place.until_row("beat", Outcome.SUCCEEDED)
    backup(place.state / "ledger.db", copy)
    place.until_row("beat", Outcome.SUCCEEDED, count=3)
    assert agent.stop(signal.SIGKILL if killed else signal.SIGTERM) == (-signal.SIGKILL if killed else 0)
    known = max(row.fire for row in place.rows("beat"))
    restore(place, copy)
    agent = place.start()
    fired = len(noted(log))
    until(lambda: len(noted(log)) > fired + 1)
    assert agent.stop() == 0
    assert len(noted(log)) == len(set(noted(log)))
    rows = place.rows("beat")
    assert unaccounted(rows) == []
    assert [row.count for row in rows if row.reason is Reason.LEDGER]
    assert min(row.fire for row in rows if row.term == 2 and row.claimed_at) > known, "no number is given twice"
    agent = place.start()
    place.until_row("beat", Outcome.SUCCEEDED)
    assert agent.stop() == 0
    assert not [row for row in place.rows("beat") if row.term == 3 and row.reason is Reason.LEDGER]


def test_a_log_that_is_removed_just_before_its_agent_is_killed_lets_nothing_fire_twice(place: Place) -> None:
    log = place.root / "fired"
    place.write(every_second("beat", run=noting(log)))
    agent = place.start()
    place.until_row("beat", Outcome.SUCCEEDED)
    with closing(sqlite3.connect(place.state / "ledger.db")) as shell:
        shell.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    fired = len(noted(log))
    until(lambda: len(noted(log)) > fired + 1)
    agent.send(signal.SIGSTOP)  # no pass may see it
    for name in LEDGER[1:]:
        (place.state / name).unlink()
    agent.kill()
    agent = place.start()
    fired = len(noted(log))
    until(lambda: len(noted(log)) > fired + 1)
    assert agent.stop() == 0
    assert len(noted(log)) == len(set(noted(log)))
    assert [row.count for row in place.rows("beat") if row.reason is Reason.LEDGER]


PAGE: Final = 4096


def spoil_page(ledger: Path, number: int) -> None:
    """Overwrite one page of the database, in place."""
    with ledger.open("r+b") as opened:
        opened.seek(number * PAGE)
        opened.write(b"\xa5" * PAGE)


def copies_of(place: Place, root: Path) -> Iterator[tuple[int, Place]]:
    """A place for each page of a ledger, each with a copy of the state of a stopped agent."""
    for number in range((place.state / "ledger.db").stat().st_size // PAGE):
        (root / f"page-{number}").mkdir()
        other = Place(root / f"page-{number}")
        shutil.copytree(place.state, other.state)
        shutil.copy(place.root / "fired", other.root / "fired")
        other.write(every_second("beat", run=noting(other.root / "fired")))
        yield number, other


def prove_it_went_on(agent: Agent, other: Place, begun: int) -> None:
    """It has fired since, nothing twice, and took at most two terms for it."""
    log = other.root / "fired"
    until(lambda: len(noted(log)) > begun + 1, f"a fire in {other.root}")
    assert len(noted(log)) == len(set(noted(log)))
    assert agent.said.count("owner of term") <= 2


def test_whichever_page_of_a_ledger_is_spoilt_the_next_agent_goes_on_in_two_terms(place: Place) -> None:
    log = place.root / "fired"
    place.write(every_second("beat", run=noting(log)))
    agent = place.start()
    place.until_row("beat", Outcome.SUCCEEDED, count=2)
    assert agent.stop() == 0
    begun = len(noted(log))
    with ExitStack() as stack:
        spoilt = [stack.enter_context(other) for _, other in copies_of(place, place.root)]
        for number, other in enumerate(spoilt):
            spoil_page(other.state / "ledger.db", number)
        agents = [other.begin() for other in spoilt]
        for agent, other in zip(agents, spoilt, strict=True):
            prove_it_went_on(agent, other, begun)
            assert agent.stop() == 0


def test_whichever_page_is_spoilt_under_a_running_agent_it_and_the_next_one_go_on(place: Place) -> None:
    log = place.root / "fired"
    place.write(every_second("beat", run=noting(log)))
    agent = place.start()
    place.until_row("beat", Outcome.SUCCEEDED, count=2)
    assert agent.stop() == 0
    begun = len(noted(log))
    with ExitStack() as stack:
        spoilt = [stack.enter_context(other) for _, other in copies_of(place, place.root)]
        agents = [other.begin() for other in spoilt]
        for number, (agent, other) in enumerate(zip(agents, spoilt, strict=True)):
            agent.says(" in force")
            spoil_page(other.state / "ledger.db", number)
            other.file.touch()
        for agent, other in zip(agents, spoilt, strict=True):
            prove_it_went_on(agent, other, begun)
            agent.kill()
        begun = max(len(noted(other.root / "fired")) for other in spoilt)
        agents = [other.begin() for other in spoilt]
        for agent, other in zip(agents, spoilt, strict=True):
            prove_it_went_on(agent, other, begun)
            assert agent.stop() == 0


def test_output_that_cannot_be_kept_fails_the_run_and_nothing_else(place: Place) -> None:
    place.write(every_second("beat", "pulse"))
    (place.state / "logs").mkdir(parents=True)
    place.state.chmod(0o700)
    (place.state / "logs" / "beat").write_text("in the way")
    agent = place.start()
    (row, *_) = place.until_row("beat", Outcome.FAILED)
    assert row.reason is Reason.SPAWN
    assert row.detail
    place.until_row("pulse", Outcome.SUCCEEDED)
    assert place.command("logs", "beat").code == 0
    assert agent.stop() == 0


def test_a_lock_that_cannot_be_opened_keeps_its_routine_from_starting_and_no_other(place: Place) -> None:
    place.write(every_second("beat", "pulse"))
    (place.state / "run" / "beat.lock").mkdir(parents=True)
    place.state.chmod(0o700)
    agent = place.start()
    agent.says("degraded: not everything that is asked for can start")
    place.until_row("pulse", Outcome.SUCCEEDED)
    (row, *_) = place.until_row("beat", Outcome.SKIPPED)
    assert row.reason is Reason.SUPERSEDED
    (place.state / "run" / "beat.lock").rmdir()
    place.until_row("beat", Outcome.SUCCEEDED)
    agent.says("well again: starts")
    assert agent.stop() == 0
    assert unaccounted(place.rows("beat")) == []


@pytest.mark.parametrize("limit", [40, 60])
def test_an_agent_without_descriptors_is_degraded_and_never_dead(place: Place, limit: int) -> None:
    names = [f"r{number}" for number in range(30)]
    settings = "settle: 1s, stop_drain: 1s, concurrency: 50"
    place.write(every_second(*names, run="exec sleep 1.5; (sleep 1 &)", settings=settings))
    agent = place.start(before=("sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh"))
    agent.says("open files")
    count = len(place.rows())
    until(lambda: len(place.rows()) > count + 60)
    assert place.command("status").code == 1
    place.write(every_second("only"))
    agent.says("new: only")
    assert agent.stop() == 0
    assert place.open_fires() == []
    for name in names:
        assert unaccounted(place.rows(name)) == []


def test_an_agent_whose_new_ledger_is_damaged_at_once_ends_what_runs_and_says_why(place: Place) -> None:
    place.write(every_second("long", run="exec sleep 60"))
    agent = place.start()
    place.until_row("long", None)
    (place.state / "ledger.db-wal").unlink()
    agent.says("owner of term 2")
    place.until_row("long", Outcome.SKIPPED)
    (place.state / "ledger.db-wal").unlink()
    assert agent.ended() == 73
    assert "it was new" in agent.said
    assert agent.said.count("owner of term") == 2
    assert place.processes() == []
    place.start()
    assert [row.term for row in place.until_row("long", None)] == [3]
