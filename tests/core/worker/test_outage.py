"""The database is away for three leases: no job is taken back, no crash is counted, the results land."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest

from fencerow.core.db.postgres import PostgresEngine
from fencerow.core.store import store
from fencerow.core.worker.context import Job
from fencerow.testing.postgres import PostgresServer
from tests.core.worker.stage import WAIT_S, Stage, job_of, quick, until, worker_of
from tests.kit.pace import slower
from tests.kit.servers import CopiedServer

LEASE_S = slower(1.5)


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that this test may crash."""
    with CopiedServer(fast=True) as running:
        yield running


@pytest.mark.timed
async def test_four_workers_sit_out_an_outage_of_three_leases(own_server: PostgresServer) -> None:
    url = own_server.create_role_and_schema()
    started: list[str] = []
    ran: list[tuple[str, int]] = []
    back = asyncio.Event()

    async def long(job: Job) -> int:
        started.append(job.id)
        await back.wait()
        ran.append((job.id, job.attempt))
        return job.attempt

    async def brief() -> int:
        return 1

    first = PostgresEngine(url, store.postgres_queries())
    await asyncio.to_thread(store.migrate, first)
    jobs = [job_of("long") for _ in range(16)]
    await first.arun(store.submit(jobs))
    config = quick(lease_s=LEASE_S, renew_s=0.2, sweep_s=0.2, connect_timeout_s=2.0)
    async with AsyncExitStack() as stack:
        stages = []
        for _ in range(4):
            engine = PostgresEngine(url, store.postgres_queries(), connect_timeout_s=2.0)
            stack.push_async_callback(engine.aclose)
            worker = worker_of(engine, long, brief, queues={"mail": 4, "other": 1}, config=config)
            stages.append(Stage(engine, worker))
            await stack.enter_async_context(worker)
        await until(lambda: len(started) == 16)
        await until(lambda: all(stage.worker._parts.lease.may_judge() for stage in stages))
        holders = [stage.worker.holder for stage in stages]

        await asyncio.to_thread(own_server.stop, "immediate")
        await asyncio.sleep(LEASE_S * 3)  # the outage itself; nothing is waited for by luck
        assert not any(stage.worker._parts.lease.holds() for stage in stages)
        await asyncio.to_thread(own_server.start)
        accepting = time.monotonic()
        await until(lambda: all(stage.worker._parts.lease.holds() for stage in stages), what="all renewed")
        renewed_s = time.monotonic() - accepting
        probe = job_of("brief", queue="other")
        await first.arun(store.submit([probe]))
        await until(lambda: probe.id in first.run(store.outcomes([probe.id])), what="a new job ran")
        back_s = time.monotonic() - accepting
        # Long enough for everybody to judge everybody again.
        await until(lambda: all(stage.worker._parts.lease.may_judge() for stage in stages))
        sweeps = [len(stage.heard.all("renewed")) for stage in stages]
        await until(
            lambda: all(len(s.heard.all("renewed")) >= n + 3 for s, n in zip(stages, sweeps, strict=True))
        )
        back.set()
        found = [await _ended(first, job.id) for job in jobs]

        assert [stage.worker.holder for stage in stages] == holders
        assert sorted(ran) == sorted((job.id, 1) for job in jobs)
        assert {(job.state, job.attempt, job.crashes, job.suspect) for job in found} == {
            ("succeeded", 1, 0, False)
        }
        assert sum(stage.counters.get("jobs_reclaimed") for stage in stages) == 0
        assert renewed_s < 20 and back_s < 25, (renewed_s, back_s)
    await first.aclose()


async def _ended(engine: PostgresEngine, job_id: str):  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + WAIT_S
    while True:
        found = (await engine.arun(store.read([job_id])))[job_id]
        if found.is_final:
            return found
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
