"""The user's service manager, asked through systemctl(1).

The problem: systemctl is made for people. It waits for a silent manager without end (252 did for more than 40 s), its
exit statuses differ between versions, and a name that is no unit's it takes for a pattern. The rule: every call has a
patience and a systemctl that exceeds it is killed; what is so is read from `show` alone; names are judged before.
The words of systemctl are read in one place, for how a job ended, which no property tells afterwards.
`tests/contract/test_service_manager_contract.py` holds it, and `tests/unit/test_systemctl_manager.py`.
"""

import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ankita_agent.core.errors import ManagerUnreachable
from ankita_agent.core.instants import SECOND, Duration, in_seconds
from ankita_agent.core.reaching import Address, check_unit_name, refused, silent
from ankita_agent.core.service import Activity, JobEnd, UnitState
from ankita_agent.core.unit_properties import DROP_INS, OF_SERVICE, OF_UNIT, read_unit, read_version

PATIENCE: Final = Duration(10 * SECOND)

_PATH_IN_LIST: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)')
_DOWN: Final = (Activity.INACTIVE, Activity.FAILED)
_ON_THE_WAY: Final = (Activity.ACTIVATING, Activity.DEACTIVATING)


@dataclass(frozen=True, slots=True)
class _Done:
    status: int
    out: str
    err: str


class SystemctlManager:
    """ports.service_manager.ServiceManager by the program at the path `systemctl`.

    `locate` says where the manager listens, and raises ManagerUnreachable; it is asked before each call. `environment`
    is what systemctl gets, besides the runtime directory. A systemctl that is killed while it waits for a job has
    handed the job over: it goes on.
    """

    def __init__(
        self,
        systemctl: str,
        environment: Mapping[str, str],
        locate: Callable[[], Address],
        patience: Duration = PATIENCE,
    ) -> None:
        self._systemctl = systemctl
        self._environment = dict(environment)
        self._locate = locate
        self._patience = patience

    @property
    def name(self) -> str:
        """What people call it."""
        return "systemd"

    def version(self) -> int:
        """The major number of the version of the manager, not of the program."""
        shown = _read_shown(self._ask("show", "--property=Version").out)
        try:
            return read_version(shown.get("Version", ""))
        except ValueError as error:
            raise refused("tell its version", str(error)) from None

    def state(self, unit: str) -> UnitState:
        """The unit as it is now."""
        check_unit_name(unit)
        properties = ",".join((*OF_UNIT, *OF_SERVICE, DROP_INS))
        done = self._ask("show", f"--property={properties}", "--", unit)
        shown = _read_shown(done.out)
        try:
            return read_unit(shown, _read_list(shown.get(DROP_INS, "")))
        except (KeyError, ValueError):
            raise refused(f"show {unit}", done.err or done.out or f"exit status {done.status}") from None

    def reload(self) -> None:
        """Have the unit files read again."""
        done = self._ask("daemon-reload")
        if done.status != 0:
            raise refused("read its unit files again", _said(done))

    def enable(self, unit: str) -> None:
        """Have the unit start with the manager; the manager knows of it at once."""
        check_unit_name(unit)
        done = self._ask("enable", "--", unit)
        if done.status != 0:
            raise refused(f"enable {unit}", _said(done))
        if self.state(unit).file == "static":
            raise refused(f"enable {unit}", "its unit file has no [Install] section that says what wants it")

    def disable(self, unit: str) -> None:
        """No longer start it with the manager."""
        check_unit_name(unit)
        done = self._ask("disable", "--", unit)
        if done.status != 0 and self.state(unit).load != "not-found":
            raise refused(f"disable {unit}", _said(done))

    def start(self, unit: str, patience: Duration) -> JobEnd:
        """Start it and wait for the end of the job."""
        return self._do("start", unit, patience)

    def stop(self, unit: str, patience: Duration) -> JobEnd:
        """Stop it and wait for the end of the job."""
        return self._do("stop", unit, patience)

    def restart(self, unit: str, patience: Duration) -> JobEnd:
        """Stop it if it runs, and start it."""
        return self._do("restart", unit, patience)

    def kill(self, unit: str, number: int) -> bool:
        """Send a signal to the main process of the unit."""
        if self.state(unit).main_pid is None:
            return False
        done = self._ask("kill", "--kill-who=main", f"--signal={number}", "--", unit)
        if done.status == 0:
            return True
        if self.state(unit).main_pid is None:
            return False
        raise refused(f"signal {unit}", _said(done))

    def reset_failed(self, unit: str) -> None:
        """Forget that it failed."""
        check_unit_name(unit)
        done = self._ask("reset-failed", "--", unit)
        if done.status != 0 and self.state(unit).activity is Activity.FAILED:
            raise refused(f"forget the failure of {unit}", _said(done))

    # -- inside

    def _do(self, verb: str, unit: str, patience: Duration) -> JobEnd:
        """Run a job. Its own patience tells nothing of a silent manager, so the manager is asked for something
        before, and once more when the patience is over: it has the job only if it answers.
        """
        before = self.state(unit).activity
        if patience == 0:
            done: _Done | None = self._ask(verb, "--no-block", "--", unit)
        else:
            done = self._run((verb, "--", unit), patience)
        if done is None:
            self.state(unit)
            return JobEnd.PENDING
        if done.status == 0:
            already = (verb == "start" and before.up) or (verb == "stop" and before in _DOWN)
            return JobEnd.DONE if patience > 0 or already else JobEnd.PENDING
        return _read_job_end(done.err) or self._judge_failure(verb, unit, done)

    def _judge_failure(self, verb: str, unit: str, done: _Done) -> JobEnd:
        """What it means that systemctl failed for another reason than the end of the job."""
        try:
            activity = self.state(unit).activity
        except ManagerUnreachable:
            raise silent(f"systemctl --user {verb} {unit}", self._patience) from None
        if activity in _ON_THE_WAY:  # the manager was executed anew, and has dropped its connections
            return JobEnd.PENDING
        if verb == "stop" and activity in _DOWN:
            return JobEnd.DONE
        raise refused(f"{verb} {unit}", _said(done))

    def _ask(self, *arguments: str) -> _Done:
        """One call that the manager has to answer within the patience."""
        done = self._run(arguments, self._patience)
        if done is None:
            raise silent(f"systemctl --user {' '.join(arguments)}", self._patience)
        return done

    def _run(self, arguments: tuple[str, ...], patience: Duration) -> _Done | None:
        """What systemctl said, or None when it was killed because the patience was over."""
        environment = self._environment | {"XDG_RUNTIME_DIR": self._locate().runtime_directory}
        try:
            done = subprocess.run(
                [self._systemctl, "--user", "--no-pager", "--no-ask-password", *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=in_seconds(patience),
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None
        except OSError as error:
            raise refused("be asked", f"{self._systemctl}: {error.strerror}") from None
        return _Done(done.returncode, _text(done.stdout), _text(done.stderr))


def _text(output: bytes) -> str:
    """Paths in it come out as the file system has them, whatever their bytes."""
    return output.decode("utf-8", "surrogateescape")


def _said(done: _Done) -> str:
    return done.err or f"systemctl ended with exit status {done.status} and said nothing"


def _read_shown(out: str) -> dict[str, str]:
    """`show` prints a property on a line, and a value with a line break as `[unprintable]`."""
    return {name: value for name, sign, value in (line.partition("=") for line in out.split("\n")) if sign}


def _read_list(text: str) -> tuple[str, ...]:
    """Paths with spaces between them; one with unusual characters is in double quotes, with backslashes."""
    return tuple(
        re.sub(r"\\(.)", r"\1", found[1], flags=re.DOTALL) if found[1] is not None else found[2]
        for found in _PATH_IN_LIST.finditer(text)
    )


def _read_job_end(said: str) -> JobEnd | None:
    """How the job ended that systemctl waited for, as it says; None when there never was a job."""
    for line in said.split("\n"):
        if line.startswith("A dependency job for "):
            return JobEnd.DEPENDENCY
        if line.startswith("Job for "):
            if line.endswith(" canceled."):
                return JobEnd.CANCELED
            return JobEnd.TIMEOUT if line.endswith(" timed out.") else JobEnd.FAILED
    return None
