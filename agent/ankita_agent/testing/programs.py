"""Programs that an explorer can run: what one sees of its process, and the places to which its calls lead it.

Where a program is, is all that its calls have answered: it has no clock, no chance and no other sight of the world, so
equal answers leave it in equal places. So a program need neither be kept in the middle of its work nor be copied: for
an answer that it never had at a place it runs once from its beginning, over the answers that led there, up to its next
call. From then on the place is known, and a step costs no run.
"""

import os
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from ankita_agent.testing.simulated_files import Perform, SimulatedFiles
from ankita_agent.testing.system_calls import Call


class _Paused(BaseException):
    """The program has come to a call that has no answer yet. Nothing in it may catch this."""


class Failed(NamedTuple):
    """The answer of a call that raised an OSError."""

    number: int


class Process:
    """What a program sees of the process that it runs in."""

    def __init__(self, pid: int, perform: Perform) -> None:
        self.pid = pid
        self.files = SimulatedFiles(perform)
        self._perform = perform
        self._children = 0
        self.showing: Callable[[], Hashable] = lambda: None
        """What the watch sees of this process while it waits to make a call."""

    def ready(self) -> None:
        """Say that from here on it matters in which order things happen (`Bounds.ready`)."""
        self._perform(Call("ready"))

    def sees(self, pid: int) -> bool:
        """As kill(2) with signal 0: whether there is such a process, whoever it is by now."""
        return bool(self._perform(Call("sees", (pid,))))

    def begin_term(self, known: int) -> int:
        """A term from a ledger that never loses one."""
        return int(self._perform(Call("begin_term", (known,))))

    def fork(self) -> int:
        """As os.fork: the child's pid, and 0 in the child, in which `on_fork` was obeyed."""
        self._children += 1
        child = self.pid * 10 + self._children
        answer = int(self._perform(Call("fork", (child,))))
        if answer == 0:
            self.pid = child
            for obey in self.files.in_children:
                obey()
        return answer


Program = Callable[[Process], None]
"""What a process does, from its start to its end. It reaches the world through its process alone."""


class Place:
    """Where a program is: about to make `call`, or at its end, which may be a `fault`."""

    __slots__ = ("_after", "_answers", "_pid", "_program", "call", "fault", "shown")

    def __init__(self, program: Program, pid: int, answers: tuple[Any, ...] = ()) -> None:
        self._program, self._pid, self._answers = program, pid, answers
        self._after: dict[Any, Place] = {}
        self.call: Call | None = None
        self.shown: Hashable = None
        self.fault: str | None = None
        given = iter(answers)

        def perform(call: Call) -> Any:
            if self.call is not None:  # the program is being left, and tidies up
                raise _Paused
            for answer in given:
                if isinstance(answer, Failed):
                    raise OSError(answer.number, os.strerror(answer.number))
                return answer
            self.call, self.shown = call, process.showing()
            raise _Paused

        process = Process(pid, perform)
        try:
            program(process)
        except _Paused:
            pass
        except Exception as error:  # noqa: BLE001 - whatever a program raises is what was looked for
            self.fault = f"{type(error).__name__}: {error}"

    def answered(self, answer: Any) -> "Place":
        """Where the program is once its call has this answer."""
        place = self._after.get(answer)
        if place is None:
            place = self._after[answer] = Place(self._program, self._pid, (*self._answers, answer))
        return place
