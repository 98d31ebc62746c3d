"""Rows that our own code never writes: a worker meets them, and everything else goes on.

Whoever may insert jobs may write what no decoder follows and what no clock reaches. The schema refuses what it can say;
here its constraints are taken off, because a row is survived whoever wrote it and however it came in.
"""

from __future__ import annotations

import pytest

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.doctor.why import why
from fencerow.operators import looking
from tests.core.store.stage import rows
from tests.core.worker.stage import quick, read, submit, working
from tests.kit.jobs import AnyEngine

DEPTH = 3_000
DEEP = '{"n":' * DEPTH + "1" + "}" * DEPTH

# A column, what is written there, and how the job ends.
ANYWHERE = {
    "arguments nested too deeply": ("args", f"'{DEEP}'", "failed"),
    "arguments that are no object": ("args", "'17'", "failed"),
    "a number without end": ("args", '\'{"n":' + "9" * 5_000 + "}'", "failed"),
    "tags nested too deeply": ("tags", f"'{DEEP}'", "succeeded"),
    "tags that are no list": ("tags", "'{\"a\":1}'", "succeeded"),
    "metadata nested too deeply": ("metadata", f"'{DEEP}'", "succeeded"),
    "options nested too deeply": ("options", f"'{DEEP}'", "succeeded"),
    "headers with half a character": ("headers", '\'{"a":"\\ud800"}\'', "succeeded"),
    "an endless limit": ("timeout_s", "1e300", "succeeded"),
    "an endless retention": ("retention_s", "1e300", "succeeded"),
    "an attempt below all": ("attempt", "-5", "succeeded"),
}
ON_POSTGRES = {
    "a limit that is no number": ("timeout_s", "'NaN'", "succeeded"),
    "an infinite limit": ("timeout_s", "'Infinity'", "succeeded"),
    "due since ever": ("run_at", "'-infinity'", "succeeded"),
    "due before Rome": ("run_at", "'4000-01-01 BC'", "succeeded"),
    "submitted at no time": ("submitted_at", "'infinity'", "succeeded"),
    "submitted after the end of dates": ("submitted_at", "'290000-01-01'", "succeeded"),
    "never expiring": ("expires_at", "'infinity'", "succeeded"),
    "a retention that is no number": ("retention_s", "'NaN'", "succeeded"),
}


def undoored(engine: AnyEngine) -> None:
    """Take the constraints off, as if the rows had been there before them."""
    if engine.dialect == "postgres":
        for name in ("attempt", "timeout", "retention", "instant", "labels"):
            rows(engine, f"ALTER DOMAIN fencerow.job_{name} DROP CONSTRAINT job_{name}")


async def damaged(engine: AnyEngine, column: str, value: str) -> str:
    job_id = await submit(engine, "work", attempts_max=1)
    write(engine, job_id, column, value)
    return job_id


def write(engine: AnyEngine, job_id: str, column: str, value: str) -> None:
    with engine.session() as session:
        table = "fencerow.jobs" if engine.dialect == "postgres" else "fencerow_jobs"
        session.connection.execute(f"UPDATE {table} SET {column} = {value} WHERE id = '{job_id}'")


async def looked_at(engine: AnyEngine, job_id: str) -> None:
    """All that people ask about jobs has an answer."""
    assert (await read(engine, job_id)).id == job_id
    assert job_id in {each.id for each in await engine.arun(looking.list_jobs())}
    assert (await engine.arun(why(job_id))).id == job_id
    await engine.arun(looking.counts())
    await engine.arun(looking.events(job_id))


async def survived(engine: AnyEngine, column: str, value: str, end: str) -> str:
    undoored(engine)
    job_id = await damaged(engine, column, value)
    healthy = await submit(engine, "work")
    await looked_at(engine, job_id)

    def work() -> None: ...

    async with working(engine, work) as stage:
        assert (await stage.ended(healthy)).state == "succeeded"
        assert (await stage.ended(job_id)).state == end
        assert stage.worker.holder is not None
    await looked_at(engine, job_id)
    return job_id


@pytest.mark.parametrize(("column", "value", "end"), ANYWHERE.values(), ids=ANYWHERE)
async def test_a_damaged_row_stops_nobody(engine: AnyEngine, column: str, value: str, end: str) -> None:
    await survived(engine, column, value, end)


@pytest.mark.parametrize(("column", "value", "end"), ON_POSTGRES.values(), ids=ON_POSTGRES)
async def test_nor_does_one_that_only_postgresql_can_hold(
    pg: PostgresEngine, column: str, value: str, end: str
) -> None:
    await survived(pg, column, value, end)


async def test_arguments_that_cannot_be_read_fail_for_good_and_stay_as_they_are(pg: PostgresEngine) -> None:
    job_id = await survived(pg, "args", f"'{DEEP}'", "failed")

    job = await read(pg, job_id)
    assert job.error["type"].endswith("MalformedPayload") and "FR-308" in job.error["message"]
    assert (job.damaged, job.args, job.failures) == (("args",), DEEP, 1)


async def test_what_a_workers_row_says_is_survived_too(engine: AnyEngine) -> None:
    """An operator's tool may have written it, or another version."""

    def work() -> None: ...

    async with working(engine, work, config=quick(renew_s=0.1)) as stage:
        holder = stage.worker.holder
        table = "fencerow.workers" if engine.dialect == "postgres" else "fencerow_file.fencerow_workers"
        for column in ("info", "wanted"):
            with engine.session() as session:
                session.connection.execute(f"UPDATE {table} SET {column} = '{DEEP}' WHERE id = '{holder}'")
        await stage.heard.wait("renewed", len(stage.heard.all("renewed")) + 3)

        assert (await stage.run("work")).state == "succeeded"
        (found,) = await engine.arun(store.list_workers(holder=holder))
        assert (found.id, found.wanted, stage.worker.holder) == (holder, None, holder)


async def test_nor_does_a_note_in_a_timeline_hide_the_others(engine: AnyEngine) -> None:
    job_id = await submit(engine, "work")
    table = "fencerow.job_events" if engine.dialect == "postgres" else "fencerow_job_events"
    at = "now()" if engine.dialect == "postgres" else "0"
    with engine.session() as session:
        session.connection.execute(
            f"INSERT INTO {table} (job_id, attempt, at, kind, detail)"
            f" VALUES ('{job_id}', 0, {at}, 'strange', '{DEEP}')"
        )

    (found,) = await engine.arun(looking.events(job_id))
    assert (found.kind, found.detail) == ("strange", DEEP)
