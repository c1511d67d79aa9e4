"""The agent as a service of a guest: the shipped unit, with a drop-in that names the program and shortens its times."""

import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from ankita_agent.adapters.sqlite_ledger import open_reader
from ankita_agent.core.rows import HistoryRow
from tests.real.agents import unaccounted
from tests.real.waiting import until
from tests.rig.guest import UNIT, Guest
from tests.rig.program import PYTHON, SOURCE
from tests.rig.worker import Worker

AGENT: Final = f"{PYTHON} -P -m ankita_agent run --standby"
WEDGING: Final = f"{PYTHON} -P {SOURCE}/tests/systemd/wedging.py"
STATE: Final = ".local/state/ankita-agent"
NOTED: Final = "noted"

BEAT: Final = f"""agent: {{settle: 1s, stop_drain: 1s}}
routines:
  beat: {{schedule: every 1s, run: 'echo "$ANKITA_ROUTINE $ANKITA_SLOT" >> {NOTED}'}}
"""
"""One routine that notes each of its slots, in one write, and does no more."""


def read_rows(path: str) -> list[HistoryRow]:
    """The rows of a ledger, oldest first."""
    reader = open_reader(path)
    if reader is None:
        return []
    try:
        return reader.history(None, 1_000_000)[::-1]
    finally:
        reader.close()


class Service:
    """The unit of one guest, under `watchdog` seconds; a context manager.

    `settings` are lines of the drop-in's [Service].
    """

    def __init__(self, guest: Guest, program: str = AGENT, *settings: str, watchdog: float = 2.0) -> None:
        self.guest = guest
        self.watchdog = watchdog
        self._worker = Worker(guest)
        units = f"{guest.home}/.local/share/systemd/user"
        assert guest.shell(f'mkdir -p "$1" faults && cp {SOURCE}/units/*.service {SOURCE}/units/*.slice "$1"', units)
        lines = ["[Service]", "ExecStart=", f"ExecStart={program}", f"WatchdogSec={watchdog}", *settings]
        guest.write(f".config/systemd/user/{UNIT}.d/test.conf", "\n".join(lines) + "\n")
        assert guest.systemctl("daemon-reload").code == 0

    def __enter__(self) -> "Service":
        self._worker.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.__exit__()

    def write(self, routines: str) -> None:
        """Save the file of routines."""
        self.guest.write(".config/ankita-agent/routines.yaml", routines)

    def start(self) -> int:
        """Start it with `systemctl --user start`; the pid of the agent, which is ready."""
        started = self.guest.systemctl("start", UNIT)
        assert started.code == 0, started.said + self.guest.journal()
        return self.guest.main_pid()

    def cause(self, fault: str) -> None:
        """Have the wedging program do that."""
        self.guest.write(f"faults/{fault}", "")

    def mend(self, fault: str) -> None:
        """End a fault that lasts."""
        assert self.guest.run("rm", f"faults/{fault}").code == 0

    def property(self, name: str) -> str:
        """One property of the unit."""
        return self.guest.show(name)[name]

    def says(self, text: str, times: int = 1) -> str:
        """Wait until the journal holds a text so often; the journal."""

        def found() -> str:
            journal = self.guest.journal()
            return journal if journal.count(text) >= times else ""

        try:
            return until(found, text)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.guest.journal()}") from None

    def follows(self, pid: int) -> int:
        """Wait until another process than `pid` is ready as owner; its pid."""

        def found() -> int:
            seen = self.guest.show("MainPID", "ActiveState", "StatusText")
            ready = seen["ActiveState"] == "active" and "owner, term" in seen["StatusText"]
            return int(seen["MainPID"]) if ready and int(seen["MainPID"]) not in (0, pid) else 0

        try:
            return until(found, "another owner")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.guest.show()}\n{self.guest.journal()}") from None

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """A block that the agent must outlive: the same process, never judged, its watchdog in force at the end."""
        pid = self.guest.main_pid()
        yield
        seen = self.guest.show("MainPID", "NRestarts", "ActiveState")
        assert seen == {"MainPID": str(pid), "NRestarts": "0", "ActiveState": "active"}, self.guest.journal()
        assert "Watchdog timeout" not in self.guest.journal()

    def pass_periods(self, count: float = 2.5) -> None:
        """Wait until so many of the watchdog's periods are over; the agent may be killed meanwhile."""
        end = time.monotonic() + count * self.watchdog
        until(lambda: time.monotonic() >= end)

    def unheard_for(self, count: float = 2.5) -> None:
        """Wait until the manager has heard neither a ping nor a wish for patience for so many periods."""

        def silent() -> bool:
            heard = int(self.property("WatchdogTimestampMonotonic")) / 1_000_000
            return time.monotonic() - heard >= count * self.watchdog

        until(silent, "silence")

    def rows(self, routine: str | None = None) -> list[HistoryRow]:
        """The rows of the ledger, oldest first."""
        rows: list[HistoryRow] = self._worker.call("tests.systemd.services:read_rows", self._path(f"{STATE}/ledger.db"))
        return [row for row in rows if routine in (None, row.routine)]

    def status(self) -> Any:
        """The document of `status --json`."""
        import json

        return json.loads(self.guest.run("ankita-agent", "status", "--json").out)

    def noted(self) -> list[str]:
        """What the routines noted: `routine slot`."""
        return self.guest.read(NOTED).splitlines() if self.guest.exists(NOTED) else []

    def notes_more(self, count: int = 1) -> None:
        """Wait until the routines have noted so many slots more."""
        before = len(self.noted())
        until(lambda: len(self.noted()) >= before + count, "more slots")

    def check_account(self, *routines: str) -> None:
        """No slot fired twice, and every slot since the first is in exactly one row."""
        doubled = [line for line, times in Counter(self.noted()).items() if times > 1]
        assert doubled == []
        for routine in routines or ("beat",):
            assert unaccounted(self.rows(routine)) == []

    def seconds_between(self, first: str, then: str) -> float:
        """From the first message of the journal that the one pattern matches to the next that the other does."""
        began: int | None = None
        for entry in self.guest.journal_entries():
            message, at = str(entry.get("MESSAGE", "")), int(entry["__REALTIME_TIMESTAMP"])
            if began is None:
                began = at if re.search(first, message) else None
            elif re.search(then, message):
                return (at - began) / 1_000_000
        raise AssertionError(f"no {first!r} with {then!r} after it in\n{self.guest.journal()}")

    def _path(self, below_home: str) -> str:
        return f"{self.guest.home}/{below_home}"
