"""How many microseconds of Python does a worker spend on a job that does nothing?

    python bench/python_per_job.py [jobs] [rounds]

The database is left out: a stand-in answers every claim and acknowledgement at once. What is left is the worker's own
code, a number that other load on the machine blurs least. Compare two checkouts in turns, by PYTHONPATH. If no job
goes on, it names what the stand-in has no answer to, and ends with 1.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Any

import msgspec

from fencerow import App, Config
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import QueueLane
from fencerow.core.store import store
from fencerow.core.store.tables import postgres_queries
from fencerow.core.store.workers import Renewed
from fencerow.core.worker.plain import Worker
from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import Queries
from fencerow.db.run import Operation, Rows

SLOTS = 100
STALLED_S = 10.0  # so long without a job that began or ended, none will
DUE_US = 1  # since when the first is due: a claim that did not bring it would be asked for it by another


class StandIn:
    """An engine whose database has `left` due jobs and no delay. Its own time is counted apart."""

    dialect = "postgres"
    traits = PostgresEngine.traits

    def __init__(self, queries: Queries) -> None:
        self.queries = queries  # from which a look for sleeping chores is composed
        self.left = self.ended = 0
        self.own_s = 0.0
        self.unanswered: set[str] = set()

    async def arun(self, operation: Operation[Any]) -> Any:
        await asyncio.sleep(0)
        if operation.name == "lanes":
            return ([QueueLane(0, DUE_US)] if self.left else []), time.time_ns() // 1000
        if operation.name in ("claim", "succeed_first"):
            return self._answered(operation)
        if operation.name == "which_are_used":
            return []
        self.unanswered.add(operation.name)  # of the background mostly, for which no job waits
        return await asyncio.Event().wait()

    def _answered(self, operation: Operation[Any]) -> Any:
        steps = operation.steps()
        statement = next(steps)
        began = time.process_time()
        rows = getattr(self, f"_{operation.name}")(statement.params)
        self.own_s += time.process_time() - began
        try:
            steps.send(rows)
        except StopIteration as done:
            return done.value
        raise AssertionError("one statement was expected")

    def _claim(self, params: dict[str, Any]) -> Rows:
        count = min(params["limit"], self.left)
        self.left -= count
        jobs = [_job(number) for number in range(count)]
        return [(msgspec.json.encode(jobs).decode(),)] if jobs else []

    def _succeed_first(self, params: dict[str, Any]) -> Rows:
        outcomes = msgspec.json.decode(params["outcomes"])
        self.ended += len(outcomes)
        return [(",".join(outcome["id"] for outcome in outcomes), None, False)]

    def run(self, operation: Operation[Any]) -> Any:
        now_us = time.time_ns() // 1000
        answers = {
            "register": True,
            "renew": Renewed(0, None, now_us),
            "last_renewal": now_us,
            "server_identity": "stand-in",
        }
        return answers.get(operation.name, [])

    def keeper(self, **_limits: float) -> StandIn:
        return self

    def listen(self, _callback: Any, **_loop: Any) -> Any:
        return lambda: None

    def imprint(self) -> None: ...

    def wake(self, messages: list[str]) -> None: ...

    def flush(self, timeout_s: float) -> None: ...

    def close(self) -> None: ...


def _job(number: int) -> list[Any]:
    run_at_us = DUE_US + number
    fixed = ["bench", 1, 0, run_at_us, False, 0, 0, 0, 3, 48, 900.0, run_at_us, {"t": 0}]
    return [new_id(), "noop", *fixed, None, None, None, None]


async def all_ended(worker: Worker, engine: StandIn, jobs: int) -> None:
    """Wait until so many jobs have ended, and the worker knows it. It looks seldom: it must not burden the worker."""
    seen, seen_at = (jobs, 0), time.monotonic()
    while engine.ended < jobs or worker.running:
        await asyncio.sleep(0.02)
        now = engine.left, engine.ended
        if now != seen:
            seen, seen_at = now, time.monotonic()
        elif time.monotonic() - seen_at > STALLED_S:
            names = ", ".join(sorted(engine.unanswered)) or "nothing"
            print(
                f"{worker.running} jobs are held, and none ends; the stand-in has no answer to: {names}",
                file=sys.stderr,
            )
            os._exit(1)  # a stop would wait for these jobs


async def main(jobs: int, rounds: int) -> None:
    app = App(config=Config(url="postgresql://stand-in.invalid/none"))

    @app.job(name="noop", queue="bench")
    async def noop(t: int) -> None: ...

    engine: Any = StandIn(postgres_queries(app.config.schema))
    store.check_schema = lambda _engine: None
    worker = Worker(engine, app.handlers, ["bench"], app.config, slots=SLOTS)
    found = []
    async with worker:
        for _ in range(rounds):
            engine.own_s, began = 0.0, time.process_time()
            engine.left, engine.ended = jobs, 0
            worker._parts.wakeups.look_again()  # a wake-up that may have missed some
            await all_ended(worker, engine, jobs)
            found.append((time.process_time() - began - engine.own_s) / jobs * 1e6)
    found.sort()
    print(f"{found[0]:.1f} us a job at best, {found[len(found) // 2]:.1f} in the median of {rounds} rounds")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    asyncio.run(main(*(given + [20_000, 7][len(given) :])))
