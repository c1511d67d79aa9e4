"""Owning, checking and giving back, on real files in one process."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ankita_agent.app.claim import Card, Progress, Role, read_claim, read_life
from ankita_agent.app.owner import CLAIM, FIRED, GUARD, LIFE, LOWEST_LOCK, OWN, Owner, Standing
from ankita_agent.core.errors import Fenced
from ankita_agent.core.instants import Monotonic, parse_instant
from ankita_agent.core.rows import ProcessId
from tests.simulation import KnownFiles

NOW = parse_instant("2026-03-03T12:00:00Z")


class Place:
    """A state directory and the agents over it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.own = path / OWN
        self.files = KnownFiles()
        self._owners: list[Owner] = []

    def agent(self, token: str) -> Owner:
        card = Card(token, ProcessId(os.getpid(), 1, "boot", 2), os.getuid(), "0.1", None, "host")
        owner = Owner(self.files, self.files.open_directory(str(self.path)), str(self.path), card)
        owner.announce()
        self._owners.append(owner)
        return owner

    def seated(self, token: str, term: int = 1) -> Owner:
        owner = self.agent(token)
        assert owner.try_acquire()
        owner.seat(term, NOW)
        owner.keep_term()
        return owner

    def leave(self) -> None:
        for owner in self._owners:
            owner.leave()
        self.files.close_all()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path)
    yield found
    found.leave()


def test_one_agent_owns_and_a_second_does_not(place: Place) -> None:
    assert place.agent("a").try_acquire()
    assert not place.agent("b").try_acquire()


def test_the_claim_says_who_owns_in_which_term(place: Place) -> None:
    owner = place.seated("a", term=7)
    claim = owner.claim()
    assert claim is not None
    assert (claim.card.token, claim.term, claim.since) == ("a", 7, NOW)
    assert owner.known_term() == 7


def test_ownership_given_back_is_free_at_once_and_leaves_no_claim(place: Place) -> None:
    owner = place.seated("a")
    owner.release()
    assert owner.standing is Standing.RELEASED
    assert not (place.own / CLAIM).exists()
    assert (place.own / GUARD).exists(), "the guard is never removed"
    assert place.agent("b").try_acquire()


def test_a_release_leaves_the_claim_of_another_alone(place: Place) -> None:
    first = place.seated("a")
    claim = (place.own / CLAIM).read_bytes()
    first.release()
    (place.own / CLAIM).write_bytes(claim.replace(b'"a"', b'"z"'))
    first.release()
    assert (place.own / CLAIM).exists()


@pytest.mark.parametrize("content", [b"", b"garbage", b"{}", b'{"v": 2, "token": 1}', b"\xff" * 5000])
def test_a_claim_that_is_torn_or_garbage_does_not_keep_anybody_from_owning(place: Place, content: bytes) -> None:
    place.agent("a")
    (place.own / CLAIM).write_bytes(content)
    assert place.seated("b").claim() is not None


def test_a_claim_of_a_living_pid_is_obsolete_for_whoever_holds_the_guard(place: Place) -> None:
    place.seated("a").release()
    first = place.seated("c")
    claim = (place.own / CLAIM).read_bytes()
    first.release()
    (place.own / CLAIM).write_bytes(claim)
    assert place.agent("d").try_acquire()


def test_a_check_finds_everything_in_order(place: Place) -> None:
    assert place.seated("a").check() is False


@pytest.mark.parametrize("content", [None, b"", b"{torn"])
def test_a_claim_that_is_gone_or_torn_is_written_again(place: Place, content: bytes | None) -> None:
    owner = place.seated("a")
    if content is None:
        (place.own / CLAIM).unlink()
    else:
        (place.own / CLAIM).write_bytes(content)
    assert owner.check() is True
    claim = owner.claim()
    assert claim is not None
    assert claim.card.token == "a"


def test_a_claim_of_another_token_fences(place: Place) -> None:
    owner = place.seated("a")
    (place.own / CLAIM).write_bytes((place.own / CLAIM).read_bytes().replace(b'"a"', b'"z"'))
    with pytest.raises(Fenced):
        owner.check()


def test_a_guard_that_was_removed_or_replaced_fences(place: Place) -> None:
    owner = place.seated("a")
    (place.own / GUARD).rename(place.own / "kept")
    with pytest.raises(Fenced):
        owner.check()
    (place.own / GUARD).touch()
    with pytest.raises(Fenced):
        owner.check()


def test_a_directory_that_was_moved_away_fences(place: Place) -> None:
    owner = place.seated("a")
    place.own.rename(place.path / "elsewhere")
    with pytest.raises(Fenced):
        owner.check()
    place.own.mkdir(0o700)
    with pytest.raises(Fenced):
        owner.check()


def test_a_state_directory_that_was_moved_away_is_not_owned_by_who_waited_for_it(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    there = Place(state)
    waiting = there.agent("waits")
    state.rename(tmp_path / "moved")
    state.mkdir()
    with pytest.raises(Fenced):
        waiting.try_acquire()
    there.leave()


def test_a_removed_guard_does_not_let_a_second_agent_own(place: Place) -> None:
    place.seated("a")
    (place.own / GUARD).unlink()
    assert not place.agent("b").try_acquire(), "the directory is locked too"


def test_an_agent_lives_exactly_as_long_as_its_life_file_is_locked(place: Place) -> None:
    watcher, other = place.agent("a"), place.agent("b")
    assert watcher.lives("b")
    other.leave()
    assert not watcher.lives("b")
    assert not watcher.lives("never-was")


def test_life_files_of_the_dead_are_swept_by_the_next_owner(place: Place) -> None:
    place.agent("a")
    (place.own / LIFE / "dead").write_bytes(b"")
    place.seated("b")
    assert sorted(os.listdir(place.own / LIFE)) == ["a", "b"]


def test_progress_is_written_in_place_beside_the_card(place: Place) -> None:
    owner = place.seated("a")
    for passes in (9, 100_000):
        owner.stamp(Progress(Monotonic(5), passes, busy=True, role=Role.OWNER))
        card, progress = read_life((place.own / LIFE / "a").read_bytes())
        assert card is not None
        assert card.token == "a"
        assert progress == Progress(Monotonic(5), passes, busy=True, role=Role.OWNER)


def test_the_known_term_survives_a_lost_claim_and_a_lost_term_file(place: Place) -> None:
    owner = place.seated("a", term=9)
    (place.own / "term").unlink()
    assert owner.known_term() == 9
    owner.keep_term()
    (place.own / CLAIM).unlink()
    assert owner.known_term() == 9


def test_the_term_of_an_owner_that_died_before_its_file_was_written_is_known_by_its_claim(place: Place) -> None:
    place.seated("a", term=6).release()
    owner = place.agent("b")
    assert owner.try_acquire()
    owner.seat(7, NOW)
    assert (place.own / "term").read_text() == "6\n"
    assert place.agent("c").known_term() == 7


def test_the_newest_fire_is_known_to_the_next_owner_whatever_it_was_before(place: Place) -> None:
    owner = place.seated("a")
    assert owner.known_fire() == 0
    for fire in (9, 3_000_001, 10):
        owner.note_fire(fire)
        assert (place.own / FIRED).read_bytes() == f"{fire:020}\n".encode()
    owner.release()
    assert place.seated("b").known_fire() == 10


@pytest.mark.parametrize("content", [b"", b"garbage", b"\xff" * 21, b"\0" * 21])
def test_a_torn_number_of_the_newest_fire_keeps_nobody_from_owning(place: Place, content: bytes) -> None:
    (place.path / OWN).mkdir(0o700, exist_ok=True)
    (place.own / FIRED).write_bytes(content)
    owner = place.seated("a")
    assert owner.known_fire() == 0
    owner.note_fire(7)
    assert owner.known_fire() == 7


def test_a_doubt_about_the_ledger_outlives_its_owner_until_it_is_settled(place: Place) -> None:
    first = place.seated("a")
    assert not first.doubts_ledger()
    first.doubt_ledger()
    first.release()
    second = place.seated("b")
    assert second.doubts_ledger()
    second.trust_ledger()
    second.trust_ledger()
    assert not second.doubts_ledger()


def test_locks_stand_above_every_other_descriptor_so_that_a_dead_owner_lets_go_of_them_first(place: Place) -> None:
    owner = place.seated("a")
    locked = [(place.own / name).stat().st_ino for name in (GUARD, f"{LIFE}/{owner.token}")]
    numbers = [int(name) for name in os.listdir("/dev/fd") if os.path.exists(f"/dev/fd/{name}")]
    ours = [number for number in numbers if os.fstat(number).st_ino in locked]
    assert len(ours) == 2
    assert min(ours) >= LOWEST_LOCK


def test_a_fork_of_the_owner_owns_nothing_and_the_parent_keeps_all(place: Place) -> None:
    owner = place.seated("a")
    child = os.fork()
    if child == 0:
        try:
            owner.check()
        except Fenced:
            owner.leave()
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert owner.check() is False
    assert not place.agent("b").try_acquire()


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b'{"token": "a"}', b"\x00" * 100])
def test_what_is_no_claim_reads_as_none(content: bytes) -> None:
    assert read_claim(content) is None
    assert read_life(content) == (None, None)
