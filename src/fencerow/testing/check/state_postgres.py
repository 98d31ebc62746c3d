"""Reads the end state of a run on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import Connection, sql

from fencerow.testing.check.state import SUBMITTED, Shape, State

TABLES = """
    SELECT n.nspname, c.relname
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
      AND n.nspname NOT IN ('pg_catalog', 'information_schema', %s) AND n.nspname NOT LIKE 'pg\\_%%'
      AND NOT EXISTS (
          SELECT 1 FROM pg_depend AS d
          WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
      )
    ORDER BY 1, 2
"""
COLUMNS = """
    SELECT a.attname, a.attidentity <> '' OR coalesce(pg_get_expr(d.adbin, d.adrelid), '') LIKE 'nextval(%%'
    FROM pg_attribute AS a LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = CAST(%s AS regclass) AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum
"""
REFERS = """
    SELECT a.attname, r.relname, f.attname
    FROM pg_constraint AS c
    JOIN pg_attribute AS a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
    JOIN pg_class AS r ON r.oid = c.confrelid
    JOIN pg_attribute AS f ON f.attrelid = c.confrelid AND f.attnum = c.confkey[1]
    WHERE c.contype = 'f' AND cardinality(c.conkey) = 1 AND c.conrelid = CAST(%s AS regclass)
"""
JOBS = "SELECT name, queue, CAST(args AS text), key FROM {}.all_jobs WHERE CAST(id AS text) <> ALL(%s) ORDER BY id"


class PostgresReader:
    """Every table but ours and the extensions'."""

    def __init__(self, connection: Connection[Any], schema: str) -> None:
        self._connection = connection
        self._schema = schema
        self._shapes: dict[str, Shape] = {}

    def state(self, checked: Sequence[str]) -> State:
        tables: dict[str, list[dict[str, Any]]] = {}
        shapes: dict[str, Shape] = {}
        for schema, table in self._connection.execute(TABLES, [self._schema]).fetchall():
            name = table if schema == "public" else f"{schema}.{table}"
            shapes[name] = self._shape(schema, table)
            tables[name] = [row[0] for row in self._read(schema, table)]
        shapes[SUBMITTED] = Shape(("name", "queue", "args", "key"))
        wanted = sql.SQL(JOBS).format(sql.Identifier(self._schema))
        tables[SUBMITTED] = [
            dict(zip(shapes[SUBMITTED].columns, row, strict=True))
            for row in self._connection.execute(wanted, [list(checked)]).fetchall()
        ]
        return State(tables, shapes)

    def rows(self, table: str) -> list[str]:
        schema, _, name = table.rpartition(".")
        return sorted(repr(row[0]) for row in self._read(schema or "public", name))

    def _read(self, schema: str, table: str) -> list[Any]:
        wanted = sql.SQL("SELECT row_to_json(t) FROM {} AS t").format(sql.Identifier(schema, table))
        return self._connection.execute(wanted).fetchall()

    def _shape(self, schema: str, table: str) -> Shape:
        name = sql.Identifier(schema, table).as_string(self._connection)
        columns = self._connection.execute(COLUMNS, [name]).fetchall()
        refers = self._connection.execute(REFERS, [name]).fetchall()
        return Shape(
            tuple(str(row[0]) for row in columns),
            frozenset(str(row[0]) for row in columns if row[1]),
            {str(row[0]): (str(row[1]), str(row[2])) for row in refers},
        )


def user_tables(connection: Connection[Any], schema: str) -> list[str]:
    """The tables that lie in a database and are neither the system's, an extension's, nor of this schema."""
    return [f"{row[0]}.{row[1]}" for row in connection.execute(TABLES, [schema]).fetchall()]
