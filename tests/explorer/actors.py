"""Actors for the explorer: agents, made of app/owner.py as app/agent.py uses it, and strangers."""

from collections.abc import Callable
from typing import Final, NamedTuple

from ankita_agent.app.claim import Card, ClaimCard, write_claim
from ankita_agent.app.owner import CLAIM, FIRED, GUARD, LIFE, OWN, TERM, Owner
from ankita_agent.app.owner import Standing as Stands
from ankita_agent.core.errors import Fenced
from ankita_agent.core.instants import Instant
from ankita_agent.core.rows import ProcessId
from ankita_agent.ports.files import Descriptor, Files
from ankita_agent.testing.kernel import ROOT, File, Kernel, Kind
from ankita_agent.testing.programs import Process

STATE: Final = "/state"
NOW: Final = Instant(0)

MakeOwner = Callable[[Files, Descriptor, str, Card], Owner]


class Shown(NamedTuple):
    """What the watches see of an agent.

    How it stands; the term that it has published; twice the number of checks that it has passed, and one more while it
    is about another; the name of the life file that it must have.
    """

    stands: str
    term: int | None = None
    checks: int = 0
    life: str | None = None


class Agent:
    """One agent process around the production code. With `files_know` the ledger is lost before each term."""

    def __init__(self, process: Process, make: MakeOwner = Owner, *, files_know: bool = False) -> None:
        self._process = process
        self._files_know = files_know
        state = process.files.open_directory(STATE)
        self.owner = make(process.files, state, STATE, card(process.pid))
        self._term: int | None = None
        self._checks = 0
        self._announced = False
        process.showing = self._shown

    def announce(self) -> None:
        """Show that we live."""
        self.owner.announce()
        self._announced = True
        self._process.ready()

    def serve(self, passes: int) -> None:
        """Begin a term and publish it; then so many passes. A disk that refuses keeps none from going on."""
        known = self.owner.known_term()
        term = known + 1 if self._files_know else self._process.begin_term(known)
        self.owner.seat(term, NOW)
        self._term = term
        self.owner.keep_term()
        for _ in range(passes):
            self._checks |= 1
            try:
                self.owner.check()
                self._checks += 1
            except OSError:
                continue

    def leave(self) -> None:
        """The end."""
        self._announced = False
        self.owner.leave()

    def _shown(self) -> Shown:
        stands = self.owner.standing
        life = self.owner.token if self._announced and stands is not Stands.CHILD else None
        return Shown(stands.name, self._term if stands is Stands.SEATED else None, self._checks, life)


def agent(
    process: Process,
    make: MakeOwner = Owner,
    *,
    waits: bool = False,
    tries: int = 1,
    passes: int = 1,
    files_know: bool = False,
) -> None:
    """From start to end: try (or wait) to own, serve, give back."""
    try:
        me = Agent(process, make, files_know=files_know)
    except OSError:
        return
    try:
        me.announce()
        if waits:
            me.owner.wait()
        elif not any(me.owner.try_acquire() for _ in range(tries)):
            return
        me.serve(passes)
    except (Fenced, OSError):
        return
    finally:
        me.leave()


def newcomer(process: Process, make: MakeOwner = Owner, *, files_know: bool = False) -> None:
    """One that comes when nobody else is there, and so must own."""
    me = Agent(process, make, files_know=files_know)
    me.announce()
    assert me.owner.try_acquire(), "a newcomer that is alone cannot own"
    me.serve(passes=1)
    assert me.owner.claim() is not None, "it owns and nobody can see it"


def card(pid: int) -> Card:
    """The card of the agent with that pid."""
    return Card(f"token-{pid}", ProcessId(pid, 1, "boot", 2), 0, "0.1", None, "host")


def claim_of(pid: int, term: int) -> bytes:
    """The claim of the agent with that pid."""
    return write_claim(ClaimCard(card(pid), term, NOW))


def machine(*, used: bool = True, claimed_by: int | None = None) -> Kernel:
    """A state directory: new, or `used` before by an agent that is gone, whose claim may have been left."""
    kernel, state = Kernel().with_file(ROOT, STATE.strip("/"), File(Kind.DIRECTORY, b"", 0o700))
    if used:
        kernel, own = kernel.with_file(state, OWN, File(Kind.DIRECTORY, b"", 0o700))
        kernel, _ = kernel.with_file(own, LIFE, File(Kind.DIRECTORY, b"", 0o700))
        kernel, _ = kernel.with_file(own, GUARD, File(Kind.FILE, b"", 0o600))
        kernel, _ = kernel.with_file(own, TERM, File(Kind.FILE, b"3\n", 0o600))
        kernel, _ = kernel.with_file(own, FIRED, File(Kind.FILE, b"", 0o600))
        if claimed_by is not None:
            kernel, _ = kernel.with_file(own, CLAIM, File(Kind.FILE, claim_of(claimed_by, 3), 0o600))
        kernel = kernel._replace(newest_term=3)
    return kernel


def cleaner(process: Process) -> None:
    """Somebody who tidies up: has removed all life files; then guard, claim, the rest, the directory itself."""
    files = process.files
    state = files.open_directory(STATE)
    own = files.open_directory_at(state, OWN)
    _empty_life(files, own)
    process.ready()
    for name in (GUARD, CLAIM, TERM, FIRED):
        files.unlink(own, name)
    files.remove_directory(state, OWN)


def thorough_cleaner(process: Process) -> None:
    """The same, all of it while the others work."""
    files = process.files
    state = files.open_directory(STATE)
    process.ready()
    try:
        own = files.open_directory_at(state, OWN)
    except FileNotFoundError:
        return
    for name in files.names(own):
        if name == LIFE:
            _empty_life(files, own)
        else:
            files.unlink(own, name)
    files.remove_directory(state, OWN)


def _empty_life(files: Files, own: Descriptor) -> None:
    life = files.open_directory_at(own, LIFE)
    for token in files.names(life):
        files.unlink(life, token)
    files.remove_directory(own, LIFE)


def mover(process: Process) -> None:
    """Somebody who moves the directory away."""
    process.ready()
    files = process.files
    files.rename(files.open_directory(STATE), OWN, "moved")


def claim_only(process: Process) -> None:
    """A program that knows the claim file alone: it takes it when it is not there, and breaks that of a dead pid."""
    process.ready()
    files = process.files
    state = files.open_directory(STATE)
    files.make_directory(state, OWN)
    own = files.open_directory_at(state, OWN)
    mine = claim_of(process.pid, 1)
    if not files.create(own, CLAIM, mine):
        files.unlink(own, CLAIM)  # it judged the other one dead
        if not files.create(own, CLAIM, mine):
            return
    try:
        if files.read(own, CLAIM, 4096) == mine:
            files.unlink(own, CLAIM)
    except FileNotFoundError:
        return


def guard_remover(process: Process) -> None:
    """Somebody who removes the guard, and nothing else."""
    process.ready()
    files = process.files
    files.unlink(files.open_directory_at(files.open_directory(STATE), OWN), GUARD)


def forking(process: Process, make: MakeOwner = Owner) -> None:
    """An agent that forks while it owns; the child goes on as if nothing had happened."""
    me = Agent(process, make)
    try:
        me.announce()
        if not me.owner.try_acquire():
            return
        me.serve(passes=0)
        process.fork()
        me.owner.check()
    except Fenced:
        return
    finally:
        me.leave()
