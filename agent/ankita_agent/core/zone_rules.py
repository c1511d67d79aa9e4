"""The rules of a time zone over some years, as a text that a ledger can keep.

The problem: rows that were right by the rules of yesterday are wrong by those of today, for governments change them and
a shell may read another database of zones than the service. Nobody has doubled or left out a slot then.

The rule: the ledger keeps the rules by which its owner reckons, and an account is taken only where they are those of
whoever takes it. Compared over a few years, and not for ever: a change that is announced for later matters to no row
yet, and the owner writes its rules anew whenever it puts routines in force. tests/unit/test_zone_rules.py holds it.
Rejected: the version of the database (most versions change a zone that nobody here lives in, and not all say theirs).
"""

import re
from dataclasses import dataclass
from typing import Final

from ankita_agent.core.instants import SECOND, Instant
from ankita_agent.core.zones import FIRST_YEAR, LAST_YEAR, UnknownZone, Zone, start_of, year_of, zone_named

AHEAD: Final = 2
"""Years after the present one whose rules are compared too: longer than an owner lives without a start or a reload."""

_TEXT: Final = re.compile(r"(\d{4})-(\d{4})(?: -?\d+[+-]\d+)+", re.ASCII)
_MOST_YEARS: Final = 50  # in a damaged ledger stands anything, and each year costs a third of a millisecond


@dataclass(frozen=True, slots=True)
class Ruled:
    """The instants that a text of rules is about: from `start`, inclusive, to `end`, exclusive."""

    start: Instant
    end: Instant


def rules_of(timezone: str, first: int, last: int) -> str | None:
    """The rules of a zone in these years, both inclusive: `2026-2028 1767225600+3600 1774746000+7200 …`, each change.

    Instants and offsets are in seconds. None for a zone that is not known here.
    """
    try:
        zone = zone_named(timezone)
    except UnknownZone:
        return None
    return f"{first}-{last} {' '.join(_changes(zone, start_of(first), start_of(last + 1)))}"


def ruled(timezone: str, rules: str) -> Ruled | None:
    """What these rules are about; None where the zone has other ones here, or nobody can read them."""
    years = _years_of(rules)
    if years is None or rules_of(timezone, *years) != rules:
        return None
    return Ruled(start_of(years[0]), start_of(years[1] + 1))


def renewed(timezone: str, rules: str, now: Instant) -> tuple[str, bool]:
    """The rules to keep from now on, empty for a zone that is not known here, and whether they go on those before.

    They do not when the zone has other ones now, or when those before say nothing about now.
    """
    year = min(max(year_of(now), FIRST_YEAR), LAST_YEAR - AHEAD)
    before, known = _years_of(rules), ruled(timezone, rules)
    goes_on = before is not None and known is not None and known.start <= now < known.end
    first = max(before[0], year - 1) if before is not None and goes_on else year
    return rules_of(timezone, first, year + AHEAD) or "", goes_on


def _changes(zone: Zone, start: Instant, end: Instant) -> list[str]:
    changes, at, offset = [], start, None
    while at < end:
        segment = zone.segment_at(at)
        if segment.offset != offset:
            changes.append(f"{at // SECOND}{segment.offset // SECOND:+}")
        at, offset = segment.end, segment.offset
    return changes


def _years_of(rules: str) -> tuple[int, int] | None:
    found = _TEXT.fullmatch(rules)
    if found is None:
        return None
    first, last = int(found[1]), int(found[2])
    sound = FIRST_YEAR < first <= last < LAST_YEAR and last - first < _MOST_YEARS
    return (first, last) if sound else None
