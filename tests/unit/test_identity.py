import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ankita_agent.adapters.darwin_process_table import parse_kinfo
from ankita_agent.core.identity import (
    INITIAL_TIME_NAMESPACE,
    Place,
    ProcessFacts,
    Unseen,
    Verdict,
    judge,
    number_of_namespace,
    parse_stat,
    parse_thread_group,
)
from ankita_agent.core.rows import ProcessId

HERE = Place("boot-1", 4026531836)
RECORDED = ProcessId(42, 7000, "boot-1", 4026531836)
SEEN = ProcessFacts(42, "S", 1, 42, 42, 7000, 42)
TAIL = b"S 1 42 42 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 1 0 7000 2396160 200 18446744073709551615"


@pytest.mark.parametrize(
    ("recorded", "here", "seen", "verdict"),
    [
        (RECORDED, HERE, SEEN, Verdict.ALIVE),
        (RECORDED, HERE, replace(SEEN, state="D"), Verdict.ALIVE),
        (RECORDED, HERE, replace(SEEN, state="T"), Verdict.ALIVE),
        (RECORDED, HERE, replace(SEEN, state="t"), Verdict.ALIVE),
        (RECORDED, HERE, replace(SEEN, parent=999, group=7, session=7), Verdict.ALIVE),
        (RECORDED, HERE, Unseen.FORBIDDEN, Verdict.ALIVE),
        (RECORDED, HERE, replace(SEEN, state="Z"), Verdict.GONE),
        (RECORDED, HERE, replace(SEEN, state="X"), Verdict.GONE),
        (RECORDED, HERE, replace(SEEN, ticks=7001), Verdict.GONE),
        (RECORDED, HERE, replace(SEEN, ticks=6999), Verdict.GONE),
        (RECORDED, HERE, replace(SEEN, thread_group=41), Verdict.GONE),
        (RECORDED, HERE, Unseen.ABSENT, Verdict.GONE),
        (RECORDED, replace(HERE, boot="boot-2"), SEEN, Verdict.GONE),
        (RECORDED, replace(HERE, boot="boot-2", namespace=1), Unseen.UNREADABLE, Verdict.GONE),
        (RECORDED, HERE, Unseen.UNREADABLE, Verdict.UNKNOWN),
        (RECORDED, replace(HERE, namespace=1), Unseen.ABSENT, Verdict.UNKNOWN),
        (RECORDED, replace(HERE, namespace=1), SEEN, Verdict.UNKNOWN),
        (RECORDED, replace(HERE, own_proc=False), replace(SEEN, state="Z"), Verdict.UNKNOWN),
        (RECORDED, replace(HERE, boot=""), SEEN, Verdict.UNKNOWN),
        (replace(RECORDED, boot=""), HERE, SEEN, Verdict.UNKNOWN),
        (replace(RECORDED, ticks=0), HERE, Unseen.ABSENT, Verdict.UNKNOWN),
    ],
)
def test_the_verdict(recorded: ProcessId, here: Place, seen: ProcessFacts | Unseen, verdict: Verdict) -> None:
    assert judge(recorded, here, seen) is verdict


@pytest.mark.parametrize("name", [b"sleep", b"a b", b"a) S 1 2 3", b")", b"", b"((", b"two\nlines) Z 9 9", b"\xff\xfe"])
def test_fields_are_counted_from_the_last_bracket_whatever_the_program_is_called(name: bytes) -> None:
    assert parse_stat(b"42 (" + name + b") " + TAIL) == SEEN


@given(st.binary(max_size=300))
def test_anything_else_than_such_a_line_is_refused_and_never_read_as_facts_by_half(content: bytes) -> None:
    try:
        facts = parse_stat(content)
    except ValueError:
        return
    assert content.rpartition(b")")[2].split()[19] == str(facts.ticks).encode() or facts.ticks >= 0


@pytest.mark.parametrize(
    "content", [b"", b"42 (sleep", b"42 (sleep) S 1 2", b"x (sleep) " + TAIL, b"42 (a) " + b"x " * 30]
)
def test_a_torn_line_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError):
        parse_stat(content)


def test_a_thread_is_told_by_its_thread_group() -> None:
    assert parse_thread_group(b"Name:\tx\nTgid:\t41\nNgid:\t0\nPid:\t42\n") == 41
    with pytest.raises(ValueError):
        parse_thread_group(b"Name:\tx\n")


def test_pids_and_ticks_are_comparable_only_within_one_time_namespace() -> None:
    initial = number_of_namespace(4026531836, INITIAL_TIME_NAMESPACE)
    assert initial == number_of_namespace(4026531836, None) == 4026531836
    other = number_of_namespace(4026531836, 4026532500)
    assert other != initial
    assert other != number_of_namespace(4026531836, 4026532501)
    assert 0 < other < 2**63


def test_a_record_of_macos_is_read_by_its_offsets() -> None:
    record = bytearray(648)
    struct.pack_into("<qi", record, 0, 1_700_000_000, 250_000)
    record[36] = 5
    struct.pack_into("<i", record, 40, 42)
    struct.pack_into("<ii", record, 560, 1, 42)
    facts = parse_kinfo(bytes(record), 42)
    assert facts == ProcessFacts(42, "Z", 1, 42, 42, 1_700_000_000_250_000, 42)
    assert facts.dead
    with pytest.raises((ValueError, struct.error)):
        parse_kinfo(bytes(648), 0)
