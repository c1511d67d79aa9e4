"""The account of the ledger: how many slots it tells of since when, and where the sum does not come out.

Every answer is a question to the ledger, made at the moment of asking. See `core.reckoning` for what can be told and
what cannot.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ankita_agent.app.queries import timetable_of
from ankita_agent.app.shift import KEEP_ROWS
from ankita_agent.core.instants import DAY, Instant
from ankita_agent.core.reckoning import Reckoning, reckon
from ankita_agent.ports.ledger import LedgerReader

MOST_SUMS: Final = 5000
"""How many sums are made at most, over all routines: about 0.1 s."""

_SAFE: Final = KEEP_ROWS - DAY  # pruning goes by the owner's clock, which may be set back a little afterwards
_MOST_DOUBLED: Final = 20


@dataclass(frozen=True, slots=True)
class AccountTold:
    """The account of every routine in force that has slots.

    `doubled` are slots of any routine, also of one that is not in force any more, that have more than one row: none,
    or the first of them. `untold` are routines whose slots this version or machine cannot reckon.
    """

    reckonings: Mapping[str, Reckoning]
    doubled: tuple[tuple[str, Instant], ...]
    untold: tuple[str, ...]

    @property
    def slots(self) -> int:
        """How many slots the rows tell of."""
        return sum(each.slots for each in self.reckonings.values())

    @property
    def since(self) -> Instant | None:
        """From when on it reaches furthest; None without routines."""
        return min((each.since for each in self.reckonings.values()), default=None)

    @property
    def left_out(self) -> tuple[tuple[str, Instant], ...]:
        """The first slot of each routine that has no row though it must have one."""
        wrong = ((name, each.wrong) for name, each in self.reckonings.items())
        return tuple((name, each.slot) for name, each in wrong if each is not None and each.left_out)


def take_account(ledger: LedgerReader) -> AccountTold:
    """Ask the ledger. Raises LedgerUnavailable or LedgerDamaged."""
    term = ledger.newest_term()
    oldest = Instant(0) if term is None else Instant(term.seen_until - _SAFE)
    accounts = ledger.accounts()
    sums = max(1, MOST_SUMS // max(1, len(accounts)))
    reckonings, untold = {}, []
    for name, account in accounts.items():
        timetable = timetable_of(account.in_force)
        if timetable is None:
            untold.append(name)
        elif not timetable.is_reboot:
            since = Instant(max(account.reckoned_since, oldest))
            rows = ledger.covered(name, since)
            reckonings[name] = reckon(timetable, since, account.accounted_until, rows, sums)
    return AccountTold(reckonings, tuple(ledger.doubled(_MOST_DOUBLED)), tuple(untold))
