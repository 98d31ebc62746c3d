"""What one job of many costs a worker, by what no other load falsifies: calls of Python."""

from __future__ import annotations

import asyncio
import cProfile
import pstats

from fencerow import App, Config
from fencerow.db.postgres import PostgresEngine
from tests.core.worker.faulty import Faulty
from tests.core.worker.stage import until, working
from tests.kit.jobs import QUEUE, AnyEngine

JOBS = 1_000
# 126 with CPython 3.11 and psycopg 3.3, start and end of the worker among them, and 147 before the way of nearly
# every job was shortened. Other versions call what they call, so there is room.
CALLS_MAX = 136


async def test_a_job_that_does_nothing_takes_few_calls_of_python(pg: PostgresEngine) -> None:
    async with App(config=Config(url=pg.conninfo)) as app:

        @app.job(name="noop", queue=QUEUE)
        async def noop(number: int) -> None: ...

        async def profiled(count: int) -> cProfile.Profile:
            await asyncio.to_thread(app.submit_many, [noop.call(number) for number in range(count)])
            profile = cProfile.Profile()
            profile.enable()
            await app.worker(QUEUE, slots=100).run(until_idle=True)
            profile.disable()
            return profile

        await profiled(100)  # modules and plans are there after it
        profile = await profiled(JOBS)

    calls: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    assert calls / JOBS < CALLS_MAX


async def test_ends_of_turns_that_follow_one_another_are_written_together(engine: AnyEngine) -> None:
    go, running = asyncio.Event(), 0

    async def waits(turns: int) -> None:
        nonlocal running
        running += 1
        await go.wait()
        for _ in range(turns):
            await asyncio.sleep(0)

    faulty = Faulty(engine)
    async with working(faulty, waits, queues={QUEUE: 9}) as stage:  # type: ignore[arg-type]
        ids = [await stage.submit("waits", {"turns": turns % 3}) for turns in range(9)]
        await until(lambda: running == 9)
        go.set()
        for each in ids:
            await stage.ended(each)

    assert faulty.seen.count("succeed_first") == 1
