"""A call of a batch handler that waits for more jobs: real workers, and what ends the wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fencerow import App
from fencerow.batches import BatchItem
from fencerow.core.model.handler import Handler
from fencerow.core.model.job import JobRecord
from fencerow.core.store import store
from fencerow.core.worker.roster import Roster
from fencerow.errors import DeclarationError
from fencerow.testing import adrain
from tests.batches.test_batches import ONE_SLOT, Gate, Quiet, batch, bury, ends, states
from tests.core.worker.stage import Stage, kinds, quick, read, until, working
from tests.kit.jobs import AnyEngine

FOR_EVER_S = 60.0  # only who fails waits so long


def waiting(function: Callable[..., Any], wait_s: float, batch_max: int = 100) -> Handler:
    return replace(batch(function, batch_max), batch_wait_s=wait_s)


def noting(gate: Gate) -> Callable[[Quiet], Any]:
    async def send(items: Quiet) -> None:
        gate.note(items)

    return send


async def gathered(stage: Stage, count: int) -> None:
    """Wait until so many jobs wait in the worker for more."""
    (pool,) = stage.worker._parts.roster.pools
    await until(lambda: pool._gatherings.count == count, what=f"{count} jobs that wait for more")


async def gathering(stage: Stage, *values: int, **fields: Any) -> list[str]:
    """Submit jobs, of which each waits in the worker before the next is submitted."""
    ids = []
    for value in values:
        ids.append(await stage.submit("send", {"value": value}, **fields))
        await gathered(stage, len(ids))
    return ids


async def test_jobs_that_come_one_by_one_share_a_call(engine: AnyEngine) -> None:
    gate = Gate()
    async with working(engine, waiting(noting(gate), FOR_EVER_S, batch_max=3), queues=ONE_SLOT) as stage:
        ids = await gathering(stage, 1, 2)
        claimed = [await read(engine, each) for each in ids]
        jobs = await ends(stage, [*ids, await stage.submit("send", {"value": 3})])  # the call is full

    assert (states(claimed), gate.calls) == (["running", "running"], [[1, 2, 3]])
    assert [(job.state, job.attempt, job.failures) for job in jobs] == [("succeeded", 1, 0)] * 3


async def test_a_call_that_is_not_full_starts_when_its_wait_is_over(engine: AnyEngine) -> None:
    gate = Gate()
    async with working(engine, waiting(noting(gate), 0.3), queues=ONE_SLOT) as stage:
        (job,) = await ends(stage, await gathering(stage, 1))

    assert (gate.calls, job.state, job.attempt) == ([[1]], "succeeded", 1)


async def test_a_shutdown_does_not_wait_and_the_jobs_go_back_unspent(engine: AnyEngine) -> None:
    gate = Gate()
    async with working(engine, waiting(noting(gate), FOR_EVER_S), queues=ONE_SLOT) as stage:
        ids = await gathering(stage, 1, 2)
        async with asyncio.timeout(FOR_EVER_S / 2):
            await stage.worker.stop()
    jobs = [await read(engine, each) for each in ids]

    assert (gate.calls, states(jobs)) == ([], ["queued", "queued"])
    assert [_spent(job) for job in jobs] == [(0, 0, 0)] * 2
    assert "released" in await kinds(engine, ids[0])


async def test_a_pause_does_not_wait(engine: AnyEngine) -> None:
    gate = Gate()
    async with working(engine, waiting(noting(gate), FOR_EVER_S), queues=ONE_SLOT) as stage:
        (job_id,) = await gathering(stage, 1)
        await stage.worker.change(paused=True)
        await gathered(stage, 0)
        await stage.heard.wait("released", job_id=job_id)

    assert _spent(await read(engine, job_id)) == (0, 0, 0)


async def test_the_death_of_the_worker_while_jobs_wait_spends_nothing(engine: AnyEngine) -> None:
    gate = Gate()
    async with working(engine, waiting(noting(gate), FOR_EVER_S), queues=ONE_SLOT) as stage:
        ids = await gathering(stage, 1, 2)
        holder = stage.worker.holder
        assert holder is not None
        await bury(engine, holder)
        jobs = [await read(engine, each) for each in ids]
        await until(lambda: not stage.worker._parts.roster.held or gate.calls != [])

    assert [_spent(job) for job in jobs] == [(0, 0, 0)] * 2


async def test_a_job_that_is_cancelled_while_it_waits_ends_at_once_and_the_others_wait_on(
    engine: AnyEngine,
) -> None:
    gate = Gate()
    async with working(engine, waiting(noting(gate), FOR_EVER_S), queues=ONE_SLOT) as stage:
        goes, stays = await gathering(stage, 1, 2)
        await engine.arun(store.cancel(goes, actor="ada"))
        async with asyncio.timeout(FOR_EVER_S / 2):
            job = await stage.ended(goes)
        await gathered(stage, 1)
        left = await read(engine, stays)

    assert (job.state, left.state, gate.calls) == ("cancelled", "running", [])


async def test_the_wait_is_no_part_of_the_time_limit(engine: AnyEngine) -> None:
    gate = Gate()
    config = quick(prefetch_s=0.0, child_start_s=0.5)
    handler = waiting(noting(gate), FOR_EVER_S, batch_max=2)
    async with working(engine, handler, queues=ONE_SLOT, config=config) as stage:
        (first,) = await gathering(stage, 1, timeout_s=0.05)
        held = stage.worker._parts.roster
        waits = await read(engine, first)
        _age(held, first, FOR_EVER_S - 1.0)  # long past its limit, had it started
        said = [held.overdue(), held.overdue()]
        second = await stage.submit("send", {"value": 2}, timeout_s=0.05)
        jobs = await ends(stage, [first, second])

    assert (gate.calls, said) == ([[1, 2]], [(), ()])
    assert states(jobs) == ["succeeded", "succeeded"]
    assert waits.deadline_at_us is not None
    assert waits.deadline_at_us - (waits.claimed_at_us or 0) > FOR_EVER_S * 1_000_000  # what people are shown


async def test_what_runs_until_nothing_is_due_waits_for_nobody(app: App) -> None:
    calls: list[list[int]] = []

    @app.batch_job(batch_wait_s=FOR_EVER_S)
    async def send(items: Sequence[BatchItem[int, None]]) -> None:
        calls.append([item.value for item in items])

    await send.asubmit(1)
    async with asyncio.timeout(FOR_EVER_S / 2):
        await adrain(app)

    assert calls == [[1]]


def test_a_wait_that_cannot_be_is_refused_where_it_is_declared(lite_app: App) -> None:
    for wait_s in (-1, 60.1, float("nan"), True, "3", timedelta(minutes=2)):
        with pytest.raises(DeclarationError, match="batch_wait_s"):
            lite_app.batch_job(batch_wait_s=wait_s)  # type: ignore[arg-type]

    @lite_app.batch_job(batch_wait_s=timedelta(seconds=2))
    async def send(items: Sequence[BatchItem[int, None]]) -> None: ...

    assert lite_app.handlers["send"].batch_wait_s == 2.0


def _spent(job: JobRecord) -> tuple[int, int, int]:
    return job.failures, job.crashes, job.snoozes


def _age(roster: Roster, job_id: str, seconds: float) -> None:
    """As if the job had been claimed so long ago."""
    (attempt,) = [each for each in roster.held.values() if each.claimed.id == job_id]
    attempt.taken -= seconds
    roster._lease_s = 0.0  # what is late is told at once
