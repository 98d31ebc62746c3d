"""Plans that were made when a database was empty, and analyzed so, do not compare each row with each once it is full.

Every statement is planned there, with values that are guessed from the names and types of its parameters. Rows are
counted, never seconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest
from psycopg import sql

from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import Query, numbered
from fencerow.testing.postgres import PostgresServer
from tests.conftest import ROLE, postgres_engine
from tests.core.store.test_plans import flat
from tests.core.store.test_understood import OF_A_MIGRATION, READS_OR_WRITES
from tests.kit.stored import FILL, HOLDER, MANY, NAMED, nth

TABLE = 4 * MANY  # rows of what is stored about jobs
PLAYED = 550  # at least; what no guessed value fits is not played
# What follows an end is joined with the ended jobs. By a row's place the end would be lost that meets another
# change of its row, and an array beside the join would cost each end, also of jobs without any such row. The next
# ANALYZE of that table ends such a plan. `find_unused_turns` is a look of maintenance.
KNOWN = {"succeed", "succeed_first", "archive", "revive", "find_unused_turns"}
# What names a row or takes a few walks no table, also where a partial index has all that lies there.
BY_NAME = (
    *("fetch_args", "check_fence", "take_handovers", "confirm_handover", "release_handover"),
    *("hold_unique", "read_unique", "overlapping", "hold_flow_jobs", "purge_handovers", "wake"),
)

DOCUMENT = re.compile(r"json_to_recordset\(\s*CAST\(:(\w+) AS json\)\s*\)\s*AS\s+\w+\s*\((.*?)\)", re.DOTALL)
IN_US = 1_800_000_000_000_000
WORDS: dict[str, str | None] = {
    "queue": "mail",
    "name": "send",
    "state": "failed",
    "kind": "replaced",
    "receiver": "bot",
    "scope": "s",
    "target": "t",
    "owner": "o",
    "signal": "w",
    "table": "jobs",
    "outcome": "failed",
    "policy": "needs",
    "limit": "10",
    "look": "10",
    "most": "10",
    "wanted": "1",
    "beside": "10",
    "attempt": "1",
    "part": "0",
    "age_s": "0",
    "names": "{send}",
    "besides": "{}",
    "queues": "{mail}",
    "states": "{failed}",
    "holder": HOLDER,
    "lanes": f'[[0,"",0,"{nth(0)}",10]]',
    **dict.fromkeys(("actor", "reason", "only", "correlation", "trace", "person")),
}
FROM, TO = NAMED[0], NAMED[0] + 100
BOUNDS = {
    "after": FROM,
    "behind": FROM,
    "after_id": FROM,
    "from_id": FROM,
    "last": TO,
    "before": TO,
    "before_id": TO,
}


@dataclass(frozen=True)
class Walked:
    """How many rows a statement looked at: by its plan of the empty database, and after ANALYZE."""

    then: int
    now: int


def listed(values: Iterator[str] | list[str]) -> str:
    return "{" + ",".join(values) + "}"


def value(name: str, kind: str, text: str) -> str | None:
    """What might be given for this parameter: it names rows that are there."""
    documents = {found[1]: found[2] for found in DOCUMENT.finditer(text)}
    if name in documents:
        columns = [each.split(None, 1) for each in " ".join(documents[name].split()).split(", ")]
        return json.dumps([{key: field(key, type_, at) for key, type_ in columns} for at in NAMED])
    if f"json_array_elements_text(CAST(:{name} AS json" in text:
        return json.dumps([nth(at) if name in {"ids", "live"} else str(at) for at in NAMED])
    if name in BOUNDS:
        return nth(BOUNDS[name]) if kind == "uuid" else str(BOUNDS[name])
    if name in WORDS:
        return WORDS[name]
    gate = "key:" if "gate" in name else ""
    return {
        "uuid": nth(FROM),
        "uuid[]": listed(nth(at) for at in NAMED),
        "text[]": listed(f"{gate}{at}" for at in NAMED),
        "bigint[]": listed(map(str, NAMED)),
        "integer[]": listed(map(str, NAMED)),
        "boolean": "t",
        "double precision": "60",
        "json": "{}",
        "jsonb": "{}",
    }.get(kind, str(IN_US) if name.endswith("_us") else f"{gate}{FROM}")


def field(name: str, kind: str, at: int) -> object:
    """The same for a field of a document."""
    if name == "holder":
        return HOLDER
    if kind == "uuid" or name == "id":
        return nth(at)
    if kind in {"bigint", "integer", "smallint"}:
        return IN_US if name.endswith("_us") else at if name in {"event_id", "seq", "place"} else 1
    others = {"double precision": 1.0, "boolean": True, "json": {}, "jsonb": {}, "text[]": [str(at)]}
    return others[kind] if kind in others else WORDS.get(name, f"key:{at}" if name == "gate" else str(at))


def prepared(connection: psycopg.Connection[tuple[object, ...]], query: Query) -> sql.Composed | None:
    """A call of the statement, of which the server keeps the plan from now on; None: no value fits."""
    (text,) = query.statements
    connection.execute(f"PREPARE {query.name} AS {numbered(text, query.parameters)}".encode())
    asked = "SELECT CAST(parameter_types AS text[]) FROM pg_prepared_statements WHERE name = %s"
    row = connection.execute(asked, (query.name,)).fetchone()
    assert row is not None and isinstance(row[0], list)
    values = [value(name, kind, text) for name, kind in zip(query.parameters, row[0], strict=True)]
    call = sql.SQL("EXECUTE {}").format(sql.Identifier(query.name))
    if values:
        call += sql.SQL(" ({})").format(sql.SQL(", ").join(map(sql.Literal, values)))
    return call if rows_of(connection, call) is not None else None


def rows_of(connection: psycopg.Connection[tuple[object, ...]], call: sql.Composed) -> int | None:
    """How many rows it looks at; None: the values do not fit. What it changes is rolled back."""
    explain = sql.SQL("EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ") + call
    try:
        with connection.transaction(force_rollback=True):
            row = connection.execute(explain).fetchone()
    except psycopg.errors.QueryCanceled:
        return 1_000 * TABLE  # it would go on
    except psycopg.Error:
        return None
    assert row is not None and isinstance(row[0], list)
    looked_at: int = sum(
        (
            node["Actual Rows"]
            * (node["Node Type"].endswith(("Index Scan", "Index Only Scan", "Heap Scan", "Seq Scan")))
            + node.get("Rows Removed by Filter", 0)
            + node.get("Rows Removed by Join Filter", 0)
        )
        * node["Actual Loops"]
        for node in flat(row[0][0]["Plan"])
    )
    return looked_at


def plain(query: Query) -> bool:
    """One statement that reads or writes rows."""
    odd = query.spells or query.copies or OF_A_MIGRATION.search(query.name)
    return not odd and len(query.statements) == 1 and bool(READS_OR_WRITES.match(query.statements[0]))


def walked(engine: PostgresEngine) -> dict[str, Walked]:
    with psycopg.connect(engine.conninfo, autocommit=True) as connection:
        for setting in ("plan_cache_mode = force_generic_plan", "enable_seqscan = off", "seq_page_cost = 0"):
            connection.execute(f"SET {setting}".encode())
        connection.execute("SET jit = off; SET statement_timeout = '20s'")
        tables = (
            "SELECT relname FROM pg_class WHERE relnamespace = 'fencerow'::regnamespace AND relkind = 'r'"
        )
        for (table,) in connection.execute(tables).fetchall():
            connection.execute(f"ALTER TABLE fencerow.{table} SET (autovacuum_enabled = false)".encode())
        connection.execute("ANALYZE")
        calls = {
            query.name: call
            for query in engine.queries.values()
            if plain(query) and (call := prepared(connection, query)) is not None
        }
        for text in FILL:
            connection.execute(text.encode())
        then = {name: rows_of(connection, call) for name, call in calls.items()}
        connection.execute("ANALYZE")
        now = {name: rows_of(connection, calls[name]) for name in then}
    return {
        name: Walked(rows, beside)
        for name, rows in then.items()
        if rows is not None and (beside := now[name]) is not None
    }


@pytest.fixture(scope="module")
def found(server: PostgresServer, _template: str) -> Iterator[dict[str, Walked]]:
    server.create_database("once_empty", template=_template)
    engine = postgres_engine(server.conninfo("once_empty", ROLE))
    yield walked(engine)
    engine.close()
    server.drop_database("once_empty")


def test_no_statement_compares_each_row_with_each(found: dict[str, Walked]) -> None:
    each_with_each = {name: rows for name, rows in found.items() if rows.then > 3 * rows.now + 4 * TABLE}

    assert set(each_with_each) <= KNOWN, each_with_each
    assert len(found) > PLAYED


@pytest.mark.parametrize("name", BY_NAME)
def test_what_names_its_rows_walks_no_table(found: dict[str, Walked], name: str) -> None:
    assert found[name].then < max(MANY // 2, found[name].now)
