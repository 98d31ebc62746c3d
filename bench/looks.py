"""Who waits for whom in a drain under a limit by name: the looks that give turns, beside claims and ends.

    python bench/looks.py [rounds] [jobs]

Drains of `bench/ways.py` on PostgreSQL by one worker, a plain one before each. Told of each operation of the worker:
how often it ran, how much of the drain it was under way, how many jobs it brought; and of the statements of a look how
long each took to come back, which has the wait behind handlers in the event loop. Looks follow one another, so where
they are under way for all of the drain they are what bounds it: jobs a look by the time of a look.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ways import CHUNK, PLAIN, WAYS, Drained, Place, Way, drained, postgres

from fencerow.db.postgres import PostgresEngine
from fencerow.db.postgres_session import PreparedSession
from fencerow.db.run import Operation, Rows, Statement

ROUNDS, JOBS = 3, 20_000
LIMITED = next(way for way in WAYS if way.name == "a limit by name")


class Seen:
    """How long each took, in seconds, and how many jobs it brought."""

    def __init__(self) -> None:
        self.operations: dict[str, list[float]] = defaultdict(list)
        self.statements: dict[str, list[float]] = defaultdict(list)
        self.jobs: dict[str, int] = defaultdict(int)

    def note(self, name: str, began: float, result: object) -> None:
        self.operations[name].append(time.perf_counter() - began)
        if name == "hand_over":
            self.jobs["queued by looks"] += len(getattr(result, "queued", ()))
            self.jobs["claimed by looks"] += len(getattr(result, "claimed", ()))
        elif name == "claim" and isinstance(result, list):
            self.jobs["claimed from lanes"] += len(result)


@contextmanager
def watching(seen: Seen) -> Iterator[None]:
    """All that engines run meanwhile is noted."""
    arun, execute = PostgresEngine.arun, PreparedSession.execute

    async def watched(self: PostgresEngine, operation: Operation[Any]) -> Any:
        began = time.perf_counter()
        result = await arun(self, operation)
        seen.note(operation.name, began, result)
        return result

    async def executed(self: PreparedSession, statement: Statement) -> Rows:
        began = time.perf_counter()
        rows = await execute(self, statement)
        seen.statements[statement.name].append(time.perf_counter() - began)
        return rows

    PostgresEngine.arun, PreparedSession.execute = watched, executed  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        PostgresEngine.arun, PreparedSession.execute = arun, execute  # type: ignore[method-assign]


def told(way: Way, own: Drained, count: int, seen: Seen) -> None:
    took_s = count / own.rate
    print(
        f"{way.name}: {own.rate:,.0f} jobs a second; worker {own.worker_us:.0f}, server {own.server_us:.0f} us a job"
    )
    for name, times in sorted(seen.operations.items(), key=lambda each: -sum(each[1]))[:5]:
        share, each_ms = sum(times) / took_s, statistics.median(times) * 1000
        print(
            f"  {name:<22} {len(times):5} times, {share:5.0%} of the drain under way, {each_ms:6.1f} ms each"
        )
    for name, jobs in seen.jobs.items():
        print(f"  {name:<22} {jobs:5} jobs")
    if way is LIMITED:
        for name, times in sorted(seen.statements.items(), key=lambda each: -sum(each[1]))[:10]:
            print(f"    {name:<20} {len(times):5} times, {statistics.median(times) * 1000:6.1f} ms each")


def play(place: Place, way: Way, count: int) -> Drained:
    seen = Seen()
    with watching(seen):
        own = asyncio.run(drained(place, way, count))
    told(way, own, count, seen)
    return own


def main() -> None:
    numbers = [int(each) for each in sys.argv[1:]]
    rounds, count = [*numbers, *(ROUNDS, JOBS)[len(numbers) :]]
    kept = []
    with postgres() as place:
        asyncio.run(drained(place, PLAIN, CHUNK))  # what is loaded and compiled once
        for _ in range(rounds):
            plain, own = play(place, PLAIN, count), play(place, LIMITED, count)
            kept.append((own.rate / plain.rate, plain.cpu_us / own.cpu_us))
    clock, processor = (statistics.median(each) for each in zip(*kept, strict=True))
    print(f"kept of the pace of plain jobs: {clock:.2f} by the clock, {processor:.2f} by time of a processor")


if __name__ == "__main__":
    main()
