"""Every order of what several processes do, with every death between and within: the search for one that goes wrong.

The problem: a protocol among processes is wrong in one order of a million, and no test with real processes meets it.
The rule: programs are ordinary code over ports.files.Files. Each call is one step of a simulated kernel; a state is the
kernel, where each program is, and what the watch keeps. From every state each process may make its call, die before or
within it, or see it fail, as often as the `Bounds` say; every state that is new is gone on from, the nearest first, so
what goes wrong is told by a shortest story. At each state, moreover, everybody dies, or the power goes with any number
of the last changes that were not flushed: then a newcomer must come to its end, alone.

Two states are one when kernel, places, what has gone wrong so far and the watch's memory are equal: they go on alike,
because a place is all that its program knows (`programs`). They are compared whole, not by a hash. Equal kernels are
one object here (`_one`), and what a call does to a kernel, and what the watch says of one, is found out once.

Calls that nobody else can see or influence (`LOCAL`) follow their predecessor at once. `facts` is one because a file
always shows one link here: **a program that decides by the number of links is not explored.**

tests/explorer/ holds it, by faults put into protocols that it must find. Rejected: greenlets, which cannot be copied,
so that each order had to be run from its beginning; threads; sleep sets (they must know what a watch looks at).
"""

import random
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ankita_agent.testing.kernel import Kernel
from ankita_agent.testing.programs import Failed, Place, Program
from ankita_agent.testing.system_calls import ENDS, FAULTS, LATE_FAULTS, Call, Facts, apply, blocked

LOCAL: Final = frozenset({"facts", "raised"})
"""Calls that follow their predecessor within the same move."""

FIRST: Final = 101
"""The pid of the first program; the others follow."""

NEWCOMER: Final = 9

DIES: Final = "dies before it"
FAILS: Final = "fails"
FAILS_LATE: Final = "fails after it was done"


class Broken(AssertionError):
    """What must hold does not; the text says what was found."""


class Standing(NamedTuple):
    """A process and where it is; nowhere once it was killed."""

    pid: int
    place: Place | None

    @property
    def call(self) -> Call | None:
        """The call that it is about to make; None when it has ended."""
        return self.place.call if self.place else None


class State(NamedTuple):
    """All that decides what can happen next. `memory` is what the watch made of the way here."""

    kernel: Kernel
    processes: tuple[Standing, ...]
    crashes: int = 0
    faults: int = 0
    memory: Hashable = None


Shown = tuple[tuple[int, Any], ...]
"""What each process that has not ended shows, with its pid."""

Watch = Callable[[Kernel, Shown, Hashable], Hashable]
"""Looks at each state, and at what it kept of the one before; gives what to keep, or raises Broken."""


class Move(NamedTuple):
    """One step: a process makes its call (`how` is empty), dies at it, or sees it fail with an errno."""

    pid: int
    how: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may go wrong on one way, and after how many states to give up.

    With `power` it may go at any state; within a call, only after its process has died there. When `ready`, each
    program has come to where it says that it is ready, in turn, before anything else is tried.
    """

    crashes: int = 0
    faults: int = 0
    power: bool = False
    ready: bool = False
    states: int = 2_000_000


@dataclass(frozen=True, slots=True)
class Report:
    """What was found: a story, or that there is none within the bounds once all is `exhausted`."""

    states: int
    steps: int
    exhausted: bool
    story: str | None


class Explorer:
    """The search from one beginning. The names of the programs are for the story."""

    def __init__(
        self,
        kernel: Kernel,
        programs: Mapping[str, Program],
        watch: Watch,
        newcomer: Program | None = None,
        bounds: Bounds = Bounds(),
    ) -> None:
        self._names = {NEWCOMER: "newcomer", **dict(enumerate(programs, FIRST))}
        self._watch = watch
        self._newcomer = Place(newcomer, NEWCOMER) if newcomer else None
        self._bounds = bounds
        self._steps = 0
        self._kernels: dict[Kernel, Kernel] = {}
        self._done: dict[tuple[int, Place], tuple[Kernel, Any]] = {}
        self._ended: dict[tuple[int, int], Kernel] = {}
        self._seen: dict[tuple[int, Shown, Hashable], Hashable] = {}
        self._left: set[Hashable] = set()
        started = (Standing(pid, Place(program, pid)) for pid, program in enumerate(programs.values(), FIRST))
        self.start = State(self._one(kernel._replace(remembers=bounds.power)), tuple(started))
        for index in range(len(programs) if bounds.ready else 0):
            self.start = self._made_ready(self.start, index)

    def explore(self) -> Report:
        """Look at every state, the nearest first."""
        came: dict[Hashable, tuple[State, Move] | None] = {_key(self.start): None}
        ahead = deque([self.start])
        state, move = self.start, None
        try:
            while ahead and len(came) < self._bounds.states:
                state, move = ahead.popleft(), None
                moves = self.moves(state)
                self._look(state, moves)
                for move in moves:
                    after = self.made(state, move)
                    key = _key(after)
                    if key not in came:
                        came[key] = (state, move)
                        ahead.append(after)
        except Broken as broken:
            way = [*_way(came, state), *([move] if move else [])]
            return Report(len(came), self._steps, False, self.story(way, str(broken)))
        return Report(len(came), self._steps, not ahead, None)

    def walk(self, seed: int, walks: int, *, deaths: float = 0.05) -> Report:
        """Go many ways to their ends, chosen by chance; the same seed gives the same ones."""
        chance = random.Random(seed)  # noqa: S311 - repeatable, and no secret
        states = 0
        for _ in range(walks):
            state, way = self.start, list[Move]()
            try:
                while moves := self.moves(state):
                    self._look(state, moves)
                    way.append(_chosen(chance, moves, deaths))
                    states += 1
                    state = self.made(state, way[-1])
                self._look(state, moves)
            except Broken as broken:
                return Report(states, self._steps, False, f"seed {seed}\n{self.story(way, str(broken))}")
        return Report(states, self._steps, False, None)

    def schedule(self, seed: int, *, deaths: float = 0.02) -> list[Move]:
        """One way to its end, chosen by chance; processes die between calls only, and no call fails."""
        chance = random.Random(seed)  # noqa: S311 - as above
        state, way = self.start, list[Move]()
        while moves := [move for move in self.moves(state) if move.how in ("", DIES)]:
            way.append(_chosen(chance, moves, deaths))
            state = self.made(state, way[-1])
        return way

    def moves(self, state: State) -> list[Move]:
        """Everything that can happen next; nothing when every process has ended."""
        calls = list[Move]()
        mishaps = list[Move]()
        may_crash = state.crashes < self._bounds.crashes
        may_fail = state.faults < self._bounds.faults
        for standing in state.processes:
            pid, call = standing.pid, standing.call
            if call is None:
                continue
            if not blocked(state.kernel, pid, call):
                calls.append(Move(pid))
                if may_fail:
                    mishaps += (Move(pid, FAILS, number) for number in FAULTS.get(call.name, ()))
                    if call.name in LATE_FAULTS:
                        mishaps.append(Move(pid, FAILS_LATE))
                if may_crash:
                    mishaps += (Move(pid, end) for end in ENDS.get(call.name, ()))
            if may_crash:
                mishaps.append(Move(pid, DIES))
        return calls + mishaps

    def made(self, state: State, move: Move) -> State:
        """The state after a move. Raises Broken."""
        index = next(index for index, each in enumerate(state.processes) if each.pid == move.pid)
        place = state.processes[index].place
        assert place is not None
        assert place.call is not None
        call, kernel = place.call, state.kernel
        if not move.how:
            return self._called(state, index)
        if move.how == FAILS:
            state = self._moved(state, index, kernel, place.answered(Failed(move.number)))
            return self._watched(state._replace(faults=state.faults + 1))
        if move.how == FAILS_LATE:
            number, work = LATE_FAULTS[call.name]
            kernel, answer = answer_of(kernel, move.pid, call, work)
            failed = answer if isinstance(answer, Failed) else Failed(number)
            state = self._moved(state, index, self._one(kernel), place.answered(failed))
            return self._watched(state._replace(faults=state.faults + 1))
        if move.how != DIES:
            kernel = self._one(answer_of(kernel, move.pid, call, ENDS[call.name][move.how])[0])
        return self._watched(self._moved(state, index, kernel, None)._replace(crashes=state.crashes + 1))

    def story(self, way: list[Move], ending: str) -> str:
        """What happened, call by call, in words."""
        state, lines = self.start, list[str]()
        for move in way:
            lines.append(self._told(state, move))
            try:
                state = self.made(state, move)
            except Broken:
                break
        return "\n".join([*(f"{number:4}. {line}" for number, line in enumerate(lines, 1)), f"      {ending}"])

    def _called(self, state: State, index: int) -> State:
        """After the call of a process, and after those calls that nobody else can tell from it."""
        while True:
            pid, place = state.processes[index]
            assert place is not None
            assert place.call is not None
            kernel, answer = self._done_by(state.kernel, pid, place, place.call)
            after = place.answered(answer)
            same = kernel is state.kernel and after.shown == place.shown and after.call is not None
            state = self._moved(state, index, kernel, after)
            if place.call.name == "fork" and not isinstance(answer, Failed):
                child = Standing(answer, place.answered(0))
                state = state._replace(processes=(*state.processes, child))
            if not same:
                state = self._watched(state)
            if after.call is None or after.call.name not in LOCAL:
                return state

    def _moved(self, state: State, index: int, kernel: Kernel, place: Place | None) -> State:
        """With a process at another place; one that is at its end, or nowhere, has nothing open any more."""
        processes = state.processes
        moved = Standing(processes[index].pid, place)
        if moved.call is None:
            kernel = self._without(kernel, moved.pid)
        return state._replace(kernel=kernel, processes=(*processes[:index], moved, *processes[index + 1 :]))

    def _without(self, kernel: Kernel, pid: int) -> Kernel:
        key = (id(kernel), pid)
        if key not in self._ended:
            self._ended[key] = self._one(kernel.without_processes((pid,)))
        return self._ended[key]

    def _made_ready(self, state: State, index: int) -> State:
        while (call := state.processes[index].call) is not None:
            state = self._called(state, index)
            if call.name == "ready":
                return state
        raise ValueError(f"{self._name(state.processes[index].pid)} never says that it is ready")

    def _done_by(self, kernel: Kernel, pid: int, place: Place, call: Call) -> tuple[Kernel, Any]:
        self._steps += 1
        done = self._done.get((id(kernel), place))
        if done is None:
            after, answer = answer_of(kernel, pid, call)
            done = self._done[id(kernel), place] = (self._one(after), answer)
        return done

    def _one(self, kernel: Kernel) -> Kernel:
        """The one object for all kernels that are equal to it, for as long as the explorer is."""
        return self._kernels.setdefault(kernel, kernel)

    def _watched(self, state: State) -> State:
        shown = tuple((pid, place.shown) for pid, place in state.processes if place and place.call)
        key = (id(state.kernel), shown, state.memory)
        if key not in self._seen:
            self._seen[key] = self._watch(state.kernel, shown, state.memory)
        memory = self._seen[key]
        return state if memory == state.memory else state._replace(memory=memory)

    def _look(self, state: State, moves: list[Move]) -> None:
        """What must hold at every state, whatever the programs are for. Raises Broken."""
        waiting = False
        for pid, place in state.processes:
            if place is not None and place.fault:
                raise Broken(f"{self._name(pid)} ended with {place.fault}")
            waiting = waiting or (place is not None and place.call is not None)
        if waiting and not any(not move.how for move in moves):
            raise Broken("each process waits for another")
        if self._newcomer is not None:
            self._look_at_what_is_left(state, self._newcomer)

    def _look_at_what_is_left(self, state: State, newcomer: Place) -> None:
        kernel, memory = state.kernel, state.memory
        if (id(kernel), memory) in self._left:
            return
        self._left.add((id(kernel), memory))
        self._alone(kernel.without_power(0), memory, newcomer, "everybody dies")
        for contents in (False, True) if kernel.unsynced else ():
            for lost in range(len(kernel.unsynced) + 1):
                before = f"the power goes, with the last {lost} changes{' and unflushed contents' if contents else ''}"
                self._alone(kernel.without_power(lost, contents=contents), memory, newcomer, before)

    def _alone(self, kernel: Kernel, memory: Hashable, newcomer: Place, before: str) -> None:
        """Let the newcomer come to its end, alone. Raises Broken."""
        state = self._watched(State(self._one(kernel), (), memory=memory))
        if (state.kernel, state.memory) in self._left:
            return
        self._left.add((state.kernel, state.memory))
        state = state._replace(processes=(Standing(NEWCOMER, newcomer),))
        way = list[State]()
        try:
            while (call := state.processes[0].call) is not None:
                way.append(state)
                if blocked(state.kernel, NEWCOMER, call):
                    raise Broken("the newcomer waits for ever")
                state = self._called(state, 0)
            place = state.processes[0].place
            if place is not None and place.fault:
                raise Broken(f"the newcomer ended with {place.fault}")
        except Broken as broken:
            lines = (self._told(state, Move(NEWCOMER)) for state in way)
            raise Broken("\n      ".join([before, *lines, str(broken)])) from None

    def _name(self, pid: int) -> str:
        return self._names.get(pid) or f"child of {self._name(pid // 10)}"

    def _told(self, state: State, move: Move) -> str:
        call = next(each.call for each in state.processes if each.pid == move.pid)
        assert call is not None
        words = f"{self._name(move.pid)} ({move.pid}): {_worded(state.kernel, move.pid, call)}"
        if move.how:
            return f"{words} - it {move.how}{f' with errno {move.number}' if move.number else ''}"
        _, answer = answer_of(state.kernel, move.pid, call)
        return words if answer is None else f"{words} -> {answer!r:.200}"


def answer_of(
    kernel: Kernel, pid: int, call: Call, work: Callable[..., tuple[Kernel, Any]] | None = None
) -> tuple[Kernel, Any]:
    """The kernel after a call (or after `work` in its place), and the answer as programs get it here."""
    try:
        kernel, answer = work(kernel, pid, *call.arguments) if work else apply(kernel, pid, call)
    except OSError as error:
        return kernel, Failed(error.errno or 0)
    return kernel, answer._replace(links=1) if isinstance(answer, Facts) else answer


def _chosen(chance: random.Random, moves: list[Move], mishaps: float) -> Move:
    calls = [move for move in moves if not move.how]
    return chance.choice(calls if calls and chance.random() >= mishaps else moves)


def _key(state: State) -> Hashable:
    """What makes two states one: the kernel is the same object when it is equal."""
    return (id(state.kernel), *state[1:])


def _way(came: Mapping[Hashable, tuple[State, Move] | None], state: State) -> list[Move]:
    way = list[Move]()
    while (step := came[_key(state)]) is not None:
        state, move = step
        way.append(move)
    return way[::-1]


def _worded(kernel: Kernel, pid: int, call: Call) -> str:
    """A call in words: descriptors by their numbers and by what they opened."""
    words = [repr(each) for each in call.arguments]
    if call.arguments and (pid, call.arguments[0]) in kernel.tables:
        words[0] += f" = {kernel.path_of(kernel.inode_of(pid, call.arguments[0]))}"
    return f"{call.name}({', '.join(word[:80] for word in words)})"
