"""What to do, taken apart: the words, and the command that can be copied as it stands.

The problem: faults end in advice such as `close it: chmod 700 /x`, made to be read in a line; whoever copies too much
or too little of it types something else. The rule: a command begins with a program that our advice is known to name,
can be read by a shell, and nothing else stands on its line. What is no such command stays among the words.
tests/unit/test_advice_parts.py holds it. Rejected: whatever stands behind the last colon.
"""

import re
import shlex
from typing import Final

PROGRAMS: Final = frozenset(
    {
        *("ankita-agent", "systemctl", "systemd-analyze", "journalctl", "loginctl", "timedatectl", "dmesg", "kill"),
        *("cat", "chmod", "chown", "cp", "df", "du", "find", "findmnt", "ls", "mkdir", "mv", "quota", "rm"),
        *("sudo", "env", "export", "unset"),
    }
)
"""What a command of ours begins with, behind assignments of variables."""

_GLUE: Final = re.compile(r", then |; | {2,}")  # between a command and the next words
_ASSIGNMENT: Final = re.compile(r"[A-Z_]+=")
_SUDO: Final = re.compile(r"(?:^|(?<=&& )|(?<=\| )|(?<=`))sudo ")


def split_advice(text: str) -> tuple[str, str]:
    """The words and the command of advice like `close it: chmod 700 /x`; either may be empty."""
    for found in reversed(list(re.finditer(": ", text))):
        words, command = text[: found.start()], _GLUE.split(text[found.end() :], maxsplit=1)[0]
        if is_command(command):
            return words, command
    return text, ""


def is_command(text: str) -> bool:
    """Whether it is a command line that our advice may name, and nothing else."""
    try:
        words = shlex.split(text)
    except ValueError:
        return False
    named = next((word for word in words if not _ASSIGNMENT.match(word)), "")
    return named.rpartition("/")[2] in PROGRAMS and "`" not in text and not text.endswith((":", ",", ";", "."))


def as_root(command: str) -> str:
    """A command, or advice with commands in backticks, for who is root already, and need not have sudo(8)."""
    return _SUDO.sub("", command)
