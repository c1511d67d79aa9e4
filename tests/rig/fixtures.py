"""The fixtures of the rig, for every test that asks for them; tests/conftest.py names this module as a plugin."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

import pytest

from tests.rig import program
from tests.rig.container import Container, User
from tests.rig.guest import Guest


class Boot(Protocol):
    """Boots a container with the program in it; the guest is the first of the users, or else `User()`."""

    def __call__(self, *users: User, polkit: bool = False) -> AbstractContextManager[Guest]: ...


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the tests run on another systemd than this machine's."""
    parser.addoption("--systemd-tree", metavar="DIR", default="/", help="boot this tree of files, made by .ci/tree")


@pytest.fixture(scope="session")
def tree(pytestconfig: pytest.Config) -> str:
    """What is booted."""
    return os.path.abspath(str(pytestconfig.getoption("--systemd-tree")))


@pytest.fixture(scope="session")
def rig_program(tree: str) -> Iterator[program.Program]:
    """The program as it is in the checkout when the session begins."""
    with program.prepared(tree) as made:
        yield made


@pytest.fixture(scope="session")
def boot(tree: str, rig_program: program.Program) -> Boot:
    """Boots containers, each with a disk of its own: `with boot(User(lingers=False), polkit=True) as guest:`."""

    @contextmanager
    def booted(*users: User, polkit: bool = False) -> Iterator[Guest]:
        with Container(tree, users=users or (User(),), binds=rig_program.binds, polkit=polkit) as box:
            yield Guest(box, box.users[0])

    return booted


@pytest.fixture
def guest(boot: Boot) -> Iterator[Guest]:
    """An ordinary user who lingers, in a container that was booted for this test alone."""
    with boot() as ann:
        yield ann


@pytest.fixture(scope="module")
def shared_guest(boot: Boot) -> Iterator[Guest]:
    """One for the tests of a file, which leave nothing behind that another one could see.

    It must end with them: other files test that the process that runs them has no children left.
    """
    with boot() as ann:
        yield ann


@pytest.fixture
def bare_guest(tree: str) -> Iterator[Guest]:
    """As `guest`, without the program: also a tree boots so that has no Python for it."""
    with Container(tree) as box:
        yield Guest(box, box.users[0])
