"""A small disk of our own that can be filled for real, with and without root."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BLOCK = b"\0" * 65536
FILLS_MAX = 1000
# Without root: a helper in namespaces of its own mounts it; we reach it through the helper's root.
HELPER = "mount -t tmpfs -o size={size} small /mnt && echo mounted && exec cat"


class Disk:
    """A mounted tmpfs of so many bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, *, leave_bytes: int = 0) -> None:
        """Take what is left, but for so much: to the last page, and what others give back meanwhile."""
        for _ in range(FILLS_MAX):
            self._take_all()
            if leave_bytes:
                os.truncate(self._ballast, max(0, self._ballast.stat().st_size - leave_bytes))
                return
            if self.free_bytes() == 0:
                return
        raise AssertionError(f"{self.path} never was full: others give back space all the time")

    def _take_all(self) -> None:
        with self._ballast.open("ab", buffering=0) as file:
            for size in (len(BLOCK), 4096):
                try:
                    while True:
                        file.write(BLOCK[:size])
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def make_room(self) -> None:
        """Give it back."""
        self._ballast.unlink()

    def free_bytes(self) -> int:
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize


@contextmanager
def small_disk(size_mib: int) -> Iterator[Disk]:
    """Mount one. A machine on which that cannot be done fails the test, with its reason."""
    with _mounted_by_root(size_mib) if os.geteuid() == 0 else _mounted_by_helper(size_mib) as path:
        disk = Disk(path)
        assert disk.free_bytes() <= size_mib << 20, f"{path} is no small disk: nothing was mounted"
        yield disk


@contextmanager
def _mounted_by_root(size_mib: int) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="fencerow-disk-", dir="/tmp"))
    try:
        _run("mount", "-t", "tmpfs", "-o", f"size={size_mib}m,mode=0755", "fencerow-small", str(path))
        try:
            yield path
        finally:
            _run("umount", "--lazy", str(path))
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _mounted_by_helper(size_mib: int) -> Iterator[Path]:
    helper = subprocess.Popen(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", HELPER.format(size=f"{size_mib}m")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with helper:
        assert helper.stdin is not None and helper.stdout is not None and helper.stderr is not None
        if helper.stdout.readline() != "mounted\n":
            raise AssertionError(f"no small disk could be mounted here: {helper.stderr.read().strip()}")
        try:
            yield Path("/proc", str(helper.pid), "root", "mnt")
        finally:
            helper.stdin.close()


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()}"
