"""Plans that were kept since all was idle find what a statement names by its name, however much lies there by now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import psycopg
import pytest
from psycopg import sql

from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import numbered
from fencerow.testing.postgres import PostgresServer
from tests.conftest import ROLE, postgres_engine
from tests.core.store.test_plans import flat

MANY = 2_000


def nth(number: int) -> str:
    return f"{number:032x}"


# The id of the n-th job; and everything that statements look for by it.
ID = "CAST(lpad(to_hex(n), 32, '0') AS uuid)"
JOBS = """
INSERT INTO fencerow.{} (id, queue, name, state, run_at, attempt, attempts_max, crashes_max, snoozes_max, submitted_at,
                         args_bytes, args, holder, claimed_at, ended_at{})
SELECT CAST(lpad(to_hex(n), 32, '0') AS uuid), 'mail', 'send', '{}', now(), 1, 3, 3, 48, now(), 2, '{{}}', {}
FROM generate_series({}, {}) AS n"""
HOLDER = nth(7)
FILL = (
    JOBS.format("jobs", "", "running", f"'{HOLDER}', now(), NULL", 1, MANY),
    JOBS.format("finished_jobs", ", period", "failed", "NULL, NULL, now(), 0", 10_001, 10_000 + MANY),
    f"""INSERT INTO fencerow.handovers (job_id, receiver, key, hold_s, name, lined_at, state, ended_at, held_until)
        SELECT {ID}, 'bot', n, 9, 'send', now(), 'failed', now(), now() FROM generate_series(1, {MANY}) AS n""",
    f"""INSERT INTO fencerow.webhook_deliveries
            (endpoint_id, event_id, webhook_id, topic, ended_id, body, job_id, created_at)
        SELECT '{nth(1)}', n, 'w', 't', {ID}, '', {ID}, now() FROM generate_series(1, {MANY}) AS n""",
    f"""INSERT INTO fencerow.webhook_deliveries
            (endpoint_id, event_id, webhook_id, topic, ended_id, body, job_id, created_at, delivered_at)
        SELECT '{nth(1)}', n, 'w', 't', {ID}, '', {ID}, now(), now() FROM generate_series(5001, {5000 + MANY}) AS n""",
    f"""INSERT INTO fencerow.job_waits (job_id, name, attempt, until, look_at, since)
        SELECT {ID}, 'w', 1, now(), now(), now() FROM generate_series(1, {MANY}) AS n""",
    f"""INSERT INTO fencerow.worked_attempts
            (job_id, attempt, digest, sent_at, failures, until, give_up_at, silent_s, look_at)
        SELECT {ID}, 1, 'd', now(), 0, now(), now(), 1, now() FROM generate_series(1, {MANY}) AS n""",
    f"""INSERT INTO fencerow.schedule_ticks (name, entity, fire_at, made, job_id, at)
        SELECT 's', n, now(), 'job', CAST(lpad(to_hex(n + 90000), 32, '0') AS uuid), now()
        FROM generate_series(1, {MANY}) AS n""",
    f"""INSERT INTO fencerow.flow_jobs (job_id, flow_id, name, job_name, place, level, stage, is_read)
        SELECT {ID}, {ID}, 'a', 'a', 0, 0, false, false FROM generate_series(1, {MANY}) AS n""",
)
TABLES = (
    *("jobs", "finished_kept", "handovers", "webhook_deliveries", "job_waits"),
    *("worked_attempts", "schedule_ticks", "flow_jobs"),
)
TEN = "{" + ",".join(nth(number) for number in range(1_000, 1_010)) + "}"
NAMING: dict[str, Mapping[str, str | None]] = {  # each names ten rows at most, or may take ten
    "ask_cancel": {"ids": TEN, "actor": None, "reason": None},
    "purge_by_age": {"state": "failed", "age_s": "0", "limit": "10", "everywhere": "t"},
    "waits_seen": {"looked": TEN, "ids": TEN},
    "worked_seen": {"looked": TEN, "ids": TEN},
    "write_missed": {"places": "{1000,1001}"},
    "note_delivered": {"job": nth(1_000)},
    "purge_delivered": {"age_s": "0", "limit": "10"},
    "note_ended": {"limit": "10"},
    "look_at_flow_jobs": {"ids": TEN},
    "write_missed_flow_ends": {"ids": TEN},
}


@pytest.fixture(scope="module")
def kept(
    server: PostgresServer, _template: str
) -> Iterator[tuple[PostgresEngine, psycopg.Connection[tuple[object, ...]]]]:
    """A connection that made its plans when few were left of many, beside a backlog of which no statistics know."""
    server.create_database("kept_plans", template=_template)
    engine = postgres_engine(server.conninfo("kept_plans", ROLE))
    with psycopg.connect(engine.conninfo, autocommit=True) as connection:
        connection.execute("SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off")
        connection.execute("SET seq_page_cost = 0; SET jit = off")
        for table in TABLES:
            connection.execute(f"ALTER TABLE fencerow.{table} SET (autovacuum_enabled = false)".encode())
        for text in FILL:
            other_ids = " AS few (each) CROSS JOIN LATERAL (SELECT each + 100000) AS others (n)"
            connection.execute(text.replace(" AS n", other_ids).encode())
        for table in TABLES:
            last = f"SELECT ctid FROM fencerow.{table} ORDER BY ctid DESC LIMIT 3"
            connection.execute(f"DELETE FROM fencerow.{table} WHERE ctid NOT IN ({last})".encode())
            connection.execute(f"VACUUM ANALYZE fencerow.{table}".encode())
        for name in NAMING:
            query = engine.queries[name]
            connection.execute(
                f"PREPARE {name} AS {numbered(query.statements[0], query.parameters)}".encode()
            )
            connection.execute(_execute(engine, name, "EXPLAIN"))
        for text in FILL:
            connection.execute(text.encode())
        yield engine, connection
    engine.close()
    server.drop_database("kept_plans")


def _execute(engine: PostgresEngine, name: str, before: str) -> sql.Composed:
    values = [NAMING[name][each] for each in engine.queries[name].parameters]
    given = sql.SQL(", ").join(map(sql.Literal, values))
    return sql.SQL(before + " EXECUTE {} ({})").format(sql.Identifier(name), given)


@pytest.mark.parametrize("name", sorted(NAMING))
def test_what_is_named_is_found_without_a_look_at_all_others(
    kept: tuple[PostgresEngine, psycopg.Connection[tuple[object, ...]]], name: str
) -> None:
    engine, connection = kept

    with connection.transaction(force_rollback=True):
        row = connection.execute(
            _execute(engine, name, "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON)")
        ).fetchone()

    assert row is not None and isinstance(row[0], list)
    walked = sum(
        (
            node["Actual Rows"] * ("Scan" in node["Node Type"])
            + node.get("Rows Removed by Filter", 0)
            + node.get("Rows Removed by Join Filter", 0)
        )
        * node["Actual Loops"]
        for node in flat(row[0][0]["Plan"])
    )
    assert walked < MANY // 4
