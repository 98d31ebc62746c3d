"""What happens to a worker while its claimer waits for an answer, and what it then does not claim."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import pytest

from fencerow.core.store import store
from fencerow.core.worker import dispatch
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.plain import Worker
from fencerow.db.run import Operation
from tests.core.worker.faulty import Faulty
from tests.core.worker.stage import Stage, handler, job_of, kinds, quick, submit, until, worker_of, working
from tests.core.worker.test_parts import claimed
from tests.kit.jobs import QUEUE, AnyEngine

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
        make_suspect(engine, job.id)

    async with overtaken.worker:
        await until(lambda: job.id in engine.run(store.outcomes([job.id])), what="the job runs all the same")

    assert overtaken.struck == ["lanes"]


class OutOfLease(Faulty):
    """During its first look at the lanes, the worker's lease runs out."""

    worker: Worker

    async def arun(self, operation: Operation[T]) -> T:
        answer = await super().arun(operation)
        if operation.name == "lanes" and self.struck == []:
            self.struck.append(operation.name)
            self.worker._parts.lease._deadline = 0.0
        return answer


async def test_a_worker_whose_lease_runs_out_in_mid_look_claims_nothing_before_it_is_renewed(
    engine: AnyEngine,
) -> None:
    late = OutOfLease(engine)
    late.worker = worker_of(late, brief)  # type: ignore[arg-type]  # it stands for the engine beneath
    job = job_of("brief")
    await engine.arun(store.submit([job]))

    async with late.worker:
        await until(lambda: job.id in engine.run(store.outcomes([job.id])), what="the job runs all the same")

    assert late.struck == ["lanes"]
    assert await kinds(engine, job.id) == [], "it was not claimed to be given back"


async def test_beside_a_suspect_that_runs_alone_nothing_is_claimed_to_be_given_back(
    engine: AnyEngine,
) -> None:
    stage = Stage(engine, worker_of(engine, brief))
    suspect, *_ = jobs = [job_of("brief") for _ in range(50)]
    await engine.arun(store.submit(jobs))
    make_suspect(engine, suspect.id)

    async with stage.worker:
        (pool,) = stage.worker._parts.roster.pools
        pool._buffer = len(jobs)  # as after a time of short jobs
        await stage.heard.wait("succeeded", len(jobs))

    assert await kinds(engine, suspect.id) == ["alone"]
    assert stage.heard.all("released") == []


async def test_once_a_suspect_need_not_be_alone_any_more_others_are_claimed_at_once(
    lite: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has waited in vain and runs beside the others, maybe for hours: no claimer sleeps until it polls again."""
    monkeypatch.setattr(dispatch, "ALONE_WAIT_S", 0.05)
    go = asyncio.Event()

    async def slow() -> None:
        await go.wait()

    await submit(lite, "slow")
    async with working(lite, slow, brief, config=quick(poll_max_s=300.0)) as stage:
        (pool,) = stage.worker._parts.roster.pools
        await until(lambda: pool.running == 1, what="a neighbour that does not end")
        make_suspect(lite, await submit(lite, "slow"))
        await submit(lite, "brief")
        pool.look.look_again()
        await stage.heard.wait("succeeded", job="brief")
        go.set()


async def test_after_a_lone_suspect_every_queue_is_claimed_from(lite: AnyEngine) -> None:
    """Also those that another claimer serves, which saw that nothing may be claimed."""
    started, go = asyncio.Event(), asyncio.Event()

    async def alone() -> None:
        started.set()
        await go.wait()

    make_suspect(lite, await submit(lite, "alone"))
    queues = {QUEUE: 1, "other": 1}
    async with working(lite, alone, brief, queues=queues, config=quick(poll_max_s=300.0)) as stage:
        await started.wait()
        other = next(pool for pool in stage.worker._parts.roster.pools if pool.queues == ("other",))
        await submit(lite, "brief", queue="other")
        other.look.look_again()
        await until(lambda: not other.look.woken.is_set(), what="its claimer has looked")
        go.set()
        await stage.heard.wait("succeeded", job="brief")


async def test_what_was_given_back_without_a_start_makes_no_pace(engine: AnyEngine) -> None:
    """A pace is what the next claim is measured by: it would ask for more of what it only gives back."""
    stage = Stage(engine, worker_of(engine, brief))
    async with stage.worker:
        parts = stage.worker._parts
        (pool,) = parts.roster.pools
        parts.dispatch.withheld_for = Attempt(claimed(), "holder", handler(brief))
        holder = stage.worker.holder
        assert holder is not None
        parts.life.claimed(pool, [Attempt(claimed(), holder, handler(brief)) for _ in range(100)])
        await until(lambda: not parts.roster.held, what="all are given back")
        paces = pool.pace, pool._window_count
        parts.dispatch.withheld_for = None

    assert paces == (0.0, 0)


def make_suspect(engine: AnyEngine, job_id: str) -> None:
    table = "fencerow.jobs" if engine.dialect == "postgres" else "fencerow_jobs"
    with engine.session() as session:
        session.connection.execute(f"UPDATE {table} SET suspect = true WHERE id = '{job_id}'")


async def test_for_its_slots_a_chore_takes_nothing_while_its_claimer_may_not_or_goes_by_another_clock(
    lite: AnyEngine,
) -> None:
    async with working(lite, brief) as stage:
        parts = stage.worker._parts
        (claimer,) = parts.claims.claimers
        await until(lambda: claimer.taker.room() > 0, what="the claimer waits for no answer")

        parts.life.paused = True
        assert claimer.taker.room() == 0

        parts.life.paused, parts.clock.is_behind = False, True
        assert claimer.taker.room() == 0


async def test_while_a_chore_takes_for_the_slots_they_give_way_and_no_other_takes(lite: AnyEngine) -> None:
    async with working(lite, brief) as stage:
        claims, (pool,) = stage.worker._parts.claims, stage.worker._parts.roster.pools
        (claimer,) = claims.claimers
        await until(lambda: claimer.taker.room() > 0, what="the claimer waits for no answer")
        taking = await claims.taking()
        assert taking is not None
        assert (pool.is_taken_for, claims.are_idle(), await claims.taking()) == (True, False, None)

        assert await taking.run(store.any_due(["mail"], ["send"]), lambda _: []) is False
        assert not pool.is_taken_for
