"""Moves of a job's handler, made on behalf of its attempt: one that lost its job moves nothing."""

from __future__ import annotations

import pytest

from fencerow.errors import LeaseLost
from fencerow.primitives.running import Running, running
from fencerow.store import store
from tests.jobs import AnyEngine, claim, register, submit
from tests.primitives.transitions.tables import AtEngine, extractions, insert, sql


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
        still_held=lambda: store.hold_fence(job.id, holder=holder, attempt=job.attempt),
    )


async def test_a_stale_attempt_moves_nothing(engine: AnyEngine, table: str, attempt: Running) -> None:
    insert(engine, table, "a", "b")
    documents = extractions(AtEngine(engine), table, by_attempt=True)
    token = running.set(attempt)
    try:
        assert documents.move("claim", "a") is not None
        assert await documents.arenew("claim", "a", fence=1) is not None
        assert engine.run(store.succeed([store.Success(attempt.job_id, 1, "1")], holder=attempt.holder))

        with pytest.raises(LeaseLost):
            documents.move("succeed", "a", fence=1)
        with pytest.raises(LeaseLost):
            await documents.arenew("claim", "a", fence=1)
        with pytest.raises(LeaseLost):
            documents.take("claim")
    finally:
        running.reset(token)

    assert sql(engine, f"SELECT id, status FROM {table} ORDER BY id") == [("a", "running"), ("b", "queued")]
    assert documents.move("succeed", "a", fence=1) is not None, "outside a job there is no attempt to hold"
