"""A plan that was kept since the tables were empty serves them as well when they are full."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from fencerow.core.store import store
from fencerow.core.store.attempts import Success
from fencerow.core.store.claims import NIL, Mark
from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import numbered, pyformat
from fencerow_proof.servers.pgbouncer import is_pooled
from tests.core.store.test_plans import FILL, OWN_CLOCK, RUNNING, flat, nodes, scans, touched
from tests.house.tree import ROOT
from tests.kit.jobs import new_job, register

BACKLOG = 20_000
PAGE = ROOT / "docs" / "postgresql.md"
MARKS = {  # by what each prepared statement is found, and parameters that do some work
    "claim": (
        "CAST(json_agg(json_build_array(\n",
        {"queue": "mail", "lanes": f'[[0,"",0,"{NIL}",10]]', "names": "{send}"},
    ),
    "lanes": ("RECURSIVE level", {"queue": "mail", "names": '{"",suspect:}', "turns_max": "1000"}),
    "succeed": ('INTO "fencerow".spent_ids', {"outcomes": f'[{{"id":"{NIL}","attempt":1,"result":"1"}}]'}),
}
CALLED = re.compile(r"fencerow\.(?:now|us|at|seconds|later)\(")
NUMBERS = {
    "holder": NIL,
    "limit": "10",
    "margin_s": "60",
    "awaited_s": "300",
    "alone": "1",
    **OWN_CLOCK,
}


@pytest.fixture
def grown(pg: PostgresEngine) -> PostgresEngine:
    """An engine that prepared its statements on empty tables, which hold a backlog now that nobody has analyzed."""
    if is_pooled(pg.conninfo):
        pytest.skip("nothing is prepared through a pooler")
    with psycopg.connect(pg.conninfo, autocommit=True) as connection:
        connection.execute('ALTER TABLE "fencerow".jobs SET (autovacuum_enabled = false)')
        connection.execute('VACUUM "fencerow".jobs')  # it knows now that there is not a single page
    run_through(pg)
    with psycopg.connect(pg.conninfo, autocommit=True) as connection:
        text = FILL.format(queue="mail", start=0, number=BACKLOG, sign="-", days=1)
        connection.execute(text.encode())
    return pg


@pytest.fixture(params=[0, 3])
def idle(pg: PostgresEngine, request: pytest.FixtureRequest) -> PostgresEngine:
    """The same where the queue was in use and was analyzed when it was idle: of 10,000 jobs few are left, for later."""
    if is_pooled(pg.conninfo):
        pytest.skip("nothing is prepared through a pooler")
    left, backlog = ({"queue": "mail", "start": start, "days": 1} for start in (700_000, 0))
    with psycopg.connect(pg.conninfo, autocommit=True) as connection:
        connection.execute('ALTER TABLE "fencerow".jobs SET (autovacuum_enabled = false)')
        connection.execute(FILL.format(number=10_000, sign="-", **backlog).encode())
        connection.execute(FILL.format(number=request.param, sign="+", **left).encode())
        connection.execute('DELETE FROM "fencerow".jobs WHERE run_at < clock_timestamp()')
        connection.execute('VACUUM ANALYZE "fencerow".jobs')
        run_through(pg)
        connection.execute(FILL.format(number=BACKLOG, sign="-", **backlog).encode())
        connection.execute(RUNNING)
    return pg


def run_through(engine: PostgresEngine) -> None:
    """One job's life, twice: every statement of it is prepared."""
    holder = register(engine)
    for _ in range(2):
        engine.run(store.submit([job := new_job()]))
        engine.run(store.lanes("mail"))
        (claimed,) = engine.run(
            store.claim("mail", [Mark(0)], holder=holder, names=["send"], limit=10, margin_s=60)
        )
        assert engine.run(store.succeed([Success(job.id, claimed.attempt, "null")], holder=holder))


@contextmanager
def prepared(engine: PostgresEngine) -> Iterator[psycopg.Connection[Any]]:
    """The connection on which it did; what happens there is rolled back."""
    with engine._pools.connection() as connection, connection.transaction(force_rollback=True):
        yield connection


def kept_plan(
    connection: psycopg.Connection[Any], engine: PostgresEngine, name: str, **given: str
) -> list[dict[str, Any]]:
    """The nodes of the plan that is kept for a statement, run once."""
    mark, own = MARKS[name]
    values = [{**NUMBERS, **own, **given}[each] for each in engine.queries[name].parameters]
    found = connection.execute(
        "SELECT name FROM pg_prepared_statements WHERE statement LIKE %s", (f"%{mark}%",)
    ).fetchall()
    assert len(found) == 1, found
    explain = sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {} ({})").format(
        sql.Identifier(found[0][0]), sql.SQL(", ").join(map(sql.Literal, values))
    )
    row = connection.execute(explain).fetchone()
    assert row is not None
    return flat(row[0][0]["Plan"])


def walked(plan: list[dict[str, Any]]) -> int:
    """Rows of jobs that the whole statement looked at."""
    rows = (
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in scans(plan, "jobs")
    )
    return int(sum(rows))


def test_a_plan_made_when_the_tables_were_empty_reads_no_table_whole(grown: PostgresEngine) -> None:
    holder = register(grown)
    with prepared(grown) as connection:
        plans = {name: kept_plan(connection, grown, name, holder=holder) for name in MARKS}
    for name, plan in plans.items():
        assert not [node for node in scans(plan, "jobs") if node["Node Type"] == "Seq Scan"], name
        assert touched(plan) < 400, name


@pytest.mark.parametrize("name", ["claim", "lanes"])
def test_a_plan_made_when_the_queue_was_idle_reads_no_backlog(idle: PostgresEngine, name: str) -> None:
    holder = register(idle)

    with prepared(idle) as connection:
        plan = kept_plan(connection, idle, name, holder=holder)

    assert walked(plan) < 100 and touched(plan) < 400


def test_a_role_that_is_set_as_the_page_says_reads_no_backlog_unprepared(idle: PostgresEngine) -> None:
    database = conninfo_to_dict(idle.conninfo)["dbname"]
    told = re.findall(
        r"^    (ALTER ROLE app IN DATABASE shop SET .*);$", PAGE.read_text("utf-8"), re.MULTILINE
    )
    with psycopg.connect(idle.conninfo, autocommit=True) as connection:
        for each in told:
            connection.execute(each.replace("shop", str(database)).encode())

    plan = nodes(idle, "lanes", MARKS["lanes"][1])

    assert walked(plan) < 100 and touched(plan) < 400


def test_a_plan_made_when_the_queue_was_idle_compares_each_job_with_its_own_outcome(
    idle: PostgresEngine,
) -> None:
    ids = [f"{number + 900_000:032x}" for number in range(7, 2_000, 50)]
    outcomes = json.dumps([{"id": each, "attempt": 1, "result": "1"} for each in ids])

    with prepared(idle) as connection:
        succeed = kept_plan(connection, idle, "succeed", outcomes=outcomes, holder=f"{7:032x}")

    (kept,) = [node for node in succeed if node.get("Relation Name") == "finished_jobs"]
    assert kept["Tuples Inserted"] == len(ids)
    assert sum(node.get("Rows Removed by Join Filter", 0) for node in succeed) == 0


def test_jobs_that_expire_are_ended_by_their_ids(idle: PostgresEngine) -> None:
    (text,) = idle.queries["expire"].statements

    with prepared(idle) as connection:
        connection.execute('UPDATE "fencerow".jobs SET expires_at = run_at WHERE priority = 1')
        explain = "EXPLAIN (FORMAT JSON) " + pyformat(text)
        row = connection.execute(explain.encode(), {"limit": 10, "actor": None}).fetchone()

    assert row is not None
    used = {node["Index Name"] for node in flat(row[0][0]["Plan"]) if "Index Name" in node}
    assert used == {"jobs_pkey", "jobs_expiry"}, "who is late is found by the one, and ended by the other"


def test_a_plan_is_made_once(pg: PostgresEngine) -> None:
    if is_pooled(pg.conninfo):
        pytest.skip("nothing is prepared through a pooler")
    run_through(pg)
    with prepared(pg) as connection:
        plans = connection.execute(
            "SELECT generic_plans, custom_plans FROM pg_prepared_statements"
        ).fetchall()
    assert len(plans) == 4 and {custom for _, custom in plans} == {0} and min(plans)[0] >= 2


def test_a_statement_of_each_job_has_our_functions_written_into_its_plan(pg: PostgresEngine) -> None:
    """One that is called is parsed and planned by the server in each statement again: a quarter of a claim."""
    with psycopg.connect(pg.conninfo, autocommit=True) as connection:
        connection.execute("SET plan_cache_mode = force_generic_plan")
        plans = {
            name: plan_of(connection, pg, name)
            for name in ("submit_one", "submit", "submit_alike", "claim", "succeed")
        }
    for name, plan in plans.items():
        assert "clock_timestamp()" in plan, name
        assert not CALLED.findall(plan), name


def plan_of(connection: psycopg.Connection[Any], engine: PostgresEngine, name: str) -> str:
    (text,) = engine.queries[name].statements
    values = sql.SQL(", ").join(sql.NULL for _ in engine.queries[name].parameters)
    connection.execute(f"PREPARE {name} AS {numbered(text, engine.queries[name].parameters)}".encode())
    explain = sql.SQL("EXPLAIN (VERBOSE) EXECUTE {} ({})").format(sql.Identifier(name), values)
    return "\n".join(line for (line,) in connection.execute(explain))
