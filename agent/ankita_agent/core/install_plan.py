"""What installing the service would change: facts in, a plan out, and nothing touched."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff
from enum import StrEnum

from ankita_agent.core.service import Activity, UnitState
from ankita_agent.core.unit_file import read_unit_file


class Change(StrEnum):
    """What becomes of one file."""

    NEW = "new"
    UNCHANGED = "unchanged"
    REPAIRED = "repaired"  # ours, of another version, or for a program or a directory that is no longer meant
    EDITED = "edited"  # by hand: replaced as well, and what was there is kept beside it
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file: its whole path, what is in it now (None: not there) and what is to be (None: not there)."""

    path: str
    before: str | None
    after: str | None
    change: Change


class Start(StrEnum):
    """What the service needs to run as the files say."""

    NOTHING = "nothing"  # it runs, and as they say
    START = "start"
    RESTART = "restart"  # it runs as they said before; who restarts it is up to the user, whose runs it may wait for


@dataclass(frozen=True, slots=True)
class Plan:
    """All that installing would change. `starter` are the sample of routines.yaml and its schema.

    `lingers` is whether the user lingers before it, None when nobody can tell; `linger` whether to switch it on, and
    `linger_told` whether to say that it is off, because nobody said what is wanted of it.
    """

    units: tuple[FileChange, ...]
    starter: tuple[FileChange, ...]
    enable: bool
    lingers: bool | None
    linger: bool
    linger_told: bool
    start: Start

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """The files that are not as they are to be."""
        return tuple(each for each in (*self.units, *self.starter) if each.change is not Change.UNCHANGED)

    @property
    def begins(self) -> str:
        """When the service starts by itself, once this is done."""
        return "at boot" if self.lingers or self.linger else "when you log in"

    @property
    def changes_nothing(self) -> bool:
        """Whether everything is as it is to be."""
        return not (self.changes or self.enable or self.linger) and self.start is Start.NOTHING


def judge_file(path: str, before: str | None, after: str | None) -> FileChange:
    """What becomes of a unit file or a drop-in of ours."""
    if before == after:
        change = Change.UNCHANGED
    elif before is None:
        change = Change.NEW
    elif read_unit_file(before, "").edited:
        change = Change.EDITED
    else:
        change = Change.REMOVED if after is None else Change.REPAIRED
    return FileChange(path, before, after, change)


def plan_install(
    units: Sequence[FileChange],
    starter: Sequence[FileChange],
    state: UnitState,
    *,
    begins: bool,
    lingers: bool | None,
    linger: bool | None,
) -> Plan:
    """The plan. `begins` is whether the service starts with its manager as it is now, after a reboot as well.

    `lingers` is whether the user lingers now, None when nobody can tell; `linger` whether to. `linger` None switches
    it on with the first install alone: later, that it is off may be what somebody chose.
    """
    stale = any(each.change is not Change.UNCHANGED for each in units) or state.needs_reload
    running = Start.RESTART if stale else Start.NOTHING
    start = running if state.activity.up else Start.START
    off, is_new = lingers is False, state.load == "not-found"
    switch = off and (is_new if linger is None else linger)
    told = off and not switch and linger is None
    return Plan(tuple(units), tuple(starter), not begins, lingers, switch, told, start)


def difference(change: FileChange) -> str:
    """The change as diff(1) shows it, in its unified form; empty for none."""
    before, after = ("" if text is None else text for text in (change.before, change.after))
    old, new = (change.path if text is not None else "/dev/null" for text in (change.before, change.after))
    lines = unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), old, new)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def describe_halfway(state: UnitState | None, *, written: bool) -> str:
    """What is so after a command that was interrupted; `state` is None where the manager does not tell."""
    unit = "the unit file is there" if written else "there is no unit file"
    if state is None:
        return f"{unit}; what the service does is not known, for its manager does not tell"
    enabled = "enabled" if state.enabled else "not enabled"
    return f"{unit}, {enabled}, and the service {_doing(state.activity)}"


def _doing(activity: Activity) -> str:
    match activity:
        case Activity.ACTIVATING:
            return "is starting"
        case Activity.DEACTIVATING:
            return "is stopping"
        case _:
            return "runs" if activity.up else "does not run"
