"""Indexes of live tables are built beside the work of others, and a crash leaves them to the next migrator."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fencerow.core.errors import Busy, SchemaTampered
from fencerow.core.schema import build_lease, building
from fencerow.core.schema.building import Building, Index
from fencerow.core.schema.migrate import apply_next, ledger_name, lock_number
from fencerow.core.store import store
from fencerow.core.store.attempts import Success
from fencerow.db.postgres import PostgresEngine
from fencerow.db.postgres_session import PostgresSession
from fencerow.db.run import Operation
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.servers.pgbouncer import PgBouncer
from tests.core.schema.growing import KNOWN, MORE, growing, known
from tests.kit.jobs import claim, register, submit

ROOT = Path(__file__).parents[3]
SPAWNED = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
PARTITIONS = ("succeeded", "failed")
LIVE = Index(
    "jobs_more", '"fencerow".jobs', "USING btree (name) WHERE (state = 'queued'::text)", is_unique=False
)


@pytest.fixture
def old(postgres_url: str) -> Iterator[PostgresEngine]:
    """A database with jobs and partitions, one migration behind the code that is given."""
    engine = growing(postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        for number, state in enumerate(PARTITIONS, start=1):
            owner.execute(
                "INSERT INTO fencerow.finished_periods (state, starts_at, ends_at)"
                f" VALUES ('{state}', now(), now() + interval '1 day')".encode()
            )
            part = f"fencerow.finished_{state}_{number}"
            owner.execute(f"CREATE TABLE {part} (LIKE fencerow.finished_jobs INCLUDING ALL)".encode())
            attach = f"ALTER TABLE fencerow.finished_jobs ATTACH PARTITION {part} FOR VALUES IN ({number})"
            owner.execute(attach.encode())
    submit(engine)
    yield engine
    engine.close()


def migrate(engine: PostgresEngine, **more: Any) -> list[str]:
    with known():
        return [each.name for each in store.migrate(engine, **more)]


def ask(engine: PostgresEngine, text: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(engine.conninfo, autocommit=True) as connection:
        cursor = connection.execute(text.encode())
        return cursor.fetchall() if cursor.description else []


def indexes(engine: PostgresEngine) -> dict[str, bool]:
    """Whether each index that belongs to the migration is whole; with what was set aside."""
    return dict(
        ask(
            engine,
            "SELECT relname, indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid"
            " WHERE relname ~ 'jobs_more' ORDER BY relname",
        )
    )


ALL = {
    "finished_jobs_more": True,
    "finished_jobs_more_finished_failed_2": True,
    "finished_jobs_more_finished_kept": True,
    "finished_jobs_more_finished_succeeded_1": True,
    "jobs_more": True,
}


def free(engine: PostgresEngine) -> None:
    """Time passes: the lease of whoever died is over, and the server noticed that the process is gone."""
    while ask(
        engine,
        "SELECT 1 FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
        " AND application_name = 'fencerow' AND backend_start > (SELECT min(backend_start) FROM pg_stat_activity)"
        " AND state <> 'idle'",
    ):
        pass
    ask(engine, "UPDATE fencerow.schema_work SET until = clock_timestamp() WHERE until IS NOT NULL")


def grower(engine: PostgresEngine, *rest: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.core.schema.growing", engine.conninfo, *rest]
    return subprocess.Popen(command, env=SPAWNED, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_indexes_of_tables_in_use_are_built_after_the_columns(old: PostgresEngine) -> None:
    assert migrate(old) == [MORE.name]

    assert indexes(old) == ALL
    assert migrate(old) == []
    # A partition that is made later brings its part along.
    ask(
        old,
        "CREATE TABLE fencerow.finished_late (LIKE fencerow.finished_jobs INCLUDING ALL);"
        "ALTER TABLE fencerow.finished_jobs ATTACH PARTITION fencerow.finished_late FOR VALUES IN (9)",
    )
    assert ask(
        old, "SELECT indisvalid FROM pg_index WHERE indexrelid = 'fencerow.finished_jobs_more'::regclass"
    ) == [(True,)]


def look_long(report: psycopg.Connection[Any]) -> None:
    """A transaction that sees only the past stays open."""
    report.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    report.execute("SELECT count(*) FROM fencerow.jobs")


def test_nobody_who_works_waits_for_a_build(old: PostgresEngine) -> None:
    """A build waits for an old transaction as long as that lasts. With CREATE INDEX alone, the submit waits too."""
    with psycopg.connect(old.conninfo) as report, ThreadPoolExecutor(1) as pool:
        look_long(report)
        migrating = pool.submit(migrate, old)
        while not ask(old, "SELECT 1 FROM pg_stat_progress_create_index WHERE current_locker_pid <> 0"):
            assert not migrating.done()

        other = growing(old.conninfo)
        submit(other)
        holder = register(other)
        done = [Success(job.id, job.attempt, "1") for job in claim(other, holder, limit=5)]
        assert len(other.run(store.succeed(done, holder=holder))) == 2
        other.close()
        assert not migrating.done()

        report.rollback()
        assert migrating.result(60) == [MORE.name]


def test_a_migration_asks_for_its_lock_briefly_and_again(old: PostgresEngine) -> None:
    """While a report holds it up, those who use the table wait no longer than the migration asks."""
    with psycopg.connect(old.conninfo) as report, ThreadPoolExecutor(1) as pool:
        report.execute("SELECT count(*) FROM fencerow.queues").fetchone()
        migrating = pool.submit(migrate, old)
        while not ask(old, "SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted"):
            assert not migrating.done()

        ask(old, "INSERT INTO fencerow.queues (name) VALUES ('mail')")  # it would wait as long as the report
        assert not migrating.done()

        report.rollback()
        assert migrating.result(60) == [MORE.name]


def test_two_migrators_at_once_build_once(old: PostgresEngine) -> None:
    growers = [grower(old) for _ in range(2)]
    told = [each.communicate(timeout=120) for each in growers]

    assert [each.returncode for each in growers] == [0] * 2, told
    assert sorted(int(out) for out, _ in told) == [0, 1]
    assert indexes(old) == ALL


STRIDE = 13  # with 1, all of them: a minute


class Ended(BaseException):
    """The process ends here: nothing of it runs any more, and nothing is put right."""


def statements_of(engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch, end_before: int = 10**6) -> int:
    """Migrate, and end before the given statement; how many there were.

    The thread that keeps the lease says nothing: how often it would depends on how fast the machine is.
    """
    count = [0]
    execute = PostgresSession.execute

    def counted(self: Any, statement: Any) -> Any:
        if count[0] >= end_before:
            raise Ended
        count[0] += 1
        return execute(self, statement)

    with monkeypatch.context() as patch:
        patch.setattr(PostgresSession, "execute", counted)
        patch.setattr(build_lease, "LOOK_S", 600.0)
        try:
            migrate(engine)
        except Ended:
            pass
    return count[0]


def test_a_build_that_ends_before_any_statement_is_taken_up(
    old: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    undo = (
        "DROP INDEX IF EXISTS fencerow.jobs_more, fencerow.finished_jobs_more;"
        "ALTER TABLE fencerow.queues DROP COLUMN IF EXISTS more;"
        "DELETE FROM fencerow.schema_migrations WHERE version = 9001;"
        "UPDATE fencerow.schema_work SET version = 1, checksum = '', parts = 0, until = NULL"
    )
    whole = statements_of(old, monkeypatch)
    assert whole > 40
    for end in range(1, whole, STRIDE):
        ask(old, undo)
        statements_of(old, monkeypatch, end)
        free(old)
        migrate(old)
        assert indexes(old) == ALL, f"ended before statement {end}"
        assert not ask(old, "SELECT 1 FROM pg_class WHERE relname ~ 'schema_copy|_left_'")


@pytest.mark.parametrize("count", [15, 36])
def test_a_killed_migrator_leaves_its_build_to_the_next(old: PostgresEngine, count: int) -> None:
    killed = grower(old, str(count))
    _, told = killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL, told

    free(old)
    assert migrate(old) == [MORE.name]

    assert indexes(old) == ALL


def test_a_migrator_that_is_killed_while_the_server_builds(
    old: PostgresEngine, pooler: PgBouncer | None
) -> None:
    """The server goes on without it, and what it made is kept. A pooler cancels it, and it is begun anew."""
    with psycopg.connect(old.conninfo) as report:
        look_long(report)
        killed = grower(old)
        while not ask(old, "SELECT 1 FROM pg_stat_progress_create_index WHERE current_locker_pid <> 0"):
            assert killed.poll() is None, killed.communicate()
        killed.kill()
        killed.communicate()
        ask(old, "UPDATE fencerow.schema_work SET until = clock_timestamp()")
        (made,) = ask(old, "SELECT 'fencerow.jobs_more'::regclass::oid")
        with ThreadPoolExecutor(1) as pool:
            following = pool.submit(migrate, old)
            while ask(old, "SELECT 1 FROM fencerow.schema_work WHERE attempt < 2"):
                assert not following.done()
            report.rollback()
            assert following.result(60) == [MORE.name]

    assert indexes(old) == ALL
    if pooler is None:
        assert ask(old, "SELECT 'fencerow.jobs_more'::regclass::oid") == [made], "it was not built twice"


@pytest.mark.parametrize("last", ["building_under_way", "find_index"])
def test_a_build_that_ends_while_it_is_looked_at_is_kept(
    old: PostgresEngine, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    """A dead migrator's, which the server ends right after the given look of its successor."""
    other, work = growing(old.conninfo), taken(old)
    with psycopg.connect(old.conninfo) as report, ThreadPoolExecutor(1) as pool:
        look_long(report)
        building_on = pool.submit(other.run, building.create_concurrently(LIVE))
        while not ask(old, "SELECT 1 FROM pg_stat_progress_create_index WHERE current_locker_pid <> 0"):
            assert not building_on.done()
        execute = PostgresSession.execute

        def ending(self: Any, statement: Any) -> Any:
            rows = execute(self, statement)
            if statement.name == last:
                report.rollback()
                building_on.result(60)
            return rows

        monkeypatch.setattr(PostgresSession, "execute", ending)
        found = old.run(building.examine(LIVE, work))

    assert found.whole or found.under_way
    assert indexes(old) == {"jobs_more": True}
    other.close()


def break_index(engine: PostgresEngine, server: PostgresServer) -> None:
    """As a crash leaves it: there, and not whole."""
    ask(engine, "CREATE INDEX IF NOT EXISTS jobs_more ON fencerow.jobs (name) WHERE state = 'queued'")
    ((database,),) = ask(engine, "SELECT current_database()")
    with server.connect(database) as superuser:
        superuser.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'fencerow.jobs_more'::regclass"
        )
    assert indexes(engine)["jobs_more"] is False


def test_an_index_that_a_crash_left_broken_is_built_anew(old: PostgresEngine, server: PostgresServer) -> None:
    break_index(old, server)

    assert migrate(old) == [MORE.name]

    assert indexes(old) == ALL


def test_an_index_that_somebody_broke_later_is_built_anew(
    old: PostgresEngine, server: PostgresServer
) -> None:
    migrate(old)
    break_index(old, server)

    assert migrate(old) == []

    assert indexes(old) == ALL
    assert ask(old, "SELECT holder, until FROM fencerow.schema_work") == [(None, None)]


def test_an_index_that_was_built_by_hand_ahead_is_taken_as_it_is(old: PostgresEngine) -> None:
    ask(old, "CREATE INDEX CONCURRENTLY jobs_more ON fencerow.jobs (name) WHERE state = 'queued'")
    (made,) = ask(old, "SELECT 'fencerow.jobs_more'::regclass::oid")

    migrate(old)

    assert ask(old, "SELECT 'fencerow.jobs_more'::regclass::oid") == [made]


@pytest.mark.parametrize(
    "other",
    ["CREATE INDEX jobs_more ON fencerow.jobs (queue)", "CREATE TABLE fencerow.jobs_more (one integer)"],
    ids=["an index of other columns", "a table"],
)
def test_something_else_under_the_name_is_refused(old: PostgresEngine, other: str) -> None:
    ask(old, other)
    before = indexes(old)

    with pytest.raises(SchemaTampered, match="jobs_more"):
        migrate(old)

    assert indexes(old) == before
    ask(old, "DROP TABLE fencerow.jobs_more" if "TABLE" in other else "DROP INDEX fencerow.jobs_more")
    assert migrate(old) == [MORE.name]


def taken(engine: PostgresEngine) -> Building:
    """A build that is under way."""
    name = ledger_name(engine)
    while True:  # the part before it comes first
        got = engine.run(apply_next(KNOWN, ledger=name, lock=lock_number(name), actor=None, holder="h"))
        assert got
        if isinstance(got, Building):
            return got


def test_who_lost_the_build_changes_nothing_more(old: PostgresEngine, server: PostgresServer) -> None:
    """Without the fence, a migrator that slept would set aside, and then drop, what its successor builds."""
    slept = taken(old)
    ask(old, "UPDATE fencerow.schema_work SET until = clock_timestamp()")
    awake = taken(old)
    assert awake.attempt == slept.attempt + 1
    break_index(old, server)

    late: list[Operation[Any]] = [
        building.examine(LIVE, slept),
        building.make_head(LIVE, slept),
        building.attach("fencerow.finished_jobs_more", "fencerow.jobs_more", slept),
    ]
    for operation in late:
        with pytest.raises(Busy, match="taken over"):
            old.run(operation)

    assert indexes(old) == {"jobs_more": False}
    assert old.run(building.finish(slept)) is False
    assert old.run(building.renew(slept, 30.0)) is False
    assert old.run(building.renew(awake, 0.0)) is True


def test_a_lease_that_ran_out_sends_nothing_more(
    old: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_lease, "LEASE_S", 0.0)

    with pytest.raises(Busy, match="taken over"):
        migrate(old)

    assert indexes(old) == {}


def test_no_limit_of_ours_ends_a_build() -> None:
    assert building.create_concurrently(LIVE).patience_s == math.inf
    assert building.drop_left("x").patience_s == math.inf


def test_it_is_told_how_far_a_build_is_and_for_whom_it_waits(
    old: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_lease, "LOOK_S", 0.01)
    told: list[str] = []
    with (
        psycopg.connect(old.conninfo, application_name="the report") as report,
        ThreadPoolExecutor(1) as pool,
    ):
        look_long(report)
        migrating = pool.submit(migrate, old, tell=told.append)
        while not any("the report" in text for text in told):
            assert not migrating.done()
        report.rollback()
        migrating.result(60)

    assert told[0] == "building jobs_more, finished_jobs_more"
    assert any(text.startswith("jobs: waiting for") and "in a transaction since" in text for text in told)
