"""What this machine can do, probed once, so that a test that needs more is skipped with the reason.

A capability is asked of the machine by doing the thing, never guessed from its name or version.
"""

import functools
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.rig.container import BootFailed, Container
from tests.rig.program import prepare, why_no_pystemd


def _missing_root() -> str | None:
    return None if os.geteuid() == 0 else "needs root"


def _missing_mount() -> str | None:
    if shutil.which("unshare") is None:
        return "needs unshare(1)"
    return _refusal("unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt")


def _missing_bindfs() -> str | None:
    if shutil.which("bindfs") is None:
        return "needs the program bindfs"
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"needs /dev/fuse: {error.strerror}"
    return _missing_mount()


def _missing_user_switch() -> str | None:
    if shutil.which("setpriv") is None:
        return "needs setpriv(1)"
    return _refusal("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "true")


def _missing_gcc() -> str | None:
    return None if shutil.which("gcc") else "needs gcc(1)"


def _missing_systemd_analyze() -> str | None:
    return None if shutil.which("systemd-analyze") else "needs systemd-analyze(1)"


def _missing_systemd() -> str | None:
    """A container of the rig that boots: it takes root, systemd-nspawn, D-Bus, PAM's systemd, a Python for all
    and, the first time, what the program requires."""
    lacking = [name for name in ("systemd-nspawn", "dbus-daemon", "nsenter", "setpriv") if shutil.which(name) is None]
    if os.geteuid() != 0 or lacking:
        return f"needs {lacking[0]}(1)" if lacking else "needs root, to boot a systemd in a container"
    try:
        with Container():
            prepare()
    except (AssertionError, BootFailed, OSError) as error:
        said = str(error).strip().splitlines()
        return f"needs a systemd in a container with our program in it: {said[-1] if said else error!r}"
    return None


def _missing_pystemd() -> str | None:
    if (missing := why_missing("systemd")) is not None:
        return missing
    return why_no_pystemd()


def _refusal(*command: str) -> str | None:
    """Why the command did not succeed, in one line, or None when it did."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)
    if done.returncode == 0:
        return None
    said = done.stderr.strip().splitlines()
    return f"{' '.join(command)}: {said[-1] if said else f'exit status {done.returncode}'}"


_PROBES: Final[dict[str, Callable[[], str | None]]] = {
    "root": _missing_root,
    "mount": _missing_mount,
    "bindfs": _missing_bindfs,
    "user-switch": _missing_user_switch,
    "gcc": _missing_gcc,
    "systemd-analyze": _missing_systemd_analyze,
    "systemd": _missing_systemd,
    "pystemd": _missing_pystemd,
}
NAMES: Final = frozenset(_PROBES)


@functools.cache
def why_missing(capability: str) -> str | None:
    """Why this machine lacks the capability, in one line; None when it has it. Raises KeyError."""
    return _PROBES[capability]()


def required(text: str) -> frozenset[str]:
    """The capabilities that a comma list names, as in ANKITA_REQUIRE. ValueError names an unknown one."""
    names = frozenset(filter(None, (part.strip() for part in text.split(","))))
    if names - NAMES:
        raise ValueError(f"unknown capability {', '.join(sorted(names - NAMES))}; there are {', '.join(sorted(NAMES))}")
    return names


@dataclass(frozen=True, slots=True)
class Lacking:
    """A capability that is not here: a test that needs it is skipped, or fails when it was required."""

    reason: str
    fails: bool


def judge(
    capability: str, required_here: frozenset[str], why: Callable[[str], str | None] = why_missing
) -> Lacking | None:
    """Whether a test that needs the capability may run (None), or what becomes of it."""
    reason = why(capability)
    if reason is None:
        return None
    if capability in required_here:
        return Lacking(f"ANKITA_REQUIRE names {capability!r}, and it is missing: {reason}", fails=True)
    return Lacking(reason, fails=False)
