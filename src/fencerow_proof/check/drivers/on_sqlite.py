"""sqlite3, with whatever stands on it, such as aiosqlite and SQLAlchemy.

Its classes are C and cannot be changed, so `connect` is given factories of ours. Waiting for a lock is done here
instead of in C, so that the director knows of it and decides who goes on.
"""

from __future__ import annotations

import os
import sqlite3
import sqlite3.dbapi2
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from fencerow_proof.check.seam import PLANTED, Seam

BUSY = 5  # the primary result code; its extended forms share the low byte
BUSY_SNAPSHOT = 517  # waiting does not help


def lead(main: Path, named: Path | None) -> None:
    """Let every connection go to a file in the scratch folder: the application's own database to `main`.

    Each other file has one of its own there; a database in memory stays what it is.
    """
    original = sqlite3.connect

    def connect(database: Any, *args: Any, **kwargs: Any) -> Any:
        return original(led(database, main, named), *args, **kwargs)

    sqlite3.connect = sqlite3.dbapi2.connect = connect


def led(database: Any, main: Path, named: Path | None) -> Any:
    """The file in the scratch folder that stands for this one."""
    text = os.fsdecode(database) if not isinstance(database, str) else database
    if text in ("", ":memory:") or "mode=memory" in text or text.startswith("file::memory:"):
        return database
    path = Path(unquote(text.removeprefix("file:").partition("?")[0])).absolute()
    if path.parent == main.parent:
        return database
    if named is not None and path == named.absolute():
        return str(main)
    return str(main.parent / f"{path.stem}-{abs(hash_of(path)):x}.db")


def hash_of(path: Path) -> int:
    """The same in every process, unlike `hash`."""
    return int.from_bytes(str(path).encode()[-24:], "big") % 0xFFFFFF


def watch(seam: Seam) -> None:
    """Lead every statement of connections made from now on through the seam."""
    original = sqlite3.connect
    makers: dict[type, type] = {}

    def connect(database: Any, timeout: float = 5.0, *args: Any, **kwargs: Any) -> Any:
        given = kwargs.pop("factory", sqlite3.Connection)
        if given not in makers:
            makers[given] = watched_connection(given, seam)
        made: Any = original(database, 0.0, *args, factory=makers[given], **kwargs)
        made.fencerow_patient = timeout > 0
        return made

    sqlite3.connect = sqlite3.dbapi2.connect = connect


def watched_connection(base: type, seam: Seam) -> type:
    """A subclass of a connection class whose statements go through the seam."""
    cursors: dict[type, type] = {}

    class Watched(base):  # type: ignore[misc]
        fencerow_patient = True

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.fencerow_session = seam.session()

        def cursor(self, factory: type = sqlite3.Cursor) -> Any:
            if factory not in cursors:
                cursors[factory] = watched_cursor(factory)
            return super().cursor(cursors[factory])

        def execute(self, sql: str, *args: Any) -> Any:
            return self.cursor().execute(sql, *args)

        def executemany(self, sql: str, *args: Any) -> Any:
            return self.cursor().executemany(sql, *args)

        def executescript(self, script: str) -> Any:
            return self.cursor().executescript(script)

        def commit(self) -> None:
            if self.in_transaction:
                self.fencerow_through("COMMIT", super().commit)

        def rollback(self) -> None:
            if self.in_transaction:
                self.fencerow_through("ROLLBACK", super().rollback)

        def __exit__(self, kind: Any, *_: Any) -> Any:
            if kind is not None:
                self.rollback()
                return False
            try:
                self.commit()
            except BaseException:
                self.rollback()  # as the class itself does: a commit that failed keeps no lock
                raise
            return False

        def fencerow_through(self, text: str, do: Callable[[], Any]) -> Any:
            with seam.statement(text, "sqlite3", self.fencerow_session, None, fail):
                return patiently(do, self, seam)

    return Watched


def watched_cursor(base: type) -> type:
    """A subclass of a cursor class whose statements go through their connection's seam."""

    class Watched(base):  # type: ignore[misc]
        def execute(self, sql: str, *args: Any) -> Any:
            do = super().execute
            return self.connection.fencerow_through(sql, lambda: do(sql, *args))

        def executemany(self, sql: str, *args: Any) -> Any:
            do = super().executemany
            return self.connection.fencerow_through(sql, lambda: do(sql, *args))

        def executescript(self, script: str) -> Any:
            """Statement by statement, since each may be the last that is done."""
            connection = self.connection
            if connection.in_transaction:
                connection.commit()
            do = super().execute
            for sql in statements(script):
                connection.fencerow_through(sql, lambda sql=sql: do(sql))
            return self

    return Watched


def statements(script: str) -> list[str]:
    """The statements of a script; only what SQLite itself calls complete is one."""
    found: list[str] = []
    rest = ""
    for part in script.split(";"):
        rest += part + ";"
        if sqlite3.complete_statement(rest):
            if rest.strip(" \t\r\n;"):
                found.append(rest)
            rest = ""
    return found if not rest.strip(" \t\r\n;") else [*found, rest]


def patiently(do: Callable[[], Any], connection: Any, seam: Seam) -> Any:
    """Do it, and wait at the director's word while the file is locked by others."""
    while True:
        try:
            return do()
        except sqlite3.OperationalError as error:
            code = getattr(error, "sqlite_errorcode", 0)
            locked = code & 0xFF == BUSY and code != BUSY_SNAPSHOT
            if not (locked and connection.fencerow_patient and seam.is_open and seam.may_try_again()):
                raise


def fail() -> None:
    raise sqlite3.OperationalError(PLANTED)
