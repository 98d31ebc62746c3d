"""Through a pooler no plan is kept: each statement that walks an index is told how with its own message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from fencerow.core.store import store
from fencerow.core.store.claims import Mark
from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import Query
from fencerow.db.run import Operation, Statement, Steps, execute, operation
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.servers.pgbouncer import PgBouncer
from tests.conftest import ROLE, postgres_engine
from tests.core.store.test_kept_plans import BACKLOG, walked
from tests.core.store.test_plans import FILL, flat, touched
from tests.db.test_preparing import Runner, both
from tests.kit.jobs import register

pytestmark = pytest.mark.outside("PgBouncer")
LEFT = 3
SETTINGS = (
    "SELECT current_setting('enable_seqscan'), current_setting('seq_page_cost'), current_setting('jit')"
)


@pytest.fixture
async def pooled(server: PostgresServer, pg: PostgresEngine) -> AsyncIterator[PostgresEngine]:
    """A pooler, and behind it a queue that was analyzed when it was idle, and is full now."""
    name = str(conninfo_to_dict(pg.conninfo)["dbname"])
    with psycopg.connect(server.conninfo(name, ROLE), autocommit=True) as connection:
        connection.execute('ALTER TABLE "fencerow".jobs SET (autovacuum_enabled = false)')
        backlog = FILL.format(queue="mail", start=0, number=BACKLOG, sign="-", days=1)
        connection.execute(backlog.encode())
        connection.execute(FILL.format(queue="mail", start=700_000, number=LEFT, sign="+", days=1).encode())
        connection.execute('DELETE FROM "fencerow".jobs WHERE run_at < clock_timestamp()')
        connection.execute('VACUUM ANALYZE "fencerow".jobs')
        connection.execute(backlog.encode())
    with PgBouncer(server, pool_size=1) as pooler:
        engine = postgres_engine(pooler.conninfo(name, ROLE))
        yield engine
        await engine.aclose()


def explained(asked: Operation[Any], engine: PostgresEngine) -> Operation[list[dict[str, Any]]]:
    """The same operation, whose one statement tells its plan, run once."""

    def steps() -> Steps[list[dict[str, Any]]]:
        own = next(asked.start())
        query = engine.queries[own.name]
        (text,) = query.statements
        told = Query(own.name, (f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}",), query.parameters)
        ((plans,),) = yield Statement(own.name, own.params, told)
        return flat(plans[0]["Plan"])  # type: ignore[index]

    return msgspec.structs.replace(asked, start=steps)


@both
@pytest.mark.parametrize("name", ["claim", "lanes"])
async def test_what_walks_an_index_reads_no_backlog_behind_statistics_of_an_idle_queue(
    pooled: PostgresEngine, run: Runner, name: str
) -> None:
    holder = await asyncio.to_thread(register, pooled)
    asked: dict[str, Operation[Any]] = {
        "claim": store.claim("mail", [Mark(0)], holder=holder, names=["send"], limit=10, margin_s=60),
        "lanes": store.lanes("mail"),
    }

    plan = await run(pooled, explained(asked[name], pooled))

    assert walked(plan) < 100 and touched(plan) < 400


@operation()
def in_a_transaction() -> Steps[tuple[object, ...]]:
    yield from execute("clock")
    return (yield Statement("settings", {}, Query("settings", (SETTINGS,), ())))[0]


@operation(alone=True, walks=True)
def failing() -> Steps[None]:
    yield Statement("failing", {}, Query("failing", ("SELECT 1 / 0",), ()))


@operation(alone=True)
def settings() -> Steps[tuple[object, ...]]:
    return (yield Statement("settings", {}, Query("settings", (SETTINGS,), ())))[0]


@both
async def test_what_is_set_ends_with_its_transaction_also_with_one_that_failed(
    pooled: PostgresEngine, run: Runner
) -> None:
    before = await run(pooled, settings())
    assert await run(pooled, in_a_transaction()) == ("off", "0", "off") != before
    with pytest.raises(psycopg.errors.DivisionByZero):
        await run(pooled, failing())
    assert (await run(pooled, store.lanes("mail")))[0]

    assert await run(pooled, settings()) == before, "the pooler has one session, which all of them had"
