"""Every way of installing gives the same program: wheel, editable install, wheel of the sdist."""

import tomllib
import zipfile
from pathlib import Path
from typing import Final

import pytest

from tests.packaging.installing import ROOT, Installed, build, install, run

SHIPPED: Final = [
    ("units", "ankita-agent.service"),
    ("launchd", "io.github.ankita.agent.plist"),
    ("config", "routines.yaml"),
]
VERSION: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory, homes: Path) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory, homes: Path) -> Path:
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="session")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("unpacked")
    run("tar", "-xzf", str(sdist), "-C", str(directory))  # tarfile's own rules differ from 3.11.2 to 3.14
    return directory / f"ankita_agent-{VERSION}"


@pytest.fixture(scope="session")
def wheel_of_sdist(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", unpacked, tmp_path_factory.mktemp("wheel-of-sdist"))


@pytest.fixture(scope="session", params=["wheel", "editable", "wheel_of_sdist"])
def installed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, homes: Path) -> Installed:
    into = tmp_path_factory.mktemp("installed") / "a place with spaces"
    if request.param == "editable":
        return install(into, "--editable", str(ROOT))
    return install(into, str(request.getfixturevalue(request.param)))


def test_every_shipped_file_is_found(installed: Installed) -> None:
    for folder, name in SHIPPED:
        found = installed.finds(folder, name)
        assert found.read_bytes() == (ROOT / folder / name).read_bytes()


def test_an_editable_install_shows_the_files_of_the_checkout_and_a_wheel_its_own(
    installed: Installed,
) -> None:
    found = installed.finds(*SHIPPED[0])
    inside = installed.directory in found.parents
    assert inside or found == ROOT / "units" / "ankita-agent.service"
    assert inside == (not list(installed.directory.glob("lib/python*/site-packages/_editable*.pth")))


def test_the_command_starts_with_nothing_but_what_the_project_requires(installed: Installed) -> None:
    assert installed.run("ankita-agent", "--version").strip().endswith(VERSION)
    assert installed.run("python", "-m", "ankita_agent", "--version").strip().endswith(VERSION)


def test_what_only_tests_need_is_not_there(installed: Installed) -> None:
    unwanted = ("pytest", "hypothesis", "cronsim", "hatchling")
    code = f"from importlib.util import find_spec; print([name for name in {unwanted} if find_spec(name)])"
    assert installed.run("python", "-c", code).strip() == "[]"


def test_the_wheel_needs_no_compiler_and_runs_on_every_python_3(wheel: Path) -> None:
    assert wheel.name == f"ankita_agent-{VERSION}-py3-none-any.whl"


def test_the_wheel_holds_every_file_of_the_package_and_of_the_shipped_folders(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = _files("agent/ankita_agent")
    assert any(name.endswith(".sql") for name in package)
    assert {name.removeprefix("agent/") for name in package} <= names
    for folder in ("units", "launchd", "config"):
        assert {f"ankita_agent/_shipped/{name}" for name in _files(folder)} <= names


def test_the_wheel_of_the_sdist_is_the_wheel_of_the_checkout(wheel: Path, wheel_of_sdist: Path) -> None:
    with zipfile.ZipFile(wheel) as ours, zipfile.ZipFile(wheel_of_sdist) as theirs:
        assert {info.filename: info.CRC for info in ours.infolist()} == {
            info.filename: info.CRC for info in theirs.infolist()
        }


def test_the_sdist_holds_everything_that_a_packager_builds_and_tests_with(unpacked: Path) -> None:
    top = {path.name for path in unpacked.iterdir()}
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "Makefile", ".ci"} <= top
    assert {"agent", "units", "launchd", "config", "docs", "tests"} <= top


def test_a_failing_program_fails_its_test_with_what_it_said() -> None:
    with pytest.raises(AssertionError, match="no such luck"):
        run("sh", "-c", "echo no such luck >&2; exit 3")


def _files(folder: str) -> set[str]:
    ignored = {"__pycache__", "_shipped"}
    paths = [path for path in (ROOT / folder).rglob("*") if path.is_file() and not ignored & set(path.parts)]
    return {str(path.relative_to(ROOT)) for path in paths}
