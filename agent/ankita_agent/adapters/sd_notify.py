"""The readiness protocol of systemd: one datagram per message to the socket that $NOTIFY_SOCKET names.

Source: sd_notify(3), sd_watchdog_enabled(3), systemd.service(5) NotifyAccess=. No library: it is a socket and
a few words, and the process that pings must never wait for a bus. MAINPID= is not sent: we are the main
process, and only its messages count.

What the pages do not say, and systemd 252 does (tests/systemd/test_watchdog.py): WATCHDOG_USEC= counts from its
own arrival, holds over a daemon-reload and until the service starts anew; a ping that arrives while the service
starts or stops sets the watchdog, which then ends the service by the watchdog's time instead of its TimeoutSec.
"""

import socket
from collections.abc import MutableMapping
from enum import Enum, auto
from typing import Final, assert_never

from ankita_agent.core.instants import Duration
from ankita_agent.ports.readiness import Readiness

_MICROSECOND: Final = 1_000
_LONGEST_STATUS: Final = 1_000
"""Bytes. The manager ignores a message over 4096 bytes as a whole, and a person reads one line."""


class _Stage(Enum):
    """How far the service has come."""

    STARTING = auto()
    SERVING = auto()
    STOPPING = auto()


def find_manager(environment: MutableMapping[str, str], pid: int) -> Readiness:
    """The manager that watches the process `pid`, as its environment says; NoManager when none does.

    Takes the variables of the protocol out of `environment`, so that no attempt inherits them and speaks
    for us.
    """
    address = environment.pop("NOTIFY_SOCKET", "")
    period, watched = environment.pop("WATCHDOG_USEC", ""), environment.pop("WATCHDOG_PID", str(pid))
    if not address.startswith(("/", "@")):  # another transport, such as vsock:, is not for user services
        return NoManager()
    ours = watched == str(pid) and period.isdecimal() and int(period) > 0
    return SdNotify(address, Duration(int(period) * _MICROSECOND) if ours else None)


class NoManager:
    """Nobody watches: a terminal, a container, launchd."""

    @property
    def watchdog(self) -> Duration | None:
        """Nobody waits for a ping."""
        return None

    def ready(self, status: str) -> None:
        """Nobody to tell."""

    def status(self, text: str) -> None:
        """Nobody to tell."""

    def progress(self) -> None:
        """Nobody to tell."""

    def be_patient(self, span: Duration) -> None:
        """Nobody to ask."""

    def reloading(self) -> None:
        """Nobody to tell."""

    def stopping(self, status: str) -> None:
        """Nobody to tell."""


class SdNotify:
    """Speaks to one notify socket; `address` is a path, or an abstract name that begins with `@`.

    Promise: no call waits or raises. A message that finds the manager's queue full is dropped, except the
    newest change of state, which goes out with the next message. Limit: without a next message it stays
    unsaid; a ping follows each pass. The one socket is made here and kept, so that running out of descriptors
    silences nobody.
    """

    def __init__(self, address: str, watchdog: Duration | None) -> None:
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._watchdog = watchdog
        self._stage = _Stage.STARTING
        self._extended = Duration(0)
        self._other_period = False
        self._owed = ""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    @property
    def watchdog(self) -> Duration | None:
        """How long the manager waits for a ping, or None when it waits for none of ours."""
        return self._watchdog

    def ready(self, status: str) -> None:
        """We serve."""
        self._stage = _Stage.SERVING
        self._enter(f"READY=1\nSTATUS={_one_line(status)}")

    def status(self, text: str) -> None:
        """One line for `systemctl status`."""
        self._send(f"STATUS={_one_line(text)}")

    def progress(self) -> None:
        """The ping; silent when the manager waits for none."""
        if self._watchdog is None or self._stage is not _Stage.SERVING:
            return
        if not self._other_period:
            self._send("WATCHDOG=1")
        elif self._send(f"WATCHDOG=1\nWATCHDOG_USEC={_microseconds(self._watchdog)}"):
            self._other_period = False

    def be_patient(self, span: Duration) -> None:
        """The next ping, or the end of the start, may come within `span` from now."""
        match self._stage:
            case _Stage.STARTING if span < self._extended:
                pass
            case _Stage.STARTING:
                self._extended = span
                self._send(f"EXTEND_TIMEOUT_USEC={_microseconds(span)}")
            case _Stage.SERVING if self._watchdog is not None:  # else WATCHDOG_USEC= would begin to watch us
                self._other_period = True
                self._send(f"WATCHDOG_USEC={_microseconds(span)}")
            case _Stage.SERVING | _Stage.STOPPING:
                pass
            case _:
                assert_never(self._stage)

    def reloading(self) -> None:
        """`ready` follows. The time stamp is left out: only Type=notify-reload asks for it."""
        self._enter("RELOADING=1")

    def stopping(self, status: str) -> None:
        """We are on our way out; from here the manager counts TimeoutStopSec= and nothing else.

        A last ping may have crossed its wish that we stop, and would have it watch on.
        """
        self._stage = _Stage.STOPPING
        unwatched = "" if self._watchdog is None else "\nWATCHDOG_USEC=0"
        self._enter(f"STOPPING=1\nSTATUS={_one_line(status)}{unwatched}")

    def close(self) -> None:
        """Let go of the socket. Later messages go nowhere."""
        self._socket.close()

    def _enter(self, state: str) -> None:
        self._owed = ""
        if not self._send(state):
            self._owed = state

    def _send(self, message: str) -> bool:
        whole = f"{self._owed}\n{message}" if self._owed else message
        try:
            self._socket.sendto(whole.encode(), self._address)
        except OSError:  # full queue, no socket there any more, name too long
            return False
        self._owed = ""
        return True


def _microseconds(span: Duration) -> int:
    """Never 0, which would end the watch (sd_notify(3))."""
    return max(1, span // _MICROSECOND)


def _one_line(text: str) -> str:
    """Valid UTF-8 on one line: a line break would begin another assignment, such as MAINPID=."""
    flat = " ".join(text.split()).encode(errors="replace")
    return flat[:_LONGEST_STATUS].decode(errors="ignore")
