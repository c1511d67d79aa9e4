"""What is the matter with the agent, its state and the machine below it: facts in, findings out.

The other half of `diagnosis`: what holds with and without a service manager. The account of the ledger is judged here:
a slot that was doubled or left out is an error that names it.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from ankita_agent.core.environment import UserFacts, service_environment
from ankita_agent.core.errors import AnkitaError
from ankita_agent.core.findings import Finding, FindingId, Severity
from ankita_agent.core.instants import Instant, format_instant
from ankita_agent.core.problems import Problem
from ankita_agent.core.problems import Severity as Refusal
from ankita_agent.core.reckoning import Reckoning

LITTLE_SPACE: Final = 100 * 1024 * 1024
"""Bytes. The ledger and outputs of a busy month take less; below it, a single run's output may fill the disk."""

FEW_INODES: Final = 1000

_SHELL_SIGNS: Final = frozenset("|&;<>()$`\\\"'*?[]#~=%!{}\n")
_LISTED: Final = 5


@dataclass(frozen=True, slots=True)
class Led:
    """Where somebody's state and configuration are, and the variables that led there."""

    state: str
    config: str
    variables: tuple[str, ...] = ()


class Doing(StrEnum):
    """How the agent of the shell's state directory is."""

    NOBODY = "nobody"
    WELL = "well"
    STOPPED = "stopped"
    WEDGED = "wedged"


@dataclass(frozen=True, slots=True)
class AgentSeen:
    """The agents, as far as this shell's state directory and the service show them.

    `service` is where the service keeps its things, None when there is none; `service_pid` its process while it is
    up; `pid` that of the owner in this shell's state directory.
    """

    shell: Led
    service: Led | None
    service_pid: int | None
    doing: Doing
    pid: int | None
    degraded: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommandSeen:
    """A program that a routine starts and that the shell finds in `directory`, while the service finds none."""

    routine: str
    program: str
    directory: str


@dataclass(frozen=True, slots=True)
class RoutinesSeen:
    """The file of routines. `problems` as `check` tells them; `commands` that only the shell finds."""

    path: str
    there: bool
    problems: tuple[Problem, ...] = ()
    commands: tuple[CommandSeen, ...] = ()


@dataclass(frozen=True, slots=True)
class DiskSeen:
    """The file system below the state: bytes and inodes that are free for us; None where it has no such limit."""

    path: str
    free: int
    inodes: int | None
    read_only: bool


class MessagesSeen(StrEnum):
    """What becomes of what the agent says in the journal."""

    KEPT = "kept"
    VOLATILE = "volatile"  # in memory, where ordinary users see nothing of it
    UNREADABLE = "unreadable"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class MachineSeen:
    """The machine. `clock` is whether it is synchronised; None where nobody can tell, as with `disk`.

    `ours` is whether the machine is one whose clock its user keeps, and no container.
    """

    disk: DiskSeen | None
    messages: MessagesSeen
    clock: bool | None
    ours: bool = True


def judge_agent(seen: AgentSeen) -> Iterator[Finding]:
    """The agent, and whether shell and service speak of the same one."""
    shell, service = seen.shell, seen.service
    if service is not None and (shell.state, shell.config) != (service.state, service.config):
        yield _other_places(shell, service)
        if seen.service_pid is not None and seen.pid not in (None, seen.service_pid) and shell.state != service.state:
            yield Finding(
                FindingId.TWO_OWNERS,
                Severity.WARNING,
                f"two agents run, each with a state of its own: pid {seen.pid} and, as the service, {seen.service_pid}",
                f"they own {shell.state} and {service.state}, and know nothing of each other's runs",
                "if both have the same routines, each fires them; end the one in the terminal",
                f"kill {seen.pid}",
            )
    match seen.doing:
        case Doing.NOBODY if service is None:
            yield Finding(
                FindingId.NO_AGENT,
                Severity.WARNING,
                "no agent runs, so nothing fires",
                f"nobody owns {shell.state}",
                "in a terminal that stays open",
                "ankita-agent run",
            )
        case Doing.NOBODY | Doing.WELL:
            pass
        case Doing.STOPPED:
            yield Finding(
                FindingId.AGENT_STOPPED,
                Severity.ERROR,
                f"the owner, pid {seen.pid}, is stopped and fires nothing",
                "the kernel shows it in state T: somebody sent it SIGSTOP",
                "",
                f"kill -CONT {seen.pid}",
            )
        case Doing.WEDGED:
            yield Finding(
                FindingId.AGENT_WEDGED,
                Severity.ERROR,
                f"the owner, pid {seen.pid}, makes no progress",
                "it has shown none for two minutes in which the machine was awake",
                "its service manager replaces it; in a terminal, end it and start it again",
                f"kill -ABRT {seen.pid}",
            )
        case _:
            assert_never(seen.doing)
    for reason in seen.degraded:
        yield Finding(
            FindingId.AGENT_DEGRADED, Severity.WARNING, f"the agent is degraded: {reason}", "it says so itself"
        )


def _other_places(shell: Led, service: Led) -> Finding:
    pairs = ((shell.state, service.state), (shell.config, service.config))
    told = " and ".join(f"{ours} (the service: {theirs})" for ours, theirs in pairs if ours != theirs)
    if shell.variables:
        do, command = "in this shell", f"unset {' '.join(shell.variables)}"
    else:
        do = "in this shell"
        command = (
            f"export ANKITA_STATE_DIR={shlex.quote(service.state)} ANKITA_CONFIG_DIR={shlex.quote(service.config)}"
        )
    leading = f"led by {', '.join(shell.variables)}" if shell.variables else "the service is led elsewhere"
    return Finding(
        FindingId.OTHER_PLACES,
        Severity.WARNING,
        f"what you type here does not speak of the service: it looks into {told}",
        leading,
        do,
        command,
    )


def judge_routines(seen: RoutinesSeen, user: UserFacts) -> Iterator[Finding]:
    """The file of routines, and whether the service finds what it starts."""
    if not seen.there:
        yield Finding(
            FindingId.ROUTINES_ABSENT,
            Severity.NOTE,
            f"there is no {seen.path}, so there are no routines",
            do="it says how to begin with a sample",
            command="ankita-agent check",
        )
    refused = [each for each in seen.problems if each.severity is Refusal.ERROR]
    told = refused or list(seen.problems)
    if told:
        first = told[0]
        place = f":{first.line}:{first.column}" if first.line else ""
        more = f", and {len(told) - 1} more" if len(told) > 1 else ""
        yield Finding(
            FindingId.ROUTINES_REFUSED if refused else FindingId.ROUTINES_WARNED,
            Severity.ERROR if refused else Severity.WARNING,
            f"{seen.path}{place}: {first.problem}{more}",
            "a start would refuse the file" if refused else "it is in force, and hardly means that",
            first.fix,
            "ankita-agent check",
        )
    path = service_environment(user)["PATH"]
    for command in seen.commands:
        yield Finding(
            FindingId.COMMAND_NOT_FOUND,
            Severity.WARNING,
            f"{command.routine}: your shell finds {command.program}, and runs of the agent do not",
            f"it is in {command.directory}, and their PATH is {path}",
            f"in {seen.path}, write `{command.directory}/{command.program}`, or for all routines "
            f'`defaults: {{env: {{PATH: "{command.directory}:{path}"}}}}`',
        )


def program_of(argv: Sequence[str], shell: str) -> str | None:
    """The bare name of the program that a routine starts, where a PATH decides which it is; else None.

    A text for the shell counts where its first word is a plain one, with nothing that only a shell understands.
    """
    first = argv[0]
    if len(argv) == 3 and argv[:2] == (shell, "-c"):
        words = argv[2].split(maxsplit=1)
        first = words[0] if words else ""
    if not first or "/" in first or _SHELL_SIGNS & set(first):
        return None
    return first


def judge_state(examined: AnkitaError | None, ledger: AnkitaError | None) -> Iterator[Finding]:
    """The state directory and the ledger in it; each None when there is nothing to say."""
    for id_, fault in ((FindingId.STATE_UNUSABLE, examined), (FindingId.LEDGER_UNREADABLE, ledger)):
        if fault is not None:
            words, colon, command = fault.do.partition(": ")
            do, typed = (words, command) if colon and " " not in words.split()[-1] else (fault.do, "")
            yield Finding(id_, Severity.ERROR, fault.what, fault.fact, do, typed)


def judge_account(doubled: Sequence[tuple[str, Instant]], reckonings: Mapping[str, Reckoning]) -> Iterator[Finding]:
    """Whether the ledger tells of each slot once."""
    see = "please report it, with what this shows"
    for routine, slot in doubled[:_LISTED]:
        yield Finding(
            FindingId.SLOT_DOUBLED,
            Severity.ERROR,
            f"{routine}: more than one row of the ledger tells of the slot {format_instant(slot)}",
            "each slot must have one, and fire at most once",
            see,
            f"ankita-agent history {shlex.quote(routine)}",
        )
    for routine, reckoning in reckonings.items():
        wrong = reckoning.wrong
        if wrong is None:
            continue
        told = "left out: no row of the ledger tells of" if wrong.left_out else "told of more than once in a stretch:"
        yield Finding(
            FindingId.SLOT_LEFT_OUT if wrong.left_out else FindingId.SLOT_DOUBLED,
            Severity.ERROR,
            f"{routine}: {told} the slot {format_instant(wrong.slot)}",
            f"there the schedule has {wrong.by_schedule}, and the rows tell of {wrong.by_rows}",
            see,
            f"ankita-agent history {shlex.quote(routine)}",
        )


def judge_machine(seen: MachineSeen) -> Iterator[Finding]:
    """Disk, journal and clock."""
    if seen.disk is not None:
        yield from _disk(seen.disk)
    match seen.messages:
        case MessagesSeen.VOLATILE:
            yield Finding(
                FindingId.JOURNAL_VOLATILE,
                Severity.NOTE,
                "the journal is kept in memory alone: journalctl --user shows you nothing, and it is gone at a reboot",
                "there is no /var/log/journal; the outputs of runs are kept all the same (ankita-agent logs)",
                "to have it kept",
                "sudo mkdir -p /var/log/journal && sudo journalctl --flush",
            )
        case MessagesSeen.UNREADABLE:
            yield Finding(
                FindingId.JOURNAL_UNREADABLE,
                Severity.NOTE,
                "your part of the journal cannot be read by you: journalctl --user shows nothing",
                "the outputs of runs are kept all the same (ankita-agent logs)",
                "to have a new one begun",
                "sudo journalctl --rotate",
            )
        case MessagesSeen.KEPT | MessagesSeen.NONE:
            pass
        case _:
            assert_never(seen.messages)
    if seen.clock is False:
        yield Finding(
            FindingId.CLOCK_UNSYNCHRONISED,
            Severity.WARNING if seen.ours else Severity.NOTE,
            "the clock is not synchronised, so slots come when it says so and not when they are due",
            "adjtimex(2) tells of an error of 16 s or more",
            "" if seen.ours else "that is up to the machine around this one",
            "sudo timedatectl set-ntp true" if seen.ours else "",
        )


def _disk(disk: DiskSeen) -> Iterator[Finding]:
    look = f"du -xh {shlex.quote(disk.path)} | sort -h | tail"
    if disk.read_only:
        yield Finding(
            FindingId.READ_ONLY,
            Severity.ERROR,
            f"the state directory {disk.path} is on a file system that is mounted read-only",
            "nothing can be recorded there, so nothing fires",
            "a disk with faults is mounted so; see why",
            "sudo dmesg | tail",
        )
    if disk.free < LITTLE_SPACE:
        yield Finding(
            FindingId.DISK_NEARLY_FULL,
            Severity.WARNING,
            f"the disk of the state directory is nearly full: {disk.free // 1024**2} MiB are left",
            "what cannot be recorded does not fire",
            "make some room; what is large there",
            look,
        )
    if disk.inodes is not None and disk.inodes < FEW_INODES:
        yield Finding(
            FindingId.INODES_NEARLY_USED_UP,
            Severity.WARNING,
            f"the disk of the state directory can take only {disk.inodes} more files",
            "a run whose output has no file does not start",
            "remove some files; where most are",
            f"du -x --inodes {shlex.quote(disk.path)} | sort -n | tail",
        )
