"""What a migration leaves: settings of its session, an index under a name, statements of a process that is gone."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg
import pytest

from fencerow.errors import MigrationFailed
from fencerow.migrations import Outcome
from fencerow.migrations.advance import WaitReason
from fencerow.testing.postgres import PostgresServer
from tests.conftest import ROLE
from tests.migrations.conftest import Ground
from tests.migrations.runner import killed, start
from tests.migrations.test_apart import advanced, index, lease_passed, migrator, until

APART = "-- migrate: no transaction\n"
PYTHON_APART = "# migrate: no transaction\n"
MOVING = {
    "set": {"0001_a.sql": "SET search_path = other; CREATE TABLE other.a (id integer);"},
    "set local": {"0001_a.sql": "SET LOCAL search_path = other; CREATE TABLE other.a (id integer);"},
    "a dump": {
        "0001_a.sql": (
            "SELECT pg_catalog.set_config('search_path', '', false);CREATE TABLE other.a (id integer);"
        )
    },
    "python": {
        "0001_a.py": (
            "from psycopg.rows import dict_row\n"
            "def up(connection):\n"
            "    connection.row_factory = dict_row\n"
            "    connection.execute('SET search_path = other')\n"
            "    connection.execute('CREATE TABLE a (id integer)')\n"
        )
    },
    "apart": {"0001_a.sql": f"{APART}SET search_path = other; CREATE TABLE other.a (id integer);"},
}


@pytest.fixture
def two_schemas(pg_ground: Ground, server: PostgresServer, shard_databases: Mapping[str, str]) -> Ground:
    """A second schema, `other`, in which the role may make tables."""
    with server.connect(shard_databases["a"]) as owner:
        owner.execute("SET client_min_messages = error")
        owner.execute("DROP SCHEMA IF EXISTS other CASCADE")
        owner.execute(f"CREATE SCHEMA other AUTHORIZATION {ROLE}".encode())
    return pg_ground


@pytest.mark.parametrize("how", MOVING)
def test_what_a_step_sets_ends_with_it(two_schemas: Ground, how: str) -> None:
    """Neither its own line of the ledger nor the next migration goes where it said, though a ledger is there too."""
    two_schemas.write(MOVING[how] | {"0002_b.sql": "CREATE TABLE b (id integer);"})

    report = migrator(two_schemas).migrate()["a"]

    assert report.outcome is Outcome.DONE, report.error
    assert two_schemas.ledger() == [(1, "applied"), (2, "applied")]
    assert two_schemas.has("other.a") and two_schemas.has("public.b")
    assert migrator(two_schemas).migrate()["a"].ran == ()


def test_the_line_is_not_written_into_the_ledger_of_others(two_schemas: Ground) -> None:
    two_schemas.write({"0005_x.sql": "CREATE TABLE x (id integer);"})
    theirs = migrator(two_schemas, ledger="other.schema_ledger")
    assert theirs.migrate().ok
    two_schemas.write(
        {"0005_x.sql": "", "0001_a.sql": "SET search_path = other; CREATE TABLE a (id integer);"}
    )

    assert migrator(two_schemas).migrate(baseline=0).ok

    assert two_schemas.ledger() == [(1, "applied")]
    assert two_schemas.rows("SELECT version FROM other.schema_ledger") == [(5,)]


def test_the_role_that_a_step_takes_ends_with_it(pg_ground: Ground) -> None:
    role = pg_ground.rows("SELECT current_user")[0][0]
    pg_ground.write({"0001_a.sql": f"SET ROLE {role}; CREATE TABLE a (id integer);"})
    pg_ground.write({"0002_b.sql": "CREATE TABLE b AS SELECT current_setting('role') AS role;"})

    assert migrator(pg_ground).migrate().ok
    assert pg_ground.rows("SELECT role FROM b") == [("none",)]


# --- an index under a name ------------------------------------------------------------------------------

TWO = {"0001_t.sql": "CREATE TABLE big (id integer, n integer);"}
FIRST = "CREATE INDEX CONCURRENTLY big_id ON big (id);"


def test_an_edited_migration_does_not_adopt_what_the_old_text_made(pg_ground: Ground) -> None:
    pg_ground.write(TWO | {"0002_i.sql": f"{APART}{FIRST}\nCREATE INDEX CONCURRENTLY j ON big (nope);"})
    assert not migrator(pg_ground).migrate().ok
    edited = FIRST.replace("(id)", "(id, n)")
    pg_ground.write({"0002_i.sql": f"{APART}{edited}\nCREATE INDEX CONCURRENTLY j ON big (n);"})

    report = migrator(pg_ground).migrate()["a"]

    assert isinstance(report.error, MigrationFailed) and "another one" in report.error.what
    assert "USING btree (id, n)" in report.error.why and "USING btree (id)" in report.error.why
    assert pg_ground.ledger() == [(1, "applied"), (2, "started")]
    pg_ground.rows("DROP INDEX big_id")
    assert migrator(pg_ground).migrate().ok
    assert "(id, n)" in pg_ground.rows("SELECT pg_get_indexdef(CAST('big_id' AS regclass))")[0][0]


def test_an_index_of_others_is_not_adopted_by_running_the_step_again(pg_ground: Ground) -> None:
    """The server refuses its name the first time. The second time it is no more ours than it was."""
    pg_ground.write(TWO)
    migrator(pg_ground).migrate()
    pg_ground.rows("CREATE INDEX big_id ON big (n)")
    pg_ground.write({"0002_i.sql": f"{APART}{FIRST}"})

    for _ in range(2):
        report = migrator(pg_ground).migrate()["a"]
        assert isinstance(report.error, MigrationFailed)
    assert pg_ground.ledger() == [(1, "applied"), (2, "started")]


@pytest.mark.parametrize(
    "text",
    [
        FIRST,
        'create unique  index concurrently "big_id" on only public . big using btree (id desc) where n>0',
        "CREATE INDEX CONCURRENTLY big_id ON big (abs(id), n) INCLUDE (id) WITH (fillfactor=70) WHERE id IS NOT NULL",
    ],
)
def test_what_the_file_means_is_adopted_however_it_is_written(pg_ground: Ground, text: str) -> None:
    pg_ground.write(TWO | {"0002_i.sql": f"{APART}{text};\nCREATE INDEX CONCURRENTLY j ON big (nope);"})
    assert not migrator(pg_ground).migrate().ok
    oid = pg_ground.rows("SELECT CAST(to_regclass('big_id') AS oid)")
    pg_ground.write({"0002_i.sql": f"{APART}{text};\nCREATE INDEX CONCURRENTLY j ON big (n);"})

    assert migrator(pg_ground).migrate().ok
    assert index(pg_ground) == [True] and pg_ground.rows("SELECT CAST(to_regclass('big_id') AS oid)") == oid


# --- statements of a process that is gone -----------------------------------------------------------------

SLEEPS = f"{PYTHON_APART}def up(connection):\n    connection.execute('SELECT pg_sleep(600)')\n"
IDLES = (
    f"{PYTHON_APART}import time\n"
    "def up(connection):\n"
    "    with connection.transaction():\n"
    "        connection.execute('CREATE TABLE half (id integer)')\n"
    "        time.sleep(600)\n"
)
ITS_SESSION = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state = '{state}'"
    " AND application_name LIKE 'fencerow step %'"
)


@contextmanager
def stopped_in(ground: Ground, text: str, state: str, sign: signal.Signals) -> Iterator[int]:
    """A process is struck while its migration stands in this state on the server; the lease passes."""
    ground.write({"0001_f.py": text})
    process, _ = start({"a": ground.urls["a"]}, ground.folder)
    pid = int(until(ground, ITS_SESSION.format(state=state)))
    assert process.pid is not None
    os.kill(process.pid, sign)
    try:
        if sign is signal.SIGKILL:
            assert killed(process)
        lease_passed(ground)
        yield pid
    finally:
        ground.rows(f"SELECT pg_terminate_backend({pid})")
        process.kill()
        process.join(60)


def ended(ground: Ground, pid: int) -> None:
    ground.rows(f"SELECT pg_terminate_backend({pid})")
    deadline = time.monotonic() + 90
    while ground.rows(f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid}"):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_function_whose_process_died_is_waited_for_while_the_server_works_for_it(pg_ground: Ground) -> None:
    with stopped_in(pg_ground, SLEEPS, "active", signal.SIGKILL) as pid:
        assert advanced(pg_ground) is WaitReason.SERVER
        ended(pg_ground, pid)
        pg_ground.write({"0001_f.py": SLEEPS.replace("pg_sleep(600)", "1")})
        assert migrator(pg_ground).migrate().ok


def test_a_function_whose_process_stands_still_in_a_transaction_is_waited_for(pg_ground: Ground) -> None:
    with stopped_in(pg_ground, IDLES, "idle in transaction", signal.SIGSTOP):
        assert advanced(pg_ground) is WaitReason.SERVER


def test_a_step_that_was_rewritten_for_a_transaction_waits_too(pg_ground: Ground) -> None:
    with stopped_in(pg_ground, SLEEPS, "active", signal.SIGKILL):
        pg_ground.write({"0001_f.py": "def up(connection):\n    pass\n"})
        assert advanced(pg_ground) is WaitReason.SERVER


def test_a_server_that_ended_the_statement_is_not_waited_for(pg_ground: Ground) -> None:
    with stopped_in(pg_ground, SLEEPS, "active", signal.SIGKILL) as pid:
        ended(pg_ground, pid)
        pg_ground.write({"0001_f.py": "def up(connection):\n    pass\n"})
        assert migrator(pg_ground).migrate().ok
        with psycopg.connect(pg_ground.urls["a"]) as reader:
            assert reader.execute("SELECT state FROM schema_ledger").fetchall() == [("applied",)]
