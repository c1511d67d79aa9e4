"""What tests of installing and taking away share."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from tests.real.waiting import until
from tests.rig.guest import Done, Guest

UNITS: Final = ".local/share/systemd/user"
SERVICE: Final = f"{UNITS}/ankita-agent.service"
CONFIG: Final = ".config/ankita-agent"
ROUTINES: Final = f"{CONFIG}/routines.yaml"
QUIET: Final = "routines: {backup: {schedule: daily 03:00, run: sleep 1000}}\n"


def install(guest: Guest, *options: str) -> Done:
    """Install, with routines that do nothing for now, unless there are others."""
    if not guest.exists(ROUTINES):
        guest.write(ROUTINES, QUIET)
    return guest.run("ankita-agent", "install", *options)


@contextmanager
def in_a_terminal(guest: Guest) -> Iterator[None]:
    """A block during which an agent owns that somebody runs by hand."""
    guest.write(ROUTINES, QUIET)
    with guest.start("ankita-agent", "run") as agent:
        until(lambda: guest.run("ankita-agent", "status").code == 0)
        yield
        agent.send_signal(signal.SIGTERM)


def interrupt(guest: Guest, command: str, when: Callable[[], bool]) -> tuple[int, str]:
    """Ctrl-C for a command of ankita-agent as soon as something is so; its exit status, and what it said."""
    script = f"env --default-signal=INT ankita-agent {command} >told 2>&1 & echo $! >waiter; wait $!; echo $? >ended"
    with guest.start("bash", "-c", script):
        until(lambda: guest.exists("waiter") and guest.exists("told") and when())
        guest.signal(int(guest.read("waiter")), "INT")
        until(lambda: guest.exists("ended") and guest.read("ended") != "")
    return int(guest.read("ended")), guest.read("told")


def words(done: Done) -> list[str]:
    """The first word of each line that was said."""
    return [line.split()[0] for line in done.out.splitlines() if line and not line.startswith(" ")]


def asks(guest: Guest) -> bool:
    """Whether the command that `interrupt` started has got as far as talking to somebody, such as the manager."""
    return "socket:" in guest.shell("ls -l /proc/$(cat waiter)/fd").out
