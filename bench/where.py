"""Where does the time of a job go?

    python bench/where.py [postgres|sqlite] [kind ...] [--jobs 1000] [--functions 12] [--url URL]

On a private server or file, for each kind: `noop` (async), `sync_ms` (in a thread, a millisecond), `two_kb` (2 KB in
and out), `keyed`, `exclusive`, `limited` and `transaction` are submitted in bulk and worked off by one worker in this
process. `several` waits for each job before it submits the next, so that each has its own claim and end. `submit`
submits one at a time.

Each is played twice. The first time is the clock's: microseconds a job of this process, of the server, and of waiting.
The second time is counted, and other load on the machine falsifies none of that: calls of Python in the thread of the
worker, waits for the server, statements by name with the server's own microseconds, its log in bytes, and the writes of
index entries. The statements' times are the server's, and want its extension pg_stat_statements; the entries of its log
want pg_walinspect. Both are there on a private server that was installed with them.

Where the time between a submit and a start goes: `bench/legs.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import os
import pstats
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from fencerow import App, Job
from fencerow.bench import table
from fencerow.bench.figure import percentile
from fencerow.bench.place import SETTINGS, AnyEngine, BenchDatabase, private_sqlite
from fencerow.bench.server import cpu_s
from fencerow.config import Config
from fencerow.core.store import store
from fencerow.core.store.connect import open_engine
from fencerow.db.postgres import PostgresEngine
from fencerow.db.postgres_session import AsyncPostgresSession, PostgresSession
from fencerow.db.queries import Query
from fencerow.db.run import Statement
from fencerow.db.sqlite_connection import SqliteConnection
from fencerow.db.wire import ConnectionWire
from fencerow.limits import Limit
from fencerow.testing.postgres import PostgresServer

KINDS = ("noop", "sync_ms", "two_kb", "keyed", "exclusive", "limited", "transaction", "several", "submit")
WIDE = 1_000_000
SPELT = re.compile(r"\$\d+|(?<!:):[a-z_]+|'(?:[^']|'')*'|\b\d[\d.e+]*\b|\s+|;")
# What every statement of a kind costs the server, by the first words of its text.
BY_STATEMENT = """
SELECT query, calls, total_exec_time + total_plan_time, wal_bytes FROM pg_stat_statements WHERE calls > 0
"""
BY_RECORD = """
SELECT "resource_manager/record_type", count, combined_size FROM pg_get_wal_stats(%s, %s, true) WHERE count > 0
"""


class Counted:
    """What went over the wire while it watched: statements by name, and waits for the server."""

    def __init__(self) -> None:
        self.statements: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.waits = 0
        self.queries: dict[str, Query] = {}

    def clear(self) -> None:
        self.statements.clear()
        self.seconds.clear()
        self.waits = 0

    def watch(self) -> None:
        """From now on, in this whole process."""
        for owner, execute in (
            (PostgresSession, False),
            (AsyncPostgresSession, True),
            (SqliteConnection, False),
        ):
            owner.execute = self._around(owner, awaits=execute)
        for connection in (psycopg.Connection, psycopg.AsyncConnection):
            wait: Any = connection.wait

            def waited(*given: Any, _wait: Any = wait, **more: Any) -> Any:
                self.waits += 1
                return _wait(*given, **more)

            connection.wait = waited
        ask = ConnectionWire.ask

        def asked(*given: Any) -> None:
            self.waits += 1
            ask(*given)

        setattr(ConnectionWire, "ask", asked)  # noqa: B010 (a stand-in)
        query_of = PostgresEngine._query

        def query(engine: PostgresEngine, statement: Statement) -> Query:
            self.queries[statement.name] = found = query_of(engine, statement)
            self.statements[statement.name] += 1
            return found

        setattr(PostgresEngine, "_query", query)  # noqa: B010

    def _around(self, owner: Any, *, awaits: bool) -> Callable[..., Any]:
        original = owner.execute

        def noted(session: Any, statement: Statement) -> None:
            queries = session.queries if owner is SqliteConnection else session._queries
            self.queries[statement.name] = statement.query or queries[statement.name]
            self.statements[statement.name] += 1

        def execute(session: Any, statement: Statement) -> Any:
            noted(session, statement)
            began = time.perf_counter()
            try:
                return original(session, statement)
            finally:
                self.seconds[statement.name] += time.perf_counter() - began

        async def aexecute(session: Any, statement: Statement) -> Any:
            noted(session, statement)
            return await original(session, statement)

        return aexecute if awaits else execute


class Server:
    """What a server with its extensions tells of itself; nothing of a file, or of a server without them."""

    def __init__(self, place: BenchDatabase, superuser: str | None) -> None:
        self.pid = place.server_pid
        self._connection = superuser and psycopg.connect(superuser, autocommit=True)
        self._from = ""

    def clear(self) -> None:
        if self._connection:
            self._connection.execute("SELECT pg_stat_statements_reset()")
            self._from = self._lsn()

    def cpu_s(self) -> float:
        return cpu_s(self.pid) or 0.0

    def told(self, queries: dict[str, Query], jobs: int) -> Iterator[str]:
        if not self._connection:
            return
        names = {spelt(text): name for name, query in queries.items() for text in query.statements}
        found = self._connection.execute(BY_STATEMENT).fetchall()
        for text, calls, ms, wal in sorted(found, key=lambda row: -row[2])[:12]:
            name = names.get(spelt(text), f"({' '.join(text.split())[:50]})")
            own_us = ms * 1000 / calls
            yield f"  server {name:52}{calls / jobs:8.3f} x {own_us:9.1f} us {wal / jobs:9.0f} bytes of log a job"
        records = self._connection.execute(BY_RECORD, (self._from, self._lsn())).fetchall()
        for kind, count, size in sorted(records, key=lambda row: -row[1])[:10]:
            yield f"  log    {kind:52}{count / jobs:8.3f} x {size / count:9.1f} bytes"

    def _lsn(self) -> str:
        assert self._connection
        row = self._connection.execute("SELECT CAST(pg_current_wal_flush_lsn() AS text)").fetchone()
        assert row
        return str(row[0])


def spelt(text: str) -> str:
    """A statement without what differs between its spellings."""
    return SPELT.sub("", text)


class Jobs:
    """The declared jobs of all kinds."""

    def __init__(self, app: App) -> None:
        self.app = app
        text = "x" * 2000

        @app.job(queue="bench")
        async def noop(number: int) -> None: ...

        @app.job(queue="bench")
        def sync_ms(number: int) -> None:  # noqa: ARG001
            time.sleep(0.001)

        @app.job(queue="bench")
        async def two_kb(number: int, given: str) -> str:  # noqa: ARG001
            return given

        @app.job(queue="bench", exclusive=lambda number: f"k{number}")
        async def exclusive(number: int) -> None: ...

        @app.job(queue="bench", limits=("wide",))
        async def limited(number: int) -> None: ...

        @app.job(queue="bench")
        async def transaction(job: Job, number: int) -> None:  # noqa: ARG001
            async with job.transaction():
                pass

        self.calls: dict[str, Callable[[int], Any]] = {
            "noop": noop.call,
            "sync_ms": sync_ms.call,
            "two_kb": lambda number: two_kb.call(number, text),
            "keyed": lambda number: noop.using(key=f"{time.time_ns()}/{number}").call(number),
            "exclusive": exclusive.call,
            "limited": limited.call,
            "transaction": transaction.call,
            "several": noop.call,
        }
        self.noop = noop

    def submitted(self, kind: str, count: int) -> None:
        self.app.submit_many([self.calls[kind](number) for number in range(count)])

    async def worked_off(self, kind: str, count: int) -> None:
        if kind != "several":
            slots = 10 if kind == "transaction" else 100  # on SQLite they wait for one another
            await self.app.worker("bench", slots=slots).run(until_idle=True)
            return
        async with self.app.worker("bench", slots=100):
            for number in range(count):
                await (await self.noop.asubmit(number)).aresult()


def played(kind: str, jobs: Jobs, count: int, around: Callable[[], Any]) -> list[float]:
    """Play one kind; `around` stands around what is measured. Microseconds of each single submit."""
    took: list[float] = []
    if kind == "submit":
        with around():
            for number in range(count):
                began = time.perf_counter()
                jobs.noop.submit(number)
                took.append((time.perf_counter() - began) * 1e6)
        return took
    if kind != "several":
        jobs.submitted(kind, count)

    async def measured() -> None:
        with around():
            await jobs.worked_off(kind, count)

    asyncio.run(measured())
    return took


def measured(
    kind: str, engine: AnyEngine, jobs: Jobs, server: Server, count: int, functions: int
) -> Iterator[str]:
    counted = COUNTED
    engine.run(table.clear())
    times: list[float] = []

    @contextmanager
    def timed() -> Iterator[None]:
        began, cpu, theirs = time.perf_counter(), time.process_time(), server.cpu_s()
        yield
        times.extend([time.perf_counter() - began, time.process_time() - cpu, server.cpu_s() - theirs])

    took = played(kind, jobs, count, timed)
    wall, own, theirs = (each / count * 1e6 for each in times)
    yield f"{kind}: {wall:,.0f} us a job: {own:,.0f} of this process, {theirs:,.0f} of the server"
    if took:
        yield f"  a call: p50 {percentile(took, 0.5):,.0f} us, p99 {percentile(took, 0.99):,.0f} us"
    engine.run(table.clear())
    profile = cProfile.Profile()

    @contextmanager
    def profiled() -> Iterator[None]:
        counted.clear()
        server.clear()
        profile.enable()
        yield
        profile.disable()

    played(kind, jobs, count, profiled)
    stats = pstats.Stats(profile)
    yield f"  {stats.total_calls / count:.1f} calls of Python a job, {counted.waits / count:.3f} waits for the server"  # type: ignore[attr-defined]
    for name, times_called in counted.statements.most_common(12):
        own_us = f"{counted.seconds[name] / times_called * 1e6:9.1f} us each" if counted.seconds[name] else ""
        yield f"  sent   {name:52}{times_called / count:8.3f} x {own_us}"
    yield from server.told(counted.queries, count)
    yield from by_function(stats, count, functions)


def by_function(stats: pstats.Stats, count: int, functions: int) -> Iterator[str]:
    rows: dict[Any, Any] = stats.stats  # type: ignore[attr-defined]
    ordered = sorted(rows.items(), key=lambda row: -row[1][2])
    for (file, _, name), (_, calls, own_s, all_s, _) in ordered[:functions]:
        where = name if file == "~" else f"{Path(file).parent.name}/{Path(file).name} {name}"
        own_us, all_us = own_s / count * 1e6, all_s / count * 1e6
        yield f"  python {where[-52:]:52}{calls / count:8.3f} x {own_us:9.1f} us a job, {all_us:,.1f} with calls"


@contextmanager
def place_of(kind: str, url: str | None) -> Iterator[tuple[BenchDatabase, str | None]]:
    """Where is measured, and the URL of a superuser who may ask the server."""
    if kind == "sqlite":
        with private_sqlite(Path.cwd()) as place:
            yield place, None
    elif url:
        with psycopg.connect(url) as connection:
            (pid,) = connection.execute("SELECT pg_backend_pid()").fetchone() or (0,)
        yield BenchDatabase("postgres", Config(url=url, pool_max=10), url, parent_of(pid)), url
    else:
        settings = {**SETTINGS, "shared_preload_libraries": "pg_stat_statements"}
        with PostgresServer(
            settings={**settings, "pg_stat_statements.track_planning": "on"}, deadline_s=600
        ) as server:
            config = Config(url=server.create_role_and_schema(), pool_max=10)
            with server.connect("app") as connection:
                connection.execute("CREATE EXTENSION pg_stat_statements; CREATE EXTENSION pg_walinspect")
            engine = open_engine(config)
            store.migrate(engine, actor="bench")
            engine.close()
            yield BenchDatabase("postgres", config, "a private server", server.pid), server.conninfo("app")


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


COUNTED = Counted()


def main() -> None:
    parser = argparse.ArgumentParser(description="Where does the time of a job go?")
    parser.add_argument("what", nargs="*", help=f"postgres or sqlite; then kinds: {', '.join(KINDS)}")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--functions", type=int, default=12)
    parser.add_argument(
        "--url", help="a superuser's, of a scratch database with both extensions and our tables"
    )
    asked = parser.parse_args()
    engines = [each for each in asked.what if each not in KINDS] or ["postgres", "sqlite"]
    kinds = [each for each in asked.what if each in KINDS] or list(KINDS)
    COUNTED.watch()
    for name in engines:
        with place_of(name, asked.url) as (place, superuser), place.engine() as engine:
            print(f"{place.about}, {asked.jobs} jobs, load {os.getloadavg()[0]:.0f}", flush=True)
            server = Server(place, superuser)
            with App(config=place.config, limits=[Limit("wide", at_once=WIDE)]) as app:
                app.declare_limits()
                jobs = Jobs(app)
                for kind in kinds:
                    for line in measured(kind, engine, jobs, server, asked.jobs, asked.functions):
                        print(line, flush=True)


if __name__ == "__main__":
    main()
