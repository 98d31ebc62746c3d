"""Large payloads as files of one folder, on this machine or a shared file system."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex

from fencerow.core.errors import StoreUnavailable
from fencerow.payloads.outside.store import StoredObject, missing

OWNER_ALONE = 0o700
PART = ".part"  # of a file that is being written


class FolderStore:
    """Files in a folder. Each is written beside its place, flushed to the disk, and then given its name.

    All programs that submit, work or wait must see the same folder. A crash leaves at most a file that ends with
    `.part`, which is listed, and removed as an orphan.

    What lies in it may be read by whom the folder itself may be read, whatever the umask says. Where it has to be made,
    that is its owner alone: make it with the rights of a group if several users share it.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def __repr__(self) -> str:
        return f"<FolderStore {self._folder}>"

    def put(self, name: str, data: bytes) -> None:
        """Keep the data in a file."""
        path = self._folder / name
        with self._told("written"):
            try:
                self._write(path, data)
            except (
                FileNotFoundError
            ):  # another call has removed the last file of its folder, and the folder, just now
                self._write(path, data)

    def _write(self, path: Path, data: bytes) -> None:
        part = path.with_name(f"{path.name}.{token_hex(4)}{PART}")
        made = self._made(path.parent)
        with part.open("xb") as file:
            os.fchmod(file.fileno(), self._rights() & 0o666)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        for folder in (path.parent, *made):
            _flush(folder)

    def _rights(self) -> int:
        return self._folder.stat().st_mode & 0o777

    def _made(self, folder: Path) -> list[Path]:
        """Make the folder of a file; returns those whose entries have changed."""
        if folder.is_dir():
            return []
        missing_ones = [each for each in (*reversed(folder.parents), folder) if not each.exists()]
        for each in missing_ones:
            own = self._folder in each.parents
            with contextlib.suppress(FileExistsError):  # somebody else has just made it
                each.mkdir(OWNER_ALONE)
                if own:
                    each.chmod(self._rights() | each.stat().st_mode & stat.S_ISGID)
        return [each.parent for each in missing_ones]

    def get(self, name: str, bytes_max: int) -> bytes:
        """What the file holds, up to one byte more than `bytes_max`.

        Raises:
            PayloadMissing: there is no such file.
        """
        with self._told("read"):
            try:
                with (self._folder / name).open("rb") as file:
                    return file.read(bytes_max + 1)
            except FileNotFoundError:
                if not self._folder.is_dir():
                    raise
                raise missing(name, str(self._folder)) from None

    def delete(self, name: str) -> None:
        """Remove the file, and its folder once that is empty."""
        path = self._folder / name
        with self._told("written"):
            path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # others lie there, or somebody has just removed it
                path.parent.rmdir()

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Files as the file system has them; none where the folder is not made yet.

        A folder below that may not be read, such as `lost+found`, has none.
        """
        with self._told("read"):
            yield from _files(self._folder / prefix, prefix)

    @contextlib.contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreUnavailable(
                f"the folder of large payloads cannot be {what}: {error.strerror or type(error).__name__}",
                f"it is {self._folder}",
                "make the folder, mount it, or correct outside_store; what was not stored can be repeated",
            ) from error


def _files(folder: Path, first: str, *, below: bool = False) -> Iterator[StoredObject]:
    """The files below, with `first` before their names. Entries are not gathered: a folder may have millions."""
    try:
        entries = os.scandir(folder)
    except FileNotFoundError:  # not made yet, or removed meanwhile
        return
    except PermissionError:
        if not below:
            raise
        return
    with entries:
        for entry in entries:
            name = first + entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry.path), f"{name}/", below=True)
            else:
                with contextlib.suppress(FileNotFoundError):
                    yield StoredObject(name, time.time() - entry.stat().st_mtime)


def _flush(folder: Path) -> None:
    """Flush the names of a folder: a file without its name would be lost."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
