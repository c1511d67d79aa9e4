"""The account of the ledger: how many slots it tells of since when, and where rows and schedules differ.

Every answer is a question to the ledger, made at the moment of asking, and all of them at one moment. See
`core.reckoning` for what is proved, and Untold for what cannot be.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ankita_agent.app.queries import timetable_of
from ankita_agent.core.instants import Instant
from ankita_agent.core.reckoning import Reckoning, reckon
from ankita_agent.core.rows import Account
from ankita_agent.core.schedule import Every, Timetable
from ankita_agent.core.zone_rules import Ruled, ruled
from ankita_agent.ports.ledger import LedgerReader

_MOST_DOUBLED: Final = 20

_Rules = dict[tuple[str, str], Ruled | None]


class Untold(StrEnum):
    """Why nothing can be told of a routine's slots."""

    UNREADABLE = "unreadable"  # this version cannot read its schedule, or this machine has no such time zone
    NO_RULES = "no_rules"  # the ledger does not say by which, as one of an earlier version
    OTHER_RULES = "other_rules"  # its time zone has other rules here than those that its rows were reckoned by


@dataclass(frozen=True, slots=True)
class AccountTold:
    """The account of every routine in force that has slots.

    `doubled` are slots of any routine, also of one that is not in force any more, that have more than one row: none,
    or the first of them. `untold` are routines of whose slots nothing can be told.
    """

    reckonings: Mapping[str, Reckoning]
    doubled: tuple[tuple[str, Instant], ...]
    untold: Mapping[str, Untold]

    @property
    def slots(self) -> int:
        """How many slots the rows tell of."""
        return sum(each.slots for each in self.reckonings.values())

    @property
    def since(self) -> Instant | None:
        """From when on it reaches furthest; None without routines."""
        return min((each.since for each in self.reckonings.values()), default=None)

    @property
    def until(self) -> Instant | None:
        """Up to when it reaches at most: later slots are not decided yet. None without routines."""
        return max((each.until for each in self.reckonings.values()), default=None)

    @property
    def one_beginning(self) -> bool:
        """Whether it reaches as far for each routine."""
        return len({each.since for each in self.reckonings.values()}) <= 1

    @property
    def right(self) -> bool:
        """Whether every slot that can be told of has one row, and every row such a slot."""
        return not self.doubled and all(each.wrong is None for each in self.reckonings.values())

    @property
    def left_out(self) -> tuple[tuple[str, Instant], ...]:
        """The first slot of each routine that has no row though it must have one."""
        wrong = ((name, each.wrong) for name, each in self.reckonings.items())
        return tuple((name, each.slot) for name, each in wrong if each is not None and each.left_out)


def take_account(ledger: LedgerReader) -> AccountTold:
    """Ask the ledger. Raises LedgerUnavailable or LedgerDamaged."""
    reckonings: dict[str, Reckoning] = {}
    untold: dict[str, Untold] = {}
    rules: _Rules = {}
    with ledger.one_moment():
        ledger.newest_term()  # which an owner reads first, as it does the summaries: damage there is damage
        for account in [each.account for each in ledger.summaries()]:
            name = account.in_force.routine
            timetable = timetable_of(account.in_force)
            if timetable is None:
                untold[name] = Untold.UNREADABLE
            elif not timetable.is_reboot:
                since = _since(account, timetable, rules)
                if since is None:
                    untold[name] = Untold.OTHER_RULES if account.zone_rules else Untold.NO_RULES
                else:
                    reckonings[name] = reckon(timetable, since, account.accounted_until, ledger.covered(name, since))
        doubled = tuple(ledger.doubled(_MOST_DOUBLED))
    return AccountTold(reckonings, doubled, untold)


def _since(account: Account, timetable: Timetable, known: _Rules) -> Instant | None:
    """From when on rows can be held against the slots as they are reckoned here; None when they cannot."""
    if isinstance(timetable.schedule.rule, Every):  # the same in every time zone
        return account.reckoned_since
    zone = (account.in_force.timezone, account.zone_rules)
    if zone not in known:
        known[zone] = ruled(*zone)
    found = known[zone]
    if found is None or account.accounted_until >= found.end:
        return None
    return max(account.reckoned_since, found.start)
