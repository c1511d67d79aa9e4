"""Agents among damaged files, and asked while they cannot answer."""

import os
import signal

import pytest

from ankita_agent.core.outcomes import Outcome
from tests.real.agents import Place, every_second
from tests.real.waiting import until

DEEP = b"[" * 4000


@pytest.mark.parametrize(
    "request_file",
    [
        b'{"routine": "beat", "asked_at": "9999-12-31T23:59:59Z", "owner": "x"}',
        b'{"routine": "\\ud800", "asked_at": "2026-01-01T00:00:00Z", "owner": "x"}',
        DEEP,
    ],
)
def test_an_agent_starts_among_damaged_files_and_so_does_status(place: Place, request_file: bytes) -> None:
    place.write(every_second("beat"))
    place.start().stop()
    own, requests = place.state / "own", place.state / "requests"
    (requests / f"{0:016x}.json").write_bytes(request_file)
    for name in ("claim.json", "report.json", "term", "fired", f"life/{'0' * 32}"):
        (own / name).write_bytes(DEEP)
    assert place.command("status").code == 3
    agent = place.start()
    count = len(place.rows("beat"))
    until(lambda: len(place.rows("beat")) > count + 1)
    until(lambda: os.listdir(requests) == [])
    assert place.command("status").code == 0
    assert agent.stop() == 0


@pytest.mark.parametrize("name", ["claim.json", "term", "fired"])
def test_a_directory_in_the_place_of_a_file_is_named_at_the_start(place: Place, name: str) -> None:
    place.write(every_second("beat"))
    place.start().stop()
    path = place.state / "own" / name
    if path.exists():
        path.unlink()
    path.mkdir()
    assert place.command("status").code == 3
    refused = place.command("run")
    assert refused.code == 73
    assert f"Is a directory ({name})" in refused.err
    assert f"find {place.state} -type d -name {name}" in refused.err


def test_an_agent_that_does_not_answer_is_told_and_the_request_is_taken_back(place: Place) -> None:
    place.write(every_second("beat"))
    agent = place.start()
    place.until_row("beat", Outcome.SUCCEEDED)
    agent.send(signal.SIGSTOP)
    try:
        done = place.command("trigger", "beat")
    finally:
        agent.send(signal.SIGCONT)
    assert done.code == 75
    assert "has not answered for 10s" in done.err
    assert f"its process {agent.pid} is stopped" in done.err
    assert f"kill -CONT {agent.pid}" in done.err
    assert os.listdir(place.state / "requests") == []
    assert place.command("trigger", "beat", "--wait").code in (0, 75)
    assert agent.stop() == 0


def test_the_values_of_env_are_in_no_file_but_the_one_in_which_they_were_written(place: Place) -> None:
    place.write('routines: {a: {schedule: every 1s, run: "true", env: {TOKEN: s3cr3t}}}')
    agent = place.start()
    place.until_row("a", Outcome.SUCCEEDED)
    place.write('routines: {a: {schedule: every 1s, run: "true", env: ["TOKEN=s3cr3t"]}}')
    agent.says("'env' takes names")
    assert place.command("status").code == 1
    assert agent.stop() == 0
    kept = [path for path in place.root.rglob("*") if path.is_file() and b"s3cr3t" in path.read_bytes()]
    assert sorted(path.name for path in kept) == ["last-good.yaml", "routines.yaml"]
