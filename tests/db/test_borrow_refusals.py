"""What a lent connection cannot carry is refused in so many words, and the user's transaction is left as it is."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import aiosqlite
import asyncpg
import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import NullPool

from fencerow.core.model.ids import new_id
from fencerow.core.store import store
from fencerow.db.borrow import borrowed
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Operation
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import (
    Busy,
    NotPermitted,
    ReadOnly,
    RetryTransaction,
    RowRefused,
    SchemaMissing,
    SchemaTooOld,
    UnusableConnection,
)
from tests.conftest import postgres_engine
from tests.core.client.test_group import FORBIDS, POLICY
from tests.core.client.test_left_out import BAD, LEAVES_OUT
from tests.db.lenders import OF_EACH_DRIVER, Loan
from tests.db.work import keyed, seen
from tests.kit.asked import submit_keyed
from tests.kit.jobs import AnyEngine, new_job

POSTGRES = [lender for lender in OF_EACH_DRIVER if lender.dialect == "postgres"]
SQLITE = [lender for lender in OF_EACH_DRIVER if lender.dialect == "sqlite"]
on_postgres = pytest.mark.parametrize("lender", POSTGRES, ids=lambda lender: lender.name)
on_sqlite = pytest.mark.parametrize("lender", SQLITE, ids=lambda lender: lender.name)

RULES = {
    LEAVES_OUT["postgres"]: RowRefused,
    FORBIDS.replace("{state}", "55000"): RowRefused,
    "DROP TRIGGER leaves_out ON fencerow.jobs; DROP TRIGGER forbid ON fencerow.jobs;" + POLICY: RowRefused,
    "REVOKE INSERT ON fencerow.jobs FROM CURRENT_USER": NotPermitted,
}


@pytest.fixture
def pg(postgres_url: str) -> Any:
    made = postgres_engine(postgres_url)
    yield made
    made.close()


@pytest.fixture
def lite(sqlite_path: Path) -> Any:
    made = SqliteEngine(sqlite_path, store.sqlite_queries(), busy_timeout_s=0.2)
    store.migrate(made)
    yield made
    made.close()


@on_postgres
async def test_a_failed_transaction_is_refused_and_stays_failed(loan: Loan, lent_engine: AnyEngine) -> None:
    job = new_job()
    await loan.begin()
    with pytest.raises(Exception, match="division by zero"):
        await loan.sql("SELECT 1 / 0")

    with pytest.raises(UnusableConnection, match="in a failed transaction") as refused:
        await loan.run(store.submit([job]))

    assert "roll back" in refused.value.fix
    assert not getattr(refused.value.__cause__, "__notes__", [])
    with pytest.raises(Exception, match="aborted"):
        await loan.sql("SELECT 1")
    await loan.end("ROLLBACK")
    await loan.run(store.submit([job]))
    await loan.accept()
    assert seen(lent_engine, job.id)


@on_postgres
@pytest.mark.parametrize("with_key", [False, True])
async def test_a_read_only_transaction_is_refused_and_can_go_on_reading(
    loan: Loan, lent_engine: AnyEngine, with_key: bool
) -> None:
    jobs, keys = keyed()
    await loan.begin()
    await loan.sql("SET TRANSACTION READ ONLY")

    verb: Operation[Any] = submit_keyed(jobs, keys) if with_key else store.submit(jobs)
    with pytest.raises(
        ReadOnly, match=r"(?s)may not write.*declared READ ONLY, or .* a standby .*on the primary"
    ):
        await loan.run(verb)

    assert await loan.sql("SELECT 1") == [(1,)]
    assert await loan.run(store.read([jobs[0].id])) == {}
    await loan.end("COMMIT")
    assert not seen(lent_engine, jobs[0].id)


@on_sqlite
async def test_a_sqlite_connection_that_may_only_read_is_refused(loan: Loan, lent_engine: AnyEngine) -> None:
    jobs, _ = keyed()
    await loan.sql("PRAGMA query_only = ON")

    with pytest.raises(ReadOnly):
        await loan.run(store.submit(jobs))

    assert await loan.run(store.read([jobs[0].id])) == {}
    assert not seen(lent_engine, jobs[0].id)


async def test_a_connection_that_read_before_somebody_wrote_gets_told_to_start_again(
    sqlite_path: Path,
) -> None:
    engine = SqliteEngine(sqlite_path, store.sqlite_queries(), journal_mode="wal", busy_timeout_s=0.2)
    store.migrate(engine)
    connection = sqlite3.connect(sqlite_path, timeout=0.2, isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM fencerow_jobs").fetchone()
    engine.run(store.submit([new_job()]))

    with pytest.raises(RetryTransaction):
        borrowed(connection, engine).run(store.submit([new_job()]))
    connection.execute("ROLLBACK")
    connection.execute("BEGIN")
    assert len(borrowed(connection, engine).run(store.submit([new_job()]))) == 1
    connection.execute("COMMIT")
    connection.close()
    engine.close()


async def test_a_write_lock_held_elsewhere_is_busy_not_a_lost_transaction(lite: SqliteEngine) -> None:
    other = sqlite3.connect(lite.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    connection = sqlite3.connect(lite.path, timeout=0.05)

    with pytest.raises(Busy):
        borrowed(connection, lite).run(store.submit([new_job()]))

    assert not connection.in_transaction
    other.execute("ROLLBACK")
    assert len(borrowed(connection, lite).run(store.submit([new_job()]))) == 1
    connection.rollback()
    connection.close()
    other.close()


def test_another_sqlite_file_is_refused(lite: SqliteEngine, tmp_path: Path) -> None:
    for where in (tmp_path / "other.db", ":memory:"):
        connection = sqlite3.connect(where)
        with pytest.raises(UnusableConnection, match="this connection is to") as refused:
            borrowed(connection, lite).run(store.submit([new_job()]))
        assert str(lite.path) in refused.value.why
        assert not connection.in_transaction
        connection.close()


def test_the_same_file_by_another_name_is_accepted(lite: SqliteEngine, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(lite.path)
    connection = sqlite3.connect(link)

    assert len(borrowed(connection, lite).run(store.submit([new_job()]))) == 1
    connection.rollback()
    connection.close()


def test_worker_rows_are_out_of_reach_of_a_lent_sqlite_connection(lite: SqliteEngine) -> None:
    connection = sqlite3.connect(lite.path)

    loan = borrowed(connection, lite)

    with pytest.raises(UnusableConnection, match="worker rows"):
        loan.run(store.renew(holder=new_id()))
    with pytest.raises(UnusableConnection, match="worker rows"):
        loan.run(store.claim("mail", [store.Mark(0)], holder=new_id(), names=["send"], limit=1, margin_s=1))

    assert not connection.in_transaction
    connection.close()


def test_a_connection_to_the_other_database_is_refused(lite: SqliteEngine, pg: PostgresEngine) -> None:
    file, server = sqlite3.connect(lite.path), psycopg.connect(pg.conninfo)
    made = create_engine(f"sqlite:///{lite.path}")

    with pytest.raises(UnusableConnection, match=r"(?s)sqlite3.Connection talks to SQLite.* PostgreSQL"):
        borrowed(file, pg)
    with pytest.raises(UnusableConnection, match=r"psycopg.Connection talks to PostgreSQL"):
        borrowed(server, lite)
    with (
        Session(made) as session,
        pytest.raises(UnusableConnection, match=r"sqlalchemy.Session talks to SQLite"),
    ):
        borrowed(session, pg)

    file.close()
    server.close()
    made.dispose()


def test_an_unknown_object_is_named_with_what_is_accepted(lite: SqliteEngine) -> None:
    made = create_engine("sqlite://")

    for thing in (object(), "sqlite://", made, sessionmaker(made)):
        with pytest.raises(UnusableConnection) as refused:
            borrowed(thing, lite)
        assert type(thing).__qualname__ in refused.value.what
        assert "sqlite3" in refused.value.why

    made.dispose()


def test_a_session_without_a_database_is_refused(lite: SqliteEngine) -> None:
    with Session() as session, pytest.raises(UnusableConnection, match="bound"):
        borrowed(session, lite)


@pytest.mark.parametrize("kind", ["psycopg", "sqlite3", "sqlalchemy"])
def test_a_closed_connection_is_refused(lite: SqliteEngine, pg: PostgresEngine, kind: str) -> None:
    match kind:
        case "psycopg":
            connection: Any = psycopg.connect(pg.conninfo)
        case "sqlite3":
            connection = sqlite3.connect(lite.path)
        case _:
            connection = create_engine(f"sqlite:///{lite.path}", poolclass=NullPool).connect()
    connection.close()

    with pytest.raises(UnusableConnection, match="closed"):
        borrowed(connection, pg if kind == "psycopg" else lite).run(store.submit([new_job()]))


async def test_closed_async_connections_are_refused(lite: SqliteEngine, pg: PostgresEngine) -> None:
    plain = await asyncpg.connect(pg.conninfo)
    await plain.close()
    file = await aiosqlite.connect(lite.path)
    await file.close()
    async with asyncpg.create_pool(pg.conninfo, min_size=0, max_size=1) as pool:
        returned = await pool.acquire()
        await pool.release(returned)

        with pytest.raises(UnusableConnection, match="released"):
            await borrowed(returned, pg).arun(store.submit([new_job()]))
    with pytest.raises(UnusableConnection, match="closed"):
        await borrowed(plain, pg).arun(store.submit([new_job()]))
    with pytest.raises(UnusableConnection, match="closed"):
        await borrowed(file, lite).arun(store.submit([new_job()]))


def test_a_connection_in_the_middle_of_a_copy_is_refused(pg: PostgresEngine) -> None:
    with psycopg.connect(pg.conninfo) as connection:
        with (
            connection.cursor() as cursor,
            cursor.copy("COPY (SELECT generate_series(1, 9)) TO STDOUT") as copy,
        ):
            with pytest.raises(UnusableConnection, match="middle of another statement"):
                borrowed(connection, pg).run(store.submit([new_job()]))
            assert len(list(copy)) == 9

        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_connection_in_a_pipeline_is_refused(pg: PostgresEngine) -> None:
    with psycopg.connect(pg.conninfo) as connection:
        with connection.pipeline(), pytest.raises(UnusableConnection, match="pipeline"):
            borrowed(connection, pg).run(store.submit([new_job()]))

        assert len(borrowed(connection, pg).run(store.submit([new_job()]))) == 1


def test_an_open_cursor_of_the_users_goes_on(lite: SqliteEngine) -> None:
    connection = sqlite3.connect(lite.path)
    connection.execute("CREATE TABLE mine (n)")
    connection.executemany("INSERT INTO mine VALUES (?)", [(n,) for n in range(1000)])
    reading = connection.execute("SELECT n FROM mine ORDER BY n")
    reading.fetchone()

    borrowed(connection, lite).run(store.submit([new_job()]))

    assert len(reading.fetchall()) == 999
    connection.commit()
    connection.close()


async def test_a_schema_that_is_not_there_is_named(empty_postgres_url: str) -> None:
    engine = postgres_engine(empty_postgres_url)
    connection = await asyncpg.connect(empty_postgres_url)

    async with connection.transaction():
        with pytest.raises((SchemaMissing, SchemaTooOld), match="fencerow migrate"):
            await borrowed(connection, engine).arun(store.submit([new_job()]))
        assert await connection.fetchval("SELECT 1") == 1

    await connection.close()
    await engine.aclose()


@on_postgres
async def test_a_rule_against_a_row_is_told_from_a_missing_privilege(
    loan: Loan, lent_engine: AnyEngine
) -> None:
    assert isinstance(lent_engine, PostgresEngine)
    for rule, told in RULES.items():
        with psycopg.connect(lent_engine.conninfo) as connection:
            connection.execute(rule.encode())
        for others in ([], [new_job()]):
            await loan.begin()
            with pytest.raises(told):
                await loan.run(store.submit([*others, new_job(BAD, priority=7)]))
            await loan.end("ROLLBACK")
