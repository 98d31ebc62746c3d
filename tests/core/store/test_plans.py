"""The cost of a claim does not grow with what waits behind it: the plans of the statements that run all day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
import pytest

from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import pyformat
from fencerow.db.run import Param
from fencerow.db.sqlite import SqliteEngine
from fencerow.db.sqlite_connection import bound
from fencerow.testing.postgres import PostgresServer
from tests.conftest import ROLE, postgres_engine
from tests.kit.jobs import register

QUEUED, FUTURE = 20_000, 50_000
NIL = "00000000-0000-0000-0000-000000000000"
# A claim by the own clock, of a queue without limits.
OWN_CLOCK: dict[str, Param] = {"due_us": 0, "since_us": 0, "bounded": 0, "given": []}
LANES = f'[[5,"",0,"{NIL}",10],[0,"",0,"{NIL}",10]]'

FILL = """
INSERT INTO "fencerow".jobs (id, queue, name, priority, run_at, attempts_max, crashes_max, snoozes_max,
                             submitted_at, args_bytes, args)
SELECT CAST(lpad(to_hex(n + {start}), 32, '0') AS uuid), '{queue}', 'send', n % 3,
       clock_timestamp() + n * INTERVAL '1 second' {sign} INTERVAL '{days} days', 3, 3, 48, clock_timestamp(), 2, '{{}}'
FROM generate_series(1, {number}) AS n
"""
RUNNING = """
INSERT INTO "fencerow".jobs (id, queue, name, state, priority, run_at, attempt, attempts_max, crashes_max,
                             snoozes_max, submitted_at, args_bytes, args, holder, claimed_at, deadline_at)
SELECT CAST(lpad(to_hex(n + 900000), 32, '0') AS uuid), 'mail', 'send', 'running', 0, clock_timestamp(), 1, 3, 3, 48,
       clock_timestamp(), 2, '{}', CAST(lpad(to_hex(n % 50), 32, '0') AS uuid), clock_timestamp(),
       clock_timestamp() + INTERVAL '1 hour'
FROM generate_series(1, 2000) AS n
"""


@pytest.fixture(scope="module")
def busy(server: PostgresServer, _template: str) -> Iterator[PostgresEngine]:
    """A database with 20,000 queued jobs, 50,000 for later and 2,000 running, in three lanes of one queue."""
    server.create_database("plans", template=_template)
    engine = postgres_engine(server.conninfo("plans", ROLE))
    with psycopg.connect(engine.conninfo, autocommit=True) as connection:
        for queue, start, number, sign in (
            ("mail", 0, QUEUED, "-"),
            ("mail", 100_000, FUTURE, "+"),
            ("later", 200_000, FUTURE, "+"),
        ):
            text = FILL.format(queue=queue, start=start, number=number, sign=sign, days=1)
            connection.execute(text.encode())
        connection.execute(RUNNING)
        connection.execute('VACUUM ANALYZE "fencerow".jobs')
    yield engine
    engine.close()
    server.drop_database("plans")


def nodes(engine: PostgresEngine, name: str, params: Mapping[str, Param]) -> list[dict[str, Any]]:
    """Every node of the plan that a statement really ran with; what it changed is rolled back."""
    (text,) = engine.queries[name].statements
    with psycopg.connect(engine.conninfo) as connection:
        explain = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + pyformat(text)
        row = connection.execute(explain.encode(), params).fetchone()
        connection.rollback()
    assert row is not None
    return flat(row[0][0]["Plan"])


def flat(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Every node of a plan, the root first."""
    found: list[dict[str, Any]] = []
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting += node.get("Plans", [])
    return found


def scans(plan: list[dict[str, Any]], relation: str) -> list[dict[str, Any]]:
    return [node for node in plan if node.get("Relation Name") == relation and "Scan" in node["Node Type"]]


def touched(plan: list[dict[str, Any]]) -> int:
    """Pages that the whole statement looked at: the root's count includes its children's."""
    return int(plan[0]["Shared Hit Blocks"]) + int(plan[0]["Shared Read Blocks"])


def test_a_claim_walks_its_lane_and_nothing_else(busy: PostgresEngine) -> None:
    holder = register(busy)
    plan = nodes(
        busy,
        "claim",
        {
            "queue": "mail",
            "lanes": LANES,
            "holder": holder,
            "names": ["send"],
            "limit": 10,
            "margin_s": 60.0,
            **OWN_CLOCK,
        },
    )
    used = scans(plan, "jobs")
    assert not [node for node in used if node["Node Type"] == "Seq Scan"]
    (lane,) = [node for node in used if node.get("Index Name") == "jobs_lane"]
    assert (
        "(run_at)::timestamp with time zone <=" in lane["Index Cond"]
        and "(queue)::text = " in lane["Index Cond"]
    )
    assert lane["Actual Rows"] * lane["Actual Loops"] <= 20
    assert not [node for node in plan if node["Node Type"] == "Sort" and node["Actual Rows"] > 10]
    assert touched(plan) < 400


def look_for_later_jobs(engine: PostgresEngine) -> int:
    """Claim from a lane that holds nothing but jobs for later; how many pages it took to find none."""
    plan = nodes(
        engine,
        "claim",
        {
            "queue": "later",
            "lanes": LANES,
            "holder": register(engine),
            "names": ["send"],
            "limit": 10,
            "margin_s": 60.0,
            **OWN_CLOCK,
        },
    )
    assert sum(node["Actual Rows"] * node["Actual Loops"] for node in scans(plan, "jobs")) == 0
    return touched(plan)


def test_a_million_jobs_for_later_cost_a_claim_nothing(busy: PostgresEngine) -> None:
    """A lane that holds nothing but the future is left at its first entry."""
    assert look_for_later_jobs(busy) < 40


def test_a_clock_that_is_no_index_condition_would_walk_them_all(busy: PostgresEngine) -> None:
    slow = postgres_engine(busy.conninfo)
    slow.queries = busy.queries.altered("claim", "run_at <= (SELECT greatest(", "run_at <= (greatest(")
    try:
        assert look_for_later_jobs(slow) > 500
    finally:
        slow.close()


def test_reclaim_finds_a_dead_holders_jobs_by_index(busy: PostgresEngine) -> None:
    dead = "00000000-0000-0000-0000-000000000007"
    plan = nodes(busy, "reclaim", {"dead": [dead], "limit": 100, "actor": None, "deaths_per_crash": 5})
    used = scans(plan, "jobs")
    assert not [node for node in used if node["Node Type"] == "Seq Scan"]
    assert "jobs_holder" in {node.get("Index Name") for node in plan}


@pytest.fixture(scope="module")
def young(server: PostgresServer, _template: str) -> Iterator[PostgresEngine]:
    """A database whose statistics have never seen a running job."""
    server.create_database("plans_young", template=_template)
    engine = postgres_engine(server.conninfo("plans_young", ROLE))
    with psycopg.connect(engine.conninfo, autocommit=True) as connection:
        text = FILL.format(queue="mail", start=0, number=2_000, sign="-", days=1)
        connection.execute(text.encode())
        connection.execute('VACUUM ANALYZE "fencerow".jobs')
    yield engine
    engine.close()
    server.drop_database("plans_young")


SUCCEEDED = '[{"id": "00000000-0000-0000-0000-000000000001", "attempt": 1, "result": "null"}]'


@pytest.mark.parametrize("name", ["succeed_first", "fail", "requeue", "stop"])
def test_outcomes_find_their_rows_by_id(young: PostgresEngine, name: str) -> None:
    plan = nodes(young, name, {"outcomes": SUCCEEDED, "holder": NIL, "awaited_s": 60.0, "alone": 1})
    used = scans(plan, "jobs")
    of_turns = {"jobs_gate", "jobs_turned"} if name == "succeed_first" else set()  # to whom one is passed on
    assert {node.get("Index Name") for node in used} - of_turns == {"jobs_pkey"}


def test_they_walk_all_that_a_holder_ever_ran_when_the_planner_may(young: PostgresEngine) -> None:
    queries = young.queries.altered("succeed", "IS NOT DISTINCT FROM 'running'", "= 'running'")
    free = PostgresEngine(young.conninfo, queries)
    plan = nodes(free, "succeed", {"outcomes": SUCCEEDED, "holder": NIL, "awaited_s": 60.0, "alone": 1})
    assert "jobs_holder" in {node.get("Index Name") for node in scans(plan, "jobs")}
    free.close()


def test_lanes_are_found_by_one_descent_each(busy: PostgresEngine) -> None:
    plan = nodes(busy, "lanes", {"queue": "mail", "names": ["", "suspect:"], "turns_max": 1000})
    used = scans(plan, "jobs")
    assert {node["Index Name"] for node in used} == {"jobs_lane"}
    assert all(node["Actual Rows"] <= 1 for node in used)
    assert touched(plan) < 60


@pytest.mark.parametrize("name", ["outcomes", "read", "read_fences", "existing"])
def test_jobs_are_looked_up_by_primary_key(busy: PostgresEngine, name: str) -> None:
    plan = nodes(busy, name, {"ids": ["00000000-0000-0000-0000-000000000007"]})
    assert {node.get("Index Name") for node in scans(plan, "jobs")} == {"jobs_pkey"}
    assert touched(plan) < 30


def test_a_page_of_the_list_walks_the_primary_key(busy: PostgresEngine) -> None:
    filters = dict.fromkeys(("queue", "name", "states", "scope", "key", "tag", "before_id", "from_id"))
    plan = nodes(busy, "list", {**filters, "live": True, "finished": True, "limit": 50})
    assert not [node for node in scans(plan, "jobs") if node["Node Type"] == "Seq Scan"]
    assert not [node for node in plan if node["Node Type"] == "Sort"], "the halves are merged"
    assert touched(plan) < 300


def test_overdue_jobs_and_expiries_are_found_by_index(busy: PostgresEngine) -> None:
    late = nodes(busy, "time_out", {"limit": 100, "delay_s": 1.0, "actor": None})
    old = nodes(busy, "expire", {"limit": 100, "actor": None})
    assert {node.get("Index Name") for node in scans(late, "jobs")} == {"jobs_pkey"}
    assert "jobs_expiry" in {node.get("Index Name") for node in old}


# --- SQLite ----------------------------------------------------------------------------------------

IDS: dict[str, Param] = {"ids": ["a", "b"]}
SQLITE: dict[str, dict[str, Param]] = {
    "claim": {
        "queue": "m",
        "lanes": LANES,
        "holder": "h",
        "names": ["s"],
        "limit": 10,
        "margin_s": 60.0,
        **OWN_CLOCK,
    },
    "count_suspects": {"holder": "h"},
    "lanes": {"queue": "m", "names": ["", "suspect:"], "turns_max": 10},
    "reclaim": {"dead": ["h"], "limit": 10, "actor": None, "deaths_per_crash": 5},
    "crash": {"outcomes": "[]", "holder": "h"},
    "note_alone": {"id": "a", "holder": "h", "attempt": 1},
    "time_out": {"limit": 10, "delay_s": 1.0, "actor": None},
    "expire": {"limit": 10, "actor": None},
    "holdings": {"holder": "h"},
    "dead_holders": {},
    "outcomes": IDS,
    "read": IDS,
    "read_fences": IDS,
    "existing": IDS,
    "archive": IDS,
    "succeed": {"outcomes": "[]", "holder": "h", "awaited_s": 1.0, "alone": 1},
    "requeue": {"outcomes": "[]", "holder": "h"},
    "fail": {"outcomes": "[]", "holder": "h"},
}
# The one index that each must use for the jobs, where it is not the primary key alone.
INDEX = {
    "claim": "fencerow_jobs_lane",
    "count_suspects": "fencerow_jobs_holder",
    "lanes": "fencerow_jobs_lane",
    "reclaim": "fencerow_jobs_holder",
    "expire": "fencerow_jobs_expiry",
    "holdings": "fencerow_jobs_holder",
    "dead_holders": "fencerow_jobs_holder",
}


def lite_plan(engine: SqliteEngine, name: str) -> list[str]:
    lines = []
    query = engine.queries[name]
    params = bound(SQLITE[name], query.parameters)
    with engine.session() as session:
        for text in query.statements:
            if text.startswith("CREATE TEMP TABLE"):
                session.connection.execute(text)  # what the script keeps for itself
            lines += [str(row[3]) for row in session.connection.execute("EXPLAIN QUERY PLAN " + text, params)]
    return lines


@pytest.mark.parametrize("name", sorted(SQLITE))
def test_sqlite_scans_no_table_of_jobs(lite: SqliteEngine, name: str) -> None:
    plan = lite_plan(lite, name)
    scanned = [
        line
        for line in plan
        if line.startswith("SCAN")
        and "VIRTUAL TABLE" not in line
        and "USING INDEX fencerow_jobs_holder" not in line
        and line.split()[1]
        in {"fencerow_jobs", "fencerow_finished_jobs", "job", "queued", "late", "due", "found"}
    ]
    assert scanned == [], plan
    if name in INDEX:
        assert any(INDEX[name] in line for line in plan), plan


@pytest.mark.parametrize("name", ["claim", "lanes"])
def test_sqlite_sorts_no_backlog(lite: SqliteEngine, name: str) -> None:
    """The only sort that a claim may have is that of its few candidates, outside of the lane's own select, and that
    of a look the shares that it has passed."""
    plan = lite_plan(lite, name)
    sorts = [position for position, line in enumerate(plan) if "TEMP B-TREE" in line]
    if not sorts:
        return
    (sort,) = sorts
    candidates = next(
        number for number, line in enumerate(plan) if line.startswith(("SCAN (subquery", "SCAN shared"))
    )
    assert sort > candidates, plan
