"""Which routines have something due, found without looking at all of them.

A heap holds, for each routine, when its next slot is due; a pass with nothing due looks at its top and goes.
Routines whose newest slot waits (for the settle time, its turn, or room) stand in line, first come first served,
and of those that come at the same moment the one that has not started for longest is first; they are looked at
again when what they wait for may have come, when their next slot comes, and when their grace runs out.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

from ankita_agent.core.instants import Instant
from ankita_agent.core.passes import Decision, Plan, Wait


@dataclass(slots=True)
class Waiting:
    """A routine in line: what for, since when, and when its grace runs out."""

    wait: Wait
    since: Instant
    expires: Instant | None


class Dues:
    """The marks of the routines in force, their next slots, and the line of those that wait."""

    def __init__(self) -> None:
        self._plans: dict[str, Plan] = {}
        self._marks: dict[str, Instant] = {}
        self._heap: list[tuple[Instant, str]] = []
        self._next: dict[str, Instant] = {}
        self._last_start: dict[str, Instant] = {}
        self.line: dict[str, Waiting] = {}

    def put(self, plans: Iterable[Plan], marks: dict[str, Instant]) -> None:
        """Make these the routines; one whose schedule and mark are as before keeps its place and its next slot."""
        before, self._plans = self._plans, {plan.name: plan for plan in plans if plan.routine.enabled}
        marks_before, self._marks = self._marks, marks
        following, self._next = self._next, {}
        same = {
            name
            for name, plan in self._plans.items()
            if name in before
            and (plan.timetable, plan.jitter) == (before[name].timetable, before[name].jitter)
            and marks[name] == marks_before[name]
        }
        self.line = {name: waiting for name, waiting in self.line.items() if name in same}
        for name, plan in self._plans.items():
            due = following[name] if name in same and name in following else plan.due_after(marks[name])
            if due is not None:
                self._next[name] = due
        self._heap = [(due, name) for name, due in self._next.items()]
        heapq.heapify(self._heap)

    def plan(self, name: str) -> Plan | None:
        """The plan of an enabled routine in force."""
        return self._plans.get(name)

    def plans(self) -> Iterable[Plan]:
        """All enabled plans, in the order of their file."""
        return self._plans.values()

    def mark(self, name: str) -> Instant:
        """Up to where the routine's slots are accounted for."""
        return self._marks[name]

    def due(self, now: Instant, *, revisit: frozenset[Wait]) -> list[Plan]:
        """The routines to decide now, in fair order: first those in line whose wait may be over, then the due."""
        fresh: list[tuple[Instant, str]] = []
        while self._heap and self._heap[0][0] <= now:
            at, name = heapq.heappop(self._heap)
            if self._next.get(name) == at:
                del self._next[name]
                fresh.append((at, name))
        fresh.sort(key=lambda due: (due[0], self._last_start.get(due[1], 0)))
        found = dict.fromkeys(name for name, waiting in self.line.items() if waiting.wait in revisit)
        found.update(dict.fromkeys(name for _, name in fresh))
        return [self._plans[name] for name in found if name in self._plans]

    def decided(self, plan: Plan, decision: Decision, now: Instant) -> None:
        """Take note of a decision that has been written: the new mark, the place in line, the next look."""
        name = plan.name
        if decision.accounted is not None:
            self._marks[name] = max(self._marks[name], decision.accounted)
        if decision.claim is not None:
            self._last_start[name] = now
        if decision.wait is None:
            self.line.pop(name, None)
            self._look_again(name, plan.due_after(self._marks[name]))
            return
        known = self.line.get(name)
        self.line[name] = Waiting(decision.wait, known.since if known else now, decision.expires)
        following = plan.due_after(now)
        ends = [instant for instant in (following, decision.expires) if instant is not None]
        self._look_again(name, min(ends) if ends else None)

    def undecided(self, plans: Iterable[Plan], now: Instant) -> None:
        """Put routines back whose decisions could not be written: they are due again at once."""
        for plan in plans:
            self._look_again(plan.name, now)

    def next_due(self) -> Instant | None:
        """When the next look is due, or None."""
        while self._heap and self._next.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def next(self) -> tuple[Plan, Instant] | None:
        """The routine whose slot comes next, and that slot; None when none comes."""
        due = self.next_due()
        if due is None:
            return None
        plan = self._plans[self._heap[0][1]]
        return plan, Instant(due - plan.jitter)

    def _look_again(self, name: str, at: Instant | None) -> None:
        if at is None:
            self._next.pop(name, None)
            return
        self._next[name] = at
        heapq.heappush(self._heap, (at, name))
