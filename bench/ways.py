"""What does each way through the house keep of the pace of plain jobs: shares, keys, a limit, and all of these at once?

    python bench/ways.py [rounds] [jobs] [postgres|sqlite] [--save FILE]

Drains by one worker of 100 slots, in a fresh database each. In every round each kind is played between two drains of
plain jobs and compared with their mean, so that what else the machine does meets both. Told are the medians of the
rounds: of the ratio of jobs a second, and of the ratio of processor time a job (of this process and of the server),
which other load falsifies less. Commits reach the disk as they do in production.
"""

from __future__ import annotations

import asyncio
import gc
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencerow import App
from fencerow.bench.evidence import keep
from fencerow.bench.server import cpu_s
from fencerow.limits import Limit
from fencerow.operators import looking
from fencerow.testing.postgres import PostgresServer

ROUNDS, JOBS = 5, 20_000
SLOTS = 100
KEYS, SHARES = 10_000, 100
FREE = 1_000  # ten times what runs at once
CHUNK = 5_000


def share_of(number: int) -> str:
    return f"tenant {number % SHARES:03}"


def key_of(number: int) -> str:
    return f"k{number % KEYS}"


@dataclass(frozen=True)
class Way:
    """What its jobs say, which limits there are, and what it shall keep of the pace of plain jobs."""

    name: str
    goal: float
    says: Mapping[str, Any] = field(default_factory=dict)
    limits: tuple[Limit, ...] = ()


PLAIN = Way("plain", 1.0)
WAYS = (
    Way(f"{SHARES} shares", 0.7, {"share": share_of}),
    Way(f"{KEYS:,} exclusive keys", 0.6, {"exclusive": key_of}),
    Way("a limit by name", 0.5, {"limits": ("one",)}, (Limit("one", at_once=FREE),)),
    Way(
        "two names, and a key",
        0.3,
        {"limits": ("one", "two"), "exclusive": key_of},
        (Limit("one", at_once=FREE), Limit("two", at_once=FREE)),
    ),
)


@dataclass(frozen=True)
class Drained:
    """Jobs a second, from the first start until the database has confirmed the last success; and microseconds of a
    processor a job, from the start of the worker on: this process, and the server."""

    rate: float
    worker_us: float
    server_us: float

    @property
    def cpu_us(self) -> float:
        return self.worker_us + self.server_us


@dataclass(frozen=True)
class Place:
    """Where fresh databases come from. `server`: the process whose time counts too."""

    kind: str
    fresh: Callable[[], str]
    server: int | None = None


async def drained(place: Place, way: Way, count: int) -> Drained:
    at: list[float] = []
    over = asyncio.Event()
    async with App(place.fresh(), actor="bench", limits=way.limits) as app:

        async def noop(number: int) -> None:  # noqa: ARG001 - keys and shares are made of it
            at.append(time.perf_counter())
            if len(at) == count:
                over.set()

        job: Any = app.job(name="noop", queue="bench", **way.says)(noop)
        await asyncio.to_thread(app.declare_limits)
        for first in range(0, count, CHUNK):
            await app.asubmit_many([job.call(number) for number in range(first, min(first + CHUNK, count))])
        gc.collect()
        ours, theirs = time.process_time(), cpu_s(place.server)
        async with app.worker("bench", slots=SLOTS):
            await over.wait()
            while await app.engine.arun(looking.counts()):  # noqa: ASYNC110 - only the database knows
                await asyncio.sleep(0.005)
            took_s = time.perf_counter() - at[0]
            server_s = (cpu_s(place.server) or 0.0) - (theirs or 0.0)
            worker_s = time.process_time() - ours
    return Drained(count / took_s, worker_s / count * 1e6, server_s / count * 1e6)


def round_of(place: Place, count: int) -> dict[str, tuple[Drained, Drained, Drained]]:
    """Of each way the drain before it, its own, and the one behind it; the plain ones are shared by neighbours."""
    found = {}
    before = asyncio.run(drained(place, PLAIN, count))
    for way in WAYS:
        own = asyncio.run(drained(place, way, count))
        behind = asyncio.run(drained(place, PLAIN, count))
        found[way.name] = (before, own, behind)
        before = behind
    return found


def ratios(each: tuple[Drained, Drained, Drained]) -> tuple[float, float]:
    """What it keeps of the pace, by the clock and by processor time."""
    before, own, behind = each
    return (
        own.rate / statistics.mean((before.rate, behind.rate)),
        statistics.mean((before.cpu_us, behind.cpu_us)) / own.cpu_us,
    )


def measured(place: Place, rounds: int, count: int) -> Iterator[dict[str, Any]]:
    asyncio.run(drained(place, PLAIN, CHUNK))  # what is loaded and compiled once
    played = [round_of(place, count) for _ in range(rounds)]
    for way in WAYS:
        own = [each[way.name] for each in played]
        clock, processor = zip(*map(ratios, own), strict=True)
        yield {
            "engine": place.kind,
            "way": way.name,
            "goal": way.goal,
            "kept": round(statistics.median(clock), 2),
            "kept_range": [round(min(clock), 2), round(max(clock), 2)],
            "kept_by_processor": round(statistics.median(processor), 2),
            "kept_by_processor_range": [round(min(processor), 2), round(max(processor), 2)],
            "jobs_per_s": round(statistics.median(each[1].rate for each in own)),
            "plain_jobs_per_s": round(statistics.median(each[0].rate for each in own)),
            "worker_us": round(statistics.median(each[1].worker_us for each in own)),
            "plain_worker_us": round(statistics.median(each[0].worker_us for each in own)),
            "server_us": round(statistics.median(each[1].server_us for each in own)),
            "plain_server_us": round(statistics.median(each[0].server_us for each in own)),
        }


def migrated(url: str) -> str:
    with App(url) as app:
        app.migrate()
    return url


@contextmanager
def sqlite() -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder) / "first.db"
        migrated(f"sqlite:///{first}")

        def fresh() -> str:
            file = Path(folder) / f"{time.monotonic_ns()}.db"
            shutil.copyfile(first, file)
            return f"sqlite:///{file}"

        yield Place("sqlite", fresh)


@contextmanager
def postgres() -> Iterator[Place]:
    with PostgresServer() as server:
        url = migrated(server.create_role_and_schema(role="app", database="first"))

        def fresh() -> str:
            name = f"ways_{time.monotonic_ns()}"
            server.create_database(name, template="first")
            return url.replace("/first", f"/{name}")

        yield Place("postgres", fresh, server.pid)


def main() -> None:
    given = sys.argv[1:]
    file = Path(given.pop(given.index("--save") + 1)) if "--save" in given else None
    numbers = [int(each) for each in given if each.isdigit()]
    rounds, count = [*numbers, *(ROUNDS, JOBS)[len(numbers) :]]
    rows = []
    for kind, where in (("postgres", postgres), ("sqlite", sqlite)):
        if kind in given or not {"postgres", "sqlite"} & set(given):
            with where() as place:
                for row in measured(place, rounds, count):
                    rows.append(row)
                    print(row, flush=True)
    keep(file, {"command": ["python", "bench/ways.py", *sys.argv[1:]], "ways": rows})


if __name__ == "__main__":
    main()
