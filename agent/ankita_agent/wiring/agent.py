"""The agent, with the world around it."""

import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ankita_agent import __version__
from ankita_agent.adapters.machine import machine_name, manager_of, user_facts
from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.adapters.state_directory import cannot_write, prepare_state_directory
from ankita_agent.adapters.system_clock import SystemClock
from ankita_agent.core.instants import Instant
from ankita_agent.ports.files import Descriptor, Files
from ankita_agent.wiring.routines import routine_judge, routine_source
from ankita_agent.wiring.user import ThisUser

if TYPE_CHECKING:  # imported where they are used: signals are heeded before most of it is read
    from ankita_agent.app.agent import Agent
    from ankita_agent.app.routines import Routines
    from ankita_agent.app.runner import Runner
    from ankita_agent.app.seat import Opened
    from ankita_agent.app.told import Tell
    from ankita_agent.app.world import World

RUN = "run"
"""Where the locks of routines are, below the state directory."""


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """How `run` was asked to run. `umask` is what attempts get.

    `tell` is given a line for people at a time, in which instants stand as `local` writes them.
    """

    standby: bool
    inherit_environment: bool
    in_terminal: bool
    umask: int
    tell: "Tell"
    local: Callable[[Instant], str]


def run_agent(user: ThisUser, options: AgentOptions) -> int:
    """Run the agent until it ends; its exit status. Raises AnkitaError where it cannot begin."""
    import signal

    from ankita_agent.adapters.linux_wakeups import LinuxWakeups
    from ankita_agent.adapters.posix_processes import PosixProcesses
    from ankita_agent.adapters.sd_notify import find_manager
    from ankita_agent.app.world import World

    manager = manager_of(user.environment)
    readiness = find_manager(user.environment, os.getpid())
    wakeups = LinuxWakeups((signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP))
    try:
        world = World(SystemClock(), wakeups, PosixProcesses(options.umask), readiness)
        prepare_state_directory(user.places.state)
        opener = ledger_opener(user.places.ledger, world.processes.this_process().boot)
        return build_agent(user, options, world, PosixFiles(), opener, manager).run()
    except OSError as error:
        raise cannot_write(user.places.state, error) from None
    finally:
        wakeups.close()


def build_agent(
    user: ThisUser,
    options: AgentOptions,
    world: "World",
    files: Files,
    open_ledger: Callable[[bool], "Opened"],
    manager: str | None,
) -> "Agent":
    """The agent over these ports. Its state directory must be there. Raises OSError."""
    from ankita_agent.app.agent import Agent
    from ankita_agent.app.claim import Card
    from ankita_agent.app.owner import Owner
    from ankita_agent.app.patience import Patience, patient_files
    from ankita_agent.app.report import Report, write_report
    from ankita_agent.app.reporter import Reporter
    from ankita_agent.app.requests import REQUESTS, Requests
    from ankita_agent.app.told import Lines
    from ankita_agent.app.world import Manner

    places, patience = user.places, Patience(world.clock, world.readiness)
    files = patient_files(files, patience.waiting)
    state = files.open_directory(places.state)
    process = world.processes.this_process()
    card = Card(os.urandom(16).hex(), process, os.getuid(), __version__, manager, socket.gethostname())
    owner = Owner(files, state, places.state, card)

    def publish(report: Report) -> None:
        write_report(files, owner.directory, report)

    inherits = options.inherit_environment
    return Agent(
        world,
        Manner(options.standby, options.in_terminal, machine_name(), f"{places.state}/{REQUESTS}"),
        owner,
        _build_runner(user, options, world, files, state),
        _build_routines(user, world, files, state),
        Requests(files, state),
        Reporter(
            options.tell,
            Lines(options.local),
            publish,
            world.readiness,
            card.token,
            __version__,
            inherits_environment=inherits,
        ),
        patience,
        open_ledger,
    )


def _build_runner(user: ThisUser, options: AgentOptions, world: "World", files: Files, state: Descriptor) -> "Runner":
    from ankita_agent.adapters.attempt_outputs import AttemptOutputs
    from ankita_agent.adapters.posix_env_files import PosixEnvFiles
    from ankita_agent.app.runner import Runner, Surroundings
    from ankita_agent.core.environment import agent_environment, service_environment

    base = dict(user.environment) if options.inherit_environment else service_environment(user_facts())
    base |= agent_environment(user.places.state, user.places.config)
    files.make_directory(state, RUN)
    locks = files.open_directory_at(state, RUN)
    surroundings = Surroundings(base, user.home, PosixEnvFiles())
    return Runner(world.processes, AttemptOutputs(state), files, world.clock, locks, surroundings)


def _build_routines(user: ThisUser, world: "World", files: Files, state: Descriptor) -> "Routines":
    from ankita_agent.adapters.routine_files import LastGoodFile
    from ankita_agent.adapters.yaml_files import LARGEST
    from ankita_agent.app.routines import Routines

    last_good = LastGoodFile(files, state, user.places.state, LARGEST)
    return Routines(routine_source(user.places), last_good, routine_judge(), world.clock)


def ledger_opener(path: str, boot: str) -> Callable[[bool], "Opened"]:
    """What opens the ledger of an owner in this boot; told that it is damaged, it sets it aside before."""
    from ankita_agent.adapters.sqlite_ledger import memory_ledger, open_owner, set_aside
    from ankita_agent.app.seat import Opened

    # A standby opens the ledger in the moment in which nobody owns; what that needs is read by then.
    memory_ledger().close()

    def open_ledger(damaged: bool) -> Opened:
        aside = set_aside(path, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())) if damaged else None
        return Opened(open_owner(path, boot=boot), aside)

    return open_ledger
