"""A process that migrates: `python -m tests.core.schema.starter DIALECT TARGET [NAME COUNT]`.

With a query's name it kills itself as hard as the kernel can, right after it ran that one for the COUNT-th time.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from fencerow.core.store import store
from fencerow.db import postgres_session, sqlite_connection
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine


def engine_of(dialect: str, target: str) -> SqliteEngine | PostgresEngine:
    if dialect == "sqlite":
        return SqliteEngine(target, store.sqlite_queries())
    return PostgresEngine(target, store.postgres_queries())


def die_after(name: str, count: int) -> None:
    """Count how often any session runs a query."""
    left = [count]

    def wrap(session: Any) -> None:
        execute = session.execute

        def counted(self: Any, statement: Any) -> Any:
            rows = execute(self, statement)
            left[0] -= statement.name == name
            if statement.name == name and left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return rows

        session.execute = counted

    wrap(sqlite_connection.SqliteConnection)
    wrap(postgres_session.PostgresSession)


def main(dialect: str, target: str, *rest: str) -> None:
    if rest:
        die_after(rest[0], int(rest[1]))
    engine = engine_of(dialect, target)
    done = store.migrate(engine, actor="starter")
    store.check_schema(engine)
    engine.close()
    sys.stdout.write(f"{len(done)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
