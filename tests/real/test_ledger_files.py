"""The ledger on real files: killed writers, full and read-only disks, damage, odd names, several at once."""

import os
import shlex
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ankita_agent.adapters.sqlite_ledger import open_owner, open_reader, set_aside
from ankita_agent.adapters.sqlite_ledger.connection import LARGEST_LOG
from ankita_agent.core.errors import Fenced, LedgerDamaged, LedgerUnavailable
from ankita_agent.core.instants import MILLISECOND, Duration
from tests.ledgers import AGENT, BOOT, at, claim, fire_now, missed, seated, spans
from tests.real.ledger_children import BATCH, child_of, outcome_of, said

MOMENT = Duration(20 * MILLISECOND)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where the ledger is to stand."""
    return str(tmp_path / "ledger.db")


@pytest.fixture
def crashed(path: str) -> str:
    """A ledger whose second owner was killed: a fire in the database, and two newer rows in the log."""
    with closing(open_owner(path)) as ledger:
        fire_now(ledger, seated(ledger, token="earlier"), claim(-1 / 2))
    with child_of("crash", path) as child:
        child.wait(timeout=30)
    assert os.stat(f"{path}-wal").st_size > 0
    return path


def content_of(path: str) -> dict[str, bytes]:
    """The ledger's files, by what stands behind its name."""
    directory, name = os.path.split(path)
    found = sorted(other for other in os.listdir(directory) if other.startswith(name))
    return {other.removeprefix(name): Path(directory, other).read_bytes() for other in found}


# --- killed in the middle --------------------------------------------------------------------------


@pytest.mark.parametrize("passes", [1, 2, 3, 7, 20, 50])
def test_after_a_kill_exactly_the_passes_that_were_committed_are_there(path: str, passes: int) -> None:
    with child_of("write-on-and-on", path) as child:
        for _ in range(passes):
            told = int(said(child))
        child.kill()
        assert child.stdout is not None
        told = max([told, *map(int, child.stdout.read().split())])
        child.wait()
    with closing(open_owner(path)) as ledger:
        rows = ledger.history(None, 10**6)
        committed, rest = divmod(len(rows), BATCH)
        assert rest == 0
        assert committed in (told + 1, told + 2)  # one may have been durable and not yet told
        assert {account.accounted_until for account in ledger.accounts().values()} == {at(committed - 1)}
        assert len(ledger.open_fires()) == len(rows)


def test_a_kill_in_the_middle_of_a_transaction_leaves_nothing_of_it_and_no_lock(path: str) -> None:
    with child_of("stop-in-a-transaction", path) as child:
        assert said(child) == "inside"
        with pytest.raises(LedgerUnavailable) as refused:
            open_owner(path, patience=MOMENT).begin_term(0, "two", AGENT, at(61))
        assert "SQLITE_BUSY" in refused.value.fact
        child.kill()
        child.wait()
    with closing(open_owner(path)) as ledger:
        assert [span[:3] for span in spans(ledger)] == [(0, 60, 13)]
        assert ledger.accounts()["backup"].accounted_until == at(60)
        assert ledger.begin_term(0, "two", AGENT, at(61)) == 2


def test_a_reader_sees_what_a_killed_owner_had_committed_and_writes_nothing(crashed: str) -> None:
    before = content_of(crashed)
    reader = open_reader(crashed)
    assert reader is not None
    assert len(reader.history(None, 9)) == 3
    assert len(reader.open_fires()) == 2
    reader.close()
    after = content_of(crashed)
    assert (after[""], after["-wal"]) == (before[""], before["-wal"])


def test_a_reader_manages_without_the_index_of_the_log(crashed: str) -> None:
    os.unlink(f"{crashed}-shm")
    reader = open_reader(crashed)
    assert reader is not None
    assert len(reader.history(None, 9)) == 3
    reader.close()


def test_the_next_owner_finds_the_open_fire_and_does_not_win_its_slot(crashed: str) -> None:
    with closing(open_owner(crashed)) as ledger:
        term = ledger.begin_term(0, "two", AGENT, at(6))
        assert [fire.token for fire in ledger.open_fires()] == ["earlier", "one"]
        assert ledger.settle_pass(term, at(6), [claim(0)], [], {}) == [None]


# --- several at once -------------------------------------------------------------------------------


def test_a_reader_beside_a_writing_owner_is_never_held_up_and_sees_whole_passes(path: str) -> None:
    with child_of("write-on-and-on", path) as child:
        told = int(said(child))
        reader = open_reader(path, patience=Duration(0))
        assert reader is not None
        for _ in range(30):
            rows = reader.history(None, 10**6)
            assert len(rows) % BATCH == 0
            assert len(rows) >= BATCH * (told + 1)
            told = int(said(child))
        reader.close()


def test_two_processes_that_race_for_the_same_slots_never_win_one_twice(path: str) -> None:
    with closing(open_owner(path)) as ledger:
        term = seated(ledger)
        with child_of("race", path, term) as one, child_of("race", path, term) as two:
            assert [said(one), said(two)] == ["ready", "ready"]
            for child in (one, two):
                assert child.stdin is not None
                child.stdin.write("go\n")
                child.stdin.flush()
            wins = [int(word) for child in (one, two) for word in child.communicate(timeout=60)[0].split()]
        assert sorted(wins) == list(range(200))
        assert len(ledger.history(None, 1000)) == 200


def test_an_owner_with_an_old_term_is_fenced_through_another_connection(path: str) -> None:
    with closing(open_owner(path)) as old, closing(open_owner(path)) as new:
        term = seated(old)
        assert new.begin_term(0, "two", AGENT, at(0)) == term + 1
        with pytest.raises(Fenced):
            old.settle_pass(term, at(0), [claim(0)], [], {})
        with pytest.raises(Fenced):
            old.settle_pass(term, at(0), [], [], {})
        assert new.history(None, 9) == []
        fire_now(new, term + 1, claim(0))


def test_a_ledger_that_somebody_holds_is_busy_and_usable_afterwards(path: str) -> None:
    with closing(open_owner(path, patience=MOMENT)) as ledger:
        term = seated(ledger)
        with closing(sqlite3.connect(path, isolation_level=None)) as shell:
            shell.execute("BEGIN IMMEDIATE")
            with pytest.raises(LedgerUnavailable) as refused:
                ledger.settle_pass(term, at(0), [claim(0)], [missed(5)], {"backup": at(5)})
            assert "SQLITE_BUSY" in refused.value.fact
            assert refused.value.now == "nothing was recorded, so nothing was fired"
            assert ledger.history(None, 9) == []  # reading goes on
            shell.execute("ROLLBACK")
        fire_now(ledger, term, claim(0))


# --- disks -----------------------------------------------------------------------------------------


@pytest.mark.needs("mount")
def test_on_a_full_disk_nothing_is_claimed_and_it_goes_on_when_there_is_space(tmp_path: Path) -> None:
    lines = outcome_of("fill-the-disk", tmp_path, before=("unshare", "--mount"))
    assert lines == [
        "refused: database or disk is full (SQLITE_FULL)",
        "whole: True",
        "marks: True",
        "again: True",
    ]


@pytest.mark.needs("mount")
def test_a_ledger_that_could_not_be_made_for_want_of_space_is_made_later(tmp_path: Path) -> None:
    lines = outcome_of("begin-on-a-full-disk", tmp_path, before=("unshare", "--mount"))
    assert lines == ["refused: database or disk is full (SQLITE_FULL)", "term: 1"]


@pytest.mark.needs("mount")
def test_on_a_read_only_disk_everything_is_refused_with_its_cause(tmp_path: Path) -> None:
    lines = outcome_of("write-on-a-read-only-disk", tmp_path, before=("unshare", "--mount"))
    assert [line.split(":")[0] for line in lines] == ["refused", "refused", "unread"]
    assert "Read-only file system" in lines[1]


# --- damage ----------------------------------------------------------------------------------------


def _garbage(path: str) -> None:
    Path(path).write_bytes(os.urandom(8192))


def _garbage_in_the_header(path: str) -> None:
    with open(path, "r+b") as file:
        file.write(b"\xff" * 100)


def _text(path: str) -> None:
    Path(path).write_text("routines: {}\n")


def _cut_short(path: str) -> None:
    os.truncate(path, os.stat(path).st_size // 8192 * 4096)


def _garbage_in_the_middle(path: str) -> None:
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (os.stat(path).st_size - 4096))


def _of_another_program(path: str) -> None:
    os.unlink(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE songs (title)")
        other.commit()


DAMAGES = [_garbage, _garbage_in_the_header, _text, _cut_short, _garbage_in_the_middle, _of_another_program]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__.strip("_"))
def test_a_damaged_ledger_is_refused_set_aside_whole_and_replaced(path: str, damage: Callable[[str], None]) -> None:
    with closing(open_owner(path)) as ledger:
        fire_now(ledger, seated(ledger), claim(0))
    damage(path)
    before = content_of(path)
    with pytest.raises(LedgerDamaged) as refused:
        open_owner(path)
    assert path in refused.value.what
    assert content_of(path)[""] == before[""]
    aside = set_aside(path, "20260101T080000Z")
    assert aside is not None
    assert aside == f"{path}.damaged-20260101T080000Z"
    assert content_of(aside)[""] == before[""]
    with closing(open_owner(path)) as ledger:
        assert ledger.newest_term() is None


@pytest.mark.parametrize("damage", [_garbage, _garbage_in_the_header, _text, _cut_short, _of_another_program])
def test_a_reader_refuses_a_damaged_ledger_and_leaves_it(path: str, damage: Callable[[str], None]) -> None:
    with closing(open_owner(path)) as ledger:
        seated(ledger)
    damage(path)
    before = content_of(path)[""]
    with pytest.raises(LedgerDamaged):
        open_reader(path)
    assert content_of(path)[""] == before


def test_damage_that_no_opening_looks_for_is_told_by_the_call_that_meets_it(path: str) -> None:
    with closing(open_owner(path)) as ledger:
        term = seated(ledger)
        ledger.settle_pass(term, at(500), [claim(number) for number in range(500)], [], {})
        ledger.end_term(term, at(501))  # in good order: no check of the whole file
    with open(path, "r+b") as file:
        file.seek(os.stat(path).st_size - 40 * 1024)
        file.write(b"\xff" * 40 * 1024)
    with closing(open_owner(path)) as ledger, pytest.raises(LedgerDamaged):
        ledger.history(None, 10**6)


@pytest.mark.parametrize(("boot", "checked"), [(BOOT, False), ("the next boot", True), ("", True), (None, True)])
def test_the_whole_file_is_read_when_power_may_have_been_lost_and_not_for_a_killed_owner(
    path: str, boot: str | None, checked: bool
) -> None:
    with closing(open_owner(path)) as ledger:
        term = seated(ledger)
        ledger.settle_pass(term, at(500), [claim(number) for number in range(500)], [], {})  # and no end
    with open(path, "r+b") as file:
        file.seek(os.stat(path).st_size - 40 * 1024)
        file.write(b"\xff" * 40 * 1024)
    if checked:
        with pytest.raises(LedgerDamaged):
            open_owner(path, boot=boot)
    else:
        open_owner(path, boot=boot).close()


@pytest.mark.parametrize("suffix", ["", "-wal"])
@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("known", [False, True], ids=["new", "opened again"])
def test_a_ledger_whose_file_or_log_is_taken_away_from_its_owner_is_damaged_for_every_pass(
    path: str, suffix: str, replaced: bool, known: bool
) -> None:
    if known:
        with closing(open_owner(path)) as ledger:
            seated(ledger, token="before")
    with closing(open_owner(path)) as ledger:
        term = seated(ledger)
        fire_now(ledger, term, claim(0))
        if replaced:
            shutil.copy(path + suffix, f"{path}.copy")
            os.replace(f"{path}.copy", path + suffix)
        else:
            os.unlink(path + suffix)
        for claims in ([], [claim(5)]):
            with pytest.raises(LedgerDamaged) as refused:
                ledger.settle_pass(term, at(5), claims, [], {})
            assert refused.value.fact.startswith(f"{path}{suffix} was removed or replaced")


def test_a_log_that_a_long_reader_made_grow_is_cut_back_when_the_reader_is_gone(path: str) -> None:
    with closing(open_owner(path)) as ledger:
        term = seated(ledger)
        with closing(sqlite3.connect(path, isolation_level=None)) as shell:
            shell.execute("BEGIN")
            shell.execute("SELECT count(*) FROM history").fetchall()
            for batch in range(14):
                claims = [claim(5 * (batch * 2000 + number)) for number in range(2000)]
                ledger.settle_pass(term, at(0), claims, [], {})
            assert os.stat(f"{path}-wal").st_size > LARGEST_LOG
        for number in range(3):
            fire_now(ledger, term, claim(1 + number))
        assert os.stat(f"{path}-wal").st_size <= LARGEST_LOG


@pytest.mark.parametrize("damage", [_garbage, _text, _cut_short, _garbage_in_the_middle])
def test_looking_at_a_damaged_ledger_leaves_its_log_and_all_its_files_go_together(
    crashed: str, damage: Callable[[str], None]
) -> None:
    damage(crashed)
    before = content_of(crashed)
    assert set(before) == {"", "-wal", "-shm"}
    with pytest.raises(LedgerDamaged):
        open_owner(crashed)
    aside = set_aside(crashed, "now")
    assert aside is not None
    after = content_of(aside)
    assert (after[""], after["-wal"]) == (before[""], before["-wal"])
    assert set(after) == set(before)
    assert not [suffix for suffix in content_of(crashed) if not suffix.startswith(".damaged")]


def test_a_ledger_whose_making_was_cut_off_is_made_again(path: str) -> None:
    with child_of("crash-while-making", path) as child:
        child.wait(timeout=30)
    assert os.stat(path).st_size > 0
    assert os.stat(f"{path}-journal").st_size > 0
    with closing(open_owner(path)) as ledger:
        assert seated(ledger) == 1


def test_of_a_ledger_that_is_gone_nothing_is_set_aside(path: str) -> None:
    assert set_aside(path, "now") is None
    assert content_of(path) == {}


def test_what_was_set_aside_earlier_is_never_overwritten(path: str) -> None:
    for number in range(3):
        Path(path).write_text(f"damage {number}" * 20)
        Path(f"{path}-wal").write_text(f"log {number}")
        set_aside(path, "now")
    assert content_of(path) == {
        f".damaged-now{which}{suffix}": f"{text} {number}".encode() * times
        for number, which in enumerate(("", "-2", "-3"))
        for suffix, text, times in (("", "damage", 20), ("-wal", "log", 1))
    }


@pytest.mark.parametrize("harm", [os.unlink, lambda path: os.truncate(path, 0)], ids=["gone", "empty"])
def test_a_log_without_its_database_is_damage_and_not_a_new_ledger(crashed: str, harm: Callable[[str], None]) -> None:
    harm(crashed)
    log = content_of(crashed)["-wal"]
    for opener in (open_owner, open_reader):
        with pytest.raises(LedgerDamaged):
            opener(crashed)
    aside = set_aside(crashed, "now")
    assert aside is not None
    assert Path(f"{aside}-wal").read_bytes() == log
    with closing(open_owner(crashed)) as ledger:
        assert ledger.history(None, 9) == []


def test_a_set_aside_that_was_cut_off_half_way_can_be_ended(crashed: str) -> None:
    os.rename(crashed, f"{crashed}.damaged-before")  # and then the machine died
    with pytest.raises(LedgerDamaged):
        open_owner(crashed)
    set_aside(crashed, "after")
    open_owner(crashed).close()
    assert {".damaged-before", ".damaged-after-wal"} <= set(content_of(crashed))


def test_an_empty_file_becomes_a_ledger(path: str) -> None:
    Path(path).touch(0o600)
    assert open_reader(path) is None
    with closing(open_owner(path)) as ledger:
        assert seated(ledger) == 1


def test_a_file_that_was_copied_in_while_its_owner_was_down_is_just_an_older_ledger(path: str) -> None:
    with closing(open_owner(path)) as ledger:
        seated(ledger)
    shutil.copy(path, f"{path}.backup")
    with closing(open_owner(path)) as ledger:
        ledger.begin_term(0, "two", AGENT, at(1))
    os.replace(f"{path}.backup", path)
    with closing(open_owner(path)) as ledger:
        newest = ledger.newest_term()
        assert newest is not None
        assert newest.term == 1
        assert ledger.begin_term(2, "three", AGENT, at(2)) == 3


# --- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "with a space",
        "per%20cent%",
        "what?mode=memory",
        "hash#tag",
        'it\'s "quoted"',
        "späť-日本",
        "a&b=c;d",
        "back\\slash",
        os.fsdecode(b"caf\xe9"),
    ],
)
def test_any_directory_name_will_do(tmp_path: Path, name: str) -> None:
    directory = str(tmp_path / name)
    os.mkdir(directory)
    path = f"{directory}/ledger.db"
    with closing(open_owner(path)) as ledger:
        fire_now(ledger, seated(ledger), claim(0))
        assert sorted(os.listdir(directory)) == ["ledger.db", "ledger.db-shm", "ledger.db-wal"]
        reader = open_reader(path)
        assert reader is not None
        assert len(reader.history(None, 9)) == 1
        reader.close()
    assert os.listdir(tmp_path) == [name]


def test_a_path_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_owner("ledger.db").close()
    assert os.path.exists("ledger.db")
    Path("ledger.db").write_text("damaged" * 100)
    assert set_aside("ledger.db", "now") == "ledger.db.damaged-now"


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
def test_a_symbolic_link_is_refused_and_what_it_names_is_left_alone(path: str, suffix: str) -> None:
    target = f"{path}.elsewhere"
    open_owner(path).close()
    if not suffix:
        os.rename(path, target)
    os.symlink(target, path + suffix)
    before = Path(target).read_bytes() if not suffix else None
    for opener in (open_owner, open_reader):
        with pytest.raises(LedgerUnavailable, match="symbolic link"):
            opener(path)
    assert (Path(target).read_bytes() if not suffix else None) == before
    assert os.path.exists(target) is (not suffix)


def test_a_dangling_link_makes_no_file_elsewhere(path: str, tmp_path: Path) -> None:
    os.symlink(tmp_path / "elsewhere", path)
    with pytest.raises(LedgerUnavailable, match="symbolic link"):
        open_owner(path)
    assert not (tmp_path / "elsewhere").exists()


def test_a_directory_in_its_place_is_refused(path: str) -> None:
    os.mkdir(path)
    with pytest.raises(LedgerUnavailable, match="not a plain file"):
        open_owner(path)


def test_a_missing_state_directory_is_refused_and_not_made(tmp_path: Path) -> None:
    path = str(tmp_path / "nowhere" / "ledger.db")
    with pytest.raises(LedgerUnavailable) as refused:
        open_owner(path)
    assert "No such file" in refused.value.fact
    assert shlex.quote(str(tmp_path / "nowhere")) in refused.value.do
    assert open_reader(path) is None
    assert not (tmp_path / "nowhere").exists()


def test_a_reader_makes_nothing_where_there_is_no_ledger(path: str, tmp_path: Path) -> None:
    assert open_reader(path) is None
    assert os.listdir(tmp_path) == []
