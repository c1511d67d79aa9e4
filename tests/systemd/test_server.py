"""docs/server.md, typed word by word on a machine that nobody logs in to."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.rig.guest import Guest
from tests.rig.program import WHEELS

pytestmark = pytest.mark.needs("systemd")

TEXT: Final = (Path(__file__).parents[2] / "docs" / "server.md").read_text(encoding="utf-8")
FIRST_TO_NAME_A_MANAGER: Final = 248
OFFLINE: Final = f"export PIP_NO_INDEX=1 PIP_FIND_LINKS={WHEELS}"


def commands() -> list[str]:
    """What the document tells root to type, in its order."""
    blocks = re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
    return [line.removeprefix("# ") for block in blocks for line in block.splitlines()]


def test_every_command_of_the_document_does_what_it_says(guest: Guest) -> None:
    version = int(guest.ask("systemctl", "--version").split()[1])
    guest.ask_root(
        "sh", "-c", f"cd && cp /opt/ankita-source/config/routines.yaml . && cp {WHEELS}/ankita_agent-*.whl ."
    )
    for command in commands():
        if " -M " in command and version < FIRST_TO_NAME_A_MANAGER:
            continue
        # a login of root's: logind of 257 has nothing to do with a process from outside its cgroups
        done = guest.root("su", "--login", "--command", f"{OFFLINE}; {command}", patience=120)
        assert done.code == 0, f"{command}\n{done.said}"
        if command.endswith("ankita-agent install'"):
            assert "journalctl _SYSTEMD_USER_UNIT=ankita-agent.service _UID=" in done.out or "Next:" not in done.out
        if command.startswith("journalctl "):
            assert "heartbeat: run 1 succeeded" in done.out
    assert guest.root("ls", "-A", "/home/routines/.config/ankita-agent").out == "routines.yaml\n"
    assert guest.root("find", "/home/routines/.local", "-type", "f").out == ""
