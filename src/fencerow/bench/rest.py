"""What a worker costs that has nothing to do, and what jobs in flight weigh."""

from __future__ import annotations

import time
from collections.abc import Iterator

from fencerow.app import App
from fencerow.bench import table
from fencerow.bench.figure import Figure
from fencerow.bench.member import member
from fencerow.bench.place import BenchDatabase
from fencerow.bench.sizes import Sizes


def measure(place: BenchDatabase, sizes: Sizes) -> Iterator[Figure]:
    with place.engine() as engine:
        engine.run(table.clear())
    with member(place, "serve") as worker:
        time.sleep(sizes.settle_s)
        idle = worker.ask(ask="idle", seconds=sizes.idle_s)
        yield Figure("idle", "CPU of an idle worker", idle["cpu_s_per_minute"], "s/min")
        yield Figure(
            "idle", "operations of an idle worker, without renewals", idle["operations_per_s"], "1/s"
        )
        rest = worker.ask(ask="memory", running=0)["resident_mib"]
    with member(place, "serve", slots=sizes.in_flight) as worker:
        _hold(place, sizes.in_flight)
        held = worker.ask(ask="memory", running=sizes.in_flight)
        worker.ask(ask="release")
    if rest is not None:
        yield Figure("memory", "resident at rest", rest, "MiB")
        yield Figure(
            "memory",
            f"resident with {held['running']:,} jobs in flight",
            held["resident_mib"],
            "MiB",
            rest,
            "at rest",
        )


def _hold(place: BenchDatabase, jobs: int) -> None:
    """Submit jobs that wait until they are let go."""
    with App(config=place.config) as app:

        @app.job(name="hold", queue="bench")
        async def hold() -> None: ...

        app.submit_many(hold.call() for _ in range(jobs))
