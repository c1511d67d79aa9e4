"""Puts the agent and the commands together for this machine: the only module that knows both sides. No logic."""

import os
import socket
import sys
import time
from collections.abc import Callable, Collection, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ankita_agent import __version__
from ankita_agent.adapters.machine import home_of_user, local_zone, machine_name, manager_of, user_facts
from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.adapters.state_directory import cannot_write, prepare_state_directory
from ankita_agent.adapters.system_clock import SystemClock
from ankita_agent.app.places import FILE, Places, UnitPlaces, find_places, find_unit_places
from ankita_agent.core.errors import AnkitaError, LedgerDamaged
from ankita_agent.core.instants import SECOND, Duration, Instant, in_seconds
from ankita_agent.core.schedule import Timetable
from ankita_agent.core.zones import zone_named
from ankita_agent.ports.clock import Clock
from ankita_agent.ports.files import Descriptor, Files
from ankita_agent.ports.ledger import LedgerReader
from ankita_agent.ports.lingering import Lingering
from ankita_agent.ports.outputs import Outputs
from ankita_agent.ports.processes import Processes
from ankita_agent.ports.routine_source import RoutineSource
from ankita_agent.ports.service_manager import ServiceManager

if TYPE_CHECKING:  # imported where they are used: a reading command must start fast
    from ankita_agent.app.agent import Agent
    from ankita_agent.app.installation import Installation, Shipped, Whereto
    from ankita_agent.app.removal import Removal
    from ankita_agent.app.routines import Routines
    from ankita_agent.app.runner import Runner
    from ankita_agent.app.seat import Opened
    from ankita_agent.app.service import Service
    from ankita_agent.app.service_words import View, Words
    from ankita_agent.app.unit_files import UnitFiles
    from ankita_agent.app.world import World
    from ankita_agent.core.routine_file import Judgement


@dataclass(frozen=True, slots=True)
class ThisUser:
    """Who runs the command, and where their things are."""

    places: Places
    home: str
    environment: MutableMapping[str, str]


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """How `run` was asked to run. `umask` is what attempts get.

    `tell` is given a line for people at a time, in which instants stand as `local` writes them.
    """

    standby: bool
    inherit_environment: bool
    in_terminal: bool
    umask: int
    tell: Callable[[str], None]
    local: Callable[[Instant], str]


def find_this_user(environment: MutableMapping[str, str]) -> ThisUser:
    """The user we run as, with a copy of the environment that may be taken apart."""
    home = home_of_user()
    return ThisUser(find_places(environment, home, os.getcwd), home, environment)


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

    last_good = LastGoodFile(files, state, LARGEST)
    return Routines(routine_source(user.places), last_good, routine_judge(), world.clock)


def routine_source(places: Places) -> RoutineSource:
    """The file of routines of these places."""
    from ankita_agent.adapters.routine_files import RoutineFile
    from ankita_agent.adapters.yaml_files import LARGEST

    return RoutineFile(places.routines, LARGEST)


def routine_judge() -> Callable[[bytes], "Judgement"]:
    """What judges the bytes of a file of routines on this machine."""
    from ankita_agent.adapters.yaml_files import read_document
    from ankita_agent.core.routine_file import judge

    zone = local_zone()
    return lambda content: judge(read_document(content), zone)


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


RUN = "run"
"""Where the locks of routines are, below the state directory."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a reading command looks through. `state` and `ledger` are None where there is none yet.

    `problem` is what keeps a ledger that is there from being read.
    """

    files: Files
    clock: Clock
    state: Descriptor | None
    ledger: LedgerReader | None
    problem: AnkitaError | None


@contextmanager
def looking(places: Places) -> Iterator[Outlook]:
    """Open what there is of the state, to look at it: nothing is made, locked or changed."""
    from ankita_agent.adapters.sqlite_ledger import open_reader
    from ankita_agent.core.errors import LedgerTooNew, LedgerUnavailable

    files = PosixFiles()
    try:
        state = files.open_directory(places.state)
    except FileNotFoundError:
        yield Outlook(files, SystemClock(), None, None, None)
        return
    except OSError as error:
        raise cannot_write(places.state, error) from None
    ledger: LedgerReader | None = None
    problem: AnkitaError | None = None
    try:
        ledger = open_reader(places.ledger)
    except (LedgerDamaged, LedgerTooNew, LedgerUnavailable) as fault:
        problem = fault
    try:
        yield Outlook(files, SystemClock(), state, ledger, problem)
    finally:
        if ledger is not None:
            ledger.close()
        files.close(state)


def look_at_processes() -> Processes:
    """Processes, to observe them."""
    from ankita_agent.adapters.posix_processes import PosixProcesses

    return PosixProcesses(0o077)


def look_at_outputs(outlook: Outlook) -> Outputs:
    """The outputs of attempts below an open state directory."""
    from ankita_agent.adapters.attempt_outputs import AttemptOutputs

    assert outlook.state is not None
    return AttemptOutputs(outlook.state)


def read_routines(user: ThisUser) -> list[tuple[str, Timetable, bool]]:
    """The routines of the file as it stands: (name, slots, enabled). Raises BadConfiguration when it is bad."""
    from ankita_agent.app.preview import preview

    file = preview(routine_source(user.places), routine_judge())
    return [
        (routine.name, Timetable(routine.schedule, zone_named(routine.timezone)), routine.enabled)
        for routine in file.routines
    ]


def service_manager(user: ThisUser, *, quick: bool = False) -> ServiceManager:
    """The service manager of this user; whether it can be reached shows with each call.

    `quick` is for commands that only show how it is: through systemctl, which starts faster, and without much patience.
    """
    from ankita_agent.adapters.user_manager import UserManager, child_environment, find_program

    whereabouts = UserManager(user.environment, os.getuid())
    if not quick:
        try:
            from ankita_agent.adapters.pystemd_manager import PystemdManager
        except ImportError:  # an extra
            pass
        else:
            return PystemdManager(whereabouts.locate)
    from ankita_agent.adapters.systemctl_manager import PATIENCE, SystemctlManager

    systemctl, children = find_program("systemctl", user.environment), child_environment(user.environment)
    locate = whereabouts.locate if systemctl else whereabouts.locate_without_program
    return SystemctlManager(systemctl or "systemctl", children, locate, Duration(SECOND) if quick else PATIENCE)


def login_manager(user: ThisUser) -> Lingering:
    """What knows whether this user's services go on without a login."""
    from ankita_agent.adapters.login_manager import LoginManager
    from ankita_agent.adapters.user_manager import child_environment, find_program

    loginctl, children = find_program("loginctl", user.environment), child_environment(user.environment)
    return LoginManager(user_facts().name, loginctl, children)


def newest_lines(user: ThisUser) -> list[str]:
    """What the service, and its manager about it, said last; nothing where that cannot be read."""
    from ankita_agent.adapters.journal import newest_lines as read
    from ankita_agent.adapters.user_manager import child_environment, find_program
    from ankita_agent.core.service import UNIT

    journalctl = find_program("journalctl", user.environment)
    return [] if journalctl is None else read(journalctl, UNIT, child_environment(user.environment))


def service_program() -> tuple[str, ...]:
    """The command line of the service: this Python, by the path that it was called by.

    A virtual environment's own link to it survives an upgrade of what it leads to. -P: the service begins in the
    home, and a click.py there is none of ours.
    """
    return (os.path.abspath(sys.executable), "-P", "-m", "ankita_agent", "run", "--standby")


def service_variables(user: ThisUser) -> dict[str, str]:
    """What the service has to be told, to find the same directories as this shell."""
    default, mine = find_places({}, user.home, os.getcwd), user.places
    differ = {"ANKITA_STATE_DIR": (mine.state, default.state), "ANKITA_CONFIG_DIR": (mine.config, default.config)}
    return {name: path for name, (path, by_default) in differ.items() if path != by_default}


def service(
    user: ThisUser,
    view: "Callable[[Collection[int]], View]",
    tell: Callable[[str], None],
    words: "Words",
    within: int | None,
) -> "Service":
    """Starting and stopping the service of this user; the arguments are those of `app.service.Service`."""
    from ankita_agent.app.service import Service

    def pause(span: Duration) -> None:
        time.sleep(in_seconds(span))

    return Service(service_manager(user), look_at_processes(), SystemClock(), view, pause, tell, words, within)


def installation(user: ThisUser, tell: Callable[[str], None]) -> "Installation":
    """Installing the service of this user; `tell` is given a line for people about each step."""
    from ankita_agent.app.installation import Installation

    units = find_unit_places(user.environment, user.home)
    manager, lingering = service_manager(user), login_manager(user)
    return Installation(manager, lingering, unit_files(), shipped_texts(), unit_paths(user, units), tell)


def removal(user: ThisUser, tell: Callable[[str], None]) -> "Removal":
    """Taking that service away."""
    from ankita_agent.app.removal import Removal

    units = find_unit_places(user.environment, user.home)
    return Removal(service_manager(user), unit_files(), shipped_texts(), unit_paths(user, units), units.own, tell)


def unit_files() -> "UnitFiles":
    """The files of units on this machine."""
    from ankita_agent.adapters.routine_files import judge_directory
    from ankita_agent.app.unit_files import UnitFiles

    return UnitFiles(PosixFiles(), judge_directory, os.path.realpath)


def unit_paths(user: ThisUser, units: UnitPlaces) -> "Whereto":
    """Where installing writes."""
    from ankita_agent.app.installation import Whereto

    return Whereto(units.packages, user.places.routines)


def shipped_texts() -> "Shipped":
    """The texts that the package carries for installing."""
    from ankita_agent.app.installation import HARDENING, SCHEMA, SLICE, Shipped
    from ankita_agent.core.service import UNIT
    from ankita_agent.shipped import shipped_text

    service, of_slice, hardening = (shipped_text("units", name) for name in (UNIT, SLICE, HARDENING))
    return Shipped(service, of_slice, hardening, shipped_text("config", FILE), shipped_text("config", SCHEMA))
