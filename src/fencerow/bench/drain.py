"""How fast are no-op jobs worked off: by one worker process, by two, beside the same statements with no worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack

from fencerow.bench import table
from fencerow.bench.figure import Figure, median
from fencerow.bench.member import member
from fencerow.bench.place import AnyEngine, BenchDatabase
from fencerow.bench.server import cpu_s, machine_s
from fencerow.bench.sizes import SLOTS, Sizes
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import Claimed
from fencerow.core.store import store
from fencerow.db.engine import Engine

BATCH_ROWS = 1_000


def measure(place: BenchDatabase, sizes: Sizes) -> Iterator[Figure]:
    raw: list[float] = []
    one: list[Drain] = []
    two: list[Drain] = []
    with place.engine() as engine:
        for _ in range(sizes.drain_rounds):
            raw.append(_bare_rate(place, engine, sizes.drain_jobs))
            one.append(drained(place, engine, sizes.drain_jobs, workers=1))
            two.append(drained(place, engine, sizes.drain_jobs, workers=2))
    alone = median([each.rate for each in one])
    yield Figure("drain", "one worker process", alone, "jobs/s", median(raw), more=_costs(one))
    yield Figure(
        "drain",
        "two worker processes",
        median([each.rate for each in two]),
        "jobs/s",
        alone,
        "one process",
        _costs(two),
    )


class Drain:
    """One drain: jobs a second from the first start to the last confirmation, and what it cost."""

    def __init__(
        self,
        jobs: int,
        told: list[dict[str, float]],
        server_s: float | None,
        elsewhere: float | None = None,
    ) -> None:
        began = min(each["first_ns"] for each in told if each["first_ns"])
        ended = max(each["last_ns"] for each in told)
        self.rate = jobs / (ended - began) * 1e9
        self.worker_us = sum(each["cpu_s"] for each in told) / jobs * 1e6
        self.server_us = None if server_s is None else server_s / jobs * 1e6
        self.elsewhere = elsewhere  # cores that other programs had; the workers' start and end are in it


def drained(place: BenchDatabase, engine: AnyEngine, jobs: int, *, workers: int) -> Drain:
    """Queue so many jobs and let so many processes work them off; they are up before the clock starts."""
    _fresh(engine, jobs)
    with ExitStack() as stack:
        members = [stack.enter_context(member(place, "drain", slots=SLOTS)) for _ in range(workers)]
        before, machine, began = cpu_s(place.server_pid), machine_s(), time.monotonic()
        for each in members:
            each.tell(ask="drain")
        told = [each.answer() for each in members]
        after, machine_after, took_s = cpu_s(place.server_pid), machine_s(), time.monotonic() - began
    done = sum(each["count"] for each in told)
    assert done == jobs, f"{done} of {jobs} jobs were drained"
    server_s = None if before is None or after is None else after - before
    if machine is None or machine_after is None:
        return Drain(jobs, told, server_s)
    others_s = machine_after - machine - (server_s or 0.0) - sum(each["cpu_s"] for each in told)
    return Drain(jobs, told, server_s, others_s / took_s)


def _fresh(engine: AnyEngine, jobs: int) -> None:
    engine.run(table.clear())
    table.fill(engine, jobs)
    engine.run(table.vacuum())


def _costs(drains: list[Drain]) -> dict[str, float]:
    costs = {"worker_cpu_us": median([each.worker_us for each in drains])}
    servers = [each.server_us for each in drains if each.server_us is not None]
    return {**costs, "server_cpu_us": median(servers)} if servers else costs


def _bare_rate(place: BenchDatabase, engine: AnyEngine, jobs: int) -> float:
    _fresh(engine, jobs)
    return asyncio.run(_bare(place, jobs))


async def _bare(place: BenchDatabase, jobs: int) -> float:
    """Claim the next thousand while the last thousand are written as succeeded, again and again."""
    with place.engine() as engine:
        holder = new_id()
        await engine.arun(
            store.register(holder=holder, name="bare", host="", pid=0, info="{}", lease_s=3600.0)
        )
        mark, done, writing = store.Mark(0), 0, None
        began = time.perf_counter()
        while done < jobs:
            claimed = await _claimed(engine, holder, mark)
            mark = store.Mark(0, claimed[-1].run_at_us, claimed[-1].id)
            done += len(claimed)
            if writing is not None:
                await writing
            successes = [store.Success(job.id, job.attempt, "null") for job in claimed]
            writing = asyncio.create_task(engine.arun(store.succeed(successes, holder=holder)))
        assert writing is not None
        await writing
        took_s = time.perf_counter() - began
        await engine.arun(store.retire(holder=holder))
        await engine.aclose()
    return jobs / took_s


async def _claimed(engine: Engine, holder: str, mark: store.Mark) -> list[Claimed]:
    return await engine.arun(
        store.claim("bench", [mark], holder=holder, names=["noop"], limit=BATCH_ROWS, margin_s=60.0)
    )
