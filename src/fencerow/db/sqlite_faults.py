"""Which of our errors an error of SQLite is."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fencerow.errors import (
    Busy,
    DatabaseError,
    FencerowError,
    ReadOnly,
    SchemaMissing,
    StorageFull,
    Unavailable,
)


@contextmanager
def translated(path: Path, *, around_user_code: bool = False) -> Iterator[None]:
    """Turn SQLite's errors that an operator can do something about into ours; leave all others as they are."""
    try:
        yield
    except sqlite3.OperationalError as error:
        known = fault(error, path)
        # A missing table speaks of ours only when a statement of ours met it.
        if known is None or (around_user_code and isinstance(known, SchemaMissing)):
            raise
        raise known from error
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorname", "") in ("SQLITE_NOTADB", "SQLITE_CORRUPT"):
            raise DatabaseError(
                f"{path} is not a usable SQLite database ({error})",
                "the file is damaged or something else",
                "check the path; restore a damaged file from a backup",
            ) from error
        raise


def fault(error: sqlite3.OperationalError, path: Path) -> FencerowError | None:
    """Which of our errors a SQLite error is, if any."""
    code = getattr(error, "sqlite_errorname", "") or ""
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return Busy(
            f"{path} stayed locked by another writer", str(error), "repeat, or look for a long transaction"
        )
    if code.startswith("SQLITE_READONLY"):
        return ReadOnly(f"{path} is read-only", str(error), "check the file's and its folder's permissions")
    if code == "SQLITE_FULL":
        return StorageFull(f"no space is left for {path}", str(error), "make room on the disk and repeat")
    if code.startswith("SQLITE_CANTOPEN"):
        return Unavailable(
            f"{path} cannot be opened", str(error), "check that the folder exists and may be written"
        )
    if code.startswith("SQLITE_IOERR"):
        return DatabaseError(
            f"reading or writing {path} failed", str(error), "check the disk; nothing was committed"
        )
    if "no such table" in str(error):
        return SchemaMissing(f"{path} has no Fencerow tables", str(error), "run `fencerow migrate`")
    return None
