"""Say at once why a SQLite file cannot be used, and look whose it is. Nothing here needs the driver of PostgreSQL."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from fencerow.db.errors import SchemaMissing, Unavailable
from fencerow.db.filesystem import refuse_network


def reach_sqlite(path: Path) -> None:
    """Look whether the file is there, without making one.

    Raises:
        SchemaMissing: there is no such file.
        Unavailable: it is a folder, or this user may not read it.
        UnsafeFileSystem: it lies on a network file system.
    """
    refuse_network(path)
    if path.is_dir():
        raise Unavailable(f"{path} is a folder", "a database file is expected", "name a file in it")
    if not path.exists():
        raise SchemaMissing(
            f"there is no file {path}",
            "the database was never migrated, or the path is wrong",
            "run `fencerow migrate` to make it, or correct the URL",
        )
    # Never opened here: closing it would drop the locks that this process holds on the file elsewhere.
    if not os.access(path, os.R_OK):
        raise Unavailable(f"{path} cannot be read", "this user may not", "check the file's permissions")


def is_foreign_sqlite(path: Path, table: str) -> bool:
    """Whether the file is a database without this table: somebody else's, or never migrated.

    An engine would change the journal of what it opens and lay a file for the workers beside it. This look changes
    nothing. What cannot be looked at so is not called foreign: opening it tells more.

    For a process that has no other connection to the file: closing this one may drop that one's locks.
    """
    # Without a log beside it the file alone is all there is; a reader that asks for locks would make the log's files.
    mode = "mode=ro" if Path(f"{path}-wal").exists() else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True)) as connection:
            found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    except sqlite3.Error:
        return False
    return found is None
