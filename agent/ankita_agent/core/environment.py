"""The variables of an attempt: the same whoever owns, service, shell or takeover.

An attempt must not see from where its owner was started. Its base is therefore computed from facts about the
user, never inherited, unless `run --inherit-env` asks for that. What the routine says comes on top, then what
its `env_file` says, then what we say about the fire; what belongs to the agent alone is taken out last.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ankita_agent.core.instants import Instant, format_instant
from ankita_agent.core.outcomes import Trigger

FIRE_VARIABLE: Final = "ANKITA_FIRE"
"""Stable over the retries of a fire, so a command can use it as an idempotency key."""

_AGENT_ONLY: Final = re.compile(r"NOTIFY_SOCKET|WATCHDOG_\w*|LISTEN_\w*")
_LINE: Final = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)")
_ESCAPED: Final = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class UserFacts:
    """Whose agent it is. `runtime_directory` and `bus` are None unless they exist right now."""

    home: str
    name: str
    shell: str
    runtime_directory: str | None
    bus: str | None


@dataclass(frozen=True, slots=True)
class FireFacts:
    """What an attempt is told of its fire; `missed` counts the slots before it that did not run."""

    routine: str
    fire: int
    slot: Instant
    trigger: Trigger
    attempt: int
    term: int
    last_success: Instant | None
    missed: int


def service_environment(user: UserFacts) -> dict[str, str]:
    """The base environment: what a user service has, whoever started the agent."""
    variables = {
        "HOME": user.home,
        "USER": user.name,
        "LOGNAME": user.name,
        "SHELL": user.shell,
        "PATH": f"{user.home}/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
    }
    if user.runtime_directory is not None:
        variables["XDG_RUNTIME_DIR"] = user.runtime_directory
    if user.bus is not None:
        variables["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={user.bus}"
    return variables


def agent_environment(state: str, config: str) -> dict[str, str]:
    """What leads `ankita-agent` within an attempt to the agent that started it. Both are absolute paths."""
    return {"ANKITA_STATE_DIR": state, "ANKITA_CONFIG_DIR": config}


def attempt_environment(
    base: Mapping[str, str],
    routine: Mapping[str, str],
    env_file: Iterable[tuple[str, str]],
    facts: FireFacts,
) -> dict[str, str]:
    """All variables of one attempt: base, then the routine's, then its file's, then ours.

    NOTIFY_SOCKET, WATCHDOG_* and LISTEN_* are never among them: with those an attempt could speak to the
    service manager in the agent's name (sd_notify(3), sd_listen_fds(3)).
    """
    variables = {**base, **routine, **dict(env_file)}
    variables |= {
        "ANKITA_ROUTINE": facts.routine,
        "ANKITA_SLOT": format_instant(facts.slot),
        "ANKITA_TRIGGER": facts.trigger.value,
        "ANKITA_ATTEMPT": str(facts.attempt),
        FIRE_VARIABLE: str(facts.fire),
        "ANKITA_TERM": str(facts.term),
        "ANKITA_LAST_SUCCESS": "" if facts.last_success is None else format_instant(facts.last_success),
        "ANKITA_MISSED": str(facts.missed),
    }
    return {name: value for name, value in variables.items() if not _AGENT_ONLY.fullmatch(name)}


def parse_env_file(text: str) -> list[tuple[str, str]]:
    """The pairs of an env file, in their order.

    Lines `NAME=value`, with or without `export `; blank lines and lines that begin with `#` say nothing. A
    value in single quotes is taken as it stands; in double quotes a backslash takes the next character as it
    stands; without quotes it ends at ` #` or the end of the line. Nothing is expanded. Raises ValueError that
    names the line, and never shows its value: such files hold secrets.
    """
    pairs = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        match = _LINE.fullmatch(stripped)
        if match is None:
            raise ValueError(f"line {number} is not NAME=value, with a name of letters, digits and _")
        pairs.append((match[1], _value(match[2].strip(), number)))
    return pairs


def _value(written: str, number: int) -> str:
    quote = written[:1]
    if quote not in ("'", '"'):
        return re.split(r"(?:^|\s)#", written, maxsplit=1)[0].rstrip()
    inner = r"'([^']*)'" if quote == "'" else r'"((?:[^"\\]|\\.)*)"'
    match = re.fullmatch(inner + r"(?:\s+#.*)?", written)
    if match is None:
        raise ValueError(f"line {number}: the value begins with {quote} and does not end with it")
    return match[1] if quote == "'" else _ESCAPED.sub(r"\1", match[1])
