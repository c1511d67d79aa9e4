"""Numbers of a measurement, and the sheet on which they are shown: raw first, one table at the end."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

HEADINGS: Final = ("figure", "bound", "seen", "pass")


@dataclass(frozen=True, slots=True)
class Sample:
    """Numbers of one measurement in one unit, at least one, in the order in which they were taken."""

    what: str
    unit: str
    numbers: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return self.percentile(50)

    def percentile(self, percent: int) -> float:
        """The smallest number that at least so many of 100 do not exceed."""
        return sorted(self.numbers)[-(-len(self.numbers) * percent // 100) - 1]

    def short(self) -> str:
        """Middle, tail and worst on one line."""
        shown = f"median {self.median:.2f}, p99 {self.percentile(99):.2f}, max {max(self.numbers):.2f}"
        return f"{shown} {self.unit} (n={len(self.numbers)})"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A measurement that this machine cannot make, and why."""

    what: str
    why: str


class Sheet:
    """Shows what is measured as it comes, and keeps the rows of the table."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str, str, str]] = []

    def begin(self, title: str) -> None:
        """A new measurement."""
        print(f"\n== {title}", flush=True)

    def raw(self, sample: Sample | LeftOut) -> None:
        """Every number, as it was taken."""
        match sample:
            case LeftOut(what, why):
                print(f"{what}: left out: {why}", flush=True)
            case Sample(what, unit, numbers):
                print(f"{what}, {unit}: {' '.join(f'{number:.2f}' for number in numbers)}", flush=True)

    def figure(self, figure: str, bound: str, seen: str, *, passed: bool) -> None:
        """A row with a bound."""
        self._rows.append((figure, bound, seen, "yes" if passed else "NO"))

    def beside(self, what: str, seen: Sample | LeftOut | str) -> None:
        """A row without one: a peer in the same run, or a cost that is good to know."""
        match seen:
            case LeftOut(why=why):
                text = f"left out: {why}"
            case Sample():
                text = seen.short()
            case _:
                text = seen
        self._rows.append((f"  {what}", "", text, ""))

    def table(self) -> str:
        """The rows under their headings, in columns."""
        return "\n".join(_columns([HEADINGS, *self._rows]))


def pooled(what: str, samples: Iterable[Sample | LeftOut]) -> Sample | LeftOut:
    """The numbers of several rounds as one sample; the first that was left out stands for all."""
    rounds = list(samples)
    for each in rounds:
        if isinstance(each, LeftOut):
            return LeftOut(what, each.why)
    whole = [each for each in rounds if isinstance(each, Sample)]
    return Sample(what, whole[0].unit, tuple(number for each in whole for number in each.numbers))


def _columns(rows: list[tuple[str, str, str, str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
