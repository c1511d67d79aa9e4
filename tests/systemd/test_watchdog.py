"""The manager's watchdog: a wedged agent is ended with its stacks and owns again; a busy one is never touched."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from ankita_agent.core.outcomes import Outcome, Reason
from tests.real.waiting import until
from tests.rig.container import kill_entered
from tests.rig.guest import UNIT, Guest
from tests.systemd.services import BEAT, NOTED, STATE, WEDGING, Service

pytestmark = pytest.mark.needs("systemd")

PATIENT: Final = "5min"
"""What the manager shows of the patience that it is asked for."""


@contextmanager
def owner_in_a_shell(service: Service) -> Iterator[int]:
    """A block in which an agent of a shell owns; its pid."""
    process = service.guest.start("ankita-agent", "run")
    try:
        yield until(lambda: (service.status()["owner"] or {"pid": 0})["pid"])
    finally:
        kill_entered(process)


def ended_by_the_watchdog(service: Service, pid: int) -> str:
    """Wait for the owner that follows the wedged one; the journal."""
    new = service.follows(pid)
    assert new != pid
    journal = service.guest.journal()
    assert f"{UNIT}: Watchdog timeout" in journal
    assert re.search(rf"Killing process {pid} \(\S+\) with signal SIGABRT", journal)
    assert "Main process exited, code=killed, status=6/ABRT" in journal, "and no core was dumped"
    assert "Failed with result 'watchdog'" in journal
    assert service.property("NRestarts") == "1"
    return journal


@pytest.mark.parametrize(
    ("fault", "function"),
    [("stop-passing", "stop_passing"), ("hold-the-gil", "hold_the_gil"), ("deadlock", "lock_twice")],
)
def test_a_wedged_owner_is_ended_with_its_stacks_and_owns_again(guest: Guest, fault: str, function: str) -> None:
    with Service(guest, WEDGING) as service:
        service.write(BEAT)
        pid = service.start()
        service.notes_more()
        service.cause(fault)
        journal = ended_by_the_watchdog(service, pid)
        assert "Fatal Python error: Aborted" in journal
        assert f" in {function}" in journal
        assert service.seconds_between("Failed with result 'watchdog'", "owner of term 2") < 5
        service.notes_more()
        service.check_account()
        assert [row.reason for row in service.rows() if row.outcome is Outcome.LOST] in ([], [Reason.OWNER_KILLED])


def test_an_owner_that_somebody_stopped_is_replaced(guest: Guest) -> None:
    with Service(guest) as service:
        service.write(BEAT)
        pid = service.start()
        service.notes_more()
        guest.signal(pid, "STOP")
        assert "Fatal Python error: Aborted" in ended_by_the_watchdog(service, pid)
        service.notes_more()
        service.check_account()


def test_a_standby_that_wedges_is_replaced_as_well(guest: Guest) -> None:
    with Service(guest, WEDGING) as service, owner_in_a_shell(service) as owner:
        pid = service.start()
        assert service.property("StatusText").startswith("standby")
        service.cause("stop-passing")
        until(lambda: guest.main_pid() not in (0, pid))
        guest.wait_until(ActiveState="active", NRestarts="1")
        assert "Failed with result 'watchdog'" in guest.journal()
        assert service.status()["owner"]["pid"] == owner


def test_pings_of_a_child_do_not_keep_a_wedged_owner_alive(guest: Guest) -> None:
    ping = (
        "import select, socket\n"
        "manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
        "while not select.select([], [], [], 0.2)[0]:\n"
        f"    manager.sendto(b'WATCHDOG=1\\nREADY=1\\nSTATUS=the child', '/run/user/{guest.uid}/systemd/notify')\n"
    )
    guest.write("ping.py", ping)
    with Service(guest, WEDGING) as service:
        service.write(BEAT + "  ping: {schedule: every 1s, run: 'echo > pinging; exec python3 ping.py'}\n")
        pid = service.start()
        until(lambda: guest.exists("pinging"))
        service.cause("stop-passing")
        ended_by_the_watchdog(service, pid)
        assert "the child" not in service.property("StatusText")
        service.check_account()


def test_a_full_queue_behind_a_long_run_is_busy(guest: Guest) -> None:
    with Service(guest) as service:
        long = "  long: {schedule: every 1s, run: 'echo > began; while [ ! -e go ]; do sleep 0.1; done'}\n"
        many = "".join(f"  q{n}: {{schedule: every 1s, run: 'true'}}\n" for n in range(20))
        service.write("agent: {settle: 1s, stop_drain: 1s, concurrency: 1}\nroutines:\n" + long + many)
        service.start()
        until(lambda: guest.exists("began"))
        with service.untouched():
            service.pass_periods()
            assert service.status()["owner"]["state"] == "busy"
            guest.write("go", "")
            until(lambda: {row.routine for row in service.rows() if row.outcome is Outcome.SUCCEEDED} >= {"q7", "q19"})


def test_a_run_that_nobody_can_kill_is_busy(guest: Guest) -> None:
    """The run is another user's by the time it is to end: its agent may not signal it, as little as one in state D."""
    guest.ask_root("install", "-m", "4755", "/usr/bin/setpriv", "/usr/local/bin/become")
    run = 'become --reuid=0 --regid=0 --clear-groups sh -c "echo > /tmp/began; exec sleep 1000"'
    with Service(guest) as service:
        service.write(BEAT + f"  stuck: {{schedule: every 1s, run: '{run}', timeout: 1s, kill_after: 1s}}\n")
        service.start()
        until(lambda: guest.exists("/tmp/began"))
        until(lambda: "SIGKILL did not end: stuck" in service.property("StatusText"))
        with service.untouched():
            service.pass_periods()
            service.notes_more()
        guest.ask_root("pkill", "-KILL", "-x", "sleep")
        until(lambda: "SIGKILL did not end" not in service.property("StatusText"))
        service.check_account()


def test_a_full_disk_is_busy_and_everything_goes_on_when_there_is_room(guest: Guest) -> None:
    state = f"{guest.home}/{STATE}"
    assert guest.run("mkdir", "-p", state).code == 0
    guest.ask_root("mount", "-t", "tmpfs", "-o", f"size=3m,mode=700,uid={guest.uid},gid={guest.uid}", "tmpfs", state)
    with Service(guest) as service:
        service.write(BEAT)
        service.start()
        service.notes_more()
        guest.shell(f"cat /dev/zero > {state}/full")
        until(lambda: "degraded" in service.property("StatusText"))
        with service.untouched():
            service.pass_periods()
            guest.ask("rm", f"{state}/full")
            service.notes_more()
        service.check_account()
        assert guest.systemctl("stop", UNIT).code == 0


def test_ten_thousand_routines_read_again_are_busy(guest: Guest) -> None:
    with Service(guest, watchdog=10) as service:
        service.write(BEAT)
        service.start()
        service.notes_more()
        many = "".join(f"  r{n:05}: {{schedule: 'daily 02:30', run: 'true'}}\n" for n in range(10_000))
        with service.untouched():
            for time in (1, 2):
                service.write(BEAT + many)
                service.says("10001 routines in force", time)
                service.notes_more()
                service.write(BEAT)
                service.says("1 routine in force", time + 1)
        service.check_account()


def test_a_standby_waits_for_long_and_then_owns(guest: Guest) -> None:
    with Service(guest) as service:
        service.write(BEAT)
        with owner_in_a_shell(service) as owner:
            service.start()
            with service.untouched():
                service.pass_periods(3)
                assert service.property("StatusText").startswith("standby")
                guest.signal(owner, "KILL")
                until(lambda: "owner, term 2" in service.property("StatusText"))
                service.pass_periods(1.5)
        service.notes_more()
        service.check_account()


@pytest.mark.parametrize("fault", ["slow-ledger", "slow-files"])
def test_an_owner_that_waits_for_the_disk_is_busy_and_a_wedged_one_is_not_for_that(guest: Guest, fault: str) -> None:
    with Service(guest, WEDGING) as service:
        service.write(BEAT)
        pid = service.start()
        service.notes_more()
        with service.untouched():
            service.cause(fault)
            if fault == "slow-files":
                service.write("not routines\n")  # which makes the agent write its report
            guest.wait_until(WatchdogUSec=PATIENT)
            service.unheard_for()
            assert service.status()["owner"]["state"] == "busy"
            service.mend(fault)
            service.write(BEAT)
            until(lambda: service.property("WatchdogUSec") == "2s")
            service.notes_more()
        service.cause("deadlock")
        ended_by_the_watchdog(service, pid)
        assert service.property("WatchdogUSec") == "2s"
        service.notes_more()
        service.check_account()


def test_the_patience_for_a_disk_has_an_end(guest: Guest) -> None:
    with Service(guest, WEDGING, "Environment=WEDGING_HURRY=100") as service:
        service.write(BEAT)
        pid = service.start()
        service.notes_more()
        service.cause("slow-ledger")
        service.says("Watchdog timeout (limit 3s)!")
        service.mend("slow-ledger")
        journal = ended_by_the_watchdog(service, pid)
        assert " in last" in journal
        service.notes_more()
        service.check_account()


def test_a_start_that_waits_for_its_ledger_is_given_the_time(guest: Guest) -> None:
    with Service(guest, WEDGING, "TimeoutStartSec=2") as service:
        service.write(BEAT)
        service.cause("slow-ledger")
        assert guest.systemctl("start", "--no-block", UNIT).code == 0
        until(lambda: guest.main_pid())
        service.pass_periods(2)
        assert guest.show("ActiveState", "NRestarts") == {"ActiveState": "activating", "NRestarts": "0"}
        service.mend("slow-ledger")
        guest.wait_until(ActiveState="active")
        with service.untouched():
            service.notes_more()


def wedge(service: Service) -> None:
    """A deadlock that holds."""
    service.cause("deadlock")
    until(lambda: not service.guest.exists("faults/deadlock"))


def hold_the_ledger(service: Service) -> None:
    """A ledger that does not answer."""
    service.cause("slow-ledger")
    service.guest.wait_until(WatchdogUSec=PATIENT)


@pytest.mark.parametrize(("trouble", "frame"), [(wedge, "lock_twice"), (hold_the_ledger, "last")])
def test_a_stop_of_an_agent_that_does_not_heed_it_shows_the_stacks_and_loses_no_slot(
    guest: Guest, trouble: Callable[[Service], None], frame: str
) -> None:
    with Service(guest, WEDGING, "TimeoutStopSec=2", "TimeoutAbortSec=5", watchdog=60) as service:
        service.write(BEAT + "  long: {schedule: every 1s, run: 'echo > began; exec sleep 1000'}\n")
        service.start()
        until(lambda: guest.exists("began"))
        service.notes_more()
        trouble(service)
        assert guest.systemctl("stop", UNIT).code == 0
        journal = service.says("Failed with result 'timeout'")
        assert "stop-sigterm' timed out. Aborting." in journal
        assert f" in {frame}" in journal
        assert "Watchdog timeout" not in journal
        assert guest.processes_of(UNIT) == []
        guest.run("rm", "-f", "faults/slow-ledger", "began")
        assert guest.systemctl("reset-failed", UNIT).code == 0
        service.start()
        service.notes_more()
        until(lambda: guest.exists("began"))
        service.check_account("beat", "long")
        lost = [row.reason for row in service.rows("long") if row.outcome is Outcome.LOST]
        assert lost == [Reason.OWNER_KILLED]


def test_what_was_asked_of_the_watchdog_is_forgotten_by_the_next_start_and_kept_by_a_reload(guest: Guest) -> None:
    with Service(guest, WEDGING) as service:
        service.write(BEAT)
        service.start()
        service.cause("slow-ledger")
        guest.wait_until(WatchdogUSec=PATIENT)
        assert guest.systemctl("daemon-reload").code == 0
        with service.untouched():
            service.unheard_for(2)
            assert service.property("WatchdogUSec") == PATIENT
        service.mend("slow-ledger")
        assert guest.systemctl("restart", UNIT).code == 0
        assert service.property("WatchdogUSec") == "2s"
        assert guest.exists(NOTED)
