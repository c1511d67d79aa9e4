"""Which processes belong to an attempt, from one look at all processes.

Three marks make a process kin of a leader: its session, its process group, its descent. A daemon sheds all
three: it makes its own session and loses its parent. Two things are left then: an orphan of an attempt is
adopted by the agent and by nobody else, and it still carries the variables that the attempt was given, or has
the open file through which its lock was taken (or was seen as kin before). tests/unit/test_descent.py holds the
cases.

A number proves nothing by itself: only descendants of the agent are ever kin, and a leader whose pid is
another process's by now has neither session nor group left (the kernel gives a pid out again only when no
process uses it as pid, group or session any more).
"""

from collections.abc import Collection, Mapping

from ankita_agent.core.identity import ProcessFacts


def descendants(roots: Collection[int], table: Mapping[int, ProcessFacts]) -> set[int]:
    """The pids in `table` that descend from one of `roots`; a root itself only below another root."""
    children: dict[int, list[int]] = {}
    for facts in table.values():
        children.setdefault(facts.parent, []).append(facts.pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        fresh = [pid for pid in children.get(waiting.pop(), ()) if pid not in found]
        found.update(fresh)
        waiting.extend(fresh)
    return found


def kin(leader: int, ticks: int, marked: Collection[int], table: Mapping[int, ProcessFacts]) -> set[int]:
    """The live pids in `table` that belong to the leader that started at `ticks`, zombies excluded.

    `table` holds the descendants of the agent (where orphans cannot be adopted: all processes); `marked` are
    pids known to be kin by other marks.
    """
    at_its_pid = table.get(leader)
    recycled = at_its_pid is not None and at_its_pid.ticks != ticks
    seeds = {pid for pid in marked if pid in table}
    if not recycled:
        seeds |= {facts.pid for facts in table.values() if leader in (facts.pid, facts.session, facts.group)}
    return {pid for pid in seeds | descendants(seeds, table) if not table[pid].dead}
