"""Retention in a SQLite file: short transactions between which others write, and space that is used again."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import pytest

from fencerow import Config
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.store.attempts import Success
from fencerow.core.telemetry import Telemetry
from fencerow.db.run import Operation
from fencerow.db.sqlite import SqliteEngine
from fencerow.retention.maintenance import MaintenanceChore
from fencerow.retention.purging import purge_by_age
from tests.core.store.stage import rows
from tests.kit.jobs import claim, new_job, register, submit

KIBIBYTE = '{"to":"' + "x" * 1024 + '"}'


def finish(engine: SqliteEngine, number: int) -> None:
    submit(engine, *(new_job(KIBIBYTE) for _ in range(number)))
    claimed = claim(engine, holder := register(engine), limit=number)
    engine.run(store.succeed([Success(job.id, job.attempt, "1") for job in claimed], holder=holder))


def pages(engine: SqliteEngine) -> tuple[int, int]:
    """How many pages the file has, and how many of them are free."""
    connection = sqlite3.connect(engine.path)
    try:
        (total,) = connection.execute("PRAGMA page_count").fetchone()
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
        return total, free
    finally:
        connection.close()


def test_the_space_of_what_went_is_used_again(lite: SqliteEngine) -> None:
    sizes = []
    for _ in range(4):
        finish(lite, 300)
        sizes.append(pages(lite)[0])
        lite.clock.offset_us += 10_000_000
        assert lite.run(purge_by_age(State.SUCCEEDED, age_s=1.0, limit=1000)) == 300
    assert pages(lite)[1] > 100, "nothing became free"

    finish(lite, 300)
    finish(lite, 300)  # the control: without a purge in between it grows
    grown = pages(lite)[0] - sizes[-1]
    assert sizes[-1] - sizes[1] < grown / 4, (sizes, grown)


def test_another_process_writes_between_two_batches(
    lite: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        finish(lite, 1000)
    lite.clock.offset_us += 100_000_000
    made = MaintenanceChore(lite, Config(retention_succeeded_s=1.0, retention_period_s=60.0), Telemetry())
    other = SqliteEngine(lite.path, lite.queries)  # its own lock, as another process has
    run, left = lite.arun, set[object]()

    async def watched(operation: Operation[Any]) -> Any:
        result = await run(operation)
        await asyncio.to_thread(submit, other)
        (found,) = await asyncio.to_thread(rows, other, "SELECT count(*) AS n FROM {finished_jobs}")
        left.add(found["n"])
        return result

    monkeypatch.setattr(lite, "arun", watched)
    asyncio.run(made.round())
    other.close()

    assert len(left - {3000}) > 1 and 0 in left, "nobody else wrote before all were gone"
