"""What is the matter with the service, the way to it and the machine below it: facts in, findings out.

The problem: a user service stops running for reasons that show nowhere near it: lingering, a moved venv, a unit of
the same name in another directory, a variable of a shell. The rule: each finding says what is so, the fact behind it,
and the command that mends it, true for this user on this machine; where one finding explains others, only it is told.
tests/unit/test_diagnosis.py holds which facts give which finding, tests/systemd/test_doctor.py runs every command that
is said to mend and looks again. Rejected: a score; checks that only say that they passed.
"""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ankita_agent.core.errors import AnkitaError, ManagerSilent, ManagerUnreachable
from ankita_agent.core.findings import Finding, FindingId, Mend, Severity
from ankita_agent.core.install_plan import Change, FileChange
from ankita_agent.core.reaching import Place
from ankita_agent.core.service import UNIT, Activity, UnitState, Unreachable
from ankita_agent.core.unit_file import read_unit_file

OFTEN: Final = 3
"""Brought back so often since it was last started, a service is worth a look."""

CONFIGURATION: Final = 78
"""The exit status of an agent that a person must help: starting it again does not."""

_NAME: Final = UNIT.removesuffix(".service")
_INSTALL: Final = f"{_NAME} install"
_SEE_JOURNAL: Final = f"journalctl --user -u {_NAME} -n 30 --no-pager"
_RELOAD: Final = "systemctl --user daemon-reload"


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


@dataclass(frozen=True, slots=True)
class UnitCopy:
    """Another unit file of our name. `link` is where it leads when it is a symbolic link; `own` when we may move it."""

    path: str
    own: bool
    link: str | None = None


@dataclass(frozen=True, slots=True)
class ServiceSeen:
    """The service: as its manager shows it, and as its files are.

    `file` is what installing would make of the unit, `others` of the files beside it. `program_there` is whether what
    the unit starts can be executed; `program` what this installation would start. `copies_before` and `copies_behind`
    are the other units of the name that count for more and for less than ours; `system_copies` are system services.
    `controllers` are those of control groups that the manager may use (cgroups(7)), None when nobody can tell.
    """

    state: UnitState
    file: FileChange
    others: tuple[FileChange, ...]
    program_there: bool
    program: tuple[str, ...]
    copies_before: tuple[UnitCopy, ...] = ()
    copies_behind: tuple[UnitCopy, ...] = ()
    system_copies: tuple[UnitCopy, ...] = ()
    controllers: frozenset[str] | None = None


def judge_session(session: Session) -> Iterator[Finding]:
    """The way to the manager."""
    place, fault = session.place, session.fault
    if place.uid == 0 and place.sudo_user not in (None, "root"):
        yield Finding(
            FindingId.ROOT_BY_SUDO,
            Severity.WARNING,
            f"this is about the agent of root, not about that of {place.sudo_user}",
            f"sudo made {place.sudo_user} root, who has a state, routines and a service of their own",
            "without sudo",
            f"{_NAME} doctor",
        )
    if fault is not None:
        yield _unreachable(fault, place)
    yield from _variables(session)
    reachable_by_linger = isinstance(fault, ManagerUnreachable) and fault.reason in (
        Unreachable.NO_RUNTIME_DIRECTORY,
        Unreachable.NO_SOCKET,
    )
    if session.lingers is False and (fault is None or reachable_by_linger):
        yield Finding(
            FindingId.LINGERING_OFF,
            Severity.WARNING,
            f"lingering is off for {place.user}: the service ends with the last session and does not start at boot",
            f"there is no /var/lib/systemd/linger/{place.user}",
            command=f"loginctl enable-linger {shlex.quote(place.user)}",
            mend=Mend.LINGER,
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
    id_ = FindingId.MANAGER_UNREACHABLE
    without = isinstance(fault, ManagerUnreachable) and fault.reason is Unreachable.NO_SYSTEMD
    severity = Severity.NOTE if without else Severity.ERROR
    command = "" if without else fault.do.partition("`")[2].partition("`")[0]
    return Finding(id_, severity, fault.what, fault.fact, fault.do, command)


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
            f"{_NAME} itself needs none",
            "in this shell",
            f"export XDG_RUNTIME_DIR={session.runtime_directory}",
        )


def judge_service(seen: ServiceSeen, behind: str | None, version: str) -> Iterator[Finding]:
    """The service. `behind` is the version of an agent that runs as the service, None where none does."""
    state = seen.state
    yield from _copies(seen)
    if state.masked:
        yield Finding(
            FindingId.MASKED,
            Severity.ERROR,
            "the service is masked: nothing can start it",
            f"its unit leads to /dev/null ({state.file or state.load})",
            "somebody forbade it to start; to allow it again",
            f"systemctl --user unmask {_NAME}",
        )
        return
    if state.load == "not-found":
        if not (seen.file.before and seen.copies_before):  # else what counts for more is what it cannot read
            yield _not_loaded(seen)
        return
    yield from _unit_file(seen)
    if state.load != "loaded":
        return
    yield from _activity(state)
    if not state.enabled and state.file in ("disabled", "linked", "linked-runtime", "bad"):
        yield Finding(
            FindingId.NOT_ENABLED,
            Severity.WARNING,
            "the service does not start by itself: not at boot and not at login",
            f"systemd calls its unit file {state.file}",
            command=f"systemctl --user enable {_NAME}",
            mend=Mend.ENABLE,
        )
    if behind is not None and behind != version:
        yield Finding(
            FindingId.VERSION_BEHIND,
            Severity.WARNING,
            f"the agent that runs is version {behind}, and {version} is installed",
            "it was started before",
            command=f"{_NAME} restart",
        )
    yield from _notes(seen)


def _not_loaded(seen: ServiceSeen) -> Finding:
    if seen.file.before is not None:
        return _not_read(f"{seen.file.path} is there, and systemd has not read it yet")
    return Finding(
        FindingId.NOT_INSTALLED,
        Severity.WARNING,
        "the service is not installed: nothing starts the agent",
        f"there is no {seen.file.path}",
        command=_INSTALL,
        mend=Mend.INSTALL,
    )


def _not_read(what: str) -> Finding:
    return Finding(
        FindingId.NOT_READ_AGAIN,
        Severity.WARNING,
        what,
        "it goes by what it read before",
        command=_RELOAD,
        mend=Mend.RELOAD,
    )


def _copies(seen: ServiceSeen) -> Iterator[Finding]:
    ours = seen.file.before is not None
    for copy, first in [(each, True) for each in seen.copies_before] + [(each, False) for each in seen.copies_behind]:
        leads_to = f", a link to {copy.link}" if copy.link else ""
        if copy.link is not None and copy.link in ("/dev/null", seen.file.path):
            continue
        if ours and first:
            yield Finding(
                FindingId.SECOND_COPY,
                Severity.WARNING,
                f"systemd goes by {copy.path}{leads_to}, and not by what {_NAME} wrote",
                f"that directory counts for more than {seen.file.path}",
                "put it aside",
                f"{_aside(copy)} && {_RELOAD}",
            )
        elif ours:
            yield Finding(
                FindingId.SECOND_COPY,
                Severity.NOTE,
                f"there is another unit of that name: {copy.path}{leads_to}",
                f"{seen.file.path} counts for more, so it does nothing",
            )
        elif copy.path == seen.state.fragment:
            yield Finding(
                FindingId.UNIT_OF_OTHERS,
                Severity.NOTE,
                f"the service is started by {copy.path}{leads_to}, which {_NAME} did not write",
                "install and uninstall leave it as it is",
            )
    for copy in seen.system_copies:
        yield Finding(
            FindingId.SYSTEM_COPY,
            Severity.WARNING,
            f"there is a system service of that name as well: {copy.path}",
            "as a system service the agent is not yours: it has its own state and fires its own routines",
            "if it is not meant to be",
            f"sudo systemctl disable --now {_NAME} && {_aside(copy)} && sudo systemctl daemon-reload",
        )


def _aside(copy: UnitCopy) -> str:
    return f"{'' if copy.own else 'sudo '}mv {shlex.quote(copy.path)} {shlex.quote(copy.path + '.aside')}"


def _unit_file(seen: ServiceSeen) -> Iterator[Finding]:
    state, file = seen.state, seen.file
    if state.fragment and state.fragment != file.path:
        if state.needs_reload:
            yield _not_read(f"systemd has not read {state.fragment} since it was changed")
        return
    written = read_unit_file(file.before or "", "")
    if state.load != "loaded":
        yield Finding(
            FindingId.UNIT_UNUSABLE,
            Severity.ERROR,
            f"systemd cannot use {file.path}",
            f"it says {state.load}",
            "write it anew; what is there is kept beside it",
            _INSTALL,
            Mend.INSTALL,
        )
    elif not seen.program_there:
        yield Finding(
            FindingId.PROGRAM_GONE,
            Severity.ERROR,
            f"the service starts {_quoted(written.program[:1])}, which cannot be executed",
            f"{file.path} says so; the installation was moved, removed or its Python replaced",
            "point it at the installation that you have",
            _INSTALL,
            Mend.INSTALL,
        )
    elif file.change is Change.EDITED:
        yield Finding(
            FindingId.UNIT_EDITED,
            Severity.WARNING,
            f"{file.path} was edited, so nobody keeps it up to date",
            "its text does not fit the hash in it",
            f"edits belong into a drop-in (systemctl --user edit {_NAME}); this keeps yours beside it",
            _INSTALL,
        )
    elif written.program[:1] != seen.program[:1]:
        yield Finding(
            FindingId.PROGRAM_OTHER,
            Severity.WARNING,
            f"the service starts another installation than this one: {_quoted(written.program[:1])}",
            f"this is {_quoted(seen.program[:1])}",
            "if the service is to start this one",
            _INSTALL,
        )
    elif outdated := [each.path for each in (file, *seen.others) if each.change in (Change.NEW, Change.REPAIRED)]:
        yield Finding(
            FindingId.UNIT_OUTDATED,
            Severity.WARNING,
            f"not what this version would write here: {', '.join(outdated)}",
            f"version {written.version} wrote the unit",
            command=_INSTALL,
            mend=Mend.INSTALL,
        )
    elif state.needs_reload:
        yield _not_read(f"systemd has not read {file.path} or a drop-in since it was changed")


def _quoted(words: tuple[str, ...]) -> str:
    return " ".join(map(shlex.quote, words)) or "nothing"


def _activity(state: UnitState) -> Iterator[Finding]:
    start = f"{_NAME} start"
    if state.activity is Activity.FAILED and state.exit_status == CONFIGURATION and not state.by_signal:
        yield Finding(
            FindingId.FAILED,
            Severity.ERROR,
            "the service has failed: its configuration must be mended before it can start",
            f"exit status {CONFIGURATION}",
            "see what is wrong with routines.yaml, mend it, and start it",
            f"{_NAME} check && {start}",
        )
    elif state.activity is Activity.FAILED:
        yield Finding(
            FindingId.FAILED,
            Severity.ERROR,
            "the service has failed",
            _how_it_ended(state),
            f"see why with `{_SEE_JOURNAL}`, then",
            start,
            Mend.START,
        )
    elif state.activity is Activity.ACTIVATING and state.sub == "auto-restart":
        yield Finding(
            FindingId.RESTARTING,
            Severity.ERROR,
            f"the service ends as soon as it has started, {state.restarts} times by now",
            _how_it_ended(state),
            "it says why in the journal",
            _SEE_JOURNAL,
        )
    elif state.activity is Activity.INACTIVE:
        yield Finding(
            FindingId.NOT_ACTIVE,
            Severity.WARNING,
            "the service does not run",
            "it was stopped, or never started",
            command=start,
            mend=Mend.START,
        )


def _how_it_ended(state: UnitState) -> str:
    if state.exit_status is None:
        return f"systemd says {state.result}"
    end = "killed by signal" if state.by_signal else "exit status"
    meaning = ", the program could not be executed" if state.exit_status == 203 and not state.by_signal else ""
    return f"systemd says {state.result}, {end} {state.exit_status}{meaning}"


def _notes(seen: ServiceSeen) -> Iterator[Finding]:
    state = seen.state
    if state.activity.up and state.restarts >= OFTEN:
        yield Finding(
            FindingId.BROUGHT_BACK,
            Severity.NOTE,
            f"systemd brought the service back {state.restarts} times since it was last started",
            "it ended without being asked to",
            "it says why in the journal",
            _SEE_JOURNAL,
        )
    for path in state.drop_ins:
        yield Finding(
            FindingId.DROP_IN,
            Severity.NOTE,
            f"a drop-in changes the service: {path}",
            "",
            "",
            f"cat {shlex.quote(path)}",
        )
    if seen.controllers is not None and "memory" not in seen.controllers:
        yield Finding(
            FindingId.LIMITS_WITHOUT_EFFECT,
            Severity.NOTE,
            "limits on memory have no effect on the service here",
            f"its manager may use the controllers: {', '.join(sorted(seen.controllers)) or 'none'}",
        )
