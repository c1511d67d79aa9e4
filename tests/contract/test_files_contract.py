"""What every Files promises, asked of real file systems and of the simulated kernel."""

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Protocol

import pytest

from ankita_agent.ports.files import Descriptor, Files
from ankita_agent.testing.kernel import ROOT, File, Kernel, Kind
from ankita_agent.testing.simulated_files import Machine, SimulatedFiles
from tests.simulation import KnownFiles


class World(Protocol):
    """An empty directory `at`, open, on some machine; and what the port itself cannot do."""

    path: str
    at: Descriptor

    @property
    def files(self) -> Files:
        """The port."""
        ...

    def link(self, name: str, target: str) -> None:
        """Make a symbolic link."""
        ...

    def fifo(self, name: str) -> None:
        """Make a named pipe."""
        ...

    def in_fork(self, work: Callable[[Files], None]) -> None:
        """Fork, let the child do that, and wait for its end."""
        ...


class RealWorld:
    """A directory of this machine."""

    def __init__(self, path: Path) -> None:
        path.chmod(0o700)
        self.path = str(path)
        self.files = KnownFiles()
        self.at = self.files.open_directory(self.path)

    def link(self, name: str, target: str) -> None:
        os.symlink(target, f"{self.path}/{name}")

    def fifo(self, name: str) -> None:
        os.mkfifo(f"{self.path}/{name}")

    def in_fork(self, work: Callable[[Files], None]) -> None:
        child = os.fork()
        if child == 0:
            try:
                work(self.files)
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0


class SimulatedWorld:
    """A directory of a simulated machine."""

    PID = 101

    def __init__(self) -> None:
        kernel, self._inode = Kernel().with_file(ROOT, "state", File(Kind.DIRECTORY, b"", 0o700))
        self.path = "/state"
        self.machine = Machine(kernel)
        self.simulated = SimulatedFiles(self.machine.performing(self.PID))
        self.files = self.simulated
        self.at = self.files.open_directory(self.path)

    def link(self, name: str, target: str) -> None:
        self._make(name, File(Kind.LINK, target.encode(), 0o777))

    def fifo(self, name: str) -> None:
        self._make(name, File(Kind.FIFO, b"", 0o600))

    def in_fork(self, work: Callable[[Files], None]) -> None:
        child = self.PID + 1
        self.machine.kernel = self.machine.kernel.forking(self.PID, child)
        for obey in self.simulated.in_children:
            obey()
        work(SimulatedFiles(self.machine.performing(child)))
        self.machine.kernel = self.machine.kernel.without_processes((child,))

    def _make(self, name: str, file: File) -> None:
        self.machine.kernel, _ = self.machine.kernel.with_file(self._inode, name, file)


@contextmanager
def tmpfs(point: Path) -> Iterator[Path]:
    """A tmpfs that only its own mount namespace sees, by a path that leads into it."""
    script = f"mount --make-rprivate / && mount -t tmpfs tmpfs '{point}' && echo mounted && exec cat"
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as keeper:
        assert keeper.stdout is not None
        assert keeper.stdout.readline() == "mounted\n"
        try:
            yield Path(f"/proc/{keeper.pid}/root{point}")
        finally:
            keeper.kill()


@pytest.fixture(params=["simulated", "real", pytest.param("tmpfs", marks=pytest.mark.needs("mount"))])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if request.param == "simulated":
        yield SimulatedWorld()
        return
    with tmpfs(tmp_path) if request.param == "tmpfs" else nullcontext(tmp_path) as path:
        real = RealWorld(path)
        yield real
        real.files.close_all()


def error_of(call: Callable[[], object]) -> int | None:
    with pytest.raises(OSError) as raised:
        call()
    return raised.value.errno


# -- locks


def test_a_lock_excludes_whoever_opened_the_file_for_itself(world: World) -> None:
    files = world.files
    mine, other = files.open_file(world.at, "guard"), files.open_file(world.at, "guard")
    assert files.try_lock(mine)
    assert files.try_lock(mine), "who has it has it"
    assert not files.try_lock(other)
    files.close(mine)
    assert files.try_lock(other)


def test_a_directory_can_be_locked_and_its_files_are_not(world: World) -> None:
    files = world.files
    files.make_directory(world.at, "own")
    mine, other = files.open_directory_at(world.at, "own"), files.open_directory_at(world.at, "own")
    assert files.try_lock(mine)
    assert not files.try_lock(other)
    assert files.try_lock(files.open_file(other, "guard"))


def test_a_lock_that_is_free_is_waited_for_no_longer(world: World) -> None:
    files = world.files
    mine, other = files.open_file(world.at, "guard"), files.open_file(world.at, "guard")
    files.wait_lock(mine)
    assert not files.try_lock(other)
    files.unlock(mine)
    files.wait_lock(other)
    assert not files.try_lock(mine)


def test_to_unlock_what_another_locked_changes_nothing(world: World) -> None:
    files = world.files
    mine, other = files.open_file(world.at, "guard"), files.open_file(world.at, "guard")
    assert files.try_lock(mine)
    files.unlock(other)
    assert not files.try_lock(other)


def test_a_lock_stays_with_the_file_and_not_with_its_name(world: World) -> None:
    files = world.files
    mine = files.open_file(world.at, "guard")
    assert files.try_lock(mine)
    assert files.rename(world.at, "guard", "kept")
    assert files.try_lock(files.open_file(world.at, "guard")), "another file"
    assert not files.try_lock(files.open_file(world.at, "kept"))
    assert files.unlink(world.at, "kept")
    assert files.try_lock(files.open_file(world.at, "kept")), "another one again"


def test_a_raised_descriptor_is_the_same_file_with_the_same_lock(world: World) -> None:
    files = world.files
    low = files.open_file(world.at, "guard")
    assert files.try_lock(low)
    before = files.facts(low).inode
    high = files.raised(low, 100)
    assert high >= 100
    assert files.facts(high).inode == before
    assert not files.try_lock(files.open_file(world.at, "guard"))
    assert files.raised(high, 100) > high, "its own number is taken"


def test_a_fork_shares_the_lock_and_its_close_does_not_let_go(world: World) -> None:
    files = world.files
    mine, other = files.open_file(world.at, "guard"), files.open_file(world.at, "guard")
    assert files.try_lock(mine)

    def in_child(files: Files) -> None:
        assert files.try_lock(mine), "it has it as well"
        assert not files.try_lock(other)
        files.close(mine)

    world.in_fork(in_child)
    assert not files.try_lock(other)


def test_a_fork_that_unlocks_unlocks_for_all(world: World) -> None:
    files = world.files
    mine, other = files.open_file(world.at, "guard"), files.open_file(world.at, "guard")
    assert files.try_lock(mine)
    world.in_fork(lambda files: files.unlock(mine))
    assert files.try_lock(other)


def test_a_lock_that_a_child_took_dies_with_the_child(world: World) -> None:
    files = world.files

    def in_child(files: Files) -> None:
        assert files.try_lock(files.open_file(world.at, "guard"))

    world.in_fork(in_child)
    assert files.try_lock(files.open_file(world.at, "guard"))


def test_what_is_to_be_done_in_a_fork_is_done_there_first(world: World) -> None:
    files = world.files
    done: list[str] = []
    files.on_fork(lambda: done.append("told"))

    def in_child(_: Files) -> None:
        assert done == ["told"]

    world.in_fork(in_child)


# -- names and files


def test_a_file_is_made_private_and_never_truncated(world: World) -> None:
    files = world.files
    files.replace(world.at, "term", b"7\n")
    facts = files.facts(files.open_file(world.at, "term"))
    assert (facts.regular, facts.directory, facts.mode, facts.links) == (True, False, 0o600, 1)
    assert files.read(world.at, "term", 100) == b"7\n"
    made = files.facts(files.open_file(world.at, "new"))
    assert (made.regular, made.mode) == (True, 0o600)
    assert files.read(world.at, "new", 100) == b""


def test_no_more_is_read_than_was_asked_for(world: World) -> None:
    world.files.replace(world.at, "term", b"1234")
    assert world.files.read(world.at, "term", 3) == b"123"


def test_what_is_replaced_is_another_file_and_the_old_one_lives_while_it_is_open(world: World) -> None:
    files = world.files
    files.replace(world.at, "claim", b"old")
    old = files.open_file(world.at, "claim")
    assert files.facts(old).inode == files.facts_at(world.at, "claim").inode
    files.replace(world.at, "claim", b"new")
    assert files.facts(old).inode != files.facts_at(world.at, "claim").inode
    assert files.facts(old).links == 0
    assert files.names(world.at) == ["claim"]
    assert files.read(world.at, "claim", 100) == b"new"


def test_several_are_replaced_in_one_call(world: World) -> None:
    files = world.files
    files.replace(world.at, "a", b"0")
    files.replace_all(world.at, {"a": b"1", "b": b"2"})
    assert [files.read(world.at, name, 9) for name in files.names(world.at)] == [b"1", b"2"]


def test_what_exists_is_not_created_again(world: World) -> None:
    files = world.files
    assert files.create(world.at, "wish", b"first")
    assert not files.create(world.at, "wish", b"second")
    world.link("dangling", "nowhere")
    assert not files.create(world.at, "dangling", b"")
    assert files.read(world.at, "wish", 100) == b"first"
    assert files.names(world.at) == ["dangling", "wish"]
    assert files.facts_at(world.at, "wish").mode == 0o600


def test_what_is_written_in_place_leaves_the_rest_as_it_is(world: World) -> None:
    files = world.files
    files.replace(world.at, "life", b"abcdef")
    life = files.open_file(world.at, "life")
    files.overwrite(life, 2, b"XY")
    assert files.read(world.at, "life", 100) == b"abXYef"
    files.overwrite(life, 8, b"Z")
    assert files.read(world.at, "life", 100) == b"abXYef\0\0Z"
    assert error_of(lambda: files.overwrite(world.at, 0, b"x")) == errno.EBADF


def test_a_rename_moves_the_file_over_what_bore_the_name(world: World) -> None:
    files = world.files
    files.replace(world.at, "ask", b"1")
    files.replace(world.at, "yes", b"2")
    assert files.rename(world.at, "ask", "yes")
    assert not files.rename(world.at, "ask", "yes"), "somebody was first"
    assert files.read(world.at, "yes", 9) == b"1"


def test_a_rename_does_not_mix_files_and_directories_and_empties_none(world: World) -> None:
    files = world.files
    files.make_directory(world.at, "own")
    files.make_directory(world.at, "full")
    files.open_file(files.open_directory_at(world.at, "full"), "guard")
    files.replace(world.at, "file", b"")
    assert error_of(lambda: files.rename(world.at, "file", "own")) == errno.EISDIR
    assert error_of(lambda: files.rename(world.at, "own", "file")) == errno.ENOTDIR
    assert error_of(lambda: files.rename(world.at, "own", "full")) in (errno.ENOTEMPTY, errno.EEXIST)
    assert files.rename(world.at, "full", "own")
    assert files.names(files.open_directory_at(world.at, "own")) == ["guard"]


def test_what_is_unlinked_is_gone_once(world: World) -> None:
    files = world.files
    files.replace(world.at, "claim", b"")
    assert files.unlink(world.at, "claim")
    assert not files.unlink(world.at, "claim")
    assert error_of(lambda: files.facts_at(world.at, "claim")) == errno.ENOENT
    assert error_of(lambda: files.read(world.at, "claim", 1)) == errno.ENOENT


def test_a_file_is_found_by_its_whole_path(world: World) -> None:
    files = world.files
    files.replace(world.at, "term", b"")
    assert files.facts_of(f"{world.path}/term") == files.facts_at(world.at, "term")
    assert files.facts_of(world.path).inode == files.facts(world.at).inode
    assert error_of(lambda: files.facts_of(f"{world.path}/none")) == errno.ENOENT
    assert error_of(lambda: files.facts_of(f"{world.path}/term/none")) == errno.ENOTDIR


# -- directories


def test_a_directory_is_made_private_and_one_that_is_there_is_left(world: World) -> None:
    files = world.files
    files.make_directory(world.at, "own")
    files.open_file(files.open_directory_at(world.at, "own"), "guard")
    files.make_directory(world.at, "own")
    files.replace(world.at, "file", b"")
    files.make_directory(world.at, "file")
    facts = files.facts_at(world.at, "own")
    assert (facts.directory, facts.regular, facts.mode) == (True, False, 0o700)
    assert files.names(files.open_directory_at(world.at, "own")) == ["guard"]


def test_only_an_empty_directory_is_removed(world: World) -> None:
    files = world.files
    files.make_directory(world.at, "own")
    own = files.open_directory_at(world.at, "own")
    files.replace(own, "guard", b"")
    assert not files.remove_directory(world.at, "own")
    assert not files.remove_directory(own, "guard")
    assert not files.remove_directory(world.at, "none")
    files.unlink(own, "guard")
    assert files.remove_directory(world.at, "own")


def test_a_directory_that_was_removed_while_open_takes_no_new_names(world: World) -> None:
    files = world.files
    files.make_directory(world.at, "own")
    own = files.open_directory_at(world.at, "own")
    assert files.try_lock(own)
    assert files.remove_directory(world.at, "own")
    assert error_of(lambda: files.open_file(own, "guard")) == errno.ENOENT
    assert error_of(lambda: files.replace(own, "claim", b"")) == errno.ENOENT
    assert error_of(lambda: files.make_directory(own, "life")) == errno.ENOENT
    assert files.names(own) == []
    files.make_directory(world.at, "own")
    assert files.try_lock(files.open_directory_at(world.at, "own")), "another directory, with another lock"


def test_a_directory_that_was_moved_is_still_the_one_that_was_opened(world: World) -> None:
    files = world.files
    files.make_directory(world.at, "own")
    own = files.open_directory_at(world.at, "own")
    assert files.rename(world.at, "own", "moved")
    files.replace(own, "claim", b"1")
    assert files.read(files.open_directory_at(world.at, "moved"), "claim", 9) == b"1"


def test_what_is_no_directory_is_not_opened_as_one(world: World) -> None:
    files = world.files
    files.replace(world.at, "file", b"")
    world.link("link", ".")
    for name in ("file", "link"):
        assert error_of(lambda name=name: files.open_directory_at(world.at, name)) == errno.ENOTDIR  # type: ignore[misc]
        path = f"{world.path}/{name}"
        assert error_of(lambda path=path: files.open_directory(path)) == errno.ENOTDIR  # type: ignore[misc]
    assert error_of(lambda: files.open_directory_at(world.at, "none")) == errno.ENOENT
    assert error_of(lambda: files.open_directory(f"{world.path}/none")) == errno.ENOENT


# -- what others planted


def test_a_link_is_never_followed(world: World) -> None:
    files = world.files
    files.replace(world.at, "term", b"7")
    world.link("link", "term")
    assert error_of(lambda: files.open_file(world.at, "link")) == errno.ELOOP
    assert error_of(lambda: files.read(world.at, "link", 9)) == errno.ELOOP
    facts = files.facts_at(world.at, "link")
    assert (facts.regular, facts.directory) == (False, False)
    files.replace(world.at, "link", b"mine")
    assert files.read(world.at, "term", 9) == b"7"
    assert files.facts_at(world.at, "link").regular


def test_what_is_no_file_is_not_read_as_one(world: World) -> None:
    files = world.files
    world.fifo("pipe")
    files.make_directory(world.at, "own")
    for name in ("pipe", "own"):
        assert error_of(lambda name=name: files.read(world.at, name, 9)) == errno.EINVAL  # type: ignore[misc]
    assert error_of(lambda: files.open_file(world.at, "own")) == errno.EISDIR
    assert error_of(lambda: files.replace(world.at, "own", b"")) == errno.EISDIR
    assert error_of(lambda: files.unlink(world.at, "own")) in (errno.EISDIR, errno.EPERM)
    assert files.names(world.at) == ["own", "pipe"]
    assert not files.facts(files.open_file(world.at, "pipe")).regular


def test_a_closed_descriptor_is_none(world: World) -> None:
    files = world.files
    closed = files.open_file(world.at, "guard")
    files.close(closed)
    assert error_of(lambda: files.close(closed)) == errno.EBADF
    assert error_of(lambda: files.facts(closed)) == errno.EBADF
    assert error_of(lambda: files.try_lock(closed)) == errno.EBADF
    assert files.open_file(world.at, "guard") == closed, "the lowest free number"
