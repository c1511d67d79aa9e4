"""The properties of a unit, as systemd words them, read into a UnitState.

Source: org.freedesktop.systemd1(5), "Unit Objects" and "Service Unit Objects"; systemctl(1) `show` prints the same by
the same names. A unit that is no service has only the first ones.
"""

import re
from collections.abc import Mapping
from typing import Final

from ankita_agent.core.service import Activity, UnitState

OF_UNIT: Final = ("LoadState", "UnitFileState", "ActiveState", "SubState", "FragmentPath", "NeedDaemonReload")
"""What every unit has, as text but for NeedDaemonReload, a truth that systemctl(1) prints as `yes` or `no`."""

OF_SERVICE: Final = ("MainPID", "NRestarts", "Result", "ExecMainCode", "ExecMainStatus", "StatusText")
"""What a service has besides."""

DROP_INS: Final = "DropInPaths"
"""A list of paths, which every unit has and the two ways to ask write differently."""

_KINDS: Final = "service|socket|target|path|timer|slice|scope|mount|automount|swap|device"
_NAME: Final = re.compile(rf"[A-Za-z0-9:_.\\-]+(@[A-Za-z0-9:_.\\@-]*)?\.({_KINDS})", re.ASCII)
_LONGEST_NAME: Final = 255

_EXITED: Final = "1"  # CLD_EXITED of sigaction(2); CLD_KILLED is 2 and CLD_DUMPED 3, 0 is a program that has not ended
_NOT_ENDED: Final = "0"


def is_unit_name(text: str) -> bool:
    """Whether a unit can bear that name. Source: systemd.unit(5), "Description".

    systemctl(1) would take another text for a pattern, a path or something to escape, and act on what comes out.
    """
    return len(text) <= _LONGEST_NAME and _NAME.fullmatch(text) is not None


def read_version(text: str) -> int:
    """The major number of a manager's version, such as `252.39-1~deb12u2`, `v257` or `258~rc1`. Raises ValueError."""
    found = re.match(r"v?(\d+)", text, re.ASCII)
    if found is None:
        raise ValueError(f"{text!r} is no version")
    return int(found[1])


def read_unit(shown: Mapping[str, str], drop_ins: tuple[str, ...]) -> UnitState:
    """The state that these properties tell; one that is missing counts as its default.

    ExecMainStatus means nothing until ExecMainCode says how the program ended. Raises ValueError for a word that
    is not systemd's.
    """
    code = shown.get("ExecMainCode", _NOT_ENDED)
    return UnitState(
        load=shown["LoadState"],
        file=shown.get("UnitFileState", ""),
        activity=Activity(shown["ActiveState"]),
        sub=shown.get("SubState", ""),
        fragment=shown.get("FragmentPath", ""),
        drop_ins=drop_ins,
        needs_reload=shown.get("NeedDaemonReload") == "yes",
        main_pid=int(shown.get("MainPID", "0")) or None,
        restarts=int(shown.get("NRestarts", "0")),
        result=shown.get("Result", ""),
        exit_status=None if code == _NOT_ENDED else int(shown.get("ExecMainStatus", "0")),
        status_text=shown.get("StatusText", ""),
        by_signal=code not in (_NOT_ENDED, _EXITED),
    )
