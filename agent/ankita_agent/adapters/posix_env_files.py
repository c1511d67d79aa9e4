"""Reading the files of variables that routines name."""

import os
import stat

_LARGEST = 1024 * 1024


class PosixEnvFiles:
    """ports.env_files.EnvFiles; opens without waiting, so that a fifo in its place cannot hang the agent."""

    def read(self, path: str) -> str:
        """The text of the file. Raises OSError, ValueError."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ValueError("it is not a regular file")
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise ValueError("it is larger than 1 MiB")
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"it is not UTF-8 text (byte {error.start})") from None
