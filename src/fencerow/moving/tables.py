"""Which tables move, and how a value of each of their columns is written: found from the wings and from the databases.

No list names the tables: those that the migrations of all wings make move, but for those of which their wing says why
they stay. How a column moves is decided by its type. A column of a type that nobody knows here, or that one of the
databases lacks, stops the move before anything is changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fencerow.core.schema.rooms import packages
from fencerow.core.wing import Wing, wings
from fencerow.db.migration import migrations
from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import Queries
from fencerow.db.sqlite import SqliteEngine
from fencerow.moving.errors import MoveRefused

CREATED = re.compile(r"^CREATE TABLE fencerow\.(\w+)", re.MULTILINE)
OF_CORE = {"workers": "a worker registers where it works"}
# How a column of this type is read, so that a value says the same in both databases; and how it is written from a part.
READ = {
    "uuid": "CAST({0} AS text)",
    "json": "CAST({0} AS text)",
    "timestamp with time zone": "fencerow.us({0})",
    **dict.fromkeys(
        ("text", "boolean", "smallint", "integer", "bigint", "double precision", "text[]"), "{0}"
    ),
}
WRITTEN = {
    "text": "{0}",
    "boolean": "CAST(CAST({0} AS integer) AS boolean)",
    "timestamp with time zone": "fencerow.at(CAST({0} AS bigint))",
    "text[]": "CASE WHEN {0} IS NOT NULL THEN ARRAY(SELECT jsonb_array_elements_text(CAST({0} AS jsonb))) END",
    **{
        name: f"CAST({{0}} AS {name})"
        for name in ("uuid", "json", "smallint", "integer", "bigint", "double precision")
    },
}


@dataclass(frozen=True, slots=True)
class MovedColumn:
    """A column that moves, and its type on PostgreSQL."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table that moves. `key`: its primary key. `declared`: workers write there at their start. `counter`: the column
    whose values the database counts up."""

    name: str
    columns: tuple[MovedColumn, ...]
    key: tuple[str, ...]
    declared: bool
    counter: str | None


def staying() -> dict[str, str]:
    """The tables whose rows do not move, and why."""
    return OF_CORE | {name: why for wing in wings() for name, why in wing.staying.items()}


def made_tables() -> dict[str, Wing | None]:
    """All tables that the migrations make, and whose they are; None: the core's."""
    owners = {package: wing for wing in wings() for package in wing.queries}
    return {
        table: owners.get(package)
        for package in packages()
        for each in migrations(package, "sqlite")
        for table in CREATED.findall(each.text)
    }


def moving_tables(source: SqliteEngine, target: PostgresEngine) -> list[Table]:
    """The tables that move between these two databases.

    Raises:
        MoveRefused: nobody knows how a column of them moves.
    """
    stays = staying()
    found = _source_columns(source), _target_columns(target)
    return [
        _table(name, wing, *(each.get(name, {}) for each in found))
        for name, wing in made_tables().items()
        if name not in stays
    ]


def _table(
    name: str, wing: Wing | None, here: Mapping[str, Sequence[Any]], there: Mapping[str, Sequence[Any]]
) -> Table:
    plain = {column: row for column, row in here.items() if not row[2]}
    wanted = {column: row for column, row in there.items() if not row[2]}
    # What only the new database has is filled in by the wing, which says so.
    if missing := set(plain) - set(wanted) or (
        set(wanted) - set(plain) if not (wing and wing.came) else set()
    ):
        raise _unknown(f"{name}.{min(missing)}", "only one of the two databases has it")
    if odd := sorted(column for column in plain if wanted[column][1] not in READ):
        raise _unknown(f"{name}.{odd[0]}", f"its type is {wanted[odd[0]][1]}")
    key = tuple(column for column, row in sorted(here.items(), key=lambda each: int(each[1][1])) if row[1])
    return Table(
        name,
        tuple(MovedColumn(column, str(wanted[column][1])) for column in plain),
        key,
        declared=wing is not None and name in wing.declared,
        counter=next((column for column, row in wanted.items() if row[3]), None),
    )


def _unknown(what: str, why: str) -> MoveRefused:
    return MoveRefused(
        f"nobody knows how {what} is moved",
        why,
        "run `fencerow migrate` on both; a column that is not ours must be dropped first",
    )


def _source_columns(engine: SqliteEngine) -> dict[str, dict[str, tuple[object, ...]]]:
    """By table and column: the name, its place in the primary key, and whether it is computed."""
    with engine.session() as session:
        return {
            name: {
                str(row[0]): row
                for row in session.connection.execute(
                    "SELECT name, pk, hidden IN (2, 3) FROM pragma_table_xinfo(?)",
                    (f"{engine.prefix}{name}",),
                )
            }
            for name in made_tables()
        }


def _target_columns(engine: PostgresEngine) -> dict[str, dict[str, tuple[object, ...]]]:
    """By table and column: the name, its type, whether it is computed, and whether the database counts it up."""
    found: dict[str, dict[str, tuple[object, ...]]] = {}
    with engine.session() as session:
        rows = session.connection.execute(
            "SELECT one.relname, field.attname, format_type(COALESCE(NULLIF(kind.typbasetype, 0), kind.oid), -1),"
            " field.attgenerated <> '', field.attidentity <> '' FROM pg_attribute AS field"
            " JOIN pg_class AS one ON one.oid = field.attrelid JOIN pg_type AS kind ON kind.oid = field.atttypid"
            " WHERE one.relnamespace = to_regnamespace(%s) AND field.attnum > 0 AND NOT field.attisdropped"
            " AND one.relkind IN ('r', 'p') AND NOT one.relispartition ORDER BY field.attnum",
            (f'"{engine.schema}"',),
        ).fetchall()
    for table, *row in rows:
        found.setdefault(str(table), {})[str(row[0])] = tuple(row)
    return found


def read_text(queries: Queries, table: Table) -> str:
    """The SELECT that reads all rows of a table of the new database, as the old one has them."""
    listed = ", ".join(READ[column.type].format(f'"{column.name}"') for column in table.columns)
    return _renamed(queries, f"SELECT {listed} FROM {queries.name_of(table.name)}")  # noqa: S608 (names of ours)


def write_text(queries: Queries, table: Table) -> str:
    """The INSERT that puts the rows of one part into a table."""
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    values = ", ".join(
        WRITTEN[column.type].format(f"(one.fields ->> {place})") for place, column in enumerate(table.columns)
    )
    return _renamed(
        queries,
        f"INSERT INTO {queries.name_of(table.name)} ({names}) OVERRIDING SYSTEM VALUE SELECT {values} {_part(queries)}",
    )


def make_room_text(queries: Queries, table: Table) -> str:
    """The DELETE of rows that workers have declared, in favour of those of a part."""
    places = {column.name: place for place, column in enumerate(table.columns)}
    types = {column.name: column.type for column in table.columns}
    same = " AND ".join(
        f'there."{name}" = ' + WRITTEN[types[name]].format(f"(one.fields ->> {places[name]})")
        for name in table.key
    )
    return _renamed(
        queries,
        f"DELETE FROM {queries.name_of(table.name)} AS there USING ({_part(queries, 'SELECT one.fields')}) AS one"  # noqa: S608
        f" WHERE {same}",
    )


def _part(queries: Queries, head: str = "") -> str:
    return (
        f"{head} FROM {queries.name_of('move_parts')} AS part, jsonb_array_elements(part.rows) AS one (fields)"
        " WHERE part.move_id = CAST(%(id)s AS uuid) AND part.table_name = %(table)s"
        " AND part.first_row = %(first)s"
    ).strip()


def _renamed(queries: Queries, text: str) -> str:
    return re.sub(r"\bfencerow\.(us|at)\(", lambda found: f"{queries.name_of(found[1])}(", text)
