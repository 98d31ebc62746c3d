"""A worker with a few handlers on a stage, and ways to wait for what it says instead of sleeping."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fencerow import Config
from fencerow.batches.item import BatchMiddleware
from fencerow.core.model.backoff import Backoff
from fencerow.core.model.codec import ArgumentsCodec
from fencerow.core.model.handler import Handler
from fencerow.core.model.job import JobRecord, NewJob
from fencerow.core.model.retry import RetryRule
from fencerow.core.model.signature import return_annotation
from fencerow.core.model.value import ValueCodec
from fencerow.core.store import store
from fencerow.core.telemetry import Fact, Telemetry
from fencerow.core.worker.middleware import Middleware, RunMiddleware
from fencerow.core.worker.plain import Worker
from fencerow.core.worker.pool import Pool, StartBound
from fencerow.operators import looking
from tests.kit.jobs import QUEUE, AnyEngine, new_job
from tests.kit.pace import LONG_LEASE_S, PATIENCE_S

WAIT_S = PATIENCE_S
ENDS = frozenset({Fact.SUCCEEDED, Fact.FAILED, Fact.STOPPED})
RULE = RetryRule(backoff=Backoff(base_s=0.0, jitter=0.0))

Facts = Mapping[str, Any]


def quick(**changes: Any) -> Config:
    """Settings whose every period is short, but for the lease: a test of its end says so itself."""
    fields: dict[str, Any] = {
        "lease_s": LONG_LEASE_S,
        "renew_s": 0.2,
        "sweep_s": 0.2,
        "poll_max_s": 0.05,
        "poll_min_s": 0.01,
        "cancel_raise_s": 0.2,
        "cancel_kill_s": 0.3,
        "shutdown_s": 5.0,
    }
    return Config(**{**fields, **changes})


class Free:
    """A limit that is never met; see `Pool`."""

    waiting = 0

    def room(self) -> int:
        return 1_000


def pool_of(slots: int, *queues: str, limit: StartBound | None = None) -> Pool:
    """A pool by itself, of one queue where none is named."""
    return Pool(queues or ("mail",), slots, 1.0, 1.0, limit or Free())


def handler(function: Callable[..., Any], rule: RetryRule = RULE, timeout_s: float | None = None) -> Handler:
    """What the app makes of a decorated function; its name is the function's."""
    parameter = "job" if "job" in inspect.signature(function).parameters else None
    return Handler(
        function.__name__,
        function,
        inspect.iscoroutinefunction(function),
        parameter,
        ArgumentsCodec.of(function, parameter),
        ValueCodec.of(return_annotation(function)),
        rule,
        timeout_s,
    )


class Heard:
    """Every telemetry event so far, with a way to wait for more. Emitted from any thread."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.events: list[tuple[str, Facts]] = []
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        telemetry.listen(self._hear)

    def all(self, name: str, **facts: Any) -> list[Facts]:
        """The events of this name whose facts are these."""
        return [found for kind, found in list(self.events) if kind == name and facts.items() <= found.items()]

    async def wait(self, name: str, count: int = 1, within_s: float = WAIT_S, **facts: Any) -> list[Facts]:
        """Wait until `count` such events were heard."""
        await self.until(lambda: len(self.all(name, **facts)) >= count, within_s, f"{count} x {name} {facts}")
        return self.all(name, **facts)

    async def until(self, done: Callable[[], bool], within_s: float = WAIT_S, what: str = "") -> None:
        """Wait until something holds, looking whenever an event is heard."""
        try:
            async with asyncio.timeout(within_s):
                while not done():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            last = "\n".join(f"  {kind} {dict(facts)}" for kind, facts in self.events[-15:])
            raise AssertionError(f"not within {within_s} s: {what}; the last events were:\n{last}") from None

    def _hear(self, name: str, facts: Facts) -> None:
        self.events.append((name, facts))
        try:
            self._loop.call_soon_threadsafe(self._news.set)
        except RuntimeError:
            pass  # the test is over


class Stage:
    """A worker, its engine and what was heard from it."""

    def __init__(self, engine: AnyEngine, worker: Worker) -> None:
        self.engine = engine
        self.worker = worker
        self.heard = Heard(worker.telemetry)
        self.counters = worker.telemetry.counters

    async def submit(self, name: str, args: Mapping[str, Any] | None = None, **fields: Any) -> str:
        """Submit one job to the first queue, with a wake-up as a client sends it."""
        return await submit(self.engine, name, args, **fields)

    async def ended(self, job_id: str, within_s: float = WAIT_S) -> JobRecord:
        """The job, once this worker has brought it to its end."""
        await self.heard.until(
            lambda: any(
                kind in ENDS and facts["job_id"] == job_id for kind, facts in list(self.heard.events)
            ),
            within_s,
            f"the end of {job_id}",
        )
        return await read(self.engine, job_id)

    async def run(self, name: str, args: Mapping[str, Any] | None = None, **fields: Any) -> JobRecord:
        """Submit one job and wait for its end."""
        return await self.ended(await self.submit(name, args, **fields))


async def submit(engine: AnyEngine, name: str, args: Mapping[str, Any] | None = None, **fields: Any) -> str:
    job = job_of(name, args, **fields)
    await engine.arun(store.submit([job]))
    return job.id


def job_of(name: str, args: Mapping[str, Any] | None = None, **fields: Any) -> NewJob:
    text = fields.pop("raw_args", None) or json.dumps(dict(args or {}))
    return new_job(text, name=name, **fields)


async def read(engine: AnyEngine, job_id: str) -> JobRecord:
    return (await engine.arun(store.read([job_id])))[job_id]


async def kinds(engine: AnyEngine, job_id: str) -> list[str]:
    """The kinds of the job's timeline, in order."""
    happenings = await engine.arun(looking.events(job_id))
    return [each.kind for each in happenings]


async def until(done: Callable[[], bool], within_s: float = WAIT_S, what: str = "") -> None:
    """Wait for something that no event tells."""
    deadline = time.monotonic() + within_s
    while not done():
        assert time.monotonic() < deadline, f"not within {within_s} s: {what}"
        await asyncio.sleep(0.005)


def worker_of(
    engine: AnyEngine,
    *functions: Callable[..., Any] | Handler,
    queues: Mapping[str, int] | Sequence[str] | None = None,
    config: Config | None = None,
    middleware: Sequence[RunMiddleware] = (),
    batch_middleware: Sequence[BatchMiddleware] = (),
) -> Worker:
    known = [each if isinstance(each, Handler) else handler(each) for each in functions]
    return Worker(
        engine,
        {each.name: each for each in known},
        queues or {QUEUE: 5},
        config or quick(),
        Telemetry(),
        Middleware(middleware, batch_middleware),
        ends_process=False,
    )


@asynccontextmanager
async def working(
    engine: AnyEngine, *functions: Callable[..., Any] | Handler, **options: Any
) -> AsyncIterator[Stage]:
    """A worker that runs while the block does."""
    worker = worker_of(engine, *functions, **options)
    stage = Stage(engine, worker)
    async with worker:
        yield stage
