"""What is the matter with the files of the service: facts in, findings out.

The problem: which file systemd goes by, and whether it is ours and as we wrote it, shows nowhere near a service that
does not run. The rule: where one finding explains others, only it is told; and no advice given in a shell that has
other directories than the service would make the service one of that shell: each command names the service's own.
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ankita_agent.core.elsewhere import Elsewhere, meaning_it
from ankita_agent.core.findings import Finding, FindingId, Mend, Severity
from ankita_agent.core.install_plan import Change, FileChange
from ankita_agent.core.service import UNIT, UnitState
from ankita_agent.core.unit_file import read_unit_file

RELOAD: Final = "systemctl --user daemon-reload"
VERIFY: Final = f"systemd-analyze --user verify {UNIT}"


@dataclass(frozen=True, slots=True)
class UnitCopy:
    """Another unit file of our name. `link` is where it leads when it is a symbolic link; `own` when we may move it."""

    path: str
    own: bool
    link: str | None = None


@dataclass(frozen=True, slots=True)
class ServiceSeen:
    """The service: as its manager shows it, and as its files are.

    `file` is what installing would make of the unit, `others` of the files beside it, and `legible` whether they could
    be read. `program_there` is whether what the unit starts can be executed; `program` what this installation would
    start. `copies_before` and `copies_behind` are the other units of the name that count for more and for less than
    ours; `system_copies` are system services. `controllers` are those of control groups that the manager may use
    (cgroups(7)), None when nobody can tell. `complaints` are what systemd says against a unit that it cannot use, and
    `own_drop_ins` the drop-ins that we may move. `elsewhere` is in what the service differs from this shell, in which
    `set_here` are set (core.elsewhere); `journal` shows what the service said. `begins` is whether a service that is
    enabled starts with its manager, and not with a desktop alone.
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
    legible: bool = True
    complaints: tuple[str, ...] = ()
    own_drop_ins: frozenset[str] = frozenset()
    elsewhere: tuple[Elsewhere, ...] = ()
    set_here: frozenset[str] = frozenset()
    journal: str = ""
    begins: bool = True

    def call(self, command: str) -> str:
        """The command line that does it to this very service, in this shell."""
        return meaning_it(command, self.elsewhere, self.set_here)

    @property
    def drop_ins(self) -> tuple[str, ...]:
        """What others than we put on top of the unit."""
        ours = {each.path for each in self.others if each.change is not Change.EDITED}
        return tuple(path for path in self.state.drop_ins if path not in ours)


def judge_copies(seen: ServiceSeen) -> Iterator[Finding]:
    """The other units of our name."""
    ours = seen.file.before is not None
    for copy, first in [(each, True) for each in seen.copies_before] + [(each, False) for each in seen.copies_behind]:
        leads_to = f", a link to {copy.link}" if copy.link else ""
        if copy.link is not None and copy.link in ("/dev/null", seen.file.path):
            continue
        if ours and first:
            yield Finding(
                FindingId.SECOND_COPY,
                Severity.WARNING,
                f"{copy.path}{leads_to} stands before what ankita-agent wrote",
                f"for systemd that directory counts for more than {seen.file.path}",
                "put it aside",
                f"{_aside(copy.path, own=copy.own)} && {RELOAD}",
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
                f"the service is that of {copy.path}{leads_to}, which ankita-agent did not write",
                "install and uninstall leave it as it is",
            )
    for copy in seen.system_copies:
        yield Finding(
            FindingId.SYSTEM_COPY,
            Severity.WARNING,
            f"there is a system service of that name as well: {copy.path}",
            "as a system service the agent is not yours: it has its own state and fires its own routines",
            "if it is not meant to be",
            f"sudo systemctl disable --now ankita-agent && {_aside(copy.path, own=copy.own)} && "
            "sudo systemctl daemon-reload",
        )


def judge_missing(seen: ServiceSeen) -> Iterator[Finding]:
    """A unit that systemd does not know."""
    if seen.file.before is not None:
        if not seen.copies_before:  # else what counts for more is what it cannot read
            yield _not_read(f"{seen.file.path} is there, and systemd has not read it yet")
    elif seen.state.activity.up:
        yield _gone(seen)
    elif seen.legible:
        yield Finding(
            FindingId.NOT_INSTALLED,
            Severity.WARNING,
            "the service is not installed: nothing starts the agent",
            f"there is no {seen.file.path}",
            "install it",
            seen.call("install"),
            Mend.INSTALL,
        )


def judge_files(seen: ServiceSeen) -> Iterator[Finding]:
    """The files of a unit that systemd knows."""
    state, file = seen.state, seen.file
    if state.load != "loaded" and seen.drop_ins and file.change is not Change.EDITED:
        yield _drop_in_unusable(seen)
    elif state.fragment and state.fragment != file.path:
        if state.load != "loaded":
            yield _unusable(seen, state.fragment, "mend it, or put it aside; to look again", VERIFY)
        elif state.needs_reload:
            yield _not_read(f"systemd has not read {state.fragment} or a drop-in since it was changed")
    elif file.before is None:
        if seen.legible:
            yield _gone(seen)
    elif state.load != "loaded" and file.change is Change.UNCHANGED:
        yield _unusable(seen, file.path, "it is as this version writes it; please report what this shows", VERIFY)
    elif state.load != "loaded":
        kept = "what is there is kept beside it" if file.change is Change.EDITED else "it is of another version"
        yield _unusable(seen, file.path, f"write it anew; {kept}", seen.call("install"), Mend.INSTALL)
    else:
        yield from _content(seen)


def _content(seen: ServiceSeen) -> Iterator[Finding]:
    """A unit file of our own that systemd can use."""
    file, written = seen.file, read_unit_file(seen.file.before or "", "")
    install, differs = seen.call("install"), bool(written.program) and written.program[:1] != seen.program[:1]
    if written.program and not seen.program_there:
        yield Finding(
            FindingId.PROGRAM_GONE,
            Severity.ERROR,
            f"the service starts {_quoted(written.program[:1])}, which cannot be executed",
            f"{file.path} says so; the installation was moved, removed or its Python replaced",
            "point it at the installation that you have",
            install,
            Mend.INSTALL,
        )
    elif differs and seen.elsewhere:  # a copy with directories of its own has no say in what the service starts
        pass
    elif file.change is Change.EDITED:
        yield Finding(
            FindingId.UNIT_EDITED,
            Severity.WARNING,
            f"{file.path} was edited, so nobody keeps it up to date",
            "its text does not fit the hash in it",
            "edits belong into a drop-in (`systemctl --user edit ankita-agent`); this keeps yours beside it",
            install,
        )
    elif differs:
        yield Finding(
            FindingId.PROGRAM_OTHER,
            Severity.WARNING,
            f"the service starts another installation than this one: {_quoted(written.program[:1])}",
            f"this is {_quoted(seen.program[:1])}",
            "if the service is to start this one",
            install,
        )
    elif outdated := [each.path for each in (file, *seen.others) if each.change in (Change.NEW, Change.REPAIRED)]:
        yield Finding(
            FindingId.UNIT_OUTDATED,
            Severity.WARNING,
            f"not what this version would write here: {', '.join(outdated)}",
            f"version {written.version} wrote the unit",
            "write it anew",
            install,
            Mend.INSTALL,
        )
    elif seen.state.needs_reload:
        yield _not_read(f"systemd has not read {file.path} or a drop-in since it was changed")


def _gone(seen: ServiceSeen) -> Finding:
    runs = "runs on, and will not start again" if seen.state.activity.up else "cannot start once systemd looks again"
    return Finding(
        FindingId.UNIT_GONE,
        Severity.ERROR,
        f"the unit file of the service is gone: it {runs}",
        f"there is no {seen.file.path}, which systemd had read",
        "write it anew",
        seen.call("install"),
        Mend.INSTALL,
    )


def _unusable(seen: ServiceSeen, path: str, do: str, command: str, mend: Mend | None = None) -> Finding:
    what = f"systemd cannot use {path}"
    return Finding(FindingId.UNIT_UNUSABLE, Severity.ERROR, what, _said(seen), do, command, mend)


def _drop_in_unusable(seen: ServiceSeen) -> Finding:
    """Those that systemd names are at fault; where it names none, it may be any of them."""
    named = [path for path in seen.drop_ins if any(path in line for line in seen.complaints)]
    told = named or list(seen.drop_ins)
    aside = " && ".join(_aside(path, own=path in seen.own_drop_ins) for path in told)
    them, back = ("it", "") if len(told) == 1 else ("them", ", and put back those that are right")
    return Finding(
        FindingId.DROP_IN_UNUSABLE,
        Severity.ERROR,
        f"systemd cannot use the service with {' and '.join(told)} on top of it",
        _said(seen),
        f"mend {them} in an editor, or put {them} aside{back}",
        f"{aside} && {RELOAD}",
    )


def _said(seen: ServiceSeen) -> str:
    return f"it says: {'; '.join(seen.complaints)}" if seen.complaints else f"it says {seen.state.load}"


def _not_read(what: str) -> Finding:
    return Finding(
        FindingId.NOT_READ_AGAIN,
        Severity.WARNING,
        what,
        "it goes by what it read before",
        "have it read them again",
        RELOAD,
        Mend.RELOAD,
    )


def _aside(path: str, *, own: bool) -> str:
    return f"{'' if own else 'sudo '}mv {shlex.quote(path)} {shlex.quote(path + '.aside')}"


def _quoted(words: tuple[str, ...]) -> str:
    return " ".join(map(shlex.quote, words)) or "nothing"
