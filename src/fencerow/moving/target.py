"""The database that jobs are moved to: closed until all are there, then opened with all of them in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from psycopg.sql import SQL, Identifier

from fencerow.core.wing import wings
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Steps, as_int, execute, operation
from fencerow.moving.canonical import counted, documents
from fencerow.moving.errors import MoveRefused, MoveUnverified
from fencerow.moving.model import NotedMove, TableCount
from fencerow.moving.tables import Table, make_room_text, read_text, write_text

TRIGGER = "refuse_while_filling"
READ_AT_ONCE = 1000


@operation()
def _begin_filling(move: NotedMove) -> Steps[bool]:
    return bool(
        (
            yield from execute(
                "begin_filling", id=move.id, other=move.other, owner=move.owner, actor=move.begun_by
            )
        )
    )


@operation(alone=True, repeatable=True)
def put_part(move_id: str, table: str, *, first: int, texts: Sequence[str]) -> Steps[bool]:
    """Keep some rows until all have come; false if somebody else brings them just now."""
    rows = f"[{','.join(texts)}]"
    return bool(
        (yield from execute("put_part", id=move_id, table=table, first=first, count=len(texts), rows=rows))
    )


@operation(alone=True, repeatable=True, writes="")
def count_parts(move_id: str) -> Steps[dict[str, int]]:
    """How many rows of each table have come."""
    return {str(name): as_int(rows) for name, rows in (yield from execute("count_parts", id=move_id))}


@operation()
def _list_parts(move_id: str, table: str) -> Steps[list[int]]:
    return [as_int(row[0]) for row in (yield from execute("list_parts", id=move_id, table=table))]


@operation()
def _open_filled(move_id: str) -> Steps[bool]:
    yield from execute("pass_filling")
    return bool((yield from execute("open_filled", id=move_id)))


@operation()
def _run(names: Sequence[str], move_id: str) -> Steps[None]:
    for name in names:
        yield from execute(name)
    yield from execute("own_payloads", id=move_id)
    yield from execute("remove_parts", id=move_id)


def begin_filling(engine: PostgresEngine, move: NotedMove, tables: Sequence[Table]) -> None:
    """Close the database until all has come.

    A trigger on each table keeps it as it is, so that nobody can pass it by; those stay open in which workers declare
    what they know.

    Raises:
        MoveRefused: it is not empty. Nothing was changed there.
    """
    with engine.session() as session:
        if not session.run(_begin_filling(move)):
            raise MoveRefused(
                "the new database knows a move already",
                "another one fills it, or has filled it",
                "name a database that was only migrated",
            )
        for table in tables:
            if not table.declared:
                session.connection.execute(
                    SQL(
                        "CREATE TRIGGER {} BEFORE INSERT ON {} FOR EACH ROW EXECUTE FUNCTION {}.refuse_while_filling()"
                    ).format(Identifier(TRIGGER), _named(engine, table), Identifier(engine.schema))
                )
        refuse_full(engine, session.connection, tables)


def refuse_full(engine: PostgresEngine, connection: Any, tables: Sequence[Table]) -> None:
    """Raises:
    MoveRefused: there are rows already in one of the tables.
    """
    for table in tables:
        asked = SQL("SELECT 1 FROM {} LIMIT 1").format(_named(engine, table))
        if not table.declared and connection.execute(asked).fetchone():
            raise MoveRefused(
                f"the new database is not empty: {table.name} has rows",
                "what is there and what would come could contradict each other",
                "name a database that was only migrated; workers may stand there already",
            )


def open_filled(
    engine: PostgresEngine,
    move_id: str,
    tables: Sequence[Table],
    sent: Mapping[str, TableCount],
    numbers: Mapping[str, int],
    *,
    tell: Callable[[str], object],
) -> bool:
    """Put all that came into its tables, compare it with what was `sent`, and open the database, in one transaction.

    False: somebody else has done it. `numbers`: the greatest number that was given in each table that counts its rows
    up.

    Raises:
        MoveRefused: somebody else wrote there meanwhile. MoveUnverified: something else came than was sent. Nothing
        of it was committed.
    """
    with engine.session() as session:
        if not session.run(_open_filled(move_id)):
            return False
        connection = session.connection
        for table in tables:
            tell(table.name)
            firsts = session.run(_list_parts(move_id, table.name))
            kept = _fill(engine, connection, move_id, table, firsts)
            if kept.rows and not table.declared:
                raise MoveRefused(
                    f"somebody wrote to {table.name} of the new database",
                    "it was to stay empty until all has come",
                    "take the move back with --reopen, and name a database that was only migrated",
                )
            _compare(table, sent[table.name], _counted(engine, connection, table).without(kept))
        session.run(_run([name for wing in wings() for name in wing.came], move_id))
        for table in tables:
            if table.counter is not None:
                connection.execute(
                    "SELECT setval(pg_get_serial_sequence(%s, %s), %s, %s)",
                    (
                        engine.queries.name_of(table.name),
                        table.counter,
                        max(1, numbers[table.name]),
                        numbers[table.name] > 0,
                    ),
                )
        return True


def _fill(
    engine: PostgresEngine, connection: Any, move_id: str, table: Table, firsts: Iterable[int]
) -> TableCount:
    """Put a table's parts in; returns what was there besides."""
    parts = [{"id": move_id, "table": table.name, "first": first} for first in firsts]
    if table.declared:
        for part in parts:
            connection.execute(make_room_text(engine.queries, table), part)
    kept = _counted(engine, connection, table)
    for part in parts:
        connection.execute(write_text(engine.queries, table), part)
    return kept


def _counted(engine: PostgresEngine, connection: Any, table: Table) -> TableCount:
    with connection.cursor(name="fencerow_move") as cursor:  # the server keeps the rest
        cursor.itersize = READ_AT_ONCE
        cursor.execute(read_text(engine.queries, table))
        return counted(documents(table, cursor))


def _compare(table: Table, sent: TableCount, came: TableCount) -> None:
    if sent != came:
        raise MoveUnverified(
            f"{table.name} has {came.rows} rows with the checksum {came.checksum:032x}",
            f"{sent.rows} with {sent.checksum:032x} were sent",
            "nothing was opened; run the command again, or take the move back with --reopen",
        )


def drop_fences(engine: PostgresEngine, tables: Sequence[Table]) -> None:
    """Remove the triggers, which let everybody pass by now. One table after the other, so that nobody waits long; may
    be repeated."""
    for table in tables:
        if not table.declared:
            with engine.session() as session:
                session.connection.execute("SET LOCAL lock_timeout = '2s'")
                session.connection.execute(
                    SQL("DROP TRIGGER IF EXISTS {} ON {}").format(Identifier(TRIGGER), _named(engine, table))
                )


@operation()
def forget_filling(move_id: str) -> Steps[bool]:
    """Take a move back; false if it is not under way here: it was never begun, or it is open."""
    yield from execute("remove_parts", id=move_id)
    return bool((yield from execute("forget_filling", id=move_id)))


def _named(engine: PostgresEngine, table: Table) -> Any:
    return Identifier(engine.schema, table.name)
