"""Who judges us is told of progress, and asked for patience while the disk is slow: no more and no less."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, cast

import pytest

from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.adapters.sqlite_ledger import memory_ledger
from ankita_agent.app.claim import PROGRESS_AT, Card, ClaimCard, Progress, Role, write_claim, write_life, write_progress
from ankita_agent.app.inspection import WEDGED_AFTER, OwnerState, look
from ankita_agent.app.patience import LONGEST_DISK_WAIT, Patience, patient_files, patient_ledger
from ankita_agent.core.errors import LedgerUnavailable
from ankita_agent.core.instants import MILLISECOND, MINUTE, SECOND, Duration, Instant, Monotonic
from ankita_agent.ports.files import Files
from ankita_agent.ports.ledger import Ledger
from ankita_agent.testing.clocks import START, FakeClock
from ankita_agent.testing.processes import FakeProcesses
from ankita_agent.testing.readiness import RecordedReadiness

PERIOD = Duration(2 * MINUTE)


class Watched:
    """An agent's patience with a manager that watches, and its life file as it was written last."""

    def __init__(self, period: Duration | None = PERIOD) -> None:
        self.clock = FakeClock()
        self.readiness = RecordedReadiness(period)
        self.patience = Patience(self.clock, self.readiness)
        self.stamps: list[Progress] = []
        self.patience.stamp = self.stamps.append
        self.readiness.ready("")
        self.pass_in_order()

    def pass_in_order(self) -> None:
        self.patience.progress(Role.OWNER, busy=False)

    def take(self, span: int) -> None:
        self.clock.pass_time(Duration(span))

    @property
    def told(self) -> list[tuple[str, int]]:
        """What the manager was told since it was asked last: (kind, span)."""
        told, self.readiness.told = self.readiness.told, []
        return [(str(kind), int(text) if kind == "be_patient" else 0) for kind, text in told]


@pytest.fixture
def watched() -> Watched:
    made = Watched()
    made.readiness.told.clear()
    made.stamps.clear()
    return made


def test_a_wait_for_the_disk_may_take_five_minutes_and_none_of_it_counts(watched: Watched) -> None:
    watched.take(10 * SECOND)
    with watched.patience.waiting():
        assert watched.told == [("be_patient", LONGEST_DISK_WAIT)]
        watched.take(4 * MINUTE)
    watched.take(0)
    assert watched.told == [("be_patient", PERIOD - 10 * SECOND)]
    watched.pass_in_order()
    assert watched.told == [("progress", 0)]


def test_waits_do_not_give_an_endless_pass_more_time(watched: Watched) -> None:
    left = []
    for _ in range(5):
        watched.take(20 * SECOND)
        with watched.patience.waiting():
            watched.take(MINUTE)
        left.append(watched.told[-1][1])
    assert left == [PERIOD - spent * SECOND for spent in (20, 40, 60, 80, 100)]


def test_after_a_wait_there_is_always_time_to_finish_the_pass(watched: Watched) -> None:
    watched.take(PERIOD - MILLISECOND)
    with watched.patience.waiting():
        pass
    assert watched.told[-1] == ("be_patient", SECOND)


def test_a_period_that_is_longer_than_any_wait_is_not_shortened() -> None:
    watched = Watched(Duration(10 * MINUTE))
    with watched.patience.waiting():
        assert watched.told[-1] == ("be_patient", 10 * MINUTE)


def test_a_wait_within_a_wait_says_nothing(watched: Watched) -> None:
    with watched.patience.waiting():
        told = watched.told
        with watched.patience.waiting():
            pass
        assert watched.told == []
    assert len(told) == 1


def test_patience_ends_also_when_the_disk_fails(watched: Watched) -> None:
    with pytest.raises(LedgerUnavailable), watched.patience.waiting():
        raise LedgerUnavailable("full")
    assert watched.told[-1] == ("be_patient", PERIOD)
    assert watched.stamps[-1].patience == 0


def test_the_life_file_says_how_much_longer_it_may_take(watched: Watched) -> None:
    with watched.patience.waiting():
        watched.take(3 * SECOND)
    with watched.patience.waiting():
        pass
    watched.pass_in_order()
    assert [stamp.patience for stamp in watched.stamps] == [
        LONGEST_DISK_WAIT,
        3 * SECOND,
        3 * SECOND + LONGEST_DISK_WAIT,
        3 * SECOND,
        0,
    ]
    assert [stamp.passes for stamp in watched.stamps] == [1, 1, 1, 1, 2]


def test_a_wait_before_the_first_pass_shows_no_progress() -> None:
    clock, readiness = FakeClock(), RecordedReadiness(PERIOD)
    patience, stamps = Patience(clock, readiness), list[Progress]()
    patience.stamp = stamps.append
    with patience.waiting():
        pass
    assert stamps == []
    assert readiness.told[0] == ("be_patient", str(LONGEST_DISK_WAIT))


def test_the_ping_is_given_before_the_disk_is_touched_and_whatever_the_disk_does(watched: Watched) -> None:
    order: list[str] = []

    def broken_disk(_: Progress) -> None:
        order.extend(kind for kind, _ in watched.told)
        order.append("disk")
        raise OSError(5, "Input/output error")

    watched.patience.stamp = broken_disk
    watched.pass_in_order()
    watched.pass_in_order()
    assert order == ["progress", "disk", "progress", "disk"]


class _Everything:
    """A port of which every method says whether it was called within a wait."""

    def __init__(self, is_waiting: Callable[[], bool]) -> None:
        self._is_waiting = is_waiting

    def __getattr__(self, name: str) -> Any:
        return lambda: self._is_waiting()


class _Flag:
    def __init__(self) -> None:
        self.up = False

    @contextmanager
    def waiting(self) -> Iterator[None]:
        self.up = True
        yield
        self.up = False


def methods_of(port: type) -> list[str]:
    """The methods that a port has, those of the ports that it extends among them."""
    ports = [each for each in port.__mro__ if each not in (object, Protocol) and each.__module__.startswith("ankita")]
    return [name for each in ports for name, found in vars(each).items() if callable(found) and name[0] != "_"]


@pytest.mark.parametrize("method", methods_of(Ledger))
def test_every_call_of_the_ledger_is_a_wait_for_the_disk(method: str) -> None:
    flag = _Flag()
    ledger = patient_ledger(cast(Ledger, _Everything(lambda: flag.up)), flag.waiting)
    assert getattr(ledger, method)() is True
    assert not flag.up


@pytest.mark.parametrize("method", methods_of(Files))
def test_of_the_files_the_durable_writes_are_waits_for_the_disk(method: str) -> None:
    flag = _Flag()
    files = patient_files(cast(Files, _Everything(lambda: flag.up)), flag.waiting)
    promise = str(getattr(Files, method).__doc__)
    assert getattr(files, method)() is (promise.startswith(("Durably", "`replace` for several")))


def test_a_patient_ledger_answers_as_the_ledger_does(watched: Watched) -> None:
    ledger = patient_ledger(memory_ledger(), watched.patience.waiting)
    process = FakeProcesses().this_process()
    assert ledger.begin_term(0, token="t", process=process, now=START) == 1
    newest = ledger.newest_term()
    assert newest is not None
    assert newest.term == 1
    assert [kind for kind, _ in watched.told] == ["be_patient"] * 4
    ledger.close()


@pytest.mark.parametrize(
    ("age", "patience", "state"),
    [
        (WEDGED_AFTER, 0, OwnerState.IDLE),
        (WEDGED_AFTER + 1, 0, OwnerState.WEDGED),
        (WEDGED_AFTER + 1, 1, OwnerState.BUSY),
        (WEDGED_AFTER + LONGEST_DISK_WAIT, LONGEST_DISK_WAIT, OwnerState.BUSY),
        (WEDGED_AFTER + LONGEST_DISK_WAIT + 1, LONGEST_DISK_WAIT, OwnerState.WEDGED),
    ],
)
def test_an_owner_that_waits_for_the_disk_is_busy_for_whoever_looks(
    tmp_path: Path, age: int, patience: int, state: OwnerState
) -> None:
    processes = FakeProcesses()
    card = Card("ab", processes.this_process(), 0, "0.1", None, "host")
    progress = Progress(Monotonic(SECOND), 7, False, Role.OWNER, "", Duration(patience))
    (tmp_path / "own" / "life").mkdir(parents=True)
    (tmp_path / "own" / "claim.json").write_bytes(write_claim(ClaimCard(card, 1, Instant(START))))
    life = write_life(card) + write_progress(progress)
    assert len(life) == 2 * PROGRESS_AT
    (tmp_path / "own" / "life" / "ab").write_bytes(life)
    files = PosixFiles()
    directory = files.open_directory(str(tmp_path))
    seen = look(files, directory, processes, Monotonic(SECOND + age))
    files.close(directory)
    assert seen.owner is not None
    assert seen.owner.state is state
