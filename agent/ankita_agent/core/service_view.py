"""The service in one line, for who asks how things are: what its manager shows, and what to type next."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from ankita_agent.core.service import Activity, JobEnd, UnitState
from ankita_agent.core.service_ends import LINES, beside, explain_end


@dataclass(frozen=True, slots=True)
class FilesSeen:
    """What is wrong with the unit's files as they are on disk by now.

    `gone` is whether the unit file is no more; `faults` is why the manager could not use them, in its own words.
    """

    gone: bool = False
    faults: tuple[str, ...] = ()


def seen_files(complaints: Sequence[str], *, gone: bool) -> FilesSeen:
    """From what is said against the files; what the manager only ignores keeps it from nothing."""
    return FilesSeen(gone, tuple(each for each in complaints if "ignoring" not in each.lower()))


@dataclass(frozen=True, slots=True)
class ServiceView:
    """What a look at the service found.

    `manager` is None on a machine without one; `unit` is None there, and where the manager cannot be asked: then
    `hindrance` says why. `files` was looked at where the manager has not read what is there, or cannot use it.
    `lines` is the command that shows what the service said.
    """

    manager: str | None
    unit: UnitState | None
    hindrance: str = ""
    files: FilesSeen = FilesSeen()
    lines: str = LINES

    @property
    def installed(self) -> bool | None:
        """Whether there is such a unit; None when nobody can tell."""
        return self._known(self.unit is not None and self.unit.load != "not-found")

    @property
    def enabled(self) -> bool | None:
        """Whether it starts with its manager; None when nobody can tell."""
        return self._known(self.unit is not None and self.unit.enabled)

    @property
    def active(self) -> bool | None:
        """Whether it is up; None when nobody can tell."""
        return self._known(self.unit is not None and self.unit.activity.up)

    @property
    def startable(self) -> bool:
        """Whether `ankita-agent start` would try to start it, and nobody else does."""
        unit = self.unit
        down = unit is not None and unit.activity in (Activity.INACTIVE, Activity.FAILED)
        usable = not self.files.gone and not self.files.faults
        return unit is not None and down and unit.load == "loaded" and not unit.masked and usable

    @property
    def begun(self) -> bool:
        """Whether it is up, or on its way."""
        return self.unit is not None and self.unit.activity not in (Activity.INACTIVE, Activity.FAILED)

    def _known(self, fact: bool) -> bool | None:
        return None if self.manager is not None and self.unit is None else fact


def describe_service(view: ServiceView) -> str:
    """The line; empty on a machine without a service manager, which has no more to say about it."""
    if view.manager is None:
        return ""
    unit = view.unit
    if unit is None:
        return f"{view.manager} does not tell: {view.hindrance}; look closer: ankita-agent doctor"
    if unit.activity.up:
        return _up(unit, view)
    if unit.masked:
        return f"masked, which forbids it to start; allow it: {unit.unmask}"
    if unit.load == "not-found":
        return "not installed; have it start by itself: ankita-agent install"
    if view.files.gone:
        return f"not running, and its unit file is gone; {REWRITE}"
    if is_unusable(unit, view.files):
        return f"{unusable(unit, view.files)}; {mend_files(unit, 'start')}"
    return _down(unit, view)


REWRITE: Final = "write it anew: ankita-agent install"


def is_unusable(unit: UnitState, files: FilesSeen) -> bool:
    """Whether the manager cannot use the unit's files."""
    return bool(files.faults) or unit.load not in ("loaded", "masked", "not-found")


def unusable(unit: UnitState, files: FilesSeen) -> str:
    """That its manager cannot use its files, and why, as far as that is known."""
    why = " / ".join(files.faults) or unit.load
    return f"its manager cannot use its unit file: {why}"


def mend_files(unit: UnitState, verb: str) -> str:
    """What to do about files that its manager cannot use; `verb` is what is to be done after that."""
    if not unit.drop_ins and unit.needs_reload:  # which there are by now, its manager has not read
        return "have it read again what there is: systemctl --user daemon-reload    then: ankita-agent doctor"
    if not unit.drop_ins:
        return REWRITE
    return f"mend or remove what is beside it: {beside(unit)}    then: ankita-agent {verb}"


def describe_version(running: str, installed: str) -> str:
    """What to do where the service is of another version than the program; empty where it is not."""
    return "" if running == installed else f"running {running}, installed {installed}: ankita-agent restart"


def _up(unit: UnitState, view: ServiceView) -> str:
    files = view.files
    parts = [f"active, {_enabled(unit)}, pid {unit.main_pid}"]
    if unit.restarts:
        parts.append(f"brought back {_times(unit.restarts)}: {view.lines}")
    if unit.masked:
        parts.append(f"masked, so it cannot start again: {unit.unmask}")
    elif files.gone or unit.load == "not-found":
        parts.append(f"its unit file is gone, so it cannot start again; {REWRITE}")
    elif is_unusable(unit, files):
        parts.append(f"it cannot start again, for {unusable(unit, files)}; {mend_files(unit, 'restart')}")
    else:
        if not unit.enabled:
            parts.append("have it start by itself: systemctl --user enable ankita-agent")
        if unit.needs_reload:
            parts.append("its unit file has changed since: ankita-agent restart")
    return "; ".join(parts)


def _down(unit: UnitState, view: ServiceView) -> str:
    enabled = _enabled(unit)
    told = explain_end(unit, JobEnd.FAILED, view.lines)
    match unit.activity:
        case Activity.ACTIVATING if unit.sub == "auto-restart":
            tried = f" ({_times(unit.restarts)} so far)" if unit.restarts else ""
            return f"not up, and tried again every second{tried}: {told.fact}; {told.do}"
        case Activity.ACTIVATING:
            return f"starting, {enabled}"
        case Activity.DEACTIVATING:
            return f"stopping, {enabled}, pid {unit.main_pid}" if unit.main_pid else f"stopping, {enabled}"
        case Activity.FAILED:
            back = f", brought back {_times(unit.restarts)} before" if unit.restarts else ""
            return f"failed, {enabled}{back}: {told.fact}; {told.do}"
        case Activity.INACTIVE | Activity.MAINTENANCE:
            return f"not running, {enabled}; start it: ankita-agent start"
        case Activity.ACTIVE | Activity.RELOADING | Activity.REFRESHING:
            return _up(unit, view)
        case _:
            assert_never(unit.activity)


def _enabled(unit: UnitState) -> str:
    return "enabled" if unit.enabled else "not enabled"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
