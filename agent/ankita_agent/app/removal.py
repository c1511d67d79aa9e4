"""Taking the service away again: everything that installing made, and nothing that a person made.

What somebody wrote himself stays and is named: routines.yaml, drop-ins of his own, a unit of ours that he edited
(beside itself, under another name). Every fault says what is so by then. It ends the same from wherever it begins: done
twice, after half of it was done by hand, when the program has moved, and when no manager can be asked, of which what
remains is told.
"""

import posixpath
import shlex
import signal
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from ankita_agent.app.installation import DROP_INS, HARDENING, SLICE, Shipped, Whereto
from ankita_agent.app.unit_files import KEPT, UnitFiles
from ankita_agent.core.elsewhere import Elsewhere, meaning_it, told
from ankita_agent.core.errors import (
    AnkitaError,
    CannotWriteState,
    ManagerSilent,
    ManagerUnreachable,
    ServiceNotUp,
    WrongUse,
    saying,
)
from ankita_agent.core.install_plan import Change, FileChange, judge_file
from ankita_agent.core.instants import MILLISECOND, SECOND, Duration, Monotonic
from ankita_agent.core.service import UNIT, Activity, JobEnd, UnitState
from ankita_agent.ports.clock import Clock
from ankita_agent.ports.service_manager import ServiceManager

STOP_PATIENCE: Final = Duration(105 * SECOND)
"""A stop ends within TimeoutStopSec=, TimeoutAbortSec=, and TimeoutStopSec= once more after SIGKILL."""

_LOOK_EVERY: Final = Duration(50 * MILLISECOND)
_OUT_OF_REACH: Final = Duration(2 * SECOND)  # as long as a manager may take that is executed anew
_FIRST_WISH: Final = Duration(SECOND)
_IDLE: Final = (Activity.INACTIVE, Activity.FAILED)
_STATUS: Final = "systemctl --user status ankita-agent"
_AGAIN: Final = "again: ankita-agent uninstall"


def refuse_removing(found: Collection[Elsewhere], set_here: Collection[str]) -> None:
    """Raise WrongUse for a service that is not this shell's (core.elsewhere)."""
    if found:
        raise WrongUse(
            "will not uninstall the service",
            fact=told(found),
            now="nothing was changed",
            do=f"that service is meant: {meaning_it('uninstall', found, set_here)}",
        )


def refuse_within(fire: str) -> None:
    """Raise WrongUse for uninstalling from a run of the service, the number of which is `fire`; nothing for none.

    The stop would wait for that run, and the run for the stop, until the one ends the other.
    """
    if fire:
        raise WrongUse(
            "will not uninstall the service from within one of its runs",
            fact=f"this is run {fire}: the service waits for it while it stops, and ends it",
            now="nothing was changed",
            do="from a terminal: ankita-agent uninstall    or beside the run: "
            "systemd-run --user --collect $(command -v ankita-agent) uninstall",
        )


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
    """The way back. `pause` waits; `tell` takes a line for people about each step done."""

    def __init__(
        self,
        manager: ServiceManager,
        disk: UnitFiles,
        shipped: Shipped,
        whereto: Whereto,
        clock: Clock,
        pause: Callable[[Duration], None],
        tell: Callable[[str], None],
    ) -> None:
        self._manager = manager
        self._disk = disk
        self._shipped = shipped
        self._whereto = whereto
        self._clock = clock
        self._pause = pause
        self._tell = tell

    def look(self) -> Installed:
        """What is installed; nothing is changed. Raises CannotWriteState for files that cannot be trusted."""
        paths = (self._whereto.hardening, self._whereto.slice, self._whereto.service)
        found = [(path, self._disk.read(path)) for path in paths]
        files = tuple(judge_file(path, text, None) for path, text in found if text is not None)
        state, trouble = self._ask()
        return Installed(files, self._links(), self._own(), state, trouble)

    def stop(self, *, now: bool = False) -> None:
        """Have the manager stop the service, whose runs end first. Raises ServiceNotUp when it goes on.

        `now` has its runs stopped at once: the agent is told a second time, after a moment for the first.
        """
        end = Monotonic(self._clock.awake() + STOP_PATIENCE)
        with saying("nothing was removed; the service may be stopping", f"see what it does: {_STATUS}, then {_AGAIN}"):
            if now and self._manager.stop(UNIT, _FIRST_WISH) is JobEnd.PENDING:
                self._manager.kill(UNIT, signal.SIGINT)
            activity = self._down(end)
        if activity not in _IDLE:
            raise ServiceNotUp(
                "the service did not stop",
                fact=f"not within {STOP_PATIENCE // SECOND} s; it is {activity}",
                now="nothing was removed",
                do=f"see what it does: {_STATUS}, then {_AGAIN}",
            )

    def carry_out(self, installed: Installed) -> None:
        """Remove it; the service has been stopped. Raises CannotWriteState with what is so then."""
        stopped = "the service does not run" if installed.state is not None else "the service is as it was"
        if installed.state is not None:
            links = shlex.quote(posixpath.dirname(self._whereto.link))
            do = f"see what is in the way: namei -l {links}, then {_AGAIN}"
            with saying(f"{stopped}, still starts by itself, and nothing was removed", do):
                self._manager.disable(UNIT)
        with saying(f"{stopped}, starts no more by itself, and its unit files are there", f"do it {_AGAIN}"):
            kept = self._disk.apply(installed.files)
        for file in installed.files:
            self._tell(f"removed     {file.path}")
            if file.path in kept:
                self._tell(f"            it had been edited by hand; what it was: {kept[file.path]}")
        with saying(f"{stopped}, and its unit files are removed", f"do it {_AGAIN}"):
            for link in installed.links:
                if self._disk.remove(link):
                    self._tell(f"removed     {link}")
            self._remove_schema()
            self._remove_directories(installed.links)
            if installed.state is not None:
                self._manager.reload()
                self._manager.reset_failed(UNIT)

    def _down(self, end: Monotonic) -> Activity:
        """Ask for a stop until the service is down or the time is up; what it does then.

        How a job ended tells little: somebody may start the service meanwhile, or execute the manager anew, which then
        cannot be reached for a moment.
        """
        lost: Monotonic | None = None
        while True:
            try:
                self._manager.stop(UNIT, self._left(end))
                activity, lost = self._manager.state(UNIT).activity, None
                if activity in _IDLE or not self._left(end):
                    return activity
            except (ManagerUnreachable, ManagerSilent):
                lost = self._clock.awake() if lost is None else lost
                if self._clock.awake() - lost >= _OUT_OF_REACH:
                    raise
            self._pause(_LOOK_EVERY)

    def _left(self, end: Monotonic) -> Duration:
        return Duration(max(0, end - self._clock.awake()))

    def _links(self) -> tuple[str, ...]:
        """What has another unit start it: made by `enable` and `add-wants` of systemctl(1), with --runtime or not."""
        wanting = (
            f"{directory}/{name}/{UNIT}"
            for directory in (self._whereto.own, self._whereto.runtime)
            for name in self._disk.names(directory)
            if name.endswith((".wants", ".requires"))
        )
        return tuple(path for path in wanting if self._disk.holds(path))

    def _ask(self) -> tuple[UnitState | None, AnkitaError | None]:
        try:
            return self._manager.state(UNIT), None
        except (ManagerUnreachable, ManagerSilent) as fault:
            return None, fault

    def _own(self) -> tuple[str, ...]:
        """Paths of what the user made himself about our units."""
        theirs = [f"{self._whereto.own}/{name}" for name in (UNIT, DROP_INS, SLICE, f"{SLICE}.d")]
        theirs.append(f"{self._whereto.runtime}/{UNIT}")  # masked until the next boot
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

    def _remove_directories(self, links: Collection[str]) -> None:
        """Those that are for our units alone, if they are empty now; the ones above may be the user's own."""
        units = self._whereto.units
        self._remove_halves(units)
        for directory in (f"{units}/{DROP_INS}", *map(posixpath.dirname, (self._whereto.link, *links))):
            self._disk.remove_if_empty(directory)

    def _remove_halves(self, units: str) -> None:
        """What an install that was killed had written by then, under names that nothing reads."""
        for directory in (units, f"{units}/{DROP_INS}"):
            for name in self._disk.names(directory):
                if name.startswith((f".{UNIT}", f".{SLICE}", f".{HARDENING}")) and name.endswith(".new"):
                    self._disk.remove(f"{directory}/{name}")
