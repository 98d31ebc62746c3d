"""How long do ten thousand schedules take that are due in the same minute, and do their tables grow dearer?

    python bench/schedules.py [schedules]

First all of them fire at one instant: one ticker, and on PostgreSQL four at once, each in transactions of 100 rows, as
workers do it. Each fire writes a tick and a job and moves its row on. Then, on PostgreSQL, 500 schedules fire
each day for 40 days, once while somebody keeps a snapshot from before it open: what a round takes at the end,
beside the same without the snapshot, what the look for the next fire takes then, and how large the tables are.
Commits reach the disk as they do in production.
"""

from __future__ import annotations

import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg

from fencerow.core.model.job import NewJob, Template
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.schedules import ticking
from fencerow.schedules.definition import Definition, Overlap
from fencerow.schedules.definitions import RowKind, WantedRow
from fencerow.schedules.reconciling import reconcile
from fencerow.testing.clock import clock_of
from fencerow.testing.postgres import PostgresServer

SCHEDULES = 10_000
GROWING, ROUNDS, LAST = 500, 40, 10
PERIOD_S = 86_400.0  # so long that none fires again while all are made
AnyEngine = PostgresEngine | SqliteEngine


@contextmanager
def postgres(server: PostgresServer, name: str) -> Iterator[PostgresEngine]:
    engine = PostgresEngine(
        server.create_role_and_schema(role="app", database=name), store.postgres_queries()
    )
    try:
        store.migrate(engine)
        yield engine
    finally:
        engine.close()


@contextmanager
def sqlite() -> Iterator[SqliteEngine]:
    with tempfile.TemporaryDirectory() as folder:
        engine = SqliteEngine(Path(folder) / "bench.db", store.sqlite_queries())
        try:
            store.migrate(engine)
            yield engine
        finally:
            engine.close()


def declare(engine: AnyEngine, count: int, overlap: Overlap) -> None:
    """So many schedules that all fire at midnight."""
    work = NewJob("", "{}", 2, Template(queue="bench", name="noop"))
    rules = Definition(spec={"interval_s": PERIOD_S, "spread": False}, work=work, overlap=overlap)
    wanted = [WantedRow(f"s{number:06}", "", RowKind.SINGLE, rules) for number in range(count)]
    engine.run(reconcile(wanted, owner="bench", own=["noop"], running=[], actor="bench"))


def fire(engine: AnyEngine) -> int:
    """What one ticker makes until nothing is left to it."""
    jobs = 0
    while (ticked := engine.run(ticking.tick())).rows:
        jobs += len(ticked.jobs)
    return jobs


def all_at_once(engine: AnyEngine, count: int, tickers: int) -> float:
    declare(engine, count, Overlap.ALLOW)
    clock_of(engine).advance(PERIOD_S)
    with ThreadPoolExecutor(tickers) as pool:
        began = time.perf_counter()
        jobs = sum(pool.map(fire, [engine] * tickers))
        took_s = time.perf_counter() - began
    assert jobs == count, f"{jobs} jobs of {count} fires"
    return took_s


def told(kind: str, count: int, tickers: int, took_s: float) -> None:
    many = "1 ticker" if tickers == 1 else f"{tickers} tickers"
    print(f"{kind}, {count:,} due at once, {many}: {took_s:.1f} s, {count / took_s:,.0f} fires/s", flush=True)


def growth(engine: PostgresEngine, *, held: bool) -> None:
    """Each fire but the first overlaps, so that the tables of jobs stay as they are."""
    declare(engine, GROWING, Overlap.SKIP)
    clock = clock_of(engine)
    with ExitStack() as stack:
        if held:
            raw = stack.enter_context(psycopg.connect(engine.conninfo, autocommit=True))
            raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            raw.execute("SELECT 1")
        rounds_ms: list[float] = []
        for _ in range(ROUNDS):
            clock.advance(PERIOD_S)
            began = time.perf_counter()
            fire(engine)
            rounds_ms.append((time.perf_counter() - began) * 1e3)
        looks_us = []
        for _ in range(200):
            began = time.perf_counter()
            engine.run(ticking.next_fire())
            looks_us.append((time.perf_counter() - began) * 1e6)
        with psycopg.connect(engine.conninfo) as look:
            rows = look.execute(
                "SELECT relname, pg_total_relation_size(oid) / 1048576.0 FROM pg_class "
                "WHERE relname IN ('schedules', 'schedule_ticks') AND relkind = 'r' ORDER BY relname"
            ).fetchall()
    sizes = ", ".join(f"{name} {size:.1f} MiB" for name, size in rows)
    print(
        f"{'old snapshot held' if held else 'none held'}: a round of {GROWING:,} fires "
        f"{statistics.median(rounds_ms[1 : 1 + LAST]):.0f} ms at first, "
        f"{statistics.median(rounds_ms[-LAST:]):.0f} ms after {ROUNDS} rounds; "
        f"a look for the next {statistics.median(looks_us):.0f} us; {sizes}",
        flush=True,
    )


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else SCHEDULES
    print(f"{platform.machine()}, Python {platform.python_version()}", flush=True)
    with sqlite() as engine:
        told("sqlite", count, 1, all_at_once(engine, count, 1))
    with PostgresServer() as server:
        for tickers in (1, 4):
            with postgres(server, f"at_once_{tickers}") as engine:
                told("postgres", count, tickers, all_at_once(engine, count, tickers))
        for held in (False, True):
            with postgres(server, f"growth_{held}".lower()) as engine:
                growth(engine, held=held)


if __name__ == "__main__":
    main()
