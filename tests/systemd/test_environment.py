"""A run has the same environment whoever started its agent."""

from typing import Final

import pytest

from tests.real.waiting import until
from tests.rig.container import kill_entered
from tests.rig.guest import Guest
from tests.systemd.services import Service

pytestmark = pytest.mark.needs("systemd")

ROUTINE: Final = (
    "routines:\n  look: {schedule: '@reboot', run: 'env -0 > seen.new && mv seen.new seen', enabled: true}\n"
)
OF_THE_FIRE: Final = {
    *("ANKITA_SLOT", "ANKITA_FIRE", "ANKITA_TERM", "ANKITA_LAST_SUCCESS", "ANKITA_MISSED", "ANKITA_TRIGGER"),
}
"""What tells one fire from another."""


def environment_of_a_run(guest: Guest) -> dict[str, str]:
    """The variables of a run that the owner of now starts, but for those that name the fire."""
    guest.run("rm", "-f", "seen")
    asked = guest.run("ankita-agent", "trigger", "look", "--wait")
    assert asked.code == 0, asked.said
    pairs = (line.split("=", 1) for line in guest.read("seen").split("\0") if line)
    return {name: value for name, value in pairs if name not in OF_THE_FIRE}


def test_a_run_has_the_same_environment_from_the_service_and_from_a_shell(guest: Guest) -> None:
    odd = {"LANG": "C", "PATH": "/opt/ankita/bin:/usr/bin:/bin:/odd", "EDITOR": "vi", "TZ": "Asia/Tokyo", "SECRET": "x"}
    with Service(guest) as service:
        service.write(ROUTINE)
        service.start()
        under_service = environment_of_a_run(guest)
        assert guest.systemctl("stop", "ankita-agent").code == 0
        shell = guest.start("ankita-agent", "run", environment={**odd, "DBUS_SESSION_BUS_ADDRESS": None})
        try:
            until(lambda: service.status()["owner"])
            under_shell = environment_of_a_run(guest)
        finally:
            kill_entered(shell)
    assert under_shell == under_service
    assert {"HOME", "USER", "PATH", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"} <= under_service.keys()
    assert not {"SECRET", "EDITOR", "TZ", "NOTIFY_SOCKET", "WATCHDOG_USEC", "INVOCATION_ID"} & under_service.keys()
