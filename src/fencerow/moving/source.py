"""The file that jobs are moved from: closed in two steps, read when nothing changes there any more."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from urllib.parse import quote

from fencerow.core.model.ids import new_id
from fencerow.db.engine import Engine
from fencerow.db.run import Steps, as_int, execute, operation, text_or_none
from fencerow.db.sqlite import SqliteEngine
from fencerow.db.sqlite_file import MOVED, translated
from fencerow.moving.canonical import documents
from fencerow.moving.errors import MoveRefused
from fencerow.moving.model import NotedMove
from fencerow.moving.tables import Table, made_tables

OPEN = ("workers", "moves")  # these go on: leases, and the move itself
REFERENCE = '%"fencerow:outside"%'


@operation(alone=True, repeatable=True, writes="")
def read_moves() -> Steps[list[NotedMove]]:
    """The moves that a database knows."""
    rows = yield from execute("read_moves")
    return [
        NotedMove(
            id=str(row[0]),
            side=str(row[1]),
            state=str(row[2]),
            other=str(row[3]),
            owner=text_or_none(row[4]),
            since_us=as_int(row[5]),
            begun_by=text_or_none(row[6]),
        )
        for row in rows
    ]


@operation(alone=True)
def begin_move(move_id: str, *, other: str, actor: str | None) -> Steps[bool]:
    """Note where the jobs of this database go; false if a move is known already."""
    return bool((yield from execute("begin_move", id=move_id, other=other, actor=actor)))


@operation(alone=True, repeatable=True, writes="")
def count_running() -> Steps[int]:
    """How many jobs a worker has."""
    return as_int((yield from execute("count_jobs_running"))[0][0])


@operation()
def close_for_move(move_id: str) -> Steps[bool]:
    """Note that nothing changes any more; false while a job runs."""
    return bool((yield from execute("close_for_move", id=move_id)))


@operation()
def own_no_payloads(move_id: str) -> Steps[None]:
    """Be no longer the owner of the payloads that lie outside."""
    yield from execute("own_no_payloads", id=move_id, new=new_id())


@operation(alone=True, repeatable=True)
def end_move(move_id: str) -> Steps[bool]:
    """Note that all has come."""
    return bool((yield from execute("end_move", id=move_id)))


def stop_claims(engine: SqliteEngine) -> None:
    """Let no worker take a job any more, whichever release it is of. What runs goes on; submits are taken.

    A trigger does it, so that nobody who opens the file can pass it by. It makes the claim find nothing. May be
    repeated.
    """
    jobs = engine.queries.name_of("jobs")
    with engine.session() as session:
        session.connection.execute(
            f"CREATE TRIGGER IF NOT EXISTS {engine.prefix}move_claims BEFORE UPDATE OF state ON {jobs}"
            " WHEN NEW.state = 'running' AND OLD.state <> 'running' BEGIN SELECT RAISE(IGNORE); END"
        )


def close(engine: SqliteEngine, move: NotedMove) -> bool:
    """Let nothing change in the file any more: in the transaction that sees no job running. False while one runs."""
    with engine.session() as session:
        if not session.run(close_for_move(move.id)):
            return False
        session.run(own_no_payloads(move.id))
        said = f"{MOVED}{move.other}".replace("'", "''")
        for table in _closed_tables():
            for verb in ("INSERT", "UPDATE", "DELETE"):
                session.connection.execute(
                    f"CREATE TRIGGER {_trigger(engine, table, verb)} BEFORE {verb} ON {engine.queries.name_of(table)}"
                    f" BEGIN SELECT RAISE(ABORT, '{said}'); END"
                )
        # The claim that finds nothing is told now, too.
        session.connection.execute(f"DROP TRIGGER IF EXISTS {engine.prefix}move_claims")
        return True


@operation()
def _forget(move_id: str) -> Steps[None]:
    yield from execute("own_payloads_again", id=move_id)
    yield from execute("forget_move", id=move_id)


def reopen(engine: SqliteEngine, acting: Engine, move: NotedMove) -> None:
    """Let the file be used again, as if nobody had wanted to move anything. `acting`: by which a person does it."""
    with acting.session() as session:
        session.connection.execute(f"DROP TRIGGER IF EXISTS {engine.prefix}move_claims")
        for table in _closed_tables():
            for verb in ("INSERT", "UPDATE", "DELETE"):
                session.connection.execute(f"DROP TRIGGER IF EXISTS {_trigger(engine, table, verb)}")
        session.run(_forget(move.id))


def _closed_tables() -> list[str]:
    return [name for name in made_tables() if name not in OPEN]


def _trigger(engine: SqliteEngine, table: str, verb: str) -> str:
    return f"{engine.prefix}moved_{table}_{verb.lower()}"


@contextmanager
def reading(engine: SqliteEngine) -> Iterator[sqlite3.Connection]:
    """A connection that can change nothing."""
    path = f"file:{quote(str(engine.path))}?mode=ro"
    with translated(engine.path), closing(sqlite3.connect(path, uri=True)) as connection:
        yield connection


def rows_of(
    engine: SqliteEngine, connection: sqlite3.Connection, table: Table, *, behind: int = 0
) -> Iterator[str]:
    """The rows of a table as both databases say them, in the order of its key; `behind`: without so many first ones."""
    listed = ", ".join(f'"{column.name}"' for column in table.columns)
    order = ", ".join(f'"{name}"' for name in table.key)
    text = f"SELECT {listed} FROM {engine.queries.name_of(table.name)} ORDER BY {order} LIMIT -1 OFFSET ?"  # noqa: S608 (names of ours)
    try:
        yield from documents(table, connection.execute(text, (behind,)))
    except sqlite3.OperationalError as error:
        if "decode" not in str(error):
            raise
        raise MoveRefused(
            f"a row of {table.name} cannot be moved", str(error)[:200], "correct its text, which is no UTF-8"
        ) from error


def counters(engine: SqliteEngine, connection: sqlite3.Connection, tables: Sequence[Table]) -> dict[str, int]:
    """The greatest number that was ever given in each table whose rows are counted up."""
    given = dict(connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall())
    return {
        table.name: max(
            int(given.get(f"{engine.prefix}{table.name}", 0)),
            int(
                connection.execute(
                    f'SELECT COALESCE(max("{table.counter}"), 0) FROM {engine.queries.name_of(table.name)}'  # noqa: S608
                ).fetchone()[0]
            ),
        )
        for table in tables
        if table.counter is not None
    }


def count_outside(engine: SqliteEngine, connection: sqlite3.Connection) -> int:
    """How many jobs refer to payloads that lie outside of the database."""
    (found,) = connection.execute(
        f"SELECT count(*) FROM {engine.queries.name_of('all_jobs')} WHERE args LIKE ? OR result LIKE ?",  # noqa: S608
        (REFERENCE, REFERENCE),
    ).fetchone()
    return int(found)
