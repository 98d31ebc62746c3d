"""Moves of a job's handler, made on behalf of its attempt: one that lost its job moves nothing."""

from __future__ import annotations

import pytest

from fencerow import App, Backoff, Job
from fencerow.core.store import store
from fencerow.core.store.running import Running, running
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import LeaseLost
from tests.guards.transitions.tables import AtEngine, create, extractions, insert, sql
from tests.kit.jobs import AnyEngine, claim, register, submit


@pytest.fixture
def attempt(engine: AnyEngine) -> Running:
    submit(engine)
    holder = register(engine)
    (job,) = claim(engine, holder)
    return Running(
        job_id=job.id,
        name=job.name,
        queue="mail",
        holder=holder,
        attempt=job.attempt,
        snoozes=0,
        hold_fence=store.hold_fence,
    )


async def test_a_stale_attempt_moves_nothing(engine: AnyEngine, table: str, attempt: Running) -> None:
    insert(engine, table, "a", "b")
    documents = extractions(AtEngine(engine), table, by_attempt=True)
    token = running.set(attempt)
    try:
        assert await documents.amove("claim", "a") is not None
        assert await documents.arenew("claim", "a", fence=1) is not None
        assert engine.run(store.succeed([store.Success(attempt.job_id, 1, "1")], holder=attempt.holder))

        with pytest.raises(LeaseLost):
            await documents.amove("succeed", "a", fence=1)
        with pytest.raises(LeaseLost):
            await documents.arenew("claim", "a", fence=1)
        with pytest.raises(LeaseLost):
            await documents.atake("claim")
    finally:
        running.reset(token)

    assert sql(engine, f"SELECT id, status FROM {table} ORDER BY id") == [("a", "running"), ("b", "queued")]
    assert await documents.amove("succeed", "a", fence=1) is not None, (
        "outside a job there is no attempt to hold"
    )


async def test_a_move_in_a_jobs_transaction_is_one_commit_with_its_success(url: str) -> None:
    """The first attempt moves the row and fails: nothing of it is left for the second."""
    app = App(url)
    app.check_or_create()
    engine = app.engine
    assert isinstance(engine, SqliteEngine | PostgresEngine)
    documents = extractions(app, create(engine), by_attempt=True)
    insert(engine, documents.declared.table.quoted, "a")
    seen: list[object] = []

    @app.job(attempts_max=2, backoff=Backoff(base_s=0.01))
    def extract(job: Job) -> str:
        with job.transaction() as db:
            row = documents.move("claim", "a", connection=db)
            assert row is not None
            seen.append(row["attempts"])
            if job.failures == 0:
                raise ConnectionError("the first fails")
            done = documents.move("succeed", "a", fence=row["attempts"], connection=db)
        return str(done is not None)

    handle = await extract.asubmit()
    async with app.worker():
        assert await handle.aresult(timeout_s=30) == "True"

    assert seen == [1, 1]
    assert sql(engine, f"SELECT status, attempts FROM {documents.declared.table.quoted}") == [
        ("succeeded", 1)
    ]
    await app.aclose()
