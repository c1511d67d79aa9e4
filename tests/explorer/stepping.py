"""Real processes on a real file system that make one call each time they are told to, for schedules of the explorer.

A program is the same as in the explorer, and so are the descriptors that it sees: the real ones are behind them. What
is no call to a file system (the ledger's term, to be ready) is answered by whoever tells it to go on.
"""

import os
import select
import signal
from multiprocessing.connection import Connection, Pipe
from typing import Any, Final

from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.ports.files import FileFacts
from ankita_agent.testing.kernel import Kind
from ankita_agent.testing.programs import Failed, Process, Program
from ankita_agent.testing.system_calls import Call, Facts
from tests.explorer.actors import STATE

_PATIENCE: Final = 20
"""Seconds until a process that does not answer is a failure; they answer at once."""

_BY_PATH: Final = frozenset({"open_directory", "facts_of"})
_OPENING: Final = frozenset({"open_directory", "open_directory_at", "open_file"})
_NO_FILES: Final = frozenset({"ready", "begin_term", "sees"})


class Stepper:
    """One real process. `pid` is its number in the explorer."""

    def __init__(self, channel: Connection, pid: int) -> None:
        self.pid = pid
        self._channel = channel
        self._real = int(self._received())
        self._life = os.pidfd_open(self._real)
        self.call: Call | None = self._received()

    @property
    def ended(self) -> bool:
        """Whether it makes no more calls."""
        return self.call is None

    def answer(self, given: object = None) -> Any:
        """Have it make its call, or take `given` for an answer; then it stands before its next one."""
        assert self.call is not None
        self._channel.send(given)
        answer = self._received()
        self.call = self._received()
        if self.call is None:
            self._until_dead()
        return answer

    def kill(self) -> None:
        """SIGKILL; afterwards the kernel has closed what it had open."""
        os.kill(self._real, signal.SIGKILL)
        self.call = None
        self._until_dead()

    def end(self) -> None:
        """Whatever it is about to do, it is over."""
        if self.call is not None:
            self.kill()
        try:
            os.waitpid(self._real, 0)
        except ChildProcessError:  # a fork of one of ours
            pass
        os.close(self._life)
        self._channel.close()

    def _received(self) -> Any:
        assert self._channel.poll(_PATIENCE), f"{self.pid} does not answer"
        return self._channel.recv()

    def _until_dead(self) -> None:
        assert select.select([self._life], [], [], _PATIENCE)[0], f"{self.pid} does not end"


def started(program: Program, pid: int, state: str) -> tuple[Stepper, Connection]:
    """A process that runs the program over that state directory; and the channel to a child that it may fork."""
    ours, theirs = Pipe()
    our_spare, their_spare = Pipe()
    real = os.fork()
    if real == 0:
        try:
            _run(program, pid, _Caller(theirs, their_spare, state))
        finally:
            os._exit(1)
    theirs.close()
    their_spare.close()
    return Stepper(ours, pid), our_spare


def _run(program: Program, pid: int, caller: "_Caller") -> None:
    caller.channel.send(os.getpid())
    program(Process(pid, caller.perform))
    caller.channel.send(None)
    os._exit(0)


class _Caller:
    """Makes the calls, in the real process. Descriptors are numbered as the simulated kernel numbers them."""

    def __init__(self, channel: Connection, spare: Connection, state: str) -> None:
        self.channel = channel
        self._spare = spare
        self._state = state
        self._files = PosixFiles()
        self._table: dict[int, Any] = {}

    def perform(self, call: Call) -> Any:
        """Wait to be told, make the call, tell."""
        self.channel.send(call)
        given = self.channel.recv()
        if call.name == "fork":
            return self._fork(*call.arguments)
        try:
            answer = given if call.name in _NO_FILES else self._made(call)
        except OSError as error:
            self.channel.send(Failed(error.errno or 0))
            raise
        self.channel.send(answer)
        return answer

    def _fork(self, child: int) -> int:
        if os.fork() == 0:
            self.channel = self._spare
            self.channel.send(os.getpid())
            return 0
        self.channel.send(child)
        return child

    def _made(self, call: Call) -> Any:
        arguments = list(call.arguments)
        if call.name in _BY_PATH:
            arguments[0] = arguments[0].replace(STATE, self._state, 1)
        else:
            arguments[0] = self._table[call.arguments[0]]
        answer = getattr(self._files, call.name)(*arguments)
        if call.name in _OPENING:
            return self._numbered(answer, 3)
        if call.name == "raised":
            del self._table[call.arguments[0]]
            return self._numbered(answer, call.arguments[1])
        if call.name == "close":
            del self._table[call.arguments[0]]
        if isinstance(answer, FileFacts):
            kind = Kind.FILE if answer.regular else Kind.DIRECTORY if answer.directory else Kind.LINK
            return Facts(answer.inode.number, kind, answer.mode, 1)
        return tuple(answer) if isinstance(answer, list) else answer

    def _numbered(self, real: Any, lowest: int) -> int:
        while lowest in self._table:
            lowest += 1
        self._table[lowest] = real
        return lowest
