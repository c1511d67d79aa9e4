"""What is the matter with the way to the service manager, and with whose it is: facts in, findings out.

tests/unit/test_diagnosis.py holds which facts give which finding, as for the other modules of diagnosis, and
tests/systemd/test_doctor.py types every command that is said to mend and looks again.
"""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ankita_agent.core.errors import AnkitaError, ManagerSilent, ManagerUnreachable
from ankita_agent.core.findings import Finding, FindingId, Severity
from ankita_agent.core.reaching import Place
from ankita_agent.core.service import Unreachable


@dataclass(frozen=True, slots=True)
class Session:
    """From where the service manager is asked.

    `runtime_directory` is where this user's manager listens. `foreign` are variables that lead to another user's, with
    their values; `unset` when XDG_RUNTIME_DIR is missing; `fault` is why the manager cannot be asked, None when it can.
    """

    place: Place
    runtime_directory: str
    foreign: Mapping[str, str]
    unset: bool
    fault: AnkitaError | None
    lingers: bool | None


def by_sudo(place: Place) -> bool:
    """Whether somebody else became root by sudo(8)."""
    return place.uid == 0 and place.sudo_user not in (None, "root")


def judge_whose(place: Place, *, has_agent: bool) -> Iterator[Finding]:
    """Whether this is about the agent that is meant; `has_agent` when this user has one, or had."""
    if by_sudo(place):
        yield Finding(
            FindingId.ROOT_BY_SUDO,
            Severity.NOTE if has_agent else Severity.WARNING,
            f"this is about the agent of root, not about that of {place.sudo_user}",
            f"sudo made {place.sudo_user} root, who has a state, routines and a service of their own",
            f"for that of {place.sudo_user}, without sudo",
            "ankita-agent doctor",
        )


def judge_session(session: Session) -> Iterator[Finding]:
    """The way to the manager."""
    place, fault = session.place, session.fault
    if fault is not None:
        yield _unreachable(fault, place)
    yield from _variables(session)
    no_socket = isinstance(fault, ManagerUnreachable) and fault.reason is Unreachable.NO_SOCKET
    if session.lingers is False and (fault is None or no_socket):
        yield Finding(
            FindingId.LINGERING_OFF,
            Severity.NOTE,
            f"lingering is off for {place.user}: the service ends with the last session and does not start at boot",
            f"there is no /var/lib/systemd/linger/{place.user}",
            "to have it run without a login" + ("" if place.uid == 0 else "; where polkit lets you, without sudo"),
            f"sudo loginctl enable-linger {shlex.quote(place.user)}",
        )
    elif session.lingers is None and fault is None:
        yield Finding(FindingId.NOT_ASKED, Severity.NOTE, f"whether {place.user} lingers cannot be told")


def _unreachable(fault: AnkitaError, place: Place) -> Finding:
    if isinstance(fault, ManagerSilent):
        return Finding(
            FindingId.MANAGER_SILENT,
            Severity.ERROR,
            fault.what,
            fault.fact,
            "where it stays so; this ends everything that it runs, and starts what is enabled",
            f"sudo systemctl restart user@{place.uid}.service",
        )
    if isinstance(fault, ManagerUnreachable) and fault.reason is Unreachable.NO_SYSTEMD:
        return Finding(
            FindingId.MANAGER_UNREACHABLE,
            Severity.NOTE,
            "there is no systemd here, and so no service",
            fault.fact,
            f"`{place.program} run` works without one, and `{place.program} install` lists what can keep it running",
        )
    command = fault.do.partition("`")[2].partition("`")[0]
    return Finding(FindingId.MANAGER_UNREACHABLE, Severity.ERROR, fault.what, fault.fact, fault.do, command)


def _variables(session: Session) -> Iterator[Finding]:
    place = session.place
    if session.foreign:
        shown = ", ".join(f"{name}={value}" for name, value in session.foreign.items())
        yield Finding(
            FindingId.FOREIGN_SESSION,
            Severity.WARNING,
            f"this shell's variables lead to the service manager of another user: {shown}",
            f"you are {place.user}, whose manager is in {session.runtime_directory}",
            "systemctl --user goes there or is refused; in this shell",
            f"unset {' '.join(session.foreign)}",
        )
    elif session.unset and session.fault is None:
        yield Finding(
            FindingId.SESSION_UNSET,
            Severity.NOTE,
            "XDG_RUNTIME_DIR is not set, as under cron and su: systemctl --user finds no manager here",
            "ankita-agent itself needs none",
            "in this shell",
            f"export XDG_RUNTIME_DIR={session.runtime_directory}",
        )
