"""A SQLite file: where it may lie, which journal its library allows, the workers' file beside it, its errors."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fencerow.db.errors import (
    Busy,
    ConfigError,
    DatabaseError,
    DatabaseMoved,
    FencerowError,
    OutcomeUnknown,
    ReadOnly,
    SchemaMissing,
    StorageFull,
    Unavailable,
)
from fencerow.db.filesystem import refuse_hard_links, refuse_network
from fencerow.db.queries import Queries
from fencerow.db.sqlite_locks import after, evenly, is_locked
from fencerow.db.trouble import is_out_of_descriptors

# From 3.7.0 on, a commit that resets the WAL while another connection checkpoints could corrupt the file: the
# "WAL-reset bug", fixed in 3.51.3 of 2026-03-13 and all later releases, and in these two older branches.
# Source: https://www.sqlite.org/wal.html#walresetbug
WAL_FIXED = ((3, 51, 3), (3, 50, 7), (3, 44, 6))
Execute = Callable[..., list[tuple[Any, ...]]]  # a statement and its values
VERSION_MIN = (3, 35, 0)  # RETURNING
# With what a trigger says that closes a file from which jobs are moved; where to follows.
MOVED = "fencerow moved to "


def wal_is_safe(version: tuple[int, int, int]) -> bool:
    """Whether this SQLite may use a write-ahead log beside connections that are not ours."""
    return version >= WAL_FIXED[0] or any(
        version[:2] == fixed[:2] and version >= fixed for fixed in WAL_FIXED
    )


def default_journal() -> str:
    """The journal mode for the library that is loaded."""
    return "wal" if wal_is_safe(sqlite3.sqlite_version_info) else "truncate"


def open_file(
    path: Path,
    queries: Queries,
    now_us: Callable[[], int],
    *,
    prefix: str,
    journal_mode: str,
    timeout_s: float,
) -> sqlite3.Connection:
    """A connection to the jobs' file, with the workers' file attached and its table made.

    Raises:
        UnsafeFileSystem: it lies on a network file system.
        ConfigError: an application keeps it in WAL mode, in which our library may not write to it; or it has several
            names.
        Busy: it is ours, in WAL mode, and open elsewhere.
    """
    refuse_network(path)
    refuse_hard_links(path)
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    execute = _executing(connection, after(timeout_s))
    try:
        execute("PRAGMA synchronous = FULL")
        execute("PRAGMA temp_store = MEMORY")  # of what a script keeps for itself, see `ended`
        _set_journal(execute, path, journal_mode, prefix)
        execute(f"ATTACH DATABASE ? AS {prefix}file", (f"{path}-workers",))
        execute(f"PRAGMA {prefix}file.journal_mode = {journal_mode}")
        execute(f"PRAGMA {prefix}file.synchronous = NORMAL")
        # SQLite means within one statement: so it asks once, and not again for each row, where it would wait each time
        # until no other thread runs Python.
        connection.create_function(f"{prefix}now", 0, now_us, deterministic=True)
        for text in queries["ensure_workers"].statements:
            execute(text)
        execute(f"PRAGMA busy_timeout = {round(timeout_s * 1000)}")
    except BaseException:
        connection.close()
        raise
    return connection


def _executing(connection: sqlite3.Connection, until: float) -> Execute:
    """Runs one statement alone, and waits for its locks: who opens a file reads it, which a commit elsewhere shuts."""
    return lambda text, values=(): evenly(lambda: connection.execute(text, values).fetchall(), until)


def _set_journal(execute: Execute, path: Path, wanted: str, prefix: str) -> None:
    """A file of an application that keeps it in WAL mode stays as it is: the mode belongs to the file, so to all.

    Raises:
        ConfigError, Busy: see `open_file`.
    """
    ((found,),) = execute("PRAGMA main.journal_mode")
    if found == "wal" != wanted and _has_other_tables(execute, prefix):
        raise ConfigError(
            f"an application keeps {path} in the journal mode wal",
            f"SQLite {sqlite3.sqlite_version} can damage such a file when several programs write to it",
            "name a file of its own for the jobs, or use SQLite 3.51.3 or newer",
        )
    try:
        execute(f"PRAGMA main.journal_mode = {wanted}")
    except sqlite3.OperationalError as error:
        if found == "wal" and is_locked(error):
            raise Busy(
                f"{path} is in the journal mode wal, and cannot be set to {wanted} now",
                "somebody has it open, with a newer SQLite perhaps",
                "repeat when nobody has it open",
            ) from error
        raise


def _has_other_tables(execute: Execute, prefix: str) -> bool:
    names = execute("SELECT name FROM main.sqlite_master WHERE type = 'table'")
    return any(not name.startswith((prefix, "sqlite_")) for (name,) in names)


def unopened(path: Path, why: str) -> Unavailable:
    """The error for a file that cannot be opened or made: what stands in the way, as far as one can see."""
    if path.is_dir():
        return Unavailable(f"{path} is a folder", "a database file is expected", "name a file in it")
    if not path.parent.is_dir():
        return Unavailable(
            f"{path} cannot be made",
            f"there is no folder {path.parent}",
            "make the folder, or correct the path",
        )
    if is_out_of_descriptors():
        return Unavailable(
            f"{path} cannot be opened",
            "this process has no file descriptors left",
            "raise its limit (`ulimit -n`), or find what keeps files and sockets open",
        )
    return Unavailable(f"{path} cannot be opened", why, "check the permissions of the file and of its folder")


@contextmanager
def translated(path: Path, *, around_user_code: bool = False) -> Iterator[None]:
    """Turn SQLite's errors that an operator can do something about into ours; leave all others as they are."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        known = fault(error, path)
        # A missing table speaks of ours only when a statement of ours met it.
        if known is None or (around_user_code and isinstance(known, SchemaMissing)):
            raise
        raise known from error


def in_doubt(error: BaseException, path: Path) -> OutcomeUnknown | None:
    """What a failed COMMIT leaves unknown: after a failed write or sync recovery decides what lies on the disk.

    A rollback journal is emptied first and that is made durable afterwards: when the second step fails,
    SQLite reports an error, and all that was written stands.
    """
    if not isinstance(error, sqlite3.OperationalError) or not _code(error).startswith("SQLITE_IOERR"):
        return None
    return OutcomeUnknown(
        f"writing {path} failed during COMMIT",
        f"it may have happened or not ({error})",
        "check the disk; ask by id or key before repeating it",
    )


def locked(path: Path, why: str) -> Busy:
    """The error for a file that others did not let go in time."""
    return Busy(
        f"{path} stayed locked by another writer",
        why,
        "repeat; look for a long transaction, or raise busy_timeout_s where the disk is slow",
    )


def fault(error: sqlite3.DatabaseError, path: Path) -> FencerowError | None:
    """Which of our errors a SQLite error is, if any."""
    if isinstance(error, sqlite3.OperationalError):
        return _trouble(error, path)
    if _code(error) == "SQLITE_CONSTRAINT_TRIGGER" and str(error).startswith(MOVED):
        return DatabaseMoved(
            f"{path} takes nothing any more",
            f"its jobs were moved to {str(error).removeprefix(MOVED)}, or are on their way there",
            "use that database; `fencerow move --reopen` takes a move back that has not come to its end",
        )
    if _code(error) in ("SQLITE_NOTADB", "SQLITE_CORRUPT"):
        return DatabaseError(
            f"{path} is not a usable SQLite database ({error})",
            "the file is damaged or something else",
            "check the path; restore a damaged file from a backup",
        )
    return None


def _trouble(error: sqlite3.OperationalError, path: Path) -> FencerowError | None:
    code = _code(error)
    if is_locked(error):
        return locked(path, str(error))
    if code == "SQLITE_READONLY_DBMOVED":
        return ReadOnly(
            f"{path} was replaced, moved or removed while this program had it open",
            f"what it wrote now would be lost ({error})",
            "restart the programs that use it; stop them before you put another file in its place",
        )
    if code.startswith("SQLITE_READONLY"):
        return _read_only(_unwritable(path) or path, error)
    if code == "SQLITE_FULL":
        return StorageFull(f"no space is left for {path}", str(error), "make room on the disk and repeat")
    if code.startswith("SQLITE_CANTOPEN"):
        return unopened(path, str(error))
    if code == "SQLITE_IOERR_CORRUPTFS":
        return DatabaseError(
            f"the file system under {path} is damaged", str(error), "check the disk; restore from a backup"
        )
    if code == "SQLITE_IOERR_WRITE" and (found := _unwritable(path)) is not None:
        return _read_only(found, error)  # of a journal SQLite knows no better word
    if code.startswith("SQLITE_IOERR"):  # before COMMIT: reading, writing, locking, or no memory for it
        return Unavailable(
            f"reading or writing {path} failed", f"{error} ({code})", "check the disk; nothing was stored"
        )
    if "no such table" in str(error):
        return SchemaMissing(f"{path} has no Fencerow tables", str(error), "run `fencerow migrate`")
    return None


def _read_only(path: Path, error: sqlite3.OperationalError) -> ReadOnly:
    return ReadOnly(
        f"{path} is read-only",
        f"{error} ({_code(error)}); nothing was stored",
        "let this user write to the file and its folder, and to all files beside it",
    )


def _unwritable(path: Path) -> Path | None:
    """Of all files of these jobs the first that is there and may not be written."""
    files = [
        Path(f"{path}{part}{more}") for part in ("", "-workers") for more in ("", "-journal", "-wal", "-shm")
    ]
    return next((each for each in files if each.exists() and not os.access(each, os.W_OK)), None)


def _code(error: sqlite3.DatabaseError) -> str:
    return getattr(error, "sqlite_errorname", "") or ""
