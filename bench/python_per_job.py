"""How many microseconds of Python does a worker spend on a job that does nothing?

    python bench/python_per_job.py [jobs] [rounds]

The database is left out: a stand-in answers every claim and acknowledgement at once. What is left is the worker's own
code, a number that other load on the machine blurs least. Compare two checkouts in turns, by PYTHONPATH.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import msgspec

from fencerow import App, Config
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import QueueLane
from fencerow.core.store import store
from fencerow.core.store.workers import Renewed
from fencerow.core.worker.plain import Worker
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Operation, Rows

SLOTS = 100
DUE_US = 1  # since when the first is due: a claim that did not bring it would be asked for it by another


class StandIn:
    """An engine whose database has `left` due jobs and no delay. Its own time is counted apart."""

    dialect = "postgres"
    traits = PostgresEngine.traits

    def __init__(self) -> None:
        self.left = 0
        self.own_s = 0.0

    async def arun(self, operation: Operation[Any]) -> Any:
        await asyncio.sleep(0)
        if operation.name == "lanes":
            return ([QueueLane(0, DUE_US)] if self.left else []), time.time_ns() // 1000
        if operation.name in ("claim", "succeed"):
            return self._answered(operation)
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

    def _succeed(self, params: dict[str, Any]) -> Rows:
        return [(outcome["id"], False, False) for outcome in msgspec.json.decode(params["outcomes"])]

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


async def main(jobs: int, rounds: int) -> None:
    app = App(config=Config(url="postgresql://stand-in.invalid/none"))
    ran = 0

    @app.job(name="noop", queue="bench")
    async def noop(t: int) -> None:  # noqa: ARG001
        nonlocal ran
        ran += 1

    engine: Any = StandIn()
    store.check_schema = lambda _engine: None
    worker = Worker(engine, app.handlers, ["bench"], app.config, slots=SLOTS)
    found = []
    async with worker:
        for _ in range(rounds):
            ran, engine.own_s, began = 0, 0.0, time.process_time()
            engine.left = jobs
            worker._parts.claims.look_again()  # a wake-up that may have missed some
            while ran < jobs or worker.running:  # noqa: ASYNC110 (it must not burden the worker)
                await asyncio.sleep(0.02)
            found.append((time.process_time() - began - engine.own_s) / jobs * 1e6)
    found.sort()
    print(f"{found[0]:.1f} us a job at best, {found[len(found) // 2]:.1f} in the median of {rounds} rounds")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    asyncio.run(main(*(given + [20_000, 7][len(given) :])))
