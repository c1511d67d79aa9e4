"""The program under test, where a container's users can run it.

Inside, at the same place in every tree: `/opt/ankita` is a virtual environment made of the tree's own Python, with
what the project requires, and with the project itself from `/opt/ankita-source`: a copy of the checkout, taken once
in a session, for a checkout may be out of a user's reach (below /root, or made with umask 077) and changes while one
works on it. `/opt/ankita-wheels` holds the wheel of the project and of all that it requires, for a user who installs
it: there is no network inside.

What takes long, the wheels of the requirements and the environment, is kept in `.trees/` until pyproject.toml
changes. For this machine's own tree pystemd is built from its source; where that fails it is left out, and the
capability `pystemd` says why. Another tree brings it as a package of its own (`.ci/tree`).
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.rig.container import make_folder, remove_folder
from tests.rig.guest import Guest

ROOT: Final = Path(__file__).parents[2]
KEPT: Final = ROOT / ".trees"
ENVIRONMENT: Final = "/opt/ankita"
SOURCE: Final = "/opt/ankita-source"
WHEELS: Final = "/opt/ankita-wheels"
PYTHON: Final = f"{ENVIRONMENT}/bin/python"

_PYTHONS: Final = ("python3", "python3.13", "python3.12", "python3.11", "python3.14")
_COPIED: Final = ("agent", "units", "launchd", "config", "tests")
_COMMAND: Final = f"""#!{PYTHON}
import sys

from ankita_agent.cli.main import main

sys.exit(main())
"""
"""What pip writes for a console script."""

_IN_TREE: Final = 'mount --bind "$1" "$2/mnt" && shift && exec chroot "$@"'


@dataclass(frozen=True, slots=True)
class Program:
    """Directories of this machine that hold the program for one tree."""

    environment: Path
    source: Path
    wheels: Path

    @property
    def binds(self) -> dict[str, str]:
        """What a container binds, and where."""
        return {str(self.environment): ENVIRONMENT, str(self.source): SOURCE, str(self.wheels): WHEELS}


@contextmanager
def prepared(tree: str = "/") -> Iterator[Program]:
    """The program for a tree, for the length of a session. AssertionError where it cannot be made."""
    kept = _kept(tree)
    folder, lock = make_folder()
    with lock:
        made = Program(kept / "environment", Path(folder, "source"), Path(folder, "wheels"))
        try:
            copy_checkout(made.source)
            shutil.copytree(kept / "wheels", made.wheels)
            _build_wheel(made.source, made.wheels)
            _open_to_all(made.source, made.wheels)
            _in_tree(tree, made.source, find_python(tree), "-m", "compileall", "-q", "/mnt/agent", "/mnt/tests")
            yield made
        finally:
            remove_folder(folder)


def find_python(tree: str = "/") -> str:
    """The Python of a tree that every user there may run. AssertionError where there is none new enough."""
    for name in _PYTHONS:
        with_it = [f"/usr/bin/{name}", "-c", "import sys; print(sys.version_info >= (3, 11))"]
        if os.path.exists(f"{tree}/usr/bin/{name}") and _run("chroot", tree, *with_it) == "True\n":
            return f"/usr/bin/{name}"
    raise AssertionError(f"no Python 3.11 or newer in {tree.rstrip('/')}/usr/bin")


def install(guest: Guest, directory: str, *extras: str) -> None:
    """Install the wheel as the user into a new virtual environment, as `pipx install` does; about 3 s.

    Of another tree the environment sees the tree's own packages: pystemd is one of them there.
    """
    has_wheel = guest.shell(f"ls {WHEELS}/pystemd-*.whl").code == 0
    packages = [] if has_wheel else ["--system-site-packages"]
    guest.ask(PYTHON, "-m", "venv", *packages, directory)
    wanted = f"ankita-agent[{','.join(extra for extra in extras if has_wheel or extra != 'systemd')}]"
    pip = (f"{directory}/bin/python", "-m", "pip", "install", "--quiet", "--no-index", "--find-links", WHEELS)
    guest.ask(*pip, wanted.removesuffix("[]"))


def prepare() -> None:
    """Make what is kept for this machine's own tree, unless it is there. AssertionError where it cannot be made."""
    _kept("/")


def why_no_pystemd() -> str | None:
    """Why pystemd is not in the environment for this machine's own tree, or None when it is."""
    failed = _kept("/") / "pystemd-failed"
    return failed.read_text() if failed.exists() else None


def copy_checkout(into: Path) -> None:
    """Copy what the tests inside need of the checkout, and what a wheel of it is built from."""
    into.mkdir()
    for name in _COPIED:
        shutil.copytree(ROOT / name, into / name, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, into / name)


def _build_wheel(source: Path, into: Path) -> None:
    _run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(into), str(source))


def _make(tree: str, into: Path) -> None:
    """The environment, and the wheels of what the project requires."""
    environment, wheels = into / "environment", into / "wheels"
    environment.mkdir()
    version = _in_tree(tree, into, find_python(tree), "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    packages = [] if tree == "/" else ["--system-site-packages"]
    _in_tree(tree, environment, find_python(tree), "-m", "venv", "--without-pip", *packages, "/mnt")
    site = environment / "lib" / f"python{version}" / "site-packages"
    if tree == "/":
        _make_wheels(str(environment / "bin/python"), wheels, into / "pystemd-failed")
    else:
        _pip("download", "--only-binary=:all:", f"--python-version={version}", "--dest", str(wheels), *_requirements())
    aim = ("--only-binary=:all:", f"--python-version={version}", "--target", str(site))
    _pip("install", "--no-index", "--no-deps", "--no-compile", *aim, *map(str, wheels.iterdir()))
    _in_tree(tree, environment, find_python(tree), "-m", "compileall", "-q", "/mnt/lib")
    (site / "ankita-source.pth").write_text(f"{SOURCE}/agent\n")
    command = environment / "bin/ankita-agent"
    command.write_text(_COMMAND)
    command.chmod(0o755)


def _make_wheels(python: str, into: Path, failed: Path) -> None:
    """The wheels for a Python of this machine; those of pystemd if it can be built, else why not."""
    _pip("--python", python, "wheel", "--wheel-dir", str(into), *_requirements())
    try:
        _pip("--python", python, "wheel", "--wheel-dir", str(into), *_requirements("systemd"))
    except AssertionError as error:
        failed.write_text(f"needs pystemd, and it could not be built: {str(error).strip().splitlines()[-1]}")


def _kept(tree: str) -> Path:
    """What `_make` makes for the tree, in `.trees/`: made when it is not there, whole or not at all."""
    python = os.stat(f"{tree}{find_python(tree)}")
    wanted = [*_requirements("systemd"), Path(__file__).read_text(), str(ROOT), tree, str(python.st_mtime_ns)]
    key = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:12]
    return _made_once(f"program-{os.path.basename(tree) or 'here'}-{key}", lambda into: _make(tree, into))


def _made_once(name: str, make: Callable[[Path], None]) -> Path:
    KEPT.mkdir(exist_ok=True)
    with open(KEPT / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made, unfinished = KEPT / name, KEPT / f"{name}.unfinished"
        if not made.exists():
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            make(unfinished)
            _open_to_all(unfinished)
            unfinished.rename(made)
        return made


def _requirements(*extras: str) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted: list[str] = project["dependencies"]
    return wanted + [line for extra in extras for line in project["optional-dependencies"][extra]]


def _open_to_all(*directories: Path) -> None:
    """Every user may read what is there, whatever the umask was."""
    _run("chmod", "-R", "a+rX", "--", *map(str, directories))


def _in_tree(tree: str, directory: Path, *command: str) -> str:
    """What a command prints that runs as root in the tree, with the directory at /mnt."""
    unshared = ("unshare", "--mount", "--propagation", "private", "sh", "-c", _IN_TREE)
    return _run(*unshared, "sh", str(directory), tree, *command)


def _pip(*arguments: str) -> None:
    quiet = {"PIP_QUIET": "2", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_PREFER_BINARY": "1"}
    _run("env", *(f"{name}={value}" for name, value in quiet.items()), sys.executable, "-m", "pip", *arguments)


def _run(*command: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
    done = subprocess.run(
        command, cwd="/", env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command[:6]}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout
