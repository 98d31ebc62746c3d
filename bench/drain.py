"""How fast does one worker process drain no-op jobs, beside the same claim and move statements driven bare?

    python bench/drain.py [sqlite|postgres] [jobs]

The raw limit is measured in the same run, on the same database: one connection that claims 500 jobs and writes
their success, again and again, with no worker around it.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fencerow.config import Config
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.model.codec import ArgumentsCodec, ValueCodec, return_annotation
from fencerow.model.ids import new_id
from fencerow.model.job import NewJob
from fencerow.model.retry import RetryRule
from fencerow.store import store
from fencerow.testing.postgres import PostgresServer
from fencerow.worker.handler import Handler
from fencerow.worker.worker import Worker

QUEUE = "bench"
BATCH = 500
IDLE_S = float(os.environ.get("FENCEROW_BENCH_IDLE_S", "15"))
AnyEngine = SqliteEngine | PostgresEngine


async def noop(number: int) -> int:
    return number


def main() -> None:
    kind = sys.argv[1] if len(sys.argv) > 1 else "sqlite"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
    print(
        f"machine: {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {load()}"
    )
    with database(kind) as engine:
        store.migrate(engine)
        fill(engine, count)
        raw = raw_rate(engine, count)
        print(f"{kind}: raw claim+succeed in batches of {BATCH}: {raw:,.0f} jobs/s")
        fill(engine, count)
        asyncio.run(measure(engine, kind, count, raw))
        engine.close()


def load() -> str:
    return f"load {os.getloadavg()[0]:.1f}"


@contextmanager
def database(kind: str) -> Iterator[AnyEngine]:
    if kind == "postgres":
        with PostgresServer(fast=False) as server:
            with server.connect() as connection:
                print(
                    f"database: PostgreSQL {connection.info.server_version // 10000}, fsync on, data on disk"
                )
            yield PostgresEngine(server.create_role_and_schema(), store.postgres_queries(), pool_max=10)
        return
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        print(f"database: SQLite {sqlite3.sqlite_version}, synchronous=FULL, file on disk")
        yield SqliteEngine(Path(folder) / "jobs.db", store.sqlite_queries())


def fill(engine: AnyEngine, count: int) -> None:
    args = '{"number":1}'
    for at in range(0, count, 1000):
        jobs = [
            NewJob(id=new_id(), queue=QUEUE, name="noop", args=args, args_bytes=len(args))
            for _ in range(min(1000, count - at))
        ]
        engine.run(store.submit(jobs))


def raw_rate(engine: AnyEngine, count: int) -> float:
    holder = new_id()
    engine.run(store.register(holder=holder, name="raw", host="h", pid=1, info="{}", lease_s=3600))
    mark = store.Mark(0)
    began, done = time.perf_counter(), 0
    while done < count:
        jobs = engine.run(store.claim(QUEUE, [mark], holder=holder, names=["noop"], limit=BATCH, margin_s=60))
        last = jobs[-1]
        mark = store.Mark(last.priority, last.run_at_us, last.id)
        engine.run(store.succeed([store.Success(job.id, job.attempt, "1") for job in jobs], holder=holder))
        done += len(jobs)
    rate = done / (time.perf_counter() - began)
    engine.run(store.retire(holder=holder))
    return rate


async def measure(engine: AnyEngine, kind: str, count: int, raw: float) -> None:
    codec = ArgumentsCodec.of(noop, None)
    known = Handler(
        "noop", noop, True, None, codec, ValueCodec.of(return_annotation(noop)), RetryRule(), None
    )
    worker = Worker(engine, {"noop": known}, {QUEUE: 20}, Config())
    cpu, began = time.process_time(), time.perf_counter()
    async with worker:
        while worker.telemetry.counters.get("succeeded") < count:  # noqa: ASYNC110 (it must not burden the worker)
            await asyncio.sleep(0.005)
        took_s = time.perf_counter() - began
        cpu_s = time.process_time() - cpu
        rate = count / took_s
        print(
            f"{kind}: one worker process, 20 slots: {rate:,.0f} jobs/s, {rate / raw:.2f} x raw, "
            f"{cpu_s / count * 1e6:.0f} us CPU a job, {load()}"
        )
        await idle(engine, kind)
    await engine.aclose()


async def idle(engine: AnyEngine, kind: str) -> None:
    await asyncio.sleep(3)
    counting = Counting(engine)
    cpu = time.process_time()
    await asyncio.sleep(IDLE_S)
    cpu_s, queries = time.process_time() - cpu, counting.stop()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    resident = resident_mib()
    print(
        f"{kind}: idle: {cpu_s * 60 / IDLE_S:.2f} CPU s a minute, {queries / IDLE_S:.1f} operations/s "
        f"(without the keeper's), {resident:.0f} MiB resident, {memory:.0f} MiB at most"
    )
    print(json.dumps({"kind": kind, "cpu_s_per_minute": cpu_s * 60 / IDLE_S, "resident_mib": resident}))


def resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class Counting:
    """Counts the operations that go through an engine."""

    def __init__(self, engine: AnyEngine) -> None:
        self._engine, self._inner, self._count = engine, engine.arun, 0
        engine.arun = self._arun  # type: ignore[method-assign,assignment]

    async def _arun(self, operation):  # type: ignore[no-untyped-def]
        self._count += 1
        return await self._inner(operation)

    def stop(self) -> int:
        self._engine.arun = self._inner  # type: ignore[method-assign]
        return self._count


if __name__ == "__main__":
    main()
