"""`Backfill`: a large table of the user's worked through in ranges of keys, by jobs, each range once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from fencerow.core.answering import answer
from fencerow.core.app.app import JobsApp
from fencerow.core.app.declare import DeclaredBase
from fencerow.core.errors import Busy, CancelRequested, LeaseLost, OutcomeUnknown, Unavailable
from fencerow.core.model.control import Snooze
from fencerow.core.model.handler import Handler
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.worker.context import Job
from fencerow.core.worker.middleware import Middleware
from fencerow.db.engine import Engine, Session
from fencerow.db.numbers import check_number
from fencerow.db.text import check_text, said_of
from fencerow.migrations.backfills import operations as backfills
from fencerow.migrations.backfills.operations import BackfillSource, Range, TakenRange, Walk
from fencerow.migrations.backfills.status import BackfillStatus
from fencerow.migrations.errors import BackfillRunning, InvalidBackfill, RangeFailed, UnknownBackfill
from fencerow.migrations.threaded import threaded

Fill = Callable[[Any, Any, Any], object]

NAME_LENGTH_MAX = 80
ERROR_LENGTH_MAX = 500
SLICE_S = 10.0  # then the job puts itself back, so that others get its slot and a stopping worker is not kept
TROUBLE_PAUSE_S = 5.0
LAG_PAUSE_S = 1.0
IDLE_S = 60.0  # a process that is stopped in the middle of a range keeps the lane, and the rows, no longer


@answer
class Backfill:
    """Works through a table by key, `batch_rows` rows at a time, in jobs of the app; each range once.

        def fill(connection, first, last):  # keys, both included
            connection.execute("UPDATE messages SET sender = ... WHERE id BETWEEN %s AND %s", (first, last))

        senders = Backfill(app, "senders", fill, table="messages", key="id", rows_per_s=5000)
        senders.start()  # and app.worker() somewhere

    `fill` is a plain function that gets the driver's connection (psycopg, or sqlite3 on SQLite) in an open
    transaction. What it writes there and the note that the range is done are one commit, so a range is done
    once, whatever crashes. What it does elsewhere may happen again. PostgreSQL rolls a range back if no
    statement comes for 60 s, so that a process that is stopped does not keep its rows locked. Declare it as a
    global of a module that workers import.

    Ranges follow each other in the order of the key, from its least to its greatest value at the start. New
    rows are included if their key lies ahead, but not if it lies behind or above the greatest value: deploy
    the code that writes the new form first. Rows whose key is NULL are not included. The key should have an
    index.

    `lanes`: how many ranges run at a time; each lane has an equal share of the keys (whole numbers only).
    `rows_per_s` and `pause_s` (between two ranges of a lane) slow the backfill down. It also waits while a
    replica is more than `lag_max_s` behind, if the role may see that. A range that raises is tried
    `failures_max` times, with growing pauses; then its lane stops there and `status` names it.

    Raises:
        InvalidBackfill, InvalidInput: it cannot work as declared.
        DeclarationError: the app has a backfill of that name already.
    """

    def __init__(
        self,
        app: JobsApp,
        name: str,
        fill: Fill,
        *,
        table: str,
        key: str,
        batch_rows: int = 1000,
        lanes: int = 1,
        rows_per_s: float | None = None,
        pause_s: Seconds = 0.0,
        lag_max_s: Seconds | None = None,
        failures_max: int = 5,
        queue: str = "backfills",
    ) -> None:
        check_text(name, "the name of a backfill", NAME_LENGTH_MAX)
        pause_s, lag_max_s = in_seconds(pause_s), in_seconds(lag_max_s)
        check_number("batch_rows", batch_rows, 1, 1_000_000)
        check_number("lanes", lanes, 1, 1_000)
        check_number("pause_s", pause_s, 0.0, 3_600.0)
        check_number("failures_max", failures_max, 1, 10_000)
        if rows_per_s is not None:
            check_number("rows_per_s", rows_per_s, 0.001, 1e9)
        if lag_max_s is not None:
            check_number("lag_max_s", lag_max_s, 0.01, 86_400.0)
        if asyncio.iscoroutinefunction(fill):
            raise InvalidBackfill(
                f"backfill {name} has a coroutine",
                "it gets the driver's plain connection",
                "write `def` without async",
            )
        self.name = name
        self._app = app
        self._fill = fill
        self._source = BackfillSource.of(table, key)
        self._batch_rows, self._lanes = batch_rows, lanes
        self._rows_per_s, self._pause_s, self._lag_max_s = rows_per_s, pause_s, lag_max_s
        self._failures_max = failures_max
        self._job: DeclaredBase[..., ..., str, str] = app.job(
            name=job_name(name),
            queue=queue,
            attempts_max=1_000,  # trouble of the database; what `fill` raises is counted per range
            snoozes_max=1_000_000,
        )(self._walking())

    @property
    def handler(self) -> Handler:
        """What workers run. Child processes find it by this among the globals of the module."""
        return self._job.handler

    @property
    def middleware(self) -> Middleware:
        """What wraps its runs."""
        return self._job.middleware

    # --- steering ----------------------------------------------------------------------------------

    def start(self) -> BackfillStatus:
        """Plan the lanes and submit their jobs, in one transaction. Does nothing if it was started before.

        Raises:
            UnusableTable: there is no such table or column. InvalidBackfill: it is known with another table or key.
        """
        self._app.client.make_ready()
        with self._app.engine.session(idle_s=IDLE_S) as session:
            queries = self._app.engine.queries
            made = session.run(backfills.plan(self.name, self._source, self._lanes, queries))
            submit_lanes(self._app, self.name, made, session)
        return self.status()

    def pause(self) -> BackfillStatus:
        """Stop after the ranges that are under way. Survives restarts. May be repeated."""
        self._app.client.make_ready()
        pause(self._app.engine, self.name)
        return self.status()

    def resume(self) -> BackfillStatus:
        """Go on with all that is not done, also with lanes that stopped at a failing range or lost their jobs.

        Raises:
            UnknownBackfill: it was never started.
        """
        self._app.client.make_ready()
        resume(self._app, self._app.engine, self.name)
        return self.status()

    def status(self) -> BackfillStatus:
        """How far it is, how fast, and which ranges failed.

        Raises:
            UnknownBackfill: it was never started.
        """
        self._app.client.make_ready()
        lanes = self._app.engine.run(backfills.lanes_of(self.name))
        if not lanes:
            raise unknown(self.name)
        return BackfillStatus.of(lanes)

    def forget(self) -> None:
        """Forget how far it was, so that `start` starts again.

        Raises:
            BackfillRunning: pause it first.
        """
        self._app.client.make_ready()
        if not self._app.engine.run(backfills.forget(self.name)) and self._app.engine.run(
            backfills.lanes_of(self.name)
        ):
            raise BackfillRunning(
                f"backfill {self.name} runs", "a backfill that runs cannot be forgotten", "pause it first"
            )

    astart = threaded(start)
    apause = threaded(pause)
    aresume = threaded(resume)
    astatus = threaded(status)

    # --- walking -----------------------------------------------------------------------------------

    def _walking(self) -> Callable[..., str]:
        """The job's function, which belongs to the module of `fill`: there a child process looks for it."""

        def walk(job: Job, lane: int, run: int) -> str:
            return self._walk(job, Walk(self.name, lane, run, job.attempt))

        walk.__module__ = self._fill.__module__
        walk.__qualname__ = f"backfill_{self.name}"
        return walk

    def _walk(self, job: Job, walk: Walk) -> str:
        until = time.monotonic() + SLICE_S
        while True:
            job.raise_if_cancelled()
            started = time.monotonic()
            rows = self._one(walk)
            if rows is None:
                return "over"
            wait_s = self._wait_s(rows, time.monotonic() - started)
            if time.monotonic() + wait_s > until:
                raise Snooze(max(wait_s, 0.001), "others get the slot; it goes on")
            job.wait_cancelled(wait_s)

    def _one(self, walk: Walk) -> int | None:
        """Do the next range; how many rows it has, or None if this lane is over for this job."""
        tried: list[Range] = []
        try:
            with self._app.engine.session(idle_s=IDLE_S) as session:
                taken = session.run(backfills.take(walk))
                if taken is None:
                    return None
                return self._range(session, walk, taken, tried)
        except (CancelRequested, LeaseLost):
            raise
        except (Unavailable, Busy, OutcomeUnknown) as error:
            raise Snooze(TROUBLE_PAUSE_S, f"the database was in trouble: {error.what}") from error
        except Exception as error:
            self._failed(walk, tried[0] if tried else None, error)
            return None

    def _range(self, session: Session, walk: Walk, taken: TakenRange, tried: list[Range]) -> int | None:
        found = session.run(
            backfills.next_range(taken, self._source, self._batch_rows, self._app.engine.queries)
        )
        if found is None:
            session.run(backfills.end(walk))
            return None
        tried.append(found)
        self._fill(session.connection, found.first, found.last)
        if not session.run(backfills.move(walk, taken, found)):
            raise LeaseLost(
                f"lane {walk.lane} of backfill {walk.name} is walked by another attempt",
                "the range was rolled back here",
                "there is nothing to do",
            )
        return found.rows

    def _failed(self, walk: Walk, tried: Range | None, error: Exception) -> None:
        """Count it, and put the job back; or give up on the lane, loudly. Returns if the lane is another attempt's."""
        told = said_of(error)[:ERROR_LENGTH_MAX]
        counted = self._app.engine.run(backfills.fail(walk, tried, told, self._failures_max))
        if counted is None:
            return
        failures, over = counted
        keys = f"{tried.first} to {tried.last}" if tried is not None else "that comes next"
        if over:
            raise RangeFailed(
                f"backfill {walk.name}: the range {keys} failed {failures} times",
                told,
                "correct the cause, then resume the backfill",
            ) from error
        raise Snooze(min(60.0, 0.5 * 2.0**failures), f"the range {keys} failed: {told}") from error

    def _wait_s(self, rows: int, took_s: float) -> float:
        """How long this lane shall wait before its next range."""
        wait_s = self._pause_s
        if self._rows_per_s is not None:
            wait_s = max(wait_s, rows * self._lanes / self._rows_per_s - took_s)
        if self._lag_max_s is not None and self._app.engine.run(backfills.lag_s()) > self._lag_max_s:
            wait_s = max(wait_s, LAG_PAUSE_S)
        return wait_s


def job_name(name: str) -> str:
    """The job that walks a backfill's lanes."""
    return f"backfill.{name}"


def submit_lanes(app: JobsApp, name: str, lanes: Sequence[tuple[int, int]], session: Session) -> None:
    """Submit the job of each lane in the transaction that planned or resumed it."""
    for lane, run in lanes:
        app.submit_by_name(
            job_name(name),
            {"lane": lane, "run": run},
            key=f"{lane}:{run}",
            connection=session.connection,
        )


def pause(engine: Engine, name: str) -> int:
    """Stop what runs of a backfill; how many lanes that were."""
    return engine.run(backfills.pause(name))


def resume(app: JobsApp, engine: Engine, name: str) -> int:
    """Begin a new run of what is not done, and submit its jobs; how many lanes that are. `engine`: that of the app, or
    who stands before it.

    Raises:
        UnknownBackfill: it was never started. UnknownJob: this app does not declare it.
    """
    with engine.session(idle_s=IDLE_S) as session:
        lanes = session.run(backfills.resume(name))
        submit_lanes(app, name, lanes, session)
    if not lanes and not engine.run(backfills.lanes_of(name)):
        raise unknown(name)
    return len(lanes)


def unknown(name: str) -> UnknownBackfill:
    return UnknownBackfill(
        f"no backfill {name!r} was ever started in this database",
        "the name is wrong, or this is the wrong database",
        "start it, or correct the name",
    )
