"""The user's service manager, asked over D-Bus with pystemd.

The problem: libsystemd waits 90 s for a manager that is stopped to shake hands (seen with 252), 25 s for an answer, and
pystemd holds the interpreter's lock meanwhile. The rule: shake hands ourselves first, with a deadline; set the patience
for answers before the first call; wait for the end of a job in short steps. So nothing here is for the process that
pings a watchdog. One connection for each call of the port: a manager that was executed anew has no old ones.
`tests/contract/test_service_manager_contract.py` holds it.

Source: org.freedesktop.systemd1(5), sd_bus_call(3), the D-Bus specification ("Authentication Protocol") and the sources
of pystemd 0.15, whose calls take and give bytes.
"""

import errno
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from pystemd.dbusexc import DBusBaseError
from pystemd.dbuslib import DBusAddress, apply_signature

from ankita_agent.core.errors import ManagerRefused
from ankita_agent.core.instants import MILLISECOND, SECOND, Duration, in_seconds
from ankita_agent.core.reaching import Address, check_unit_name, refused, silent
from ankita_agent.core.service import Activity, JobEnd, UnitState
from ankita_agent.core.unit_properties import DROP_INS, read_unit, read_version

PATIENCE: Final = Duration(10 * SECOND)

_SYSTEMD: Final = b"org.freedesktop.systemd1"
_MANAGER: Final = b"org.freedesktop.systemd1.Manager"
_MANAGER_PATH: Final = b"/org/freedesktop/systemd1"
_PROPERTIES: Final = b"org.freedesktop.DBus.Properties"

_MICROSECONDS: Final = 1_000
_STEP: Final = Duration(100 * MILLISECOND)
"""How long one wait inside libsystemd may last: Ctrl-C is seen in between."""

_GONE: Final = {-errno.ETIMEDOUT, -errno.ETIME, -errno.ECONNRESET, -errno.ENOTCONN, -errno.EPIPE, -errno.ESHUTDOWN}
_DOWN: Final = (Activity.INACTIVE, Activity.FAILED)
_NO_MAIN_PROCESS: Final = -errno.ESRCH

_ENDS: Final = {end.value: end for end in JobEnd}
"""Any other result tells that the job could not be done at all, such as `assert` or `unsupported`."""


class PystemdManager:
    """ports.service_manager.ServiceManager over the socket that `locate` names; it raises ManagerUnreachable.

    Sets SYSTEMD_BUS_TIMEOUT in the environment of this process with each call: libsystemd takes the patience for an
    answer from nowhere else.
    """

    def __init__(self, locate: Callable[[], Address], patience: Duration = PATIENCE) -> None:
        self._locate = locate
        self._patience = patience

    @property
    def name(self) -> str:
        """What people call it."""
        return "systemd"

    def version(self) -> int:
        """The major number of its version."""
        with self._connected("tell its version") as bus:
            text = _text(bus.get_property(_SYSTEMD, _MANAGER_PATH, _MANAGER, b"Version", b"s"))
        try:
            return read_version(text)
        except ValueError as error:
            raise refused("tell its version", str(error)) from None

    def state(self, unit: str) -> UnitState:
        """The unit as it is now."""
        check_unit_name(unit)
        with self._connected(f"show {unit}") as bus:
            return _read_state(bus, unit)

    def reload(self) -> None:
        """Have the unit files read again."""
        with self._connected("read its unit files again") as bus:
            _call(bus, b"Reload")

    def enable(self, unit: str) -> None:
        """Have the unit start with the manager; the manager knows of it at once."""
        check_unit_name(unit)
        with self._connected(f"enable {unit}") as bus:
            installs, _ = _call(bus, b"EnableUnitFiles", b"asbb", [unit.encode()], False, False)
            _call(bus, b"Reload")
        if not installs:
            raise refused(f"enable {unit}", "its unit file has no [Install] section that says what wants it")

    def disable(self, unit: str) -> None:
        """No longer start it with the manager."""
        check_unit_name(unit)
        with self._connected(f"disable {unit}") as bus:
            try:
                _call(bus, b"DisableUnitFiles", b"asb", [unit.encode()], False)
            except DBusBaseError:
                if _read_state(bus, unit).load != "not-found":
                    raise
            _call(bus, b"Reload")

    def start(self, unit: str, patience: Duration) -> JobEnd:
        """Start it and wait for the end of the job."""
        return self._do("start", b"StartUnit", unit, patience)

    def stop(self, unit: str, patience: Duration) -> JobEnd:
        """Stop it and wait for the end of the job."""
        try:
            return self._do("stop", b"StopUnit", unit, patience)
        except ManagerRefused:
            if self.state(unit).activity in _DOWN:
                return JobEnd.DONE
            raise

    def restart(self, unit: str, patience: Duration) -> JobEnd:
        """Stop it if it runs, and start it."""
        return self._do("restart", b"RestartUnit", unit, patience)

    def kill(self, unit: str, number: int) -> bool:
        """Send a signal to the main process of the unit."""
        check_unit_name(unit)
        with self._connected(f"signal {unit}") as bus:
            if _read_state(bus, unit).main_pid is None:
                return False
            try:
                _call(bus, b"KillUnit", b"ssi", unit.encode(), b"main", number)
            except DBusBaseError as error:
                if error.errno == _NO_MAIN_PROCESS:
                    return False
                raise
        return True

    def reset_failed(self, unit: str) -> None:
        """Forget that it failed."""
        check_unit_name(unit)
        with self._connected(f"forget the failure of {unit}") as bus:
            try:
                _call(bus, b"ResetFailedUnit", b"s", unit.encode())
            except DBusBaseError:
                if _read_state(bus, unit).activity is Activity.FAILED:
                    raise

    # -- inside

    def _do(self, verb: str, method: bytes, unit: str, patience: Duration) -> JobEnd:
        check_unit_name(unit)
        deadline = time.monotonic_ns() + patience
        with self._connected(f"{verb} {unit}") as bus:
            before = _read_state(bus, unit).activity
            _call(bus, b"Subscribe")  # to JobRemoved, before there is a job
            job = _call(bus, method, b"ss", unit.encode(), b"replace")
            if patience == 0:
                already = (verb == "start" and before.up) or (verb == "stop" and before in _DOWN)
                return JobEnd.DONE if already else JobEnd.PENDING
            try:
                result = _wait_for_job(bus, job, deadline)
            except DBusBaseError as error:
                if error.errno in _GONE:  # the manager was executed anew, and has dropped its connections
                    return JobEnd.PENDING
                raise
        if result not in _ENDS:
            raise refused(f"{verb} {unit}", f"the job ended with {result}")
        return _ENDS[result]

    @contextmanager
    def _connected(self, asked: str) -> Iterator[DBusAddress]:
        """A connection for one call of the port, with the library's exceptions turned into the port's."""
        address = self._locate()
        if not _shakes_hands(address.socket, self._patience):
            raise silent(asked, self._patience)
        os.environ["SYSTEMD_BUS_TIMEOUT"] = f"{self._patience // MILLISECOND}ms"
        bus = DBusAddress(f"unix:path={address.socket}".encode(), peer_to_peer=True)
        try:
            bus.open()
            try:
                yield bus
            finally:
                bus.close()
        except DBusBaseError as error:
            if error.errno in _GONE:
                raise silent(asked, self._patience) from None
            raise refused(asked, _text(error.err_message)) from None


def _shakes_hands(path: str, patience: Duration) -> bool:
    """Whether whoever listens at the socket answers the beginning of the D-Bus handshake in time.

    A socket that cannot be connected to, or is closed at once, is an answer: the library will tell it.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(in_seconds(patience))
        try:
            connection.connect(path)
            connection.sendall(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\n")
            connection.recv(1)
        except TimeoutError:
            return False
        except OSError:
            pass
    return True


def _call(bus: DBusAddress, method: bytes, signature: bytes = b"", *arguments: Any) -> Any:
    """What a method of the manager answers."""
    return bus.call_method(_SYSTEMD, _MANAGER_PATH, _MANAGER, method, apply_signature(signature, list(arguments))).body


def _wait_for_job(bus: DBusAddress, path: bytes, deadline: int) -> str:
    """The result of the job at that path, `pending` when it has none at the deadline (time.monotonic_ns)."""
    while (left := deadline - time.monotonic_ns()) > 0:
        message = bus.process()
        if message.is_signal(_MANAGER, b"JobRemoved"):
            message.process_reply(False)
            _, ended, _, result = message.body
            if ended == path:
                return _text(result)
        else:
            _wait_for_more(bus, min(left, _STEP))
    return JobEnd.PENDING


def _wait_for_more(bus: DBusAddress, patience: int) -> None:
    """Wait until there is something to process; not at all while there is. A signal may end it before."""
    try:
        bus.wait(patience // _MICROSECONDS)
    except DBusBaseError as error:
        if error.errno != -errno.EINTR:
            raise


def _read_state(bus: DBusAddress, unit: str) -> UnitState:
    path = _call(bus, b"LoadUnit", b"s", unit.encode())
    kind = unit.rpartition(".")[2].capitalize()
    properties = _properties(bus, path, "Unit") | _properties(bus, path, kind)
    drop_ins = tuple(_text(each) for each in properties.pop(DROP_INS))
    try:
        return read_unit({name: _shown(value) for name, value in properties.items()}, drop_ins)
    except (KeyError, ValueError) as error:
        raise refused(f"show {unit}", f"it answers with {error}") from None


def _properties(bus: DBusAddress, path: bytes, interface: str) -> dict[str, Any]:
    """All properties that an object has by an interface of systemd, such as `Service`."""
    asked = apply_signature(b"s", [_SYSTEMD + b"." + interface.encode()])
    answer = dict(bus.call_method(_SYSTEMD, path, _PROPERTIES, b"GetAll", asked).body)  # none come as a list
    return {_text(name): value for name, value in answer.items()}


def _shown(value: Any) -> str:
    """A value as systemctl(1) shows it, for the kinds that are asked for."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _text(value) if isinstance(value, bytes) else str(value)


def _text(value: bytes | str) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
