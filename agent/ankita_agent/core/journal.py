"""How somebody reads what their service wrote down: journalctl(1).

The problem: the journal of a system account is not split off (journald.conf(5), SplitMode=), so `journalctl --user` of
such an account finds no file, and what it wrote stands among the system's, which root may read. The rule: by the uid.
`tests/unit/test_lines_command.py` holds it. Rejected: `_SYSTEMD_USER_UNIT=` alone, which mixes the services of all
users.
"""

from typing import Final

SYSTEM_UIDS: Final = range(1000)
"""Up to SYS_UID_MAX of login.defs(5), as distributions have it; root is one of them."""


def is_system_account(uid: int) -> bool:
    """Whether what an account wrote stands in the system's journal, for root to read."""
    return uid in SYSTEM_UIDS


def lines_command(uid: int, options: str) -> str:
    """The command line that shows the service's lines of the user `uid`, with these options of journalctl."""
    if is_system_account(uid):
        return f"journalctl _SYSTEMD_USER_UNIT=ankita-agent.service _UID={uid} {options}"
    return f"journalctl --user -u ankita-agent {options}"
