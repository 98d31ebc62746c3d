"""What pages that stay open ask for is read along an index: its cost does not grow with how many jobs there are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import psycopg
import pytest

import fencerow.web.dashboard.counting  # noqa: F401
from fencerow.core.db.postgres import PostgresEngine
from fencerow.core.db.queries import pyformat
from fencerow.core.store.tables import postgres_queries
from tests.kit.jobs import new_job, submit

JOBS = 3_000
EVERY = dict.fromkeys(("queue", "name", "states", "scope", "key", "before_id"))
LIVE = {**EVERY, "limit": 50, "states": ["queued"], "live": True, "finished": False}
FAILED = {**EVERY, "limit": 50, "states": ["failed"], "live": False, "finished": True}


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


def test_who_looks_for_jobs_that_ended_reads_no_live_ones_and_the_other_way_round(pg: PostgresEngine) -> None:
    assert {table for table, _ in plan_of(pg, "list", FAILED)} == {"finished_kept"}
    assert {table for table, _ in plan_of(pg, "list", LIVE)} == {"jobs"}
