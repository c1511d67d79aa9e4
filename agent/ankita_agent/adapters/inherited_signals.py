"""What a process inherits of signals from whoever started it: a mask, and signals that are ignored (execve(2))."""

import signal
from typing import Final

_KEPT_BY_PYTHON: Final = frozenset({signal.SIGPIPE, signal.SIGXFSZ})
"""Ignored by the interpreter, restored by subprocess."""


def undo_inherited_signals() -> None:
    """Let every signal through, and put those that are ignored back to their defaults; handlers stay.

    SIGHUP excepted, which nohup(1) ignores on purpose. A blocked signal that waits is delivered at once, so
    handlers must be in place before.
    """
    for number in signal.valid_signals() - _KEPT_BY_PYTHON - {signal.SIGHUP}:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
