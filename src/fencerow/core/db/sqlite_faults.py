"""Which of our errors an error of SQLite is."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fencerow.core.errors import (
    Busy,
    DatabaseError,
    FencerowError,
    OutcomeUnknown,
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


@contextmanager
def committing(path: Path) -> Iterator[None]:
    """Around COMMIT: after a failed write or sync there, what lies on the disk is for recovery to decide.

    A rollback journal is emptied first and that is made durable afterwards: when the second step fails,
    SQLite reports an error, and all that was written stands.
    """
    try:
        yield
    except sqlite3.OperationalError as error:
        if not (getattr(error, "sqlite_errorname", "") or "").startswith("SQLITE_IOERR"):
            raise
        raise OutcomeUnknown(
            f"writing {path} failed during COMMIT",
            f"it may have happened or not ({error})",
            "check the disk; ask by id or key before repeating it",
        ) from error


def is_locked(error: sqlite3.OperationalError) -> bool:
    """Whether another connection has the file."""
    return (getattr(error, "sqlite_errorname", "") or "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def fault(error: sqlite3.OperationalError, path: Path) -> FencerowError | None:
    """Which of our errors a SQLite error is, if any."""
    code = getattr(error, "sqlite_errorname", "") or ""
    if is_locked(error):
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
    if code == "SQLITE_IOERR_CORRUPTFS":
        return DatabaseError(
            f"the file system under {path} is damaged", str(error), "check the disk; restore from a backup"
        )
    if code.startswith("SQLITE_IOERR"):  # before COMMIT: reading, writing, locking, or no memory for it
        return Unavailable(
            f"reading or writing {path} failed", f"{error} ({code})", "check the disk; nothing was stored"
        )
    if "no such table" in str(error):
        return SchemaMissing(f"{path} has no Fencerow tables", str(error), "run `fencerow migrate`")
    return None
