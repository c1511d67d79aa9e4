"""Installing the agent as a service of its user: look, plan, carry out.

A plan is computed from what is there (`core.install_plan`), so that it can be shown instead of done. Carried out
twice, it changes nothing the second time. A step that fails leaves the unit that was there in force and says what
is so; a service that runs is never stopped for it, because its runs may be in the middle of something. Where the
manager does not take the unit because of what the user wrote beside it, ours stay written and theirs are named.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from ankita_agent.app.unit_files import UnitFiles
from ankita_agent.core.elsewhere import VARIABLES
from ankita_agent.core.errors import (
    AnkitaError,
    BadConfiguration,
    CannotWriteState,
    ManagerRefused,
    ServiceNotUp,
    WrongUse,
    saying,
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


_STATUS: Final = "systemctl --user status ankita-agent"
_AGAIN: Final = "do the same again: ankita-agent install"
_NOT_SEEN_TO_START: Final = "the service is installed, and begins by itself; it was not seen to start now"


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
    """Whole paths: the directory of the units of this user's packages, and the file of routines.

    `own` is the directory of the units that the user makes, and `runtime` that of those that are gone with the next
    boot; both hold links of `enable`.
    """

    units: str
    routines: str
    own: str
    runtime: str

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
    def link(self) -> str:
        """What has the manager start the unit with itself: the link of its `WantedBy=`."""
        return f"{self.own}/default.target.wants/{UNIT}"

    @property
    def schema(self) -> str:
        """The schema, beside the file of routines."""
        return f"{self.routines.rpartition('/')[0]}/{SCHEMA}"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the service is to be: its command line and variables, and the version of ankita-agent that says so.

    `hardening` None leaves that drop-in as it is; `linger` is whether to switch lingering on, None with the first
    install alone.
    """

    program: tuple[str, ...]
    environment: Mapping[str, str]
    version: str
    hardening: bool | None = None
    linger: bool | None = None


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


def refuse_unstartable(said: str) -> None:
    """Raise WrongUse for a program that does not begin without this shell's variables; `said` is what it says then.

    Nothing for a program that said nothing.
    """
    if said:
        raise WrongUse(
            "will not install a service for a program that does not start by itself",
            fact=f"without the variables of this shell, such as PYTHONPATH, it says: {said}",
            now="nothing was changed",
            do="install it: uv tool install ankita-agent   or   pipx install ankita-agent",
        )


class Installation:
    """The service of one user, before and after.

    `tell` takes a line for people about each step done; `refuse` raises for a service that must not be installed over;
    `complaints` are what is said against a unit, by its name, where the manager does not take it.
    """

    def __init__(
        self,
        manager: ServiceManager,
        lingering: Lingering,
        disk: UnitFiles,
        shipped: Shipped,
        whereto: Whereto,
        tell: Callable[[str], None],
        refuse: Callable[[UnitState], None] = lambda _: None,
        complaints: Callable[[str], Sequence[str]] = lambda _: (),
    ) -> None:
        self._manager = manager
        self._lingering = lingering
        self._disk = disk
        self._shipped = shipped
        self._whereto = whereto
        self._tell = tell
        self._refuse = refuse
        self._complaints = complaints

    def plan(self, wanted: Wanted) -> Plan:
        """What installing would change.

        Raises ManagerRefused when masked, CannotWriteState, BadConfiguration, and what `refuse` raises.
        """
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
        self._refuse(state)
        facts = ServiceFacts(wanted.program, wanted.environment, wanted.version, systemd)
        texts = {
            self._whereto.slice: stamp(self._shipped.slice, wanted.version),
            self._whereto.service: self._render(facts),
        }
        units = [judge_file(path, self._disk.read(path), text) for path, text in texts.items()]
        hardening = self._hardening(wanted)
        begins, lingers = self._begins(state), self._lingering.lingers()
        return plan_install(
            [hardening, *units], self._starter(), state, begins=begins, lingers=lingers, linger=wanted.linger
        )

    def carry_out(self, plan: Plan) -> None:
        """Do all of it but the start. Raises CannotWriteState and ManagerRefused, each with what is so then."""
        for file in plan.starter:
            self._place_starter(file)
        kept = self._disk.apply(plan.units)
        for file in plan.units:
            self._tell_file(file, kept.get(file.path))
        with saying("the unit files are written; whether its manager has read them is not known", _AGAIN):
            self._manager.reload()  # always: of a drop-in in a new directory a manager knows nothing until then
        self._refuse_unread(plan, kept)
        if plan.enable:
            self._enable()
        lingers = self._switch_lingering_on() if plan.linger else plan.lingers
        if plan.linger_told:
            self._tell("note        lingering is off: the service ends when you log out, and does not start at boot")
            self._tell("            to switch it on: ankita-agent install --linger")
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
                with saying(_NOT_SEEN_TO_START, f"see what is in the way: {_STATUS}, then again: ankita-agent install"):
                    end = self._manager.start(UNIT, START_PATIENCE)
                self._judge_start(end)
            case _:
                assert_never(plan.start)
        return self._manager.state(UNIT)

    def _begins(self, state: UnitState) -> bool:
        """Whether the service starts with its manager: one that a desktop alone wants is `enabled` too."""
        ours = self._disk.are_one(state.fragment, self._whereto.service)
        return state.enabled and (not ours or self._disk.holds(self._whereto.link))

    def _enable(self) -> None:
        now = "the unit files are written; the service neither starts by itself nor was it started now"
        links = shlex.quote(self._whereto.link.rpartition("/")[0])
        with saying(now, f"see what is in the way: namei -l {links}, then again: ankita-agent install"):
            self._manager.enable(UNIT)

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
        else:
            self._tell(f"replaced    {file.path}, which had been edited by hand")
            self._tell(f"            what it was: {kept}")
            self._tell(
                f"            make a drop-in of what you want to keep of it: systemctl --user edit {_short(UNIT)}"
            )
        self._tell_differences(file)

    def _tell_differences(self, file: FileChange) -> None:
        """Say when another copy of the program becomes the service, or other directories its: it may be a surprise."""
        if file.before is None or file.after is None:
            return
        old, new = (read_unit_file(text, "") for text in (file.before, file.after))
        if old.program[:1] != new.program[:1] and old.program and new.program:
            self._tell(f"            it runs {new.program[0]} from now on; before it was {old.program[0]}")
        for name in VARIABLES:
            was, becomes = (each.environment.get(name, "not set") for each in (old, new))
            if was != becomes:
                self._tell(f"            {name} is {becomes} from now on; before it was {was}")

    def _refuse_unread(self, plan: Plan, kept: dict[str, str]) -> None:
        """Raise ManagerRefused when the manager does not take the unit as it is now.

        What was there before is put back then, but for what is not at fault: that is left written.
        """
        state = self._manager.state(UNIT)
        wins = state.fragment if not self._disk.are_one(state.fragment, self._whereto.service) else ""
        if state.load == "loaded":
            self._tell_of_winner(wins)
            return
        if state.load == "not-found":
            fact = f"{self._manager.name} does not find {self._whereto.service}"
            do = (
                "see where it looks: systemctl --user show --property=UnitPath; an XDG_DATA_HOME of its own leads it "
                "elsewhere, until it is taken out of where it is set and you have logged in anew"
            )
        else:
            theirs = [path for path in (wins, *state.drop_ins) if path not in ("", self._whereto.hardening)]
            said = " ".join(self._complaints(UNIT)) or f"its word for it is {state.load!r}"
            fact = f"{self._manager.name} does not take the unit: {said}"
            if theirs:
                raise _spoilt(fact, theirs, goes_on=state.activity.up)
            do = "what it says of the unit as it was: systemctl --user status ankita-agent"
        self._disk.undo(plan.units, kept)
        self._manager.reload()
        raise ManagerRefused("cannot install the service", fact=fact, now="the unit is as it was before", do=do)

    def _tell_of_winner(self, path: str) -> None:
        """Say that a unit file of somebody else's is what runs; nothing for none."""
        if path:
            sudo = "sudo " if path.startswith(("/etc/", "/run/systemd/")) else ""
            self._tell(f"note        {path} wins over the unit above, and is what runs")
            self._tell(f"            without it: {sudo}rm {shlex.quote(path)}, then: ankita-agent install")

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

    def _judge_start(self, end: JobEnd) -> None:
        match end:
            case JobEnd.DONE | JobEnd.PENDING:
                pass
            case _:
                raise self._not_up(end)

    def _not_up(self, end: JobEnd) -> AnkitaError:
        told = explain_end(self._manager.state(UNIT), end)
        return ServiceNotUp("the service is installed and did not come up", fact=told.fact, now=told.now, do=told.do)


def _spoilt(fact: str, theirs: Sequence[str], *, goes_on: bool) -> ManagerRefused:
    """The fault of a unit that is right, and that what somebody wrote beside it spoils."""
    beside = " and ".join(theirs)
    them = "it" if len(theirs) == 1 else "them"
    return ManagerRefused(
        f"cannot install the service with {beside}",
        fact=fact,
        now=f"our unit files are written; the service {'runs on as before' if goes_on else 'does not run'}",
        do=f"mend {them}, or without {them}: rm {' '.join(map(shlex.quote, theirs))}    then: ankita-agent install",
    )


def _short(unit: str) -> str:
    return unit.removesuffix(".service")
