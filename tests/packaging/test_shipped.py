"""The finder of shipped files: one place or the other, and never a guess between two."""

from pathlib import Path

import pytest

from ankita_agent.core.errors import OurFault
from ankita_agent.shipped import shipped_path, shipped_text


def _wheel(base: Path) -> Path:
    package = base / "site-packages" / "ankita_agent"
    _put(package / "_shipped" / "units" / "a.service", "from the wheel")
    return package


def _checkout(base: Path, name: str = "ankita-agent") -> Path:
    package = base / "co" / "agent" / "ankita_agent"
    package.mkdir(parents=True)
    _put(base / "co" / "pyproject.toml", f'[project]\nname = "{name}"\n')
    _put(base / "co" / "units" / "a.service", "from the checkout")
    return package


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_wheel_carries_its_files_beside_the_module(tmp_path: Path) -> None:
    assert shipped_text("units", "a.service", _wheel(tmp_path)) == "from the wheel"


def test_a_checkout_has_them_at_its_top(tmp_path: Path) -> None:
    package = _checkout(tmp_path)
    assert shipped_text("units", "a.service", package) == "from the checkout"
    assert shipped_path("units", "a.service", package) == tmp_path / "co" / "units" / "a.service"


def test_a_stray_copy_in_a_checkout_is_refused_with_the_command_that_removes_it(tmp_path: Path) -> None:
    package = _checkout(tmp_path)
    _put(package / "_shipped" / "units" / "a.service", "stale")
    with pytest.raises(OurFault) as caught:
        shipped_path("units", "a.service", package)
    assert caught.value.do == f"remove the copy: rm -r '{package / '_shipped'}'"


@pytest.mark.parametrize("name", ["another-project", ""])
def test_the_folders_of_another_project_are_not_ours(name: str, tmp_path: Path) -> None:
    package = _checkout(tmp_path, name)
    with pytest.raises(OurFault, match="not a checkout of ankita-agent"):
        shipped_path("units", "a.service", package)


def test_a_missing_file_names_both_places_that_were_searched(tmp_path: Path) -> None:
    package = _wheel(tmp_path)
    with pytest.raises(OurFault) as caught:
        shipped_path("launchd", "a.service", package)
    assert str(package / "_shipped") in caught.value.fact
    assert str(tmp_path) in caught.value.fact


def test_a_broken_pyproject_above_a_wheel_is_no_checkout_and_no_fault(tmp_path: Path) -> None:
    package = _checkout(tmp_path)
    (tmp_path / "co" / "pyproject.toml").write_text("not toml [")
    with pytest.raises(OurFault, match="missing from this installation"):
        shipped_path("units", "a.service", package)


def test_this_checkout_finds_its_own_unit() -> None:
    assert "ExecStart=" in shipped_text("units", "ankita-agent.service")
