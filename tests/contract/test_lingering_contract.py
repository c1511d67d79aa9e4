"""What every Lingering promises, asked of the fake and of the real one over a stand-in for loginctl(1).

The real loginctl is asked in tests/systemd.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from ankita_agent.adapters.login_manager import LoginManager
from ankita_agent.core.errors import ManagerRefused
from ankita_agent.core.instants import MILLISECOND, Duration
from ankita_agent.ports.lingering import Lingering
from ankita_agent.testing.lingering import FakeLingering

Make = Callable[..., Lingering]


def real(tmp_path: Path, script: str) -> LoginManager:
    """One whose loginctl is a script; `$3` is the user."""
    loginctl, directory = tmp_path / "loginctl", tmp_path / "systemd" / "linger"
    loginctl.write_text(f"#!/bin/sh\n{script}\n")
    loginctl.chmod(0o755)
    return LoginManager("ann", str(loginctl), {"PATH": "/usr/bin:/bin"}, str(directory), Duration(200 * MILLISECOND))


@pytest.fixture(params=["fake", "real"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    def made(on: bool, refusal: str | None = None) -> Lingering:
        if request.param == "fake":
            return FakeLingering(on, refusal)
        directory = tmp_path / "systemd" / "linger"
        directory.parent.mkdir()
        if on:
            directory.mkdir()
            (directory / "ann").write_text("")
        accepts = f'test "$1 $2" = "--no-ask-password enable-linger" && mkdir -p {directory} && : >{directory}/$3'
        return real(tmp_path, accepts if refusal is None else f"echo '{refusal}' >&2; exit 1")

    return made


@pytest.mark.parametrize("on", [True, False])
def test_whether_somebody_lingers_is_told(make: Make, on: bool) -> None:
    assert make(on).lingers() is on


def test_switching_it_on_can_be_repeated(make: Make) -> None:
    lingering = make(False)
    for _ in range(2):
        lingering.enable()
        assert lingering.lingers() is True


def test_where_it_may_not_be_switched_on_the_reason_is_told_and_nothing_changes(make: Make) -> None:
    lingering = make(False, "Could not enable linger: Access denied")
    with pytest.raises(ManagerRefused) as raised:
        lingering.enable()
    assert raised.value.fact == "Could not enable linger: Access denied"
    assert "loginctl enable-linger ann" in raised.value.do
    assert lingering.lingers() is False


def test_where_no_logind_ever_was_nobody_can_tell(tmp_path: Path) -> None:
    assert LoginManager("ann", None, {}, str(tmp_path / "systemd" / "linger")).lingers() is None


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exec sleep 1000", r"did not answer within 0\.2 s"),
        ("exit 3", "exit status 3"),
        (r"printf 'no\033\377\n' >&2; exit 1", "no\N{REPLACEMENT CHARACTER}{2}"),
    ],
)
def test_a_loginctl_that_fails_is_told_within_the_patience(tmp_path: Path, script: str, why: str) -> None:
    with pytest.raises(ManagerRefused, match=why):
        real(tmp_path, script).enable()


def test_a_loginctl_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ManagerRefused, match="no loginctl"):
        LoginManager("ann", None, {}).enable()
    with pytest.raises(ManagerRefused, match="No such file"):
        LoginManager("ann", str(tmp_path / "loginctl"), {}).enable()
