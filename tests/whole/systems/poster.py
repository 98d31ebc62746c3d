"""A web process of Tzurot that SIGKILL ends between the admission of a post and the submit of its job."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from typing import Any, NoReturn
from uuid import uuid4

import psycopg

from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from tests.whole.systems import tzurot


class Killed:
    """Stands where the job is submitted."""

    def using(self, **_: object) -> NoReturn:
        sys.stdout.write("admitted\n")
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("SIGKILL is not caught")


def connection() -> Any:
    engine = tzurot.app.engine
    if isinstance(engine, PostgresEngine):
        return psycopg.connect(engine.conninfo)
    assert isinstance(engine, SqliteEngine)
    return sqlite3.connect(engine.path)


def main(form: str) -> None:
    tzurot.answer = Killed()  # type: ignore[assignment]
    if form == "transaction":
        tzurot.post("Lilith", "room", "hello", connection())
        return
    with tzurot.posts.admitting("Lilith:room", str(uuid4()), content="hello") as admitted:
        tzurot.answer.using(id=admitted.value)


if __name__ == "__main__":
    main(sys.argv[1])
