"""The service files are valid as they stand, and hold what docs/design.md decides about exits and
watching."""

import configparser
import plistlib
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from ankita_agent.core.unit_file import read_unit_file, stamp

ROOT: Final = Path(__file__).parents[2]
SERVICE: Final = ROOT / "units" / "ankita-agent.service"
SLICE: Final = ROOT / "units" / "app-ankita.slice"
HARDENING: Final = ROOT / "units" / "hardening.conf"
UNITS: Final = sorted(set((ROOT / "units").glob("*.*")) - {HARDENING})
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
def test_systemd_has_nothing_to_say_about_the_drop_in(home_with_program: Path, tmp_path: Path) -> None:
    for unit in UNITS:
        shutil.copy(unit, tmp_path)
    drop_in = tmp_path / f"{SERVICE.name}.d" / HARDENING.name
    drop_in.parent.mkdir()
    shutil.copy(HARDENING, drop_in)
    service = tmp_path / SERVICE.name
    assert complaints([service], home_with_program) == ""
    drop_in.write_text(drop_in.read_text().replace("NoNewPrivileges=", "NoNewPrivilege="))
    assert "NoNewPrivilege" in complaints([service], home_with_program)


@pytest.mark.parametrize("unit", [SERVICE, SLICE, HARDENING], ids=lambda path: path.name)
def test_every_shipped_file_can_be_stamped_and_read_back(unit: Path) -> None:
    text = stamp(unit.read_text(encoding="utf-8"), "1.2.3")
    assert (read_unit_file(text, "").version, read_unit_file(text, "").edited) == ("1.2.3", False)


def test_the_slice_lies_within_what_the_manager_keeps_for_applications() -> None:
    assert _parsed(SERVICE)["Service"]["Slice"] == SLICE.name
    assert SLICE.name.startswith("app-")  # so its parent is app.slice: systemd.slice(5)


def test_the_drop_in_asks_for_nothing_that_a_user_manager_cannot_set_up_or_ignores() -> None:
    asked = set(_parsed(HARDENING)["Service"])
    assert not {name for name in asked if name.startswith(("Protect", "Private", "Capability", "ReadWrite"))}


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
        ("Service", "TimeoutStartSec", "90"),
        ("Service", "TimeoutStopSec", "45"),
        ("Service", "TimeoutStartFailureMode", "abort"),
        ("Service", "TimeoutStopFailureMode", "abort"),
        ("Install", "WantedBy", "default.target"),
    ],
)
def test_the_service_says_what_the_design_decides(section: str, directive: str, value: str) -> None:
    assert _parsed(SERVICE)[section][directive] == value


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


def _parsed(unit: Path) -> configparser.RawConfigParser:
    """A unit file, in which nothing is assigned twice."""
    parser = configparser.RawConfigParser(strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(unit)
    return parser


def _plist() -> dict[str, Any]:
    with PLIST.open("rb") as file:
        return dict(plistlib.load(file))
