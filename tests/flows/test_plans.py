"""A list of flows for some queues passes no flow of others over, however many there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import psycopg
import pytest

from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Param
from fencerow.db.sqlite import SqliteEngine
from fencerow.db.sqlite_connection import bound
from fencerow.flows.looking import LAST, LATEST_US
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.servers.pgbouncer import is_pooled
from tests.conftest import ROLE, postgres_engine
from tests.core.store.test_kept_plans import kept_plan, prepared, run_through
from tests.core.store.test_plans import RUNNING, nodes, scans, touched

NAME = "list_flows_within"
PARAMS: Mapping[str, Param] = {
    "queues": ["mail", "own"],
    "before_us": LATEST_US,
    "before": LAST,
    "live": 0,
    "flow": None,
    "limit": 20,
}
# Of 20,000 flows, in 20 lists of queues, every hundredth is in these two queues: the oldest ones.
FLOWS = """
INSERT INTO fencerow.flows (id, name, digest, submit_id, jobs, queues, submitted_at)
SELECT CAST(lpad(to_hex(n), 32, '0') AS uuid), 'f', 'x', gen_random_uuid(), 1,
       CASE WHEN n <= 200 THEN ARRAY['mail', 'own'] ELSE ARRAY['mail', 'q' || n % 19] END,
       clock_timestamp() - (30000 - n) * INTERVAL '1 s'
FROM generate_series(1, 20000) AS n;
INSERT INTO fencerow.flow_jobs (job_id, flow_id, name, job_name, place, level, stage, is_read)
SELECT flow.id, flow.id, 'a', 'a', 0, 0, false, false FROM fencerow.flows AS flow;
ANALYZE fencerow.flows; ANALYZE fencerow.flow_jobs
"""
HOLDER = f"{7:032x}"
OUTCOME = f'[{{"id": "{900_007:032x}", "attempt": 1, "result": "1"}}]'


@pytest.fixture(scope="module")
def crowded(server: PostgresServer, _template: str) -> Iterator[PostgresEngine]:
    server.create_database("crowded_flows", template=_template)
    engine = postgres_engine(server.conninfo("crowded_flows", ROLE))
    with psycopg.connect(engine.conninfo, autocommit=True) as connection:
        connection.execute(FLOWS.encode())
    yield engine
    engine.close()
    server.drop_database("crowded_flows")


def test_it_goes_from_list_to_list_by_the_index(crowded: PostgresEngine) -> None:
    plan = nodes(crowded, NAME, PARAMS)

    assert plan[0]["Actual Rows"] == 20
    assert [
        each for each in plan if each.get("Relation Name") == "flows" and each["Node Type"] == "Seq Scan"
    ] == []
    assert touched(plan) < 1_000, "20 steps from list to list, 20 flows, and a job of each"


def test_an_end_that_was_planned_before_the_first_flow_walks_none_of_their_jobs(pg: PostgresEngine) -> None:
    if is_pooled(pg.conninfo):
        pytest.skip("nothing is prepared through a pooler")
    run_through(pg)
    with psycopg.connect(pg.conninfo, autocommit=True) as connection:
        connection.execute(FLOWS.partition("ANALYZE")[0].encode())

    with prepared(pg) as connection:
        connection.execute(RUNNING)
        plan = kept_plan(connection, pg, "succeed", outcomes=OUTCOME, holder=HOLDER)

    looks = scans(plan, "flow_jobs")
    assert sum(each["Actual Loops"] for each in looks) == 1, (
        "one look for all that ended, and they are of no flow"
    )
    assert all(each["Actual Rows"] + each.get("Rows Removed by Filter", 0) == 0 for each in looks)


def test_sqlite_goes_by_the_index(lite: SqliteEngine) -> None:
    query = lite.queries[NAME]
    params = bound(PARAMS, query.parameters)
    with lite.session() as session:
        rows = session.connection.execute("EXPLAIN QUERY PLAN " + query.statements[0], params).fetchall()
    plan = [str(row[3]) for row in rows]

    assert [line for line in plan if line.startswith("SCAN") and line.split()[1] in {"flow", "near"}] == [], (
        plan
    )
    assert sum("fencerow_flows_queues" in line for line in plan) == 3, plan
