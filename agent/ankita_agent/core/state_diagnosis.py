"""What is the matter with the state of the agent: facts in, findings out.

The account of the ledger is judged here: a slot that was doubled or left out is an error that names it.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, assert_never

from ankita_agent.core.advice import split_advice
from ankita_agent.core.errors import AnkitaError, LedgerDamaged
from ankita_agent.core.findings import Finding, FindingId, Severity
from ankita_agent.core.instants import Instant, format_instant
from ankita_agent.core.reckoning import Discrepancy, Mistake, Reckoning

_LISTED: Final = 5


def judge_state(examined: AnkitaError | None, ledger: AnkitaError | None, begin: str) -> Iterator[Finding]:
    """The state directory and the ledger in it; each None when there is nothing to say.

    `begin` is the command with which an agent begins to own, and sets a damaged ledger aside.
    """
    for id_, fault in ((FindingId.STATE_UNUSABLE, examined), (FindingId.LEDGER_UNREADABLE, ledger)):
        if fault is not None:
            do, command = split_advice(fault.do)
            if isinstance(fault, LedgerDamaged):
                command = begin
            yield Finding(id_, Severity.ERROR, fault.what, fault.fact, do, command)


def judge_account(doubled: Sequence[tuple[str, Instant]], reckonings: Mapping[str, Reckoning]) -> Iterator[Finding]:
    """Whether the ledger tells of each slot once."""
    for routine, slot in doubled[:_LISTED]:
        yield _of_slot(FindingId.SLOT_DOUBLED, routine, _twice(slot), "each slot must have one, and fire at most once")
    for routine, reckoning in reckonings.items():
        wrong = reckoning.wrong
        if wrong is not None and (wrong.mistake is not Mistake.TWICE or (routine, wrong.slot) not in doubled):
            yield _of_slot(*_differs(routine, wrong))


def _differs(routine: str, wrong: Discrepancy) -> tuple[FindingId, str, str, str]:
    slot = format_instant(wrong.slot)
    told = f"there the schedule has {wrong.by_schedule}, and the rows tell of {wrong.by_rows}"
    match wrong.mistake:
        case Mistake.LEFT_OUT:
            return FindingId.SLOT_LEFT_OUT, routine, f"left out: no row of the ledger tells of the slot {slot}", told
        case Mistake.TOO_FEW:
            what = f"left out: the row of the ledger that begins at {slot} tells of fewer slots than there are"
            return FindingId.SLOT_LEFT_OUT, routine, what, told
        case Mistake.TWICE:
            return FindingId.SLOT_DOUBLED, routine, _twice(wrong.slot), told
        case Mistake.TOO_MANY:
            what = f"the row of the ledger that begins at {slot} tells of more slots than there are"
            return FindingId.ROW_WITHOUT_SLOT, routine, what, told
        case Mistake.NO_SLOT:
            what = f"a row of the ledger tells of {slot}, which is no slot of the schedule"
            return FindingId.ROW_WITHOUT_SLOT, routine, what, told
        case Mistake.ABOVE:
            what = f"a row of the ledger tells of {slot}, and the slots are not decided as far as that"
            return FindingId.ROW_WITHOUT_SLOT, routine, what, "every slot up to the mark has a row, and none above it"
        case never:
            assert_never(never)


def _twice(slot: Instant) -> str:
    return f"more than one row of the ledger tells of the slot {format_instant(slot)}"


def _of_slot(id_: FindingId, routine: str, what: str, fact: str) -> Finding:
    see, command = "please report it, with what this shows", f"ankita-agent history {shlex.quote(routine)}"
    return Finding(id_, Severity.ERROR, f"{routine}: {what}", fact, see, command)
