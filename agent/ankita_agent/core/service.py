"""The service as a service manager shows it, and why a manager cannot be asked: values, and nothing of any manager."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

UNIT: Final = "ankita-agent.service"
"""The unit that runs the agent; people type it without its suffix."""


class Activity(StrEnum):
    """What a unit does (ActiveState= of systemctl(1), by the same words)."""

    ACTIVE = "active"
    RELOADING = "reloading"
    ACTIVATING = "activating"
    DEACTIVATING = "deactivating"
    INACTIVE = "inactive"
    FAILED = "failed"
    MAINTENANCE = "maintenance"
    REFRESHING = "refreshing"

    @property
    def up(self) -> bool:
        """Whether the service has begun and not ended."""
        return self in (Activity.ACTIVE, Activity.RELOADING, Activity.REFRESHING)


@dataclass(frozen=True, slots=True)
class UnitState:
    """One unit as its manager shows it; the words are those of systemctl(1) `show`.

    `load` is `loaded`, `not-found`, `masked`, `bad-setting` or `error`; `file` is `enabled`, `disabled`, `masked`,
    `linked`, … or empty without a file; `fragment` is the path of the unit's file, empty without one; `result` is
    how it ended last (`success`, `exit-code`, `signal`, `watchdog`, `timeout`, …) and `exit_status` its exit status
    or signal number then, as `by_signal` says; `restarts` counts the times that the manager brought it back since it
    was last started.
    """

    load: str
    file: str
    activity: Activity
    sub: str
    fragment: str
    drop_ins: tuple[str, ...]
    needs_reload: bool
    main_pid: int | None
    restarts: int
    result: str
    exit_status: int | None
    status_text: str
    by_signal: bool = False

    @property
    def masked(self) -> bool:
        """Whether its user has forbidden it to start (`systemctl mask`)."""
        return self.load == "masked" or self.file in ("masked", "masked-runtime")

    @property
    def unmask(self) -> str:
        """What allows a masked one to start again: `unmask` leaves a mask of the runtime directory where it is."""
        runtime = "--runtime " if self.file == "masked-runtime" else ""
        return f"systemctl --user unmask {runtime}{UNIT.removesuffix('.service')}"

    @property
    def enabled(self) -> bool:
        """Whether something starts it with its manager, after a reboot as well: `enabled-runtime` is gone by then."""
        return self.file == "enabled"


class JobEnd(StrEnum):
    """How a job of a manager ended (JobRemoved of org.freedesktop.systemd1(5)).

    PENDING is ours: the job goes on, and we no longer wait for it.
    """

    DONE = "done"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELED = "canceled"
    DEPENDENCY = "dependency"
    SKIPPED = "skipped"
    PENDING = "pending"


class Unreachable(StrEnum):
    """Why the user's service manager cannot be asked."""

    NO_SYSTEMD = "no_systemd"  # the machine was not booted with systemd: sd_booted(3)
    NO_RUNTIME_DIRECTORY = "no_runtime_directory"  # /run/user/UID is not there: no session, no lingering
    FOREIGN_RUNTIME_DIRECTORY = "foreign_runtime_directory"  # it is there and another user's
    NO_SOCKET = "no_socket"  # the directory is there, and no user manager listens in it
    NO_PROGRAM = "no_program"  # neither systemctl(1) nor pystemd is there to ask with
    REFUSED = "refused"  # something is there and does not let us in
