"""Whether the user's service manager runs while the user is not logged in: loginctl(1), `enable-linger`."""

from typing import Protocol


class Lingering(Protocol):
    """The lingering of the user we run as."""

    def lingers(self) -> bool | None:
        """Whether it is switched on; None when nobody can tell. Never waits for long, never raises."""
        ...

    def enable(self) -> None:
        """Switch it on. Raises ManagerRefused where it may not be, with the reason; nothing is changed then."""
        ...
