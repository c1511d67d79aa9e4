"""What people are told when their service manager cannot be asked, does not answer, or refuses.

The problem: "Failed to connect to bus: No medium found" tells nobody what to do, and what helps differs: under sudo it
is another user, over su nobody is logged in, in a container nothing ever runs a manager. The rule: the facts of the
place go in, and only advice that is true of that place comes out, a line for each choice, as commands that can be
pasted and mean the directories of this shell.
`tests/unit/test_reaching.py` holds it. Rejected: guessing from the words of systemctl(1), which differ by version.
"""

import shlex
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from ankita_agent.core.errors import ManagerRefused, ManagerSilent, ManagerUnreachable
from ankita_agent.core.instants import Duration, in_seconds
from ankita_agent.core.service import Unreachable
from ankita_agent.core.unit_properties import is_unit_name

_LONGEST_FACT: Final = 400


class Means(StrEnum):
    """What can start a program, or keep it running, where systemd does not; each by the name of a program of it."""

    CRON = "crontab"
    TMUX = "tmux"
    OPENRC = "openrc-run"
    RUNIT = "chpst"


@dataclass(frozen=True, slots=True)
class Place:
    """Where somebody is who wants their service manager.

    `user` and `uid` are whom we run as; `sudo_user` is who became that by sudo(8), if so; `remote` is a shell of
    ssh(1); `container` names what contains us, and `wsl` is Windows' own; `lingers` is whether the manager is to run
    without a login; `means` are the ways to keep a program running that are installed; `program` is how a shell starts
    ours, and `directories` the variables that lead it to directories of their own, with whole paths.
    """

    user: str
    uid: int
    sudo_user: str | None = None
    remote: bool = False
    container: str | None = None
    wsl: bool = False
    lingers: bool = False
    means: frozenset[Means] = frozenset()
    program: str = "ankita-agent"
    directories: tuple[tuple[str, str], ...] = ()

    @property
    def run(self) -> str:
        """The command line, with the variables, that runs the agent from wherever it is started."""
        given = [f"{name}={shlex.quote(path)}" for name, path in self.directories]
        return " ".join((*(["env"] if given else []), *given, self.program, "run"))


@dataclass(frozen=True, slots=True)
class Address:
    """Where a user's service manager listens: its own `socket` in the user's runtime directory, which needs no bus."""

    runtime_directory: str
    socket: str


def unreachable(reason: Unreachable, place: Place, fact: str) -> ManagerUnreachable:
    """The fault to raise: `fact` is what was observed, such as `/run/user/1000 is not there`."""
    what = f"the service manager of {place.user} (uid {place.uid}) cannot be asked"
    return ManagerUnreachable(reason, what, fact=one_line(fact), now=_NOTHING_DONE, do=_advice(reason, place))


def silent(asked: str, patience: Duration) -> ManagerSilent:
    """The fault of a manager that did not answer in time; `asked` says what was asked of it."""
    return ManagerSilent(
        f"the service manager did not answer within {in_seconds(patience):g} s",
        fact=one_line(asked),
        now="Whether it was done is not known.",
        do="Try again; `systemctl --user status` shows whether the manager answers anybody.",
    )


def refused(asked: str, fact: str) -> ManagerRefused:
    """The fault of a manager that said no; `fact` is what it said."""
    return ManagerRefused(
        f"the service manager refused to {asked}",
        fact=one_line(fact),
        now=_NOTHING_DONE,
        do="See how it is with `systemctl --user status ankita-agent`, and try again.",
    )


def lingering_refused(user: str, fact: str) -> ManagerRefused:
    """The fault of a login manager that did not let `user` linger; `fact` is what it said."""
    return ManagerRefused(
        f"could not have the services of {user} go on without a login",
        fact=one_line(fact),
        now="They end with the last login, and do not start at boot.",
        do=f"`sudo loginctl enable-linger {user}`",
    )


def check_unit_name(text: str) -> None:
    """Raise ManagerRefused where no unit can bear that name."""
    if not is_unit_name(text):
        raise refused(f"look for {text!r}", "no unit can bear that name")


def one_line(text: str) -> str:
    """What somebody else's program said, on one line and printable."""
    flat = " ".join(text.split())
    shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in flat)
    return shown if len(shown) <= _LONGEST_FACT else shown[: _LONGEST_FACT - 1] + "…"


_NOTHING_DONE: Final = "Nothing was done."


def _advice(reason: Unreachable, place: Place) -> str:
    unit = f"user@{place.uid}.service"
    match reason:
        case Unreachable.NO_SYSTEMD:
            return _without_systemd(place)
        case _ if place.uid == 0 and place.sudo_user not in (None, "root"):
            return f"As root by sudo this is about the services of root. For those of {place.sudo_user}: without sudo."
        case Unreachable.NO_RUNTIME_DIRECTORY if place.lingers:
            return (
                f"It lingers, so it should run: `sudo systemctl start {unit}`, and `systemctl status {unit}` says more."
            )
        case Unreachable.NO_RUNTIME_DIRECTORY:
            no_login = "su, sudo and an sshd with `UsePAM no` make none" if place.remote else "su and sudo make none"
            return (
                f"`sudo loginctl enable-linger {place.user}` starts it, now and at every boot; so does a login of "
                f"{place.user} while it lasts, but {no_login}."
            )
        case Unreachable.FOREIGN_RUNTIME_DIRECTORY:
            return f"`sudo systemctl restart user-runtime-dir@{place.uid}.service {unit}` makes it anew."
        case Unreachable.NO_SOCKET:
            return f"`sudo systemctl restart {unit}`; if that fails, `sudo journalctl -b -u {unit}` says why."
        case Unreachable.NO_PROGRAM:
            return "Put systemctl on PATH; it comes with systemd."
        case Unreachable.REFUSED:
            return f"Something forbids it, such as a sandbox around this shell; try it from a login of {place.user}."
        case _:
            assert_never(reason)


def _without_systemd(place: Place) -> str:
    """The ways to do without, a line for each, the one that works anywhere first."""
    run = place.run
    ways = [("in this terminal, until Ctrl-C", run)]
    if Means.TMUX in place.means:
        ways.append(("until the next boot", f"tmux new -d {shlex.quote(run)}"))
    else:
        ways.append(("until the next boot", f"nohup {run} >/dev/null 2>&1 &"))
    if Means.CRON in place.means:
        line = shlex.quote(f"@reboot {run} --standby".replace("%", "\\%"))
        ways.append(("at each boot, by cron", f"(crontab -l; echo {line}) | crontab -"))
    if Means.RUNIT in place.means:
        ways.append(("at each boot, in the run file of a service of runit", f"exec chpst -u {place.user} {run}"))
    if Means.OPENRC in place.means:
        program, *arguments = shlex.split(run)
        settings = (
            "supervisor=supervise-daemon",
            f"command_user={place.user}",
            f"command={shlex.quote(program)}",
            f"command_args={shlex.quote(shlex.join(arguments))}",
        )
        ways.append(("at each boot, as a service of OpenRC with", "; ".join(settings)))
    if place.wsl:
        ways.append(("with systemd, after wsl.exe --shutdown", "systemd=true below [boot] in /etc/wsl.conf"))
    elif place.container is not None:
        ways.append(("in an image, as what its container runs", run))
    return "\n  ".join(f"{when}: {how}" for when, how in ways)
