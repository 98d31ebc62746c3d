"""What does a declared move cost beside the bare UPDATE that it sends?

    python bench/moves.py [moves]

Each is a transaction of its own on one connection, with commits that reach the disk as they do in production. Both
take turns in blocks of 50, so that what else the machine does strikes them alike; the median of the blocks counts.
"""

from __future__ import annotations

import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from fencerow import Database
from fencerow.core.store import store
from fencerow.guards.transitions import Lease, Move, Transitions
from fencerow.testing.postgres import PostgresServer

BLOCK = 50
TABLE = "CREATE TABLE {name} (id {id} PRIMARY KEY, status text, attempts bigint, started_at {instant})"
UPDATE = """
UPDATE {name} SET status = 'running', attempts = attempts + 1, started_at = {now}
WHERE id = {id} AND (status = 'queued' OR status = 'running' AND started_at < {stale}) RETURNING *
"""


def documents(place: Database, table: str, **more: Any) -> Transitions:
    """A claim with a lease, as most tables have it."""
    lease = Lease(lease_s=60, since="started_at", fence="attempts")
    return Transitions(
        place,
        table=table,
        column="status",
        states=["queued", "running"],
        moves=[Move("claim", "queued", "running", lease=lease), Move("back", "running", "queued")],
        **more,
    )


@contextmanager
def postgres() -> Iterator[tuple[Database, str, Callable[[int], Any], Callable[[str], Any]]]:
    """A server with fsync, our pool, and a psycopg connection in autocommit for the bare statement."""
    with PostgresServer() as server:
        url = server.create_role_and_schema(role="app", database="bench")
        name = "fencerow.documents"
        update = UPDATE.format(
            name=name, id="%s", now="fencerow.now()", stale="(SELECT fencerow.now()) - INTERVAL '60 s'"
        )
        with Database(url) as place, psycopg.connect(url, autocommit=True, prepare_threshold=None) as bare:
            store.migrate(place.engine)
            bare.execute(TABLE.format(name=name, id="bigint", instant="timestamptz"))
            yield place, name, lambda row: bare.execute(update, (row,)).fetchone(), bare.execute


@contextmanager
def sqlite() -> Iterator[tuple[Database, str, Callable[[int], Any], Callable[[str], Any]]]:
    """A file, our engine, and a sqlite3 connection with the same settings for the bare statement."""
    with tempfile.TemporaryDirectory() as folder, Database(f"sqlite:///{folder}/bench.db") as place:
        place.check_or_create()
        with closing(sqlite3.connect(Path(folder) / "bench.db", isolation_level=None, timeout=10)) as bare:
            bare.execute("PRAGMA synchronous = FULL")
            bare.execute(TABLE.format(name="documents", id="INTEGER", instant="INTEGER"))

            def move(row: int) -> Any:
                now = time.time_ns() // 1000
                update = UPDATE.format(name="documents", id="?", now=now, stale=now - 60_000_000)
                bare.execute("BEGIN IMMEDIATE")
                found = bare.execute(update, (row,)).fetchall()
                bare.execute("COMMIT")
                return found[0]

            yield place, "documents", move, bare.execute


def timed(calls: list[Callable[[], Any]]) -> tuple[float, float]:
    """Microseconds for one of them: on the clock, and of this process's CPU."""
    started, worked = time.perf_counter(), time.process_time()
    for call in calls:
        assert call() is not None
    each = 1e6 / len(calls)
    return (time.perf_counter() - started) * each, (time.process_time() - worked) * each


def compare(
    place: Database, table: str, bare: Callable[[int], Any], execute: Any, moves: int
) -> dict[str, tuple[float, float]]:
    plain = documents(place, table)
    noted = documents(place, table, history=f"{table}_moves")
    for statement in noted.history_sql(id_type="bigint").split(";\n"):
        if statement.strip():
            execute(statement)
    rows = iter(range(1, 10**9))
    ways: dict[str, Callable[[int], Any]] = {
        "bare UPDATE": bare,
        "move": lambda row: plain.move("claim", row),
        "move with history": lambda row: noted.move("claim", row),
    }
    seen: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for _ in range(moves // BLOCK):
        for way, once in ways.items():
            ids = [next(rows) for _ in range(BLOCK)]
            execute(f"INSERT INTO {table} VALUES " + ", ".join(f"({row}, 'queued', 0, NULL)" for row in ids))
            seen[way].append(timed([lambda row=row, once=once: once(row) for row in ids]))  # type: ignore[misc]
    return {
        way: (statistics.median(clock for clock, _ in blocks), statistics.median(cpu for _, cpu in blocks))
        for way, blocks in seen.items()
    }


def main() -> None:
    moves = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    for name, opened in (("postgres", postgres), ("sqlite", sqlite)):
        with opened() as (place, table, bare, execute):
            found = compare(place, table, bare, execute, moves)
        base = found["bare UPDATE"][0]
        for way, (clock, cpu) in found.items():
            print(
                f"{name:9} {way:18} {clock:6.0f} us ({clock / base:.2f} x), CPU of the caller {cpu:4.0f} us"
            )


if __name__ == "__main__":
    main()
