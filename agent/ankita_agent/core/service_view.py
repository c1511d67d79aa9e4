"""The service in one line, for who asks how things are: what its manager shows, and what to type next."""

from dataclasses import dataclass
from typing import assert_never

from ankita_agent.core.service import Activity, JobEnd, UnitState
from ankita_agent.core.service_ends import explain_end


@dataclass(frozen=True, slots=True)
class ServiceView:
    """What a look at the service found.

    `manager` is None on a machine without one; `unit` is None there, and where the manager cannot be asked: then
    `hindrance` says why.
    """

    manager: str | None
    unit: UnitState | None
    hindrance: str = ""

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
        return unit is not None and down and unit.load == "loaded" and not unit.masked

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
        return _up(unit)
    if unit.masked:
        return "masked, which forbids it to start; allow it: systemctl --user unmask ankita-agent"
    if unit.load == "not-found":
        return "not installed; have it start by itself: ankita-agent install"
    if unit.load != "loaded":
        return f"{view.manager} cannot use its unit file ({unit.load}); write it anew: ankita-agent install"
    return _down(unit)


def describe_version(running: str, installed: str) -> str:
    """What to do where the service is of another version than the program; empty where it is not."""
    return "" if running == installed else f"running {running}, installed {installed}: ankita-agent restart"


def _up(unit: UnitState) -> str:
    parts = [f"active, {_enabled(unit)}, pid {unit.main_pid}"]
    if unit.restarts:
        parts.append(f"brought back {_times(unit.restarts)}: journalctl --user -u ankita-agent")
    if unit.masked:
        parts.append("masked, so it cannot start again: systemctl --user unmask ankita-agent")
    elif not unit.enabled:
        parts.append("have it start by itself: systemctl --user enable ankita-agent")
    if unit.needs_reload:
        parts.append("its unit file has changed since: ankita-agent restart")
    return "; ".join(parts)


def _down(unit: UnitState) -> str:
    enabled = _enabled(unit)
    told = explain_end(unit, JobEnd.FAILED)
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
            return _up(unit)
        case _:
            assert_never(unit.activity)


def _enabled(unit: UnitState) -> str:
    return "enabled" if unit.enabled else "not enabled"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
