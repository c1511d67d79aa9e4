"""A command learns how its children ended, also where its parent ignored its own."""

import subprocess
import sys
from typing import Final

PROGRAM: Final = """
import signal, subprocess, sys
from ankita_agent.cli.main import main

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
sys.argv = ["ankita-agent", "--version"]
try:
    main()
finally:
    print(subprocess.run(["false"]).returncode)
"""


def test_a_command_learns_how_its_children_ended_where_its_parent_ignored_them() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines()[-1] == "1", done.stderr
