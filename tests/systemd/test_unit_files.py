"""What a user manager makes of our unit files: read without a word, and the very program executed.

These tests need no Python inside, so that they run on a systemd too that is older than every Python we support.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from ankita_agent.core.unit_file import ServiceFacts, render_service, stamp
from tests.rig.container import Container, User
from tests.rig.guest import UNIT, Guest

pytestmark = pytest.mark.needs("systemd")

SHIPPED: Final = Path(__file__).parents[2] / "units"
PLAIN_HOME: Final = "/home/ann"
ODD_HOME: Final = '/home/An na\'s "50%" $HOME \\ é'
UNITS: Final = ".local/share/systemd/user"
SPOKEN: Final = "spoken"

SPEAKER: Final = f"""#!/bin/sh
cd
for word in "$0" "$@"; do printf '%s\\n' "$word"; done >{SPOKEN}
env >environment
systemd-notify --ready
exec sleep infinity
"""
"""Stands in for the program: writes down as what it was called, and is ready."""


@dataclass(frozen=True, slots=True)
class Written:
    """A guest with our files in its directory of units."""

    guest: Guest
    program: tuple[str, ...]

    def complaints(self) -> str:
        """What systemd-analyze(1) says of them; the exit status tells nothing of a misspelled directive."""
        units = [f"{UNITS}/{UNIT}", f"{UNITS}/app-ankita.slice"]
        return self.guest.run("systemd-analyze", "verify", "--user", "--man=no", *units).said


def write_units(guest: Guest) -> Written:
    """Render our files for the manager of the guest, and for a program in its home."""
    systemd = int(guest.ask("systemctl", "--version").split()[1])
    program = (f"{guest.home}/bin/py thon", "-P", "-m", "100% $PATH 'x'")
    facts = ServiceFacts(program, {"ANKITA_STATE_DIR": f"{guest.home}/st ate"}, "1.0", systemd)
    guest.write("bin/py thon", SPEAKER)
    guest.ask("chmod", "+x", "bin/py thon")
    guest.write(f"{UNITS}/{UNIT}", render_service((SHIPPED / UNIT).read_text(), facts))
    guest.write(f"{UNITS}/app-ankita.slice", (SHIPPED / "app-ankita.slice").read_text())
    guest.write(f"{UNITS}/{UNIT}.d/hardening.conf", stamp((SHIPPED / "hardening.conf").read_text(), "1.0"))
    assert guest.systemctl("daemon-reload").code == 0
    return Written(guest, program)


def test_systemd_has_nothing_to_say_about_what_we_render(bare_guest: Guest) -> None:
    written = write_units(bare_guest)
    assert written.complaints() == ""
    assert "bad unit file" not in bare_guest.journal()


def test_systemd_has_nothing_to_say_about_what_we_ship(bare_guest: Guest) -> None:
    bare_guest.write(f"{UNITS}/{UNIT}", (SHIPPED / UNIT).read_text())
    bare_guest.write(f"{UNITS}/app-ankita.slice", (SHIPPED / "app-ankita.slice").read_text())
    bare_guest.write(".local/bin/ankita-agent", "#!/bin/sh\n")
    bare_guest.ask("chmod", "+x", ".local/bin/ankita-agent")
    assert Written(bare_guest, ()).complaints() == ""


def test_a_misspelled_directive_is_told(bare_guest: Guest) -> None:
    written = write_units(bare_guest)
    bare_guest.ask("sed", "--in-place", "s/^KillMode=/KilMode=/", f"{UNITS}/{UNIT}")
    assert "KilMode" in written.complaints()


@pytest.mark.parametrize("home", [PLAIN_HOME, ODD_HOME], ids=["plain", "odd"])
def test_the_manager_executes_the_very_words_wherever_the_program_is(home: str, tree: str) -> None:
    with Container(tree, users=(User(home=home),)) as box:
        guest = Guest(box, box.users[0])
        written = write_units(guest)
        # Here it is a child of the program that says that it is ready.
        guest.write(f"{UNITS}/{UNIT}.d/stand-in.conf", "[Service]\nNotifyAccess=all\n")
        assert guest.systemctl("daemon-reload").code == 0
        started = guest.systemctl("start", UNIT)
        assert started.code == 0, guest.journal()
        assert guest.read(SPOKEN).splitlines() == list(written.program)
        assert f"ANKITA_STATE_DIR={home}/st ate" in guest.read("environment").splitlines()
        assert guest.show("ActiveState", "NeedDaemonReload", "Slice") == {
            "ActiveState": "active",
            "NeedDaemonReload": "no",
            "Slice": "app-ankita.slice",
        }
