"""Jobs of many kinds, each of which writes once what it did, in the transaction of its success."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg

from fencerow import App, Backoff, Job
from fencerow.config import Config
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import DatabaseMoved
from fencerow.moving import moving, source, target
from fencerow.moving.moving import Mover

QUEUE = "letters"
SLOTS = 8
PART_ROWS = 50
LATER_S = 20  # a quarter of the jobs are due within so long


class NotYetError(Exception):
    """What the first attempt of some jobs meets after it has written."""


def app_on(url: str) -> App:
    """The application of both sides. Each job writes one effect, and every tenth fails once after it has written."""
    app = App(config=Config(url=url, lease_s=6.0, renew_s=1.0, poll_max_s=0.3, schedules_poll_s=0.5))
    table, mark = ("effects", "?") if url.startswith("sqlite") else ("fencerow.effects", "%s")
    insert = f"INSERT INTO {table} (job) VALUES ({mark})"

    @app.job(queue=QUEUE, attempts_max=5, backoff=Backoff(base_s=0.2))
    def send(job: Job, number: int) -> int:
        with job.transaction() as connection:
            connection.execute(insert, [job.id])
            if number % 10 == 3 and job.attempt == 1:
                raise NotYetError
        return number

    app.schedule(send.call(number=0), "tick", interval_s=1, overlap="allow")
    return app


def make_effects(url: str) -> None:
    """The table of the effects, which lies beside ours."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file, file:
            file.execute("CREATE TABLE effects (job TEXT NOT NULL)")
    else:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE fencerow.effects (job text NOT NULL)")


def submit_all(url: str, count: int) -> list[str]:
    """Submit so many: a third with keys, a tenth under exclusive keys, a quarter for later, some urgent."""
    app = app_on(url)
    app.migrate()
    make_effects(url)
    send = app.jobs["send"]
    with app:
        return [handle.id for handle in app.submit_many(_call(send, at) for at in range(count))]


def _call(send: Any, number: int) -> Any:
    options: dict[str, Any] = {}
    if number % 3 == 0:
        options["key"] = f"letter-{number}"
    if number % 10 == 1:
        options["exclusive"] = f"customer-{number % 70}"
    if number % 4 == 0:
        options["delay_s"] = random.Random(number).uniform(0, LATER_S)
    if number % 7 == 0:
        options["priority"] = 5
    return send.using(**options).call(number=number)


def work(url: str, ended: Path) -> None:
    """Be a worker until killed, or until the database says that its jobs went away: that is written down."""
    logging.disable()
    try:
        asyncio.run(app_on(url).worker(slots=SLOTS).run())
    except Exception as error:
        moved = isinstance(error, DatabaseMoved) or isinstance(error.__cause__, DatabaseMoved)
        ended.write_text("moved" if moved else repr(error))


def bring(
    file: str,
    url: str,
    kill_after: int | None,
    pause_s: float,
    steps: Path,
    unfenced: bool,
    unwatched: bool,
) -> None:
    """Run the move. With `kill_after`, it is killed `pause_s` seconds after so many steps."""
    if unfenced:
        source.stop_claims = _stop_nobody
        moving.drain = _wait_for_nobody  # type: ignore[assignment,attr-defined]
        moving.source.close = _close_without_fence  # type: ignore[attr-defined]
    if unwatched:
        target._compare = _compare_nothing  # type: ignore[assignment]
    done: list[str] = []

    def tell(step: str, _done: int, _of: int) -> None:
        done.append(step)
        if len(done) == kill_after:
            steps.write_text(step)
            threading.Timer(pause_s, os.kill, (os.getpid(), signal.SIGKILL)).start()

    here = SqliteEngine(Path(file), store.sqlite_queries())
    there = PostgresEngine(url, store.postgres_queries())
    Mover(
        here,
        here,
        there,
        Config(url=f"sqlite:///{file}"),
        "postgresql://there/db",
        tell=tell,
        part_rows=PART_ROWS,
    ).move(wait_s=60)
    steps.write_text("done")


def _compare_nothing(*_: object) -> None:
    """Take whatever came for what was sent."""


def _wait_for_nobody(*_: object) -> None:
    """Let jobs run on."""


def _stop_nobody(engine: SqliteEngine) -> None:
    """Let everybody claim as before."""


def _close_without_fence(engine: SqliteEngine, move: object) -> bool:
    """What would be if workers were only asked to stop: the note is made, and nothing refuses anybody."""
    with closing(sqlite3.connect(engine.path)) as file, file:
        file.execute("UPDATE fencerow_moves SET state = 'closed'")
    return True
