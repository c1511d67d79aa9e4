"""The life of one attempt: a table of phases and events, and how its end is told.

The problem: an attempt has a leader (the process we started) and a family (all that came of it). The leader
may end and leave some of the family behind, refuse to end, or be unkillable; people, timeouts and shutdowns
ask for an end at any of these moments.

The rule, row by row (`-` changes nothing):

```
                ENDED_ALONE     ENDED_LEAVING            FAMILY_GONE  TIME_UP              STOP_ASKED
RUNNING         over: end       clearing: end,terminate  -            stopping: terminate  stopping: terminate
STOPPING        over: end       clearing: end            -            killing: kill        -
KILLING         over: end       clearing_kill: end,kill  -            stuck, kill again    -
CLEARING        -               -                        over         clearing_kill: kill  -
CLEARING_KILL   -               -                        over         stuck, kill again    -
OVER            -               -                        -            -                    -
```

The outcome is decided the moment the leader ends; clearing up after it never changes it. The routine's lock
is free only when the attempt is over. Nothing waits for the end of the output: a descendant may hold it open
for ever. tests/unit/test_supervise.py walks the whole table.

Rejected: a second SIGTERM for what is left when a leader ends on the first (many programs take the second for
"now, uncleanly"); giving up on a process that survives SIGKILL (its routine stays
taken and the agent says so).
"""

from collections.abc import Collection
from enum import StrEnum
from typing import assert_never

from ankita_agent.core.outcomes import Outcome, Reason


class Phase(StrEnum):
    """Where an attempt is in its life."""

    RUNNING = "running"
    STOPPING = "stopping"  # SIGTERM was sent
    KILLING = "killing"  # SIGKILL was sent
    CLEARING = "clearing"  # the leader has ended; what it left has SIGTERM
    CLEARING_KILL = "clearing_kill"  # what it left has SIGKILL
    OVER = "over"  # nothing is left of it

    @property
    def leader_lives(self) -> bool:
        """Whether the process that we started has not been seen to end."""
        return self in (Phase.RUNNING, Phase.STOPPING, Phase.KILLING)


class Event(StrEnum):
    """What can happen to an attempt."""

    ENDED_ALONE = "ended_alone"  # the leader ended, and nothing of its family that is ours to stop is left
    ENDED_LEAVING = "ended_leaving"  # the leader ended, and some of its family lives
    FAMILY_GONE = "family_gone"
    TIME_UP = "time_up"  # the timeout, or the time that a stop step was given
    STOP_ASKED = "stop_asked"


class Effect(StrEnum):
    """What is to be done, in this order."""

    NOTE_REASON = "note_why"  # from now on, why we stop it decides how it ends
    END = "end"  # the fire is over: report how
    TERMINATE = "terminate"  # SIGTERM and SIGCONT, then `kill_after`
    KILL = "kill"  # SIGKILL, then a moment
    STUCK = "stuck"  # it survived SIGKILL: say so
    LET_GO = "let_go"  # free the routine's lock, close its output


class StopReason(StrEnum):
    """Why we stop an attempt. The first to ask decides."""

    TIMEOUT = "timeout"
    PERSON = "person"
    SHUTDOWN = "shutdown"
    FENCE = "fence"


Step = tuple[Phase, tuple[Effect, ...]]


def advance(phase: Phase, event: Event) -> Step:
    """The next phase and what to do, for every phase and every event."""
    match phase:
        case Phase.RUNNING:
            return _running(event)
        case Phase.STOPPING:
            return _stopping(event)
        case Phase.KILLING:
            return _killing(event)
        case Phase.CLEARING:
            return _clearing(phase, event)
        case Phase.CLEARING_KILL:
            return _clearing(phase, event)
        case Phase.OVER:
            return Phase.OVER, ()
        case _:
            assert_never(phase)


def _running(event: Event) -> Step:
    match event:
        case Event.ENDED_ALONE:
            return Phase.OVER, (Effect.END, Effect.LET_GO)
        case Event.ENDED_LEAVING:
            return Phase.CLEARING, (Effect.END, Effect.TERMINATE)
        case Event.FAMILY_GONE:
            return Phase.RUNNING, ()
        case Event.TIME_UP | Event.STOP_ASKED:
            return Phase.STOPPING, (Effect.NOTE_REASON, Effect.TERMINATE)
        case _:
            assert_never(event)


def _stopping(event: Event) -> Step:
    match event:
        case Event.ENDED_ALONE:
            return Phase.OVER, (Effect.END, Effect.LET_GO)
        case Event.ENDED_LEAVING:
            return Phase.CLEARING, (Effect.END,)
        case Event.TIME_UP:
            return Phase.KILLING, (Effect.KILL,)
        case Event.FAMILY_GONE | Event.STOP_ASKED:
            return Phase.STOPPING, ()
        case _:
            assert_never(event)


def _killing(event: Event) -> Step:
    match event:
        case Event.ENDED_ALONE:
            return Phase.OVER, (Effect.END, Effect.LET_GO)
        case Event.ENDED_LEAVING:
            return Phase.CLEARING_KILL, (Effect.END, Effect.KILL)
        case Event.TIME_UP:
            return Phase.KILLING, (Effect.STUCK, Effect.KILL)
        case Event.FAMILY_GONE | Event.STOP_ASKED:
            return Phase.KILLING, ()
        case _:
            assert_never(event)


def _clearing(phase: Phase, event: Event) -> Step:
    match event:
        case Event.FAMILY_GONE:
            return Phase.OVER, (Effect.LET_GO,)
        case Event.TIME_UP if phase is Phase.CLEARING:
            return Phase.CLEARING_KILL, (Effect.KILL,)
        case Event.TIME_UP:
            return phase, (Effect.STUCK, Effect.KILL)
        case Event.ENDED_ALONE | Event.ENDED_LEAVING | Event.STOP_ASKED:
            return phase, ()
        case _:
            assert_never(event)


ASKED_TO_BE_SKIPPED = 75
"""EX_TEMPFAIL of sysexits.h: the command itself asks that this run count as skipped."""


def judge_end(
    why: StopReason | None, exit_code: int | None, success_exit_status: Collection[int]
) -> tuple[Outcome, Reason | None]:
    """How a fire ended: why we stopped it, else its exit status (None: a signal that nobody here sent)."""
    if why is not None:
        return outcome_of_stop(why)
    if exit_code is None:
        return Outcome.FAILED, Reason.KILLED
    if exit_code in success_exit_status:
        return Outcome.SUCCEEDED, None
    if exit_code == ASKED_TO_BE_SKIPPED:
        return Outcome.SKIPPED, Reason.ASKED
    return Outcome.FAILED, Reason.EXIT_STATUS


def outcome_of_stop(why: StopReason) -> tuple[Outcome, Reason]:
    """How a fire ends that we stopped."""
    match why:
        case StopReason.TIMEOUT:
            return Outcome.TIMED_OUT, Reason.TIMEOUT
        case StopReason.PERSON:
            return Outcome.STOPPED, Reason.ASKED_TO_STOP
        case StopReason.SHUTDOWN:
            return Outcome.STOPPED, Reason.SHUTDOWN
        case StopReason.FENCE:
            return Outcome.STOPPED, Reason.FENCED
        case _:
            assert_never(why)
