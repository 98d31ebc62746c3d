"""A worker is killed before and after it writes output: the next attempt begins a part that is whole."""

from __future__ import annotations

import asyncio

import pytest

from fencerow import Client
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.testing.clock import DatabaseClock
from tests.core.worker.stage import job_of, working
from tests.kit.forking import context
from tests.kit.jobs import AnyEngine, bury, read
from tests.kit.pace import LONG_LEASE_S, PATIENCE_S
from tests.output import member
from tests.output.member import SAID, tells


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_was_written_stays_and_the_next_part_is_whole(
    engine: AnyEngine, clock: DatabaseClock, when: str
) -> None:
    target = engine.conninfo if isinstance(engine, PostgresEngine) else str(engine.path)
    job = job_of("tells", crashes_max=10)
    engine.run(store.submit([job]))
    process = context.Process(target=member.work, args=(target, when))
    process.start()
    process.join(PATIENCE_S)
    process.kill()
    assert process.exitcode == -9
    clock.advance(2 * LONG_LEASE_S)
    dead = read(engine, job.id).holder
    assert dead is not None and dead in bury(engine)
    engine.run(store.reclaim([dead], limit=10, actor="reaper"))

    asyncio.run(worked_off(engine, job.id))

    found = [(chunk.attempt, chunk.data) for chunk in Client(engine).output(job.id)]
    assert found == [
        *((1, each) for each in (SAID if when == "after" else SAID[:1])),
        *((2, each) for each in SAID),
    ]


async def worked_off(engine: AnyEngine, job_id: str) -> None:
    async with working(engine, tells) as stage:
        assert (await stage.ended(job_id)).state == "succeeded"
