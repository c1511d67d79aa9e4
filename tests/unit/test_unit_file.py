"""Unit files that we write mean to systemd what was meant, and are recognised when they are met again."""

import os
import subprocess
from pathlib import Path
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ankita_agent.core.unit_file import ServiceFacts, read_unit_file, read_words, render_service, stamp, write_word
from ankita_agent.shipped import shipped_text

TEMPLATE: Final = shipped_text("units", "ankita-agent.service")
HOME: Final = "/home/ann"
RUN: Final = ("-P", "-m", "ankita_agent", "run", "--standby")
NASTY: Final = (
    "a b",
    "100%h %%",
    "$HOME ${x} $$",
    'say "hi"',
    "it's",
    "back\\slash\\x41",
    "ärger 日本 \N{BEAR FACE}",
    "tab\tand\nline",
    "semi;colon # hash",
    "@at -dash :colon +plus !bang",
    "\udce9\udcff not utf-8",
)
CONTROL: Final = [*map(chr, range(32)), "\x7f"]
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
ordinary_texts = st.text(st.characters(exclude_characters=CONTROL, exclude_categories=["Cs"]))
paths = st.one_of(texts, st.binary().map(lambda raw: os.fsdecode(raw.replace(b"\0", b"")))).map("/{}".format)


def facts(program: str = "/opt/venv/bin/python", systemd: int = 252, **environment: str) -> ServiceFacts:
    return ServiceFacts((program, *RUN), environment, "1.2.3", systemd)


def rendered(program: str = "/opt/venv/bin/python", systemd: int = 252, **environment: str) -> str:
    return render_service(TEMPLATE, facts(program, systemd, **environment))


@given(paths)
@example("/$")
@example('/"')
@example("/a\u2028b\x85c")
def test_any_path_of_a_program_is_read_back_as_it_was(path: str) -> None:
    read = read_unit_file(rendered(path), HOME)
    assert read.program == (path, *RUN)
    assert not read.edited


@given(st.lists(texts), st.booleans())
def test_any_words_are_read_back_as_they_were(words: list[str], command: bool) -> None:
    line = " ".join(write_word(word, command=command) for word in words)
    assert "\n" not in line
    assert list(read_words(line, HOME, command=command)) == words


@given(ordinary_texts)
def test_any_value_of_a_variable_is_read_back_as_it_was(value: str) -> None:
    read = read_unit_file(rendered(ANKITA_STATE_DIR=value, ANKITA_CONFIG_DIR="/c"), HOME)
    assert read.environment == {"ANKITA_STATE_DIR": value, "ANKITA_CONFIG_DIR": "/c"}


@pytest.mark.parametrize("value", ["a\tb", "a\nb", "\x7f", "\udcff"])
def test_a_value_that_systemd_takes_in_no_form_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="ANKITA_STATE_DIR"):
        rendered(ANKITA_STATE_DIR=value)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a  b\tc", ["a", "b", "c"]),
        ("'a b' \"c d\"", ["a b", "c d"]),
        (r"a\x20b \101\s \u00e9 \U0001F43B", ["a b", "A ", "é", "\N{BEAR FACE}"]),
        (r'"a\"b" \\ \t', ['a"b', "\\", "\t"]),
        ("'' x", ["", "x"]),
        ("%h/a %%h %i", ["/home/ann/a", "%h", "%i"]),
        ("$$HOME ${HOME}", ["$HOME", "${HOME}"]),
    ],
)
def test_a_line_is_read_as_systemd_reads_it(written: str, meant: list[str]) -> None:
    assert list(read_words(written, HOME, command=True)) == meant


def test_the_shipped_text_is_the_only_one() -> None:
    added = ("ExecStart=", "Environment=", "X-Ankita-")
    lines = [line for line in rendered(A="b").split("\n") if not line.startswith(added)]
    assert lines == [line for line in TEMPLATE.split("\n") if not line.startswith("ExecStart=")]


def test_a_directive_is_left_out_where_systemd_does_not_know_it_yet() -> None:
    assert "TimeoutStopFailureMode=" in rendered(systemd=246)
    assert "TimeoutStopFailureMode=" not in rendered(systemd=245)
    assert "OOMPolicy=" not in rendered(systemd=242)


def test_a_plain_path_is_written_plainly() -> None:
    assert f"\nExecStart=/opt/venv/bin/python {' '.join(RUN)}\n" in rendered()


def test_an_edited_file_is_told_from_one_of_another_version() -> None:
    mine = rendered()
    assert read_unit_file(mine, HOME).version == "1.2.3"
    assert not read_unit_file(mine, HOME).edited
    assert read_unit_file(mine.replace("RestartSec=1", "RestartSec=2"), HOME).edited
    assert read_unit_file(mine + "# a remark\n", HOME).edited
    assert read_unit_file(mine.replace("=1.2.3", "=1.2.4"), HOME).edited


def test_a_file_that_somebody_wrote_himself_counts_as_edited() -> None:
    read = read_unit_file(TEMPLATE, HOME)
    assert (read.version, read.edited) == (None, True)
    assert read.program == ("/home/ann/.local/bin/ankita-agent", "run", "--standby")


@given(st.text())
def test_whatever_stands_in_a_file_it_is_read(text: str) -> None:
    assert read_unit_file(text, HOME).edited


def test_a_later_assignment_wins_and_an_empty_one_clears() -> None:
    text = "[Service]\nExecStart=/a\nExecStart=\nExecStart=/b \\\n# a remark\n  c\nEnvironment=A=1 B=2\nEnvironment=\n"
    read = read_unit_file(text + "Environment=C=3 junk\n", HOME)
    assert read.program == ("/b", "c")
    assert read.environment == {"C": "3"}


def test_drop_ins_and_slices_are_stamped_in_their_first_section() -> None:
    text = stamp("# why\n[Slice]\nCPUWeight=50\n", "1.2.3")
    assert text.startswith("# why\n[Slice]\nX-Ankita-Version=1.2.3\nX-Ankita-Hash=")
    assert not read_unit_file(text, HOME).edited


def complaints(directory: Path, program: str, **environment: str) -> str:
    """What systemd-analyze(1) of this machine says of the unit, rendered for this machine."""
    shown = subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True, check=True).stdout
    unit = directory / "ankita-agent.service"
    text = rendered(program, int(shown.split()[1]), **environment)
    unit.write_bytes(text.encode("utf-8", "surrogateescape"))
    (directory / "app-ankita.slice").write_text(stamp(shipped_text("units", "app-ankita.slice"), "1"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(unit)],
        env={"HOME": str(directory), "XDG_RUNTIME_DIR": str(directory), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout


@pytest.mark.needs("systemd-analyze")
@pytest.mark.parametrize("name", NASTY)
def test_systemd_has_nothing_to_say_about_a_nasty_path(name: str, tmp_path: Path) -> None:
    program = os.fsdecode(os.fsencode(tmp_path) + b"/" + os.fsencode(name) + b"/python")
    os.mkdir(os.path.dirname(program))
    with open(os.open(program, os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n")
    variables = {} if set(name) & set("\t\n\udce9") else {"ANKITA_STATE_DIR": f"/{name}"}
    assert complaints(tmp_path, program, **variables) == ""


@pytest.mark.needs("systemd-analyze")
def test_systemd_says_when_the_program_is_gone(tmp_path: Path) -> None:
    assert "not executable" in complaints(tmp_path, str(tmp_path / "gone"))
