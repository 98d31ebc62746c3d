"""Opening a SQLite file: where it may lie, which journal its library allows, and the workers' file beside it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from fencerow.core.db.filesystem import refuse_network
from fencerow.core.db.queries import Queries
from fencerow.core.db.sqlite_session import Clock

# From 3.7.0 on, a commit that resets the WAL while another connection checkpoints could corrupt the file: the
# "WAL-reset bug", fixed in 3.51.3 of 2026-03-13 and all later releases, and in these two older branches.
# Source: https://www.sqlite.org/wal.html#walresetbug
WAL_FIXED = ((3, 51, 3), (3, 50, 7), (3, 44, 6))
VERSION_MIN = (3, 35, 0)  # RETURNING


def wal_is_safe(version: tuple[int, int, int]) -> bool:
    """Whether this SQLite may use a write-ahead log beside connections that are not ours."""
    return version >= WAL_FIXED[0] or any(
        version[:2] == fixed[:2] and version >= fixed for fixed in WAL_FIXED
    )


def default_journal() -> str:
    """The journal mode for the library that is loaded."""
    return "wal" if wal_is_safe(sqlite3.sqlite_version_info) else "truncate"


def open_file(
    path: Path, queries: Queries, clock: Clock, *, prefix: str, journal_mode: str, timeout_s: float
) -> sqlite3.Connection:
    """A connection to the jobs' file, with the workers' file attached and its table made.

    Raises:
        UnsafeFileSystem: it lies on a network file system.
    """
    refuse_network(path)
    connection = sqlite3.connect(path, timeout=timeout_s, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA main.journal_mode = {journal_mode}")
        connection.execute(f"ATTACH DATABASE ? AS {prefix}file", (f"{path}-workers",))
        connection.execute(f"PRAGMA {prefix}file.journal_mode = {journal_mode}")
        connection.execute(f"PRAGMA {prefix}file.synchronous = NORMAL")
        connection.create_function(f"{prefix}now", 0, clock.now_us)
        for text in queries["ensure_workers"].statements:
            connection.execute(text)
        _widen_workers(connection, queries, prefix)
    except BaseException:
        connection.close()
        raise
    return connection


def _widen_workers(connection: sqlite3.Connection, queries: Queries, prefix: str) -> None:
    """Add the columns that a workers' file of an earlier release lacks."""
    rows = connection.execute(f"PRAGMA {prefix}file.table_info({prefix}workers)").fetchall()
    known = {str(row[1]) for row in rows}
    for text in queries["widen_workers"].statements:
        if text.partition(" ADD COLUMN ")[2].split()[0] in known:
            continue
        try:
            connection.execute(text)
        except sqlite3.OperationalError as error:
            if "duplicate column name" not in str(error):  # another process was quicker
                raise
