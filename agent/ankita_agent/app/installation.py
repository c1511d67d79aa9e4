"""Installing the agent as a service of its user: look, plan, carry out.

A plan is computed from what is there (`core.install_plan`), so that it can be shown instead of done. Carried out
twice, it changes nothing the second time. A step that fails leaves the unit that was there in force and says what
is so; a service that runs is never stopped for it, because its runs may be in the middle of something.
"""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, assert_never

from ankita_agent.app.unit_files import UnitFiles
from ankita_agent.core.errors import (
    AnkitaError,
    BadConfiguration,
    CannotWriteState,
    ManagerRefused,
    ServiceNotUp,
    WrongUse,
)
from ankita_agent.core.install_plan import Change, FileChange, Plan, Start, judge_file, plan_install
from ankita_agent.core.instants import SECOND, Duration
from ankita_agent.core.service import UNIT, JobEnd, UnitState
from ankita_agent.core.service_ends import explain_end
from ankita_agent.core.unit_file import ServiceFacts, read_unit_file, render_service, stamp
from ankita_agent.ports.lingering import Lingering
from ankita_agent.ports.service_manager import ServiceManager

SLICE: Final = "app-ankita.slice"
DROP_INS: Final = f"{UNIT}.d"
HARDENING: Final = "hardening.conf"
SCHEMA: Final = "routines.schema.json"

START_PATIENCE: Final = Duration(30 * SECOND)
"""How long to wait for readiness; a start that waits for its ledger may take longer, and goes on."""


@dataclass(frozen=True, slots=True)
class Shipped:
    """The texts that the package carries."""

    service: str
    slice: str
    hardening: str
    routines: str
    schema: str


@dataclass(frozen=True, slots=True)
class Whereto:
    """Whole paths: the directory of the units of this user's packages, and the file of routines."""

    units: str
    routines: str

    @property
    def service(self) -> str:
        """The unit file."""
        return f"{self.units}/{UNIT}"

    @property
    def slice(self) -> str:
        """The slice's file."""
        return f"{self.units}/{SLICE}"

    @property
    def hardening(self) -> str:
        """The drop-in that is opted into."""
        return f"{self.units}/{DROP_INS}/{HARDENING}"

    @property
    def schema(self) -> str:
        """The schema, beside the file of routines."""
        return f"{self.routines.rpartition('/')[0]}/{SCHEMA}"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the service is to be: its command line and variables, and the version of ankita-agent that says so.

    `hardening` None leaves that drop-in as it is; `linger` is whether to switch lingering on.
    """

    program: tuple[str, ...]
    environment: Mapping[str, str]
    version: str
    hardening: bool | None = None
    linger: bool = True


def refuse_sudo(uid: int, sudo_uid: str, command: str) -> None:
    """Raise WrongUse for root by way of sudo(8): the service would be root's, which is hardly meant."""
    if uid == 0 and sudo_uid not in ("", "0"):
        raise WrongUse(
            f"will not {command} the service of root",
            fact=f"sudo made root of user {sudo_uid}, and the service belongs to the user who {command}s it",
            now="nothing was changed",
            do=f"as yourself, without sudo: ankita-agent {command}    for root itself: log in as root",
        )


def refuse_fleeting(program: str) -> None:
    """Raise WrongUse for a program in a cache, where `uvx` and `pipx run` put what may be gone tomorrow."""
    if "/.cache/" in program:
        raise WrongUse(
            "will not install a service for a program in a cache",
            fact=f"{program} may be removed at any time",
            now="nothing was changed",
            do="install it to stay: uv tool install ankita-agent   or   pipx install ankita-agent",
        )


class Installation:
    """The service of one user, before and after. `tell` takes a line for people about each step done."""

    def __init__(
        self,
        manager: ServiceManager,
        lingering: Lingering,
        disk: UnitFiles,
        shipped: Shipped,
        whereto: Whereto,
        tell: Callable[[str], None],
    ) -> None:
        self._manager = manager
        self._lingering = lingering
        self._disk = disk
        self._shipped = shipped
        self._whereto = whereto
        self._tell = tell

    def plan(self, wanted: Wanted) -> Plan:
        """What installing would change. Raises ManagerRefused when masked, CannotWriteState, BadConfiguration."""
        systemd = self._manager.version()
        state = self._manager.state(UNIT)
        if state.masked:
            runtime = "--runtime " if state.file == "masked-runtime" else ""
            raise ManagerRefused(
                "will not install the service",
                fact="it is masked: somebody has forbidden it to start",
                now="nothing was changed",
                do=f"allow it again: systemctl --user unmask {runtime}{_short(UNIT)}, then: ankita-agent install",
            )
        facts = ServiceFacts(wanted.program, wanted.environment, wanted.version, systemd)
        texts = {
            self._whereto.slice: stamp(self._shipped.slice, wanted.version),
            self._whereto.service: self._render(facts),
        }
        units = [judge_file(path, self._disk.read(path), text) for path, text in texts.items()]
        hardening = self._hardening(wanted)
        lingers = self._lingering.lingers()
        return plan_install([hardening, *units], self._starter(), state, lingers=lingers, linger=wanted.linger)

    def carry_out(self, plan: Plan) -> None:
        """Do all of it but the start. Raises CannotWriteState and ManagerRefused, each with what is so then."""
        for file in plan.starter:
            self._place_starter(file)
        kept = self._disk.apply(plan.units)
        for file in plan.units:
            self._tell_file(file, kept.get(file.path))
        if any(file.change is not Change.UNCHANGED for file in plan.units) or plan.start is not Start.NOTHING:
            self._manager.reload()
            self._refuse_unread(plan, kept)
        if plan.enable:
            self._enable()
        lingers = self._switch_lingering_on() if plan.linger else plan.lingers
        if plan.enable:
            self._tell(f"enabled     it starts {'at boot' if lingers else 'when you log in'}")

    def start(self, plan: Plan) -> UnitState:
        """Start the service where that is planned, and wait until it is ready; the unit, up or still starting.

        Raises ServiceNotUp when it does not come up.
        """
        match plan.start:
            case Start.NOTHING:
                pass
            case Start.RESTART:
                self._tell("note        the service still runs as before; to change over, once its runs have ended:")
                self._tell("            ankita-agent restart")
            case Start.START:
                self._wait_for_readiness()
            case _:
                assert_never(plan.start)
        return self._manager.state(UNIT)

    def _enable(self) -> None:
        try:
            self._manager.enable(UNIT)
        except ManagerRefused as fault:
            raise ManagerRefused(
                fault.what,
                fact=fault.fact,
                now="the unit files are written; the service neither starts by itself nor was it started now",
                do="see what is in the way: systemctl --user status ankita-agent",
            ) from None

    def _render(self, facts: ServiceFacts) -> str:
        try:
            return render_service(self._shipped.service, facts)
        except ValueError as error:
            raise BadConfiguration(
                f"cannot give the service {error}",
                fact="a unit file holds no control characters, and nothing that is not UTF-8",
                now="nothing was changed",
                do="choose a directory with another name",
            ) from None

    def _hardening(self, wanted: Wanted) -> FileChange:
        path, wish = self._whereto.hardening, wanted.hardening
        before = self._disk.read(path)
        text = stamp(self._shipped.hardening, wanted.version)
        if wish is False or (wish is None and before is None):
            return judge_file(path, before, None)
        change = judge_file(path, before, text)
        if wish is None and change.change is Change.EDITED:  # not asked for, so it is left to who edited it
            return judge_file(path, before, before)
        return change

    def _starter(self) -> list[FileChange]:
        """The sample and its schema where there is no file of routines; a schema that is there, kept up to date."""
        found = []
        absent = not self._disk.holds(self._whereto.routines)
        if absent:
            found.append(FileChange(self._whereto.routines, None, self._shipped.routines, Change.NEW))
        schema, text = self._whereto.schema, self._shipped.schema
        if not self._disk.holds(schema):
            return [*found, FileChange(schema, None, text, Change.NEW)] if absent else found
        try:
            before = self._disk.read(schema)
        except CannotWriteState:  # a link, or open to others: it is not the one that we made
            return found
        return found if before == text else [*found, FileChange(schema, before, text, Change.REPAIRED)]

    def _place_starter(self, file: FileChange) -> None:
        assert file.after is not None
        if file.change is not Change.NEW:
            self._disk.apply([file])
        elif not self._disk.create(file.path, file.after):
            return  # somebody wrote one since we looked, and it is theirs
        self._tell_file(file, None)

    def _tell_file(self, file: FileChange, kept: str | None) -> None:
        if file.before is None and file.after is None:
            return
        if kept is None:
            self._tell(f"{file.change:<11} {file.path}")
            self._tell_program(file)
            return
        self._tell(f"replaced    {file.path}, which had been edited by hand")
        self._tell(f"            what it was: {kept}")
        self._tell(f"            make a drop-in of what you want to keep of it: systemctl --user edit {_short(UNIT)}")

    def _tell_program(self, file: FileChange) -> None:
        """Say when another copy of the program becomes the service: it may be a surprise."""
        if file.before is None or file.after is None:
            return
        old, new = (read_unit_file(text, "").program[:1] for text in (file.before, file.after))
        if old != new and old and new:
            self._tell(f"            it runs {new[0]} from now on; before it was {old[0]}")

    def _refuse_unread(self, plan: Plan, kept: dict[str, str]) -> None:
        """Put back what was there when the manager does not take the unit as it is now."""
        state = self._manager.state(UNIT)
        if state.load == "loaded":
            if not self._disk.are_one(state.fragment, self._whereto.service):
                self._tell(f"note        {state.fragment} wins over the unit above, and is what runs")
                self._tell(f"            without it: rm {shlex.quote(state.fragment)}, then: ankita-agent install")
            return
        self._disk.undo(plan.units, kept)
        self._manager.reload()
        raise ManagerRefused(
            "cannot install the service",
            fact=f"{self._manager.name} says {state.load!r} of {self._whereto.service}",
            now="the unit is as it was before",
            do="where it looks for units is told by: systemctl --user show --property=UnitPath; where XDG_DATA_HOME is "
            "set in this shell alone: env -u XDG_DATA_HOME ankita-agent install",
        )

    def _switch_lingering_on(self) -> bool:
        try:
            self._lingering.enable()
        except ManagerRefused as fault:
            self._tell(
                f"note        lingering is off, so the service ends when you log out: {fault.fact or fault.what}"
            )
            if fault.do:
                self._tell(f"            to switch it on: {fault.do}")
            return False
        self._tell("lingering   it goes on while you are logged out")
        return True

    def _wait_for_readiness(self) -> None:
        match self._manager.start(UNIT, START_PATIENCE):
            case JobEnd.DONE | JobEnd.PENDING:
                pass
            case end:
                raise self._not_up(end)

    def _not_up(self, end: JobEnd) -> AnkitaError:
        told = explain_end(self._manager.state(UNIT), end)
        return ServiceNotUp("the service is installed and did not come up", fact=told.fact, now=told.now, do=told.do)


def _short(unit: str) -> str:
    return unit.removesuffix(".service")
