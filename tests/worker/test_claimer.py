"""A worker that is found to be declared dead while its claimer waits for an answer."""

from __future__ import annotations

from typing import TypeVar

import pytest

from fencerow.core.db.run import Operation
from fencerow.core.store import store
from fencerow.core.worker.worker import Worker
from tests.jobs import AnyEngine
from tests.worker.faulty import Faulty
from tests.worker.stage import job_of, until, worker_of

T = TypeVar("T")


async def brief() -> int:
    return 1


class Overtaken(Faulty):
    """During its first look at the lanes, the worker learns that others have declared it dead."""

    worker: Worker

    async def arun(self, operation: Operation[T]) -> T:
        answer = await super().arun(operation)
        if operation.name == "lanes" and self.struck == []:
            self.struck.append(operation.name)
            self.worker._parts.lease.end()
        return answer


@pytest.mark.parametrize("suspect", [False, True])
async def test_a_worker_declared_dead_in_mid_look_registers_anew_and_goes_on(
    engine: AnyEngine, suspect: bool
) -> None:
    overtaken = Overtaken(engine)
    overtaken.worker = worker_of(overtaken, brief)  # type: ignore[arg-type]  # it stands for the engine beneath
    job = job_of("brief")
    await engine.arun(store.submit([job]))
    if suspect:
        table = "fencerow.jobs" if engine.dialect == "postgres" else "fencerow_jobs"
        with engine.session() as session:
            session.connection.execute(f"UPDATE {table} SET suspect = true")

    async with overtaken.worker:
        await until(lambda: job.id in engine.run(store.outcomes([job.id])), what="the job runs all the same")

    assert overtaken.struck == ["lanes"]
