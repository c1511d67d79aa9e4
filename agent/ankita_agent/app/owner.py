"""Single ownership of a state directory: taking it, checking it at each pass, giving it back.

The problem: two agents over one state directory send every message twice, and a file that says who owns can
lie: its writer dies, its pid is reused, somebody deletes it. POSIX has no compare-and-unlink, so "judge the old
owner dead, unlink, retry" gives two owners however it is arranged.

The rule: the kernel decides, files advise. Who holds flock(2) on the directory `own` and on `own/guard` owns,
for as long as it holds them; the kernel lets go when the process dies, whatever killed it. The guard is never
unlinked, renamed or replaced. The claim in the file is obsolete for whoever holds the guard. Each pass checks
that both paths still name the locked inodes and that the claim is ours. The directory is locked too because a
stranger may delete the guard: the next agent then finds the directory locked.

tests/unit/test_owner.py and tests/real/test_ownership.py hold it. Rejected: a claim with a recovery sidecar,
rename-aside, heartbeat expiry, a time to live: each lets two own, or none.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from ankita_agent.app.claim import (
    HIGHEST_TERM,
    LIMIT,
    PROGRESS_AT,
    Card,
    ClaimCard,
    Progress,
    read_claim,
    write_claim,
    write_life,
    write_progress,
)
from ankita_agent.app.documents import MOST, Garbage, whole_number
from ankita_agent.core.errors import Fenced
from ankita_agent.core.instants import Instant
from ankita_agent.ports.files import Descriptor, Files

OWN = "own"
GUARD = "guard"
CLAIM = "claim.json"
TERM = "term"
FIRED = "fired"
BEHIND = "behind"
LIFE = "life"

LOWEST_LOCK = 200
"""Lowest descriptor of a lock of ours: above everything else, and below the limit of macOS (256).

The kernel closes what a dead process had open from the highest number down (task_work_add in the sources of
Linux), and an inotify takes it up to 30 ms: a standby need not wait for that.
"""


class Standing(Enum):
    """Where an agent stands."""

    WAITING = auto()  # holds neither lock
    SEATED = auto()  # holds both locks
    RELEASED = auto()  # gave them back
    CHILD = auto()  # a fork of the agent: owns nothing and must touch nothing


@dataclass(frozen=True, slots=True)
class _Locks:
    directory: Descriptor
    guard: Descriptor


class Owner:
    """One agent process and its ownership. Used by one thread; `wait` alone may run on another.

    Promise: at most one process is SEATED per state directory. Limit: local file systems where flock works,
    and the moment between a check and what follows it.
    """

    def __init__(self, files: Files, state: Descriptor, state_path: str, card: Card) -> None:
        self._files = files
        self._path = f"{state_path}/{OWN}"
        self._state = state
        self._card = card
        self._locks: _Locks | None = None
        self._life: Descriptor | None = None
        self._life_directory: Descriptor | None = None
        self._fired: Descriptor | None = None
        self._term: int | None = None
        self._since = Instant(0)
        self._term_is_kept = False
        self.standing = Standing.WAITING
        files.make_directory(state, OWN)
        self._own = files.open_directory_at(state, OWN)
        files.on_fork(self._in_child)

    @property
    def token(self) -> str:
        """This agent process, for ever: 128 random bits in hex."""
        return self._card.token

    @property
    def directory(self) -> Descriptor:
        """The directory `own`, for what else the owner shows there."""
        return self._own

    def announce(self) -> None:
        """Lock a life file of our own: from now on its lock proves that we live.

        Between its making and its locking it looks like that of a dead agent, and an owner that sweeps may
        remove it, under its lock. So it counts once it is locked and still there.
        """
        self._files.make_directory(self._own, LIFE)
        self._life_directory = self._files.open_directory_at(self._own, LIFE)
        while True:
            life = self._raised(self._files.open_file(self._life_directory, self._card.token))
            self._files.wait_lock(life)
            if self._names(self._life_directory, self._card.token, life):
                break
            self._files.close(life)
        self._life = life
        self._files.overwrite(life, 0, write_life(self._card))

    def try_acquire(self) -> bool:
        """Take both locks unless somebody has one."""
        return self._take(self._files.try_lock)

    def wait(self) -> None:
        """Wait in the kernel until both locks are ours; `acquired` then tells. For a thread of its own."""

        def wait_and_tell(descriptor: Descriptor) -> bool:
            self._files.wait_lock(descriptor)
            return True

        while not self._take(wait_and_tell):
            pass

    def seat(self, term: int, now: Instant) -> None:
        """Publish the ownership whose term the ledger has given: the claim, durable. `keep_term` must follow."""
        assert self._locks is not None
        self._term, self._since, self._term_is_kept = term, now, False
        self._publish()

    def keep_term(self) -> None:
        """Keep the term, durably, where it outlives the claim; until then the claim alone knows it.

        Before the first slot is claimed, and after the claim, since for as long as it takes nobody would own.
        """
        self._files.replace(self._own, TERM, f"{self._term}\n".encode())
        self._term_is_kept = True
        self._close_fired()
        self._fired = self._files.open_file(self._own, FIRED)  # now: later there may be no descriptor left
        self._sweep()

    def known_term(self) -> int:
        """The highest term that the files know; 0 when they know none."""
        claim = self.claim()
        from_claim = claim.term if claim is not None and claim.term <= HIGHEST_TERM else 0
        return max(self._number_in(TERM, HIGHEST_TERM), from_claim)

    def known_fire(self) -> int:
        """The number of the newest fire that may have started; 0 when the files know none."""
        return self._number_in(FIRED, MOST)

    def note_fire(self, fire: int) -> None:
        """Keep the number of the newest fire, claimed and not started yet: a ledger below it has lost rows.

        In place and not durable, it need not be: the claim is, so a loss of power can only leave an older
        number here. Raises OSError; then the fire must not start.
        """
        assert self._fired is not None
        self._files.overwrite(self._fired, 0, b"%020d\n" % fire)

    def doubt_ledger(self) -> None:
        """Keep, durably, that the ledger lost rows: whoever owns next must know, until they are written off."""
        self._files.replace(self._own, BEHIND, b"")

    def doubts_ledger(self) -> bool:
        """Whether rows were lost that are not written off yet."""
        return BEHIND in self._files.names(self._own)

    def trust_ledger(self) -> None:
        """Every slot has its row again. Not durable: slots that are written off twice fire no more for that."""
        self._files.unlink(self._own, BEHIND)

    def claim(self) -> ClaimCard | None:
        """Who the claim file says owns; advice."""
        return read_claim(self._known(CLAIM))

    def check(self) -> bool:
        """Whether the claim had to be rewritten; raises Fenced when we do not own any more.

        Not ours: the path names another directory or guard, or the claim bears another token. Ours, and put
        right: the claim is gone or torn. Costs a few system calls; every pass begins with it.
        """
        if self.standing is Standing.CHILD:
            raise Fenced("this process is a fork of the agent", fact="it inherited the descriptors, not the ownership")
        assert self._locks is not None
        try:
            directory = self._files.facts_of(self._path)
            guard = self._files.facts_at(self._locks.directory, GUARD)
        except (FileNotFoundError, NotADirectoryError):
            raise self._fenced("the directory or its guard was removed") from None
        if directory.inode != self._files.facts(self._locks.directory).inode:
            raise self._fenced("another directory stands in its place")
        if guard.inode != self._files.facts(self._locks.guard).inode:
            raise self._fenced("another guard stands in its place")
        claim = self.claim()
        if claim is None:
            self._publish()
            return True
        if claim.card.token != self._card.token:
            raise self._fenced(f"pid {claim.card.process.pid} claims it with term {claim.term}")
        return False

    def stamp(self, progress: Progress) -> None:
        """Show progress in our life file; not durable, it need not be."""
        if self._life is not None:
            self._files.overwrite(self._life, PROGRESS_AT, write_progress(progress))

    def lives(self, token: str) -> bool:
        """Whether the agent with that token lives: somebody holds its life file's lock. In doubt it does."""
        return self._look_at_life(token, bury=False)

    def release(self) -> None:
        """Give ownership back; our life file stays locked for as long as we live. Idempotent.

        A claim that alone knows the term stays: obsolete for whoever gets the locks, but for that number.
        """
        if self.standing is not Standing.SEATED or self._locks is None:
            return
        self.standing = Standing.RELEASED
        try:
            claim = self.claim() if self._term_is_kept else None
            if claim is not None and claim.card.token == self._card.token:
                self._files.unlink(self._own, CLAIM)
        except OSError:  # it is advice, and obsolete for whoever gets the locks
            pass
        self._let_go()

    def leave(self) -> None:
        """The end of this agent: release, and take the life file away."""
        if self.standing is Standing.CHILD:
            return
        self.release()
        self._take_life_away()

    def _take(self, lock: Callable[[Descriptor], bool]) -> bool:
        """Lock directory and guard by `lock`, then make sure that the paths still name what was locked."""
        self._files.make_directory(self._state, OWN)  # somebody may have removed it while we waited
        directory = self._raised(self._files.open_directory_at(self._state, OWN))
        guard = self._lock_guard(directory, lock) if lock(directory) else None
        if guard is None:
            self._files.close(directory)
            return False
        self._locks = _Locks(directory, guard)
        self._move_to(directory)
        self.standing = Standing.SEATED
        return True

    def _lock_guard(self, directory: Descriptor, lock: Callable[[Descriptor], bool]) -> Descriptor | None:
        try:
            guard = self._raised(self._files.open_file(directory, GUARD))
        except FileNotFoundError:  # the directory was removed while we waited for it
            return None
        named = lock(guard) and self._names(directory, GUARD, guard)
        if named and self._is_where_it_was(directory):
            return guard
        self._files.close(guard)
        return None

    def _raised(self, descriptor: Descriptor) -> Descriptor:
        return self._files.raised(descriptor, LOWEST_LOCK)

    def _move_to(self, directory: Descriptor) -> None:
        """Announce ourselves in the directory that we own: it may be another than when we began to wait."""
        if self._files.facts(directory).inode == self._files.facts(self._own).inode:
            return
        self._take_life_away()
        self._files.close(self._own)
        self._own = self._files.open_directory_at(self._state, OWN)
        self.announce()

    def _is_where_it_was(self, directory: Descriptor) -> bool:
        """Whether the path still leads to the directory: the ledger is opened by path, and must be of this owner.

        Raises Fenced when the state directory itself was moved away: what stands there now is not ours to own.
        """
        if not self._names(self._state, OWN, directory):
            return False
        try:
            same = self._files.facts_of(self._path).inode == self._files.facts(directory).inode
        except (FileNotFoundError, NotADirectoryError):
            same = False
        if not same:
            raise Fenced(
                f"the directory {self._path!r} is not the one that this agent waited for",
                fact="it was moved away or replaced meanwhile",
                now="nothing was started",
                do="start again, in the directory that is there now: ankita-agent run",
            )
        return True

    def _names(self, parent: Descriptor, name: str, opened: Descriptor) -> bool:
        """Whether that name still names what was opened."""
        try:
            return self._files.facts_at(parent, name).inode == self._files.facts(opened).inode
        except FileNotFoundError:
            return False

    def _number_in(self, name: str, most: int) -> int:
        try:
            return whole_number(self._known(name), 0, most)
        except Garbage:
            return 0

    def _known(self, name: str) -> bytes:
        """What a file of ours holds; nothing when it is not there, or is no file. Raises OSError."""
        try:
            return self._files.read(self._own, name, LIMIT + 1)
        except FileNotFoundError:
            return b""
        except OSError:
            if self._files.facts_at(self._own, name).regular:
                raise
            return b""

    def _publish(self) -> None:
        self._files.replace(self._own, CLAIM, self._written_claim())

    def _written_claim(self) -> bytes:
        assert self._term is not None
        return write_claim(ClaimCard(self._card, self._term, self._since))

    def _sweep(self) -> None:
        """Remove the life files of the dead: whose lock is free, that agent is gone, and its token never returns."""
        assert self._life_directory is not None
        for token in self._files.names(self._life_directory):
            self._look_at_life(token, bury=True)

    def _look_at_life(self, token: str, *, bury: bool) -> bool:
        """Whether that agent lives. The file of a dead one is removed if asked, while we hold its lock."""
        assert self._life_directory is not None
        if token == self._card.token:
            return True
        try:
            self._files.facts_at(self._life_directory, token)
            life = self._files.open_file(self._life_directory, token)
        except FileNotFoundError:
            return False
        except OSError:  # unknown means that it may well live
            return True
        try:
            lives = not self._files.try_lock(life)
            if bury and not lives:
                self._files.unlink(self._life_directory, token)
            return lives
        finally:
            self._files.close(life)

    def _take_life_away(self) -> None:
        if self._life is None or self._life_directory is None:
            return
        try:
            self._files.unlink(self._life_directory, self._card.token)
        except OSError:  # an unlocked one counts for nothing
            pass
        self._files.close(self._life)
        self._life = None

    def _fenced(self, fact: str) -> Fenced:
        return Fenced(
            f"lost the ownership of {self._path!r}",
            fact=fact,
            now="no more slots are claimed here and the running attempts are being stopped",
            do="look who owns it: ankita-agent status",
        )

    def _close_fired(self) -> None:
        if self._fired is not None:
            self._files.close(self._fired)
            self._fired = None

    def _let_go(self) -> None:
        assert self._locks is not None
        self._close_fired()
        self._files.close(self._locks.guard)
        self._files.close(self._locks.directory)
        self._locks = None

    def _in_child(self) -> None:
        """In a fork: never own, never unlink. Closing drops only our copies, the parent keeps its locks."""
        self.standing = Standing.CHILD
        if self._locks is not None:
            self._let_go()
