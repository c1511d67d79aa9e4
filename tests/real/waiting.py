"""Waiting for something in the real world, never longer than a deadline, and never for a fixed time."""

import os
import select
import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

PATIENCE = 30.0
"""Seconds after which a test gives up: far more than anything takes, so that a busy machine fails nothing."""


def until(condition: Callable[[], Found], what: str = "") -> Found:
    """The first true answer of `condition`, asked again and again until the patience is over."""
    give_up = time.monotonic() + PATIENCE
    while not (found := condition()):
        if time.monotonic() > give_up:
            raise AssertionError(f"not within {PATIENCE:.0f} s: {what or condition}")
        select.select([], [], [], 0.002)
    return found


def has_children() -> bool:
    """Whether this process has a child, be it a zombie."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def childless() -> bool:
    """Whether this process has no child left; reaps one that has ended."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return True
    return False
