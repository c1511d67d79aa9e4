"""What stands in the user's journal because of us: our warnings as warnings, and no complaint about our commands."""

import json
from typing import Final

import pytest

from tests.real.waiting import until
from tests.rig.guest import Guest

pytestmark = [pytest.mark.needs("systemd"), pytest.mark.needs("pystemd")]

BAD: Final = "routines: [\n"
HANG_UP: Final = """
import os, socket
with socket.socket(socket.AF_UNIX) as caller:
    caller.connect(f"/run/user/{os.getuid()}/systemd/private")
"""
ROUTINES: Final = """
agent: {settle: 0s}
routines:
  good: {schedule: daily 03:00, run: "true"}
  bad: {schedule: daily 03:00, run: exit 3}
  slow: {schedule: daily 03:00, run: sleep 100, timeout: 1s, kill_after: 1s}
"""


def warnings(guest: Guest, *units: str) -> list[str]:
    """The messages of the user's journal that are warnings or worse."""
    return guest.ask("journalctl", "--user", "-o", "cat", "-p", "warning", "-q", *units).splitlines()


def complaints(guest: Guest) -> list[str]:
    """What the manager says of a caller that goes away without a word."""
    return [line for line in warnings(guest) if "connection bus" in line]


def install(guest: Guest) -> None:
    guest.write(".config/ankita-agent/routines.yaml", ROUTINES)
    assert guest.run("ankita-agent", "install").code == 0


@pytest.mark.parametrize("adapter", ["systemctl", "pystemd"])
def test_no_command_makes_the_manager_complain(guest: Guest, adapter: str) -> None:
    environment = {}
    if adapter == "systemctl":
        guest.write("without/pystemd.py", "raise ImportError\n")
        environment = {"PYTHONPATH": f"{guest.home}/without"}
    guest.write(".config/ankita-agent/routines.yaml", ROUTINES)
    for arguments in (
        ["install"],
        ["status"],
        ["doctor"],
        ["restart"],
        ["stop"],
        ["start"],
        ["install"],
        ["stop", "--now"],
        ["uninstall"],
    ):
        done = guest.run("ankita-agent", *arguments, environment=environment)
        assert done.code in (0, 1), done.said
        assert "Traceback" not in done.said
    assert complaints(guest) == []
    # what a complaint is, for this systemd: whether it sees a caller hang up depends on who is faster
    until(lambda: guest.run("python", "-c", HANG_UP).code == 0 and complaints(guest))


def test_only_what_did_not_go_well_is_a_warning(guest: Guest) -> None:
    install(guest)
    for routine in ("good", "bad", "slow"):
        guest.run("ankita-agent", "trigger", routine, "--wait")

    def shown() -> list[str]:
        return warnings(guest, "-u", "ankita-agent")

    until(lambda: len(shown()) >= 2)
    assert [line.split(" after ")[0] for line in shown()] == [
        "bad: run 2 failed with exit status 3",
        "slow: run 3 timed out",
    ]
    guest.write(".config/ankita-agent/routines.yaml", BAD)
    until(lambda: json.loads(guest.run("ankita-agent", "status", "--json").out)["degraded"])
    until(lambda: len(shown()) >= 3)
    assert "3 routines from before stay in force" in shown()[2]


def test_why_an_agent_cannot_begin_is_an_error(guest: Guest) -> None:
    guest.write(".config/ankita-agent/routines.yaml", BAD)
    assert guest.run("ankita-agent", "install").code == 1
    errors = guest.ask("journalctl", "--user", "-o", "cat", "-p", "err", "-q", "-u", "ankita-agent")
    assert "ankita-agent: cannot use " in errors
    assert "<3>" not in errors
