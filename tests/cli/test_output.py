"""What people see: tables, times, and lines that never hold the agent up."""

import fcntl
import os
import subprocess
import sys
import textwrap

import pytest

from ankita_agent.cli.output import near_time, print_table, printable, time_left
from ankita_agent.core.instants import DAY, Instant, format_instant, parse_instant

NOW = parse_instant("2026-03-03T12:00:00Z")

BLOCKED = """
    import sys
    from ankita_agent.cli.output import Teller
    tell = Teller(ranked=True)
    for number in range(20_000):
        tell(f"line {number} " + "x" * 100)
    sys.stdout.write("done\\n")
    sys.stdout.flush()
    sys.stdin.readline()
    tell("the last line")
"""


def test_a_pipe_that_nobody_reads_holds_nothing_up_and_gets_the_newest_lines_later() -> None:
    reading, writing = os.pipe()
    program = [sys.executable, "-c", textwrap.dedent(BLOCKED)]
    child = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=writing, text=True)
    os.close(writing)
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == "done\n"
    fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, 1 << 20)
    child.stdin.write("\n")
    child.stdin.close()
    with os.fdopen(reading) as told:
        lines = told.read().splitlines()
    child.wait(timeout=30)
    child.stdout.close()
    assert child.returncode == 0
    assert lines[0].startswith("line 0 ")
    assert lines[-1] == "the last line"
    assert all(line.startswith(("line ", "the last")) for line in lines), "no line is torn"


def test_a_teller_without_a_stderr_does_not_fail() -> None:
    program = [sys.executable, "-c", "from ankita_agent.cli.output import Teller; Teller(ranked=False)('x')"]
    assert subprocess.run(program, check=False, preexec_fn=lambda: os.close(2)).returncode == 0


@pytest.mark.parametrize(
    ("ranked", "warning", "told"),
    [(True, True, "<4>a\n<4>b\n"), (True, False, "a\nb\n"), (False, True, ""), (False, False, "")],
)
def test_a_warning_has_its_rank_on_each_line_for_a_journal_alone(ranked: bool, warning: bool, told: str) -> None:
    text = f"from ankita_agent.cli.output import Teller; Teller(ranked={ranked})('a\\nb', warning={warning})"
    said = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True).stderr
    assert said == told if ranked else said.endswith(" a\nb\n") and "<" not in said


FAULT = "import sys; from ankita_agent.cli.main import run_command; sys.exit(run_command(['run', 'backup']))"


@pytest.mark.parametrize(("there", "rank"), [(True, "<3>"), (False, "")])
def test_a_fault_is_an_error_to_a_journal_and_to_nobody_else_who_reads_stderr(there: bool, rank: str) -> None:
    reading, writing = os.pipe()
    status = os.fstat(writing)
    stream = f"{status.st_dev}:{status.st_ino if there else status.st_ino + 1}"
    environment = {**os.environ, "JOURNAL_STREAM": stream}
    done = subprocess.run([sys.executable, "-c", FAULT], stderr=writing, env=environment, check=False)
    os.close(writing)
    with os.fdopen(reading) as told:
        lines = told.read().splitlines()
    assert done.returncode == 2
    assert lines[0].startswith(f"{rank}ankita-agent: run takes no routine")
    assert all(line.startswith(f"{rank}  ") for line in lines[1:])


def test_control_characters_are_made_visible() -> None:
    assert printable("a\x1b[31mb\nc\u202ed") == "a\\x1b[31mb\\nc\\u202ed"
    assert printable("a\nb", newlines=True) == "a\nb"
    assert printable("schön 日本") == "schön 日本"


def test_columns_are_aligned_and_nothing_trails(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["A", "OUTCOME", "C"], [["1", "succeeded", "x"], ["22", "failed (exit status 3)", ""]])
    assert capsys.readouterr().out.splitlines() == [
        "A   OUTCOME                 C",
        "1   succeeded               x",
        "22  failed (exit status 3)",
    ]


@pytest.mark.parametrize(("span", "shown"), [(-5, "due"), (0, "due"), (90 * 10**9 + 5, "1m 30s"), (2 * DAY, "2d")])
def test_time_left_is_told_in_whole_seconds(span: int, shown: str) -> None:
    assert time_left(format_instant(Instant(NOW + span // 10**9 * 10**9)), NOW) == shown


def test_a_near_time_is_as_short_as_it_is_clear() -> None:
    assert near_time(None, NOW) == "-"
    assert len(near_time(format_instant(NOW), NOW)) == len("12:00:00")
    assert len(near_time(format_instant(Instant(NOW + 2 * DAY)), NOW)) == len("Thu 12:00")
    assert len(near_time(format_instant(Instant(NOW + 30 * DAY)), NOW)) == len("2026-04-02 12:00")
