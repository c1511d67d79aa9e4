"""The loop's one wait, on the real kernel."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ankita_agent.adapters.linux_wakeups import LinuxWakeups
from ankita_agent.core.instants import MILLISECOND, SECOND, Duration
from ankita_agent.ports.wakeups import Happened

LONG = Duration(20 * SECOND)
SHORT = Duration(5 * MILLISECOND)
NOTHING = Happened()


@pytest.fixture
def wakeups() -> Iterator[LinuxWakeups]:
    made = LinuxWakeups((signal.SIGUSR1, signal.SIGUSR2))
    yield made
    made.close()


def test_a_wait_without_events_ends_when_its_time_is_up(wakeups: LinuxWakeups) -> None:
    assert wakeups.wait(SHORT) == NOTHING
    assert wakeups.wait(Duration(-5)) == NOTHING


def test_signals_before_a_wait_are_not_lost_and_come_in_their_order(wakeups: LinuxWakeups) -> None:
    os.kill(os.getpid(), signal.SIGUSR2)
    os.kill(os.getpid(), signal.SIGUSR1)
    os.kill(os.getpid(), signal.SIGUSR1)
    assert wakeups.wait(LONG).signals == (signal.SIGUSR2, signal.SIGUSR1)
    assert wakeups.wait(SHORT) == NOTHING


def test_the_end_of_a_child_ends_the_wait(wakeups: LinuxWakeups) -> None:
    child = subprocess.Popen(["true"])
    happened = wakeups.wait(LONG)
    child.wait()
    assert happened.child
    assert happened.signals == ()


def test_a_poke_from_another_thread_ends_the_wait(wakeups: LinuxWakeups) -> None:
    thread = threading.Thread(target=wakeups.poke())
    thread.start()
    assert wakeups.wait(LONG).poked
    thread.join()
    assert wakeups.wait(SHORT) == NOTHING


def test_many_pokes_never_block_the_poker(wakeups: LinuxWakeups) -> None:
    poke = wakeups.poke()
    for _ in range(100_000):
        poke()
    assert wakeups.wait(LONG).poked


def test_each_way_of_saving_a_file_is_seen_under_the_name_of_its_watch(wakeups: LinuxWakeups, tmp_path: Path) -> None:
    assert wakeups.watch("config", str(tmp_path))
    target, other = tmp_path / "routines.yaml", tmp_path / "other"
    target.write_text("a")
    assert wakeups.wait(LONG).changed == {"config"}
    other.write_text("b")
    os.replace(other, target)
    assert wakeups.wait(LONG).changed == {"config"}
    target.chmod(0o600)
    assert wakeups.wait(LONG).changed == {"config"}
    target.unlink()
    assert wakeups.wait(LONG).changed == {"config"}


def test_two_directories_may_share_a_name_and_be_forgotten_together(wakeups: LinuxWakeups, tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in "abc")
    for directory in (first, second, third):
        directory.mkdir()
    assert wakeups.watch("config", str(first))
    assert wakeups.watch("config", str(second))
    assert wakeups.watch("requests", str(third))
    (second / "x").touch()
    assert wakeups.wait(LONG).changed == {"config"}
    wakeups.forget("config")
    (first / "x").touch()
    (third / "x").touch()
    assert wakeups.wait(LONG).changed == {"requests"}


def test_a_directory_that_goes_and_comes_back_can_be_watched_again(wakeups: LinuxWakeups, tmp_path: Path) -> None:
    directory = tmp_path / "config"
    directory.mkdir()
    assert wakeups.watch("config", str(directory))
    directory.rmdir()
    assert wakeups.wait(LONG).changed == {"config"}
    assert not wakeups.watch("config", str(directory)), "there is nothing to watch"
    directory.mkdir()
    assert wakeups.watch("config", str(directory))
    (directory / "x").touch()
    assert "config" in wakeups.wait(LONG).changed


def test_closing_puts_the_signal_handlers_back() -> None:
    before, descriptors = signal.getsignal(signal.SIGUSR1), len(os.listdir("/proc/self/fd"))
    made = LinuxWakeups((signal.SIGUSR1,))
    assert signal.getsignal(signal.SIGUSR1) is not before
    made.close()
    assert signal.getsignal(signal.SIGUSR1) is before
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_signals_that_the_parent_blocked_or_ignored_are_heard() -> None:
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGUSR2,))
    os.kill(os.getpid(), signal.SIGUSR2)  # it waits from before, and ends nobody
    made = LinuxWakeups((signal.SIGUSR1, signal.SIGUSR2))
    os.kill(os.getpid(), signal.SIGUSR1)
    assert made.wait(LONG).signals == (signal.SIGUSR2, signal.SIGUSR1)
    made.close()
    signal.signal(signal.SIGUSR1, before)
