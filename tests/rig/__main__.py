"""`python -m tests.rig [OPTIONS] [-- COMMAND...]`: a command, or a shell, as an ordinary user in a fresh container."""

import argparse
import os
import subprocess
import sys
from contextlib import ExitStack

from tests.rig import program
from tests.rig.container import Container, User
from tests.rig.guest import Guest


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.rig", description=__doc__)
    parser.add_argument("--home", default="/home/ann", help="the home directory of ann")
    parser.add_argument("--login", action="store_true", help="do not linger: log in")
    parser.add_argument("--polkit", action="store_true", help="have polkit running")
    parser.add_argument("--tree", default="/", help="boot this tree, made by .ci/tree, instead of this machine's")
    parser.add_argument("--root", action="store_true", help="run it as root")
    parser.add_argument("command", nargs="*", default=["bash"])
    asked = parser.parse_args()
    tree = os.path.abspath(asked.tree)
    with ExitStack() as stack:
        made = stack.enter_context(program.prepared(tree))
        ann = User(home=asked.home, lingers=not asked.login)
        box = stack.enter_context(Container(tree, users=(ann,), binds=made.binds, polkit=asked.polkit))
        if asked.login:
            stack.enter_context(Guest(box, ann).logged_in())
        entering = box.entering(asked.command) if asked.root else box.entering_as(ann, asked.command)
        return subprocess.run(entering, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
