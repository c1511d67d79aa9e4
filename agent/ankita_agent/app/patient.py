"""Whose agent doctor looks at, and whom it asks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ankita_agent.app.inspection import NOBODY, Seen
from ankita_agent.app.places import Places, find_places
from ankita_agent.core.elsewhere import Elsewhere
from ankita_agent.core.environment import UserFacts
from ankita_agent.core.errors import AnkitaError
from ankita_agent.core.install_plan import Plan
from ankita_agent.core.reaching import Place
from ankita_agent.core.routine_file import Judgement
from ankita_agent.core.service import UnitState
from ankita_agent.ports.ledger import LedgerReader
from ankita_agent.ports.lingering import Lingering
from ankita_agent.ports.premises import Premises
from ankita_agent.ports.routine_source import RoutineSource
from ankita_agent.ports.service_manager import ServiceManager


@dataclass(frozen=True, slots=True)
class Patient:
    """Whose agent is looked at, and from where.

    `runtime_directory` is where the user's manager listens; `variables` are those of the shell; `program` is what this
    installation would have the service start, and `unit_path` where it would write its unit.
    """

    place: Place
    runtime_directory: str
    user: UserFacts
    places: Places
    variables: Mapping[str, str]
    version: str
    program: tuple[str, ...]
    unit_path: str

    def places_by(self, variables: Mapping[str, str]) -> Places | None:
        """Where this user's things are by these variables; None where they lead nowhere."""
        try:
            return find_places(variables, self.user.home, lambda: self.user.home)
        except AnkitaError:  # a unit that somebody edited: the service itself says what is wrong with it
            return None


@dataclass(frozen=True, slots=True)
class Asked:
    """Whom doctor asks.

    `plan` is what installing would change, with the variables that the unit is to have, or None for those of the
    shell; `elsewhere` is in what the files of a unit differ from the shell (core.elsewhere), and `complaints` what
    systemd says against the unit, where it cannot use it.
    """

    premises: Premises
    manager: ServiceManager
    lingering: Lingering
    source: RoutineSource
    judge: Callable[[bytes], Judgement]
    plan: Callable[[Mapping[str, str] | None], Plan]
    elsewhere: Callable[[UnitState], tuple[Elsewhere, ...]]
    complaints: Callable[[], Sequence[str]]


@dataclass(frozen=True, slots=True)
class StateSeen:
    """What was seen of the state directory. `examined` and `problem` are faults of the directory and of its ledger.

    `before` is the copy at `copy` of the file that was in force last; None where there is none that can be read.
    """

    seen: Seen = NOBODY
    ledger: LedgerReader | None = None
    examined: AnkitaError | None = None
    problem: AnkitaError | None = None
    before: bytes | None = None
    copy: str = ""
