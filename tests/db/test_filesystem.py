"""A path's file system is read from the mounts, and a network one is refused before a file is made there."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencerow.core.store import store
from fencerow.db.errors import ConfigError
from fencerow.db.filesystem import NETWORK, Mount, mount_of, refuse_network
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import UnsafeFileSystem

LINES = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /data rw,relatime shared:2 master:1 - nfs4 server:/export rw
31 30 8:2 / /data/local rw - xfs /dev/sdb1 rw
32 22 0:41 / /my\\040share rw - fuse.sshfs user@host: rw
33 22 0:42 / /twice rw - ext4 /dev/sdc1 rw
34 33 0:43 / /twice rw - cifs //host/share rw
broken line
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    file = tmp_path / "mountinfo"
    file.write_text(LINES)
    return file


@pytest.mark.parametrize(
    ("path", "mount"),
    [
        ("/srv/jobs.db", Mount("/", "ext4")),
        ("/data/jobs.db", Mount("/data", "nfs4")),
        ("/data/local/jobs.db", Mount("/data/local", "xfs")),
        ("/database/jobs.db", Mount("/", "ext4")),
        ("/my share/deep/jobs.db", Mount("/my share", "fuse.sshfs")),
        ("/twice/jobs.db", Mount("/twice", "cifs")),
    ],
)
def test_the_deepest_and_latest_mount_counts(mounts: Path, path: str, mount: Mount) -> None:
    assert mount_of(Path(path), mounts) == mount


def test_a_link_is_followed(mounts: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to("/data/jobs.db")

    with pytest.raises(UnsafeFileSystem, match="nfs4"):
        refuse_network(link, mounts)


def test_where_nothing_is_known_nothing_is_refused(tmp_path: Path) -> None:
    refuse_network(Path("/data/jobs.db"), tmp_path / "not-there", [""])
    refuse_network(Path("/data/jobs.db"), tmp_path / "not-there", ["/sbin/not-there"])
    refuse_network(Path("/data/jobs.db"), tmp_path / "not-there", ["/bin/echo", "no mounts"])


PRINTED = """\
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
devfs on /dev (devfs, local, nobrowse)
//ada@server/share on /Volumes/my share (x) (smbfs, nodev, nosuid, mounted by ada)
server:/export on /Volumes/export (nfs)
/dev/disk4s1 on /Volumes/export/local (hfs, local)
"""


@pytest.mark.parametrize(
    ("path", "mount"),
    [
        ("/srv/jobs.db", Mount("/", "apfs")),
        ("/Volumes/my share (x)/jobs.db", Mount("/Volumes/my share (x)", "smbfs")),
        ("/Volumes/export/jobs.db", Mount("/Volumes/export", "nfs")),
        ("/Volumes/export/local/jobs.db", Mount("/Volumes/export/local", "hfs")),
    ],
)
def test_where_there_is_no_list_of_mounts_the_command_tells(tmp_path: Path, path: str, mount: Mount) -> None:
    """As macOS prints it."""
    told = tmp_path / "printed"
    told.write_text(PRINTED)
    assert mount_of(Path(path), tmp_path / "not-there", ["/bin/cat", str(told)]) == mount
    if mount.kind in NETWORK:
        with pytest.raises(UnsafeFileSystem, match=mount.kind):
            refuse_network(Path(path), tmp_path / "not-there", ["/bin/cat", str(told)])


def test_the_engine_makes_no_file_on_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in sorted(NETWORK):
        monkeypatch.setattr("fencerow.db.filesystem._mounted", lambda *_, kind=kind: [Mount("/", kind)])
        engine = SqliteEngine(tmp_path / "jobs.db", store.sqlite_queries())

        with pytest.raises(UnsafeFileSystem):
            store.migrate(engine)

    assert list(tmp_path.iterdir()) == []


def test_a_file_of_two_names_is_opened_by_neither(tmp_path: Path) -> None:
    path, other = tmp_path / "jobs.db", tmp_path / "other.db"
    first = SqliteEngine(path, store.sqlite_queries())
    store.migrate(first)
    first.close()
    other.hardlink_to(path)

    for name in (path, other):
        with pytest.raises(ConfigError, match="2 names"):
            SqliteEngine(name, store.sqlite_queries()).run(store.clock())
    other.unlink()

    assert first.run(store.clock())
    first.close()
