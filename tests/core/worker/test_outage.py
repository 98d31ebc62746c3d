"""The database is away for three leases: no job is taken back, no crash is counted, the results land."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack

import pytest

from fencerow.core.background.reaper import Warrant
from fencerow.core.store import store
from fencerow.core.worker.context import Job
from fencerow.core.worker.lease import WorkerLease
from fencerow.db.postgres import PostgresEngine
from fencerow.db.steady import steady
from fencerow.testing.clock import PostgresClock
from fencerow.testing.postgres import PostgresServer
from tests.core.worker.stage import WAIT_S, Stage, job_of, quick, until, worker_of
from tests.kit.pace import LONG_LEASE_S
from tests.kit.servers import ROLE, TEMPLATE, MigratedServer

RENEW_S = LONG_LEASE_S / 3
ELSEWHERE = 5433  # no worker looks for its server there


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that this test may crash."""
    with MigratedServer(fast=True) as running:
        yield running


class Hours:
    """Time passes here and in the database, and nobody waits for it."""

    def __init__(self, patch: pytest.MonkeyPatch, server: PostgresServer) -> None:
        self._passed_s, self._server = 0.0, server
        ours = [module for name, module in list(sys.modules.items()) if name.startswith("fencerow.")]
        for module in ours:
            if getattr(module, "steady", None) is steady:
                patch.setattr(module, "steady", lambda: steady() + self._passed_s)

    def pass_here(self, seconds: float) -> None:
        self._passed_s += seconds

    def pass_there(self, seconds: float) -> None:
        PostgresClock(self._server.conninfo(TEMPLATE)).advance(seconds)

    async def let_all_judge(self, stages: Sequence[Stage]) -> None:
        """A whole lease of renewals, none of which comes late."""
        while not all(stage.worker._parts.lease.may_judge() for stage in stages):
            renewed = [len(stage.heard.all("renewed")) for stage in stages]
            await asyncio.to_thread(self.pass_there, RENEW_S)
            self.pass_here(RENEW_S)
            for stage, count in zip(stages, renewed, strict=True):
                stage.worker._parts.lease.renew_now()
                await stage.heard.wait("renewed", count + 1)


async def test_four_workers_sit_out_an_outage_of_three_leases(
    own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = Hours(monkeypatch, own_server)
    asked, granted = _looks(monkeypatch)
    url = own_server.conninfo(TEMPLATE, ROLE)
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
    jobs = [job_of("long") for _ in range(16)]
    await first.arun(store.submit(jobs))
    config = quick(renew_s=RENEW_S, connect_timeout_s=2.0, poll_min_s=1.0, poll_max_s=1.0)
    async with AsyncExitStack() as stack:
        stages = []
        for _ in range(4):
            engine = PostgresEngine(url, store.postgres_queries(), connect_timeout_s=2.0)
            stack.push_async_callback(engine.aclose)
            worker = worker_of(engine, long, brief, queues={"mail": 4, "other": 1}, config=config)
            stages.append(Stage(engine, worker))
            await stack.enter_async_context(worker)
        await until(lambda: len(started) == 16)
        await hours.let_all_judge(stages)
        holders = [stage.worker.holder for stage in stages]

        await asyncio.to_thread(own_server.stop, "immediate")
        hours.pass_here(LONG_LEASE_S * 3)
        assert not any(stage.worker._parts.lease.holds() for stage in stages)
        await asyncio.to_thread(_let_it_sleep, own_server, hours)
        await asyncio.to_thread(own_server.start)
        # The first to be back looks who is dead before any other has renewed: the lease of each of them is over.
        await until(lambda: _renewed(stages[0]), what="the first renewed")
        asked.clear()
        await until(lambda: asked[stages[0].worker._parts.lease] >= 3, what="it has looked twice")
        await until(lambda: all(_renewed(stage) for stage in stages), what="all renewed")
        probe = job_of("brief", queue="other")
        await first.arun(store.submit([probe]))
        await until(lambda: probe.id in first.run(store.outcomes([probe.id])), what="a new job ran")
        # Long enough for everybody to judge everybody again, and then each does it twice.
        await hours.let_all_judge(stages)
        granted.clear()
        leases = [stage.worker._parts.lease for stage in stages]
        await until(lambda: all(granted[lease] >= 3 for lease in leases), what="all have judged")
        back.set()
        found = [await _ended(first, job.id) for job in jobs]

        assert [stage.worker.holder for stage in stages] == holders
        assert sorted(ran) == sorted((job.id, 1) for job in jobs)
        assert {(job.state, job.attempt, job.crashes, job.suspect) for job in found} == {
            ("succeeded", 1, 0, False)
        }
        assert sum(stage.counters.get("jobs_reclaimed") for stage in stages) == 0
    await first.aclose()


def _renewed(stage: Stage) -> bool:
    """Whether it holds its lease again; else it shall renew now, and not after a third of a lease."""
    if not stage.worker._parts.lease.holds():
        stage.worker._parts.lease.renew_now()
    return stage.worker._parts.lease.holds()


def _looks(patch: pytest.MonkeyPatch) -> tuple[Counter[WorkerLease], Counter[WorkerLease]]:
    """How often each lease was asked for the right to declare others dead, and how often it had it.

    Before one is asked a third time, two looks are over.
    """
    asked, granted = Counter[WorkerLease](), Counter[WorkerLease]()
    warrant = WorkerLease.warrant

    def counted(lease: WorkerLease) -> Warrant | None:
        found = warrant(lease)
        asked[lease] += 1
        granted[lease] += found is not None
        return found

    patch.setattr(WorkerLease, "warrant", counted)
    return asked, granted


def _let_it_sleep(server: PostgresServer, hours: Hours) -> None:
    """When it comes back for the workers, the leases of all are over there, too."""
    known, server.port = server.port, ELSEWHERE
    server.start()
    hours.pass_there(LONG_LEASE_S * 3)
    server.stop()
    server.port = known


async def _ended(engine: PostgresEngine, job_id: str):  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + WAIT_S
    while True:
        found = (await engine.arun(store.read([job_id])))[job_id]
        if found.is_final:
            return found
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
