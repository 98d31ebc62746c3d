"""`job.transaction()`: effects and success in one commit, or neither."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from typing import Any

import psycopg
import pytest

from fencerow.core.store import store
from fencerow.core.worker.context import Job
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from tests.core.worker.faulty import Faulty
from tests.core.worker.stage import quick, working
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S

TABLE = "CREATE TABLE fencerow.effect (job text)"
INSERT = "INSERT INTO fencerow.effect VALUES ('{}')"


def sql(engine: AnyEngine, text: str) -> str:
    return text if isinstance(engine, PostgresEngine) else text.replace("fencerow.", "fencerow_")


@pytest.fixture
def effects(engine: AnyEngine) -> Any:
    """Counts the effects; the table is made first."""

    def make(text: str) -> list[tuple[Any, ...]]:
        with engine.session() as session:
            cursor: Any = session.connection.execute(sql(engine, text))
            return list(cursor.fetchall()) if cursor.description else []

    make(TABLE)
    return lambda: int(make("SELECT count(*) FROM fencerow.effect")[0][0])


async def write(engine: AnyEngine, connection: Any, job: Job) -> None:
    done = connection.execute(sql(engine, INSERT).format(job.id))
    if inspect.isawaitable(done):
        await done


async def test_effects_and_success_are_one_commit(engine: AnyEngine, effects: Any) -> None:
    async def pay(job: Job) -> str:
        async with job.transaction() as connection:
            await write(engine, connection, job)
        await job.progress(50)
        assert await asyncio.to_thread(effects) == 0
        return "paid"

    def pay_plain(job: Job) -> str:
        with job.transaction() as connection:
            connection.execute(sql(engine, INSERT).format(job.id))
        _ = job.log("written")
        return "paid"

    if isinstance(engine, SqliteEngine):  # a second connection of the process waits for the one writer
        effects_now = effects
        effects = lambda: 0  # noqa: E731
    else:
        effects_now = effects
    async with working(engine, pay, pay_plain) as stage:
        first, second = await stage.run("pay"), await stage.run("pay_plain")

    assert [(job.state, job.result, job.attempt) for job in (first, second)] == [("succeeded", "paid", 1)] * 2
    assert effects_now() == 2


async def test_a_handler_that_raises_after_its_writes_leaves_nothing(engine: AnyEngine, effects: Any) -> None:
    async def pay(job: Job) -> None:
        async with job.transaction() as connection:
            await write(engine, connection, job)
        raise RuntimeError("after the block")

    def pay_plain(job: Job) -> None:
        with job.transaction() as connection:
            connection.execute(sql(engine, INSERT).format(job.id))
            raise RuntimeError("inside the block")

    async def unkeepable(job: Job) -> Any:
        async with job.transaction() as connection:
            await write(engine, connection, job)
        return object()

    async with working(engine, pay, pay_plain, unkeepable) as stage:
        jobs = [await stage.run(name, attempts_max=2) for name in ("pay", "pay_plain", "unkeepable")]

    assert [job.state for job in jobs] == ["failed"] * 3
    assert effects() == 0


async def test_an_attempt_that_lost_its_job_writes_nothing(engine: AnyEngine, effects: Any) -> None:
    async def pay(job: Job) -> str:
        if job.attempt > 1:
            return "second"
        await engine.arun(store.retire(holder=job._attempt.holder))
        await engine.arun(store.reclaim([job._attempt.holder], limit=10, actor="test"))
        async with job.transaction() as connection:
            await write(engine, connection, job)
        return "first"

    async with working(engine, pay) as stage:
        job = await stage.run("pay")

    assert (job.result, job.attempt) == ("second", 2)
    assert stage.heard.all("lease_lost", job_id=job.id, attempt=1)
    assert effects() == 0


async def test_it_can_be_entered_once(engine: AnyEngine) -> None:
    async def twice(job: Job) -> None:
        async with job.transaction():
            pass
        async with job.transaction():
            pass

    async def wrong_way(job: Job) -> None:
        with job.transaction():
            pass

    async with working(engine, twice, wrong_way) as stage:
        for name in ("twice", "wrong_way"):
            job = await stage.run(name, attempts_max=1)
            assert (job.state, job.error["type"]) == ("failed", "fencerow.errors.TransactionMisuse")
        # nothing is left locked
        assert (await stage.run("twice", attempts_max=1)).state == "failed"


async def test_a_handler_must_not_end_the_transaction_itself(engine: AnyEngine) -> None:
    def impatient(job: Job) -> None:
        with job.transaction() as connection:
            connection.execute("COMMIT")

    async with working(engine, impatient) as stage:
        job = await stage.run("impatient", attempts_max=1)

    assert (job.state, job.error["type"]) == ("failed", "fencerow.errors.TransactionMisuse")


async def test_a_lost_reply_to_the_commit_is_looked_up(engine: AnyEngine, effects: Any) -> None:
    faulty = Faulty(engine)
    faulty.commit_reply_lost = 1

    async def pay(job: Job) -> str:
        async with job.transaction() as connection:
            await write(engine, connection, job)
        return "paid"

    async with working(faulty, pay) as stage:  # type: ignore[arg-type]
        job = await stage.run("pay")

    assert (job.state, job.result, job.attempt) == ("succeeded", "paid", 1)
    assert faulty.struck == ["commit"]
    assert effects() == 1


async def test_a_lock_of_a_stranger_on_the_job_is_waited_out(pg: PostgresEngine) -> None:
    stranger = psycopg.connect(pg.conninfo)

    async def pay(job: Job) -> str:
        async with job.transaction():
            pass
        stranger.execute("SELECT 1 FROM fencerow.jobs WHERE id = %s FOR UPDATE", [job.id])
        asyncio.get_running_loop().call_later(0.3, stranger.rollback)
        return "paid"

    async with working(pg, pay) as stage:
        job = await stage.run("pay")
    stranger.close()

    assert (job.state, job.attempt) == ("succeeded", 1)
    assert not stage.heard.all("lease_lost")


async def test_an_interrupt_does_not_strike_the_commit_or_the_slot(engine: AnyEngine, effects: Any) -> None:
    """The timeout comes while the handler's failure is being rolled back, or its success committed."""

    async def late(job: Job) -> None:
        async with job.transaction() as connection:
            await write(engine, connection, job)
        await asyncio.sleep(0.05)

    async def after() -> int:
        return 1

    async with working(engine, late, after, queues={"mail": 1}) as stage:
        ids = [await stage.submit("late", timeout_s=0.05 + n * 1e-3, attempts_max=1) for n in range(12)]
        jobs = [await stage.ended(each) for each in ids]
        assert (await stage.run("after")).state == "succeeded"

    assert effects() == sum(job.state == "succeeded" for job in jobs)


async def test_a_cancelled_wait_for_the_sqlite_writer_gives_it_back(lite: SqliteEngine) -> None:
    async def wait_for_it() -> None:
        async with lite.asession():
            raise AssertionError("it was cancelled before it got the lock")

    async with lite.asession():
        waiting = asyncio.create_task(wait_for_it())
        while not any(t.name.startswith("fencerow-session") for t in threading.enumerate()):
            await asyncio.sleep(0)
        await asyncio.sleep(0.05)  # it stands before the lock now
        began = time.monotonic()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert time.monotonic() - began < 20, "the event loop was not held up"
    async with asyncio.timeout(PATIENCE_S), lite.asession():
        pass


async def test_a_transaction_that_keeps_the_sqlite_writer_too_long_is_ended(lite: SqliteEngine) -> None:
    async def greedy(job: Job) -> None:
        async with job.transaction():
            await asyncio.sleep(30)

    def greedy_plain(job: Job) -> None:
        with job.transaction():
            while True:
                time.sleep(0.001)

    async with working(lite, greedy, greedy_plain, config=quick(lease_s=6.0)) as stage:
        holder = stage.worker.holder
        for name in ("greedy", "greedy_plain"):
            job = await stage.run(name, attempts_max=1)
            assert job.error["type"] == "fencerow.errors.TransactionMisuse"
            assert "2 s" in job.error["message"]
        assert stage.worker.holder == holder


async def test_more_transactions_than_connections_do_not_starve_the_worker(pg: PostgresEngine) -> None:
    """Handlers that hold a transaction and say something need a second connection each."""

    async def pay(job: Job) -> None:
        async with job.transaction():
            await job.progress(10)
            await asyncio.sleep(0.05)
            await job.progress(20)

    def pay_plain(job: Job) -> None:
        with job.transaction():
            _ = job.progress(10)
            time.sleep(0.05)
            _ = job.progress(20)

    async with working(pg, pay, pay_plain, queues={"mail": 12}) as stage:
        ids = [await stage.submit(name, attempts_max=1) for name in ("pay", "pay_plain") for _ in range(24)]
        jobs = [await stage.ended(each) for each in ids]

    assert {job.state for job in jobs} == {"succeeded"}


async def test_a_plain_handler_waits_out_the_lock_too(pg: PostgresEngine) -> None:
    stranger = psycopg.connect(pg.conninfo)

    def pay(job: Job) -> str:
        with job.transaction():
            pass
        stranger.execute("SELECT 1 FROM fencerow.jobs WHERE id = %s FOR UPDATE", [job.id])
        threading.Timer(0.3, stranger.rollback).start()
        return "paid"

    async with working(pg, pay) as stage:
        job = await stage.run("pay")
    stranger.close()

    assert (job.state, job.attempt) == ("succeeded", 1)
