"""Real processes that do what processes do to a supervisor."""

import ctypes
import fcntl
import os
import select
import shlex
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ankita_agent.adapters.attempt_outputs import LIMIT, AttemptOutputs
from ankita_agent.adapters.linux_wakeups import LinuxWakeups
from ankita_agent.adapters.posix_env_files import PosixEnvFiles
from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.adapters.posix_processes import PosixProcesses
from ankita_agent.adapters.system_clock import SystemClock
from ankita_agent.app.attempt import Surroundings
from ankita_agent.app.runner import Order, Runner
from ankita_agent.core.instants import MILLISECOND, SECOND, Duration
from ankita_agent.core.outcomes import Outcome, Reason, Trigger
from ankita_agent.core.routine import Routine
from ankita_agent.core.rows import End, ProcessId, Start
from ankita_agent.core.schedule import parse_schedule
from ankita_agent.core.supervise import StopReason
from ankita_agent.ports.processes import Observed
from tests.real.waiting import childless, has_children, until

SHORT = Duration(200 * MILLISECOND)
PATH = "/usr/local/bin:/usr/bin:/bin"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and a subreaper")


class Rig:
    """A runner with everything real, in a state directory of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.state = home / "state"
        (self.state / "run").mkdir(parents=True)
        self.files = PosixFiles()
        self.root = self.files.open_directory(str(self.state))
        self.run_directory = self.files.open_directory_at(self.root, "run")
        self.processes = PosixProcesses(umask=0o022)
        self.clock = SystemClock()
        self.runner = Runner(
            self.processes,
            AttemptOutputs(self.root),
            self.files,
            self.clock,
            self.run_directory,
            Surroundings({"PATH": PATH, "HOME": str(home)}, str(home), PosixEnvFiles()),
        )
        self.fires = 0
        self.logs: dict[int, str] = {}

    def launch(self, *argv: str, name: str = "work", **fields: Any) -> Start | End:
        given: dict[str, Any] = {
            "schedule": parse_schedule("daily 08:00"),
            "timezone": "UTC",
            "kill_after": SHORT,
        }
        routine = Routine(name=name, run=argv, **{**given, **fields})
        reservation = self.runner.reserve(name)
        assert reservation is not None
        self.fires += 1
        order = Order(routine, self.fires, self.clock.now(), Trigger.SCHEDULE, 1, 1, None, 0)
        (come,) = self.runner.launch([(order, reservation)])
        return come

    def start(self, *argv: str, **fields: Any) -> ProcessId:
        started = self.launch(*argv, **fields)
        assert isinstance(started, Start), started.detail
        self.logs[started.fire] = started.log
        return started.process

    def shell(self, script: str, **fields: Any) -> ProcessId:
        return self.start("/bin/sh", "-c", script, **fields)

    def output(self, fire: int = 1) -> bytes:
        return (self.state / self.logs[fire]).read_bytes()

    def said(self, word: bytes) -> bytes:
        until(lambda: word in self.output(), f"output with {word!r}")
        return self.output()

    def end(self) -> End:
        (end,) = until(self.runner.collect, "the end of a fire")
        return end

    def over(self) -> None:
        """Everything of every attempt has ended."""

        def nothing_left() -> bool:
            self.runner.collect()
            return not self.runner.running()

        until(nothing_left, "nothing left running")

    def close(self) -> None:
        self.runner.stop_all(StopReason.SHUTDOWN)
        self.over()
        os.close(self.run_directory)
        os.close(self.root)


@pytest.fixture
def rig(home: Path) -> Iterator[Rig]:
    rig = Rig(home)
    yield rig
    rig.close()
    until(childless, "no child left, zombie or not")
    ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)  # this process is no subreaper any more


def ended(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == b"Z"


def number_in(output: bytes) -> int:
    return int(output.split()[0])


PYTHON = sys.executable


def python(script: str) -> tuple[str, str, str]:
    return (PYTHON, "-c", script)


# -- signals and families


def test_a_group_is_ended_by_sigterm(rig: Rig) -> None:
    rig.shell("sleep 1000 & echo $!; wait")
    child = number_in(rig.said(b"\n"))
    rig.runner.stop("work", StopReason.PERSON)
    end = rig.end()
    assert (end.outcome, end.reason, end.signal) == (Outcome.STOPPED, Reason.ASKED_TO_STOP, signal.SIGTERM)
    rig.over()
    assert ended(child)


def test_who_ignores_sigterm_is_killed(rig: Rig) -> None:
    rig.shell("trap '' TERM; echo ready; while :; do sleep 1000; done")
    rig.said(b"ready")
    rig.runner.stop("work", StopReason.PERSON)
    assert rig.end().signal == signal.SIGKILL


def test_a_stopped_attempt_is_ended_by_the_stop_sequence(rig: Rig) -> None:
    process = rig.start("sleep", "1000")
    os.kill(process.pid, signal.SIGSTOP)
    until(lambda: rig.processes.observe(process) is Observed.STOPPED)
    rig.runner.stop("work", StopReason.PERSON)
    assert rig.end().signal == signal.SIGTERM


def test_an_attempt_over_its_timeout_is_timed_out(rig: Rig) -> None:
    rig.start("sleep", "1000", timeout=SHORT)
    end = rig.end()
    assert (end.outcome, end.reason) == (Outcome.TIMED_OUT, Reason.TIMEOUT)


DAEMON = """
import os, signal, sys
if os.fork():
    os.wait()
    sys.exit(0)
os.setsid()
if os.fork():
    os._exit(0)
signal.signal(signal.SIGTERM, signal.{disposition})
os.write(1, b"%d ready\\n" % os.getpid())
{more}
signal.pause()
"""


@pytest.mark.parametrize("disposition", ["SIG_DFL", "SIG_IGN"])
def test_a_daemon_that_forked_twice_is_found_and_ended_after_the_leader(rig: Rig, disposition: str) -> None:
    rig.start(*python(DAEMON.format(disposition=disposition, more="")))
    end = rig.end()
    assert end.outcome is Outcome.SUCCEEDED
    rig.over()
    assert ended(number_in(rig.output()))


def test_a_daemon_stays_where_the_routine_leaves_it_running_and_the_lock_is_free(rig: Rig) -> None:
    rig.start(*python(DAEMON.format(disposition="SIG_DFL", more="")), leave_running=True)
    assert rig.end().outcome is Outcome.SUCCEEDED
    daemon = number_in(rig.said(b"ready"))
    try:
        assert not rig.runner.running()
        assert not ended(daemon)
        reservation = rig.runner.reserve("work")
        assert reservation is not None
        rig.runner.release(reservation)
    finally:
        os.kill(daemon, signal.SIGKILL)
        until(lambda: any(each.pid == daemon for each in rig.processes.reap()))


def test_a_child_in_a_session_of_its_own_is_ended_with_its_parent(rig: Rig) -> None:
    rig.shell("setsid sh -c 'echo $$ ready; exec sleep 1000' & wait")
    escaped = number_in(rig.said(b"ready"))
    assert os.getsid(escaped) == escaped
    rig.runner.stop("work", StopReason.PERSON)
    rig.end()
    rig.over()
    assert ended(escaped)


def test_a_child_seen_once_is_found_again_though_it_wipes_its_variables(rig: Rig) -> None:
    rig.shell("setsid env -i sh -c 'trap \"\" TERM; echo $$ ready; while :; do sleep 1000; done' & wait")
    escaped = number_in(rig.said(b"ready"))
    rig.runner.stop("work", StopReason.PERSON)
    rig.end()
    rig.over()
    assert ended(escaped)


@pytest.mark.parametrize("deaf", ["", 'trap "" TERM; '])
def test_a_straggler_that_wipes_its_variables_before_anybody_looks_is_known_by_its_lock(rig: Rig, deaf: str) -> None:
    pid = rig.home / "pid"
    hides = f"(setsid env -i sh -c '{deaf}echo $$ > {pid}; while :; do sleep 1000; done' &)"
    rig.shell(f"{hides}; until [ -s {pid} ]; do sleep 0.01; done")
    assert rig.end().outcome is Outcome.SUCCEEDED
    rig.over()
    assert ended(int(pid.read_text()))
    reservation = rig.runner.reserve("work")
    assert reservation is not None
    rig.runner.release(reservation)


def test_who_opened_or_locked_the_lock_file_itself_is_no_straggler(rig: Rig) -> None:
    lock = rig.state / "run" / "work.lock"
    rig.shell("echo ready; read line < /dev/null; exec sleep 1000")
    rig.said(b"ready")
    with lock.open("r+") as opened:
        stranger = subprocess.Popen(["sleep", "1000"], stdin=opened)
    try:
        rig.runner.stop("work", StopReason.PERSON)
        rig.end()
        rig.over()
        assert not ended(stranger.pid)
    finally:
        os.kill(stranger.pid, signal.SIGKILL)
        assert until(stranger.wait) == -signal.SIGKILL


def test_a_grandchild_that_keeps_the_output_open_does_not_hold_up_the_end(rig: Rig) -> None:
    rig.shell("trap '' TERM; (while :; do sleep 1000; done) & exit 0", kill_after=Duration(30 * SECOND))
    assert rig.end().outcome is Outcome.SUCCEEDED
    assert rig.runner.reserve("work") is None
    rig.processes.signal_family(rig.runner.running()["work"].process, signal.SIGKILL)
    rig.over()


def test_a_family_that_forks_and_ends_faster_than_anybody_can_look_is_ended(rig: Rig) -> None:
    generations = 20_000  # so that it ends by itself, should this test fail
    rig.start(
        *python(
            "import os, signal\n"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            f"for _ in range({generations}):\n"
            "    if os.fork(): os._exit(0)\n"
            "os.write(1, b'the last')\n"
        )
    )
    assert rig.end().outcome is Outcome.SUCCEEDED
    rig.over()
    assert not has_children()
    assert rig.output() == b""


# -- the lock and the descriptors


def test_a_script_that_closes_and_opens_low_descriptors_keeps_the_lock(rig: Rig) -> None:
    os.mkfifo(rig.home / "go")
    rig.shell("exec 3>&- 4>&- 9>&-; exec 9>other; exec 3</dev/null; echo ready; read line < go", cwd=str(rig.home))
    rig.said(b"ready")
    lock = os.open(rig.state / "run" / "work.lock", os.O_RDWR | os.O_CLOEXEC)
    ours = rig.runner.running()["work"].reservation
    assert ours is not None
    os.dup2(lock, ours.descriptor, inheritable=False)  # the agent holds it no more, as after its death
    with pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    (rig.home / "go").write_text("\n")
    rig.end()
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(lock)


def test_an_attempt_inherits_its_output_its_lock_and_nothing_else(rig: Rig) -> None:
    stray = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(stray, True)
    rig.start(*python("import os; print(*sorted(int(n) for n in os.listdir('/proc/self/fd')))"))
    rig.end()
    os.close(stray)
    numbers = [int(number) for number in rig.output().split()]
    assert numbers[:3] == [0, 1, 2]
    assert sum(number > 200 for number in numbers) == 1
    assert len(numbers) == 5  # and that of the listing


def test_an_attempt_has_default_signals_an_empty_mask_its_own_session_and_the_given_umask(rig: Rig) -> None:
    signal.signal(signal.SIGUSR1, lambda number, frame: None)
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # as a careless parent of the agent may leave it
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
    wakeups = LinuxWakeups(())  # as every agent makes it before it starts anything
    try:
        rig.shell("cat /proc/self/status; cut -d' ' -f5,6 /proc/self/stat; echo $$")
        rig.end()
    finally:
        wakeups.close()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        signal.signal(signal.SIGUSR2, signal.SIG_DFL)
    said = rig.output().decode().splitlines()
    facts = dict(line.split(":", 1) for line in said[:-2])
    # those that are not valid belong to the C library, whose posix_spawn(3) leaves them ignored in what make starts
    ours = sum(1 << (number - 1) for number in signal.valid_signals())
    assert [int(facts[kind], 16) & ours for kind in ("SigBlk", "SigIgn", "SigCgt")] == [0, 0, 0]
    assert facts["Umask"].strip() == "0022"
    leader = said[-1]
    assert said[-2] == f"{leader} {leader}"


def test_zombies_adopted_ones_too_are_reaped(rig: Rig) -> None:
    rig.shell("(sleep 0 & sleep 0 &) ; (setsid sh -c 'sleep 0 & exit' &)")
    rig.end()
    rig.over()
    until(lambda: rig.processes.reap() == [] and not has_children())


@pytest.mark.timeout(120)
def test_five_hundred_launches_leave_no_descriptor_behind(rig: Rig) -> None:
    rig.start("true")
    rig.over()
    before = os.listdir("/proc/self/fd")
    for _ in range(500):
        rig.start("true", keep_logs=3)
        rig.over()
    assert os.listdir("/proc/self/fd") == before
    assert len(list((rig.state / "logs" / "work").iterdir())) == 3


def test_two_hundred_launches_back_to_back(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    begin = time.perf_counter()
    for number in range(200):
        rig.start("true", name=f"work-{number}")
    launched = time.perf_counter()
    ends: list[End] = []

    def all_ended() -> bool:
        ends.extend(rig.runner.collect())
        return len(ends) == 200

    until(all_ended)
    with capsys.disabled():
        spans = (launched - begin) * 1000, (time.perf_counter() - begin) * 1000
        sys.stdout.write(f"\n200 launches: {spans[0]:.0f} ms, {spans[1]:.0f} ms until all ends are known\n")
    assert {end.outcome for end in ends} == {Outcome.SUCCEEDED}


# -- output


def blocks_of(path: Path) -> int:
    return path.stat().st_blocks * 512


@pytest.mark.timeout(120)
def test_a_gigabyte_of_output_takes_no_gigabyte_of_disk(rig: Rig) -> None:
    rig.shell("echo the head; head -c 1G /dev/zero; echo; echo the tail")
    log = rig.state / rig.logs[1]
    most = 0
    ends: list[End] = []
    while not ends:
        deadline = rig.runner.deadline()
        assert deadline is not None
        select.select([], [], [], max(0, deadline - rig.clock.awake()) / SECOND)
        most = max(most, blocks_of(log))
        ends = rig.runner.collect()
    content = log.read_bytes()
    assert len(content) <= LIMIT
    assert content.startswith(b"the head\n")
    assert content.endswith(b"\nthe tail\n")
    marker = content[content.index(b"\n[ankita-agent: ") :].split(b"\n")[1]
    lost = int(marker.split()[1])
    assert lost + len(content) - len(marker) - 2 == len(b"the head\n") + (1 << 30) + len(b"\nthe tail\n")
    assert most < (1 << 30), f"{most} bytes of disk at the most"


@pytest.mark.parametrize("content", [b"no end of line", b"\xff\xfe\x00 \x80", b"a\0b\n\0", b"", b"\r\n\r"])
def test_output_is_kept_byte_for_byte(rig: Rig, content: bytes) -> None:
    (rig.home / "content").write_bytes(content)
    rig.shell(f"cat {shlex.quote(str(rig.home / 'content'))}; cat /does/not/exist 2>&1 >/dev/null | head -c 0")
    rig.end()
    assert rig.output() == content


def test_output_and_errors_go_to_one_private_file(rig: Rig) -> None:
    rig.shell("echo out; echo err >&2")
    rig.end()
    assert rig.output() == b"out\nerr\n"
    log = rig.state / rig.logs[1]
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.parent.stat().st_mode) == stat.S_IMODE(log.parent.parent.stat().st_mode) == 0o700


# -- exits, and what cannot be started


def test_exit_status_75_is_skipped(rig: Rig) -> None:
    rig.shell("exit 75")
    end = rig.end()
    assert (end.outcome, end.reason, end.exit_code) == (Outcome.SKIPPED, Reason.ASKED, 75)


def make(path: Path, content: str, mode: int = 0o755) -> str:
    path.write_text(content, newline="")
    path.chmod(mode)
    return str(path)


def refused(rig: Rig, *argv: str, **fields: Any) -> str:
    end = rig.launch(*argv, **fields)
    assert isinstance(end, End)
    assert (end.outcome, end.reason) == (Outcome.FAILED, Reason.SPAWN)
    assert "\n" not in end.detail
    return end.detail


def test_a_program_that_is_not_on_path_is_told_with_the_path(rig: Rig) -> None:
    assert f"no such program on PATH ({PATH})" in refused(rig, "no-such-program")


def test_a_missing_file_is_told(rig: Rig) -> None:
    assert "there is no file '/no/such/program'" in refused(rig, "/no/such/program")
    link = rig.home / "link"
    link.symlink_to("nowhere")
    assert "a link to 'nowhere'" in refused(rig, str(link))


def test_a_file_that_is_not_executable_is_told_with_the_command_that_mends_it(rig: Rig) -> None:
    path = make(rig.home / "script", "#!/bin/sh\n", 0o644)
    assert f"run: chmod +x {path}" in refused(rig, path)
    assert f"run: chmod +x {path}" in refused(rig, "script", env={"PATH": str(rig.home)})


def test_a_directory_is_told(rig: Rig) -> None:
    assert "is a directory" in refused(rig, str(rig.home))


def test_a_missing_interpreter_is_told_and_not_the_script(rig: Rig) -> None:
    path = make(rig.home / "script", "#!/no/such/python -u\n")
    assert "names a program that is not there (#!/no/such/python -u)" in refused(rig, path)


def test_windows_line_ends_are_told(rig: Rig) -> None:
    path = make(rig.home / "script", "#!/bin/sh\r\necho\r\n")
    assert "ends as on Windows" in refused(rig, path)


def test_a_script_without_a_first_line_is_told(rig: Rig) -> None:
    path = make(rig.home / "script", "echo hello\n")
    assert "begins with a line like #!/bin/sh" in refused(rig, path)


def test_a_working_directory_that_is_gone_is_told_and_not_the_program(rig: Rig) -> None:
    assert "its working directory '/no/such/place' is not there" in refused(rig, "true", cwd="/no/such/place")
    path = make(rig.home / "file", "")
    assert "is not a directory" in refused(rig, "true", cwd=path)


def test_arguments_that_are_too_long_are_told(rig: Rig) -> None:
    assert "too long" in refused(rig, "true", "x" * 3_000_000)


def test_a_nul_in_an_argument_is_told(rig: Rig) -> None:
    assert "null byte" in refused(rig, "true", "a\0b")


def test_after_a_refusal_the_routine_can_be_started_again(rig: Rig) -> None:
    refused(rig, "no-such-program")
    rig.start("true")
    assert rig.end().outcome is Outcome.SUCCEEDED


# -- identity


def test_a_process_is_observed_from_its_start_to_its_end(rig: Rig) -> None:
    process = rig.start("sleep", "1000")
    assert rig.processes.observe(process) is Observed.RUNNING
    os.kill(process.pid, signal.SIGKILL)
    until(lambda: ended(process.pid))
    assert rig.processes.observe(process) is Observed.GONE  # a zombie
    rig.end()
    assert rig.processes.observe(process) is Observed.GONE
    assert not rig.processes.signal_recorded(process, signal.SIGKILL)


def test_a_thread_is_no_process(rig: Rig) -> None:
    rig.start(
        *python(
            "import threading, os\n"
            "def run():\n"
            "    os.write(1, b'%d ready\\n' % threading.get_native_id())\n"
            "    threading.Event().wait()\n"
            "threading.Thread(target=run).start()\n"
        )
    )
    thread = number_in(rig.said(b"ready"))
    ticks = int(Path(f"/proc/{thread}/stat").read_bytes().rpartition(b")")[2].split()[19])
    here = rig.processes.this_process()
    assert rig.processes.observe(ProcessId(thread, ticks, here.boot, here.namespace)) is Observed.GONE


def test_a_recorded_process_is_signalled_with_its_group(rig: Rig) -> None:
    process = rig.shell("sleep 1000 & echo $! ready; wait")
    child = number_in(rig.said(b"ready"))
    other = ProcessId(process.pid, process.ticks + 1, process.boot, process.namespace)
    assert not rig.processes.signal_recorded(other, signal.SIGKILL)
    assert rig.processes.signal_recorded(process, signal.SIGKILL)
    rig.end()
    until(lambda: ended(child))
