"""What a reading command looks through."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.adapters.state_directory import cannot_write, examine_state_directory
from ankita_agent.adapters.system_clock import SystemClock
from ankita_agent.app.places import Places
from ankita_agent.core.errors import AnkitaError, LedgerDamaged
from ankita_agent.ports.clock import Clock
from ankita_agent.ports.files import Descriptor, Files
from ankita_agent.ports.ledger import LedgerReader
from ankita_agent.ports.outputs import Outputs
from ankita_agent.ports.processes import Processes


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a reading command looks through. `state` and `ledger` are None where there is none yet.

    `problem` is what keeps a ledger that is there from being read.
    """

    files: Files
    clock: Clock
    state: Descriptor | None
    ledger: LedgerReader | None
    problem: AnkitaError | None


@contextmanager
def looking(places: Places) -> Iterator[Outlook]:
    """Open what there is of the state, to look at it: nothing is made, locked or changed."""
    from ankita_agent.adapters.sqlite_ledger import open_reader
    from ankita_agent.core.errors import LedgerTooNew, LedgerUnavailable

    files = PosixFiles()
    try:
        state = files.open_directory(places.state)
    except FileNotFoundError:
        yield Outlook(files, SystemClock(), None, None, None)
        return
    except OSError as error:
        raise examine_state_directory(places.state) or cannot_write(places.state, error) from None
    ledger: LedgerReader | None = None
    problem: AnkitaError | None = None
    try:
        ledger = open_reader(places.ledger)
    except (LedgerDamaged, LedgerTooNew, LedgerUnavailable) as fault:
        problem = fault
    try:
        yield Outlook(files, SystemClock(), state, ledger, problem)
    finally:
        if ledger is not None:
            ledger.close()
        files.close(state)


def look_at_clock() -> Clock:
    """The machine's clock."""
    return SystemClock()


def look_at_processes() -> Processes:
    """Processes, to observe them."""
    from ankita_agent.adapters.posix_processes import PosixProcesses

    return PosixProcesses(0o077)


def look_at_outputs(outlook: Outlook) -> Outputs:
    """The outputs of attempts below an open state directory."""
    from ankita_agent.adapters.attempt_outputs import AttemptOutputs

    assert outlook.state is not None
    return AttemptOutputs(outlook.state)
