"""How fast are jobs stored: one at a time, by a hundred callers at once, in bulk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from fencerow.app import App
from fencerow.bench import table
from fencerow.bench.figure import Figure, median
from fencerow.bench.place import AnyEngine, BareConnection, BenchDatabase
from fencerow.bench.sizes import Sizes
from fencerow.core.app.calls import CHUNK_ROWS
from fencerow.core.model.ids import new_id
from fencerow.db.postgres import PostgresEngine
from fencerow.declaring import DeclaredJob

BLOCKS = 5  # ours and raw take turns, so that a machine that slows down slows both
CALLERS = 100
ARGS = '{"t":0}'

Job = DeclaredJob[[int], [int], None, Any]


def measure(place: BenchDatabase, sizes: Sizes) -> Iterator[Figure]:
    app = App(config=place.config)

    @app.job(name="noop", queue="bench")
    async def noop(t: int) -> None: ...

    with place.engine() as engine, place.raw(engine) as raw, asyncio.Runner() as runner:
        questions: dict[str, tuple[Callable[[int], None], Callable[[int], None], int]] = {
            "one at a time": (partial(_singly, noop), partial(_raw_singly, raw), sizes.submits_single),
            f"{CALLERS} callers at once": (
                lambda jobs: runner.run(_together(noop, jobs)),
                partial(_raw_together, raw),
                sizes.submits_concurrent,
            ),
            "in bulk": (partial(_in_bulk, app, noop), partial(_raw_in_bulk, raw, engine), sizes.submits_bulk),
        }
        try:
            for what, (ours, bare, jobs) in questions.items():
                mine, floor = _compared(engine, ours, bare, jobs)
                yield Figure("submit", what, mine, "jobs/s", floor)
        finally:
            runner.run(app.aclose())


def _compared(
    engine: AnyEngine, ours: Callable[[int], None], bare: Callable[[int], None], jobs: int
) -> tuple[float, float]:
    """Jobs a second of both, in turns."""
    each = max(1, jobs // BLOCKS)
    rates: tuple[list[float], list[float]] = ([], [])
    for call in (ours, bare):
        call(min(each, 100))  # connections, plans and caches are warm
    for _ in range(BLOCKS):
        for call, found in zip((ours, bare), rates, strict=True):
            engine.run(table.clear())
            began = time.perf_counter()
            call(each)
            found.append(each / (time.perf_counter() - began))
    return median(rates[0]), median(rates[1])


def _singly(noop: Job, jobs: int) -> None:
    for _ in range(jobs):
        noop.submit(0)


def _raw_singly(raw: BareConnection, jobs: int) -> None:
    for _ in range(jobs):
        raw.run("raw_insert", id=new_id(), args=ARGS, now_us=time.time_ns() // 1000)


async def _together(noop: Job, jobs: int) -> None:
    async def caller() -> None:
        for _ in range(max(1, jobs // CALLERS)):
            await noop.asubmit(0)

    await asyncio.gather(*(caller() for _ in range(min(CALLERS, jobs))))


def _raw_together(raw: BareConnection, jobs: int) -> None:
    for done in range(0, jobs, CALLERS):
        _raw_insert(raw, min(CALLERS, jobs - done))


def _in_bulk(app: App, noop: Job, jobs: int) -> None:
    app.submit_many(noop.call(0) for _ in range(jobs))


def _raw_in_bulk(raw: BareConnection, engine: AnyEngine, jobs: int) -> None:
    for done in range(0, jobs, CHUNK_ROWS):  # as many in a commit as ours
        rows = min(CHUNK_ROWS, jobs - done)
        if isinstance(engine, PostgresEngine):
            now = "now"
            with raw.connection.cursor().copy(raw.text("raw_copy")) as copy:
                for _ in range(rows):
                    copy.write_row((new_id(), "raw", "noop", now, 3, 3, 48, 900.0, now, 7, ARGS))
        else:
            _raw_insert(raw, rows)


def _raw_insert(raw: BareConnection, rows: int) -> None:
    """So many rows in one transaction."""
    if raw.takes_arrays:
        raw.run("raw_insert_many", ids=[new_id() for _ in range(rows)], args=[ARGS] * rows)
        return
    now_us = time.time_ns() // 1000
    raw.connection.execute("BEGIN IMMEDIATE")
    raw.connection.executemany(
        raw.text("raw_insert"), [{"id": new_id(), "args": ARGS, "now_us": now_us} for _ in range(rows)]
    )
    raw.connection.execute("COMMIT")
