"""What does a step cost, beside one bare INSERT; and what do sleeping jobs cost an idle worker?

    python bench/steps.py [rounds] [postgres|sqlite]

One worker in one process. Each round does, in one attempt of a job, so many steps that return at once, and then as many
INSERTs, each in a transaction of its own, on a session of the app's engine. Told is the median of the rounds, and the
median of each round's ratio. Then the worker is idle, before there is a sleeping job and with so many of them: the
seconds of a processor that this process uses, and on PostgreSQL the transactions that the server counts.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from beside import on_each_engine

from fencerow import App, Job
from fencerow.bench.place import BenchDatabase

ROUNDS = 5
STEPS, SLOTS = 200, 20
SLEEPING = int(os.environ.get("SLEEPING", "10000"))
IDLE_S = float(os.environ.get("IDLE_S", "10"))
WAIT_S, WEEK_US = 600.0, 7 * 24 * 3600 * 1_000_000


async def nothing() -> int:
    return 1


class Work:
    """An app whose one job takes the time of steps and of INSERTs, and whose other one sleeps."""

    def __init__(self, place: BenchDatabase) -> None:
        self.app = App(config=place.config)
        self.table = "bare" if self.app.engine.dialect == "sqlite" else "fencerow.bare"
        mark = "?" if self.app.engine.dialect == "sqlite" else "%s"
        self.insert = f"INSERT INTO {self.table} (n) VALUES ({mark})"

        @self.app.job
        async def both(job: Job) -> tuple[float, float]:
            began = time.perf_counter()
            for at in range(STEPS):
                await job.step(f"step {at}", nothing)
            between = time.perf_counter()
            for at in range(STEPS):
                await self.bare(at)
            return between - began, time.perf_counter() - between

        @self.app.job
        async def sleep(job: Job) -> None:
            await job.sleep(WEEK_US / 1e6)

        self.both, self.sleep = both, sleep

    async def bare(self, number: int) -> None:
        """One INSERT, committed."""
        async with self.app.engine.asession() as session:
            connection: Any = session.connection
            done = connection.execute(self.insert, (number,))
            if self.app.engine.dialect == "postgres":
                await done

    def make_table(self) -> None:
        with self.app.engine.session() as session:
            connection: Any = session.connection
            connection.execute(f"CREATE TABLE IF NOT EXISTS {self.table} (n INTEGER)")

    def put_to_sleep(self) -> None:
        """What ten thousand attempts would have written, which each came to their sleep: for a week."""
        is_file = self.app.engine.dialect == "sqlite"
        tables, week = ("fencerow_", str(WEEK_US)) if is_file else ("fencerow.", "interval '7 days'")
        with self.app.engine.session() as session:
            connection: Any = session.connection
            connection.execute(
                f"UPDATE {tables}jobs SET state = 'waiting', gate = NULL WHERE state = 'queued'"
            )
            connection.execute(
                f"INSERT INTO {tables}job_waits (job_id, name, attempt, until, look_at, since) "
                f"SELECT id, 'sleep', attempt, run_at + {week}, run_at + {week}, run_at FROM {tables}jobs"
            )

    def transactions(self) -> int | None:
        """What PostgreSQL has counted; None in a file."""
        if self.app.engine.dialect == "sqlite":
            return None
        with self.app.engine.session() as session:
            connection: Any = session.connection
            connection.execute("SELECT pg_stat_clear_snapshot()")
            row = connection.execute(
                "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
            ).fetchone()
        return int(next(iter(row.values())) if isinstance(row, dict) else row[0])


async def idle(work: Work) -> tuple[float, int | None]:
    """Seconds of a processor and transactions while nothing is to be done."""
    await asyncio.sleep(2.0)  # until what was done before is over
    before, cpu = work.transactions(), time.process_time()
    await asyncio.sleep(IDLE_S)
    used, after = time.process_time() - cpu, work.transactions()
    return used, None if before is None or after is None else after - before


async def sleeping(work: Work) -> AsyncIterator[tuple[str, tuple[float, int | None]]]:
    """Idle without a sleeping job, and with all of them."""
    async with work.app:
        async with work.app.worker(slots=SLOTS):
            yield "no sleeping job", await idle(work)
        await work.app.asubmit_many([work.sleep.call() for _ in range(SLEEPING)])
        work.put_to_sleep()
        async with work.app.worker(slots=SLOTS):
            yield f"{SLEEPING:,} sleeping jobs", await idle(work)


async def rounds_of(work: Work, rounds: int) -> list[tuple[float, float]]:
    async with work.app, work.app.worker(slots=1):
        await (await work.both.asubmit()).aresult(WAIT_S)  # what is loaded late is paid for
        return [await (await work.both.asubmit()).aresult(WAIT_S) for _ in range(rounds)]


def measure(place: BenchDatabase, rounds: int) -> Iterator[str]:
    work = Work(place)
    work.make_table()
    found = asyncio.run(rounds_of(work, rounds))
    step_us, bare_us = (statistics.median(each[at] for each in found) / STEPS * 1e6 for at in (0, 1))
    ratio = statistics.median(step / bare for step, bare in found)
    yield f"a step: {step_us:,.0f} us, a bare INSERT: {bare_us:,.0f} us, {ratio:.2f} x"
    yield from asyncio.run(told(sleeping(Work(place))))


async def told(found: AsyncIterator[tuple[str, tuple[float, int | None]]]) -> list[str]:
    return [
        f"idle for {IDLE_S:g} s with {what}: {used * 1e3:,.0f} ms of a processor"
        + ("" if count is None else f", {count} transactions")
        async for what, (used, count) in found
    ]


if __name__ == "__main__":
    on_each_engine(measure, ROUNDS)
