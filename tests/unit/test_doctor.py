"""Doctor over described machines: which facts it gathers, what it leaves out, and how it mends."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.adapters.routine_files import judge_directory
from ankita_agent.adapters.sqlite_ledger import open_reader
from ankita_agent.adapters.unit_texts import read_texts
from ankita_agent.adapters.yaml_files import read_document
from ankita_agent.app.claim import Card, ClaimCard
from ankita_agent.app.doctor import Mending, mend_all
from ankita_agent.app.examination import Examination, examine
from ankita_agent.app.inspection import OwnerSeen, OwnerState, Seen
from ankita_agent.app.installation import Installation, Shipped, Wanted, Whereto
from ankita_agent.app.patient import Asked, Patient, StateSeen
from ankita_agent.app.places import Places, find_places
from ankita_agent.app.report import ConfigState, Report
from ankita_agent.app.service_facts import plan_for_the_unit
from ankita_agent.app.unit_files import UnitFiles
from ankita_agent.core.elsewhere import VARIABLES, Elsewhere, served, serves_elsewhere
from ankita_agent.core.environment import UserFacts
from ankita_agent.core.errors import LedgerDamaged, ManagerRefused
from ankita_agent.core.findings import FindingId, Mend, Severity
from ankita_agent.core.install_plan import Plan
from ankita_agent.core.problems import Problem
from ankita_agent.core.reaching import Place
from ankita_agent.core.routine_file import judge
from ankita_agent.core.rows import ProcessId
from ankita_agent.core.service import UNIT, UnitState, Unreachable
from ankita_agent.core.unit_diagnosis import UnitCopy
from ankita_agent.shipped import shipped_text
from ankita_agent.testing.lingering import FakeLingering
from ankita_agent.testing.premises import DescribedPremises
from ankita_agent.testing.routine_files import WrittenFile
from ankita_agent.testing.service_manager import FakeServiceManager
from tests.ledgers import at, ledger_of, seated

PROGRAM: Final = ("/opt/venv/bin/python", "-m", "ankita_agent", "run", "--standby")
UNITS: Final = (UNIT, "app-ankita.slice", "hardening.conf")
GOOD: Final = "routines: {a: {schedule: daily 08:00, run: [/bin/true]}}\n"


class House:
    """A user with a home, a service manager, and an agent that may be there."""

    def __init__(self, root: Path) -> None:
        self.home = str(root)
        self.units = f"{root}/.local/share/systemd/user"
        self.variables: dict[str, str] = {"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": "/run/user/4242"}
        self.place = Place("ann", 4242)
        self.manager = FakeServiceManager([f"{root}/.config/systemd/user", self.units])
        self.lingering = FakeLingering(on=True)
        self.premises = DescribedPremises(programs={PROGRAM[0]})
        self.source = WrittenFile(GOOD)
        self.state = StateSeen()
        self.program = PROGRAM
        self.complaints: tuple[str, ...] = ()
        self.planned_for: list[Mapping[str, str] | None] = []
        service, of_slice, hardening = (shipped_text("units", name) for name in UNITS)
        own, routines = f"{root}/.config/systemd/user", f"{root}/.config/ankita-agent/routines.yaml"
        whereto = Whereto(self.units, routines, own, f"{root}/run/systemd/user")
        disk = UnitFiles(PosixFiles(), judge_directory, str)
        shipped = Shipped(service, of_slice, hardening, "routines: {}\n", "{}\n")
        self.installation = Installation(self.manager, self.lingering, disk, shipped, whereto, lambda _: None)

    def plan(self, variables: Mapping[str, str] | None) -> Plan:
        """What installing would change."""
        self.planned_for.append(variables)
        given = self._given() if variables is None else variables
        return self.installation.plan(Wanted(self.program, given, "0.1", linger=False))

    def _given(self) -> dict[str, str]:
        return {name: value for name, value in self.variables.items() if name.startswith("ANKITA_")}

    def install(self) -> None:
        """Install and start."""
        plan = self.plan(None)
        self.installation.carry_out(plan)
        self.installation.start(plan)

    def look(self) -> Examination:
        """Examine it."""
        places = find_places(self.variables, self.home, lambda: self.home)
        user = UserFacts(self.home, "ann", "/bin/sh", None, None)
        patient = Patient(
            self.place, "/run/user/4242", user, places, self.variables, "0.1", self.program, f"{self.units}/{UNIT}"
        )
        judged = Asked(
            self.premises,
            self.manager,
            self.lingering,
            self.source,
            lambda content: judge(read_document(content), "UTC"),
            self.plan,
            lambda state: self.elsewhere(state, places),
            lambda: self.complaints,
        )
        return examine(patient, judged, self.state)

    def elsewhere(self, state: UnitState, places: Places) -> tuple[Elsewhere, ...]:
        """In what the files of the unit differ from the shell."""
        usual = find_places({}, self.home, lambda: self.home)
        texts = read_texts((state.fragment, *state.drop_ins)) if state.fragment else ()
        mine, theirs = (dict(zip(VARIABLES, (each.state, each.config), strict=True)) for each in (places, usual))
        return serves_elsewhere(served(texts, self.home), mine, theirs) if state.fragment else ()

    def ids(self) -> list[FindingId]:
        """What is found."""
        return [finding.id for finding in self.look().findings]

    def mend(self, mend: Mend) -> None:
        """Do a mend."""
        Mending(self.manager, self.installation, lambda: plan_for_the_unit(self.plan), self.program).do(mend)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.fixture
def installed(house: House) -> House:
    house.install()
    return house


def owner(pid: int, version: str = "0.1", state: OwnerState = OwnerState.IDLE, *degraded: str) -> Seen:
    """An owner, with what it says of itself."""
    card = Card("token", ProcessId(pid, 1, "boot", 1), 4242, version, "systemd", "host")
    claim = ClaimCard(card, 1, at(0))
    report = Report("token", "0.1", tuple(degraded), ConfigState("/c", ""), (), None, False)
    return Seen(OwnerSeen(claim, state, None, ""), (), report)


def test_a_service_that_is_well_is_healthy(installed: House) -> None:
    examination = installed.look()
    assert examination.findings == ()
    assert examination.healthy
    assert examination.account is None


def test_a_house_without_a_service_lacks_one_and_not_also_an_agent(house: House) -> None:
    assert house.ids() == [FindingId.NOT_INSTALLED]


def test_a_manager_that_is_unreachable_or_silent_is_asked_once_and_all_else_is_looked_at(installed: House) -> None:
    installed.premises.clock = False
    installed.manager.unreachable = Unreachable.NO_SOCKET
    assert installed.ids() == [FindingId.MANAGER_UNREACHABLE, FindingId.NO_AGENT, FindingId.CLOCK_UNSYNCHRONISED]
    installed.manager.unreachable, installed.manager.silent = None, True
    installed.manager.asked.clear()
    assert FindingId.MANAGER_SILENT in installed.ids()
    assert len(installed.manager.asked) == 1


def test_looking_changes_no_file(installed: House, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    asked = len(installed.manager.asked)
    installed.look()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    assert {method for method, _ in installed.manager.asked[asked:]} <= {"state", "version"}


def test_the_unit_is_compared_with_the_variables_that_it_has_and_not_with_those_of_the_shell(house: House) -> None:
    house.variables["ANKITA_STATE_DIR"] = "/my/state"
    house.install()
    del house.variables["ANKITA_STATE_DIR"]
    assert house.ids() == [FindingId.OTHER_PLACES]
    assert house.planned_for[-1] == {"ANKITA_STATE_DIR": "/my/state"}


def test_the_process_of_the_service_tells_where_it_looks_better_than_its_unit(installed: House) -> None:
    pid = installed.manager.state(UNIT).main_pid
    assert pid is not None
    installed.premises.environments[pid] = {"XDG_STATE_HOME": "/drop/in"}
    [finding] = installed.look().findings
    assert finding.id is FindingId.OTHER_PLACES
    assert finding.command.startswith("export ANKITA_STATE_DIR=/drop/in/ankita-agent ")


@pytest.mark.parametrize(
    ("variables", "leading"),
    [
        ({"ANKITA_STATE_DIR": "/x"}, "ANKITA_STATE_DIR"),
        ({"XDG_STATE_HOME": "/x", "XDG_CONFIG_HOME": "/y"}, "XDG_STATE_HOME XDG_CONFIG_HOME"),
        ({"ANKITA_CONFIG_DIR": "/x", "XDG_STATE_HOME": "/x"}, "XDG_STATE_HOME ANKITA_CONFIG_DIR"),
    ],
)
def test_the_variables_that_lead_elsewhere_are_unset(installed: House, variables: dict[str, str], leading: str) -> None:
    installed.variables |= variables
    found = {finding.id: finding for finding in installed.look().findings}
    assert found[FindingId.OTHER_PLACES].command == f"unset {leading}"


def test_a_program_that_is_gone_and_copies_beside_ours_are_seen(installed: House) -> None:
    installed.premises.programs.clear()
    for path in ("/etc/systemd/user", "/usr/lib/systemd/user"):
        installed.premises.units[f"{path}/{UNIT}"] = UnitCopy(f"{path}/{UNIT}", own=False)
    ours = f"{installed.units}/{UNIT}"
    installed.premises.units[ours] = UnitCopy(ours, own=True)
    assert installed.ids() == [FindingId.SECOND_COPY, FindingId.SECOND_COPY, FindingId.PROGRAM_GONE]


def test_the_version_of_the_owner_counts_only_where_it_is_the_service(installed: House) -> None:
    pid = installed.manager.state(UNIT).main_pid
    assert pid is not None
    installed.state = StateSeen(owner(pid, "0.0.9"))
    assert installed.ids() == [FindingId.VERSION_BEHIND]
    installed.state = StateSeen(owner(pid + 1, "0.0.9"))
    assert installed.ids() == []


@pytest.mark.parametrize(
    ("state", "id_"), [(OwnerState.STOPPED, FindingId.AGENT_STOPPED), (OwnerState.WEDGED, FindingId.AGENT_WEDGED)]
)
def test_an_owner_that_does_nothing_is_told(installed: House, state: OwnerState, id_: FindingId) -> None:
    installed.state = StateSeen(owner(7, "0.1", state))
    assert installed.ids() == [id_]


def test_what_check_tells_better_is_not_told_a_second_time(installed: House) -> None:
    places = find_places(installed.variables, installed.home, lambda: installed.home)
    rejected = f"{places.routines}:1:1: bad, since yesterday"
    installed.state = StateSeen(owner(7, "0.1", OwnerState.IDLE, rejected, "the disk is full"))
    installed.source.text = "routines: ["
    assert installed.ids() == [FindingId.AGENT_DEGRADED, FindingId.ROUTINES_REFUSED]


def test_files_of_routines_that_cannot_be_read_or_are_not_there_are_told(installed: House) -> None:
    installed.source.unusable = Problem(0, 0, "others may write to it", "chmod go-w it")
    assert installed.ids() == [FindingId.ROUTINES_REFUSED]
    installed.source.unusable, installed.source.text = None, None
    assert installed.ids() == [FindingId.ROUTINES_ABSENT]


@pytest.mark.parametrize(
    ("routine", "told"),
    [
        ("{schedule: daily 08:00, run: brief}", True),
        ("{schedule: daily 08:00, run: [brief, -x]}", True),
        ("{schedule: daily 08:00, run: brief, enabled: false}", False),
        ("{schedule: daily 08:00, run: brief, env: {PATH: /opt/tools}}", False),
        ("{schedule: daily 08:00, run: brief, env_file: x}", False),
        ("{schedule: daily 08:00, run: [/opt/tools/brief]}", False),
        ("{schedule: daily 08:00, run: cat}", False),
        ("{schedule: daily 08:00, run: nowhere}", False),
    ],
)
def test_commands_that_only_the_shell_finds_are_told(installed: House, routine: str, told: bool) -> None:
    installed.variables["PATH"] = "/usr/bin:/opt/tools"
    installed.premises.programs |= {"/opt/tools/brief", "/usr/bin/cat"}
    installed.source.text = f"routines: {{a: {routine}}}\n"
    assert installed.ids() == ([FindingId.COMMAND_NOT_FOUND] if told else [])


@pytest.mark.parametrize(
    ("name", "value", "foreign"),
    [
        ("XDG_RUNTIME_DIR", "/run/user/0", True),
        ("XDG_RUNTIME_DIR", "/run/user/4242", False),
        ("XDG_RUNTIME_DIR", "/run/user/42", True),
        ("XDG_RUNTIME_DIR", "/tmp/mine", False),
        ("XDG_RUNTIME_DIR", "/tmp/theirs", True),
        ("XDG_RUNTIME_DIR", "/tmp/nowhere", False),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/4242/bus", False),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/0/bus", True),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:guid=1,path=/run/user/0/bus;tcp:host=x", True),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:abstract=/tmp/dbus-x", False),
        ("DBUS_SESSION_BUS_ADDRESS", "autolaunch:", False),
    ],
)
def test_variables_that_lead_to_another_user_are_seen(installed: House, name: str, value: str, foreign: bool) -> None:
    installed.variables[name] = value
    installed.premises.owners |= {"/tmp/mine": 4242, "/tmp/theirs": 0}
    assert installed.ids() == ([FindingId.FOREIGN_SESSION] if foreign else [])


def test_the_account_is_taken_and_a_ledger_that_fails_under_it_is_told(installed: House, tmp_path: Path) -> None:
    with closing(ledger_of("disk", tmp_path)) as ledger:
        seated(ledger)
        installed.state = StateSeen(ledger=ledger)
        account = installed.look().account
    assert account is not None
    assert account.since == at(-1)
    reader = open_reader(str(tmp_path / "ledger.db"))
    (tmp_path / "ledger.db").write_bytes(b"no database at all" * 1000)
    assert reader is not None
    with closing(reader):
        installed.state = StateSeen(ledger=reader)
        assert installed.ids() == [FindingId.LEDGER_UNREADABLE]
    installed.state = StateSeen(problem=LedgerDamaged("the ledger is damaged", fact="x", do="start the agent"))
    assert installed.ids() == [FindingId.LEDGER_UNREADABLE]


def test_the_clock_of_a_container_is_nothing_to_mend(installed: House) -> None:
    installed.premises.clock = False
    assert not installed.look().healthy
    installed.place = replace(installed.place, container="docker")
    assert installed.look().healthy


# --- mending ------------------------------------------------------------------------------------------


def test_everything_that_may_be_mended_is_in_order_and_once(house: House) -> None:
    mended, left = mend_all(house.look, house.mend)
    assert [each.finding.mend for each in mended] == [Mend.INSTALL]
    assert left.findings == ()
    assert mend_all(house.look, house.mend) == ([], left)


def test_lingering_is_never_switched_on_and_that_it_is_off_is_a_note_where_it_matters(house: House) -> None:
    house.lingering.on = False
    assert house.ids() == [FindingId.NOT_INSTALLED]
    _, left = mend_all(house.look, house.mend)
    assert [(each.id, each.matters, each.mend) for each in left.findings] == [(FindingId.LINGERING_OFF, False, None)]
    assert left.healthy
    assert not house.lingering.on


def test_a_mend_that_is_refused_is_told_and_the_others_are_done(installed: House) -> None:
    installed.manager.disable(UNIT)
    installed.manager.end(UNIT, exit_status=1)

    def mend(wanted: Mend) -> None:
        if wanted is Mend.ENABLE:
            raise ManagerRefused("the service manager refused to enable it")
        installed.mend(wanted)

    mended, left = mend_all(installed.look, mend)
    assert [(each.finding.id, each.fault is None) for each in mended] == [
        (FindingId.NOT_ENABLED, False),
        (FindingId.FAILED, True),
    ]
    assert [finding.id for finding in left.findings] == [FindingId.NOT_ENABLED]


def test_a_service_that_only_a_desktop_starts_is_told_and_enabled(installed: House) -> None:
    link = Path(installed.home, ".config/systemd/user/default.target.wants", UNIT)
    link.unlink()  # the manager still calls it enabled, as it does where another target has such a link
    [finding] = installed.look().findings
    assert (finding.id, finding.what) == (
        FindingId.NOT_ENABLED,
        "the service starts with another unit alone, and not at boot",
    )
    _, left = mend_all(installed.look, installed.mend)
    assert (left.healthy, link.is_symlink()) == (True, True)


def test_a_service_that_ended_is_started_again_and_one_that_is_disabled_enabled(installed: House) -> None:
    installed.manager.disable(UNIT)
    installed.manager.end(UNIT, exit_status=1)
    mended, left = mend_all(installed.look, installed.mend)
    assert [each.finding.mend for each in mended] == [Mend.ENABLE, Mend.START]
    assert left.healthy


def test_by_way_of_sudo_only_that_is_said_and_nothing_is_mended(house: House) -> None:
    house.place, house.lingering.on = Place("root", 0, sudo_user="ann"), False
    assert house.ids() == [FindingId.ROOT_BY_SUDO]
    assert mend_all(house.look, house.mend)[0] == []
    assert house.manager.state(UNIT).load == "not-found"


def test_the_agent_of_root_itself_is_looked_at_by_way_of_sudo_too(installed: House) -> None:
    installed.place, installed.lingering.on = Place("root", 0, sudo_user="ann"), False
    installed.manager.disable(UNIT)
    mended, left = mend_all(installed.look, installed.mend)
    assert mended == []
    assert [(each.id, each.command) for each in left.findings] == [
        (FindingId.ROOT_BY_SUDO, "ankita-agent doctor"),
        (FindingId.LINGERING_OFF, "loginctl enable-linger root"),  # and no sudo(8) for who is root
        (FindingId.NOT_ENABLED, "systemctl --user enable ankita-agent"),
    ]


def test_in_a_shell_with_other_directories_nothing_of_the_service_is_mended(installed: House) -> None:
    installed.variables |= {"ANKITA_STATE_DIR": "/run/s", "ANKITA_CONFIG_DIR": "/run/c"}
    installed.program = ("/clone/.venv/bin/python", *PROGRAM[1:])
    installed.manager.disable(UNIT)
    installed.manager.end(UNIT, exit_status=1)
    mended, left = mend_all(installed.look, installed.mend)
    assert mended == []
    commands = {each.id: each.command for each in left.findings}
    assert commands == {
        FindingId.OTHER_PLACES: "unset ANKITA_STATE_DIR ANKITA_CONFIG_DIR",
        FindingId.FAILED: "env -u ANKITA_STATE_DIR -u ANKITA_CONFIG_DIR ankita-agent start",
        FindingId.NOT_ENABLED: "systemctl --user enable ankita-agent",
    }


def test_routines_that_do_not_fire_without_their_file_are_told_whatever_the_agent_says(
    installed: House, tmp_path: Path
) -> None:
    installed.source.text = None
    kept = replace(installed.state, before=GOOD.encode(), copy="/s/last-good.yaml")
    installed.state = kept
    [found] = installed.look().findings
    assert (found.id, found.what) == (FindingId.ROUTINES_GONE, "1 routine from before does not fire: a")
    places = find_places(installed.variables, installed.home, lambda: installed.home)
    gone = f"there is no {places.routines}, so 1 routine from before does not fire: a; to have it again: cp a b"
    with closing(ledger_of("disk", tmp_path)) as ledger:
        seated(ledger)
        installed.state = replace(kept, seen=owner(7, "0.1", OwnerState.IDLE, gone), ledger=ledger)
        [found] = installed.look().findings
        assert (found.id, "once the agent has started again" in found.what) == (FindingId.ROUTINES_GONE, True)
    installed.state = kept
    installed.variables["ANKITA_CONFIG_DIR"] = "/elsewhere"  # whose routines were never those of this state
    assert installed.ids() == [FindingId.OTHER_PLACES, FindingId.ROUTINES_ABSENT]
    del installed.variables["ANKITA_CONFIG_DIR"]
    for nothing in (b"routines: {}", b"routines: [", None):
        installed.state = replace(kept, before=nothing)
        assert installed.ids() == [FindingId.ROUTINES_ABSENT]


def test_a_bad_file_means_no_routines_where_the_agent_that_runs_has_none(installed: House, tmp_path: Path) -> None:
    installed.source.text = "routines: ["
    with closing(ledger_of("disk", tmp_path)) as ledger:
        seated(ledger)
        ledger.put_in_force(1, [], at(1), "boot")
        seen = owner(7)
        installed.state = StateSeen(seen=seen, ledger=ledger, before=GOOD.encode(), copy="/s/last-good.yaml")
        [found] = installed.look().findings
    assert (found.id, found.severity) == (FindingId.ROUTINES_REFUSED, Severity.ERROR)
    assert "no routine is in force" in found.fact


def test_a_service_that_its_manager_leads_elsewhere_is_started_as_this_shell_starts_it(installed: House) -> None:
    pid = installed.manager.state(UNIT).main_pid
    assert pid is not None
    installed.premises.environments[pid] = {"XDG_STATE_HOME": "/drop/in"}
    installed.state = StateSeen(owner(pid, "0.0.9"))
    found = {each.id: each.command for each in installed.look().findings}
    assert found[FindingId.VERSION_BEHIND] == "ankita-agent restart"  # which goes by the unit, and refuses nothing


@pytest.mark.parametrize(
    ("uid", "command"),
    [
        (4242, "journalctl --user -u ankita-agent -n 30 --no-pager"),
        (999, "sudo journalctl _SYSTEMD_USER_UNIT=ankita-agent.service _UID=999 -n 30 --no-pager"),
        (0, "journalctl _SYSTEMD_USER_UNIT=ankita-agent.service _UID=0 -n 30 --no-pager"),
    ],
)
def test_the_journal_is_told_as_this_user_can_read_it(installed: House, uid: int, command: str) -> None:
    installed.place = Place("ann", uid)
    installed.manager.end(UNIT, exit_status=1)
    [found] = installed.look().findings
    assert f"`{command}`" in found.do


def test_an_empty_file_is_refused_where_there_are_routines_from_before(installed: House) -> None:
    installed.source.text = "\n"
    assert installed.ids() == []
    installed.state = replace(installed.state, before=GOOD.encode(), copy="/s/last-good.yaml")
    assert installed.ids() == [FindingId.ROUTINES_REFUSED]


def test_what_nobody_can_tell_is_not_told(installed: House) -> None:
    Path(installed.units).chmod(0o777)
    assert installed.ids() == [FindingId.NOT_ASKED]


def test_the_drop_in_that_systemd_cannot_use_is_named(installed: House) -> None:
    drop_in = Path(installed.home, ".config/systemd/user", f"{UNIT}.d", "x.conf")
    drop_in.parent.mkdir(parents=True)
    drop_in.write_text("[Service]\nExecStart=/bin/false\n")
    installed.manager.reload()
    installed.complaints = ("Service has more than one ExecStart= setting",)
    installed.premises.units[str(drop_in)] = UnitCopy(str(drop_in), own=True)
    [found] = installed.look().findings
    assert found.id is FindingId.DROP_IN_UNUSABLE
    assert found.fact == "it says: Service has more than one ExecStart= setting"
    assert found.command == f"mv {drop_in} {drop_in}.aside && systemctl --user daemon-reload"


def test_a_program_in_a_cache_is_not_made_a_service(house: House) -> None:
    house.program = ("/home/ann/.cache/uv/x/bin/python", *PROGRAM[1:])
    [mended], _ = mend_all(house.look, house.mend)
    assert mended.fault is not None
    assert ".cache" in mended.fault.fact


def test_masked_is_left_to_who_masked_it(installed: House) -> None:
    installed.manager.mask(UNIT)
    assert mend_all(installed.look, installed.mend)[0] == []
