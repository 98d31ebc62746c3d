"""What the bench does to its scratch tables, as operations like any other."""

from __future__ import annotations

from fencerow.bench.place import AnyEngine
from fencerow.db.run import Steps, execute, operation

CHUNK_ROWS = 100_000

_first = 0


def fill(engine: AnyEngine, count: int, *, queue: str = "bench", delay_s: float = 0.0) -> None:
    """Queue so many no-op jobs."""
    for first, rows in _chunks(count):
        engine.run(_fill(first, rows, queue, delay_s))


def fill_finished(engine: AnyEngine, count: int) -> None:
    """Keep so many jobs that have succeeded."""
    for first, rows in _chunks(count):
        engine.run(_fill_finished(first, rows))


@operation(alone=True)
def fall_asleep(queue: str) -> Steps[None]:
    """All queued jobs of this queue sleep for a week from now on."""
    yield from execute("bench_sleep", queue=queue)


@operation(alone=True)
def fill_steps(count: int) -> Steps[None]:
    """Keep so many steps that jobs remember."""
    yield from execute("bench_steps", count=count)


@operation()
def schedules_due(count: int) -> Steps[None]:
    """So many schedules are due now."""
    yield from execute("bench_due", count=count)


@operation(writes="jobs")
def clear() -> Steps[None]:
    """Empty the tables of jobs."""
    yield from execute("bench_clear")


@operation(alone=True, writes="")
def vacuum() -> Steps[None]:
    """Give the planner its statistics, as the database would have by itself after a while."""
    yield from execute("bench_vacuum")


def _chunks(count: int) -> list[tuple[int, int]]:
    """Parts of so many rows, each with a number below its ids that no other part has used."""
    global _first
    parts = []
    for done in range(0, count, CHUNK_ROWS):
        rows = min(CHUNK_ROWS, count - done)
        parts.append((_first, rows))
        _first += CHUNK_ROWS
    return parts


@operation(alone=True)
def _fill(first: int, count: int, queue: str, delay_s: float) -> Steps[None]:
    yield from execute("bench_fill", first=first, count=count, queue=queue, delay_s=delay_s)


@operation(alone=True)
def _fill_finished(first: int, count: int) -> Steps[None]:
    yield from execute("bench_fill_finished", first=first, count=count)
