"""How much of a drain on PostgreSQL is what we store, and how much is Python? Rung by rung.

    python bench/drain_floor.py [rounds] [jobs] --url URL

Every rung works off the same number of jobs that do nothing, in portions of 500 by the same driver:

- *delete*: a table of an id and a payload. A claim locks rows and notes who has them, an end deletes them: what a
  queue does that keeps nothing.
- *keep*: the same, but an end moves the rows to a second table of the same two columns.
- *our statements*: our tables, our claim and our end, without a worker.
- *our worker*: the whole, with 100 slots.

The statements of the first three wait for one another, the worker's go on beside its jobs. So the processor's time is
what counts: microseconds a job of this process and of the server's backends, medians of rounds in turns. URL names a
scratch database of a server on this machine, whose processes may be looked at.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from fencerow import App, Config
from fencerow.core.model.ids import new_id
from fencerow.core.store import store

PORTION = 500
PLAIN = """
DROP TABLE IF EXISTS floor_job, floor_done;
CREATE TABLE floor_job (id bigint PRIMARY KEY, payload json, holder text);
CREATE INDEX floor_free ON floor_job (id) WHERE holder IS NULL;
CREATE TABLE floor_done (id bigint PRIMARY KEY, payload json);
"""
FILL = """INSERT INTO floor_job SELECT n, '{"number":0}' FROM generate_series(1, %s) AS n"""
CLAIM = """
UPDATE floor_job SET holder = 'me' WHERE id = ANY(ARRAY(
    SELECT id FROM floor_job WHERE holder IS NULL ORDER BY id LIMIT 500 FOR UPDATE SKIP LOCKED))
RETURNING id, CAST(payload AS text)
"""
ENDS = {
    "delete": "DELETE FROM floor_job WHERE id = ANY(%s) AND holder = 'me' RETURNING id",
    "keep": """WITH ended AS (DELETE FROM floor_job WHERE id = ANY(%s) AND holder = 'me' RETURNING id, payload)
               INSERT INTO floor_done SELECT id, payload FROM ended RETURNING id""",
}
BACKENDS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


Cost = tuple[float, float]  # microseconds a job, of this process and of the server


class Floor:
    def __init__(self, url: str, jobs: int) -> None:
        self.url, self.jobs = url, jobs
        self._watch = psycopg.connect(url, autocommit=True)
        self.app = App(config=Config(url=url, pool_max=10))
        store.migrate(self.app.engine, actor="bench")
        self.ran, self._from = 0, 0.0

        @self.app.job(queue="floor")
        async def noop(number: int) -> None:  # noqa: ARG001
            self.ran += 1
            if self.ran == 1:
                self._from = time.process_time()

        self._noop = noop

    async def plain(self, end: str) -> Cost:
        self._watch.execute(PLAIN)
        self._watch.execute(FILL, (self.jobs,))
        self._watch.execute("VACUUM ANALYZE floor_job")
        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            before, began, done = self._server_s(), time.process_time(), 0
            while done < self.jobs:
                claimed = await (await connection.execute(CLAIM, prepare=True)).fetchall()
                ids = [row[0] for row in claimed]
                done += len(await (await connection.execute(ENDS[end], (ids,), prepare=True)).fetchall())
            return self._cost(began, before)

    async def statements(self) -> Cost:
        await self._filled()
        async with App(config=self.app.config) as app:
            engine, holder, mark, done = app.engine, new_id(), store.Mark(0), 0
            about: dict[str, Any] = {"name": "floor", "host": "", "pid": 0, "info": "{}", "lease_s": 3600.0}
            await engine.arun(store.register(holder=holder, **about))
            more: dict[str, Any] = {"holder": holder, "names": ["noop"], "limit": PORTION, "margin_s": 60.0}
            before, began = self._server_s(), time.process_time()
            while done < self.jobs:
                claimed = await engine.arun(store.claim("floor", [mark], **more))
                mark = store.Mark(0, claimed[-1].run_at_us, claimed[-1].id)
                ends = [store.Success(each.id, each.attempt, "null") for each in claimed]
                done += len((await engine.arun(store.succeed_first(ends, holder=holder))).ids)
            return self._cost(began, before)

    async def worker(self) -> Cost:
        await self._filled()
        self.ran, before = 0, self._server_s()
        async with self.app.worker("floor", slots=100):
            while self.ran < self.jobs or self._left():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            return self._cost(self._from, before)  # from the first start of a handler on

    def _left(self) -> bool:
        return self._watch.execute("SELECT 1 FROM fencerow.jobs LIMIT 1").fetchone() is not None

    async def _filled(self) -> None:
        self._watch.execute("TRUNCATE fencerow.jobs, fencerow.finished_jobs, fencerow.workers CASCADE")
        await asyncio.to_thread(self.app.submit_many, [self._noop.call(0) for _ in range(self.jobs)])
        self._watch.execute("VACUUM ANALYZE fencerow.jobs")

    def _server_s(self) -> float:
        pids = [row[0] for row in self._watch.execute(BACKENDS).fetchall()]
        return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids) / 1e9

    def _cost(self, began: float, before: float) -> Cost:
        own = time.process_time() - began
        return own / self.jobs * 1e6, (self._server_s() - before) / self.jobs * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description="What stands between a bare queue and our drain?")
    for name, usual in (("rounds", 5), ("jobs", 10_000)):
        parser.add_argument(name, nargs="?", type=int, default=usual)
    parser.add_argument("--url", required=True, help="a scratch database on this machine")
    asked = parser.parse_args()
    floor = Floor(asked.url, asked.jobs - asked.jobs % PORTION)
    rungs: dict[str, Callable[[], Coroutine[Any, Any, Cost]]] = {
        name: partial(floor.plain, name) for name in ENDS
    }
    rungs |= {"our statements": floor.statements, "our worker": floor.worker}
    found: dict[str, list[Cost]] = {name: [] for name in rungs}
    with asyncio.Runner() as runner:
        for _ in range(asked.rounds):
            for name, rung in rungs.items():
                found[name].append(runner.run(rung()))
        runner.run(floor.app.aclose())
    print("us of a processor a job      this process   server")
    for name, costs in found.items():
        own, server = (statistics.median(each) for each in zip(*costs, strict=True))
        print(f"{name:28} {own:12.1f} {server:8.1f}")


if __name__ == "__main__":
    main()
