"""What doctor finds of the agent, its state and the machine: the facts that give it, those that do not, its command."""

from dataclasses import replace
from typing import Final

import pytest

from ankita_agent.core.agent_diagnosis import AgentSeen, Doing, Led, judge_agent
from ankita_agent.core.environment import UserFacts
from ankita_agent.core.errors import AnkitaError, CannotWriteState, LedgerDamaged
from ankita_agent.core.findings import Finding, FindingId, Severity
from ankita_agent.core.machine_diagnosis import DiskSeen, MachineSeen, MessagesSeen, judge_machine
from ankita_agent.core.problems import Problem
from ankita_agent.core.problems import Severity as Refusal
from ankita_agent.core.reckoning import Discrepancy, Mistake, Reckoning
from ankita_agent.core.routines_diagnosis import CommandSeen, RoutinesSeen, judge_routines, program_of
from ankita_agent.core.state_diagnosis import judge_account, judge_state
from tests.ledgers import at

HOME: Final = "/home/ann"
HERE: Final = Led("/s", "/c")
AGENT: Final = AgentSeen(HERE, HERE, 7, Doing.WELL, 7, ())


def of_agent(seen: AgentSeen) -> dict[FindingId, Finding]:
    """What is found of an agent."""
    return {each.id: each for each in judge_agent(seen)}


def test_an_agent_that_is_well_gives_no_finding_be_it_service_or_not() -> None:
    assert of_agent(AGENT) == {}
    assert of_agent(replace(AGENT, service=None, service_pid=None)) == {}
    assert of_agent(replace(AGENT, service_pid=8)) == {}  # the service is a standby of the owner
    assert of_agent(replace(AGENT, doing=Doing.NOBODY, pid=None)) == {}  # a standby that has not owned yet


def test_nobody_at_all_is_told_with_run() -> None:
    found = of_agent(AgentSeen(HERE, None, None, Doing.NOBODY, None, ()))
    assert [(each.id, each.command) for each in found.values()] == [(FindingId.NO_AGENT, "ankita-agent run")]


def test_a_shell_that_looks_elsewhere_is_told_how_to_look_where_the_service_does() -> None:
    led = replace(AGENT, shell=Led("/other", "/c", ("ANKITA_STATE_DIR",)), doing=Doing.NOBODY, pid=None)
    found = of_agent(led)
    assert [(each.id, each.command) for each in found.values()] == [(FindingId.OTHER_PLACES, "unset ANKITA_STATE_DIR")]
    assert "/other (the service: /s)" in found[FindingId.OTHER_PLACES].what
    other = of_agent(replace(AGENT, service=Led("/my state", "/c"), doing=Doing.NOBODY, pid=None))
    export = "export ANKITA_STATE_DIR='/my state' ANKITA_CONFIG_DIR=/c"
    assert other[FindingId.OTHER_PLACES].command == export


def test_two_owners_are_told_only_where_there_are_two() -> None:
    elsewhere = replace(AGENT, shell=Led("/other", "/c"), pid=9)
    found = of_agent(elsewhere)
    assert list(found) == [FindingId.OTHER_PLACES, FindingId.TWO_OWNERS]
    assert found[FindingId.TWO_OWNERS].command == "kill -INT 9"
    for one in (replace(elsewhere, pid=None), replace(elsewhere, service_pid=None), replace(elsewhere, pid=7)):
        assert FindingId.TWO_OWNERS not in of_agent(one)


def test_an_agent_with_directories_of_its_own_beside_the_service_is_what_somebody_chose() -> None:
    led = Led("/run/s", "/run/c", ("ANKITA_STATE_DIR", "ANKITA_CONFIG_DIR"))
    beside = replace(AGENT, shell=led, pid=9)
    found = of_agent(beside)
    assert {each.id: each.severity for each in found.values()} == {
        FindingId.OTHER_PLACES: Severity.NOTE,
        FindingId.TWO_OWNERS: Severity.NOTE,
    }
    assert found[FindingId.TWO_OWNERS].command == ""
    by_chance = replace(beside, shell=replace(led, variables=("XDG_STATE_HOME", "XDG_CONFIG_HOME")))
    same_state = replace(beside, shell=replace(led, state=HERE.state), pid=7)  # it is the agent of the service
    for other in (by_chance, same_state, replace(beside, pid=None), replace(beside, shell=replace(led, variables=()))):
        assert of_agent(other)[FindingId.OTHER_PLACES].severity is Severity.WARNING


@pytest.mark.parametrize(
    ("doing", "id_", "command"),
    [
        (Doing.STOPPED, FindingId.AGENT_STOPPED, "kill -CONT 7"),
        (Doing.WEDGED, FindingId.AGENT_WEDGED, "kill -ABRT 7"),
    ],
)
def test_an_owner_that_does_nothing_is_an_error(doing: Doing, id_: FindingId, command: str) -> None:
    found = of_agent(replace(AGENT, doing=doing))
    assert [(each.id, each.severity, each.command) for each in found.values()] == [(id_, Severity.ERROR, command)]


def test_each_reason_why_the_agent_is_degraded_is_told() -> None:
    found = list(judge_agent(replace(AGENT, degraded=("the disk is full", "stuck; see: ankita-agent check"))))
    assert [each.id for each in found] == [FindingId.AGENT_DEGRADED] * 2
    assert (found[0].what, found[0].do, found[0].command) == ("the agent is degraded: the disk is full", "", "")
    assert (found[1].what, found[1].do, found[1].command) == (
        "the agent is degraded: stuck",
        "see",
        "ankita-agent check",
    )


USER: Final = UserFacts(HOME, "ann", "/bin/sh", None, None)


def of_routines(seen: RoutinesSeen) -> list[Finding]:
    """What is found of a file of routines."""
    return list(judge_routines(seen, USER))


def test_a_good_file_of_routines_gives_no_finding_and_none_at_all_a_note() -> None:
    assert of_routines(RoutinesSeen("/c/routines.yaml", True)) == []
    assert [(each.id, each.matters) for each in of_routines(RoutinesSeen("/c/r", False))] == [
        (FindingId.ROUTINES_ABSENT, False)
    ]


@pytest.mark.parametrize(
    ("stay", "severity", "what"),
    [
        (False, Severity.ERROR, "2 routines from before do not fire: a, b"),
        (
            True,
            Severity.WARNING,
            "2 routines from before will not fire any more once the agent has started again: a, b",
        ),
    ],
)
def test_routines_whose_file_is_gone_are_told_by_name_with_what_brings_them_back(
    stay: bool, severity: Severity, what: str
) -> None:
    seen = RoutinesSeen("/my c/r.yaml", False, before=("a", "b"), copy="/s/last-good.yaml", stay=stay)
    [found] = of_routines(seen)
    assert (found.id, found.severity, found.what) == (FindingId.ROUTINES_GONE, severity, what)
    assert found.command == "mkdir -p '/my c' && cp /s/last-good.yaml '/my c/r.yaml'"
    one, many = replace(seen, before=("a",)), replace(seen, before=tuple("abcdefg"))
    assert "1 routine from before " in of_routines(one)[0].what
    assert of_routines(many)[0].what.endswith("a, b, c, d, e …")


@pytest.mark.parametrize(
    ("before", "severity", "fact"),
    [
        ((), Severity.ERROR, "there are no routines from before to go on with"),
        (("a",), Severity.WARNING, "an agent goes on with the routines from before"),
    ],
)
def test_what_a_refused_file_means_depends_on_whether_there_was_a_good_one(
    before: tuple[str, ...], severity: Severity, fact: str
) -> None:
    seen = RoutinesSeen("/c/r", True, (Problem(4, 1, "bad", "write `x`"),), before=before)
    [found] = of_routines(seen)
    assert found.severity is severity
    assert fact in found.fact


def test_a_file_that_must_not_be_used_is_told_with_its_own_command_and_its_path_once() -> None:
    unsafe = Problem(0, 0, "'/c/r' may be written to by everybody", "close it: chmod o-w '/c/r'")
    [found] = of_routines(RoutinesSeen("/c/r", True, (unsafe,)))
    assert (found.what, found.do, found.command) == (unsafe.problem, "close it", "chmod o-w '/c/r'")
    above = replace(unsafe, problem="'/c' may be written to by everybody")
    assert of_routines(RoutinesSeen("/c/r", True, (above,)))[0].what == f"/c/r: {above.problem}"


def test_a_bad_file_of_routines_is_an_error_and_warnings_are_warnings() -> None:
    warning = Problem(3, 2, "odd", "write it otherwise", Refusal.WARNING)
    error = Problem(4, 1, "bad", "write `x`")
    refused = of_routines(RoutinesSeen("/c/r", True, (warning, error)))
    assert [(each.id, each.severity) for each in refused] == [(FindingId.ROUTINES_REFUSED, Severity.ERROR)]
    assert refused[0].what == "/c/r:4:1: bad"
    warned = of_routines(RoutinesSeen("/c/r", True, (warning, warning)))
    assert [(each.id, each.command) for each in warned] == [(FindingId.ROUTINES_WARNED, "ankita-agent check")]
    assert warned[0].what == "/c/r:3:2: odd, and 1 more"


def test_a_command_that_only_the_shell_finds_is_told_with_both_ways_to_write_it() -> None:
    [found] = of_routines(RoutinesSeen("/c/r", True, (), (CommandSeen("a", "brief", "/opt/x"),)))
    assert found.id is FindingId.COMMAND_NOT_FOUND
    assert "`/opt/x/brief`" in found.do
    assert '`defaults: {env: {PATH: "/opt/x:/home/ann/.local/bin:' in found.do


@pytest.mark.parametrize(
    ("argv", "program"),
    [
        (("/bin/sh", "-c", "brief --short | mail"), "brief"),
        (("/bin/sh", "-c", "brief"), "brief"),
        (("brief", "-x"), "brief"),
        (("/bin/sh", "-c", "~/bin/brief"), None),
        (("/bin/sh", "-c", "X=1 brief"), None),
        (("/bin/sh", "-c", "(brief)"), None),
        (("/bin/sh", "-c", "$BRIEF"), None),
        (("/bin/sh", "-c", "  "), None),
        (("/usr/bin/brief",), None),
        (("/bin/bash", "-c", "brief"), None),
    ],
)
def test_the_program_is_told_where_a_path_decides_which_it_is(argv: tuple[str, ...], program: str | None) -> None:
    assert program_of(argv, "/bin/sh") == program


def test_a_state_directory_or_a_ledger_that_cannot_be_used_is_an_error_with_the_command_in_its_fault() -> None:
    assert list(judge_state(None, None, "ankita-agent run")) == []
    state: AnkitaError = CannotWriteState("will not use '/s'", fact="its mode is 0755", do="close it: chmod 700 /s")
    ledger: AnkitaError = LedgerDamaged("damaged", fact="no database", do="an owner sets it aside: ankita-agent run")
    found = list(judge_state(state, ledger, "ankita-agent start"))
    assert [each.id for each in found] == [FindingId.STATE_UNUSABLE, FindingId.LEDGER_UNREADABLE]
    assert (found[0].do, found[0].command) == ("close it", "chmod 700 /s")
    assert (found[1].do, found[1].command) == ("an owner sets it aside", "ankita-agent start")


def test_doubled_and_left_out_slots_are_errors_that_name_routine_and_slot() -> None:
    right = Reckoning(at(0), at(9), 1, None)
    assert list(judge_account([], {"backup": right})) == []
    out = replace(right, wrong=Discrepancy(at(5), Mistake.LEFT_OUT, 2, 1))
    twice = replace(right, wrong=Discrepancy(at(5), Mistake.TWICE, 1, 2))
    found = list(judge_account([("briefing", at(0))], {"out": out, "twice": twice}))
    assert [(each.id, each.severity) for each in found] == [
        (FindingId.SLOT_DOUBLED, Severity.ERROR),
        (FindingId.SLOT_LEFT_OUT, Severity.ERROR),
        (FindingId.SLOT_DOUBLED, Severity.ERROR),
    ]
    assert "more than one row of the ledger tells of the slot 2026-01-01T08:05:00Z" in found[2].what
    assert "briefing" in found[0].what
    assert "2026-01-01T08:00:00Z" in found[0].what
    assert "2026-01-01T08:05:00Z" in found[1].what


@pytest.mark.parametrize(
    ("mistake", "id_"),
    [
        (Mistake.TOO_FEW, FindingId.SLOT_LEFT_OUT),
        (Mistake.TOO_MANY, FindingId.ROW_WITHOUT_SLOT),
        (Mistake.NO_SLOT, FindingId.ROW_WITHOUT_SLOT),
        (Mistake.ABOVE, FindingId.ROW_WITHOUT_SLOT),
    ],
)
def test_a_row_that_is_not_what_the_schedule_has_there_is_no_double(mistake: Mistake, id_: FindingId) -> None:
    wrong = Reckoning(at(0), at(9), 1, Discrepancy(at(5), mistake, 2, 1))
    (found,) = judge_account([], {"backup": wrong})
    assert (found.id, found.severity) == (id_, Severity.ERROR)
    assert "2026-01-01T08:05:00Z" in found.what


def test_a_double_that_the_whole_ledger_shows_is_told_once() -> None:
    wrong = Reckoning(at(0), at(9), 1, Discrepancy(at(5), Mistake.TWICE, 1, 2))
    assert len(list(judge_account([("backup", at(5))], {"backup": wrong}))) == 1


# --- the machine --------------------------------------------------------------------------------------

SPACE: Final = DiskSeen("/s", 10**12, 10**6, False)
MACHINE: Final = MachineSeen(SPACE, MessagesSeen.KEPT, True)


def of_machine(seen: MachineSeen) -> dict[FindingId, Finding]:
    """What is found of a machine."""
    return {each.id: each for each in judge_machine(seen)}


@pytest.mark.parametrize(
    "seen",
    [
        MACHINE,
        MachineSeen(None, MessagesSeen.NONE, None),
        replace(MACHINE, disk=replace(SPACE, inodes=None)),
    ],
)
def test_a_machine_that_is_well_or_tells_nothing_gives_no_finding(seen: MachineSeen) -> None:
    assert of_machine(seen) == {}


@pytest.mark.parametrize(
    ("seen", "id_", "severity"),
    [
        (replace(MACHINE, disk=replace(SPACE, read_only=True)), FindingId.READ_ONLY, Severity.ERROR),
        (replace(MACHINE, disk=replace(SPACE, free=10**6)), FindingId.DISK_NEARLY_FULL, Severity.WARNING),
        (replace(MACHINE, disk=replace(SPACE, inodes=9)), FindingId.INODES_NEARLY_USED_UP, Severity.WARNING),
        (replace(MACHINE, messages=MessagesSeen.VOLATILE), FindingId.JOURNAL_VOLATILE, Severity.NOTE),
        (replace(MACHINE, messages=MessagesSeen.UNREADABLE), FindingId.JOURNAL_UNREADABLE, Severity.NOTE),
        (replace(MACHINE, clock=False), FindingId.CLOCK_UNSYNCHRONISED, Severity.WARNING),
        (replace(MACHINE, clock=False, ours=False), FindingId.CLOCK_UNSYNCHRONISED, Severity.NOTE),
    ],
)
def test_what_is_the_matter_with_a_machine_is_told(seen: MachineSeen, id_: FindingId, severity: Severity) -> None:
    found = of_machine(seen)
    assert [(each.id, each.severity) for each in found.values()] == [(id_, severity)]
    assert found[id_].command or found[id_].do
