"""A home with a service manager, for installing into it and taking away again."""

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from ankita_agent.adapters.posix_files import PosixFiles
from ankita_agent.adapters.routine_files import judge_directory
from ankita_agent.app.installation import Installation, Shipped, Wanted, Whereto
from ankita_agent.app.removal import Removal
from ankita_agent.app.unit_files import UnitFiles
from ankita_agent.core.elsewhere import Elsewhere, refuse_taking_over
from ankita_agent.core.install_plan import Plan
from ankita_agent.core.instants import SECOND, Duration
from ankita_agent.core.service import UNIT, UnitState
from ankita_agent.ports.files import Descriptor
from ankita_agent.shipped import shipped_text
from ankita_agent.testing.clocks import FakeClock
from ankita_agent.testing.lingering import FakeLingering
from ankita_agent.testing.service_manager import FakeServiceManager

SHIPPED: Final = Shipped(
    shipped_text("units", UNIT),
    shipped_text("units", "app-ankita.slice"),
    shipped_text("units", "hardening.conf"),
    "routines: {}\n",
    "{}\n",
)
PROGRAM: Final = ("/opt/venv/bin/python", "-m", "ankita_agent", "run", "--standby")


class FailingFiles(PosixFiles):
    """A disk that refuses to replace files from a certain one on."""

    def __init__(self) -> None:
        self.fails_from: str | None = None
        self.failure = errno.ENOSPC

    def replace_all(self, directory: Descriptor, contents: Mapping[str, bytes]) -> None:
        """Fail where told, else as always."""
        if self.fails_from is not None and self.fails_from in contents:
            raise OSError(self.failure, os.strerror(self.failure), self.fails_from)
        super().replace_all(directory, contents)


class House:
    """A home with a service manager."""

    def __init__(self, root: Path) -> None:
        self.units, self.own = root / "data/systemd/user", root / "config/systemd/user"
        self.config = root / "config/ankita-agent"
        self.files = FailingFiles()
        self.manager = FakeServiceManager([str(self.own), str(self.units)])
        self.lingering = FakeLingering()
        self.told: list[str] = []
        self.elsewhere: tuple[Elsewhere, ...] = ()
        self.clock = FakeClock()
        self.meanwhile: Callable[[], None] = lambda: None
        self.runtime = root / "run/systemd/user"

    @property
    def service(self) -> Path:
        return self.units / UNIT

    @property
    def routines(self) -> Path:
        return self.config / "routines.yaml"

    @property
    def hardening(self) -> Path:
        return self.units / f"{UNIT}.d" / "hardening.conf"

    @property
    def state(self) -> UnitState:
        return self.manager.state(UNIT)

    def plan(
        self,
        version: str = "1",
        program: tuple[str, ...] = PROGRAM,
        hardening: bool | None = None,
        linger: bool | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Plan:
        return self._installation().plan(Wanted(program, environment or {}, version, hardening, linger))

    def install(
        self,
        version: str = "1",
        program: tuple[str, ...] = PROGRAM,
        hardening: bool | None = None,
        linger: bool | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> UnitState:
        plan = self.plan(version, program, hardening, linger, environment)
        self.told.clear()
        installation = self._installation()
        installation.carry_out(plan)
        return installation.start(plan)

    def uninstall(self, *, now: bool = False) -> None:
        self.told.clear()
        removal = self._removal()
        installed = removal.look()
        if installed.nothing:
            self.told.append("nothing")
            return
        if installed.running:
            removal.stop(now=now)
        removal.carry_out(installed)

    def look(self) -> tuple[str, ...]:
        return self._removal().look().own

    def names(self) -> set[str]:
        """Every file and link below the home."""
        root = self.config.parents[1]
        return {str(each.relative_to(root)) for each in root.rglob("*") if each.is_symlink() or each.is_file()}

    def directories(self) -> set[str]:
        root = self.config.parents[1]
        return {str(each.relative_to(root)) for each in root.rglob("*") if each.is_dir() and not each.is_symlink()}

    @property
    def said(self) -> str:
        return "\n".join(self.told)

    def _disk(self) -> UnitFiles:
        return UnitFiles(self.files, judge_directory, os.path.realpath)

    def _whereto(self) -> Whereto:
        return Whereto(str(self.units), str(self.routines), str(self.own), str(self.runtime))

    def _installation(self) -> Installation:
        def refuse(unit: UnitState) -> None:
            refuse_taking_over(self.elsewhere if unit.fragment else (), ())

        def complaints(unit: str) -> list[str]:
            return [f"something is wrong with {unit}"]

        return Installation(
            self.manager,
            self.lingering,
            self._disk(),
            SHIPPED,
            self._whereto(),
            self.told.append,
            refuse,
            complaints,
        )

    def _removal(self) -> Removal:
        def pause(_: Duration) -> None:
            self.clock.pass_time(Duration(SECOND))
            self.meanwhile()

        return Removal(self.manager, self._disk(), SHIPPED, self._whereto(), self.clock, pause, self.told.append)


INSTALLED: Final = {
    "data/systemd/user/ankita-agent.service",
    "data/systemd/user/app-ankita.slice",
    "config/ankita-agent/routines.yaml",
    "config/ankita-agent/routines.schema.json",
    "config/systemd/user/default.target.wants/ankita-agent.service",
}
