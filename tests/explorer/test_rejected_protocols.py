"""What was rejected, and why: each protocol that judges a claim dead and removes it lets two own, or nobody again.

They run on the same simulated kernel as the production code, under the same watch. docs/protocol.md names them.
"""

from collections.abc import Callable

import pytest

from ankita_agent.app.owner import Standing as Stands
from ankita_agent.ports.files import Descriptor
from ankita_agent.testing.explorer import Bounds, Explorer
from ankita_agent.testing.kernel import ROOT, File, Kernel, Kind
from ankita_agent.testing.programs import Process
from tests.explorer.actors import STATE, Shown
from tests.explorer.watches import never_two_seated

CLAIM = "claim"
SIDECAR = "claim.recovery"


class Contender:
    """A process that wants the claim, which holds the pid of whoever owns."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.files = process.files
        self.state: Descriptor = self.files.open_directory(STATE)
        self.me = str(process.pid).encode()
        self._owns = False
        process.showing = lambda: Shown(Stands.SEATED.name if self._owns else Stands.WAITING.name)

    def create(self, name: str) -> bool:
        """Make the file with our pid, unless it is there."""
        return self.files.create(self.state, name, self.me)

    def read(self, name: str) -> bytes | None:
        """Whose pid the file holds."""
        try:
            return self.files.read(self.state, name, 100)
        except FileNotFoundError:
            return None

    def unlink(self, name: str) -> None:
        """Remove the file, whosever it is by now."""
        self.files.unlink(self.state, name)

    def dead(self, content: bytes | None) -> bool:
        """The verdict, which is always right here."""
        return content is not None and not self.process.sees(int(content))

    def own(self) -> None:
        """Be the owner for a while, and die as one."""
        self._owns = True
        self.files.names(self.state)
        self._owns = False


def sidecar_without_staleness(process: Process) -> None:
    """Who makes the sidecar may remove a dead claim; a dead sidecar stays."""
    one = Contender(process)
    if one.create(CLAIM):
        return one.own()
    claim = one.read(CLAIM)
    if not one.dead(claim) or not one.create(SIDECAR):
        return None
    if one.read(CLAIM) == claim:
        one.unlink(CLAIM)
        if one.create(CLAIM):
            one.own()
    return one.unlink(SIDECAR)


def sidecar(process: Process) -> None:
    """And a dead sidecar is removed as well."""
    one = Contender(process)
    if one.create(CLAIM):
        return one.own()
    claim = one.read(CLAIM)
    if not one.dead(claim):
        return None
    if not one.create(SIDECAR):
        if not one.dead(one.read(SIDECAR)):
            return None
        one.unlink(SIDECAR)
        if not one.create(SIDECAR):
            return None
    owns = False
    if one.read(CLAIM) == claim:
        one.unlink(CLAIM)
        owns = one.create(CLAIM)
    one.unlink(SIDECAR)
    return one.own() if owns else None


def sidecar_read_again(process: Process) -> None:
    """And whatever is removed is read once more just before, and the claim once more at the end."""
    one = Contender(process)
    if one.create(CLAIM):
        return one.own()
    claim = one.read(CLAIM)
    if not one.dead(claim):
        return None
    if not one.create(SIDECAR):
        other = one.read(SIDECAR)
        if not one.dead(other) or one.read(SIDECAR) != other:
            return None
        one.unlink(SIDECAR)
        if not one.create(SIDECAR):
            return None
    owns = False
    if one.read(CLAIM) == claim and one.read(SIDECAR) == one.me:
        one.unlink(CLAIM)
        owns = one.create(CLAIM)
    if one.read(SIDECAR) == one.me:
        one.unlink(SIDECAR)
    return one.own() if owns and one.read(CLAIM) == one.me else None


def rename_aside(process: Process) -> None:
    """A dead claim is renamed away, and looked at where nobody else looks."""
    one = Contender(process)
    aside = f"aside.{process.pid}"
    for _ in range(2):
        if one.create(CLAIM):
            return one.own()
        claim = one.read(CLAIM)
        if claim is not None and not one.dead(claim):
            return None
        if claim is not None and one.files.rename(one.state, CLAIM, aside) and one.read(aside) == claim:
            one.unlink(aside)
    return None


def left(**files: str) -> Kernel:
    """A state directory with these files, of pids that are gone."""
    kernel, state = Kernel().with_file(ROOT, STATE.strip("/"), File(Kind.DIRECTORY, b"", 0o700))
    for name, pid in files.items():
        kernel, _ = kernel.with_file(state, name.replace("_", "."), File(Kind.FILE, pid.encode(), 0o600))
    return kernel


def explored(protocol: Callable[[Process], None], kernel: Kernel, *, contenders: int, crashes: int) -> str | None:
    """The story of what goes wrong among so many contenders."""

    def newcomer(process: Process) -> None:
        protocol(process)
        assert Contender(process).read(CLAIM) == str(process.pid).encode(), "a newcomer that is alone cannot own"

    programs = {f"contender {number}": protocol for number in range(1, contenders + 1)}
    report = Explorer(kernel, programs, never_two_seated, newcomer, Bounds(crashes=crashes)).explore()
    assert report.story or report.exhausted
    return report.story


DEAD_CLAIM = left(claim="1")
BOTH_DEAD = left(claim="1", claim_recovery="2")


@pytest.mark.parametrize(
    ("protocol", "kernel", "contenders", "crashes"),
    [
        (sidecar, BOTH_DEAD, 2, 0),
        (sidecar, DEAD_CLAIM, 3, 1),
        (sidecar_read_again, BOTH_DEAD, 2, 0),
        (sidecar_read_again, DEAD_CLAIM, 3, 1),
        (rename_aside, DEAD_CLAIM, 2, 0),
    ],
)
def test_a_claim_that_is_judged_dead_and_removed_lets_two_own(
    protocol: Callable[[Process], None], kernel: Kernel, contenders: int, crashes: int
) -> None:
    story = explored(protocol, kernel, contenders=contenders, crashes=crashes)
    assert story is not None
    assert "two owners" in story, story


def test_a_sidecar_that_is_never_removed_lets_nobody_own_again() -> None:
    story = explored(sidecar_without_staleness, DEAD_CLAIM, contenders=2, crashes=1)
    assert story is not None
    assert "a newcomer that is alone cannot own" in story, story


def test_two_contenders_over_a_dead_claim_alone_show_nothing_of_it() -> None:
    assert explored(sidecar, DEAD_CLAIM, contenders=2, crashes=0) is None
