"""Removing the state removes what agents made there, and nothing else."""

import errno
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from ankita_agent.adapters.attempt_outputs import AttemptOutputs
from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.adapters.routine_files import LastGoodFile
from ankita_agent.adapters.sqlite_ledger import open_owner, set_aside
from ankita_agent.app.claim import Card
from ankita_agent.app.owner import Owner
from ankita_agent.app.purge import purge, refuse_strange
from ankita_agent.app.report import ConfigState, Report, write_report
from ankita_agent.app.requests import Request, Requests
from ankita_agent.core.errors import CannotWriteState, SomeoneElseOwns
from ankita_agent.core.instants import Instant
from ankita_agent.core.outcomes import Trigger
from ankita_agent.core.rows import ProcessId
from ankita_agent.ports.files import Descriptor

TOKEN: Final = "0123456789abcdef" * 2
THEIRS: Final = {
    "logs/access.log": "GET /",
    "logs/nginx/access.log": "GET /",
    "logs/backup/20261130T120000Z-1.log.gz": "x",
    "run/pidfile": "1",
    "run/app.lock": "1",
    "run/app/app.lock": "",
    "requests/login.json": "{}",
    "requests/0123456789abcdef/x": "x",
    "own/notes": "x",
    "own/life/notes": "x",
    "own/claim.json.orig": "x",
    "ledger.db.bak": "x",
    "ledger.db.damaged-notes": "x",
    "ledger.dbx-wal": "x",
    ".notes.1.new": "x",
}
"""What people have in directories of these names."""


class FailingFiles(PosixFiles):
    """A disk that neither opens the directory nor lets the file go of one name."""

    def __init__(self, kept: str, failure: int) -> None:
        self._kept, self._failure = kept, failure

    def unlink(self, directory: Descriptor, name: str) -> bool:
        """Fail for that name, else as always."""
        self._refuse(name)
        return super().unlink(directory, name)

    def open_directory_at(self, parent: Descriptor, name: str) -> Descriptor:
        """Fail for that name, else as always."""
        self._refuse(name)
        return super().open_directory_at(parent, name)

    def _refuse(self, name: str) -> None:
        if name == self._kept:
            raise OSError(self._failure, os.strerror(self._failure), name)


def live(state: Path) -> None:
    """Make everything that an agent makes in its state directory, by what makes it, and leave it there."""
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = PosixFiles()
    opened = files.open_directory(str(state))
    try:
        owner = Owner(files, opened, str(state), Card(TOKEN, ProcessId(1, 1, "boot", 1), 1, "0.1", None, "host"))
        owner.announce()
        assert owner.try_acquire()
        owner.seat(1, Instant(0))
        owner.keep_term()
        owner.note_fire(1)
        owner.doubt_ledger()
        write_report(files, owner.directory, Report(TOKEN, "0.1", (), ConfigState("", ""), (), None, False))
        claim = (state / "own/claim.json").read_bytes()
        owner.release()
        (state / "own/claim.json").write_bytes(claim)
        Requests(files, opened).ask(Request("0123456789abcdef", "backup", Instant(0), Trigger.MANUAL, TOKEN))
        LastGoodFile(files, opened, str(state), 100).write(b"routines: {}")
        outputs = AttemptOutputs(opened)
        outputs.finish(outputs.open("backup", Instant(0), 1_000_001))
        files.make_directory(opened, "run")
        run = files.open_directory_at(opened, "run")
        files.close(files.open_file(run, "backup.lock"))
        files.close(run)
    finally:
        files.close(opened)
    ledger = state / "ledger.db"
    for _ in range(2):
        open_owner(str(ledger), boot="boot").close()
        set_aside(str(ledger), "20261130T120000Z")
    (state / "ledger.db.before-v2").write_bytes((state / "ledger.db.damaged-20261130T120000Z").read_bytes())
    (state / "ledger.db.before-v3.new").write_bytes(b"")
    open_owner(str(ledger), boot="boot").close()
    for half in (".last-good.yaml.123.new", "own/.claim.json.123.new", "requests/.0123456789abcdef.json.9.new"):
        (state / half).write_text("x")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    made = tmp_path / "ankita-agent"
    live(made)
    return made


def remove(state: Path) -> list[str]:
    told: list[str] = []
    purge(PosixFiles(), str(state), told.append)
    return told


def write(state: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (state / name).parent.mkdir(parents=True, exist_ok=True)
        (state / name).write_text(text)


def read(state: Path) -> dict[str, str]:
    return {str(each.relative_to(state)): each.read_text("latin-1") for each in state.rglob("*") if each.is_file()}


def test_everything_that_agents_made_is_removed_and_the_directory_with_it(state: Path) -> None:
    assert remove(state) == [f"removed     {state}"]
    assert not state.exists()


def test_a_directory_of_another_name_may_have_been_there_before_and_stays_empty(tmp_path: Path) -> None:
    state = tmp_path / "it's mine"
    live(state)
    gone, kept = remove(state)
    assert gone == f"removed     19 files of agents in {state}"
    assert kept == f"kept        {state}, which is empty; without it: rmdir '{tmp_path}/it'\"'\"'s mine'"
    assert list(state.iterdir()) == []


def test_what_people_have_in_directories_of_these_names_stays_and_is_named(state: Path) -> None:
    write(state, THEIRS)
    gone, *kept = remove(state)
    assert read(state) == THEIRS
    assert gone == f"removed     19 files of agents in {state}"
    assert kept == [
        f"kept        {state}{line}, which no agent is known to have made"
        for line in (
            "/logs/backup: 20261130T120000Z-1.log.gz",
            "/logs/nginx: access.log",
            "/logs: access.log",
            "/requests: 0123456789abcdef, login.json",
            "/run: app, app.lock, pidfile",
            ": .notes.1.new, ledger.db.bak, ledger.db.damaged-notes, ledger.dbx-wal",
            "/own/life: notes",
            "/own: claim.json.orig, notes",
        )
    ]


@pytest.mark.parametrize("name", ["ankita-agent", "home"])
def test_a_directory_where_no_agent_ever_ran_is_not_touched(tmp_path: Path, name: str) -> None:
    state = tmp_path / name
    theirs = THEIRS | {"logs/backup/20261130T120000Z-1.log": "x", "last-good.yaml": "x", "ledger.db": ""}
    write(state, {path: text for path, text in theirs.items() if not path.startswith("own/life")})
    before = read(state)
    if name == "home":
        with pytest.raises(CannotWriteState, match="nothing there is an agent's"):
            remove(state)
    else:  # what is left of an earlier purge
        assert remove(state)[0].startswith(f"kept        {state}: ")
    assert read(state) == before


@pytest.mark.parametrize("mark", ["a file", "a link", "a guard with content", "a link for a guard"])
def test_what_only_looks_like_the_mark_of_an_agent_is_none(tmp_path: Path, mark: str) -> None:
    state, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    live(elsewhere)
    state.mkdir()
    (state / "last-good.yaml").write_text("x")
    match mark:
        case "a file":
            (state / "own").write_text("")
        case "a link":
            (state / "own").symlink_to(elsewhere / "own")
        case "a guard with content":
            write(state, {"own/guard": "x"})
        case _:
            (state / "own").mkdir()
            (state / "own/guard").symlink_to(elsewhere / "own/guard")
    files = PosixFiles()
    opened = files.open_directory(str(state))
    try:
        with pytest.raises(CannotWriteState):
            refuse_strange(files, opened, str(state))
    finally:
        files.close(opened)
    with pytest.raises(CannotWriteState):
        remove(state)
    assert (state / "last-good.yaml").exists()
    assert (elsewhere / "own/guard").exists()


def test_an_empty_directory_is_nothing_to_refuse(tmp_path: Path) -> None:
    assert remove(tmp_path) == [f"kept        {tmp_path}, which is empty; without it: rmdir {tmp_path}"]


def test_an_agent_that_never_owned_left_its_mark_too(state: Path) -> None:
    (state / "own/guard").unlink()
    assert remove(state) == [f"removed     {state}"]


@pytest.mark.parametrize("journal", ["delete", "wal"])
@pytest.mark.parametrize("name", ["ledger.db", "ledger.db.damaged-20261130T120000Z-7"])
def test_a_database_of_another_program_stays_with_its_log(state: Path, name: str, journal: str) -> None:
    path = state / name
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as theirs:
        theirs.execute(f"PRAGMA journal_mode = {journal}")
        theirs.execute("CREATE TABLE accounts (name)")
        theirs.commit()
        before = {f"{name}{part}" for part in ("", "-wal", "-shm") if (state / f"{name}{part}").exists()}
        assert (f"{name}-wal" in before) == (journal == "wal")
        assert any(name in line for line in remove(state))
        assert {each.name for each in state.glob("*")} == before


def test_a_ledger_whose_tables_are_in_its_log_alone_is_ours(state: Path) -> None:
    for each in state.glob("ledger.db*"):
        each.unlink()
    with closing(open_owner(str(state / "ledger.db"), boot="boot")):
        assert b"terms" not in (state / "ledger.db").read_bytes()
        for part in ("", "-wal"):  # as they are when its owner is killed
            (state / f"ledger.db.damaged-20261130T120000Z{part}").write_bytes((state / f"ledger.db{part}").read_bytes())
    assert remove(state) == [f"removed     {state}"]


def test_no_link_is_followed(state: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    live(elsewhere)
    before = read(elsewhere)
    (state / "logs/linked").symlink_to(elsewhere / "logs/backup")
    (state / "run/backup.lock").unlink()
    (state / "run/backup.lock").symlink_to(elsewhere / "run/backup.lock")
    (state / "requests/0123456789abcdef.json").unlink()
    (state / "requests/.0123456789abcdef.json.9.new").unlink()
    (state / "requests").rmdir()
    (state / "requests").symlink_to(elsewhere / "requests")
    told = "\n".join(remove(state))
    assert read(elsewhere) == before
    assert {path for path in state.rglob("*") if path.is_symlink()} == {
        state / "logs/linked",
        state / "run/backup.lock",
        state / "requests",
    }
    assert f"{state}/logs: linked" in told


def test_a_way_to_the_directory_through_a_link_changes_nothing(state: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert remove(tmp_path / "link" / state.name) == [f"removed     {tmp_path}/link/{state.name}"]
    assert not state.exists()


def test_a_state_directory_that_is_a_link_is_refused(state: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(state)
    with pytest.raises(CannotWriteState):
        remove(link)
    assert (state / "ledger.db").exists()


@pytest.mark.parametrize("place", [".", "logs", "logs/backup", "run", "requests", "own", "own/life"])
def test_a_routines_yaml_is_never_removed_wherever_it_stands(state: Path, place: str) -> None:
    (state / place / "routines.yaml").write_text("mine")
    remove(state)
    assert read(state) == {os.path.normpath(f"{place}/routines.yaml"): "mine"}


def test_while_an_agent_owns_nothing_is_removed(state: Path) -> None:
    files = PosixFiles()
    own = files.open_directory(str(state / "own"))
    before = read(state)
    assert files.try_lock(own)
    try:
        with pytest.raises(SomeoneElseOwns, match="the state is as it was"):
            remove(state)
    finally:
        files.close(own)
    assert read(state) == before


def test_while_a_run_goes_on_that_a_dead_agent_left_behind_nothing_is_removed(state: Path) -> None:
    before = read(state)
    files = PosixFiles()
    run = files.open_directory(str(state / "run"))
    lock = files.open_file(run, "backup.lock")
    assert files.try_lock(lock)
    try:
        with pytest.raises(SomeoneElseOwns, match="a run goes on") as fault:
            remove(state)
    finally:
        files.close(lock)
        files.close(run)
    assert fault.value.do.endswith(f"fuser -v {state}/run/backup.lock")
    assert read(state) == before
    assert remove(state) == [f"removed     {state}"]


@pytest.mark.parametrize("kind", ["gone", "a link", "a file"])
def test_where_there_is_no_directory_of_locks_nothing_is_held(state: Path, tmp_path: Path, kind: str) -> None:
    (state / "run").rename(tmp_path / "elsewhere")
    if kind == "a link":
        (state / "run").symlink_to(tmp_path / "elsewhere")
    elif kind == "a file":
        (state / "run").write_text("mine")
    remove(state)
    assert (tmp_path / "elsewhere/backup.lock").exists()
    assert state.exists() == (kind != "gone")


def test_many_names_are_told_in_a_line_that_no_name_can_break(state: Path) -> None:
    for number in range(7):
        (state / "logs" / f"{number}\nremoved").write_text("x")
    (line,) = [line for line in remove(state) if line.startswith("kept")]
    assert line.startswith(f"kept        {state}/logs: '0\\nremoved', ")
    assert " and 2 more, which" in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("failure", "advice"), [(errno.EACCES, "chmod u+rwx"), (errno.EROFS, "findmnt"), (errno.EIO, "ls -la")]
)
def test_what_cannot_be_removed_is_named_with_what_is_gone_and_can_be_done_again(
    state: Path, failure: int, advice: str
) -> None:
    with pytest.raises(CannotWriteState) as fault:
        purge(FailingFiles("backup.lock", failure), str(state), print)
    assert f"cannot remove '{state}/run/backup.lock'" in fault.value.what
    assert os.strerror(failure) in fault.value.fact
    assert fault.value.now.endswith(": 1 file of logs/, 2 files of requests/")
    assert advice in fault.value.do
    assert f"{state}/run, then again: ankita-agent uninstall --purge" in fault.value.do
    assert (state / "ledger.db").exists()
    assert remove(state) == [f"removed     {state}"]


def test_a_directory_that_cannot_be_looked_into_is_named_and_what_gives_access_to_it(state: Path) -> None:
    with pytest.raises(CannotWriteState) as fault:
        purge(FailingFiles("backup", errno.EACCES), str(state), print)
    assert str(fault.value).splitlines() == [
        f"cannot remove '{state}/logs/backup': Permission denied",
        f"  gone by now of the state in '{state}': nothing",
        f"  give yourself access: chmod u+rwx {state}/logs/backup, then again: ankita-agent uninstall --purge",
    ]


@pytest.mark.parametrize("kept", ["ledger.db", "term", "guard", "life", TOKEN])
def test_whatever_fails_the_mark_is_there_for_the_next_time(state: Path, kept: str) -> None:
    with pytest.raises(CannotWriteState):
        purge(FailingFiles(kept, errno.EIO), str(state), print)
    assert (state / "own/guard").exists()
    assert remove(state) == [f"removed     {state}"]


def test_a_file_is_made_only_where_nothing_bears_its_name(tmp_path: Path) -> None:
    files = PosixFiles()
    directory = files.open_directory(str(tmp_path))
    (tmp_path / "link").symlink_to("nowhere")
    try:
        assert files.create(directory, "new", b"1")
        assert not files.create(directory, "new", b"2")
        assert not files.create(directory, "link", b"2")
        assert files.names(directory) == ["link", "new"]
    finally:
        files.close(directory)
    assert (tmp_path / "new").read_bytes() == b"1"
