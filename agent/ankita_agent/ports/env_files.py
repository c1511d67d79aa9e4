"""The files of variables that routines name."""

from typing import Protocol


class EnvFiles(Protocol):
    """Reads an `env_file`, each time an attempt starts, so that a secret can be changed without a reload."""

    def read(self, path: str) -> str:
        """The text of the file, links followed. Raises OSError; ValueError for what is no text or too large."""
        ...
