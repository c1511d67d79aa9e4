"""The loop's one wait on Linux: epoll over signals, inotify, a timer and a pipe."""

import ctypes
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Sequence
from types import FrameType

from inotify_simple import INotify, flags

from ankita_agent.core.instants import SECOND, Duration
from ankita_agent.ports.wakeups import Happened

_CHANGES = (
    flags.CLOSE_WRITE
    | flags.MOVED_TO
    | flags.MOVED_FROM
    | flags.CREATE
    | flags.DELETE
    | flags.ATTRIB
    | flags.DELETE_SELF
    | flags.MOVE_SELF
)


def _note(number: int, frame: FrameType | None) -> None:
    """Do nothing: the interpreter has already written the number to the wake-up descriptor."""


def _ignored_on_purpose(number: int) -> bool:
    return number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN


def _undo_inherited() -> None:
    """Let every signal through, and put those that are ignored back to their defaults; handlers stay.

    A blocked one that waits is delivered at once, so handlers must be in place before. Attempts inherit both
    (execve(2)), but for the two that the interpreter ignores and subprocess restores.
    """
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) is signal.SIG_IGN and not _ignored_on_purpose(number):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


class _Alarm:
    """A timer as a descriptor that becomes readable (timerfd_create(2); Python has it from 3.13 on).

    Not epoll's own timeout: that is rounded up to milliseconds, and the kernel may let it be late by a thousandth
    of the wait besides, which is 30 ms after half a minute (select_estimate_accuracy, fs/select.c).
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor: int = self._libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_CLOEXEC | os.O_NONBLOCK)
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "timerfd_create")

    def set(self, span: Duration) -> None:
        """Become readable after that time, and not before; what was set earlier is forgotten."""
        once = (ctypes.c_long * 4)(0, 0, *divmod(max(1, span), SECOND))  # struct itimerspec; zero would mean never
        self._libc.timerfd_settime(self.descriptor, 0, once, None)


class LinuxWakeups:
    """ports.wakeups.Wakeups over epoll(7), inotify(7), timerfd_create(2) and signal.set_wakeup_fd.

    Construct it in the main thread and before anything that a signal must not interrupt: from then on the
    signals given are events, except a hang-up that this process was started to ignore, as by nohup(1). What it
    was started to block, or to ignore otherwise, is undone: a standby can be told to stop, and no attempt inherits it.
    """

    def __init__(self, signals: Sequence[int]) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        heeded = [number for number in (*signals, signal.SIGCHLD) if not _ignored_on_purpose(number)]
        self._previous = {number: signal.signal(number, _note) for number in heeded}
        self._previous_wakeup = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        _undo_inherited()
        self._poke_reader, self._poke_writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._epoll = select.epoll()
        self._epoll.register(self._reader, select.EPOLLIN)
        self._epoll.register(self._poke_reader, select.EPOLLIN)
        self._alarm = _Alarm()
        self._epoll.register(self._alarm.descriptor, select.EPOLLIN)
        self._inotify: INotify | None = None
        self._watches: dict[int, str] = {}

    def watch(self, name: str, directory: str) -> bool:
        """Report changes in `directory` under `name`."""
        try:
            if self._inotify is None:
                self._inotify = INotify()
                self._epoll.register(self._inotify.fileno(), select.EPOLLIN)
            number = self._inotify.add_watch(directory, _CHANGES)
        except OSError:
            return False
        self._watches[number] = name
        return True

    def forget(self, name: str) -> None:
        """Stop watching every directory under that name."""
        for number in [number for number, known in self._watches.items() if known == name]:
            del self._watches[number]
            assert self._inotify is not None
            try:
                self._inotify.rm_watch(number)
            except OSError:  # the directory went, and its watch with it
                pass

    def wait(self, at_most: Duration) -> Happened:
        """Wait until something happens, at most this long."""
        self._alarm.set(at_most)
        ready = {descriptor for descriptor, _ in self._epoll.poll()}
        numbers = self._signals() if self._reader.fileno() in ready else b""
        poked = self._poke_reader in ready and bool(_drained(self._poke_reader))
        return Happened(
            signals=tuple(dict.fromkeys(number for number in numbers if number != signal.SIGCHLD)),
            child=signal.SIGCHLD in numbers,
            changed=self._changes() if self._inotify and self._inotify.fileno() in ready else frozenset(),
            poked=poked,
        )

    def poke(self) -> Callable[[], None]:
        """A function that ends the wait, for any thread."""
        writer = self._poke_writer

        def end_wait() -> None:
            try:
                os.write(writer, b"!")
            except BlockingIOError:  # full: the wait is ending anyway
                pass

        return end_wait

    def close(self) -> None:
        """Let go of every descriptor and put the signal handlers back."""
        signal.set_wakeup_fd(self._previous_wakeup)
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        for descriptor in (self._poke_reader, self._poke_writer, self._alarm.descriptor):
            os.close(descriptor)
        if self._inotify is not None:
            self._inotify.close()
        self._epoll.close()
        self._reader.close()
        self._writer.close()

    def _signals(self) -> bytes:
        try:
            return self._reader.recv(4096)
        except BlockingIOError:
            return b""

    def _changes(self) -> frozenset[str]:
        assert self._inotify is not None
        names: set[str] = set()
        for event in self._inotify.read(timeout=0):
            if event.mask & flags.Q_OVERFLOW:
                names.update(self._watches.values())
            elif event.wd in self._watches:
                names.add(self._watches[event.wd])
                if event.mask & flags.IGNORED:  # the directory is gone; whoever watches must look again
                    del self._watches[event.wd]
        return frozenset(names)


def _drained(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except BlockingIOError:
        return b""
