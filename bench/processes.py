"""What do two worker processes gain over one on this machine, and what could they gain at most?

    python bench/processes.py [postgres|sqlite ...] [--rounds 5] [--jobs 50000] [--folder DIR] [--inside]

On a private server or file, one worker process and two drain as many no-op jobs, in turns. Printed are medians: jobs a
second, microseconds of a processor a job, of all workers and of the server, and how many cores these two kept busy.
From them follows what one and two could do if no core ever stood still and nothing became dearer:

- *one at best*: its worker has one thread that runs jobs, so a job takes as long as that, or its share of all cores.
- *two at best*: all cores, divided by what a job costs.

How many cores other programs had meanwhile is told too (the start and the end of our workers are in it): where it is
more than a tenth, the clock says little.

`--inside` looks for what two workers lose to each other on PostgreSQL: what the server's backends wait for, how many of
them in the mean, asked each 5 ms; and the dearest statements by pg_stat_statements, with how often they ran, and for a
job their time by the clock, the pages they looked at, and their bytes of log. That is a load of its own, so its rounds
are for nothing else.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import psycopg

from fencerow.bench.drain import Drain, drained
from fencerow.bench.figure import median
from fencerow.bench.place import SETTINGS, AnyEngine, BenchDatabase, private_postgres, private_sqlite
from fencerow.config import Config
from fencerow.core.store import store
from fencerow.core.store.connect import open_engine
from fencerow.testing.postgres import PostgresServer

CORES = len(os.sched_getaffinity(0))
LOOK_S = 0.005
WAITS = """
SELECT CASE WHEN state <> 'active' THEN 'no statement' WHEN wait_event IS NULL THEN 'none: at work'
            ELSE wait_event_type || ' ' || wait_event END
FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
# A statement by the first query of ours whose words it has: the server's text has no name.
NAMED = {"succeed": "%succeeded%DELETE%", "claim": "%candidate%"}
STATEMENTS = """
SELECT CASE WHEN query LIKE %(claim)s THEN 'claim' WHEN query LIKE %(succeed)s THEN 'succeed'
            ELSE left(regexp_replace(query, '\\s+', ' ', 'g'), 40) END,
       calls, total_exec_time * 1000, shared_blks_hit, wal_bytes
FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT 6
"""
SHOWN_MIN = 0.01  # backends


class Rounds:
    """What the drains by so many worker processes told."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.drains: list[Drain] = []

    def play(self, place: BenchDatabase, engine: AnyEngine, jobs: int) -> None:
        self.drains.append(drained(place, engine, jobs, workers=self.workers))

    @property
    def rate(self) -> float:
        return median([each.rate for each in self.drains])

    @property
    def worker_us(self) -> float:
        return median([each.worker_us for each in self.drains])

    @property
    def server_us(self) -> float:
        return median([each.server_us or 0.0 for each in self.drains])

    def told(self) -> str:
        busy = median([each.rate * (each.worker_us + (each.server_us or 0.0)) / 1e6 for each in self.drains])
        elsewhere = median([each.elsewhere or 0.0 for each in self.drains])
        rates = [each.rate for each in self.drains]
        return (
            f"{self.workers} worker(s): {self.rate:,.0f} jobs/s ({min(rates):,.0f} to {max(rates):,.0f}),"
            f" us a job: {self.worker_us:.1f} workers, {self.server_us:.1f} server;"
            f" {busy:.2f} of {CORES} cores busy with it, {elsewhere:.2f} with other things"
        )


class Inside:
    """What a server with pg_stat_statements tells of the drains by so many workers."""

    def __init__(self, superuser: str, jobs: int) -> None:
        self._superuser, self._jobs = superuser, jobs
        self._waits: Counter[str] = Counter()
        self._looks = 0
        self._statements: defaultdict[str, list[tuple[float, ...]]] = defaultdict(list)

    @contextmanager
    def looking(self) -> Iterator[None]:
        over = threading.Event()
        with psycopg.connect(self._superuser, autocommit=True) as connection:
            connection.execute("SELECT pg_stat_statements_reset()")

            def look() -> None:
                while not over.wait(LOOK_S):
                    self._waits.update(row[0] for row in connection.execute(WAITS).fetchall())
                    self._looks += 1

            thread = threading.Thread(target=look)
            thread.start()
            try:
                yield
            finally:
                over.set()
                thread.join()
            for name, *found in connection.execute(STATEMENTS, NAMED).fetchall():
                self._statements[name].append(tuple(float(each) for each in found))

    def told(self) -> Iterator[str]:
        for wait, count in self._waits.most_common():
            if count / self._looks >= SHOWN_MIN:
                yield f"    {count / self._looks:.2f} backends: {wait}"
        for name, rounds in self._statements.items():
            calls, us, pages, log = (median(each) for each in zip(*rounds, strict=True))
            yield (
                f"    {name}: {calls:.0f} times; a job {us / self._jobs:.1f} us by the clock,"
                f" {pages / self._jobs:.1f} pages, {log / self._jobs:.0f} bytes of log"
            )


def at_best(one: Rounds, two: Rounds) -> str:
    """What the costs of a job leave room for on these cores."""
    alone = 1e6 / max(one.worker_us, (one.worker_us + one.server_us) / CORES)
    both = CORES * 1e6 / (two.worker_us + two.server_us)
    return (
        f"two beside one: {two.rate / one.rate:.2f}; one at best {alone:,.0f} jobs/s, two at best {both:,.0f},"
        f" which would be {both / alone:.2f}; two at best beside one as it is: {both / one.rate:.2f}"
    )


@contextmanager
def place_of(kind: str, folder: Path | None) -> Iterator[BenchDatabase]:
    if kind == "postgres":
        with private_postgres(folder) as place:
            yield place
        return
    with tempfile.TemporaryDirectory(dir=folder) as made, private_sqlite(Path(made)) as place:
        yield place


@contextmanager
def looked_into(folder: Path | None) -> Iterator[tuple[BenchDatabase, str]]:
    """A server with pg_stat_statements, and how its superuser connects."""
    settings = {**SETTINGS, "shared_preload_libraries": "pg_stat_statements"}
    with PostgresServer(fast=False, settings=settings, parent=folder) as server:
        config = Config(url=server.create_role_and_schema(), pool_max=10)
        superuser = server.conninfo("app")
        with psycopg.connect(superuser, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION pg_stat_statements")
        with closing(open_engine(config)) as engine:
            store.migrate(engine, actor="bench")
        yield BenchDatabase("postgres", config, "PostgreSQL, looked into", server.pid), superuser


def compared(place: BenchDatabase, rounds: int, jobs: int, superuser: str | None = None) -> Iterator[str]:
    one, two = Rounds(1), Rounds(2)
    insides = {each: Inside(superuser, jobs) for each in (one, two) if superuser}
    yield f"{place.about}, {jobs} jobs, load {os.getloadavg()[0]:.0f}"
    with place.engine() as engine:
        for number in range(rounds):
            for each in (one, two) if number % 2 else (two, one):
                with insides[each].looking() if insides else nullcontext():
                    each.play(place, engine, jobs)
    for each in (one, two):
        yield each.told()
        if insides:
            yield from insides[each].told()
    yield at_best(one, two)


def main() -> None:
    parser = argparse.ArgumentParser(description="What do two worker processes gain over one?")
    parser.add_argument("kinds", nargs="*", help="postgres or sqlite")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=50_000)
    parser.add_argument("--folder", type=Path, help="where the server or the file is made, such as /dev/shm")
    parser.add_argument(
        "--inside", action="store_true", help="look into PostgreSQL, and measure nothing else"
    )
    asked = parser.parse_args()
    if asked.inside:
        with looked_into(asked.folder) as (place, superuser):
            for line in compared(place, asked.rounds, asked.jobs, superuser):
                print(line, flush=True)
        return
    for kind in asked.kinds or ("postgres", "sqlite"):
        with place_of(kind, asked.folder) as place:
            for line in compared(place, asked.rounds, asked.jobs):
                print(line, flush=True)


if __name__ == "__main__":
    main()
