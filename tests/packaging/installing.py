"""Builds and installs the project as people do, without a network.

A fresh environment sees what the project requires to run, and nothing that its tests or its build
require: those distributions are linked into a directory of their own, which one .pth line adds.
"""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment in which ankita-agent is installed."""

    directory: Path

    def run(self, program: str, *arguments: str) -> str:
        """What the program of this environment prints; its failure is an AssertionError with what it said."""
        return run(str(self.directory / "bin" / program), *arguments)

    def finds(self, folder: str, name: str) -> Path:
        """Where the installed package finds a shipped file."""
        code = f"from ankita_agent.shipped import shipped_path; print(shipped_path({folder!r}, {name!r}))"
        return Path(self.run("python", "-c", code).strip())


def run(*command: str) -> str:
    """Run it in a directory that holds nothing, with nothing of this process's Python; returns its stdout."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
    done = subprocess.run(
        command,
        cwd="/",
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def build(kind: str, source: Path, into: Path) -> Path:
    """Build the `wheel` or `sdist` of a source tree and return the file."""
    run(sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", str(into), str(source))
    (made,) = into.iterdir()
    return made


def install(into: Path, *what: str) -> Installed:
    """Install into a fresh environment, with no index to ask."""
    run(sys.executable, "-m", "venv", "--without-pip", str(into))
    (site,) = into.glob("lib/python*/site-packages")
    build_tools = site / "build_tools.pth"  # an editable install asks its own Python for the build backend
    build_tools.write_text(f"{metadata.distribution('hatchling').locate_file('')}\n")
    run(
        *(sys.executable, "-m", "pip", "--python", str(into / "bin" / "python"), "--quiet", "install"),
        *("--no-index", "--no-deps", "--no-build-isolation", "--no-compile", *what),
    )
    build_tools.unlink()
    linked = into / "requirements"
    linked.mkdir()
    _link_requirements(linked)
    (site / "requirements.pth").write_text(f"{linked}\n")
    return Installed(into)


def _link_requirements(into: Path) -> None:
    seen: set[str] = set()
    for name in _closure(_required_by_us(), seen):
        distribution = metadata.distribution(name)
        tops = {file.parts[0] for file in distribution.files or () if ".." not in file.parts}
        for top in sorted(tops - {"__pycache__"}):
            (into / top).symlink_to(str(distribution.locate_file(top)))


def _required_by_us() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return list(project["dependencies"])


def _closure(requirements: list[str], seen: set[str]) -> Iterator[str]:
    for requirement in map(Requirement, requirements):
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        name = requirement.name.lower()
        if wanted and name not in seen:
            seen.add(name)
            yield name
            yield from _closure(metadata.requires(name) or [], seen)
