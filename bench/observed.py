"""What do metrics and traces cost a job that does nothing?

    python bench/observed.py [rounds] [postgres|sqlite]

All on one database in one run. Each round submits jobs in one call and lets one worker run them, plainly and in each
way of being observed, in turns. Told are microseconds of this process on a processor, the median of the rounds, and
that of each round's ratio to its plain jobs: so what else the machine does counts little. The log is silent. Spans
go nowhere: what an exporter costs is its own.
"""

from __future__ import annotations

import asyncio
import logging
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from opentelemetry.sdk.trace import TracerProvider

from fencerow import App
from fencerow.bench.place import BenchDatabase, private_place
from fencerow.metrics import Metrics
from fencerow.traces import trace_jobs

ROUNDS = 7
JOBS = 2_000
PLAIN = "plain"


def counted(app: App) -> AbstractContextManager[object]:
    return Metrics(app)


def without_sdk(app: App) -> AbstractContextManager[object]:
    trace_jobs(app)
    return nullcontext()


def recorded(app: App) -> AbstractContextManager[object]:
    trace_jobs(app, TracerProvider())
    return nullcontext()


def both(app: App) -> AbstractContextManager[object]:
    trace_jobs(app, TracerProvider())
    return Metrics(app)


WAYS: Mapping[str, Callable[[App], AbstractContextManager[object]]] = {
    PLAIN: lambda _app: nullcontext(),
    "metrics": counted,
    "traces, no SDK installed": without_sdk,
    "traces, every span recorded": recorded,
    "metrics and traces": both,
}


async def took_us(
    place: BenchDatabase, observe: Callable[[App], AbstractContextManager[object]]
) -> tuple[float, float]:
    """Microseconds for each job: of a submit of many in one call, and of a worker that runs them all."""
    async with App(config=place.config) as app:

        @app.job(queue="bench", ephemeral=True)
        async def noop() -> None: ...

        with observe(app):
            began = time.process_time()
            await noop.asubmit_many(noop.call() for _ in range(JOBS))
            submitted = time.process_time()
            await app.worker(slots=100, ends_process=False).run(until_idle=True)
            ran = time.process_time()
            return (submitted - began) / JOBS * 1e6, (ran - submitted) / JOBS * 1e6


def told(what: str, found: Mapping[str, Sequence[float]]) -> None:
    for name, took in found.items():
        ratio = statistics.median(mine / plain for mine, plain in zip(took, found[PLAIN], strict=True))
        print(f"{what}, {name}: {statistics.median(took):,.1f} us, {ratio:.2f} x", flush=True)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    logging.getLogger("fencerow").setLevel(logging.ERROR)
    print(f"{platform.machine()}, Python {platform.python_version()}", flush=True)
    for kind in sys.argv[2:] or ("postgres", "sqlite"):
        submits: dict[str, list[float]] = {name: [] for name in WAYS}
        runs: dict[str, list[float]] = {name: [] for name in WAYS}
        with private_place(kind) as place:
            for _ in range(rounds):
                for name, observe in WAYS.items():
                    submit_us, run_us = asyncio.run(took_us(place, observe))
                    submits[name].append(submit_us)
                    runs[name].append(run_us)
        told(f"{kind}, submit {JOBS:,} in one call", submits)
        told(f"{kind}, run", runs)


if __name__ == "__main__":
    main()
