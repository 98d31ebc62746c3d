"""What do exclusive keys cost: those that wait, a drain of many keys, and a hand-over?

    python bench/turns.py [keys] [blocked]

On PostgreSQL and on SQLite, with commits that reach the disk as they do in production:

- the claim of 10 jobs beside 100,000 that wait for one key, and beside none; the two take turns;
- the drain of 10,000 keys with 10 jobs each by one worker of 100 slots, and of as many plain jobs by the same worker;
- the hand-over of one turn after an end, and of 500 at once, with and without 100,000 that wait for another key;
- on PostgreSQL, what an end, a hand-over and a claim of one key, and of one limit, take together while somebody holds
  an old snapshot: at first, and after 2,000 of them.
"""

from __future__ import annotations

import asyncio
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

from fencerow import App, Client
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import Claimed, NewJob, Template
from fencerow.core.store import store
from fencerow.db.engine import Engine
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Operation
from fencerow.db.sqlite import SqliteEngine
from fencerow.limits import Limit
from fencerow.operators import looking
from fencerow.testing.postgres import PostgresServer
from fencerow.turns import handing, looks

KEYS, EACH, BLOCKED = 10_000, 10, 100_000
CHUNK = 5_000
CLAIMS, ENDS, BULKS = 300, 200, 20
GROWTH = 2_000
BULK = 500
WARM = 20
AnyEngine = PostgresEngine | SqliteEngine
WORK = Template(queue="bench", name="noop")


def jobs(count: int, *keys: str) -> list[NewJob]:
    """Plain ones, or so many of each key in turns."""
    if not keys:
        return [NewJob(new_id(), "{}", 2, WORK) for _ in range(count)]
    return [NewJob(new_id(), "{}", 2, WORK, key) for _ in range(count) for key in keys]


def stored(engine: Engine, wanted: Sequence[NewJob]) -> None:
    for start in range(0, len(wanted), CHUNK):
        part = wanted[start : start + CHUNK]
        copies = engine.traits.takes_copy
        engine.run(store.submit_by_copy(part) if copies else store.submit_gated(part))
    if isinstance(engine, PostgresEngine):
        with psycopg.connect(engine.conninfo, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE fencerow.jobs")


def claim(holder: str, count: int) -> Operation[list[Claimed]]:
    return store.claim("bench", [store.Mark(0)], holder=holder, names=["noop"], limit=count, margin_s=10.0)


def registered(engine: AnyEngine) -> str:
    holder = new_id()
    engine.run(store.register(holder=holder, name="w", host="h", pid=1, info="{}", lease_s=3600.0))
    return holder


def ended(engine: AnyEngine, holder: str, claimed: Sequence[Claimed]) -> None:
    engine.run(store.succeed([store.Success(job.id, job.attempt, "1") for job in claimed], holder=holder))


def settled(engine: AnyEngine) -> None:
    """Until nobody is left who could get a turn."""
    while engine.run(looks.turns_wanted())[0]:
        engine.run(handing.hand_over())


def claims(none: AnyEngine, beside: AnyEngine, blocked: int) -> str:
    """A claim of 10, beside nobody who waits and beside very many."""
    stored(beside, jobs(blocked, "blocked"))
    settled(beside)
    holders = {}
    for engine in (none, beside):
        stored(engine, jobs((CLAIMS + WARM) * 10))
        holders[engine] = registered(engine)
    took: dict[AnyEngine, list[float]] = {none: [], beside: []}
    for _ in range(CLAIMS + WARM):
        for engine in (none, beside):
            began = time.perf_counter()
            found = engine.run(claim(holders[engine], 10))
            took[engine].append(time.perf_counter() - began)
            assert len(found) == 10
    without, those = (statistics.median(took[each][WARM:]) * 1e3 for each in (none, beside))
    ratio = f"{those / without:.2f} x"
    return f"claim of 10: {those:.2f} ms beside {blocked:,} that wait, {without:.2f} ms beside none: {ratio}"


def hands(engine: AnyEngine) -> str:
    """The hand-over after one end, and after 500 at once; others wait for another key all the while."""
    holder = registered(engine)
    while left := engine.run(claim(holder, 1000)):
        ended(engine, holder, left)
    settled(engine)
    stored(engine, jobs(ENDS + WARM, "one"))
    stored(engine, jobs(BULKS + 2, *(f"k{number}" for number in range(BULK))))
    settled(engine)
    ones, bulks = [], []
    first = {job.id: job for job in engine.run(claim(holder, 2 * BULK))}
    rows = engine.run(store.read(list(first)))
    (one,) = [first[each] for each, job in rows.items() if job.exclusive == "one"]
    many = [first[each] for each, job in rows.items() if job.exclusive and job.exclusive.startswith("k")]
    for _ in range(ENDS):
        ended(engine, holder, [one])
        began = time.perf_counter()
        handed = engine.run(handing.hand_over())
        ones.append(time.perf_counter() - began)
        assert len(handed.queued) == 1
        (one,) = engine.run(claim(holder, 1))
    for _ in range(BULKS):
        assert len(many) == BULK
        ended(engine, holder, many)
        began = time.perf_counter()
        handed = engine.run(handing.hand_over())
        bulks.append(time.perf_counter() - began)
        assert len(handed.queued) == BULK
        many = engine.run(claim(holder, BULK))
    return (
        f"hand-over of 1: {statistics.median(ones[WARM:]) * 1e3:.2f} ms, "
        f"of {BULK}: {statistics.median(bulks) * 1e6 / BULK:.0f} us each"
    )


def growth(engine: PostgresEngine, what: str, wanted: Sequence[NewJob]) -> str:
    """Turns of one gate that go from job to job, beside an old snapshot and without one."""
    holder = registered(engine)
    stored(engine, wanted)
    engine.run(handing.hand_over())
    took: dict[bool, list[float]] = {}
    for held in (False, True):
        with psycopg.connect(engine.conninfo) as report:
            if held:
                report.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                report.execute("SELECT count(*) FROM fencerow.jobs")
            took[held] = [rotated(engine, holder) for _ in range(GROWTH)]
            report.rollback()
    first, last = (statistics.median(took[True][part]) * 1e3 for part in (slice(0, 100), slice(-100, None)))
    without = statistics.median(took[False][-100:]) * 1e3
    return (
        f"one {what} under an old snapshot: {first:.2f} ms at first, {last:.2f} after {GROWTH:,}; "
        f"{without:.2f} after as many without it: {last / without:.2f} x"
    )


def rotated(engine: Engine, holder: str) -> float:
    """How long it takes from a claim to the next one's turn."""
    began = time.perf_counter()
    (job,) = engine.run(claim(holder, 1))
    ended(engine, holder, [job])
    handed = engine.run(handing.hand_over())
    assert len(handed.queued) == 1
    return time.perf_counter() - began


async def drained(url: str, wanted: Sequence[NewJob]) -> float:
    """Seconds from the first start until the database has confirmed the last success."""
    async with App(url, actor="bench") as app:
        done, began = 0, 0.0
        over = asyncio.Event()

        async def noop() -> None:
            nonlocal done, began
            began = began or time.perf_counter()
            done += 1
            if done == len(wanted):
                over.set()

        app.job(name="noop", queue="bench")(noop)
        await asyncio.to_thread(stored, app.engine, wanted)
        async with app.worker("bench", slots=100):
            await over.wait()
            while await app.engine.arun(looking.counts()):  # noqa: ASYNC110 - only the database knows
                await asyncio.sleep(0.005)
            return time.perf_counter() - began


def drains(urls: Iterator[str], keys: int) -> str:
    plain_s = asyncio.run(drained(next(urls), jobs(keys * EACH)))
    keyed_s = asyncio.run(drained(next(urls), jobs(EACH, *(f"k{number}" for number in range(keys)))))
    plain, keyed = keys * EACH / plain_s, keys * EACH / keyed_s
    ratio = f"{keyed / plain:.2f} x"
    return (
        f"drain of {keys:,} keys x {EACH}: {keyed:,.0f} jobs/s, of as many plain jobs {plain:,.0f}: {ratio}"
    )


@contextmanager
def opened(url: str) -> Iterator[AnyEngine]:
    with App(url) as app:
        assert isinstance(app.engine, PostgresEngine | SqliteEngine)
        yield app.engine


def measured(kind: str, urls: Iterator[str], keys: int, blocked: int) -> None:
    print(f"{kind}: {drains(urls, keys)}", flush=True)
    with opened(next(urls)) as none, opened(next(urls)) as beside:
        print(f"{kind}: {claims(none, beside, blocked)}", flush=True)
        print(f"{kind}: {hands(none)}", flush=True)
        print(f"{kind}, beside {blocked:,} that wait for another key: {hands(beside)}", flush=True)
    if kind == "postgres":
        limited = [NewJob(new_id(), "{}", 2, WORK, None, ("one",)) for _ in range(2 * GROWTH + 2)]
        for what, wanted in (("key", jobs(2 * GROWTH + 2, "one")), ("limit", limited)):
            with opened(next(urls)) as engine:
                assert isinstance(engine, PostgresEngine)
                Client(engine).limits.define(Limit("one", at_once=1))
                print(f"{kind}: {growth(engine, what, wanted)}", flush=True)


def migrated(url: str) -> str:
    with App(url) as app:
        app.migrate()
    return url


def main() -> None:
    keys = int(sys.argv[1]) if len(sys.argv) > 1 else KEYS
    blocked = int(sys.argv[2]) if len(sys.argv) > 2 else BLOCKED
    load = os.getloadavg()[0]
    print(
        f"{platform.machine()}, Python {platform.python_version()}, load {load:.1f} at its begin", flush=True
    )
    with tempfile.TemporaryDirectory() as folder:
        files = (migrated(f"sqlite:///{Path(folder)}/{number}.db") for number in range(9))
        measured("sqlite", files, keys, blocked)
    with PostgresServer() as server:
        databases = (
            migrated(server.create_role_and_schema(role="app", database=f"turns_{number}"))
            for number in range(9)
        )
        measured("postgres", databases, keys, blocked)


if __name__ == "__main__":
    main()
