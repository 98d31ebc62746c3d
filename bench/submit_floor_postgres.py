"""What a single submit costs on PostgreSQL, rung by rung, from a bare INSERT up to ours.

    python bench/submit_floor_postgres.py [rounds] [submits] [--url URL] [--save FILE]

Every rung adds one thing to the one before it, and all take turns in blocks. All of them run one after the other in an
event loop, on prepared statements of one connection each:

- *three columns*: one INSERT of three columns below the driver's cursor, by a socket that stays registered, without
  a pool, a watch or a task: what an event loop of Python can do at best with this library.
- *our row, two indexes*: the row of ours and its conditions, in a table with the primary key, the lanes and the guard
  alone.
- *our row, all indexes*: with the eight others, in none of which such a row stands.
- *our statement*: with the look for groups of events and the look at what was submitted again.
- *its wake-up with it*: a NOTIFY in the same message, as where nothing gathers.
- *asubmit*: ours, whose wake-ups gather as they do in a stream.

Told are microseconds by the clock and of the client's processor for each submit, the lower quartile of the rounds, as
other work on the machine only adds; and the median of the ratios to *our statement* in the same round. URL leads to a
database in which a scratch schema may be made; without it a private server is started, with its files on disk.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn
from submit_floor import ARGS, TEMPLATE, Rung, timed

from fencerow import App, Config
from fencerow.bench.evidence import keep
from fencerow.bench.place import private_postgres, scratch
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import NewJob
from fencerow.core.store.connect import open_engine
from fencerow.core.store.submit import as_parameters
from fencerow.db.postgres import PostgresEngine
from fencerow.db.prepared import NOTIFIES, values
from fencerow.db.queries import Query, numbered

ROUNDS, SUBMITS, WARM = 7, 300, 30
FLOOR = "our statement"
LOOKS = (
    (re.compile(r"EXISTS \(SELECT 1 FROM \S+event_groups.*?\)"), "false"),
    (re.compile(r"RETURNING .*", re.DOTALL), "RETURNING 1"),
)
Insert = Callable[[], Awaitable[object]]


class Bare:
    """One connection with one prepared statement, whose socket stays registered. One insert at a time."""

    def __init__(self, pgconn: PGconn, query: Query, *, notifies: bool = False) -> None:
        self._pgconn, self._query, self._notifies = pgconn, query, notifies
        self._syncs = 0  # to come yet
        self._answered: asyncio.Future[None] | None = None
        for name, each in ((b"insert", query), (b"notify", NOTIFIES))[: 1 + notifies]:
            (text,) = each.statements
            prepared = pgconn.prepare(name, numbered(text, each.parameters).encode())
            assert not prepared.error_message, prepared.error_message
        pgconn.nonblocking = 1
        if notifies:
            pgconn.enter_pipeline_mode()
        asyncio.get_running_loop().add_reader(pgconn.socket, self._read)

    async def insert(self, params: Mapping[str, Any], told: Mapping[str, Any] | None = None) -> None:
        self._pgconn.send_query_prepared(b"insert", values(self._query, params))
        if told is not None:
            self._pgconn.pipeline_sync()
            self._pgconn.send_query_prepared(b"notify", values(NOTIFIES, told))
            self._pgconn.pipeline_sync()
            self._syncs = 2
        assert not self._pgconn.flush(), "the socket is full"
        self._answered = asyncio.get_running_loop().create_future()
        await self._answered

    def _read(self) -> None:
        """Take what has come, and say so when nothing more will come."""
        self._pgconn.consume_input()
        while not self._pgconn.is_busy():
            result = self._pgconn.get_result()
            assert result is None or not result.error_message, "a statement failed"
            self._syncs -= result is not None and result.status == ExecStatus.PIPELINE_SYNC
            if self._syncs == 0 and (self._notifies or result is None):
                assert self._answered is not None, "nobody asked"
                self._answered.set_result(None)
                return


class Ladder:
    """The rungs by their names. Made in the event loop in which they run."""

    def __init__(self, config: Config, engine: PostgresEngine, stack: ExitStack) -> None:
        self._engine, self._stack = engine, stack
        self._app = App(config=config)

    async def rungs(self) -> dict[str, Insert]:
        statement = self._engine.queries["submit_one"]
        return {
            "three columns": self._three_columns(),
            "our row, two indexes": self._our_row("bench_two", "two", statement),
            "our row, all indexes": self._our_row("bench_all", "all", statement),
            FLOOR: self._ours(statement),
            "its wake-up with it": self._ours(statement, notifies=True),
            "asubmit": self._asubmit(),
        }

    def _connection(self) -> PGconn:
        connection = self._stack.enter_context(psycopg.connect(self._engine.conninfo, autocommit=True))
        connection.execute("SET plan_cache_mode = force_generic_plan")  # as ours are planned
        return connection.pgconn

    def _made(self, *texts: str) -> None:
        with psycopg.connect(self._engine.conninfo, autocommit=True) as connection:
            for text in texts:
                connection.execute(text.encode())

    def _defined(self, query: str) -> str:
        with psycopg.connect(self._engine.conninfo, autocommit=True) as connection:
            (row,) = connection.execute(query.encode())
        return str(row[0])

    def _three_columns(self) -> Insert:
        table = f"{self._engine.schema}.bench_three"
        self._made(
            f"CREATE TABLE {table} (id bigserial PRIMARY KEY, queue text NOT NULL, data text NOT NULL,"
            " priority integer NOT NULL)",
            f"CREATE INDEX ON {table} (priority DESC, id)",
        )
        text = (
            f"INSERT INTO {table} (queue, data, priority)"
            " VALUES (CAST(:queue AS text), CAST(:data AS text), CAST(:priority AS integer)) RETURNING id"
        )
        bare = Bare(self._connection(), Query("three", (text,), ("queue", "data", "priority")))
        return lambda: bare.insert({"queue": "default", "data": ARGS.decode(), "priority": 0})

    def _our_row(self, name: str, indexes: str, statement: Query) -> Insert:
        """Without the two looks, in a table of the same columns and conditions."""
        jobs, table = f'"{self._engine.schema}".jobs', f'"{self._engine.schema}".{name}'
        made = [
            f"CREATE TABLE {table} (LIKE {jobs} {'INCLUDING ALL' if indexes == 'all' else 'INCLUDING DEFAULTS'})"
        ]
        if indexes == "two":
            guard = self._defined(
                "SELECT pg_get_constraintdef(oid) FROM pg_constraint"
                f" WHERE conrelid = '{jobs}'::regclass AND contype = 'x'"
            )
            lanes = self._defined(f"SELECT pg_get_indexdef('\"{self._engine.schema}\".jobs_lane'::regclass)")
            made += [
                f"ALTER TABLE {table} ADD PRIMARY KEY (id), ADD {guard}",
                f"CREATE INDEX ON {table} {lanes[lanes.index('USING') :]}",
            ]
        self._made(*made)
        (text,) = statement.statements
        for look, instead in LOOKS:
            text, found = look.subn(instead, text)
            assert found == 1, look.pattern
        assert f"INSERT INTO {jobs} " in text
        text = text.replace(f"INSERT INTO {jobs} ", f"INSERT INTO {table} ")
        bare = Bare(self._connection(), Query(name, (text,), statement.parameters))
        return lambda: bare.insert(a_job())

    def _ours(self, statement: Query, *, notifies: bool = False) -> Insert:
        bare = Bare(self._connection(), statement, notifies=notifies)
        told = {"channel": self._engine.channel, "messages": ["a"]} if notifies else None
        return lambda: bare.insert(a_job(), told)

    def _asubmit(self) -> Insert:

        @self._app.job(name="noop")
        async def noop(number: int) -> None: ...

        return lambda: noop.asubmit(0)

    async def aclose(self) -> None:
        await self._app.aclose()


def a_job() -> dict[str, Any]:
    return as_parameters(NewJob(template=TEMPLATE, id=new_id(), args=ARGS.decode(), args_bytes=len(ARGS)))


def measured(config: Config, rounds: int, submits: int) -> list[dict[str, Any]]:
    with ExitStack() as stack:
        engine = open_engine(config)
        assert isinstance(engine, PostgresEngine)
        stack.callback(engine.close)
        runner = stack.enter_context(asyncio.Runner())
        ladder = Ladder(config, engine, stack)
        rungs = {name: _block(runner, insert) for name, insert in runner.run(ladder.rungs()).items()}
        for rung in rungs.values():
            rung(WARM)
        found = [{name: timed(rung, submits) for name, rung in rungs.items()} for _ in range(rounds)]
        runner.run(ladder.aclose())
    return [_told(name, found) for name in rungs]


def _block(runner: asyncio.Runner, insert: Insert) -> Rung:
    async def one_after_the_other(count: int) -> None:
        for _ in range(count):
            await insert()

    return lambda count: runner.run(one_after_the_other(count))


def _told(name: str, found: list[dict[str, tuple[float, float]]]) -> dict[str, Any]:
    """One line: the lower quartiles, and how they stand beside the statement alone."""
    return {
        "rung": name,
        "clock_us": round(statistics.quantiles((each[name][0] for each in found), n=4)[0], 1),
        "processor_us": round(statistics.quantiles((each[name][1] for each in found), n=4)[0], 1),
        "clock_ratio": round(statistics.median(each[name][0] / each[FLOOR][0] for each in found), 2),
        "processor_ratio": round(statistics.median(each[name][1] / each[FLOOR][1] for each in found), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="What does a single submit cost on PostgreSQL?")
    parser.add_argument("rounds", type=int, nargs="?", default=ROUNDS)
    parser.add_argument("submits", type=int, nargs="?", default=SUBMITS)
    parser.add_argument("--url")
    parser.add_argument("--save", type=Path)
    asked = parser.parse_args()
    with scratch(Config(url=asked.url)) if asked.url else private_postgres() as place:
        lines = measured(place.config, asked.rounds, asked.submits)
    for each in lines:
        print(
            f"{each['rung']:30}{each['clock_us']:9,.0f} us{each['processor_us']:9,.0f} us"
            f"{each['clock_ratio']:8.2f}{each['processor_ratio']:8.2f}"
        )
    keep(asked.save, {"rungs": lines})


if __name__ == "__main__":
    main()
