"""The first submit to a SQLite file without tables, while a transaction of the caller's own is open."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest

from fencerow import App, Config
from fencerow.core.schema import migrate
from fencerow.errors import Busy


def test_it_says_that_the_tables_are_missing_and_asks_once(
    sqlite_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "time", _NoWait())
    app = App(config=Config(url=f"sqlite:///{sqlite_path}", busy_timeout_s=0.05))

    @app.job
    def ship(order: int) -> None: ...

    connection = sqlite3.connect(sqlite_path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")

    with pytest.raises(Busy, match="tables are missing") as refused:
        ship.using(connection=connection).submit(1)

    assert "app.migrate()" in refused.value.fix
    connection.execute("ROLLBACK")
    app.migrate()
    connection.execute("BEGIN IMMEDIATE")
    ship.using(connection=connection).submit(1)
    connection.execute("COMMIT")
    assert len(app.client.list_jobs()) == 1
    connection.close()
    app.close()


class _NoWait:
    """The clock of the migrator, in which nobody waits to ask again."""

    monotonic = staticmethod(time.monotonic)

    @staticmethod
    def sleep(_: float) -> None:
        pytest.fail("it waits to ask again")
