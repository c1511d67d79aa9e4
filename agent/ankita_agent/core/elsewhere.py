"""Whether the installed service serves other directories than those of this shell.

The problem: a unit is known by its name alone, so a shell with directories of its own (`make run`, a test, a second
set of routines) would start, stop or rewrite the service of the usual ones, and call it its own. The rule: what the
unit's files say is compared with the shell before anything is done to the service, by this one function, and a
command for another service is refused, with both named. `tests/unit/test_elsewhere.py` holds it.
Limit: a unit that sets no directory counts as serving the usual ones; XDG variables of the manager's own are not seen.
Rejected: a unit for each directory, which is a second service that nobody asked for.
"""

import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ankita_agent.core.errors import WrongUse
from ankita_agent.core.unit_file import read_unit_file

VARIABLES: Final = ("ANKITA_STATE_DIR", "ANKITA_CONFIG_DIR")
"""The variables that lead to the directories, in the order in which they are told."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """One directory in which they differ: the variable that leads to it, the service's path and this shell's.

    `usual` is whether the service's is the one that is found without the variable.
    """

    variable: str
    service: str
    shell: str
    usual: bool


def served(texts: Iterable[str], home: str) -> dict[str, str]:
    """What a unit's file, and its drop-ins in order, set of `VARIABLES`."""
    environment = read_unit_file("\n".join(texts), home).environment
    return {name: environment[name] for name in VARIABLES if environment.get(name)}


def serves_elsewhere(
    service: Mapping[str, str], shell: Mapping[str, str], usual: Mapping[str, str]
) -> tuple[Elsewhere, ...]:
    """The directories in which service and shell differ; empty where the service is this shell's.

    Each maps `VARIABLES` to whole paths; in `service` and `shell` one that is not there stands for the `usual`.
    """
    found = []
    for name in VARIABLES:
        theirs, ours = service.get(name) or usual[name], shell.get(name) or usual[name]
        if theirs != ours:
            found.append(Elsewhere(name, theirs, ours, usual=theirs == usual[name]))
    return tuple(found)


def meaning_it(command: str, found: Collection[Elsewhere], set_here: Collection[str]) -> str:
    """The command line that does `command` with the service's directories; `set_here` are the variables set."""
    taken = [f"-u {each.variable}" for each in found if each.usual and each.variable in set_here]
    given = [
        f"{each.variable}={shlex.quote(each.service)}"
        for each in found
        if not (each.usual and each.variable in set_here)
    ]
    return " ".join((*(["env"] if taken else []), *taken, *given, "ankita-agent", command))


def told(found: Iterable[Elsewhere]) -> str:
    """Both directories, for people."""
    return "; ".join(f"it serves {each.service}, and this shell has {each.shell}" for each in found)


def refuse_elsewhere(verb: str, found: Collection[Elsewhere], set_here: Collection[str]) -> None:
    """Raise WrongUse for starting, stopping or restarting a service that is not this shell's; nothing is done then."""
    if found:
        raise WrongUse(
            f"will not {verb} the service",
            fact=told(found),
            now="nothing was changed",
            do=f"that service is meant: {meaning_it(verb, found, set_here)}    "
            f"or: systemctl --user {verb} ankita-agent",
        )


def refuse_taking_over(found: Collection[Elsewhere], set_here: Collection[str]) -> None:
    """Raise WrongUse for installing over a service that is not this shell's; nothing is done then."""
    if found:
        raise WrongUse(
            "will not install over the service of other directories",
            fact=told(found),
            now="nothing was changed",
            do="first take that one away, which keeps its routines and its history: "
            f"{meaning_it('uninstall', found, set_here)}    then: ankita-agent install",
        )
