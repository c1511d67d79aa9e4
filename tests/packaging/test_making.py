"""What `make` does before it runs anything: an environment, made once, or a plain word why not.

The scripts run in a place with spaces in its name, beside stand-ins for the programs of the machine.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.packaging.installing import ROOT


@dataclass(frozen=True, slots=True)
class Place:
    """A directory that holds the scripts, and one whose programs come before the machine's."""

    directory: Path
    programs: Path

    def stand_in(self, program: str, script: str) -> Path:
        path = self.programs / program
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def run(self, script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.execute("sh", f".ci/{script}", *arguments, **environment)

    def execute(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.programs}:/usr/bin:/bin"
        return subprocess.run(
            command,
            cwd=self.directory,
            env={"PATH": path, "HOME": str(self.directory), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    directory, programs = tmp_path / "it's a place", tmp_path / "programs"
    programs.mkdir()
    shutil.copytree(ROOT / ".ci", directory / ".ci")
    shutil.copy(ROOT / "pyproject.toml", directory)
    return Place(directory, programs)


def test_a_python_that_is_too_old_is_answered_with_how_to_name_another(place: Place) -> None:
    done = place.run("environment", PYTHON="/bin/false")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "ankita-agent needs Python 3.11 or newer; /bin/false will not do.",
        "Name one that does: make run PYTHON=/path/to/python3.12",
    ]


def test_a_python_without_ensurepip_is_answered_with_the_very_package(place: Place) -> None:
    place.stand_in("dpkg-query", "echo install ok installed")
    bare = place.stand_in(
        "bare-python",
        f"case $2 in *ensurepip*) exit 1;; esac; exec '{os.path.realpath(sys.executable)}' \"$@\"",
    )
    done = place.run("environment", PYTHON=str(bare))
    package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"On Debian and Ubuntu: sudo apt-get install {package}"
    assert not (place.directory / ".venv").exists()


def test_an_environment_that_is_up_to_date_is_left_alone_at_once(place: Place) -> None:
    _finished_environment(place)
    done = place.run("environment", "dev")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_changed_pyproject_is_installed_again(place: Place) -> None:
    _finished_environment(place)
    with (place.directory / "pyproject.toml").open("a") as file:
        file.write("\n# another line\n")
    done = place.run("environment", "dev")
    assert done.returncode == 0
    assert done.stderr == "Installing ankita-agent in .venv with dev\n"
    assert done.stdout.endswith("--editable .[dev]\n")
    assert place.run("environment", "dev").stdout == ""


def test_an_install_that_fails_is_said_and_tried_again_the_next_time(place: Place) -> None:
    _finished_environment(place, pip="exit 1")
    done = place.run("environment", "bench")
    assert done.returncode == 1
    assert done.stderr.endswith("pip could not install; it says why above. Run make again.\n")
    assert place.run("environment", "bench").returncode == 1


def test_an_environment_that_was_moved_is_made_again(place: Place) -> None:
    _finished_environment(place)
    (place.directory / ".venv" / "made-in").write_text("/somewhere/else\n")
    (place.directory / ".venv" / "installed-dev").unlink()
    done = place.run("environment", "dev", PYTHON="/bin/false")
    assert "ankita-agent needs Python 3.11" in done.stderr


def test_packages_that_are_there_are_not_installed_again(place: Place) -> None:
    place.stand_in("dpkg-query", "echo install ok installed")
    done = place.run("debian-packages", "bindfs", "fuse3")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_the_right_to_install_the_command_is_said_and_nothing_is_tried(place: Place) -> None:
    place.stand_in("dpkg-query", 'case "$*" in *fuse3*) echo install ok installed;; *) exit 1;; esac')
    place.stand_in("id", "echo 1000")
    place.stand_in("sudo", "exit 1")
    place.stand_in("apt-get", "echo apt-get was run; exit 1")
    done = place.run("debian-packages", "bindfs", "fuse3")
    assert done.returncode == 1
    assert done.stderr == "Not installed here: bindfs. On Debian and Ubuntu: sudo apt-get install bindfs\n"


@pytest.mark.parametrize("user", ["0", "1000"])
def test_root_and_sudo_without_a_password_install_and_ask_for_fresh_lists_when_needed(user: str, place: Place) -> None:
    log = place.programs / "log"
    place.stand_in("dpkg-query", "exit 1")
    place.stand_in("id", f"echo {user}")
    place.stand_in("sudo", '[ "$1" = -n ] && shift; exec "$@"')
    # The first install fails, as one with old package lists does.
    place.stand_in("apt-get", f"""echo "$@" >>'{log}'; [ "$(wc -l <'{log}')" -gt 1 ]""")
    done = place.run("debian-packages", "bindfs")
    assert done.returncode == 0
    tried = [line.split("DPkg::Lock::Timeout=120 ")[1] for line in log.read_text().splitlines()]
    install = "install --no-install-recommends bindfs"
    assert tried == [install, "update", install]


def test_a_failed_install_shows_what_apt_said(place: Place) -> None:
    place.stand_in("dpkg-query", "exit 1")
    place.stand_in("id", "echo 0")
    place.stand_in("apt-get", "echo E: no room; exit 100")
    done = place.run("debian-packages", "bindfs")
    assert done.returncode == 1
    assert done.stderr.splitlines()[1:] == ["E: no room", "Could not install bindfs; apt-get says why above."]


def test_make_run_starts_the_agent_on_a_copy_of_the_sample_that_keeps_your_edits(place: Place) -> None:
    _finished_environment(place)
    shutil.copy(ROOT / "Makefile", place.directory)
    shutil.copytree(ROOT / "config", place.directory / "config")
    agent = place.stand_in("agent", 'echo "$@"; env | grep ^ANKITA_ | sort')
    (place.directory / ".venv" / "bin" / "ankita-agent").symlink_to(agent)
    mine = place.directory / ".run"
    started = ["run", f"ANKITA_CONFIG_DIR={mine}/config", f"ANKITA_STATE_DIR={mine}/state"]

    first = place.execute("make", "run")
    assert (first.returncode, first.stdout.splitlines()) == (0, started)
    assert {path.name for path in (mine / "config").iterdir()} >= {"routines.yaml", "routines.schema.json"}
    assert (mine / "state").stat().st_mode & 0o077 == 0

    (mine / "config" / "routines.yaml").write_text("edited")
    again = place.execute("make", "run")
    assert (again.returncode, again.stdout.splitlines()) == (0, started)
    assert (mine / "config" / "routines.yaml").read_text() == "edited"


def _finished_environment(place: Place, pip: str = 'echo "$@"') -> None:
    """A .venv as the script leaves it, with the stamp of pyproject.toml and a stand-in for its Python."""
    binaries = place.directory / ".venv" / "bin"
    binaries.mkdir(parents=True)
    python = place.stand_in("venv-python", f'case "$1 $2" in "-m pip") {pip};; esac')
    (binaries / "python").symlink_to(python)
    checksum = subprocess.run(
        ["cksum"], input=(ROOT / "pyproject.toml").read_bytes(), capture_output=True, check=True
    ).stdout.decode()
    (place.directory / ".venv" / "made-in").write_text(f"{place.directory}\n")
    for extras in ("run", "dev"):
        stamp = place.directory / ".venv" / f"installed-{extras}"
        stamp.write_text(f"{checksum.strip()} {place.directory}\n")


def test_a_tree_is_made_once_from_the_mirror_of_this_machine(place: Place) -> None:
    log = place.programs / "log"
    place.stand_in("apt-get", '[ "$1" = indextargets ] && echo mirror/debian')
    place.stand_in(
        "mmdebstrap", f"""echo "$@" >>'{log}'; for last; do before=$tree; tree=$last; done; mkdir "$before" """
    )
    for _ in range(2):
        done = place.run("tree", "trixie", "systemd-sysv", "dbus")
        assert done.returncode == 0, done.stderr
    (made,) = log.read_text().splitlines()
    assert "--include=systemd-sysv,dbus" in made
    assert made.endswith(" trixie .trees/trixie mirror/debian")
    assert place.run("tree", "trixie", "systemd-sysv").returncode == 0
    assert len(log.read_text().splitlines()) == 2


def test_of_a_tree_that_could_not_be_made_nothing_is_kept(place: Place) -> None:
    place.stand_in("apt-get", "exit 1")
    place.stand_in("mmdebstrap", "mkdir .trees/trixie; exit 1")
    assert place.run("tree", "trixie", "dbus").returncode == 1
    assert list((place.directory / ".trees").iterdir()) == []
