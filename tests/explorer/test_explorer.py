"""The explorer itself, on programs so small that what there is to find can be counted by hand."""

from collections.abc import Hashable, Iterator

import pytest

from ankita_agent.testing.explorer import Bounds, Broken, Explorer, Shown, State
from ankita_agent.testing.kernel import ROOT, File, Kernel, Kind
from ankita_agent.testing.programs import Process, Program

ROOT_PATH = "/"
KERNEL = Kernel().with_file(ROOT, "count", File(Kind.FILE, b"0", 0o600))[0]


def anything(_: Kernel, __: Shown, ___: Hashable) -> None:
    """Nothing is wrong."""


def count_is_below(most: int) -> object:
    """The count never reaches it."""

    def watch(kernel: Kernel, _: Shown, __: Hashable) -> None:
        if int(kernel.inodes[kernel.find("/count")].content) >= most:
            raise Broken("the count is too high")

    return watch


def counting(process: Process) -> None:
    """Add one, without a lock."""
    files = process.files
    try:
        root = files.open_directory(ROOT_PATH)
        files.replace(root, "count", b"%d" % (int(files.read(root, "count", 9)) + 1))
    except OSError:
        return


def must_find(content: bytes) -> Program:
    """A newcomer that finds that content."""

    def newcomer(process: Process) -> None:
        root = process.files.open_directory(ROOT_PATH)
        assert process.files.read(root, "count", 9) == content, "found something else"

    return newcomer


def locking(*names: str) -> Program:
    """Lock these, in this order."""

    def program(process: Process) -> None:
        root = process.files.open_directory(ROOT_PATH)
        for name in names:
            process.files.wait_lock(process.files.open_file(root, name))

    return program


def without_memory(explorer: Explorer, state: State) -> Iterator[State]:
    """Every end that can be come to, by trying every way and remembering none."""
    moves = explorer.moves(state)
    if not moves:
        yield state
    for move in moves:
        yield from without_memory(explorer, explorer.made(state, move))


def counts(kernel: Kernel) -> int:
    return int(kernel.inodes[kernel.find("/count")].content)


@pytest.mark.parametrize(
    ("number", "bounds"),
    [(2, Bounds()), (3, Bounds()), (2, Bounds(crashes=1)), (2, Bounds(crashes=2)), (2, Bounds(crashes=1, faults=1))],
)
def test_what_is_left_out_as_known_leads_nowhere_else(number: int, bounds: Bounds) -> None:
    ends = set[Kernel]()

    def watch(kernel: Kernel, shown: Shown, _: Hashable) -> None:
        if not shown:
            ends.add(kernel)

    programs = {f"program {each}": counting for each in range(number)}
    assert Explorer(KERNEL, programs, watch, None, bounds).explore().exhausted
    naive = Explorer(KERNEL, programs, anything, None, bounds)
    ways = [state.kernel for state in without_memory(naive, naive.start)]
    assert set(ways) == ends
    assert len(ways) > len(ends)


def test_a_lost_update_is_told_by_a_shortest_story() -> None:
    def watch(kernel: Kernel, shown: Shown, _: Hashable) -> None:
        if not shown and counts(kernel) == 1:
            raise Broken("one was lost")

    story = Explorer(KERNEL, {"one": counting, "other": counting}, watch).explore().story
    assert story is not None
    lines = story.splitlines()
    assert len(lines) == 7
    assert lines[0].lstrip().startswith("1. ")
    assert lines[-1].strip() == "one was lost"
    assert "other (102): replace(3 = , 'count', b'1')" in story


def test_processes_that_wait_for_each_other_are_found() -> None:
    story = Explorer(KERNEL, {"one": locking("a", "b"), "other": locking("b", "a")}, anything).explore().story
    assert story is not None
    assert "each process waits for another" in story
    sound = Explorer(KERNEL, {"one": locking("a", "b"), "other": locking("a", "b")}, anything).explore()
    assert sound.story is None
    assert sound.exhausted


def test_what_takes_two_deaths_is_not_found_with_one() -> None:
    def watch(_: Kernel, shown: Shown, __: Hashable) -> None:
        if not shown:
            raise Broken("nobody is left")

    def staying(process: Process) -> None:
        locking("a")(process)
        root = process.files.open_directory(ROOT_PATH)
        process.files.wait_lock(process.files.open_file(root, "a"))

    programs = {"one": staying, "other": staying}
    one = Explorer(KERNEL, programs, watch, None, Bounds(crashes=1)).explore().story
    assert one is not None
    assert "each process waits for another" in one
    two = Explorer(KERNEL, dict(list(programs.items())[:1]), watch, None, Bounds(crashes=1)).explore().story
    assert two is not None


@pytest.mark.parametrize("power", [False, True])
def test_what_was_not_flushed_is_lost_with_the_power_alone(power: bool) -> None:
    def renaming(process: Process) -> None:
        root = process.files.open_directory(ROOT_PATH)
        process.files.create(root, "new", b"1")
        process.files.rename(root, "new", "count")
        process.files.names(root)

    def newcomer(process: Process) -> None:
        root = process.files.open_directory(ROOT_PATH)
        names = process.files.names(root)
        content = process.files.read(root, "count", 9)
        assert (content == b"0") or "new" not in names
        seen.add((content, "new" in names))

    seen = set[tuple[bytes, bool]]()
    report = Explorer(KERNEL, {"one": renaming}, anything, newcomer, Bounds(power=power)).explore()
    assert report.story is None, report.story
    assert seen == {(b"0", False), (b"0", True), (b"1", False)}


def test_a_flushed_file_outlives_the_power_and_an_unflushed_name_may_not() -> None:
    files_left = KERNEL._replace(remembers=True)
    kernel, _ = files_left.with_file(ROOT, "made", File(Kind.FILE, b"", 0o600))
    assert "made" not in kernel.without_power(1).names_in(ROOT)
    assert "made" in kernel.without_power(0).names_in(ROOT)
    assert "made" in kernel.synced(ROOT).without_power(9).names_in(ROOT)


def test_what_was_written_in_place_can_be_lost_though_a_later_name_is_not() -> None:
    kernel = KERNEL._replace(remembers=True).with_content(KERNEL.find("/count"), b"7")
    kernel = kernel.with_names(ROOT, {"other": None})
    assert counts(kernel.without_power(0)) == 7
    assert counts(kernel.without_power(0, contents=True)) == 0
    assert counts(kernel.synced(kernel.find("/count")).without_power(0, contents=True)) == 7


def test_a_fork_goes_on_with_what_its_parent_had_open() -> None:
    seen = set[tuple[int, bool]]()

    def forking(process: Process) -> None:
        root = process.files.open_directory(ROOT_PATH)
        lock = process.files.open_file(root, "lock")
        process.files.wait_lock(lock)
        child = process.fork()
        seen.add((process.pid, process.files.try_lock(lock)))
        assert (child == 0) == (process.pid != 101)

    report = Explorer(KERNEL, {"one": forking}, anything).explore()
    assert report.story is None, report.story
    assert seen == {(101, True), (1011, True)}


def test_the_same_seed_goes_the_same_ways() -> None:
    def explorer() -> Explorer:
        return Explorer(KERNEL, {"one": counting, "other": counting}, anything, None, Bounds(crashes=1, faults=1))

    assert explorer().schedule(3) == explorer().schedule(3)
    assert explorer().walk(3, 20) == explorer().walk(3, 20)
    assert len({tuple(explorer().schedule(seed)) for seed in range(20)}) > 5


def test_a_walk_that_goes_wrong_tells_its_seed() -> None:
    def watch(kernel: Kernel, shown: Shown, _: Hashable) -> None:
        if counts(kernel) == 2:
            raise Broken("both were counted")

    story = Explorer(KERNEL, {"one": counting, "other": counting}, watch).walk(7, 50).story
    assert story is not None
    assert story.startswith("seed 7\n   1. ")


def test_a_program_that_ends_with_an_exception_is_a_finding() -> None:
    def raising(process: Process) -> None:
        process.files.open_directory("/none")

    story = Explorer(KERNEL, {"one": raising}, anything).explore().story
    assert story is not None
    assert "one ended with FileNotFoundError" in story


def test_a_newcomer_that_finds_something_wrong_is_told_call_by_call() -> None:
    story = Explorer(KERNEL, {"one": counting}, anything, must_find(b"0")).explore().story
    assert story is not None
    assert "everybody dies\n      newcomer (9): open_directory('/')" in story
    assert "found something else" in story


def test_a_world_that_is_larger_than_its_bounds_is_not_exhausted() -> None:
    report = Explorer(KERNEL, {"one": counting, "other": counting}, anything, None, Bounds(states=3)).explore()
    assert not report.exhausted
    assert report.story is None


def test_who_never_is_ready_cannot_be_waited_for() -> None:
    with pytest.raises(ValueError, match="one never says that it is ready"):
        Explorer(KERNEL, {"one": counting}, anything, None, Bounds(ready=True))
