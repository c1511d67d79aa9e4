"""What is the matter with the agent, and whether shell and service speak of the same one: facts in, findings out."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from ankita_agent.core.advice import split_advice
from ankita_agent.core.findings import Finding, FindingId, Severity


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
    up; `pid` that of the owner in this shell's state directory; `run` is how a shell starts one.
    """

    shell: Led
    service: Led | None
    service_pid: int | None
    doing: Doing
    pid: int | None
    degraded: tuple[str, ...]
    run: str = "ankita-agent run"


def judge_agent(seen: AgentSeen) -> Iterator[Finding]:
    """The agent, and whether shell and service speak of the same one."""
    shell, service = seen.shell, seen.service
    if service is not None and (shell.state, shell.config) != (service.state, service.config):
        yield _other_places(shell, service, beside=seen.pid is not None and shell.state != service.state)
        if seen.service_pid is not None and seen.pid not in (None, seen.service_pid) and shell.state != service.state:
            yield _two_owners(seen, shell, service)
    match seen.doing:
        case Doing.NOBODY if service is None and seen.service_pid is None:
            yield Finding(
                FindingId.NO_AGENT,
                Severity.WARNING,
                "no agent runs, so nothing fires",
                f"nobody owns {shell.state}",
                "in a terminal that stays open",
                seen.run,
            )
        case Doing.NOBODY | Doing.WELL:
            pass
        case Doing.STOPPED:
            yield Finding(
                FindingId.AGENT_STOPPED,
                Severity.ERROR,
                f"the owner, pid {seen.pid}, is stopped and fires nothing",
                "the kernel shows it in state T: somebody sent it SIGSTOP, or a debugger holds it",
                "have it go on",
                f"kill -CONT {seen.pid}",
            )
        case Doing.WEDGED:
            yield Finding(
                FindingId.AGENT_WEDGED,
                Severity.ERROR,
                f"the owner, pid {seen.pid}, makes no progress",
                "it has shown none for two minutes in which the machine was awake",
                "its service manager replaces it; at once"
                if seen.pid == seen.service_pid
                else "end it, and start it again",
                f"kill -ABRT {seen.pid}",
            )
        case _:
            assert_never(seen.doing)
    for reason in seen.degraded:
        words, command = split_advice(reason)
        what, semicolon, do = words.rpartition("; ") if command else (reason, "", "")
        if command and not semicolon:
            what, do = words, ""
        said = f"the agent is degraded: {what}"
        yield Finding(FindingId.AGENT_DEGRADED, Severity.WARNING, said, "it says so itself", do, command)


def _two_owners(seen: AgentSeen, shell: Led, service: Led) -> Finding:
    """Harmless as long as they have routines of their own."""
    same = shell.config == service.config
    return Finding(
        FindingId.TWO_OWNERS,
        Severity.WARNING if same else Severity.NOTE,
        f"two agents run, each with a state of its own: pid {seen.pid} and, as the service, {seen.service_pid}",
        f"they own {shell.state} and {service.state}, and know nothing of each other's runs",
        "both have the routines of the same directory, and each fires them; end the one that is not the service"
        if same
        else "a routine that both have is fired by each of them",
        f"kill -INT {seen.pid}" if same else "",
    )


def _other_places(shell: Led, service: Led, *, beside: bool) -> Finding:
    """An agent of its own, by variables that are ours, is what somebody chose; else it is hardly meant."""
    pairs = ((shell.state, service.state), (shell.config, service.config))
    told = " and ".join(f"{ours} (the service: {theirs})" for ours, theirs in pairs if ours != theirs)
    chosen = beside and bool(shell.variables) and all(name.startswith("ANKITA_") for name in shell.variables)
    led = f"led by {', '.join(shell.variables)}" if shell.variables else "the service is led elsewhere"
    command = (
        f"unset {' '.join(shell.variables)}"
        if shell.variables
        else f"export ANKITA_STATE_DIR={shlex.quote(service.state)} ANKITA_CONFIG_DIR={shlex.quote(service.config)}"
    )
    return Finding(
        FindingId.OTHER_PLACES,
        Severity.NOTE if chosen else Severity.WARNING,
        f"what you type here does not speak of the service: it looks into {told}",
        led,
        "to speak of the service in this shell, unless it is a script that sets them"
        if shell.variables
        else "to speak of the service in this shell",
        command,
    )
