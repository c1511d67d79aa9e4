"""What is the matter with the service: facts in, findings out.

The problem: a user service stops running for reasons that show nowhere near it: lingering, a moved venv, a unit of
the same name in another directory, a variable of a shell. The rule: each finding says what is so, the fact behind it,
and the command that mends it, true for this user on this machine; where one finding explains others, only it is told.
tests/unit/test_diagnosis.py holds which facts give which finding, tests/systemd/test_doctor.py runs every command that
is said to mend and looks again. Rejected: a score; checks that only say that they passed.
"""

import shlex
from collections.abc import Iterator
from typing import Final

from ankita_agent.core.findings import Finding, FindingId, Mend, Severity
from ankita_agent.core.service import Activity, UnitState
from ankita_agent.core.unit_diagnosis import ServiceSeen, judge_copies, judge_files, judge_missing
from ankita_agent.core.unit_file import read_unit_file

OFTEN: Final = 3
"""Brought back so often since it was last started, a service is worth a look."""

CONFIGURATION: Final = 78
"""The exit status of an agent that a person must help: starting it again does not."""


def judge_service(seen: ServiceSeen, behind: str | None, version: str) -> Iterator[Finding]:
    """The service. `behind` is the version of an agent that runs as the service, None where none does."""
    state = seen.state
    yield from judge_copies(seen)
    if state.masked:
        yield _masked(state)
        return
    if state.load == "not-found":
        yield from judge_missing(seen)
        return
    files = list(judge_files(seen))
    yield from files
    if state.load != "loaded" or any(each.id is FindingId.UNIT_GONE for each in files):
        return
    yield from _activity(seen)
    alone = state.enabled and not seen.begins
    if alone or state.file in ("disabled", "enabled-runtime", "linked", "linked-runtime", "bad"):
        yield Finding(
            FindingId.NOT_ENABLED,
            Severity.WARNING,
            "the service starts with another unit alone, and not at boot"
            if alone
            else "the service does not start by itself: not at boot and not at login",
            "no link in default.target.wants leads to it" if alone else f"systemd calls its unit file {state.file}",
            "have it start by itself",
            "systemctl --user enable ankita-agent",
            Mend.ENABLE,
        )
    starts = read_unit_file(seen.file.before or "", "").program[:1]
    if behind not in (None, version) and starts in ((), seen.program[:1]):
        yield Finding(
            FindingId.VERSION_BEHIND,
            Severity.WARNING,
            f"the agent that runs is version {behind}, and {version} is installed",
            "it was started before that was",
            "change over to it; runs that go on are waited for",
            seen.call("restart"),
        )
    yield from _notes(seen)


def _masked(state: UnitState) -> Finding:
    runtime = " --runtime" if state.file == "masked-runtime" else ""
    return Finding(
        FindingId.MASKED,
        Severity.ERROR,
        "the service is masked: nothing can start it",
        f"its unit leads to /dev/null ({state.file or state.load})",
        "somebody forbade it to start; to allow it again",
        f"systemctl --user{runtime} unmask ankita-agent",
    )


def _activity(seen: ServiceSeen) -> Iterator[Finding]:
    state, start = seen.state, seen.call("start")
    if state.activity is Activity.FAILED and state.exit_status == CONFIGURATION and not state.by_signal:
        yield Finding(
            FindingId.FAILED,
            Severity.ERROR,
            "the service has failed: its configuration must be mended before it can start",
            f"exit status {CONFIGURATION}",
            "see what is wrong with routines.yaml, mend it, and start it",
            f"{seen.call('check')} && {start}",
        )
    elif state.activity is Activity.FAILED:
        yield Finding(
            FindingId.FAILED,
            Severity.ERROR,
            "the service has failed",
            _how_it_ended(state),
            f"see why with `{seen.journal}`, then start it",
            start,
            Mend.START,
        )
    elif state.activity is Activity.ACTIVATING and state.sub == "auto-restart":
        again = f", {_times(state.restarts)} so far" if state.restarts else ""
        yield Finding(
            FindingId.RESTARTING,
            Severity.ERROR,
            f"the service has ended without being asked to, and systemd starts it again{again}",
            _how_it_ended(state),
            "the journal says why",
            seen.journal,
        )
    elif state.activity is Activity.INACTIVE:
        yield Finding(
            FindingId.NOT_ACTIVE,
            Severity.WARNING,
            "the service does not run",
            "it was stopped, or never started",
            "start it",
            start,
            Mend.START,
        )


def _how_it_ended(state: UnitState) -> str:
    if state.exit_status is None:
        return f"systemd says {state.result}"
    end = "killed by signal" if state.by_signal else "exit status"
    meaning = ", the program could not be executed" if state.exit_status == 203 and not state.by_signal else ""
    return f"systemd says {state.result}, {end} {state.exit_status}{meaning}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _notes(seen: ServiceSeen) -> Iterator[Finding]:
    state = seen.state
    if state.activity.up and state.restarts >= OFTEN:
        yield Finding(
            FindingId.BROUGHT_BACK,
            Severity.NOTE,
            f"systemd brought the service back {_times(state.restarts)} since it was last started",
            "it ended without being asked to",
            "the journal says why",
            seen.journal,
        )
    for path in seen.drop_ins:
        yield Finding(
            FindingId.DROP_IN,
            Severity.NOTE,
            f"a drop-in changes the service: {path}",
            "",
            "to read it",
            f"cat {shlex.quote(path)}",
        )
    if seen.controllers is not None and "memory" not in seen.controllers:
        yield Finding(
            FindingId.LIMITS_WITHOUT_EFFECT,
            Severity.NOTE,
            "limits on memory have no effect on the service here",
            f"its manager may use the controllers: {', '.join(sorted(seen.controllers)) or 'none'}",
        )
