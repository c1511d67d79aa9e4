"""Why a service is not up, in words: what its manager shows, what that means, and what to do about it.

Source: systemd.exec(5), "Process Exit Codes", for the statuses from 200 on; docs/design.md for ours.
"""

import shlex
from dataclasses import dataclass
from typing import Final

from ankita_agent.core.journal import is_system_account, lines_command
from ankita_agent.core.service import Activity, JobEnd, UnitState

LINES: Final = "journalctl --user -u ankita-agent -n 20 --no-pager"
"""What shows the newest that the service, and its manager about it, said; for an account of a person."""


def lines_for(uid: int) -> str:
    """The same for the account `uid`: what a system account wrote only root may read."""
    return f"{'sudo ' if is_system_account(uid) else ''}{lines_command(uid, '-n 20 --no-pager')}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The last three parts of a fault (core.errors): the fact observed, what is so now, what to do."""

    fact: str
    now: str
    do: str


_COMMAND_NOT_RUN: Final = 126
"""From here on a status may be about how the program was to be started, which a drop-in can change."""

_MEANINGS: Final[dict[int, tuple[str, str]]] = {
    69: ("what it needs cannot be reached", ""),
    70: ("a fault of ankita-agent itself", ""),
    73: ("it cannot write its state: no permission, read-only, or full", ""),
    78: ("there is no usable routines.yaml", "see what is wrong with it: ankita-agent check"),
    126: ("its program cannot be executed", "install it again, then: ankita-agent install"),
    127: ("its program is gone", "install it again, then: ankita-agent install"),
    200: ("it cannot enter your home directory", "see whether it is there: ls -ld ~"),
    203: ("its program is gone or cannot be executed", "install it again, then: ankita-agent install"),
    218: ("a drop-in asks for what a user manager cannot set up", "see all of it: systemctl --user cat ankita-agent"),
    226: ("a drop-in asks for what a user manager cannot set up", "see all of it: systemctl --user cat ankita-agent"),
    228: ("a drop-in asks for what this machine cannot filter", "without it: ankita-agent install --no-hardening"),
}
"""What an exit status means, and what mends it where that is known."""


def explain_end(state: UnitState, end: JobEnd, lines: str = LINES) -> Explanation:
    """Why a job to bring the service up ended as it did, as far as the unit shows it; `lines` shows what it said."""
    status = state.exit_status
    meaning, mend = "", ""
    if state.result == "exit-code" and status is not None and not state.by_signal:
        meaning, mend = _MEANINGS.get(status, ("", ""))
        fact = f"exit status {status}" + (f", {meaning}" if meaning else "")
        if status >= _COMMAND_NOT_RUN and state.drop_ins:
            mend += f"{'; or ' if mend else ''}mend or remove what is beside its unit file: {beside(state)}"
    elif state.by_signal and state.result in ("signal", "core-dump"):
        fact = f"it was ended by signal {status}"
    else:
        fact = _OTHER_RESULTS.get(state.result, f"its manager says: job {end}, result {state.result or 'unknown'}")
    return Explanation(fact, _now(state), f"{mend + '; ' if mend else ''}what it said last: {lines}")


def beside(state: UnitState) -> str:
    """The drop-ins of a unit, as a shell takes them."""
    return " ".join(map(shlex.quote, state.drop_ins))


_OTHER_RESULTS: Final = {
    "timeout": "it did not get ready in time, or did not end in time",
    "watchdog": "it made no progress, and its manager ended it",
    "protocol": "its program ended, or was another one, before it said that it was ready",
    "oom-kill": "the machine ran out of memory, and it was ended",
    "resources": "its manager lacked what it needs to start it",
    "start-limit-hit": "it was started too often in a short time",
}


def _now(state: UnitState) -> str:
    if state.activity is Activity.ACTIVATING:
        return "its manager tries again every second"
    if state.activity.up:
        return "it runs by now"
    return "it does not run, and its manager does not try again"
