"""Starting, stopping and restarting the service: what is asked of its manager, and what people are told."""

import re
import signal
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from ankita_agent.app.claim import Card, ClaimCard, Role
from ankita_agent.app.inspection import NOBODY, Bystander, OwnerSeen, OwnerState, Seen
from ankita_agent.app.report import ConfigState, Report
from ankita_agent.app.service import STOP_AT_MOST, Service, look_at_service
from ankita_agent.app.service_words import Answer, View, Words, down
from ankita_agent.core.elsewhere import Elsewhere, refuse_elsewhere
from ankita_agent.core.errors import ManagerSilent, ManagerUnreachable, ServiceNotUp, WrongUse
from ankita_agent.core.instants import SECOND, Duration, format_instant
from ankita_agent.core.outcomes import Outcome, Trigger
from ankita_agent.core.rows import HistoryRow, OpenFire, ProcessId
from ankita_agent.core.service import UNIT, JobEnd, UnitState, Unreachable
from ankita_agent.core.service_ends import LINES
from ankita_agent.core.service_view import FilesSeen, describe_service, describe_version
from ankita_agent.testing.clocks import START, FakeClock
from ankita_agent.testing.processes import FakeProcesses, Program
from ankita_agent.testing.service_manager import Behaviour, FakeServiceManager

ROOT: Final = Path(__file__).parents[2]
PATIENCE: Final = Duration(100 * SECOND)
NOTHING: Final = View(NOBODY)
ASKING: Final[dict[str, Callable[[Service], object]]] = {
    "start": lambda service: service.start(PATIENCE),
    "stop": lambda service: service.stop(PATIENCE, now=False),
    "restart": lambda service: service.restart(PATIENCE, now=False),
}
ENDED: Final = HistoryRow(
    fire=7,
    routine="backup",
    slot=START,
    until=START,
    count=1,
    trigger=Trigger.SCHEDULE,
    outcome=Outcome.SUCCEEDED,
    reason=None,
    quiet=False,
    claimed_at=START,
    started_at=START,
    ended_at=START,
    exit_code=0,
    signal=None,
    attempts=1,
    term=3,
    log=None,
    request=None,
    blocked_by=None,
    detail="",
)


class Desktop:
    """A user with a manager, and with agents that a test places; `looks` happen at each look, one after the other.

    Each start of the service is a process of the machine, which ends on no signal.
    """

    def __init__(self, *directories: str) -> None:
        self.manager = FakeServiceManager(directories)
        self.manager.next_pid = self._start_agent
        self.processes = FakeProcesses()
        self.clock = FakeClock(START)
        self.view = NOTHING
        self.looks: list[View] = []
        self.told: list[str] = []
        self.elsewhere: tuple[Elsewhere, ...] = ()
        self.files = FilesSeen()
        self.degraded: tuple[str, ...] = ()
        self._agents: dict[int, ProcessId] = {}

    def service(self, within: int | None = None, pause: Callable[[Duration], None] | None = None) -> Service:
        """What acts on the service."""
        return Service(
            self.manager,
            self.processes,
            self.clock,
            self._look,
            pause or self.clock.pass_time,
            self.told.append,
            Words(format_instant),
            within,
            self._refuse,
            lambda _: self.files,
        )

    @property
    def pid(self) -> int:
        """The main process of the service."""
        pid = self.manager.state(UNIT).main_pid
        assert pid is not None
        return pid

    @property
    def verbs(self) -> list[str]:
        """What was asked of the manager, looks left out."""
        return [verb for verb, _ in self.manager.asked if verb != "state"]

    def card(self, pid: int, token: str = "service") -> Card:
        """The card of an agent."""
        process = self._agents.get(pid) or ProcessId(pid, 1, "boot-1", 4026531836)
        return Card(token, process, 0, "0.1", "systemd", "host")

    def owner(self, pid: int, token: str = "service") -> OwnerSeen:
        """An agent that owns."""
        return OwnerSeen(ClaimCard(self.card(pid, token), 3, START), OwnerState.IDLE, Duration(0), "")

    def own(self, pid: int, *runs: OpenFire) -> None:
        """An agent of that pid owns, and runs those."""
        report = Report("service", "0.1", self.degraded, ConfigState("", ""), (), None, False)
        self.view = View(Seen(self.owner(pid), (), report), runs, coming=("backup", START))

    def run_service(self, *runs: OpenFire, stop_takes: Duration = SECOND) -> None:
        """The service is up and owns; it takes that long to stop."""
        self.manager.behaviours[UNIT] = Behaviour(stop_takes=stop_takes)
        self.manager.start(UNIT, PATIENCE)
        self.own(self.pid, *runs)
        self.manager.asked.clear()

    def _refuse(self, verb: str, _: UnitState) -> None:
        refuse_elsewhere(verb, self.elsewhere, frozenset())

    def _start_agent(self) -> int:
        process = self.processes.stranger(Program(ignores=frozenset({signal.SIGINT})))
        self._agents[process.pid] = process
        return process.pid

    def _look(self, fires: Collection[int]) -> View:
        if self.looks:
            self.view = self.looks.pop(0)
        return replace(self.view, ended=tuple(row for row in self.view.ended if row.fire in fires))


def run(fire: int, *, token: str = "service") -> OpenFire:
    """A run that goes on."""
    process = ProcessId(4000 + fire, 5, "boot-1", 4026531836)
    return OpenFire(fire, "backup", START, Trigger.SCHEDULE, 3, token, START, START, process, 1, None)


@pytest.fixture
def empty(tmp_path: Path) -> Desktop:
    """A desktop without the service."""
    return Desktop(f"{tmp_path}/own", f"{tmp_path}/packages")


@pytest.fixture
def desktop(empty: Desktop) -> Desktop:
    """A desktop with the service installed, enabled and down."""
    packages = Path(empty.manager.directories[1])
    packages.mkdir()
    (packages / UNIT).write_text("[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=default.target\n")
    empty.manager.enable(UNIT)
    empty.manager.asked.clear()
    return empty


def test_a_start_says_as_what_it_came_up_and_what_comes_next(desktop: Desktop) -> None:
    desktop.manager.when_ready = lambda _: desktop.own(desktop.pid)
    answer = desktop.service().start(PATIENCE)
    assert answer.code == 0
    expected = f"the service is up as owner of term 3, pid {desktop.pid}, version 0.1; next: backup at "
    assert answer.text == expected + format_instant(START)


def test_a_start_of_a_service_that_is_up_asks_for_nothing(desktop: Desktop) -> None:
    desktop.run_service()
    answer = desktop.service().start(PATIENCE)
    assert (answer.code, "was up already as owner" in answer.text) == (0, True)
    assert desktop.verbs == []


def test_a_start_beside_an_owner_comes_up_as_standby_and_names_it(desktop: Desktop) -> None:
    def stand_by(_: str) -> None:
        other = Bystander(desktop.card(desktop.pid), Role.STANDBY)
        desktop.view = View(Seen(desktop.owner(50, "other"), (other,), None))

    desktop.manager.when_ready = stand_by
    answer = desktop.service().start(PATIENCE)
    assert answer.text == (
        f"the service is up as standby, pid {desktop.pid}, version 0.1: pid 50 owns, and not as this service"
    )


def test_a_start_over_another_state_directory_says_that_it_is_not_seen(desktop: Desktop) -> None:
    answer = desktop.service().start(PATIENCE)
    assert answer.code == 0
    assert "its state is not the one of this shell" in answer.text


def test_an_edited_unit_is_read_again_before_it_is_started(desktop: Desktop) -> None:
    unit = Path(desktop.manager.directories[1]) / UNIT
    unit.write_text(unit.read_text() + "\n# edited\n")
    desktop.service().start(PATIENCE)
    assert desktop.verbs == ["reload", "start"]


@pytest.mark.parametrize("verb", ["start", "restart"])
def test_what_cannot_start_is_refused_with_the_command_that_allows_it(empty: Desktop, verb: str) -> None:
    def fault() -> ServiceNotUp:
        with pytest.raises(ServiceNotUp) as caught:
            ASKING[verb](empty.service())
        return caught.value

    assert "ankita-agent install" in fault().do
    empty.manager.mask(UNIT)
    assert "systemctl --user unmask ankita-agent" in fault().do
    assert empty.verbs == []


@pytest.mark.parametrize("verb", ["start", "restart"])
@pytest.mark.parametrize("up", [True, False])
def test_a_unit_that_cannot_be_used_is_told_with_what_its_manager_says_and_its_drop_ins(
    desktop: Desktop, verb: str, up: bool
) -> None:
    if up:
        desktop.run_service()
        if verb == "start":
            return
    unit = Path(desktop.manager.directories[1]) / UNIT
    unit.write_text("[Install]\nWantedBy=default.target\n")
    desktop.files = FilesSeen(faults=("Service has no ExecStart=. Refusing.",))
    with pytest.raises(
        ServiceNotUp, match=r"cannot use its unit file: Service has no ExecStart=\. Refusing\."
    ) as caught:
        ASKING[verb](desktop.service())
    assert caught.value.do == "write it anew: ankita-agent install"
    assert ("it runs on, pid" in caught.value.now) == up
    beside = unit.parent / f"{UNIT}.d" / "a b.conf"
    beside.parent.mkdir()
    beside.write_text("[Service]\n")
    with pytest.raises(ServiceNotUp) as caught:
        ASKING[verb](desktop.service())
    assert caught.value.do == f"mend or remove what is beside it: '{beside}'    then: ankita-agent {verb}"
    beside.write_text("[Service]\nExecStart=/bin/true\n")
    ASKING[verb](desktop.service())
    assert desktop.verbs[-1] == verb or desktop.verbs[-2:] == ["restart", "start"]


def test_a_restart_whose_unit_file_is_gone_names_the_command_that_writes_it(desktop: Desktop) -> None:
    desktop.run_service()
    (Path(desktop.manager.directories[1]) / UNIT).unlink()
    with pytest.raises(ServiceNotUp, match="its unit file is gone") as caught:
        desktop.service().restart(PATIENCE, now=False)
    assert (caught.value.do, desktop.verbs) == ("write it anew: ankita-agent install", ["reload"])
    assert caught.value.now == f"nothing was changed; it runs on, pid {desktop.pid}"


@pytest.mark.parametrize("verb", ["start", "restart"])
def test_what_is_wrong_with_the_agent_that_came_up_is_said_once_it_has_told(desktop: Desktop, verb: str) -> None:
    desktop.degraded = ("routines.yaml is bad", "the disk is full")

    def own_and_tell_later(_: str) -> None:
        desktop.own(desktop.pid)
        silent = replace(desktop.view, seen=replace(desktop.view.seen, report=None))
        desktop.looks = [silent, silent, desktop.view]

    desktop.manager.when_ready = own_and_tell_later
    answer = ASKING[verb](desktop.service())
    assert isinstance(answer, Answer)
    assert answer.text.endswith("\ndegraded: routines.yaml is bad\ndegraded: the disk is full")
    assert answer.code == 0


def test_a_start_that_fails_says_why_and_what_to_do(desktop: Desktop) -> None:
    desktop.manager.behaviours[UNIT] = Behaviour(exit_status=78)
    with pytest.raises(ServiceNotUp, match="exit status 78") as caught:
        desktop.service().start(PATIENCE)
    assert "ankita-agent check" in caught.value.do


def test_a_start_that_takes_too_long_is_no_longer_waited_for(desktop: Desktop) -> None:
    desktop.manager.behaviours[UNIT] = Behaviour(ready_after=Duration(30 * SECOND))
    with pytest.raises(ServiceNotUp, match="was not up within 2s: it is still activating") as caught:
        desktop.service().start(Duration(2 * SECOND))
    assert caught.value.now == "its manager goes on with it"


def test_a_stop_names_the_runs_that_go_on_and_says_how_each_ended(desktop: Desktop) -> None:
    desktop.run_service(run(7))
    ended = replace(desktop.view, runs=(), ended=(ENDED,))
    desktop.looks = [desktop.view, desktop.view, ended, NOTHING]
    answer = desktop.service().stop(PATIENCE, now=False)
    assert desktop.told[0] == f"waiting for run 7 of backup (pid 4007, since {format_instant(START)})"
    assert "at once: ankita-agent stop --now" in desktop.told[1]
    assert desktop.told[2:] == ["backup: run 7 succeeded"]
    assert answer.text.startswith("the service is stopped\nit starts again at the next login or boot")
    assert answer.code == 0
    assert desktop.verbs == ["stop", "stop"]


def test_the_job_is_handed_over_before_anything_is_waited_for(desktop: Desktop) -> None:
    desktop.run_service(run(7))

    def interrupt(_: Duration) -> None:
        raise KeyboardInterrupt

    service = desktop.service(pause=interrupt)
    assert not service.asked
    with pytest.raises(KeyboardInterrupt):
        service.stop(PATIENCE, now=False)
    assert (desktop.verbs, service.asked) == (["stop"], True)


class CutShort(FakeServiceManager):
    """Ctrl-C meets what asks the manager, before or after the manager has heard of it."""

    heard = False

    def stop(self, unit: str, patience: Duration) -> JobEnd:
        if self.heard:
            super().stop(unit, Duration(0))
        raise KeyboardInterrupt


@pytest.mark.parametrize("heard", [False, True])
def test_whether_an_interrupted_call_asked_for_anything_is_seen_of_the_unit(desktop: Desktop, heard: bool) -> None:
    manager = CutShort(desktop.manager.directories)
    manager.next_pid, manager.heard = desktop.manager.next_pid, heard
    manager.behaviours[UNIT] = Behaviour(stop_takes=Duration(60 * SECOND))
    desktop.manager = manager
    desktop.run_service(run(7))
    service = desktop.service()
    with pytest.raises(KeyboardInterrupt):
        service.stop(PATIENCE, now=False)
    assert service.asked is heard


def test_now_sends_the_second_wish_to_the_agent_after_the_first(desktop: Desktop) -> None:
    desktop.run_service(run(7))
    pid = desktop.pid
    desktop.looks = [
        desktop.view,
        desktop.view,
        replace(desktop.view, runs=(), ended=(ENDED,)),
        NOTHING,
    ]
    answer = desktop.service().stop(PATIENCE, now=True)
    assert desktop.processes.sent == [(pid, signal.SIGINT)]
    assert desktop.told[0].startswith("stopping run 7 of backup")
    assert answer.code == 0


def test_now_sends_nothing_when_nothing_runs_any_more(desktop: Desktop) -> None:
    desktop.run_service(run(7))
    desktop.looks = [desktop.view, replace(desktop.view, runs=(), ended=(ENDED,))]
    desktop.service().restart(PATIENCE, now=True)
    assert desktop.processes.sent == []


def test_a_run_whose_agent_died_has_an_end_that_nobody_saw(desktop: Desktop) -> None:
    desktop.run_service(run(7))
    desktop.processes.end(desktop.pid, by_signal=signal.SIGKILL)
    desktop.service().stop(PATIENCE, now=False)
    assert "backup: run 7 was not seen to end" in desktop.told[-1]


def test_a_stop_that_takes_too_long_goes_on_and_says_so(desktop: Desktop) -> None:
    desktop.run_service(run(7), stop_takes=Duration(60 * SECOND))
    with pytest.raises(ServiceNotUp, match="was not down within 2s: it is still deactivating") as caught:
        desktop.service().stop(Duration(2 * SECOND), now=False)
    assert "ankita-agent stop --now" in caught.value.do
    assert not [line for line in desktop.told if "not seen" in line]


def test_a_command_within_a_run_does_not_wait_for_that_run(desktop: Desktop) -> None:
    desktop.run_service(run(7), stop_takes=Duration(60 * SECOND))
    answer = desktop.service(within=7).stop(PATIENCE, now=False)
    assert answer.text == "the service stops; not waiting here, for this command is itself part of run 7 of backup"
    assert desktop.verbs == ["stop"]


def test_a_shell_that_a_run_of_old_left_behind_waits_as_any_other(desktop: Desktop) -> None:
    desktop.run_service(stop_takes=SECOND)
    assert desktop.service(within=7).restart(PATIENCE, now=False).text.startswith("the service is up")
    assert desktop.verbs == ["restart", "start"]


def test_the_runs_of_another_agent_are_not_those_of_the_service(desktop: Desktop) -> None:
    desktop.run_service()
    standby = Bystander(desktop.card(desktop.pid), Role.STANDBY)
    desktop.view = View(Seen(desktop.owner(50, "other"), (standby,), None), (run(7, token="other"),))
    answer = desktop.service().stop(PATIENCE, now=False)
    assert desktop.told == []
    assert answer.code == 1
    assert "the routines go on: pid 50 owns them, and it is not the service" in answer.text


def test_an_agent_that_waited_for_the_service_to_end_is_told_of(desktop: Desktop) -> None:
    desktop.run_service()
    waiting = Bystander(desktop.card(50, "other"), Role.STANDBY)
    desktop.looks = [desktop.view, View(Seen(None, (waiting,), None))]
    answer = desktop.service().stop(PATIENCE, now=False)
    assert (answer.code, "the routines go on: another agent was waiting" in answer.text) == (1, True)


def test_a_run_that_the_service_adopted_is_one_of_its_own(desktop: Desktop) -> None:
    desktop.run_service(run(6, token="dead"))
    desktop.looks = [desktop.view, replace(desktop.view, runs=(), ended=(replace(ENDED, fire=6),))]
    desktop.service().stop(PATIENCE, now=False)
    assert desktop.told[0].startswith("waiting for run 6 of backup")
    assert desktop.told[-1] == "backup: run 6 succeeded"


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("verb", ASKING)
def test_a_service_of_other_directories_is_left_alone(desktop: Desktop, verb: str, up: bool) -> None:
    if up:
        desktop.run_service()
    desktop.elsewhere = (Elsewhere("ANKITA_STATE_DIR", "/theirs", "/ours", usual=True),)
    with pytest.raises(WrongUse, match="/theirs, and this shell has /ours"):
        ASKING[verb](desktop.service())
    assert (desktop.verbs, desktop.manager.signals) == ([], [])


@pytest.mark.parametrize("verb", ["restart", "start"])
def test_a_stop_that_somebody_else_undoes_says_so(desktop: Desktop, verb: str) -> None:
    desktop.run_service(run(7))

    def undo(_: Duration) -> None:
        getattr(desktop.manager, verb)(UNIT, PATIENCE)
        desktop.looks = [replace(desktop.view, ended=(ENDED,))]

    service = desktop.service(pause=undo)
    answer = service.stop(PATIENCE, now=False)
    assert (answer.code, "somebody has started it again" in answer.text) == (1, True)
    assert desktop.manager.state(UNIT).activity.up


def test_a_stop_that_took_force_says_so(desktop: Desktop) -> None:
    desktop.run_service()
    desktop.manager.end(UNIT, exit_status=9, by_signal=True, result="timeout")
    told = down(desktop.manager.state(UNIT), NOTHING, LINES).text
    assert "not in good order (it did not end in time, and was killed)" in told


def test_stopping_what_does_not_run_is_no_failure(empty: Desktop) -> None:
    answer = empty.service().stop(PATIENCE, now=True)
    assert (answer.text, answer.code) == ("nothing to stop: the service is not installed", 0)


def test_stopping_what_failed_says_why_it_did(desktop: Desktop) -> None:
    desktop.run_service()
    desktop.manager.end(UNIT, exit_status=78)
    desktop.view = NOTHING
    answer = desktop.service().stop(PATIENCE, now=False)
    assert answer.code == 0
    assert answer.text.startswith("nothing to stop: the service failed (exit status 78")


def test_a_restart_of_what_does_not_run_starts_it(desktop: Desktop) -> None:
    desktop.manager.when_ready = lambda _: desktop.own(desktop.pid)
    assert desktop.service().restart(PATIENCE, now=False).text.startswith("the service is up as owner")


@pytest.mark.parametrize("verb", ASKING)
def test_a_manager_that_cannot_be_asked_does_not_hide_the_agent(desktop: Desktop, verb: str) -> None:
    def said() -> str:
        with pytest.raises((ManagerSilent, ManagerUnreachable)) as caught:
            ASKING[verb](desktop.service())
        assert caught.value.exit_code == 69
        return caught.value.now

    desktop.manager.unreachable = Unreachable.NO_SOCKET
    assert said() == "Nothing was done. No agent owns the routines."
    desktop.manager.unreachable = None
    desktop.manager.silent = True
    desktop.own(50)
    assert said().endswith(
        f"Nothing was done. The agent with pid 50 owns the routines since {format_instant(START)}, and they go on."
    )


@pytest.mark.parametrize("verb", ASKING)
def test_without_systemd_what_helps_fits_what_was_asked_for(desktop: Desktop, verb: str) -> None:
    def advice() -> str:
        with pytest.raises(ManagerUnreachable) as caught:
            ASKING[verb](desktop.service())
        return caught.value.do

    ways = "in this terminal, until Ctrl-C: ankita-agent run\n"
    desktop.manager.unreachable = Unreachable.NO_SYSTEMD
    assert advice().startswith(ways) == (verb != "stop")
    desktop.own(50)
    assert ways not in advice()
    assert ("kill -INT 50" in advice()) == (verb != "start")


@pytest.mark.parametrize("reason", [each for each in Unreachable if each is not Unreachable.NO_SYSTEMD])
def test_an_agent_of_a_manager_that_cannot_be_asked_is_not_ended_past_it(desktop: Desktop, reason: Unreachable) -> None:
    desktop.own(50)  # its card says systemd
    desktop.manager.unreachable = reason
    with pytest.raises(ManagerUnreachable) as caught:
        desktop.service().stop(PATIENCE, now=False)
    assert caught.value.do
    assert "kill" not in caught.value.do


def test_a_stop_is_waited_for_as_long_as_the_unit_may_take() -> None:
    unit = (ROOT / "units" / UNIT).read_text(encoding="utf-8")
    term, abort = (
        int(re.findall(rf"^{name}=(\d+)$", unit, re.MULTILINE)[0]) for name in ("TimeoutStopSec", "TimeoutAbortSec")
    )
    assert 0 < STOP_AT_MOST - (2 * term + abort) * SECOND <= 10 * SECOND


def test_status_tells_of_the_service_whatever_state_it_is_in(desktop: Desktop) -> None:
    def line() -> str:
        return describe_service(look_at_service(desktop.manager, lambda _: desktop.files, LINES))

    assert line() == "not running, enabled; start it: ankita-agent start"
    desktop.run_service()
    assert line() == f"active, enabled, pid {desktop.pid}"
    desktop.manager.bring_back(UNIT)
    desktop.manager.become_ready(UNIT)
    assert line().startswith(f"active, enabled, pid {desktop.pid}; brought back once: ")
    desktop.manager.disable(UNIT)
    assert line().endswith("; have it start by itself: systemctl --user enable ankita-agent")
    unit = Path(desktop.manager.directories[1]) / UNIT
    text = unit.read_text()
    unit.unlink()
    desktop.files = FilesSeen(gone=True)
    assert line().endswith("; its unit file is gone, so it cannot start again; write it anew: ankita-agent install")
    desktop.manager.reload()
    assert line().endswith("; its unit file is gone, so it cannot start again; write it anew: ankita-agent install")
    unit.write_text("[Install]\n")
    desktop.manager.reload()
    desktop.files = FilesSeen(faults=("Refusing.",))
    assert "; it cannot start again, for its manager cannot use its unit file: Refusing.; write it" in line()
    unit.write_text(text)
    desktop.files = FilesSeen()
    desktop.manager.reload()
    desktop.manager.end(UNIT, exit_status=78)
    assert line().startswith("failed, not enabled, brought back once before: exit status 78, ")
    assert "ankita-agent check" in line()


def test_status_says_that_a_manager_cannot_be_asked_and_nothing_where_there_is_none(desktop: Desktop) -> None:
    desktop.manager.silent = True
    view = look_at_service(desktop.manager, lambda _: desktop.files, LINES)
    assert describe_service(view).startswith("systemd does not tell: the service manager did not answer")
    assert (view.manager, view.installed, view.enabled, view.active) == ("systemd", None, None, None)
    desktop.manager.unreachable = Unreachable.NO_SYSTEMD
    view = look_at_service(desktop.manager, lambda _: desktop.files, LINES)
    assert describe_service(view) == ""
    assert (view.manager, view.installed, view.enabled, view.active) == (None, False, False, False)


def test_another_version_than_the_installed_one_is_named_with_the_command_that_ends_it() -> None:
    assert describe_version("0.1", "0.1") == ""
    assert describe_version("0.1", "0.2") == "running 0.1, installed 0.2: ankita-agent restart"
