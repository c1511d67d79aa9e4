from dataclasses import replace

from ankita_agent.core.descent import descendants, kin
from ankita_agent.core.identity import ProcessFacts

AGENT = 10


def process(pid: int, parent: int, session: int, group: int | None = None, state: str = "S") -> ProcessFacts:
    return ProcessFacts(pid, state, parent, group or session, session, pid * 10, pid)


def table(*processes: ProcessFacts) -> dict[int, ProcessFacts]:
    return {each.pid: each for each in processes}


def test_children_of_children_descend_from_the_root_and_the_root_does_not() -> None:
    everybody = table(process(10, 1, 10), process(11, 10, 11), process(12, 11, 11), process(13, 1, 13))
    assert descendants((AGENT,), everybody) == {11, 12}


def test_the_family_is_found_by_session_by_group_and_by_descent() -> None:
    ours = table(
        process(20, AGENT, 20),
        process(21, 20, 20, group=21),  # a job of a shell
        process(22, 20, 22),  # setsid, its parent still there
        process(23, 22, 22),
        process(30, AGENT, 30),  # another attempt
    )
    assert kin(20, 200, (), ours) == {20, 21, 22, 23}


def test_an_orphan_with_its_own_session_is_kin_only_by_another_mark() -> None:
    ours = table(process(20, AGENT, 20), process(24, AGENT, 24), process(25, 24, 24))
    assert kin(20, 200, (), ours) == {20}
    assert kin(20, 200, (24,), ours) == {20, 24, 25}


def test_zombies_are_no_family() -> None:
    ours = table(process(20, AGENT, 20, state="Z"), process(21, AGENT, 20))
    assert kin(20, 200, (), ours) == {21}
    assert kin(20, 200, (21,), table(process(20, AGENT, 20, state="Z"))) == set()


def test_when_the_pid_of_the_leader_is_somebody_elses_its_session_is_not_the_familys() -> None:
    stranger = replace(process(20, AGENT, 20), ticks=999)
    ours = table(stranger, process(21, 20, 20), process(24, AGENT, 24))
    assert kin(20, 200, (), ours) == set()
    assert kin(20, 200, (24,), ours) == {24}
