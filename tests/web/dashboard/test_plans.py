"""What pages that stay open ask for is read along an index: its cost does not grow with how many jobs there are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import psycopg
import pytest
from psycopg import sql

import fencerow.web.dashboard.counting
import fencerow.web.webhooks.looking  # noqa: F401
from fencerow.core.store.tables import postgres_queries
from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import numbered, pyformat
from tests.kit.jobs import new_job, submit

JOBS = 3_000
EVERY = dict.fromkeys(("queue", "name", "states", "scope", "key", "before_id", "from_id"))
LIVE = {**EVERY, "limit": 50, "states": ["queued"], "live": True, "finished": False}
FAILED = {**EVERY, "limit": 50, "states": ["failed"], "live": False, "finished": True}


HOLDER = "00000000-0000-7000-8000-000000000001"
# A third of the jobs runs; 6,000 deliveries to 3 endpoints.
MANY = f"""
UPDATE fencerow.jobs SET state = 'running', holder = '{HOLDER}', attempt = 1, claimed_at = now() WHERE share IS NULL;
INSERT INTO fencerow.webhook_endpoints
    (id, name, url, secret, events, with_result, in_order, timeout_s, attempts_max, state, created_at, changed_at)
SELECT CAST(lpad(CAST(n AS text), 32, '0') AS uuid), n, 'https://x.example', 'x', '[]', false, 'none', 10, 20,
       'enabled', now(), now()
FROM generate_series(1, 3) AS n;
INSERT INTO fencerow.webhook_deliveries
    (endpoint_id, event_id, webhook_id, topic, ended_id, body, job_id, created_at, attempts, delivered_at)
SELECT CAST(lpad(CAST(1 + n % 3 AS text), 32, '0') AS uuid), n, n, 'job.succeeded', gen_random_uuid(), repeat('x', 500),
       gen_random_uuid(), now(), 1, now()
FROM generate_series(1, 6000) AS n
"""
# What pages ask, and how many rows and buffers its scans may bring, in a plan that is kept and so fits all values.
READS: tuple[tuple[str, dict[str, object], int], ...] = (
    ("counted_live", {"limit": 1000}, 2100),
    ("shares_page", {"queue": "", "share": "", "limit": 6, "most": 21}, 400),
    ("list_newest_deliveries", {"name": None, "before": 2**63 - 1, "behind": None, "limit": 21}, 150),
)


def rows_of(plan: Mapping[str, Any]) -> int:
    """How many rows the scans of a plan have brought."""
    mine = plan["Actual Rows"] * plan["Actual Loops"] if "Relation Name" in plan else 0
    return int(mine) + sum(map(rows_of, plan.get("Plans", ())))


def read_by(connection: psycopg.Connection, name: str, params: Mapping[str, object]) -> int:
    """How many rows and buffers a query reads by a plan that is kept."""
    (text,) = postgres_queries()[name].statements
    connection.execute(f"PREPARE {name} AS {numbered(text, tuple(params))}".encode())
    values = sql.SQL(", ").join(sql.Literal(each) for each in params.values())
    row = connection.execute(
        sql.SQL("EXPLAIN (ANALYZE, BUFFERS, TIMING off, FORMAT json) EXECUTE {}({})").format(
            sql.Identifier(name), values
        )
    ).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    return rows_of(plan) + int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def scanned(plan: Mapping[str, Any]) -> set[tuple[str, str]]:
    """The job tables that the plan reads, and how."""
    table = str(plan.get("Relation Name", ""))
    found = {(table, plan["Node Type"])} if table == "jobs" or table.startswith("finished") else set()
    return found.union(*map(scanned, plan.get("Plans", ())))


def plan_of(pg: PostgresEngine, name: str, params: Mapping[str, Any]) -> set[tuple[str, str]]:
    (text,) = postgres_queries()[name].statements
    with psycopg.connect(pg.conninfo, autocommit=True) as connection:
        connection.execute("ANALYZE fencerow.jobs")
        row = connection.execute(f"EXPLAIN (FORMAT json) {pyformat(text)}".encode(), params).fetchone()
    assert row is not None
    (whole,) = row[0] if isinstance(row[0], list) else json.loads(row[0])
    return scanned(whole["Plan"])


@pytest.mark.parametrize(
    ("name", "params"), [("counted_live", {"limit": 100}), ("latest_failures", {"limit": 8}), ("list", LIVE)]
)
def test_no_page_walks_through_all_jobs(pg: PostgresEngine, name: str, params: Mapping[str, Any]) -> None:
    submit(pg, *(new_job(delay_s=3600.0 * (n % 2)) for n in range(JOBS)))
    found = plan_of(pg, name, params)

    assert not {each for each in found if each == ("jobs", "Seq Scan")}


def test_what_a_page_reads_does_not_grow_with_how_many_there_are(pg: PostgresEngine) -> None:
    submit(pg, *(new_job(share=f"tenant-{n % 4}" if n % 3 else None) for n in range(JOBS)))
    with psycopg.connect(pg.conninfo, autocommit=True) as connection:
        connection.execute(MANY.encode())
        connection.execute("VACUUM ANALYZE")
        connection.execute("SET plan_cache_mode = force_generic_plan")
        row = connection.execute(
            "SELECT CAST(id AS text) FROM fencerow.jobs ORDER BY id DESC OFFSET 49 LIMIT 1"
        ).fetchone()
        assert row is not None
        # What hardly any job has, over a part of the time.
        rare = {**EVERY, "name": "rare", "from_id": row[0], "limit": 51, "live": True, "finished": True}
        reads = (*READS, ("list", rare, 300))
        found = {name: (read_by(connection, name, params), most) for name, params, most in reads}

    assert all(read <= most for read, most in found.values()), found


def test_who_looks_for_jobs_that_ended_reads_no_live_ones_and_the_other_way_round(pg: PostgresEngine) -> None:
    assert {table for table, _ in plan_of(pg, "list", FAILED)} == {"finished_kept"}
    assert {table for table, _ in plan_of(pg, "list", LIVE)} == {"jobs"}
