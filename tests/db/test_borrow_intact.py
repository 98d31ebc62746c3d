"""What the user set up on a lent connection neither disturbs us nor is disturbed: factories, codecs, events."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiosqlite
import asyncpg
import msgspec
import psycopg
import psycopg.types.json
import psycopg.types.string
import pytest
from psycopg.rows import dict_row
from sqlalchemy import NullPool, create_engine, event
from sqlalchemy.ext.asyncio import async_scoped_session, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from fencerow.core.model.submission import SubmitResult
from fencerow.core.store import store
from fencerow.db.adapters.frame import NOTHING
from fencerow.db.adapters.lent_asyncpg import LentAsyncpg
from fencerow.db.borrow import borrowed
from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import Queries, Query
from fencerow.db.run import Rows, Steps, execute, operation
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import KeyConflict
from tests.conftest import postgres_engine
from tests.db.lenders import Loan, alchemy_url
from tests.db.test_borrow_refusals import on_postgres
from tests.db.work import keyed, seen
from tests.kit.asked import submit_keyed
from tests.kit.jobs import new_job


@pytest.fixture
def pg(postgres_url: str) -> Iterator[PostgresEngine]:
    made = postgres_engine(postgres_url)
    yield made
    made.close()


@pytest.fixture
def lite(sqlite_path: Path) -> Iterator[SqliteEngine]:
    made = SqliteEngine(sqlite_path, store.sqlite_queries())
    store.migrate(made)
    yield made
    made.close()


def test_psycopg_factories_and_loaders_stay_and_do_not_matter(pg: PostgresEngine) -> None:
    connection: Any = psycopg.connect(pg.conninfo, row_factory=dict_row, cursor_factory=psycopg.ClientCursor)
    job = new_job()

    assert borrowed(connection, pg).run(store.submit([job])) == [job.id]
    assert borrowed(connection, pg).run(store.read([job.id]))[job.id].args == {"to": "ada"}

    assert connection.row_factory is dict_row
    assert connection.cursor_factory is psycopg.ClientCursor
    assert connection.execute("SELECT 1 AS one").fetchone() == {"one": 1}
    connection.close()


def test_psycopg_adapters_of_the_users_stay_and_do_not_matter(pg: PostgresEngine) -> None:
    connection = psycopg.connect(pg.conninfo)
    connection.adapters.register_dumper(list, psycopg.types.json.JsonbDumper)
    connection.adapters.register_dumper(str, psycopg.types.json.JsonDumper)
    connection.adapters.register_loader("uuid", psycopg.types.string.ByteaLoader)
    jobs, keys = keyed()

    assert borrowed(connection, pg).run(submit_keyed(jobs, keys)) == [SubmitResult(jobs[0].id)]
    cancelled = borrowed(connection, pg).run(store.cancel(jobs[0].id, actor="ada"))

    assert cancelled.moved is not None
    assert cancelled.moved.id == jobs[0].id
    assert connection.execute("SELECT %s->>0", [["a"]]).fetchone() == ("a",)
    connection.close()


def test_no_driver_is_imported_before_one_of_its_connections_is_lent() -> None:
    code = "import fencerow.db.borrow, sys; print({'asyncpg', 'aiosqlite', 'sqlalchemy'} & set(sys.modules))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"


async def test_a_json_codec_on_asyncpg_does_not_encode_twice(pg: PostgresEngine) -> None:
    connection = await asyncpg.connect(pg.conninfo, record_class=Boastful)
    for kind in ("json", "jsonb"):
        await connection.set_type_codec(kind, schema="pg_catalog", encoder=json.dumps, decoder=json.loads)
    await connection.set_type_codec("uuid", schema="pg_catalog", encoder=str, decoder=uuid.UUID)
    jobs, keys = keyed()
    jobs = [msgspec.structs.replace(jobs[0], args='{"n":1e22,"list":[1,"ü"]}')]

    async with connection.transaction():
        await borrowed(connection, pg).arun(submit_keyed(jobs, keys))
        found = await borrowed(connection, pg).arun(store.read([jobs[0].id]))
        assert (await connection.fetchrow("SELECT CAST('{\"a\":1}' AS json) AS it"))["it"] == {"a": 1}

    assert found[jobs[0].id].args == {"n": 1e22, "list": [1, "ü"]}
    stored = await connection.fetchval("SELECT CAST(args AS text) FROM fencerow.jobs")
    assert stored == '{"n":1e22,"list":[1,"ü"]}'
    await connection.close()
    await pg.aclose()


class Boastful(asyncpg.Record):  # type: ignore[misc] # asyncpg has no types
    """A user's record class whose rows do not iterate over their values."""

    def __iter__(self) -> Iterator[str]:
        return iter(["boast"])


async def test_without_our_casts_the_codec_would_encode_twice(
    pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencerow.db.adapters.lent_asyncpg.typed", lambda written, *_: written)
    connection = await asyncpg.connect(pg.conninfo)
    await connection.set_type_codec("json", schema="pg_catalog", encoder=json.dumps, decoder=json.loads)

    with pytest.raises(asyncpg.PostgresError):
        await borrowed(connection, pg).arun(store.submit([new_job(), new_job()]))

    await connection.close()
    await pg.aclose()


async def test_without_the_savepoint_a_key_conflict_would_keep_half_of_the_batch(
    pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    pg.run(submit_keyed(*keyed()))
    free, free_key = keyed("free")
    taken, taken_key = keyed(fingerprint="other")
    monkeypatch.setattr(LentAsyncpg, "frame", lambda *_: NOTHING)
    connection = await asyncpg.connect(pg.conninfo)

    async with connection.transaction():
        with pytest.raises(KeyConflict):
            await borrowed(connection, pg).arun(submit_keyed([*free, *taken], [*free_key, *taken_key]))

    assert pg.run(store.key_owner("s", "free")) is not None
    await connection.close()
    await pg.aclose()


def test_sqlite_factories_and_functions_stay_and_do_not_matter(lite: SqliteEngine) -> None:
    connection = sqlite3.connect(lite.path, factory=Chatty)
    connection.row_factory = sqlite3.Row
    connection.text_factory = bytes
    job = new_job()

    assert borrowed(connection, lite).run(store.submit([job])) == [job.id]
    assert borrowed(connection, lite).run(store.read([job.id]))[job.id].args == {"to": "ada"}

    assert connection.row_factory is sqlite3.Row
    assert connection.text_factory is bytes
    assert connection.execute("SELECT 'a' AS a").fetchone()["a"] == b"a"
    functions = {row[0] for row in connection.execute("SELECT name FROM pragma_function_list")}
    assert b"fencerow_now" not in functions
    connection.commit()
    connection.close()
    assert seen(lite, job.id)


class Chatty(sqlite3.Connection):
    """A user's subclass: found by its base."""


async def test_aiosqlite_factories_stay_and_do_not_matter(lite: SqliteEngine) -> None:
    async with aiosqlite.connect(lite.path) as connection:
        connection.row_factory = sqlite3.Row
        connection.text_factory = bytes
        job = new_job()

        assert await borrowed(connection, lite).arun(store.submit([job])) == [job.id]

        assert connection.row_factory is sqlite3.Row
        assert connection.text_factory is bytes
        await connection.commit()
    assert seen(lite, job.id)


def test_the_engines_clock_counts_on_a_lent_sqlite_connection(lite: SqliteEngine) -> None:
    connection = sqlite3.connect(lite.path)
    lite.clock.offset_us = 3_600_000_000
    job = new_job()

    borrowed(connection, lite).run(store.submit([job]))
    record = borrowed(connection, lite).run(store.read([job.id]))[job.id]

    assert abs(record.submitted_at_us - lite.clock.now_us()) < 60_000_000
    connection.rollback()
    connection.close()


@on_postgres
async def test_an_integrity_error_reaches_the_caller_unchanged(
    loan: Loan, lent_engine: PostgresEngine
) -> None:
    bad = new_job(priority=101)
    await loan.begin()

    with pytest.raises(Exception, match='"job_priority"') as refused:
        await loan.run(store.submit([bad]))
    assert not type(refused.value).__module__.startswith("fencerow")
    job = new_job()
    assert await loan.run(store.submit([job])) == [job.id]
    await loan.end("COMMIT")


@on_postgres
async def test_colons_percents_and_backslashes_in_a_statement_stay_as_they_are(loan: Loan) -> None:
    odd = r"at 10:45 :id is 5%% of %(n)s, C:\new $1 100%"
    loan.engine = engine_with(
        loan.engine, f"SELECT '{odd}', CAST('{{\"a\":1}}' AS jsonb) @> CAST(:doc AS jsonb), 7 % 4"
    )

    (row,) = await loan.run(asked(doc='{"a":1}'))

    assert row == (odd, True, 3)


@on_postgres
async def test_every_kind_of_parameter_arrives_also_twice(loan: Loan) -> None:
    loan.engine = engine_with(
        loan.engine,
        """
        SELECT CAST(:whole AS bigint), CAST(:part AS double precision), CAST(:text AS text), CAST(:nothing AS text),
               CAST(:texts AS text[]), CAST(:none AS uuid[]), CAST(:wholes AS bigint[]), CAST(:raw AS bytea),
               CAST(:text AS text), CAST(:id AS uuid) = ANY(CAST(:ids AS uuid[])), CAST(:small AS integer)
        LIMIT CAST(:small AS integer)
        """,
    )
    one = new_job().id
    texts, none, wholes = ["a", None, 'q"{,}'], list[str](), [2**40]

    (row,) = await loan.run(
        asked(
            whole=2**40,
            part=1.5,
            text="it's",
            nothing=None,
            texts=texts,
            none=none,
            wholes=wholes,
            raw=b"\0\xff",
            id=one,
            ids=[one],
            small=1,
        )
    )

    assert [bytes(value) if isinstance(value, memoryview) else value for value in row] == [
        *(2**40, 1.5, "it's", None, texts, none, wholes, b"\0\xff", "it's", True, 1),
    ]


async def test_a_scoped_session_and_its_async_twin_are_sessions(lite: SqliteEngine) -> None:
    made = create_engine(alchemy_url("sqlite", str(lite.path)), poolclass=NullPool)
    amade = create_async_engine(alchemy_url("sqlite+aiosqlite", str(lite.path)), poolclass=NullPool)
    job, later = new_job(), new_job()
    scoped = scoped_session(sessionmaker(made))
    ascoped = async_scoped_session(async_sessionmaker(amade), scopefunc=lambda: 1)

    borrowed(scoped, lite).run(store.submit([job]))
    scoped.commit()
    scoped.remove()
    await borrowed(ascoped, lite).arun(store.submit([later]))
    await ascoped.commit()
    await ascoped.remove()

    assert seen(lite, job.id)
    assert seen(lite, later.id)


def test_sqlalchemys_events_see_our_statements(pg: PostgresEngine) -> None:
    made = create_engine(alchemy_url("postgresql+psycopg", pg.conninfo), poolclass=NullPool)
    heard: list[str] = []
    event.listen(made, "before_cursor_execute", lambda _c, _k, statement, *_: heard.append(statement))

    with Session(made) as session:
        borrowed(session, pg).run(store.submit([new_job()]))
        session.commit()

    assert any("INSERT INTO" in statement for statement in heard)


def engine_with(engine: Any, written: str) -> Any:
    """An engine of the same database that knows one more query."""
    query = Query("asked", (written,), tuple(dict.fromkeys(re.findall(r"(?<![:\w]):([a-z]+) AS", written))))
    return SimpleNamespace(
        dialect=engine.dialect,
        traits=engine.traits,
        queries=Queries(engine.dialect, {**engine.queries, "asked": query}),
        known=getattr(engine, "known", None),
        run=engine.run,
        arun=engine.arun,
    )


@operation(writes="")
def asked(**params: Any) -> Steps[Rows]:
    """Ask the one more query."""
    return (yield from execute("asked", params))
