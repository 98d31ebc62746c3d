"""Reads the end state of a run on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from psycopg import Connection, sql

from fencerow_proof.check.state import (
    KEYS,
    MUTEXES,
    OURS,
    PUBLISHED,
    RESULT,
    SUBMITTED,
    WINDOWS,
    Shape,
    State,
    result_rows,
)

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
SHAPES = """
    SELECT n.nspname, c.relname,
           array_agg(a.attname::text ORDER BY a.attnum),
           array_agg(a.attname::text) FILTER (
               WHERE a.attidentity <> '' OR pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%%'
           )
    FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE (n.nspname, c.relname) IN (SELECT * FROM unnest(%s::text[], %s::text[]))
    GROUP BY 1, 2
"""
REFERS = """
    SELECT n.nspname, o.relname, a.attname, r.relname, f.attname
    FROM pg_constraint AS c
    JOIN pg_class AS o ON o.oid = c.conrelid
    JOIN pg_namespace AS n ON n.oid = o.relnamespace
    JOIN pg_attribute AS a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
    JOIN pg_class AS r ON r.oid = c.confrelid
    JOIN pg_attribute AS f ON f.attrelid = c.confrelid AND f.attnum = c.confkey[1]
    WHERE c.contype = 'f' AND cardinality(c.conkey) = 1
"""
OURS_ROWS: dict[str, LiteralString] = {
    SUBMITTED: """
        SELECT json_agg(json_build_object('name', name, 'queue', queue, 'args', CAST(args AS text), 'key', key))
        FROM {schema}.all_jobs
        WHERE CAST(id AS text) <> ALL (%(ids)s)
    """,
    PUBLISHED: """
        SELECT json_agg(json_build_object('topic', topic, 'key', key, 'data', data)) FROM {schema}.events
    """,
    KEYS: """
        SELECT json_agg(json_build_object(
            'scope', scope, 'key', key, 'done', done_at IS NOT NULL, 'result', result
        )) FROM {schema}.once_keys
    """,
    WINDOWS: """
        SELECT json_agg(json_build_object('name', name, 'key', key, 'value', value)) FROM {schema}.dedupe_windows
    """,
    MUTEXES: """
        SELECT json_agg(json_build_object('key', key)) FROM {schema}.mutexes WHERE holder IS NOT NULL
    """,
    RESULT: """
        SELECT json_agg(json_build_array(id, result)) FROM {schema}.all_jobs
        WHERE CAST(id AS text) = ANY (%(ids)s) AND state = 'succeeded'
    """,
}


class PostgresReader:
    """Every table but ours and the extensions'."""

    def __init__(self, connection: Connection[Any], schema: str) -> None:
        self._connection = connection
        self._schema = schema

    def state(self, checked: Sequence[str]) -> State:
        names = [
            (str(row[0]), str(row[1])) for row in self._connection.execute(TABLES, [self._schema]).fetchall()
        ]
        shapes = self._shapes(names)
        tables: dict[str, list[dict[str, Any]]] = {}
        for name, rows in self._connection.execute(self._all_rows(names), {"ids": list(checked)}).fetchall():
            tables[str(name)] = rows or []
        tables[RESULT], shapes[RESULT] = result_rows((job, value) for job, value in tables[RESULT])
        return State(tables, shapes)

    def rows(self, table: str) -> list[str]:
        schema, _, name = table.rpartition(".")
        return sorted(repr(row[0]) for row in self._read(schema or "public", name))

    # `t.*`, since plain `t` would be a column of that name, where there is one.
    def _read(self, schema: str, table: str) -> list[Any]:
        wanted = sql.SQL("SELECT row_to_json(t.*) FROM {} AS t").format(sql.Identifier(schema, table))
        return self._connection.execute(wanted).fetchall()

    def _all_rows(self, names: Sequence[tuple[str, str]]) -> sql.Composed:
        """One statement that reads all of them: a check looks often."""
        parts: list[sql.Composable] = [
            sql.SQL("SELECT {}, (SELECT json_agg(row_to_json(t.*)) FROM {} AS t)").format(
                sql.Literal(_shown(*name)), sql.Identifier(*name)
            )
            for name in names
        ]
        schema = sql.Identifier(self._schema)
        parts += [
            sql.SQL("SELECT {}, ({})").format(sql.Literal(name), sql.SQL(text).format(schema=schema))
            for name, text in OURS_ROWS.items()
        ]
        return sql.SQL(" UNION ALL ").join(parts)

    def _shapes(self, names: Sequence[tuple[str, str]]) -> dict[str, Shape]:
        refers: dict[str, dict[str, tuple[str, str]]] = {}
        for schema, table, column, other, key in self._connection.execute(REFERS).fetchall():
            refers.setdefault(_shown(schema, table), {})[str(column)] = (str(other), str(key))
        wanted = [[name[0] for name in names], [name[1] for name in names]]
        found = dict(OURS)
        for schema, table, columns, made in self._connection.execute(SHAPES, wanted).fetchall():
            name = _shown(schema, table)
            found[name] = Shape(tuple(columns), frozenset(made or ()), refers.get(name, {}))
        return found


def _shown(schema: str, table: str) -> str:
    return table if schema == "public" else f"{schema}.{table}"


def user_tables(connection: Connection[Any], schema: str) -> list[str]:
    """The tables that lie in a database and are neither the system's, an extension's, nor of this schema."""
    return [f"{row[0]}.{row[1]}" for row in connection.execute(TABLES, [schema]).fetchall()]
