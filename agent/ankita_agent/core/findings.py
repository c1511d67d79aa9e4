"""What doctor can find, each with its weight and the command that mends it: closed sets."""

from dataclasses import dataclass
from enum import StrEnum


class FindingId(StrEnum):
    """What is the matter, in one word that programs may rely on (docs/json.md)."""

    # the way to the service manager
    MANAGER_UNREACHABLE = "manager_unreachable"
    MANAGER_SILENT = "manager_silent"
    FOREIGN_SESSION = "foreign_session"  # variables lead to another user's manager
    SESSION_UNSET = "session_unset"  # no XDG_RUNTIME_DIR, as under cron and su
    ROOT_BY_SUDO = "root_by_sudo"
    LINGERING_OFF = "lingering_off"
    NOT_ASKED = "not_asked"  # a question that nobody answered
    # the service
    NOT_INSTALLED = "not_installed"
    UNIT_GONE = "unit_gone"  # it was removed while systemd goes by it
    UNIT_UNUSABLE = "unit_unusable"  # systemd cannot read it
    DROP_IN_UNUSABLE = "drop_in_unusable"  # systemd cannot use the unit with what is put on top of it
    UNIT_OUTDATED = "unit_outdated"
    UNIT_EDITED = "unit_edited"
    UNIT_OF_OTHERS = "unit_of_others"
    PROGRAM_GONE = "program_gone"
    PROGRAM_OTHER = "program_other"  # that of another installation
    SECOND_COPY = "second_copy"
    SYSTEM_COPY = "system_copy"
    NOT_READ_AGAIN = "not_read_again"
    MASKED = "masked"
    NOT_ENABLED = "not_enabled"
    FAILED = "failed"
    NOT_ACTIVE = "not_active"
    RESTARTING = "restarting"  # it ends again and again
    BROUGHT_BACK = "brought_back"
    VERSION_BEHIND = "version_behind"
    DROP_IN = "drop_in"
    LIMITS_WITHOUT_EFFECT = "limits_without_effect"
    # service against shell
    OTHER_PLACES = "other_places"
    TWO_OWNERS = "two_owners"
    COMMAND_NOT_FOUND = "command_not_found"
    # the agent and its state
    NO_AGENT = "no_agent"
    AGENT_STOPPED = "agent_stopped"
    AGENT_WEDGED = "agent_wedged"
    AGENT_DEGRADED = "agent_degraded"
    ROUTINES_REFUSED = "routines_refused"
    ROUTINES_WARNED = "routines_warned"
    ROUTINES_ABSENT = "routines_absent"
    ROUTINES_GONE = "routines_gone"  # those of before do not fire without their file
    STATE_UNUSABLE = "state_unusable"
    LEDGER_UNREADABLE = "ledger_unreadable"
    SLOT_DOUBLED = "slot_doubled"
    SLOT_LEFT_OUT = "slot_left_out"
    ROW_WITHOUT_SLOT = "row_without_slot"  # a row tells of a slot, or of more, than the schedule has
    # the machine
    DISK_NEARLY_FULL = "disk_nearly_full"
    INODES_NEARLY_USED_UP = "inodes_nearly_used_up"
    READ_ONLY = "read_only"
    JOURNAL_VOLATILE = "journal_volatile"
    JOURNAL_UNREADABLE = "journal_unreadable"
    CLOCK_UNSYNCHRONISED = "clock_unsynchronised"


class Severity(StrEnum):
    """How much it matters: routines do not run or are not safe, they may stop running, or it is good to know."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Mend(StrEnum):
    """What `doctor --fix` may do by itself, in this order: nothing here ends a run or overrules what a person chose.

    So lingering is not among them: whether a service goes on without a login is for its user to say.
    """

    INSTALL = "install"
    RELOAD = "reload"
    ENABLE = "enable"
    START = "start"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is the matter.

    `what` is so, with the value; `fact` is what was observed; `do` says in words what helps, and `command` is what to
    type, as it stands and with nothing around it; one of them may be empty. A command within `do` is in backticks.
    `mend` is what `--fix` does about it, None when that is left to a person.
    """

    id: FindingId
    severity: Severity
    what: str
    fact: str = ""
    do: str = ""
    command: str = ""
    mend: Mend | None = None

    @property
    def matters(self) -> bool:
        """Whether there is something to mend."""
        return self.severity is not Severity.NOTE
