"""How a slot can end, why, what started it, and how a routine is doing: closed sets."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Outcome(StrEnum):
    """How a slot ended. Every slot ends in exactly one."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    STOPPED = "stopped"
    SKIPPED = "skipped"
    MISSED = "missed"
    LOST = "lost"

    @property
    def success(self) -> bool:
        """Whether this may ever be shown as a success: one outcome may."""
        return self is Outcome.SUCCEEDED


class Reason(StrEnum):
    """Why a slot ended so. Each belongs to one outcome (`REASONS`); docs/glossary.md says what it means."""

    # failed
    EXIT_STATUS = "exit_status"
    KILLED = "killed"  # by a signal that nobody here sent
    SPAWN = "spawn"  # could not be started
    # timed_out
    TIMEOUT = "timeout"
    # stopped
    ASKED_TO_STOP = "asked_to_stop"  # a person
    SHUTDOWN = "shutdown"
    FENCED = "fenced"
    # skipped
    OVERLAP = "overlap"
    PAUSED = "paused"
    CONDITION = "condition"
    LOCKED = "locked"
    ELSEWHERE = "elsewhere"
    LEASE_UNAVAILABLE = "lease_unavailable"
    BUDGET = "budget"
    SUPERSEDED = "superseded"
    ASKED = "asked"  # the command itself, by exit status 75
    # missed
    ASLEEP = "asleep"
    OFF = "off"
    NOT_RUNNING = "not_running"
    GRACE = "grace"
    CLOCK = "clock"
    LEDGER = "ledger"
    # lost
    OWNER_KILLED = "owner_killed"
    STATUS_UNKNOWN = "status_unknown"


REASONS: Final[Mapping[Outcome, frozenset[Reason]]] = {
    Outcome.SUCCEEDED: frozenset(),
    Outcome.FAILED: frozenset({Reason.EXIT_STATUS, Reason.KILLED, Reason.SPAWN}),
    Outcome.TIMED_OUT: frozenset({Reason.TIMEOUT}),
    Outcome.STOPPED: frozenset({Reason.ASKED_TO_STOP, Reason.SHUTDOWN, Reason.FENCED}),
    Outcome.SKIPPED: frozenset(
        {
            Reason.OVERLAP,
            Reason.PAUSED,
            Reason.CONDITION,
            Reason.LOCKED,
            Reason.ELSEWHERE,
            Reason.LEASE_UNAVAILABLE,
            Reason.BUDGET,
            Reason.SUPERSEDED,
            Reason.ASKED,
        }
    ),
    Outcome.MISSED: frozenset(
        {Reason.ASLEEP, Reason.OFF, Reason.NOT_RUNNING, Reason.GRACE, Reason.CLOCK, Reason.LEDGER}
    ),
    Outcome.LOST: frozenset({Reason.OWNER_KILLED, Reason.STATUS_UNKNOWN}),
}
"""The reasons of each outcome. A success has none; every other outcome has exactly one. The ledger refuses
any other pair."""


class Trigger(StrEnum):
    """What started a fire."""

    SCHEDULE = "schedule"
    CATCH_UP = "catch_up"
    MANUAL = "manual"
    RETRY = "retry"


class Health(StrEnum):
    """How a routine is doing."""

    OK = "ok"
    FAILING = "failing"
    STALLED = "stalled"
    PAUSED = "paused"
    NEW = "new"
