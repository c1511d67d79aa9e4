"""An object that lives in a container and is used from outside: how a contract suite asks a real adapter inside.

A process of the user inside makes the object and answers calls, one after another: pickles over its stdin and
stdout. Outside stands a `Remote` with the methods and properties of the port. An exception comes back as it was
raised inside; an answer that does not come within the patience ends the process and is an AssertionError.

Run as a program (`python -m tests.rig.worker`) this module is the inside.
"""

import importlib
import os
import pickle
import select
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Any, Final, Self, TypeVar, cast

from tests.rig.container import kill_entered
from tests.rig.guest import Guest
from tests.rig.program import PYTHON, SOURCE

Port = TypeVar("Port")

PATIENCE: Final = 90.0
"""Seconds for one call: longer than any call of ours may take, so that one without a bound is found out."""


class Worker:
    """A process of the guest's user that holds objects; a context manager."""

    def __init__(self, guest: Guest, *, environment: Mapping[str, str | None] | None = None) -> None:
        self._guest, self._environment = guest, dict(environment or {})

    def __enter__(self) -> Self:
        environment = {"PYTHONPATH": f"{SOURCE}/agent:{SOURCE}", **self._environment}
        command = (PYTHON, "-P", "-m", "tests.rig.worker")
        self._said = tempfile.TemporaryFile()  # not a pipe: nobody would empty it
        self._process = subprocess.Popen(
            self._guest.box.entering_as(self._guest.user, command, environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
        )
        return self

    def __exit__(self, *_: object) -> None:
        kill_entered(self._process)
        self._said.close()

    def call(self, function: str, *arguments: Any, **named: Any) -> Any:
        """What `package.module:function` returns inside, or raises. All of it must be picklable."""
        return self._ask(("call", function, arguments, named))

    def make(self, port: type[Port], factory: str, *arguments: Any, **named: Any) -> Port:
        """The object that `package.module:factory` makes inside, as one of the port."""
        return cast(Port, Remote(self._ask, port, self._ask(("make", factory, arguments, named))))

    def _ask(self, question: tuple[Any, ...]) -> Any:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with suppress(BrokenPipeError):
            pickle.dump(question, stdin)
            stdin.flush()
        if not select.select([stdout], [], [], PATIENCE)[0]:
            kill_entered(self._process)
            raise AssertionError(f"not answered within {PATIENCE:.0f} s: {question[1:]}")
        try:
            answer, fault = pickle.load(stdout)
        except EOFError:
            self._said.seek(0)
            raise AssertionError(f"the worker has ended\n{self._said.read().decode(errors='replace')}") from None
        if fault is not None:
            raise _rebuilt(*fault)
        return answer


class Remote:
    """The outside of an object in a worker: whatever the port names is asked of the object inside."""

    def __init__(self, ask: Callable[[tuple[Any, ...]], Any], port: type[Any], number: int) -> None:
        self._ask, self._port, self._number = ask, port, number

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if isinstance(getattr(self._port, name), property):
            return self._ask(("read", self._number, name))

        def method(*arguments: Any, **named: Any) -> Any:
            return self._ask(("method", self._number, name, arguments, named))

        return method


def _rebuilt(
    kind: type[BaseException], arguments: tuple[Any, ...], fields: dict[str, Any], trace: str
) -> BaseException:
    """The exception raised inside, made without its __init__: not every one can be pickled."""
    error = kind.__new__(kind)
    error.args = arguments
    error.__dict__.update(fields)
    error.add_note(f"inside:\n{trace}")
    return error


def _find(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def _answer(question: tuple[Any, ...], objects: list[Any]) -> Any:
    match question:
        case ("call", str(function), arguments, named):
            return _find(function)(*arguments, **named)
        case ("make", str(factory), arguments, named):
            objects.append(_find(factory)(*arguments, **named))
            return len(objects) - 1
        case ("read", int(number), str(name)):
            return getattr(objects[number], name)
        case ("method", int(number), str(name), arguments, named):
            return getattr(objects[number], name)(*arguments, **named)
        case _:
            raise AssertionError(question)


def _serve(questions: IO[bytes], answers: IO[bytes]) -> None:
    objects: list[Any] = []
    with suppress(EOFError):
        while True:
            question = pickle.load(questions)
            try:
                reply = pickle.dumps((_answer(question, objects), None))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is raised outside
                reply = pickle.dumps((None, (type(error), error.args, error.__dict__, traceback.format_exc())))
            answers.write(reply)
            answers.flush()


if __name__ == "__main__":
    # What the adapter prints must not get among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _serve(sys.stdin.buffer, answers)
