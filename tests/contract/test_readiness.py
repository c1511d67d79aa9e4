"""The Readiness port: what a manager hears, from the recording fake and over a real datagram socket."""

import itertools
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from ankita_agent.adapters.sd_notify import NoManager, SdNotify, find_manager
from ankita_agent.core.instants import SECOND, Duration
from ankita_agent.ports.readiness import Readiness
from ankita_agent.testing.readiness import RecordedReadiness, Told

_names = itertools.count()
_STATES = {"READY=1": "ready", "RELOADING=1": "reloading", "STOPPING=1": "stopping", "WATCHDOG=1": "progress"}
_SPANS = ("WATCHDOG_USEC", "EXTEND_TIMEOUT_USEC")


class Manager:
    """The other end of $NOTIFY_SOCKET."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self._socket.setblocking(False)

    def heard(self) -> list[str]:
        """Every datagram so far that was not taken yet."""
        messages = []
        while True:
            try:
                messages.append(self._socket.recv(4096).decode())
            except BlockingIOError:
                return messages

    def close(self) -> None:
        self._socket.close()


@dataclass
class Watched:
    readiness: Readiness
    told: Callable[[], list[Told]]


def _as_told(datagram: str) -> Told:
    status, kind = "", "status"
    for line in datagram.split("\n"):
        name, _, value = line.partition("=")
        if name == "STATUS":
            status = value
        elif name not in _SPANS:
            kind = _STATES[line]
        elif line == datagram:
            kind, status = "be_patient", str(int(value) * 1000)
    return kind, status  # type: ignore[return-value]


@pytest.fixture
def manager(home: Path) -> Iterator[Manager]:
    manager = Manager(_abstract_name())
    yield manager
    manager.close()


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def _watched_by(manager: Manager, closing: ExitStack, watchdog: Duration | None = None) -> SdNotify:
    readiness = SdNotify(manager.address, watchdog)
    closing.callback(readiness.close)
    return readiness


@pytest.fixture(params=["fake", "socket"])
def watch(request: pytest.FixtureRequest, manager: Manager, closing: ExitStack) -> Callable[[Duration | None], Watched]:
    def make(watchdog: Duration | None) -> Watched:
        if request.param == "fake":
            fake = RecordedReadiness(watchdog)
            return Watched(fake, lambda: fake.told)
        real = _watched_by(manager, closing, watchdog)
        return Watched(real, lambda: [_as_told(datagram) for datagram in manager.heard()])

    return make


Watch = Callable[[Duration | None], Watched]


def test_a_manager_hears_each_change_of_state_with_its_line(watch: Watch) -> None:
    watched = watch(None)
    watched.readiness.ready("owner of 3 routines")
    watched.readiness.status("2 running")
    watched.readiness.reloading()
    watched.readiness.ready("owner of 4 routines")
    watched.readiness.stopping("ending 2 attempts")
    assert watched.told() == [
        ("ready", "owner of 3 routines"),
        ("status", "2 running"),
        ("reloading", ""),
        ("ready", "owner of 4 routines"),
        ("stopping", "ending 2 attempts"),
    ]


def test_each_finished_pass_is_one_ping(watch: Watch) -> None:
    watched = watch(Duration(120 * SECOND))
    watched.readiness.ready("")
    watched.readiness.progress()
    watched.readiness.progress()
    assert watched.told() == [("ready", ""), ("progress", ""), ("progress", "")]


def test_patience_is_asked_for_while_starting_and_serving_and_never_while_stopping(watch: Watch) -> None:
    watched = watch(Duration(120 * SECOND))
    watched.readiness.be_patient(Duration(300 * SECOND))
    watched.readiness.be_patient(Duration(299 * SECOND))
    watched.readiness.ready("owner")
    watched.readiness.be_patient(Duration(301 * SECOND))
    watched.readiness.progress()
    watched.readiness.stopping("asked to")
    watched.readiness.be_patient(Duration(302 * SECOND))
    assert watched.told() == [
        ("be_patient", str(300 * SECOND)),
        ("ready", "owner"),
        ("be_patient", str(301 * SECOND)),
        ("progress", ""),
        ("stopping", "asked to"),
    ]


def test_only_who_serves_pings(watch: Watch) -> None:
    watched = watch(Duration(120 * SECOND))
    watched.readiness.progress()
    watched.readiness.ready("")
    watched.readiness.progress()
    watched.readiness.stopping("")
    watched.readiness.progress()
    assert [kind for kind, _ in watched.told()] == ["ready", "progress", "stopping"]


def test_who_is_not_watched_asks_for_patience_only_while_starting(watch: Watch) -> None:
    watched = watch(None)
    watched.readiness.be_patient(Duration(SECOND))
    watched.readiness.ready("")
    watched.readiness.be_patient(Duration(SECOND))
    assert [kind for kind, _ in watched.told()] == ["be_patient", "ready"]


def test_nobody_is_pinged_who_does_not_wait_for_pings(watch: Watch) -> None:
    watched = watch(None)
    watched.readiness.ready("")
    watched.readiness.progress()
    assert watched.readiness.watchdog is None
    assert watched.told() == [("ready", "")]


def test_the_watchdog_is_the_span_that_the_manager_named(watch: Watch) -> None:
    assert watch(Duration(120 * SECOND)).readiness.watchdog == 120 * SECOND


@pytest.mark.parametrize("kind", ["abstract", "path"])
def test_the_socket_in_the_environment_is_spoken_to(kind: str, tmp_path: Path, closing: ExitStack) -> None:
    address = f"@ankita-agent-test-{os.getpid()}-{next(_names)}" if kind == "abstract" else str(tmp_path / "n")
    manager = Manager(address)
    closing.callback(manager.close)
    readiness = find_manager({"NOTIFY_SOCKET": address}, pid=4711)
    assert isinstance(readiness, SdNotify)
    closing.callback(readiness.close)
    readiness.ready("standby")
    assert manager.heard() == ["READY=1\nSTATUS=standby"]


def test_the_variables_of_the_protocol_are_taken_out_and_no_others() -> None:
    environment = {"WATCHDOG_USEC": "1", "WATCHDOG_PID": "1", "NOTIFY_SOCKET": "", "PATH": "/bin"}
    assert isinstance(find_manager(environment, pid=1), NoManager)
    assert environment == {"PATH": "/bin"}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"WATCHDOG_USEC": "120000000"}, 120 * SECOND),
        ({"WATCHDOG_USEC": "120000000", "WATCHDOG_PID": "4711"}, 120 * SECOND),
        ({"WATCHDOG_USEC": "120000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "-5"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_a_watchdog_counts_only_when_it_is_meant_for_this_process(
    variables: dict[str, str], expected: int | None, manager: Manager, closing: ExitStack
) -> None:
    readiness = find_manager({"NOTIFY_SOCKET": manager.address, **variables}, pid=4711)
    assert isinstance(readiness, SdNotify)
    closing.callback(readiness.close)
    assert readiness.watchdog == expected


@pytest.mark.parametrize("address", ["", "vsock:2:1234", "relative/path"])
def test_without_a_socket_of_a_kind_we_know_nobody_watches(address: str) -> None:
    readiness = find_manager({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1000000"}, pid=1)
    assert isinstance(readiness, NoManager)
    assert readiness.watchdog is None


def test_the_period_holds_again_from_the_next_ping_on(manager: Manager, closing: ExitStack) -> None:
    readiness = _watched_by(manager, closing, Duration(2 * SECOND))
    readiness.be_patient(Duration(300 * SECOND))
    readiness.ready("owner")
    readiness.progress()
    readiness.be_patient(Duration(300 * SECOND))
    readiness.be_patient(Duration(SECOND))
    readiness.progress()
    readiness.progress()
    readiness.stopping("")
    assert manager.heard() == [
        "EXTEND_TIMEOUT_USEC=300000000",
        "READY=1\nSTATUS=owner",
        "WATCHDOG=1",
        "WATCHDOG_USEC=300000000",
        "WATCHDOG_USEC=1000000",
        "WATCHDOG=1\nWATCHDOG_USEC=2000000",
        "WATCHDOG=1",
        "STOPPING=1\nSTATUS=\nWATCHDOG_USEC=0",
    ]


def test_a_period_that_could_not_be_told_is_told_with_the_next_ping(manager: Manager, closing: ExitStack) -> None:
    readiness = _watched_by(manager, closing, Duration(2 * SECOND))
    readiness.ready("owner")
    readiness.be_patient(Duration(300 * SECOND))
    _fill(manager)
    readiness.progress()
    manager.heard()
    readiness.progress()
    assert manager.heard() == ["WATCHDOG=1\nWATCHDOG_USEC=2000000"]


def test_no_span_is_so_short_that_it_would_end_the_watch(manager: Manager, closing: ExitStack) -> None:
    readiness = _watched_by(manager, closing, Duration(2 * SECOND))
    readiness.ready("")
    readiness.be_patient(Duration(0))
    assert manager.heard()[-1] == "WATCHDOG_USEC=1"


def test_a_line_break_in_a_status_begins_no_other_assignment(manager: Manager, closing: ExitStack) -> None:
    _watched_by(manager, closing).ready("3 routines\nMAINPID=1\r\nFDSTORE=1")
    assert manager.heard() == ["READY=1\nSTATUS=3 routines MAINPID=1 FDSTORE=1"]


def test_a_status_is_cut_between_characters_and_never_over_what_a_manager_takes(
    manager: Manager, closing: ExitStack
) -> None:
    _watched_by(manager, closing).status("x" + "ü" * 5_000 + "\udcff")
    (message,) = manager.heard()
    assert message == "STATUS=x" + "ü" * 499


def test_a_full_queue_is_never_waited_for_and_the_newest_state_is_told_with_the_next_message(
    manager: Manager, closing: ExitStack
) -> None:
    readiness = _watched_by(manager, closing, Duration(SECOND))
    _fill(manager)
    readiness.reloading()
    readiness.ready("owner")
    readiness.progress()
    manager.heard()
    readiness.progress()
    readiness.progress()
    assert manager.heard() == ["READY=1\nSTATUS=owner\nWATCHDOG=1", "WATCHDOG=1"]


def test_a_manager_that_went_away_is_no_error(tmp_path: Path, closing: ExitStack) -> None:
    for address in (str(tmp_path / "gone"), "/" + "too-long/" * 40):
        readiness = SdNotify(address, Duration(SECOND))
        closing.callback(readiness.close)
        readiness.ready("owner")
        readiness.progress()
        readiness.stopping("done")


def test_nobody_to_tell_is_no_error() -> None:
    readiness: Readiness = NoManager()
    readiness.ready("owner")
    readiness.status("idle")
    readiness.progress()
    readiness.be_patient(Duration(SECOND))
    readiness.reloading()
    readiness.stopping("done")
    assert readiness.watchdog is None


def _abstract_name() -> str:
    return f"@ankita-agent-test-{os.getpid()}-{next(_names)}"


def _fill(manager: Manager) -> None:
    """Send until the manager's queue takes no more."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        while True:
            try:
                sender.sendto(b"STATUS=noise", "\0" + manager.address[1:])
            except BlockingIOError:
                return
