"""Workers are killed before and after each memory is written: no remembered step runs again, and the job ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fencerow.core.model.job import JobRecord
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.steps import memory
from fencerow.testing.clock import DatabaseClock
from tests.core.worker.stage import job_of, working
from tests.kit.forking import context
from tests.kit.jobs import AnyEngine, bury, read
from tests.kit.pace import LONG_LEASE_S, PATIENCE_S
from tests.steps import member
from tests.steps.member import STEPS, order


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_killed_worker_loses_no_remembered_step(
    engine: AnyEngine, clock: DatabaseClock, tmp_path: Path, when: str
) -> None:
    """The worker that begins the job dies at its first step, the one after it at the second, and so on."""
    target = engine.conninfo if isinstance(engine, PostgresEngine) else str(engine.path)
    job = job_of("order", {"folder": str(tmp_path)}, crashes_max=10)
    engine.run(store.submit([job]))
    for step in STEPS:
        process = context.Process(target=member.work, args=(target, str(tmp_path), when, step))
        process.start()
        process.join(PATIENCE_S)
        process.kill()
        assert process.exitcode == -9, f"it was to die at {step}"
        clock.advance(2 * LONG_LEASE_S)
        dead = read(engine, job.id).holder
        assert dead is not None and dead in bury(engine)
        engine.run(store.reclaim([dead], limit=10, actor="reaper"))

    done = asyncio.run(worked_off(engine, job.id))

    assert (done.state, done.result) == ("succeeded", list(STEPS))
    calls = {name: len((tmp_path / name).read_text()) for name in STEPS}
    # What was killed between the end of a step and its memory runs once more; what is remembered never does.
    assert calls == dict.fromkeys(STEPS, 2 if when == "before" else 1)
    assert [step.name for step in engine.run(memory.steps_of(job.id))] == list(STEPS)


async def worked_off(engine: AnyEngine, job_id: str) -> JobRecord:
    async with working(engine, order) as stage:
        return await stage.ended(job_id)
