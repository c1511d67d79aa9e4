"""Lingering that is a switch, or one that nobody lets us turn."""

from ankita_agent.core.reaching import lingering_refused


class FakeLingering:
    """ports.lingering.Lingering. `on` is what it is now; `refusal` is why it may not be switched on."""

    def __init__(self, on: bool | None = False, refusal: str | None = None) -> None:
        self.on = on
        self.refusal = refusal

    def lingers(self) -> bool | None:
        """What it is now."""
        return self.on

    def enable(self) -> None:
        """Switch it on, unless that is refused."""
        if self.refusal is not None:
            raise lingering_refused("ann", self.refusal)
        self.on = True
