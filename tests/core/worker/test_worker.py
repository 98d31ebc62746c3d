"""The order of a worker's life: fair shares, wake-ups, shutdown."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import psycopg
import pytest

from fencerow.core.model.wakeup import Queued, encode
from fencerow.core.store import store
from fencerow.core.worker import idling
from fencerow.core.worker.context import Job
from fencerow.db.postgres import PostgresEngine
from fencerow.errors import ConfigError
from fencerow.operators import looking
from fencerow.operators.queues import pause_queue
from tests.core.worker.stage import WAIT_S, Stage, job_of, kinds, quick, read, until, worker_of, working
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S


async def one() -> int:
    return 1


async def test_until_idle_runs_what_is_due_and_ends(engine: AnyEngine) -> None:
    jobs = [job_of("one") for _ in range(300)]
    later = job_of("one", delay_s=3600)
    await engine.arun(store.submit([*jobs, later]))

    await asyncio.wait_for(worker_of(engine, one).run(until_idle=True), PATIENCE_S)

    ended = await engine.arun(store.outcomes([job.id for job in jobs]))
    assert len(ended) == 300
    assert (await read(engine, later.id)).state == "queued"


async def test_until_idle_waits_for_what_is_only_locked(
    pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody marks the job as awaited, or is about to cancel it: a claim skips the row, and it is still due."""
    job = job_of("one")
    await pg.arun(store.submit([job, job_of("unknown"), job_of("one", queue="elsewhere")]))
    worker = worker_of(pg, one)
    looks: list[bool] = []
    any_due = idling._any_due

    async def spied(*where: Any) -> bool:
        looks.append(await any_due(*where))
        return looks[-1]

    monkeypatch.setattr(idling, "_any_due", spied)
    with psycopg.connect(pg.conninfo) as stranger:
        stranger.execute("SELECT 1 FROM fencerow.jobs WHERE id = %s FOR SHARE", [job.id])
        run = asyncio.create_task(worker.run(until_idle=True))
        await until(lambda: len(looks) >= 3 or run.done(), what="several looks in vain")
        stranger.rollback()
    await asyncio.wait_for(run, WAIT_S)

    assert (await read(pg, job.id)).state == "succeeded"
    assert looks[0] is True and looks[-1] is False


async def test_until_idle_leaves_what_an_order_has_paused(engine: AnyEngine) -> None:
    await engine.arun(store.submit([job := job_of("one")]))
    await engine.arun(pause_queue("mail", actor=None))

    await asyncio.wait_for(worker_of(engine, one).run(until_idle=True), WAIT_S)

    assert (await read(engine, job.id)).state == "queued"


async def test_long_jobs_are_not_hoarded_and_two_workers_share(engine: AnyEngine) -> None:
    gate = threading.Event()
    started: list[str] = []

    async def long(job: Job) -> None:
        started.append(job.id)
        await until(gate.is_set)

    await engine.arun(store.submit([job_of("long") for _ in range(4)]))
    async with working(engine, long, queues={"mail": 2}), working(engine, long, queues={"mail": 2}):
        await until(lambda: len(started) == 4, what="all four start, two in each worker")
        gate.set()
        await until(lambda: not engine.run(looking.counts()))


async def test_a_more_urgent_job_overtakes_a_backlog_without_a_sweep(engine: AnyEngine) -> None:
    order: list[int] = []

    async def slow(job: Job) -> None:
        order.append(job.priority)
        await asyncio.sleep(0.002)

    await engine.arun(store.submit([job_of("slow") for _ in range(1500)]))
    async with working(engine, slow, queues={"mail": 2}, config=quick(poll_max_s=60.0)) as stage:
        await until(lambda: len(order) >= 300)
        submitted_at = time.monotonic()
        before = len(order)
        urgent = job_of("slow", priority=10)
        await engine.arun(store.submit([urgent]))
        now_us = await engine.arun(store.clock())
        engine.wake([encode(Queued("mail", 10, now_us))])
        await stage.ended(urgent.id)
        waited_s = time.monotonic() - submitted_at
        assert 10 in order[before:]
        assert len(order) < 1500, "it waited for the whole backlog"
        assert waited_s < 30.0  # half of the pause between two sweeps


async def test_a_delayed_job_starts_on_time(engine: AnyEngine) -> None:
    config = quick(poll_max_s=30.0)
    async with working(engine, one, config=config) as stage:
        job = job_of("one", delay_s=0.4)
        await engine.arun(store.submit([job]))
        due_us = (await read(engine, job.id)).run_at_us
        engine.wake([encode(Queued("mail", 0, due_us))])
        ended = await stage.ended(job.id)

    late_s = ((ended.claimed_at_us or 0) - due_us) / 1e6
    assert 0 <= late_s < 15.0  # half of the pause between two looks


async def test_variables_of_one_job_do_not_reach_the_next_and_middleware_reaches_plain_handlers(
    engine: AnyEngine,
) -> None:
    from contextvars import ContextVar

    tenant: ContextVar[str] = ContextVar("tenant", default="nobody")
    leak: ContextVar[str] = ContextVar("leak", default="clean")

    async def wrap(job: Job, call):  # type: ignore[no-untyped-def]
        tenant.set(f"tenant-{job.metadata.get('t')}")
        return await call()

    async def says() -> str:
        found = f"{tenant.get()} {leak.get()}"
        leak.set("dirty")
        return found

    def says_plain() -> str:
        found = f"{tenant.get()} {leak.get()}"
        leak.set("dirty")
        return found

    async with working(engine, says, says_plain, middleware=[wrap], queues={"mail": 1}) as stage:
        results = [
            (await stage.run(name, metadata=f'{{"t": {number}}}')).result
            for number, name in enumerate(("says", "says", "says_plain", "says_plain", "says"))
        ]

    assert results == [f"tenant-{number} clean" for number in range(5)]


class Held:
    """A handler that runs until it is let go."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.go = threading.Event()


@pytest.fixture
def held() -> Held:
    return Held()


async def test_a_shutdown_lets_the_running_finish_and_releases_the_waiting(
    engine: AnyEngine, held: Held
) -> None:
    async def running(job: Job) -> str:
        held.started.append(job.id)
        await until(held.go.is_set)
        return "finished"

    worker = worker_of(engine, running, one, queues={"mail": 1}, config=quick(poll_max_s=0.02))
    stage = Stage(engine, worker)
    task = asyncio.create_task(worker.run())
    await stage.heard.wait("worker_started")
    first = await stage.submit("running")
    await until(lambda: bool(held.started))
    second = job_of("one")
    await engine.arun(store.submit([second]))
    place = (await read(engine, second.id)).run_at_us
    # As a prefetched job: it was claimed and waits for the slot.
    (claimed,) = await engine.arun(
        store.claim("mail", [store.Mark(0)], holder=worker.holder or "", names=["one"], limit=1, margin_s=60)
    )
    from fencerow.core.worker.attempt import Attempt

    attempt = Attempt(claimed, worker.holder or "", worker._handlers["one"])
    worker._parts.life.claimed(worker._parts.roster.pools[0], [attempt])
    worker.request_stop()
    await stage.heard.wait("released", job_id=second.id)
    assert not task.done()
    held.go.set()
    await asyncio.wait_for(task, PATIENCE_S)

    assert (await read(engine, first)).result == "finished"
    waiting = await read(engine, second.id)
    assert (waiting.state, waiting.run_at_us, waiting.failures) == ("queued", place, 0)
    assert not waiting.suspect


async def test_a_second_request_is_quicker_and_hands_back_what_does_not_listen(
    engine: AnyEngine, held: Held
) -> None:
    async def polite() -> None:
        await asyncio.sleep(60)

    async def stubborn() -> None:
        while not held.go.is_set():
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                pass

    def hung() -> None:
        held.go.wait(PATIENCE_S)

    worker = worker_of(engine, polite, stubborn, hung, config=quick(shutdown_s=120.0))
    stage = Stage(engine, worker)
    task = asyncio.create_task(worker.run())
    await stage.heard.wait("worker_started")
    ids = [await stage.submit(name) for name in ("polite", "stubborn", "hung")]
    await until(lambda: worker.running == 3 and worker._parts.roster.pools[0].running == 3)
    worker.request_stop()
    await asyncio.sleep(0)
    asked = time.monotonic()
    worker.request_stop()
    await asyncio.wait_for(task, PATIENCE_S)
    took_s = time.monotonic() - asked
    jobs = [await read(engine, each) for each in ids]
    held.go.set()

    assert took_s < 60  # half of what it would give those who listen
    assert [(job.state, job.failures, job.crashes, job.suspect) for job in jobs] == [
        ("queued", 0, 0, False)
    ] * 3
    assert (await kinds(engine, ids[0])).count("released") == 1


async def test_a_claim_under_way_at_the_shutdown_is_handed_back(engine: AnyEngine) -> None:
    from tests.core.worker.faulty import Faulty

    held, go = asyncio.Event(), asyncio.Event()

    class Slow(Faulty):
        async def arun(self, operation):  # type: ignore[no-untyped-def]
            result = await self._engine.arun(operation)
            if operation.name == "claim" and result:
                held.set()
                await go.wait()
            return result

    worker = worker_of(Slow(engine), one)  # type: ignore[arg-type]
    stage = Stage(engine, worker)
    task = asyncio.create_task(worker.run())
    await stage.heard.wait("worker_started")
    job_id = await stage.submit("one")
    await held.wait()
    worker.request_stop()
    await asyncio.sleep(0.1)
    go.set()
    await asyncio.wait_for(task, PATIENCE_S)
    job = await read(engine, job_id)

    assert (job.state, job.attempt, job.suspect) == ("queued", 1, False)


async def test_a_stop_before_the_start_and_a_queue_without_slots(lite: AnyEngine) -> None:
    worker = worker_of(lite, one)
    worker.request_stop()
    await asyncio.wait_for(worker.run(), PATIENCE_S)
    with pytest.raises(ConfigError, match="slots"):
        await worker_of(lite, one, queues={"mail": 0}).start()
