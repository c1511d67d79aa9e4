"""The service files are valid as they stand, and hold what docs/design.md decides about exits and
watching."""

import configparser
import plistlib
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
UNITS: Final = sorted((ROOT / "units").glob("*.*"))
SERVICE: Final = ROOT / "units" / "ankita-agent.service"
PLIST: Final = ROOT / "launchd" / "io.github.ankita.agent.plist"


def complaints(units: list[Path], home: Path) -> str:
    """What systemd-analyze(1) says of user units; empty when it has nothing to say.

    The exit status tells nothing: a misspelled directive is named, ignored, and 0 (seen with systemd 252).
    """
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", *map(str, units)],
        env={"HOME": str(home), "XDG_RUNTIME_DIR": str(home), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout + (f"exit status {done.returncode}" if done.returncode else "")


@pytest.fixture
def home_with_program(home: Path) -> Path:
    program = home / ".local" / "bin" / "ankita-agent"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return home


@pytest.mark.needs("systemd-analyze")
def test_systemd_has_nothing_to_say_about_the_units(home_with_program: Path) -> None:
    assert SERVICE in UNITS
    assert complaints(UNITS, home_with_program) == ""


@pytest.mark.needs("systemd-analyze")
def test_a_misspelled_directive_and_a_missing_program_are_seen(home_with_program: Path, tmp_path: Path) -> None:
    bad = tmp_path / "ankita-agent.service"
    bad.write_text(SERVICE.read_text().replace("KillMode=", "KilMode="))
    assert "KilMode" in complaints([bad], home_with_program)
    assert "ankita-agent" in complaints([SERVICE], tmp_path)


@pytest.mark.parametrize(
    ("section", "directive", "value"),
    [
        ("Unit", "StartLimitIntervalSec", "0"),
        ("Service", "Type", "notify"),
        ("Service", "ExecStart", "%h/.local/bin/ankita-agent run --standby"),
        ("Service", "Restart", "on-failure"),
        ("Service", "RestartSec", "1"),
        ("Service", "RestartForceExitStatus", "75"),
        ("Service", "RestartPreventExitStatus", "78"),
        ("Service", "WatchdogSec", "120"),
        ("Service", "KillMode", "mixed"),
        ("Service", "TimeoutStopSec", "45"),
        ("Service", "TimeoutStopFailureMode", "abort"),
        ("Install", "WantedBy", "default.target"),
    ],
)
def test_the_service_says_what_the_design_decides(section: str, directive: str, value: str) -> None:
    unit = configparser.RawConfigParser(strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(SERVICE)
    assert unit[section][directive] == value


def test_the_launch_agent_is_a_property_list_named_after_its_label() -> None:
    agent = _plist()
    assert PLIST.name == f"{agent['Label']}.plist"
    assert agent["ProgramArguments"][-1].endswith("run --standby")


def test_launchd_brings_back_every_exit_but_a_clean_one() -> None:
    agent = _plist()
    assert agent["KeepAlive"] == {"SuccessfulExit": False}
    assert agent["RunAtLoad"] is True


def test_launchd_gives_as_long_to_stop_as_systemd() -> None:
    assert _plist()["ExitTimeOut"] == 45


def _plist() -> dict[str, Any]:
    with PLIST.open("rb") as file:
        return dict(plistlib.load(file))
