"""What do turns between shares cost, and what do they give to whoever comes late with ten jobs?

    python bench/shares.py [jobs] [postgres|sqlite]

All on one database in one run. A drain by one worker process: plain jobs, and as many of 100 shares, in turns. Ten jobs
that come while the worker has that many of somebody else before it: without shares, and with them. And what a submit
costs: one at a time and in bulk, with a share and without.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

from beside import on_each_engine

from fencerow.bench import table
from fencerow.bench.drain import Drain
from fencerow.bench.member import member
from fencerow.bench.place import AnyEngine, BenchDatabase
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import NewJob, Template
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine

JOBS = 100_000
SHARES = 100
ROUNDS = 3
CHUNK = 5_000
SINGLES = 400
WORK = Template(queue="bench", name="noop")


def of(share: str | None, count: int) -> list[NewJob]:
    return [NewJob(new_id(), '{"t":0}', 7, WORK, share=share) for _ in range(count)]


def put(engine: AnyEngine, jobs: list[NewJob]) -> None:
    storing = store.submit_by_copy if isinstance(engine, PostgresEngine) else store.submit
    for first in range(0, len(jobs), CHUNK):
        engine.run(storing(jobs[first : first + CHUNK]))


def fresh(engine: AnyEngine, jobs: list[NewJob]) -> None:
    engine.run(table.clear())
    put(engine, jobs)
    engine.run(table.vacuum())


def drained(place: BenchDatabase, engine: AnyEngine, jobs: list[NewJob]) -> Drain:
    fresh(engine, jobs)
    with member(place, "drain") as worker:
        return Drain(len(jobs), [worker.ask(ask="drain")], None)


def waited(place: BenchDatabase, engine: AnyEngine, many: str | None, few: str | None, count: int) -> float:
    """How long ten jobs take that come while a worker has so many before it."""
    fresh(engine, of(many, count))
    with member(place, "drain") as worker:
        worker.tell(ask="drain")
        first = of(few, 10)
        time.sleep(1.5)  # it is at work
        began = time.perf_counter()
        engine.run(store.submit(first))
        ids = [job.id for job in first]
        while any(job.ended_at_us is None for job in engine.run(store.read(ids)).values()):
            time.sleep(0.01)
        took_s = time.perf_counter() - began
        worker.answer()
    return took_s


def singly_us(engine: AnyEngine, share: str | None) -> float:
    took = []
    for job in of(share, SINGLES):
        began = time.perf_counter()
        engine.run(store.submit([job]))
        took.append(time.perf_counter() - began)
    return statistics.median(took) * 1e6


def in_bulk_us(engine: AnyEngine, share: str | None) -> float:
    jobs = of(share, CHUNK)
    began = time.perf_counter()
    put(engine, jobs)
    return (time.perf_counter() - began) / CHUNK * 1e6


def beside(measure: Callable[[AnyEngine, str | None], float], engine: AnyEngine) -> tuple[float, float]:
    """Without a share and with one, in turns."""
    found = [(measure(engine, None), measure(engine, "a")) for _ in range(5)]
    return statistics.median(each[0] for each in found), statistics.median(each[1] for each in found)


def measure(place: BenchDatabase, count: int) -> Iterator[str]:
    with place.engine() as engine:
        shares = [f"tenant {number % SHARES:03}" for number in range(count)]
        plain, shared = [], []
        for _ in range(ROUNDS):
            plain.append(drained(place, engine, of(None, count)).rate)
            shared.append(drained(place, engine, [job for each in shares for job in of(each, 1)]).rate)
        without, having = statistics.median(plain), statistics.median(shared)
        ratio = f"{having / without:.2f} x"
        yield f"drain of {count:,}: plain {without:,.0f} jobs/s, {SHARES} shares {having:,.0f}, {ratio}"
        behind = waited(place, engine, None, None, count)
        between = waited(place, engine, "many", "few", count)
        yield f"ten more: behind {count:,} {behind:.2f} s, with shares {between:.2f} s"
        engine.run(table.clear())
        for name, what in (("one at a time", singly_us), ("in bulk", in_bulk_us)):
            without, having = beside(what, engine)
            yield f"submit {name}: {without:.1f} us, with a share {having:.1f}, {having / without:.2f} x"


if __name__ == "__main__":
    on_each_engine(measure, JOBS)
