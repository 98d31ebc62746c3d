"""On what kind of file system a path lies: SQLite's locks cannot be trusted across a network."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from fencerow.db.errors import ConfigError, UnsafeFileSystem

MOUNTS = Path("/proc/self/mountinfo")  # Linux
MOUNT_COMMAND = (
    "/sbin/mount",
)  # macOS and the BSDs, where it prints: server:/jobs on /Volumes/jobs (nfs, nodev)
COMMAND_S = 5.0
PRINTED = re.compile(r".* on (?P<point>/.*) \((?P<kind>[^,)]+)[,)].*")
ESCAPED = re.compile(r"\\([0-7]{3})")

# Locks are advisory, cached or absent between machines here, and a WAL needs memory shared by all of them.
NETWORK = frozenset(
    {
        *(
            "nfs",
            "nfs4",
            "cifs",
            "smb2",
            "smb3",
            "smbfs",
            "ncpfs",
            "afs",
            "coda",
            "ceph",
            "fuse.ceph",
            "lustre",
        ),
        *("glusterfs", "fuse.glusterfs", "beegfs", "orangefs", "gpfs", "davfs", "fuse.davfs2", "fuse.sshfs"),
        *("fuse.s3fs", "fuse.goofys", "fuse.rclone", "fuse.gcsfuse", "fuse.blobfuse", "fuse.blobfuse2"),
        *("afpfs", "webdav", "ftp", "smb", "macfuse", "osxfuse"),
        *("fuse.curlftpfs", "fuse.juicefs", "fuse.mount-s3", "fuse.seaweedfs"),
    }
)
# Shares between a host and its guests. Some sandboxes have their own root on one, where it is safe.
DOUBTFUL = frozenset({"9p", "virtiofs", "vboxsf", "prl_fs", "fuse.vmhgfs-fuse", "fuse.grpcfuse", "fakeowner"})


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system: where it is mounted, and its type."""

    point: str
    kind: str


def mount_of(path: Path, mounts: Path = MOUNTS, command: Sequence[str] = MOUNT_COMMAND) -> Mount | None:
    """The file system that holds `path`, which need not exist yet; None where the system does not tell."""
    return _deepest(path, _mounted(mounts, command))


def refuse_network(path: Path, mounts: Path = MOUNTS, command: Sequence[str] = MOUNT_COMMAND) -> None:
    """Say no to a path on a network file system, before anything is written there.

    Asked at each opening, since anything may be mounted meanwhile: where none is mounted, this is cheap.

    Raises:
        UnsafeFileSystem: the path lies on one; move the file to a local disk or use PostgreSQL.
    """
    found = _mounted(mounts, command)
    if not any(mount.kind in NETWORK for mount in found):
        return
    mount = _deepest(path, found)
    if mount and mount.kind in NETWORK:
        raise UnsafeFileSystem(
            f"{path} lies on a network file system ({mount.kind}, mounted on {mount.point})",
            "file locks across a network do not keep two writers apart, and the file would be damaged",
            "put the file on a local disk, or use PostgreSQL for several machines",
        )


def refuse_hard_links(path: Path) -> None:
    """Say no to a file of several names: its journal and the file of its workers lie beside one name each, so workers
    who come by two names would take each other for dead.

    Raises:
        ConfigError: there is another name; remove all but one.
    """
    try:
        found = path.stat()
    except OSError:
        return  # there is none, or whoever opens it says what is wrong
    if S_ISREG(found.st_mode) and found.st_nlink > 1:
        raise ConfigError(
            f"{path} has {found.st_nlink} names (hard links)",
            "its journal and the file of its workers lie beside one name: who comes by another one damages the file",
            f"stop all programs that use it, and remove all names but one: find MOUNT -samefile {path}; a symbolic "
            "link may lead there",
        )


def _mounted(mounts: Path, command: Sequence[str]) -> list[Mount]:
    """All that is mounted, in order."""
    try:
        parsed = map(_parsed, mounts.read_text("utf-8", "surrogateescape").splitlines())
    except OSError:
        parsed = map(_printed, _told_by(command))
    return [mount for mount in parsed if mount]


def _deepest(path: Path, mounts: Sequence[Mount]) -> Mount | None:
    where = path.resolve()
    found = None
    for mount in mounts:
        # Of two mounted on one place the later hides the earlier.
        if where.is_relative_to(mount.point) and (not found or len(mount.point) >= len(found.point)):
            found = mount
    return found


def _told_by(command: Sequence[str]) -> list[str]:
    try:
        told = subprocess.run(command, capture_output=True, timeout=COMMAND_S, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return told.stdout.decode("utf-8", "surrogateescape").splitlines()


def _printed(line: str) -> Mount | None:
    found = PRINTED.fullmatch(line)
    return Mount(found["point"], found["kind"]) if found else None


def _parsed(line: str) -> Mount | None:
    """One line: id, parent, device, root, mount point, options, optional fields, a hyphen, type, source, options."""
    left, hyphen, right = line.partition(" - ")
    fields, kinds = left.split(" "), right.split(" ")
    if not hyphen or len(fields) < 5:
        return None
    return Mount(ESCAPED.sub(lambda found: chr(int(found[1], 8)), fields[4]), kinds[0])
