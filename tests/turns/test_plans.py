"""What looks at keys reads indexes of jobs with turns alone, however many jobs there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import quote

import psycopg
import pytest

from fencerow.db.due import OWN
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Param
from fencerow.db.sqlite import SqliteEngine
from fencerow.db.sqlite_connection import bound
from fencerow.testing.postgres import PostgresServer
from fencerow.turns import handing
from tests.conftest import ROLE, postgres_engine
from tests.core.store.test_plans import nodes, touched
from tests.kit.jobs import new_job, submit

NIL = "00000000-0000-0000-0000-000000000000"
PARAMS: dict[str, Mapping[str, Param]] = {
    "known_keys": {"limit": 20, "look": 100},
    "key_holders": {"key": "k7", "limit": 100},
    "gate_waiters": {"gate": "key:k7", "limit": 20},
    "count_at_gate": {"gate": "key:k7", "priority": 0, "run_at_us": 1_795_378_504_000_000, "id": NIL},
}
# 20,000 jobs without turns, and 200 keys: of each one job has the turn, and 100 wait.
PLAIN = """
INSERT INTO "fencerow".jobs (id, queue, name, run_at, attempts_max, crashes_max, snoozes_max, submitted_at,
                             args_bytes, args)
SELECT CAST(lpad(to_hex(n), 32, '0') AS uuid), 'mail', 'send', clock_timestamp(), 3, 3, 48, clock_timestamp(), 2, '{}'
FROM generate_series(1, 20000) AS n
"""
TURNS = """
INSERT INTO "fencerow".jobs (id, queue, name, state, run_at, attempts_max, crashes_max, snoozes_max, submitted_at,
                             args_bytes, args, exclusive, gate)
SELECT CAST(lpad(to_hex(n + 100000), 32, '0') AS uuid), 'mail', 'send',
       CASE WHEN n <= 200 THEN 'queued' ELSE 'waiting' END,
       clock_timestamp(), 3, 3, 48, clock_timestamp(), 2, '{}', 'k' || n % 200,
       CASE WHEN n > 200 THEN 'key:k' || n % 200 END
FROM generate_series(1, 20200) AS n
"""

BULK = """
INSERT INTO "fencerow".jobs (id, queue, name, state, run_at, attempts_max, crashes_max, snoozes_max, submitted_at,
                             args_bytes, args, limits, gate)
SELECT CAST(lpad(to_hex(n + {start}), 32, '0') AS uuid), 'mail', 'send', 'waiting', clock_timestamp(), 3, 3, 48,
       clock_timestamp(), 2, '{{}}', ARRAY['one'], 'limit:one'
FROM generate_series(1, 5000) AS n
"""


@pytest.fixture(scope="module")
def keyed(server: PostgresServer, _template: str) -> Iterator[PostgresEngine]:
    server.create_database("keyed", template=_template)
    engine = postgres_engine(server.conninfo("keyed", ROLE))
    with psycopg.connect(engine.conninfo, autocommit=True) as connection:
        for text in (PLAIN, TURNS, 'VACUUM ANALYZE "fencerow".jobs'):
            connection.execute(text.encode())
    yield engine
    engine.close()
    server.drop_database("keyed")


@pytest.mark.parametrize("name", sorted(PARAMS))
def test_they_are_found_by_index(keyed: PostgresEngine, name: str) -> None:
    plan = nodes(keyed, name, PARAMS[name])
    scanned = [
        each for each in plan if each.get("Relation Name") == "jobs" and each["Node Type"] == "Seq Scan"
    ]
    assert scanned == []
    used = {each["Index Name"] for each in plan if "Index Name" in each and "jobs" in each["Index Name"]}
    assert used <= {"jobs_gate", "jobs_turned"}
    assert touched(plan) < (3_000 if name == "known_keys" else 300)


def test_the_first_who_wait_are_found_without_a_look_at_the_others(keyed: PostgresEngine) -> None:
    gates = [f"key:k{number}" for number in range(50)]
    due = {"due_us": OWN.until_us, "since_us": OWN.since_us}

    plan = nodes(keyed, "find_turns", {"gates": gates, "wanted": 1, "aged_s": 10.0, **due})

    assert touched(plan) < 20 * len(gates), "of 100 at each gate one is wanted"


# 5,000 jobs whose wait for their label is over.
LABELLED = """
INSERT INTO "fencerow".jobs (id, queue, name, run_at, attempts_max, crashes_max, snoozes_max, submitted_at,
                             args_bytes, args, affinity, affinity_wait_s)
SELECT CAST(lpad(to_hex(n + 200000), 32, '0') AS uuid), 'mail', 'send', clock_timestamp() - INTERVAL '1 hour', 3, 3, 48,
       clock_timestamp(), 2, '{}', 'gpu', 1
FROM generate_series(1, 5000) AS n
"""
NAMED = f"{100_300:032x}"
BY_ID: dict[str, Mapping[str, Param]] = {
    "give_turns": {"ids": [NAMED]},
    "find_kept": {"ids": [NAMED], "due_us": OWN.until_us, "since_us": OWN.since_us},
    "send_on": {"sent": f'[{{"id": "{NAMED}", "gate": "key:k1"}}]'},
    "take_turns_back": {
        "ids": [f"{100_100:032x}"],
        "taken": f'[{{"id": "{100_100:032x}", "gate": "key:k100", "why": "paused"}}]',
        "actor": None,
    },
    "fall_back": {"limit": 1, "actor": None, "due_us": OWN.until_us, "since_us": OWN.since_us},
}


@pytest.fixture(scope="module")
def surprised(server: PostgresServer, _template: str) -> Iterator[PostgresEngine]:
    """Full of jobs that wait, and analyzed when it was idle; with the settings of a session that keeps plans."""
    server.create_database("surprised", template=_template)
    settings = quote("-c enable_seqscan=off -c seq_page_cost=0")
    engine = postgres_engine(f"{server.conninfo('surprised', ROLE)}&options={settings}")
    with psycopg.connect(engine.conninfo, autocommit=True) as connection:
        connection.execute('ALTER TABLE "fencerow".jobs SET (autovacuum_enabled = false)')
        for text in (
            TURNS,
            LABELLED,
            'DELETE FROM "fencerow".jobs',
            'VACUUM ANALYZE "fencerow".jobs',
            TURNS,
            LABELLED,
        ):
            connection.execute(text.encode())
    yield engine
    engine.close()
    server.drop_database("surprised")


@pytest.mark.parametrize("name", sorted(BY_ID))
def test_jobs_that_are_named_are_found_by_their_ids(surprised: PostgresEngine, name: str) -> None:
    plan = nodes(surprised, name, BY_ID[name])

    used = {each["Index Name"] for each in plan if "Index Name" in each and "jobs" in each["Index Name"]}
    assert used == {"jobs_pkey"} | ({"jobs_fallback"} if name == "fall_back" else set())


@pytest.mark.parametrize("name", sorted(PARAMS))
def test_sqlite_finds_them_by_index(lite: SqliteEngine, name: str) -> None:
    query = lite.queries[name]
    params = bound(PARAMS[name], query.parameters)
    with lite.session() as session:
        rows = session.connection.execute("EXPLAIN QUERY PLAN " + query.statements[0], params).fetchall()
    plan = [str(row[3]) for row in rows]
    names = {"fencerow_jobs", "waiting", "holder", "below", "behind", "next", "first"}
    assert [line for line in plan if line.startswith("SCAN") and line.split()[1] in names] == []
    searched = [line for line in plan if line.startswith("SEARCH") and line.split()[1] in names]
    assert all(
        "fencerow_jobs_gate" in line or "fencerow_jobs_turned" in line or "rowid" in line for line in searched
    )


LOOKS = {
    "ids": [NIL],
    "sent": "[]",
    "taken": "[]",
    "actor": None,
    "gates": ["key:k1"],
    "counted": [],
    "stopped": [],
    "noted": "[]",
    "unclaimed_s": 60.0,
    "kept_s": 60.0,
    "soon_s": 0.5,
    "aged_s": 10.0,
    "wanted": 1,
    "limit": 50,
    "due_us": OWN.until_us,
    "since_us": OWN.since_us,
}
HANDED = (
    "give_turns",
    "give_alike",
    "find_alike",
    "find_kept",
    "send_on",
    "take_turns_back",
    "find_turns",
    "count_turns",
    "gates_beside",
)


@pytest.mark.parametrize("name", [*HANDED, "gates_left", "note_gates", "find_unused_turns"])
def test_sqlite_walks_over_no_table_where_the_planner_knew_it_nearly_empty(
    lite: SqliteEngine, name: str
) -> None:
    submit(lite, *(new_job(exclusive="k") for _ in range(3)))
    lite.run(handing.hand_over())
    query = lite.queries[name]
    with lite.session() as session:
        session.connection.execute("ANALYZE")
        plan = [
            str(row[3])
            for text in query.statements
            for row in session.connection.execute(
                f"EXPLAIN QUERY PLAN {text}", bound(LOOKS, query.parameters)
            )
        ]

    made = {
        "lane",
        "first",
        "line",
        "held",
        "told",
        "each",
        "either",
        "alike",
        "coming",
        "wanted",
        "few",
        "worker",  # no index: a file has few
        "CONSTANT",
    }
    made |= {line.split()[1] for line in plan if line.startswith("SCAN (subquery-")}  # the rows of a window
    walks = [line for line in plan if line.startswith("SCAN") and "VIRTUAL TABLE" not in line]
    assert [line for line in walks if line.split()[1] not in made] == []
    assert [line for line in plan if "jobs_gate (gate>?)" in line] == [], "of all who wait"


def test_turns_are_given_by_the_ids_alone_where_nobody_has_analyzed_the_table(pg: PostgresEngine) -> None:
    """The planner takes the index of those who wait for a small one there, and would walk it once for each id."""
    with psycopg.connect(pg.conninfo, autocommit=True) as connection:
        connection.execute('ALTER TABLE "fencerow".jobs SET (autovacuum_enabled = false)')
        for start in range(0, 20_000, 5_000):
            connection.execute(BULK.format(start=start).encode())

    plan = nodes(pg, "give_turns", {"ids": [f"{number:032x}" for number in range(1, 11)]})

    assert touched(plan) < 600


def steps(engine: SqliteEngine, name: str) -> int:
    """Of the machine in the library that runs this look at one key."""
    query, count = engine.queries[name], 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    params = bound(PARAMS.get(name, LOOKS), query.parameters)
    with engine.session() as session:
        session.connection.set_progress_handler(step, 1)
        session.connection.execute(query.statements[0], params).fetchall()
        session.connection.set_progress_handler(None, 0)
        return count


@pytest.mark.parametrize("name", ["gates_beside", "find_turns", "known_keys"])
def test_sqlite_takes_as_many_steps_however_many_wait(lite: SqliteEngine, name: str) -> None:
    submit(lite, *(new_job(exclusive="k1") for _ in range(1_100)))
    lite.run(handing.hand_over())
    few = steps(lite, name)

    submit(lite, *(new_job(exclusive="k1") for _ in range(2_000)))

    assert steps(lite, name) < few + 100
