"""Mutexes inside jobs: they belong to the attempt, and a busy one may give the slot back."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator
from time import monotonic
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import sessionmaker

from fencerow import App, Backoff, Config, Handle, Job, JobFailed, LeaseLost, State
from fencerow.core.store.running import running
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import Busy, MutexBusy, MutexLost
from fencerow.guards.mutex import Mutex, mutexes
from fencerow.operators import looking
from fencerow.testing.clock import DatabaseClock, clock_of
from tests.guards.mutex import shop
from tests.guards.mutex.test_mutex import holding
from tests.kit.leftovers import no_threads_left
from tests.kit.pace import LONG_LEASE_S, PATIENCE_S
from tests.kit.plainly import plainly

QUICK: dict[str, Any] = {
    "poll_min_s": 0.01,
    "poll_max_s": 0.05,
    "sweep_s": 0.1,
    "lease_s": LONG_LEASE_S,
    "renew_s": 0.2,
}


@pytest.fixture
async def app(url: str) -> AsyncIterator[App]:
    with no_threads_left():
        async with App(url, config=Config(**QUICK)) as made:
            await asyncio.to_thread(made.check_or_create)
            yield made


@pytest.fixture
def time(app: App) -> DatabaseClock:
    return clock_of(app.engine)


async def work(app: App) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await app.worker().run(until_idle=True)


def look(app: App, key: str = "k") -> mutexes.MutexRecord:
    found = app.engine.run(mutexes.look(key))
    assert found is not None
    return found


async def test_the_row_tells_the_job(app: App) -> None:
    seen: list[mutexes.MutexRecord] = []

    @app.job
    def plain(job: Job) -> str:
        with Mutex(app, "k", purpose="deal"):
            seen.append(look(app))
        return job.id

    @app.job
    async def waits(job: Job) -> str:
        async with Mutex(app, "k"):
            seen.append(look(app))
        return job.id

    handles = [await plain.asubmit(), await waits.asubmit()]
    await work(app)

    assert sorted(str(each.job_id) for each in seen) == sorted(each.id for each in handles)
    assert {each.job_name for each in seen} == {(await handle.arefresh()).name for handle in handles}
    assert {each.attempt for each in seen} == {1}
    assert not look(app).is_held


def put_back(handle: Handle[Any], app: App) -> float:
    """For how many seconds the job has put itself back, from its timeline."""
    snoozed = [each for each in plainly(app.client.timeline, handle.id) if each.kind == "snoozed"]
    return (plainly(handle.refresh).run_at_us - snoozed[-1].at_us) / 1e6


async def test_a_busy_one_gives_the_slot_back_with_growing_delays(app: App, time: DatabaseClock) -> None:
    @app.job(attempts_max=1)
    def deal() -> int:
        with Mutex(app, "k", busy="snooze", wait_s=0) as held:
            return held.token

    mine = holding_of(app, stale_s=3600)
    handle = await deal.asubmit()
    delays: list[float] = []
    for _ in range(5):
        await work(app)
        delays.append(put_back(handle, app))
        job = await handle.arefresh()
        assert (job.state, job.failures) == (State.QUEUED, 0)
        time.advance(delays[-1] + 0.001)
    assert [round(each, 1) for each in delays] == [2, 4, 8, 16, 30]

    await mine.arelease()
    await work(app)

    assert await handle.aresult(timeout_s=60) == 2
    assert (await handle.arefresh()).failures == 0
    assert deferrals(app) == []


async def test_after_so_many_the_attempt_fails_once_and_counts_anew(app: App, time: DatabaseClock) -> None:
    reasons: list[str] = []

    @app.job(attempts_max=2, backoff=Backoff(base_s=60, jitter=0))
    def deal(job: Job) -> None:
        if not reasons:
            reasons.append("its own")
            job.snooze(1.0, "something else")
        with Mutex(app, "k", busy="snooze", wait_s=0, deferrals_max=2):
            pass

    mine = holding_of(app, stale_s=3600)
    handle = await deal.asubmit()
    for _ in range(8):
        await work(app)
        job = await handle.arefresh()
        if job.state is State.FAILED:
            break
        time.advance(max(0.0, (job.run_at_us - look(app).now_us) / 1e6) + 0.001)
    # Its own snooze; two for the mutex; a failure; two for the mutex again; the last failure.
    kinds = [each.kind for each in app.engine.run(looking.events(handle.id))]
    assert kinds == ["snoozed", "snoozed", "snoozed", "retried", "snoozed", "snoozed", "failed"]
    with pytest.raises(JobFailed) as caught:
        await handle.aresult(timeout_s=60)
    assert caught.value.error.type.endswith("MutexBusy")
    assert await mine.arelease()
    assert deferrals(app) == []


def holding_of(app: App, **options: Any) -> Mutex:
    return holding(app, **options)


def deferrals(app: App) -> list[Any]:
    table = "fencerow.mutex_deferrals" if app.engine.dialect == "postgres" else "fencerow_mutex_deferrals"
    with app.engine.session() as session:
        return list(session.connection.execute(f"SELECT * FROM {table}").fetchall())


async def test_a_stale_attempt_takes_nothing(app: App) -> None:
    told: list[BaseException] = []

    @app.job
    async def slow() -> None:
        here = running.get()
        assert here is not None
        sql = "UPDATE {} SET attempt = attempt + 1".format(
            "fencerow.jobs" if app.engine.dialect == "postgres" else "fencerow_jobs"
        )

        def newer() -> None:
            with app.engine.session() as session:
                session.connection.execute(sql)

        await asyncio.to_thread(newer)
        try:
            await Mutex(app, "k").aacquire()
        except LeaseLost as error:
            told.append(error)
        raise LeaseLost("over")

    await slow.asubmit()
    async with app.worker():
        async with asyncio.timeout(PATIENCE_S):
            while not told:
                await asyncio.sleep(0.01)
        assert app.engine.run(mutexes.look("k")) is None
    assert len(told) == 1


async def test_a_mutex_is_lost_with_its_attempt(app: App) -> None:
    """A handler that goes on after its job was taken from it keeps no mutex alive."""
    told: list[str] = []

    @app.job(attempts_max=1)
    def slow() -> None:
        with Mutex(app, "k", stale_s=1.0) as held:
            sql = "UPDATE {} SET attempt = attempt + 1".format(
                "fencerow.jobs" if app.engine.dialect == "postgres" else "fencerow_jobs"
            )
            with app.engine.session() as session:
                session.connection.execute(sql)
            if held.wait_lost(5.0):
                told.append("lost")
                with pytest.raises(MutexLost, match="attempt"):
                    held.check()

    await slow.asubmit()
    async with app.worker():
        async with asyncio.timeout(PATIENCE_S):
            while not told:
                await asyncio.sleep(0.01)


async def test_the_next_attempt_gets_at_once_what_the_last_one_left(app: App) -> None:
    tokens: list[int] = []
    kept: list[Mutex] = []

    @app.job(attempts_max=2, backoff=Backoff(base_s=0, jitter=0))
    def deal() -> None:
        mutex = Mutex(app, "k", wait_s=0, stale_s=3600)
        tokens.append(mutex.acquire())
        kept.append(mutex)
        if len(tokens) == 1:
            raise TimeoutError("it died while it held the mutex")
        assert mutex.release()

    handle = await deal.asubmit()
    async with app.worker():
        await handle.aresult(PATIENCE_S)

    assert tokens == [1, 2]
    assert await kept[0].arelease() is False


async def test_a_handler_in_a_child_process_holds_it_too(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCEROW_URL", url)
    with no_threads_left():
        app = shop.opened(QUICK)
        await asyncio.to_thread(app.check_or_create)
        handle = await shop.alone.asubmit("k")
        busy = holding_of(app, key="busy")
        back = await shop.alone.asubmit("busy")
        async with app.worker():
            told = await handle.aresult(PATIENCE_S)
            async with asyncio.timeout(PATIENCE_S):
                while (await back.arefresh()).snoozes == 0:
                    await asyncio.sleep(0.02)
        assert told == {"job_id": handle.id, "job_name": (await handle.arefresh()).name, "attempt": 1}
        assert (await back.arefresh()).failures == 0
        await busy.arelease()
        await app.aclose()


async def test_a_guard_in_the_jobs_transaction_outlasts_the_block(app: App) -> None:
    """It is committed after the handler has returned, and the next holder comes after that."""
    seen: list[str] = []

    @app.job
    def deal(job: Job) -> None:
        with Mutex(app, "k") as held:
            db = job.transaction().__enter__()
            held.guard(db)
            db.execute("SELECT 1")
        try:
            context = contextvars.Context()
            context.run(Mutex(app, "k", wait_s=0).acquire)
            seen.append("taken before the commit")
        except (MutexBusy, Busy):
            seen.append("busy until the commit")

    handle = await deal.asubmit()
    await work(app)

    assert await handle.astatus() is State.SUCCEEDED
    assert seen == ["busy until the commit"]
    async with Mutex(app, "k", wait_s=5) as held:
        assert held.token == 2


@pytest.mark.parametrize("lent", [False, True], ids=["a connection of ours", "a session of the user's"])
async def test_a_block_around_the_jobs_transaction_is_left_at_once(app: App, lent: bool) -> None:
    """A file has one writer: the release waits in the background for the commit, not the handler for itself."""
    if not isinstance(app.engine, SqliteEngine):
        pytest.skip("a server has many writers")
    users = create_async_engine(f"sqlite+aiosqlite:///{app.engine.path}")
    plain_users = create_engine(f"sqlite:///{app.engine.path}")
    took_s: list[float] = []

    @app.job
    async def waits(job: Job) -> None:
        async with Mutex(app, "k"):
            async with job.transaction(session=async_sessionmaker(users)) if lent else job.transaction():
                pass
            began = monotonic()
        took_s.append(monotonic() - began)

    @app.job
    def plain(job: Job) -> None:
        with Mutex(app, "k"):
            with job.transaction(session=sessionmaker(plain_users)) if lent else job.transaction():
                pass
            began = monotonic()
        took_s.append(monotonic() - began)

    handles = [await waits.asubmit(), await plain.asubmit()]
    await app.worker(slots=1).run(until_idle=True)
    await users.dispose()
    plain_users.dispose()

    assert [await handle.astatus() for handle in handles] == [State.SUCCEEDED] * 2
    assert max(took_s) < 5.0, took_s  # as long as it would wait for the file: 10
    async with Mutex(app, "k", wait_s=5) as held:
        assert held.token == 3
