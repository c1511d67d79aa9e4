"""Lingering of the user we run as, by systemd-logind.

Source: loginctl(1), `enable-linger`; logind keeps a file named after the user in /var/lib/systemd/linger, which anybody
may look for. Whether a user may switch it on for themselves is a matter of polkit(8), and of whether it runs at all.
"""

import os
import subprocess
from collections.abc import Mapping
from typing import Final

from ankita_agent.core.instants import SECOND, Duration, in_seconds
from ankita_agent.core.reaching import lingering_refused

PATIENCE: Final = Duration(10 * SECOND)
DIRECTORY: Final = "/var/lib/systemd/linger"


class LoginManager:
    """ports.lingering.Lingering for `user`, by the program at the path `loginctl`, None where there is none.

    No call asks for a password; `enable` is over within `patience`. `environment` is what loginctl gets.
    """

    def __init__(
        self,
        user: str,
        loginctl: str | None,
        environment: Mapping[str, str],
        directory: str = DIRECTORY,
        patience: Duration = PATIENCE,
    ) -> None:
        self._user = user
        self._loginctl = loginctl
        self._environment = dict(environment)
        self._directory = directory
        self._patience = patience

    def lingers(self) -> bool | None:
        """Whether its file is there; None where logind keeps no such files."""
        try:
            os.stat(f"{self._directory}/{self._user}")
        except FileNotFoundError:
            return False if os.path.isdir(os.path.dirname(self._directory)) else None
        except OSError:
            return None
        return True

    def enable(self) -> None:
        """Switch it on, by whoever may: logind says whether we may."""
        if self._loginctl is None:
            raise lingering_refused(self._user, "there is no loginctl here")
        try:
            done = subprocess.run(
                # by name: left out, it is the user of the session, and under cron or su there is none
                [self._loginctl, "--no-ask-password", "enable-linger", self._user],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=in_seconds(self._patience),
                check=False,
            )
        except subprocess.TimeoutExpired:
            fact = f"loginctl did not answer within {in_seconds(self._patience):g} s"
        except OSError as error:
            fact = f"{self._loginctl}: {error.strerror}"
        else:
            if done.returncode == 0:
                return
            fact = done.stderr.decode("utf-8", "replace") or f"loginctl ended with exit status {done.returncode}"
        raise lingering_refused(self._user, fact)
