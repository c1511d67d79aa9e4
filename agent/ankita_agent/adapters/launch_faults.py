"""Why a program could not be started, told from what is on the disk: errno alone misleads.

ENOENT means that the program, its `#!` interpreter, its loader or the working directory is missing; EACCES
that it is a directory, lacks its x bit, lies on a file system mounted noexec or behind a directory that is
closed to us. Source: execve(2).
"""

import errno
import os
import stat

from ankita_agent.ports.processes import Launch

_SHORTAGES = {
    errno.E2BIG: "its arguments and variables are too long for the system; pass long data in a file",
    errno.ENOMEM: "the machine has no memory left; it may work later",
    errno.EAGAIN: "the limit of processes is reached (ulimit -u, TasksMax=); it may work later",
    errno.EMFILE: "the agent has too many open files (ulimit -n); it may work later",
    errno.ENFILE: "the machine has too many open files; it may work later",
    errno.ETXTBSY: "the program is being written to; it may work later",
}


def explain(error: OSError | ValueError, launch: Launch) -> str:
    """One line for a person: what could not be started, the fact, what to do."""
    return f"cannot start {launch.argv[0]!r}: {_fact(error, launch)}" if launch.argv else "the command is empty"


def _fact(error: OSError | ValueError, launch: Launch) -> str:
    if not isinstance(error, OSError):
        return f"an argument or a variable cannot be passed on ({error})"
    directory_fault = _fault_of_directory(launch.directory)
    if directory_fault is not None:
        return directory_fault
    number = error.errno or 0
    if number in _SHORTAGES:
        return _SHORTAGES[number]
    program = launch.argv[0]
    path = _found(program, launch)
    if path is None:
        searched = launch.environment.get("PATH", os.defpath)
        return f"there is no such program on PATH ({searched}); write its whole path, or set PATH under env"
    return _fault_of_file(number, path)


def _fault_of_directory(directory: str) -> str | None:
    try:
        status = os.stat(directory)
    except FileNotFoundError:
        return f"its working directory {directory!r} is not there; make it, or change cwd"
    except OSError as error:
        return f"its working directory {directory!r} cannot be reached ({error.strerror}); change cwd"
    if not stat.S_ISDIR(status.st_mode):
        return f"its working directory {directory!r} is not a directory; change cwd"
    if not os.access(directory, os.X_OK):
        return f"its working directory {directory!r} is closed to us; run chmod +x on it, or change cwd"
    return None


def _found(program: str, launch: Launch) -> str | None:
    """The file that was meant: as written, or the first on PATH that is executable, or else that is there."""
    if "/" in program:
        return os.path.join(launch.directory, program)
    entries = os.get_exec_path(dict(launch.environment))
    paths = [os.path.join(launch.directory, entry, program) for entry in entries]
    files = [path for path in paths if os.path.isfile(path)]
    return next((path for path in files if os.access(path, os.X_OK)), files[0] if files else None)


def _fault_of_file(number: int, path: str) -> str:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        if os.path.islink(path):
            return f"{path!r} is a link to {os.readlink(path)!r}, which is not there"
        return f"there is no file {path!r}; look at its spelling, or put it there"
    except OSError as error:
        return f"{path!r} cannot be reached ({error.strerror})"
    if stat.S_ISDIR(status.st_mode):
        return f"{path!r} is a directory; name a program in it"
    if number == errno.ENOENT:
        return _missing_interpreter(path)
    if number == errno.EACCES and not os.access(path, os.X_OK):
        return f"{path!r} is not executable; run: chmod +x {path}"
    if number == errno.EACCES:
        return f"{path!r} may not be executed: its interpreter may not, or its file system is mounted noexec"
    if number == errno.ENOEXEC:
        return f"{path!r} is no program for this machine; a script begins with a line like #!/bin/sh"
    return f"{path!r}: {os.strerror(number)}"


def _missing_interpreter(path: str) -> str:
    try:
        with open(path, "rb") as file:
            first = file.readline(256)
    except OSError:
        first = b""
    if not first.startswith(b"#!"):
        return f"{path!r} is built for another system: its loader is not there"
    line = first.rstrip(b"\n").decode("utf-8", "replace")
    if line.endswith("\r"):
        return f"the first line of {path!r} ends as on Windows ({line!r}); run: sed -i 's/\\r$//' {path}"
    return f"the first line of {path!r} names a program that is not there ({line}); mend that line"
