"""The statements of a look keep plans that were made while nobody waited, and walk over no crowd when it has come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
import pytest
from psycopg import sql

from fencerow.db.due import OWN
from fencerow.db.postgres import PostgresEngine
from fencerow.db.preparing import MEET
from fencerow.db.queries import numbered
from fencerow_proof.servers.pgbouncer import is_pooled
from tests.core.store.test_plans import flat, scans

WAITING = """
INSERT INTO "fencerow".jobs (id, queue, name, state, run_at, attempts_max, crashes_max, snoozes_max, submitted_at,
                             args_bytes, args, limits, gate)
SELECT CAST(lpad(to_hex(n), 32, '0') AS uuid), 'mail', 'send', state, clock_timestamp(), 3, 3, 48, clock_timestamp(),
       2, '{}',
       ARRAY[CASE WHEN n % 200 = 0 THEN 'one' ELSE 'two' END], CASE WHEN state = 'waiting' THEN 'limit:two' END
FROM generate_series(1, 20000) AS n
CROSS JOIN LATERAL (SELECT CASE WHEN n % 200 = 0 THEN 'queued' ELSE 'waiting' END AS state) AS given
"""
GATES = "{limit:one,limit:two}"
GIVEN = {
    "gates": GATES,
    "counted": "{limit:one}",
    "limit": "50",
    "wanted": "20",
    "kept_s": "60",
    "aged_s": "10",
    "soon_s": "0.5",
    "after": "0",
    "due_us": str(OWN.until_us),
    "since_us": str(OWN.since_us),
    "ids": "{" + ",".join(f"{number:032x}" for number in range(1, 21)) + "}",
    "noted": '[{"gate":"limit:two","again_us":null}]',
}
# How many rows of jobs each may look at: 100 have a turn under the one limit, and 20 are asked for under the other.
BOUNDS: Mapping[str, int] = {
    "take_arrivals": 0,
    "gates_beside": 200,
    "count_turns": 110,
    "find_turns": 100,
    "find_alike": 150,
    "give_alike": 150,
    "give_turns": 20,
    "note_gates": 10,
}


def test_a_look_walks_over_no_crowd_that_came_after_its_plans(pg: PostgresEngine) -> None:
    if is_pooled(pg.conninfo):
        pytest.skip("nothing is prepared through a pooler")
    with psycopg.connect(pg.conninfo, autocommit=True) as connection:
        connection.execute(MEET, (connection.info.backend_pid,))
        for name in BOUNDS:
            query = pg.queries[name]
            connection.execute(
                f"PREPARE {name} AS {numbered(query.statements[0], query.parameters)}".encode()
            )
            run(connection, pg, name)
        connection.execute(WAITING.encode())
        connection.execute('INSERT INTO "fencerow".gates (name) SELECT unnest(CAST(%s AS text[]))', (GATES,))
        walked = {name: run(connection, pg, name) for name in BOUNDS}

    assert {name: rows for name, rows in walked.items() if rows > BOUNDS[name]} == {}


def run(connection: psycopg.Connection[Any], engine: PostgresEngine, name: str) -> int:
    """Run it by its plan; what it changes is undone. Rows of jobs that it looked at."""
    values = [GIVEN[each] for each in engine.queries[name].parameters]
    explain = sql.SQL("EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE {} ({})").format(
        sql.Identifier(name), sql.SQL(", ").join(map(sql.Literal, values))
    )
    with connection.transaction(force_rollback=True):
        row = connection.execute(explain).fetchone()
    assert row is not None
    found = scans(flat(row[0][0]["Plan"]), "jobs")
    rows = (
        (each["Actual Rows"] + each.get("Rows Removed by Filter", 0)) * each["Actual Loops"] for each in found
    )
    return int(sum(rows))


KEYED = """
INSERT INTO "fencerow".jobs (id, queue, name, state, run_at, attempts_max, crashes_max, snoozes_max, submitted_at,
                             args_bytes, args, exclusive, gate)
SELECT CAST(lpad(to_hex(n), 32, '0') AS uuid), 'mail', 'send', CASE WHEN n % 2 = 0 THEN 'queued' ELSE 'waiting' END,
       clock_timestamp(), 3, 3, 48, clock_timestamp(), 2, '{}', CAST(n / 2 AS text),
       CASE WHEN n % 2 = 1 THEN 'key:' || n / 2 END
FROM generate_series(1, 20000) AS n
"""
LOOKED_AT = """
SELECT sum(pg_stat_get_xact_tuples_returned(place.oid))
FROM (SELECT CAST('fencerow.jobs' AS regclass) AS oid
      UNION ALL SELECT indexrelid FROM pg_index WHERE indrelid = CAST('fencerow.jobs' AS regclass)) AS place
"""


@pytest.mark.parametrize("kept", [True, False])
def test_a_submit_walks_over_no_crowd_that_came_after_its_plans(pg: PostgresEngine, kept: bool) -> None:
    """The plans of its functions are kept by the server, whether or not it was told to keep those of statements."""
    if kept and is_pooled(pg.conninfo):
        pytest.skip("nothing is prepared through a pooler")
    gates = [f"key:{number}" for number in (3, 70, 90_000)]
    asked = "SELECT * FROM fencerow.lock_free_turns(ARRAY(SELECT fencerow.free_gates(%s, %s, true)))"
    counted = "SELECT * FROM fencerow.lock_free_turns(%s)"
    with psycopg.connect(pg.conninfo, autocommit=True) as connection:
        if kept:
            connection.execute(MEET, (connection.info.backend_pid,))
        for table in ("jobs", "gates", "queues"):
            connection.execute(f"ALTER TABLE fencerow.{table} SET (autovacuum_enabled = false)".encode())
            connection.execute(f"ANALYZE fencerow.{table}".encode())
        for _ in range(10):  # from the sixth on the server may keep a plan for all values
            connection.execute(asked, (gates, ["mail"] * 3))
        connection.execute(KEYED)
        with connection.transaction():
            ((before,),) = connection.execute(LOOKED_AT).fetchall()
            assert connection.execute(asked, (gates, ["mail"] * 3)).fetchall() == [("key:90000",)]
            assert connection.execute(counted, (gates,)).fetchall() == [("key:90000",)]
            ((after,),) = connection.execute(LOOKED_AT).fetchall()
    assert after - before < 20
