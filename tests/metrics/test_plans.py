"""The look stops at its bounds: PostgreSQL walks an index in its order, and gathers no lane as a whole."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from fencerow.core.store.tables import postgres_queries
from fencerow.db.postgres import PostgresEngine
from tests.kit.jobs import new_job, submit

JOBS = 3_000
WALKS = {"Index Scan", "Index Only Scan"}


def scans(plan: dict[str, Any]) -> set[str]:
    """How the plan reads the jobs."""
    found = {plan["Node Type"]} if plan.get("Relation Name") == "jobs" else set()
    return found.union(*map(scans, plan.get("Plans", ())))


@pytest.mark.parametrize("name", ["metrics_lanes", "metrics_running", "metrics_waiting"])
def test_a_count_reads_no_more_than_its_bound(pg: PostgresEngine, name: str) -> None:
    submit(pg, *(new_job(delay_s=3600.0 * (n % 2)) for n in range(JOBS)))
    (text,) = postgres_queries()[name].statements
    for parameter, value in (("jobs_max", "100"), ("lanes_max", "2000")):
        text = text.replace(f"%({parameter})s", value).replace(f":{parameter}", value)

    with psycopg.connect(pg.conninfo, autocommit=True) as connection:
        connection.execute("ANALYZE fencerow.jobs")
        (document,) = connection.execute(f"EXPLAIN (FORMAT json) {text}".encode()).fetchone() or ("",)

    (whole,) = document if isinstance(document, list) else json.loads(document)
    assert scans(whole["Plan"]) <= WALKS
