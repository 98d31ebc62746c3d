"""Prepared statements: on connections that lead to the server itself, and harmless where a pooler was not noticed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from fencerow.core.store import store
from fencerow.db import preparing
from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import Query
from fencerow.db.run import Operation, Steps, execute_composed, operation
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.servers.pgbouncer import PgBouncer, is_pooled
from tests.conftest import ROLE, postgres_engine
from tests.kit.jobs import new_job, register

OWN = ("enable_seqscan", "jit", "plan_cache_mode", "seq_page_cost")
CHANGED = "SELECT name FROM pg_settings WHERE source = 'session' AND name = ANY(%s) ORDER BY name"
PREPARED = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%INSERT INTO%'"
# As if the pooler had told the server's own process id; the settings stay away from the server's sessions.
NOT_NOTICED = "SELECT 1 WHERE %s IS NOT NULL"

Runner = Callable[[PostgresEngine, Operation[Any]], Coroutine[Any, Any, Any]]


async def in_a_thread(engine: PostgresEngine, operation: Operation[Any]) -> Any:
    return await asyncio.to_thread(engine.run, operation)


async def in_the_loop(engine: PostgresEngine, operation: Operation[Any]) -> Any:
    return await engine.arun(operation)


both = pytest.mark.parametrize("run", [in_a_thread, in_the_loop])


@pytest.fixture
def pool(server: PostgresServer, postgres_url: str) -> Iterator[PgBouncer]:
    """A pooler that gives each transaction another of two server connections."""
    with PgBouncer(server, pool_size=2) as running:
        url = running.conninfo(str(conninfo_to_dict(postgres_url)["dbname"]), ROLE)
        with psycopg.connect(url) as one, psycopg.connect(url) as other:
            for each in (one, other):  # at once, so that it opens both
                each.execute("SELECT 1")
        yield running


@pytest.fixture
async def pooled(pool: PgBouncer, pg: PostgresEngine) -> Any:
    """An engine that reaches the database of `pg` through it."""
    made = postgres_engine(pool.conninfo(str(conninfo_to_dict(pg.conninfo)["dbname"]), ROLE))
    yield made
    await made.aclose()


async def session_of(engine: PostgresEngine, run: Runner) -> tuple[list[str], int]:
    """The settings of ours and the inserts that are prepared in the session that `run` uses."""
    if run is in_the_loop:
        async with engine._pools.aconnection() as aconnection:
            names = await (await aconnection.execute(CHANGED, (list(OWN),))).fetchall()
            count = await (await aconnection.execute(PREPARED)).fetchone()
    else:
        with engine._pools.connection() as connection:
            names = connection.execute(CHANGED, (list(OWN),)).fetchall()
            count = connection.execute(PREPARED).fetchone()
    assert count is not None
    return [name for (name,) in names], count[0]


@both
async def test_the_statements_of_every_job_are_prepared_on_a_direct_connection(
    pg: PostgresEngine, run: Runner
) -> None:
    if is_pooled(pg.conninfo):
        pytest.skip("what is seen through a pooler is another test's")
    for _ in range(3):
        await run(pg, store.submit([new_job()]))

    assert await session_of(pg, run) == (list(OWN), 1)


@pytest.mark.outside("PgBouncer")
@both
async def test_through_a_pooler_nothing_is_prepared_nor_set(pooled: PostgresEngine, run: Runner) -> None:
    for _ in range(3):
        await run(pooled, store.submit([new_job()]))

    assert [await session_of(pooled, run) for _ in range(2)] == [([], 0)] * 2


@both
async def test_an_operator_can_forbid_it(pg: PostgresEngine, run: Runner) -> None:
    engine = PostgresEngine(pg.conninfo, pg.queries, prepares=False)
    await run(engine, store.submit([new_job()]))

    assert await session_of(engine, run) == ([], 0)
    await engine.aclose()


async def test_a_server_that_does_not_know_the_question_is_used_without(
    pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "MEET", "SELECT set_config('no_setting_of_anybody', %s, false)")
    for run in (in_a_thread, in_the_loop):
        assert len(await run(pg, store.submit([new_job()]))) == 1
        assert await session_of(pg, run) == ([], 0)


@pytest.mark.outside("PgBouncer")
@both
@pytest.mark.parametrize("ahead", [0, 1], ids=["", "the other connection first"])
async def test_a_pooler_that_is_not_noticed_loses_and_doubles_nothing(
    pooled: PostgresEngine,
    pool: PgBouncer,
    run: Runner,
    ahead: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Two clients, each with a statement of one text parameter as its first: what one prepares the other would find."""
    monkeypatch.setattr(preparing, "MEET", NOT_NOTICED)
    other = PostgresEngine(pooled.conninfo, pooled.queries)
    assert await run(other, store.lanes("mail")) == ([], 0)
    for _ in range(ahead):
        await run(pooled, store.clock())
    jobs = [new_job() for _ in range(6)]
    answers = [await run(pooled, store.submit([job])) for job in jobs]
    lanes, _ = await run(other, store.lanes("mail"))
    await other.aclose()

    assert answers == [[job.id] for job in jobs]
    assert [lane.priority for lane in lanes] == [0]
    assert sorted(await run(pooled, store.existing([job.id for job in jobs]))) == sorted(
        job.id for job in jobs
    )
    told = [
        record.message for record in caplog.records if "nothing is prepared from now on" in record.message
    ]
    assert len(told) == 2, "once for each engine"


@both
async def test_a_statement_whose_answer_a_migration_changed_is_repeated(
    pg: PostgresEngine, run: Runner
) -> None:
    everything = Query("everything", ('SELECT * FROM "fencerow".note',), (), users=True)
    with pg.session() as session:
        session.connection.execute('CREATE TABLE "fencerow".note AS SELECT 1 AS first')
    assert await run(pg, _asked(everything)) == [{"first": 1}]
    with pg.session() as session:
        session.connection.execute('ALTER TABLE "fencerow".note ADD COLUMN second integer')

    assert await run(pg, _asked(everything)) == [{"first": 1, "second": None}]


async def test_a_claim_whose_preparation_was_thrown_away_is_sent_again_and_claims_once(
    pg: PostgresEngine,
) -> None:
    jobs = [new_job(), new_job()]
    holder = register(pg)
    for job in jobs:
        pg.run(store.submit([job]))
    claim = store.claim("mail", [store.Mark(0)], holder=holder, names=["send"], limit=1, margin_s=60)
    first = pg.run(claim)
    with pg._pools.connection() as connection:
        connection.pgconn.exec_(b"DEALLOCATE ALL")  # below the driver, which would notice
    second = pg.run(claim)

    assert [each.id for each in first + second] == [job.id for job in jobs]
    assert [each.attempt for each in first + second] == [1, 1]


@operation(alone=True, writes="", prepared=True)
def _asked(query: Query) -> Steps[list[dict[str, Any]]]:
    return (yield from execute_composed(query, {}))
