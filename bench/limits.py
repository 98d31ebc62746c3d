"""What does each limit cost, and does a rate let through what it says?

    python bench/limits.py [--jobs 10000] [--rounds 3] [--seconds 5] [sqlite|postgres ...]

On PostgreSQL and on SQLite, with commits that reach the disk as they do in production:

- drains by one worker of 100 slots, of plain jobs and of as many under each kind of limit, with room for ten times what
  runs at once: so the ratio is the price of asking. The plain drain is played before each one, because machines change
  their pace. Told are medians of the rounds: jobs a second, microseconds of a processor a job in this process and the
  server together, and the ratios of both to those of the plain drains, as what is kept of their pace;
- starts under rates that are full all the time, of a queue and of a name: how many came in the time, beside how many
  the rate allows, and how late they were against an even spread.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fencerow import App
from fencerow.bench.server import cpu_s
from fencerow.limits import Breaker, Limit, Rate
from fencerow.operators import looking
from fencerow.testing.postgres import PostgresServer

SLOTS = 100
FREE = 1_000  # ten times what runs at once
QUICK = Rate(10_000, burst=100_000)
RATES = (20, 100, 500)
KEYS = 100
DATABASES = 1_000  # more than are needed: each is made when it is asked for


Named = str | Callable[[int], str]


@dataclass(frozen=True)
class Kind:
    """A drain: its limits, and what each job names."""

    name: str
    limits: tuple[Limit, ...] = ()
    named: tuple[Named, ...] = ()
    exclusive: Callable[[int], str] | None = None


def key_of(number: int) -> str:
    return f"k{number}"


def limit_of(number: int) -> str:
    return f"named/{number % KEYS}"


PLAIN = Kind("plain")
KINDS = (
    Kind("at once of the queue", (Limit("queue:bench", at_once=FREE),)),
    Kind("at once of the fleet", (Limit("fleet", at_once=FREE),)),
    Kind("at once of both", (Limit("queue:bench", at_once=FREE), Limit("fleet", at_once=FREE))),
    Kind("rate of the queue", (Limit("queue:bench", rate=QUICK),)),
    Kind("an exclusive key each", exclusive=key_of),
    Kind("at once by name", (Limit("named", at_once=FREE),), ("named",)),
    Kind("rate by name", (Limit("named", rate=QUICK),), ("named",)),
    Kind("breaker by name", (Limit("named", breaker=Breaker(5)),), ("named",)),
    Kind(f"at once by name, {KEYS} keys", (Limit("named", at_once=FREE, per_key=True),), (limit_of,)),
    Kind(
        "two names, a key each",
        (Limit("one", at_once=FREE), Limit("two", at_once=FREE)),
        ("one", "two"),
        key_of,
    ),
)


class Starts:
    """A job that notes when it started, and says when so many have."""

    def __init__(self, app: App, kind: Kind, until: int) -> None:
        self.at: list[float] = []
        self.over = asyncio.Event()
        self._until = until
        self.job = app.job(name="noop", queue="bench", limits=kind.named, exclusive=kind.exclusive)(self.noop)

    async def noop(self, number: int) -> None:  # noqa: ARG002 - keys and names are made of it
        self.at.append(time.perf_counter())
        if len(self.at) == self._until:
            self.over.set()


@dataclass(frozen=True)
class Drained:
    """From the first start until the database has confirmed the last success."""

    rate: float
    used_us: float  # of a processor, for a job


async def drained(url: str, kind: Kind, count: int, server_pid: int | None) -> Drained:
    async with App(url, actor="bench", limits=kind.limits) as app:
        starts = Starts(app, kind, count)
        await asyncio.to_thread(app.declare_limits)
        await app.asubmit_many([starts.job.call(number) for number in range(count)])
        used_s = time.process_time() + (cpu_s(server_pid) or 0.0)
        async with app.worker("bench", slots=SLOTS):
            await starts.over.wait()
            while await app.engine.arun(looking.counts()):  # noqa: ASYNC110 - only the database knows
                await asyncio.sleep(0.005)
            rate = count / (time.perf_counter() - starts.at[0])
            used_s = time.process_time() + (cpu_s(server_pid) or 0.0) - used_s
            return Drained(rate, used_s / count * 1e6)


async def paced(url: str, kind: Kind, per_s: int, for_s: float) -> str:
    """How many of the starts that a rate allows came, and how late those were."""
    count = int(per_s * for_s)
    async with App(url, actor="bench", limits=kind.limits) as app:
        starts = Starts(app, kind, count)
        await asyncio.to_thread(app.declare_limits)
        await app.asubmit_many([starts.job.call(number) for number in range(count + 100)])
        async with app.worker("bench", slots=SLOTS):
            await asyncio.wait_for(starts.over.wait(), for_s * 10)
    at = starts.at[:count]
    reached = (count - 1) / (at[-1] - at[0]) / per_s
    late = [each - at[0] - number / per_s for number, each in enumerate(at)]
    behind = statistics.median(late) * 1e3
    return f"{kind.name} {per_s}/s: {reached:.1%} of it reached, the median start {behind:.1f} ms late"


def measured(
    engine: str, urls: Iterator[str], asked: argparse.Namespace, server_pid: int | None = None
) -> Iterator[str]:
    def played(kind: Kind) -> Drained:
        return asyncio.run(drained(next(urls), kind, asked.jobs, server_pid))

    for kind in KINDS:
        pairs = [(played(PLAIN), played(kind)) for _ in range(asked.rounds)]
        sides = [
            (statistics.median(each.rate for each in side), statistics.median(each.used_us for each in side))
            for side in zip(*pairs, strict=True)
        ]
        (plain, plain_us), (limited, limited_us) = sides
        kept = statistics.median(mine.rate / other.rate for other, mine in pairs)
        by_processor = statistics.median(other.used_us / mine.used_us for other, mine in pairs)
        yield (
            f"{engine}, {kind.name}: {limited:,.0f} jobs/s, {limited_us:.0f} us; plain {plain:,.0f},"
            f" {plain_us:.0f} us: {kept:.2f} x by the clock, {by_processor:.2f} by processor"
        )
    for per_s in RATES:
        for name, named in (("queue:bench", ()), ("named", ("named",))):
            kind = Kind(f"rate of {name}", (Limit(name, rate=Rate(per_s)),), named)
            yield f"{engine}, {asyncio.run(paced(next(urls), kind, per_s, asked.seconds))}"


def migrated(url: str) -> str:
    with App(url) as app:
        app.migrate()
    return url


def main() -> None:
    parser = argparse.ArgumentParser(description="What does each limit cost?")
    parser.add_argument("engines", nargs="*", help="sqlite or postgres")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="for which each rate is watched")
    asked = parser.parse_args()
    load = os.getloadavg()[0]
    print(
        f"{platform.machine()}, Python {platform.python_version()}, load {load:.1f} at its begin", flush=True
    )
    if "sqlite" in (asked.engines or ("sqlite",)):
        with tempfile.TemporaryDirectory() as folder:
            files = (migrated(f"sqlite:///{Path(folder)}/{number}.db") for number in range(DATABASES))
            for line in measured("sqlite", files, asked):
                print(line, flush=True)
    if "postgres" in (asked.engines or ("postgres",)):
        with PostgresServer() as server:
            databases = (
                migrated(server.create_role_and_schema(role="app", database=f"limits_{number}"))
                for number in range(DATABASES)
            )
            for line in measured("postgres", databases, asked, server.pid):
                print(line, flush=True)


if __name__ == "__main__":
    main()
