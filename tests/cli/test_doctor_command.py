"""`ankita-agent doctor` as a person runs it, on a machine that has nothing to say for itself."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from ankita_agent.adapters.sqlite_ledger import open_owner
from ankita_agent.core.advice import is_command
from ankita_agent.core.findings import FindingId, Severity
from tests.ledgers import at, missed, seated

SOURCES: Final = Path(__file__).parents[2] / "agent"
ROOT: Final = Path(__file__).parents[2]
NEEDED: Final = {"PYTHONPATH": str(SOURCES)}


class Shell:
    """A shell with a state and a configuration directory, and only the variables that are said."""

    def __init__(self, root: Path) -> None:
        self.state, self.config = root / "state", root / "config"
        self.config.mkdir()
        self.state.mkdir(mode=0o700)
        (self.config / "routines.yaml").write_text("routines: {backup: {schedule: every 5m, run: 'true'}}\n")
        self.environment = {
            **NEEDED,
            "PATH": os.environ["PATH"],
            "ANKITA_STATE_DIR": str(self.state),
            "ANKITA_CONFIG_DIR": str(self.config),
        }

    def ask(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Run doctor."""
        words = [sys.executable, "-m", "ankita_agent", "doctor", *options]
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode in (0, 1), done.stderr
        assert "Traceback" not in done.stderr
        return done

    def document(self) -> dict[str, Any]:
        """What it says to programs."""
        found: dict[str, Any] = json.loads(self.ask("--json").stdout)
        return found

    def ids(self) -> set[str]:
        """What is found."""
        return {finding["id"] for finding in self.document()["findings"]}

    def record(self, *, left_out: bool = False) -> None:
        """A ledger that accounts for 13 slots, or says so."""
        with closing(open_owner(str(self.state / "ledger.db"))) as ledger:
            stretch = missed(0, 55, 12) if left_out else missed(0, 60, 13)
            ledger.settle_pass(seated(ledger), at(61), [], [stretch], {"backup": at(60)})

    def change(self, statements: str) -> None:
        """Somebody with sqlite3 changes the ledger."""
        with closing(sqlite3.connect(self.state / "ledger.db")) as connection:
            connection.executescript(statements)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def shape(document: object) -> object:
    """The keys of a document, and those inside of it."""
    if isinstance(document, dict):
        return {name: shape(value) for name, value in document.items() if value is not None}
    return [shape(document[0])] if isinstance(document, list) and document else []


def test_the_document_has_the_fields_of_the_contract_and_no_others(shell: Shell) -> None:
    shell.record(left_out=True)
    text = (ROOT / "docs" / "json.md").read_text(encoding="utf-8").partition("## `doctor --json`")[2]
    contract = json.loads(text.partition("```json\n")[2].partition("```")[0])
    document = shell.document()
    assert document.keys() == contract.keys()
    assert document["account"].keys() == contract["account"].keys()
    assert document["account"]["routines"][0].keys() == contract["account"]["routines"][0].keys()
    for finding in document["findings"]:
        assert finding.keys() == contract["findings"][0].keys()
        assert finding["id"] in list(FindingId)
        assert finding["severity"] in list(Severity)


def test_the_contract_names_every_finding() -> None:
    text = (ROOT / "docs" / "json.md").read_text(encoding="utf-8").partition("The ids: ")[2].partition(".")[0]
    assert re.findall(r"`(\w+)`", text) == [each.value for each in FindingId]


def test_the_account_says_how_many_slots_since_when(shell: Shell) -> None:
    shell.record()
    document = shell.document()
    assert (document["account"]["slots"], document["account"]["since"]) == (13, "2026-01-01T07:59:00Z")
    assert document["account"]["doubled"] == document["account"]["left_out"] == []
    said = shell.ask().stdout
    assert re.search(r"13 slots of 1 routine since \S+ \S+ until \S+ \S+: none doubled, none left out", said)


def test_a_slot_that_is_left_out_is_an_error_that_names_it(shell: Shell) -> None:
    shell.record(left_out=True)
    assert shell.document()["account"]["left_out"] == [{"routine": "backup", "slot": "2026-01-01T09:00:00Z"}]
    said = shell.ask()
    assert said.returncode == 1
    assert "error: backup: left out: no row of the ledger tells of the slot 2026-01-01T09:00:00Z" in said.stdout
    assert "not all of them once" in said.stdout


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE marks SET reckoned_since = 'abc'",
        "UPDATE terms SET seen_until = 'abc'",
        "UPDATE routines SET schedule = x'00'",
        "UPDATE routines SET schedule = CAST(x'ff' AS TEXT)",
        "DELETE FROM marks",
    ],
)
def test_a_value_that_nobody_can_have_written_is_a_finding_and_no_fault_of_ours(shell: Shell, change: str) -> None:
    shell.record()
    shell.change(change)
    assert "ledger_unreadable" in shell.ids()
    assert "is damaged" in shell.ask().stdout


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("DELETE FROM routines", "account: nothing can be told: the ledger has no routine in force"),
        ("UPDATE routines SET schedule = 'now and then'", "account: nothing can be told of the slots of backup: this "),
        ("UPDATE routines SET schedule = 'daily 08:00'; DELETE FROM zones", "by which rules of its time zone"),
    ],
)
def test_when_nothing_can_be_told_it_says_so_and_why(shell: Shell, change: str, said: str) -> None:
    shell.record()
    shell.change(change)
    assert said in shell.ask().stdout
    assert not {"slot_doubled", "slot_left_out", "row_without_slot"} & shell.ids()


def test_a_term_that_was_seen_far_ahead_hides_nothing(shell: Shell) -> None:
    shell.record(left_out=True)
    shell.change("UPDATE terms SET seen_until = 9223372036854775807")
    assert "slot_left_out" in shell.ids()


def test_a_ledger_that_is_no_database_is_a_finding(shell: Shell) -> None:
    (shell.state / "ledger.db").write_bytes(b"no database at all" * 1000)
    assert "ledger_unreadable" in shell.ids()
    assert shell.document()["account"] is None


def test_a_state_directory_that_is_open_to_others_is_a_finding_until_its_command_was_typed(shell: Shell) -> None:
    shell.state.chmod(0o755)
    found = {finding["id"]: finding for finding in shell.document()["findings"]}
    subprocess.run(["sh", "-c", found["state_unusable"]["command"]], check=True)
    assert "state_unusable" not in shell.ids()


def test_a_command_stands_on_a_line_of_its_own_with_nothing_around_it(shell: Shell) -> None:
    shell.state.chmod(0o755)
    (shell.config / "routines.yaml").chmod(0o666)
    said = shell.ask().stdout
    assert f"\n    close it:\n        chmod 700 {shell.state}\n" in said
    assert f"\n    close it:\n        chmod go-w {shell.config}/routines.yaml\n" in said
    for line in said.splitlines():
        if line.startswith("        "):
            assert is_command(line.strip())


@pytest.mark.parametrize("kind", ["file", "link", "nothing", "below a file"])
def test_whatever_stands_for_the_state_directory_is_told_and_no_fault_of_ours(shell: Shell, kind: str) -> None:
    shell.state.rmdir()
    match kind:
        case "file":
            shell.state.write_text("x")
        case "link":
            shell.state.symlink_to(shell.config)
        case "below a file":
            shell.state.write_text("x")
            shell.environment["ANKITA_STATE_DIR"] += "/below"
    assert ("state_unusable" in shell.ids()) == (kind != "nothing")


@pytest.mark.parametrize("variable", ["ANKITA_STATE_DIR", "ANKITA_CONFIG_DIR"])
@pytest.mark.parametrize("options", [[], ["--fix"]])
def test_a_variable_that_can_lead_nowhere_is_a_finding(shell: Shell, variable: str, options: list[str]) -> None:
    shell.environment[variable] = "~/x"
    said = shell.ask(*options)
    assert said.returncode == 1
    assert f"{variable}=~/x begins with ~" in said.stdout
    assert f'write {variable}="$HOME/x"' in said.stdout


def test_looking_makes_nothing(shell: Shell) -> None:
    shell.state.rmdir()
    shell.ask()
    assert sorted(path.name for path in shell.state.parent.iterdir()) == ["config"]
    shell.state.mkdir(mode=0o700)
    shell.ask()
    assert list(shell.state.iterdir()) == []


@pytest.mark.parametrize("variables", [{}, {"HOME": "/nowhere"}, {"XDG_RUNTIME_DIR": "relative"}, {"PATH": ""}])
def test_it_answers_with_whatever_environment(shell: Shell, variables: dict[str, str]) -> None:
    shell.environment = {**NEEDED, "ANKITA_STATE_DIR": str(shell.state), **variables}
    assert shell.document()["version"]


def test_routines_that_a_start_would_refuse_are_an_error(shell: Shell) -> None:
    (shell.config / "routines.yaml").write_text("routines: {a: {schedule: */5 * * * *, run: x}}\n")
    assert "routines_refused" in shell.ids()
    assert "routines.yaml:1:" in shell.ask().stdout
