"""Taking the service away again: everything that installing made, and nothing that a person made.

What somebody wrote himself stays and is named: routines.yaml, drop-ins of his own, a unit of ours that he edited
(beside itself, under another name). It ends the same from wherever it begins: done twice, after half of it was done
by hand, when the program has moved, and when no manager can be asked, of which what remains is told.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ankita_agent.app.installation import DROP_INS, HARDENING, SLICE, Shipped, Whereto
from ankita_agent.app.unit_files import KEPT, UnitFiles
from ankita_agent.core.errors import AnkitaError, CannotWriteState, ManagerSilent, ManagerUnreachable, ServiceNotUp
from ankita_agent.core.install_plan import Change, FileChange, judge_file
from ankita_agent.core.instants import SECOND, Duration
from ankita_agent.core.service import UNIT, Activity, JobEnd, UnitState
from ankita_agent.ports.service_manager import ServiceManager

STOP_PATIENCE: Final = Duration(105 * SECOND)
"""A stop ends within TimeoutStopSec=, TimeoutAbortSec=, and TimeoutStopSec= once more after SIGKILL."""

_IDLE: Final = (Activity.INACTIVE, Activity.FAILED)


@dataclass(frozen=True, slots=True)
class Installed:
    """What there is to take away. `state` is None where the manager cannot be asked, and `trouble` says why.

    `links` are those by which the manager starts the unit; `own` what the user made himself, which stays.
    """

    files: tuple[FileChange, ...]
    links: tuple[str, ...]
    own: tuple[str, ...]
    state: UnitState | None
    trouble: AnkitaError | None

    @property
    def running(self) -> bool:
        """Whether the service has to be stopped first."""
        return self.state is not None and self.state.activity not in _IDLE

    @property
    def nothing(self) -> bool:
        """Whether it is not installed at all."""
        state = self.state
        remembered = state is not None and state.activity is Activity.FAILED and state.load == "not-found"
        return not (self.files or self.links or self.running or remembered)


class Removal:
    """The way back. `own_units` is where the user's own units are, and the links of enabled ones."""

    def __init__(
        self,
        manager: ServiceManager,
        disk: UnitFiles,
        shipped: Shipped,
        whereto: Whereto,
        own_units: str,
        tell: Callable[[str], None],
    ) -> None:
        self._manager = manager
        self._disk = disk
        self._shipped = shipped
        self._whereto = whereto
        self._own_units = own_units
        self._tell = tell

    def look(self) -> Installed:
        """What is installed; nothing is changed. Raises CannotWriteState for files that cannot be trusted."""
        paths = (self._whereto.hardening, self._whereto.slice, self._whereto.service)
        found = [(path, self._disk.read(path)) for path in paths]
        files = tuple(judge_file(path, text, None) for path, text in found if text is not None)
        wanted = f"{self._own_units}/default.target.wants/{UNIT}"
        links = tuple(path for path in (wanted,) if self._disk.holds(path))
        state, trouble = self._ask()
        return Installed(files, links, self._own(), state, trouble)

    def stop(self) -> None:
        """Have the manager stop the service, whose runs end first. Raises ServiceNotUp when it goes on."""
        if self._manager.stop(UNIT, STOP_PATIENCE) is JobEnd.PENDING:
            raise ServiceNotUp(
                "the service did not stop",
                fact=f"not within {STOP_PATIENCE // SECOND} s",
                now="nothing was removed",
                do="see what it does: systemctl --user status ankita-agent, then again: ankita-agent uninstall",
            )

    def carry_out(self, installed: Installed) -> None:
        """Remove it; the service has been stopped. Raises CannotWriteState with what is so then."""
        if installed.state is not None:
            self._manager.disable(UNIT)
        kept = self._disk.apply(installed.files)
        for file in installed.files:
            self._tell(f"removed     {file.path}")
            if file.path in kept:
                self._tell(f"            it had been edited by hand; what it was: {kept[file.path]}")
        for link in installed.links:
            if self._disk.remove(link):
                self._tell(f"removed     {link}")
        self._remove_schema()
        self._remove_directories()
        if installed.state is not None:
            self._manager.reload()
            self._manager.reset_failed(UNIT)

    def _ask(self) -> tuple[UnitState | None, AnkitaError | None]:
        try:
            return self._manager.state(UNIT), None
        except (ManagerUnreachable, ManagerSilent) as fault:
            return None, fault

    def _own(self) -> tuple[str, ...]:
        """Paths of what the user made himself about our units."""
        theirs = [f"{self._own_units}/{name}" for name in (UNIT, DROP_INS, SLICE, f"{SLICE}.d")]
        copies = [
            f"{directory}/{name}"
            for directory in (self._whereto.units, f"{self._whereto.units}/{DROP_INS}")
            for name in self._disk.names(directory)
            if name.startswith((f"{UNIT}{KEPT}", f"{SLICE}{KEPT}", f"{HARDENING}{KEPT}"))
            or (directory.endswith(DROP_INS) and name != HARDENING and not name.startswith("."))
        ]
        return tuple([each for each in theirs if self._disk.holds(each)] + copies)

    def _remove_schema(self) -> None:
        """The schema is ours as long as nobody changed it."""
        path = self._whereto.schema
        try:
            if self._disk.read(path) == self._shipped.schema:
                self._disk.apply([FileChange(path, self._shipped.schema, None, Change.REMOVED)])
                self._tell(f"removed     {path}")
        except CannotWriteState:  # a link, or open to others: not what we made
            return

    def _remove_directories(self) -> None:
        """Those that are empty now, up to the one that every package shares."""
        units, own = self._whereto.units, self._own_units
        self._remove_halves(units)
        for directory in (f"{units}/{DROP_INS}", f"{own}/default.target.wants", units, own):
            self._disk.remove_if_empty(directory)
        for directory in (units, own):
            self._disk.remove_if_empty(directory.rpartition("/")[0])

    def _remove_halves(self, units: str) -> None:
        """What an install that was killed had written by then, under names that nothing reads."""
        for directory in (units, f"{units}/{DROP_INS}"):
            for name in self._disk.names(directory):
                if name.startswith((f".{UNIT}", f".{SLICE}", f".{HARDENING}")) and name.endswith(".new"):
                    self._disk.remove(f"{directory}/{name}")
