"""What is wrong with a routines.yaml, one finding each, with its place and what to write instead."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """Whether the file does not come into force for it."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One finding in a file. `line` and `column` count from 1; 0 means the file as a whole."""

    line: int
    column: int
    problem: str
    fix: str
    severity: Severity = Severity.ERROR
