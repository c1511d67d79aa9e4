"""Which state directories are trusted, and on which file systems."""

import os
from pathlib import Path

import pytest

from ankita_agent.adapters.state_directory import file_system_of, lie_of, prepare_state_directory
from ankita_agent.core.errors import CannotWriteState

MOUNTS = """\
21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 21 0:26 / /home/ann/share rw - nfs4 server:/x rw
31 21 0:27 / /home/ann/my\\040disk rw shared:3 master:1 - fuse.sshfs ann@host: rw
32 21 0:28 / /home/ann rw - btrfs /dev/sda rw
33 21 0:29 / /over rw - tmpfs a rw
34 21 0:30 / /over rw - 9p b rw
broken line
"""


@pytest.mark.parametrize(
    ("path", "device", "kind"),
    [
        ("/var/lib", "254:0", "ext4"),
        ("/home/ann/state", "0:28", "btrfs"),
        ("/home/ann/share/state", "0:26", "nfs4"),
        ("/home/ann/shared", "0:28", "btrfs"),
        ("/home/ann/my disk/state", "0:27", "fuse.sshfs"),
        ("/over/state", "0:30", "9p"),
        ("/over/state", "0:29", "tmpfs"),
    ],
)
def test_the_deepest_mount_above_a_path_is_its_file_system(path: str, device: str, kind: str) -> None:
    assert file_system_of(MOUNTS, path, device) == kind


def test_a_path_under_no_known_mount_has_no_known_file_system() -> None:
    assert file_system_of("", "/home", "1:2") is None


@pytest.mark.parametrize(
    "kind",
    ["nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "fakeowner", "fuse", "fuse.sshfs", "fuse.bindfs", "fuseblk"],
)
def test_file_systems_where_locks_lie_are_known(kind: str) -> None:
    assert lie_of(kind)


@pytest.mark.parametrize("kind", ["ext4", "btrfs", "xfs", "tmpfs", "zfs", "overlay", "apfs", "f2fs", None])
def test_local_file_systems_are_trusted(kind: str | None) -> None:
    assert lie_of(kind) is None


def test_a_directory_is_made_with_its_parents_and_closed_to_others(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "state"
    prepare_state_directory(str(path))
    prepare_state_directory(str(path))
    assert path.stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "a").stat().st_mode & 0o077 == 0


def refusal(path: Path) -> str:
    with pytest.raises(CannotWriteState) as caught:
        prepare_state_directory(str(path))
    assert caught.value.exit_code == 73
    return str(caught.value)


def test_a_symbolic_link_is_refused_and_its_target_named(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    told = refusal(tmp_path / "link")
    assert "symbolic link" in told
    assert f"ANKITA_STATE_DIR={tmp_path / 'real'}" in told


def test_a_directory_open_to_others_is_refused_with_the_command_that_closes_it(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.mkdir(0o755)
    assert f"chmod 700 {path}" in refusal(path)


def test_a_file_in_its_place_or_above_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "not a directory" in refusal(tmp_path / "file")
    assert "not a directory" in refusal(tmp_path / "file" / "state").lower()


@pytest.mark.needs("root")
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.mkdir(0o700)
    os.chown(path, 65534, 65534)
    assert "belongs to user 65534" in refusal(path)
