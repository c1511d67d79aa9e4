"""Mending what may be mended: one thing at a time, looking again after each, for one may do for several findings."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from ankita_agent.app.examination import Examination
from ankita_agent.app.installation import START_PATIENCE, Installation, refuse_fleeting
from ankita_agent.core.errors import AnkitaError, ServiceNotUp
from ankita_agent.core.findings import Finding, Mend
from ankita_agent.core.install_plan import Plan
from ankita_agent.core.service import UNIT, JobEnd
from ankita_agent.core.service_ends import explain_end
from ankita_agent.ports.service_manager import ServiceManager


@dataclass(frozen=True, slots=True)
class Mended:
    """What `--fix` did about a finding; `fault` is why it failed, None when it was done."""

    finding: Finding
    fault: AnkitaError | None


class Mending:
    """Does what `--fix` may do, by the same hands as `install` and `start`."""

    def __init__(
        self,
        manager: ServiceManager,
        installation: Installation,
        plan: Callable[[], Plan],
        program: tuple[str, ...],
    ) -> None:
        self._manager = manager
        self._installation = installation
        self._plan = plan
        self._program = program

    def do(self, mend: Mend) -> None:
        """Do it. Raises AnkitaError: ManagerRefused, ServiceNotUp, CannotWriteState, ..."""
        match mend:
            case Mend.INSTALL:
                refuse_fleeting(self._program[0])
                plan = self._plan()
                self._installation.carry_out(plan)
                self._installation.start(plan)
            case Mend.RELOAD:
                self._manager.reload()
            case Mend.ENABLE:
                self._manager.enable(UNIT)
            case Mend.START:
                self._start()
            case _:
                assert_never(mend)

    def _start(self) -> None:
        self._manager.reset_failed(UNIT)
        match self._manager.start(UNIT, START_PATIENCE):
            case JobEnd.DONE | JobEnd.PENDING:
                pass
            case end:
                told = explain_end(self._manager.state(UNIT), end)
                raise ServiceNotUp("the service did not come up", fact=told.fact, now=told.now, do=told.do)


def mend_all(look: Callable[[], Examination], mend: Callable[[Mend], None]) -> tuple[list[Mended], Examination]:
    """Mend what may be mended, looking again after each; what was done, and what is left."""
    mended: list[Mended] = []
    tried: set[Mend] = set()
    while True:
        examination = look()
        order = list(Mend)
        open_ones = [each for each in examination.findings if each.mend is not None and each.mend not in tried]
        if not open_ones:
            return mended, examination
        finding = min(open_ones, key=lambda each: order.index(each.mend or order[-1]))
        assert finding.mend is not None
        tried.add(finding.mend)
        try:
            mend(finding.mend)
        except AnkitaError as fault:
            mended.append(Mended(finding, fault))
        else:
            mended.append(Mended(finding, None))
