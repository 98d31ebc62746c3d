"""To give events their places reads the new events and the gaps, however long the log behind them is."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql

from fencerow.db.postgres import PostgresEngine
from fencerow.db.preparing import MEET
from fencerow.db.queries import numbered
from fencerow_proof.servers.pgbouncer import is_pooled
from tests.core.store.test_plans import flat, scans

LOG, NEW = 20_000, 100
EVENTS = """
INSERT INTO fencerow.events (seq, topic, bucket, data, bytes, published_at)
SELECT {}, 't', 0, '{{}}', 2, clock_timestamp() FROM generate_series(1, {}) AS n"""
LATE = 7_000  # an event in a gap, far behind the others
GIVEN = {"mark": f"{LOG}", "lows": f"{{{LATE},9000}}", "highs": f"{{{LATE},9009}}", "limit": "1000"}


@pytest.mark.parametrize("analyzed", [False, True], ids=["unknown to the planner", "analyzed"])
def test_giving_places_walks_no_event_that_has_one(pg: PostgresEngine, analyzed: bool) -> None:
    if is_pooled(pg.conninfo):
        pytest.skip("the settings are those of a connection that leads to the server itself")
    query = pg.queries["sequence_events"]
    with psycopg.connect(pg.conninfo, autocommit=True) as connection:
        connection.execute("ALTER TABLE fencerow.events SET (autovacuum_enabled = false)")
        connection.execute(EVENTS.format("n", LOG).encode())
        connection.execute("UPDATE fencerow.events SET seq = NULL WHERE id = %s", (LATE,))
        if analyzed:
            connection.execute("ANALYZE fencerow.events")
        connection.execute(EVENTS.format("NULL", NEW).encode())
        connection.execute(MEET, (connection.info.backend_pid,))
        connection.execute(f"PREPARE looks AS {numbered(query.statements[0], query.parameters)}".encode())

        given = sql.SQL(", ").join(sql.Literal(GIVEN[name]) for name in query.parameters)
        explain = sql.SQL("EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE looks ({})").format(given)
        row = connection.execute(explain).fetchone()
        placed = connection.execute("SELECT count(*) FROM fencerow.events WHERE seq > %s", (LOG,)).fetchone()

    assert row is not None and placed == (NEW + 1,)
    read = sum(
        (each["Actual Rows"] + each.get("Rows Removed by Filter", 0)) * each["Actual Loops"]
        for each in scans(flat(row[0][0]["Plan"]), "events")
    )
    assert read < 5 * NEW
