"""Numbers of a measurement and how they are shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ankita_agent.core.instants import MILLISECOND, Instant

HEADINGS: Final = ("what", "n", "p50 ms", "p99 ms", "max ms", "how")


@dataclass(frozen=True, slots=True)
class Measured:
    """How late each start was, in nanoseconds, sorted; `how` is one line on the method."""

    what: str
    how: str
    late: tuple[int, ...]

    def percentile(self, percent: int) -> int:
        """The smallest lateness that at least so many of 100 did not exceed."""
        return self.late[-(-len(self.late) * percent // 100) - 1]

    def cells(self) -> tuple[str, ...]:
        """One row of the table."""
        shown = [
            f"{span / MILLISECOND:.1f}" for span in (self.percentile(50), self.percentile(99), self.late[-1])
        ]
        return (self.what, str(len(self.late)), *shown, self.how)

    def raw(self) -> str:
        """Every number, in milliseconds."""
        return " ".join(f"{span / MILLISECOND:.2f}" for span in self.late)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A measurement that this machine cannot make, and why."""

    what: str
    why: str


def lateness(
    what: str, how: str, due: Instant, starts: Sequence[Instant], expected: int
) -> Measured | LeftOut:
    """The lateness of the starts; left out when not all came, or when one came early (the clock moved)."""
    late = tuple(sorted(start - due for start in starts))
    if len(late) != expected:
        return LeftOut(what, f"{len(late)} of {expected} started within 30 s")
    if late[0] < 0:
        return LeftOut(what, f"one started {-late[0] / MILLISECOND:.1f} ms early")
    return Measured(what, how, late)


def table(rows: Sequence[Measured]) -> str:
    """The rows under their headings, in columns."""
    cells = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEADINGS))]
    numbers = range(1, 5)
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i in numbers else cell.ljust(width) for i, (cell, width) in enumerate(pairs)
        )
        for pairs in (list(zip(row, widths, strict=True)) for row in cells)
    )
