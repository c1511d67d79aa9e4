"""The lines that people read, and what is kept until the ledger has it."""

import pytest

from ankita_agent.adapters.sqlite_ledger import memory_ledger
from ankita_agent.app.book import Book
from ankita_agent.app.claim import Card, ClaimCard
from ankita_agent.app.dues import Dues
from ankita_agent.app.report import Report
from ankita_agent.app.reporter import Reporter
from ankita_agent.app.told import Lines
from ankita_agent.core.instants import SECOND, Duration, Instant, format_instant, parse_instant
from ankita_agent.core.outcomes import REASONS, Outcome, Reason, Trigger
from ankita_agent.core.rows import End, Entry, OpenFire, ProcessId, Start
from ankita_agent.testing.readiness import RecordedReadiness

NOON = parse_instant("2026-03-03T12:00:00Z")
LINES = Lines(format_instant)
PROCESS = ProcessId(4711, 9, "boot", 1)


def start(fire: int = 12) -> Start:
    return Start(fire, PROCESS, Instant(NOON + 2 * SECOND), 1, "logs/x")


def test_a_start_tells_its_lateness_only_when_it_is_worth_a_word() -> None:
    assert LINES.started(start(), "backup", Duration(5)) == "backup: run 12 started, pid 4711"
    assert LINES.started(start(), "backup", Duration(2 * SECOND)).endswith("pid 4711, 2s late")


def test_a_success_is_a_short_line_without_advice() -> None:
    end = End(12, Outcome.SUCCEEDED, None, NOON, exit_code=0, quiet=True)
    assert LINES.ended(end, "backup", Duration(3 * SECOND)) == "backup: run 12 succeeded after 3s, quiet"


def test_every_other_end_says_what_to_type_next() -> None:
    failed = End(12, Outcome.FAILED, Reason.EXIT_STATUS, NOON, exit_code=3)
    assert LINES.ended(failed, "backup", None) == (
        "backup: run 12 failed with exit status 3; see: ankita-agent logs backup"
    )
    killed = End(12, Outcome.FAILED, Reason.KILLED, NOON, signal=9)
    assert "failed, killed by signal 9;" in LINES.ended(killed, "backup", None)
    spawn = End(12, Outcome.FAILED, Reason.SPAWN, NOON, detail="'nope' is not on PATH")
    assert "failed (spawn): 'nope' is not on PATH; see:" in LINES.ended(spawn, "backup", None)
    late = End(12, Outcome.TIMED_OUT, Reason.TIMEOUT, NOON)
    assert "run 12 timed out after 3s; see:" in LINES.ended(late, "backup", Duration(3 * SECOND))


def test_slots_without_a_fire_tell_reason_count_and_blocker() -> None:
    one = Entry("r", NOON, NOON, 1, Outcome.SKIPPED, Reason.OVERLAP, blocked_by=7)
    assert LINES.without_fire(one) == "r: slot 2026-03-03T12:00:00Z skipped (overlap with run 7)"
    many = Entry("r", NOON, Instant(NOON + 60 * SECOND), 5, Outcome.MISSED, Reason.NOT_RUNNING)
    assert LINES.without_fire(many) == (
        "r: 5 slots from 2026-03-03T12:00:00Z to 2026-03-03T12:01:00Z missed (not running)"
    )


def test_a_lost_fire_is_told_with_its_slot() -> None:
    fire = OpenFire(3, "r", NOON, Trigger.SCHEDULE, 1, "a", NOON, None, None, 1, None)
    assert "run 3 of 2026-03-03T12:00:00Z lost" in LINES.lost(fire)


def test_an_owner_is_told_with_pid_manager_version_and_since() -> None:
    claim = ClaimCard(Card("t", PROCESS, 0, "0.1", "systemd", "host"), 1, NOON)
    assert LINES.owner(claim) == "pid 4711 under systemd (version 0.1) since 2026-03-03T12:00:00Z"


class Heard:
    """What was told, and which of it as a warning."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.warnings: list[str] = []

    def __call__(self, line: str, /, *, warning: bool = False) -> None:
        self.lines.append(line)
        if warning:
            self.warnings.append(line)


@pytest.mark.parametrize("outcome", Outcome)
def test_every_end_that_is_no_success_is_a_warning(outcome: Outcome) -> None:
    heard = Heard()
    Book(heard, LINES).ended(End(12, outcome, next(iter(REASONS[outcome]), None), NOON), "backup")
    assert heard.warnings == ([] if outcome.success else heard.lines)


def test_what_the_ledger_has_not_taken_is_kept_until_it_has() -> None:
    heard = Heard()
    book = Book(heard, LINES)
    book.started(start(), "backup", NOON)
    assert book.ended(End(12, Outcome.SUCCEEDED, None, Instant(NOON + 5 * SECOND))) == "backup"
    assert heard.lines == ["backup: run 12 started, pid 4711, 2s late", "backup: run 12 succeeded after 3s"]
    ledger = memory_ledger()
    book.write(ledger)
    book.write(ledger)
    ledger.close()


def reporter(heard: Heard, reports: list[Report], readiness: RecordedReadiness) -> Reporter:
    return Reporter(heard, LINES, reports.append, readiness, "t", "0.1", inherits_environment=False)


def test_a_degradation_is_told_once_as_a_warning_and_so_is_its_end() -> None:
    heard = Heard()
    made = reporter(heard, [], RecordedReadiness())
    for _ in range(3):
        made.degrade("ledger", "the disk is full")
    made.mend("ledger")
    made.mend("ledger")
    assert heard.lines == ["degraded: the disk is full", "well again: ledger"]
    assert heard.warnings == heard.lines[:1]


def test_a_report_is_published_only_when_something_changed() -> None:
    reports: list[Report] = []
    readiness = RecordedReadiness()
    made = reporter(Heard(), reports, readiness)
    for _ in range(3):
        made.publish(Dues(), None, "idle")
    made.degrade("x", "why")
    made.publish(Dues(), None, "idle")
    assert [report.degraded for report in reports] == [(), ("why",)]
    assert [told for told in readiness.told if "idle" in str(told)][-1:] != []
