"""The one finder of `units/`, `launchd/` and `config/`: files that are valid as they stand.

The problem: they stand at the top of a checkout, where people look for them, and must be found in a wheel
too. The rule: a wheel carries them in `_shipped`, *beside this file*; a checkout, and an editable install of
one, has them in its top folders; nowhere else is searched. Tested: tests/packaging, in all ways of
installing. Rejected: searching site-packages, where an editable install leaves copies that grow old;
importlib.resources, which knows the wheel only; shared data of the wheel, which a private prefix hides from
every service manager.
"""

import tomllib
from pathlib import Path
from typing import Final, Literal

from ankita_agent.core.errors import OurFault

Folder = Literal["units", "launchd", "config"]

_PACKAGE: Final = Path(__file__).parent


def shipped_text(folder: Folder, name: str, package: Path = _PACKAGE) -> str:
    """The text of a shipped file. Raises OurFault, as `shipped_path` does."""
    return shipped_path(folder, name, package).read_text(encoding="utf-8")


def shipped_path(folder: Folder, name: str, package: Path = _PACKAGE) -> Path:
    """Where a shipped file lies; `package` is the directory of the import package.

    Raises OurFault when neither place has it, naming both, and when both places exist: a stray `_shipped` in
    a checkout would be read in place of the files that were just edited.
    """
    carried, checkout = package / "_shipped", package.parent.parent
    in_checkout = _is_our_checkout(checkout, package)
    if in_checkout and carried.exists():
        raise OurFault(
            f"cannot tell which {folder}/{name} is meant",
            fact=f"{carried} stands in the checkout {checkout}, which has these files itself",
            do=f"remove the copy: rm -r '{carried}'",
        )
    path = (checkout if in_checkout else carried) / folder / name
    if not path.is_file():
        raise OurFault(
            f"{folder}/{name} is missing from this installation",
            fact=f"looked in {carried} (a wheel) and in {checkout} "
            + ("(this checkout)" if in_checkout else "(not a checkout of ankita-agent)"),
            do="install ankita-agent again",
        )
    return path


def _is_our_checkout(root: Path, package: Path) -> bool:
    if package.parent != root / "agent":
        return False
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    except (OSError, KeyError, ValueError):
        return False
    return bool(project.get("name") == "ankita-agent")
