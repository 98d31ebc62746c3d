"""A disk that fails during the last step of SQLite's commit: SQLite reports an error, and what was written stands.

The error is that of `fdatasync` after the rollback journal was emptied, as `strace -e inject=fdatasync:error=EIO`
brings it about.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fencerow import App
from fencerow.core.store import store
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import OutcomeUnknown
from tests.kit.jobs import new_job

pytestmark = pytest.mark.timed


class Failing(sqlite3.Connection):
    """The next commit happens, and an error is reported."""

    armed = False

    def execute(self, text: str, *parameters: Any) -> sqlite3.Cursor:
        done = super().execute(text, *parameters)
        if text == "COMMIT" and Failing.armed:
            Failing.armed = False
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
            raise error
        return done


@pytest.fixture
def path(sqlite_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file with its tables, on a disk that fails once when it is told to."""
    connect = sqlite3.connect

    def connect_failing(*given: Any, **named: Any) -> sqlite3.Connection:
        return connect(*given, factory=Failing, **named)

    with App(f"sqlite:///{sqlite_path}") as app:
        app.migrate()
    monkeypatch.setattr("fencerow.db.sqlite_file.sqlite3.connect", connect_failing)
    yield sqlite_path
    Failing.armed = False


def test_a_commit_that_reports_a_failing_disk_is_in_doubt(path: Path) -> None:
    engine = SqliteEngine(path, store.sqlite_queries())
    job = new_job()

    Failing.armed = True
    with pytest.raises(OutcomeUnknown, match="failed during COMMIT") as raised:
        engine.run(store.submit([job]))

    assert raised.value.repeat == "ask"
    assert job.id in engine.run(store.read([job.id]))
    engine.close()


@pytest.mark.prove
def test_a_submit_through_it_is_settled_by_asking(path: Path) -> None:
    with App(f"sqlite:///{path}") as app:

        @app.job
        def look() -> None: ...

        first = look.submit()
        Failing.armed = True
        second = look.submit()

        assert not Failing.armed
        assert [job.id for job in app.client.list_jobs()] == [second.id, first.id]
