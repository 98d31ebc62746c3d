"""Guards in `job.transaction()`: others need not wait for the handler, and nothing of a stale attempt is committed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from fencerow.core.store import store
from fencerow.core.worker.context import Job
from fencerow.db.postgres import PostgresEngine
from fencerow.errors import Busy, OutcomeUnknown, Unavailable
from fencerow.guards.once import once
from fencerow.guards.replace.replace import replace_for
from tests.core.worker.stage import quick, read, until, working
from tests.guards.places import At
from tests.guards.transitions.tables import AtEngine, create, extractions, insert
from tests.kit.jobs import claim, new_job, register, running, submit

MADE = "CREATE TABLE fencerow.effect (id integer PRIMARY KEY, source text)"
LOCKED = "SELECT 1 FROM fencerow.jobs WHERE id = %s FOR UPDATE NOWAIT"
IDLE = "SELECT current_setting('idle_in_transaction_session_timeout')"

Guard = Callable[[PostgresEngine, Any], None]


def by_once(pg: PostgresEngine, connection: Any) -> None:
    once(At(pg), "k", connection=connection).call(int)


def by_replacing(pg: PostgresEngine, connection: Any) -> None:
    with replace_for(
        At(pg), table="fencerow.effect", source_column="source", source="s", version=1
    ) as source:
        source.insert([{"id": 2}], connection=connection)


def by_moving(pg: PostgresEngine, connection: Any) -> None:
    documents = extractions(AtEngine(pg), "fencerow.document", by_attempt=True)
    assert documents.move("claim", "a", connection=connection) is not None


def is_free(pg: PostgresEngine, job_id: str) -> bool:
    """Whether nobody locks the row of the job."""
    try:
        with pg.session() as session:
            session.connection.execute(LOCKED, (job_id,))
    except psycopg.errors.LockNotAvailable:
        return False
    return True


@pytest.mark.parametrize("guard", [by_once, by_replacing, by_moving])
async def test_a_guard_leaves_the_jobs_row_to_the_others(pg: PostgresEngine, guard: Guard) -> None:
    """A deadline, a cancel, a reclaim and a waiter pass over a row that is locked, or wait for it."""
    with pg.session() as session:
        session.connection.execute(MADE)
    insert(pg, create(pg, name="document"), "a")
    free: list[bool] = []

    def pay(job: Job) -> str:
        with job.transaction() as connection:
            guard(pg, connection)
            free.append(is_free(pg, job.id))
        return "paid"

    async with working(pg, pay) as stage:
        done = await stage.run("pay")

    assert done.state == "succeeded" and free == [True]


async def test_a_stale_attempt_commits_nothing_of_its_guarded_transaction(pg: PostgresEngine) -> None:
    with pg.session() as session:
        session.connection.execute(MADE)
    inside, go = threading.Event(), threading.Event()

    def pay(job: Job) -> str:
        with job.transaction() as connection:
            by_once(pg, connection)
            connection.execute("INSERT INTO fencerow.effect VALUES (1, 's')")
            inside.set()
            go.wait(60)
        return "paid"

    async with working(pg, pay) as stage:
        job_id = await stage.submit("pay", attempts_max=1)
        await asyncio.to_thread(inside.wait, 60)
        fence = (await pg.arun(store.read_fences([job_id])))[job_id]
        lost = store.Success(job_id, fence.attempt, '"another"')
        assert await pg.arun(store.succeed([lost], holder=str(fence.holder)))
        go.set()
        await until(lambda: effects(pg) == [] and not pg_open(pg), what="the rollback")

    assert (await read(pg, job_id)).result == "another"
    with pg.session() as session:
        assert session.connection.execute("SELECT count(*) FROM fencerow.once_keys").fetchone() == (0,)


def effects(pg: PostgresEngine) -> list[Any]:
    with pg.session() as session:
        return list(session.connection.execute("SELECT id FROM fencerow.effect").fetchall())


def pg_open(pg: PostgresEngine) -> bool:
    """Whether somebody has a transaction open in this database, but for who asks."""
    asked = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND xact_start IS NOT NULL AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    with pg.session() as session:
        return bool(session.connection.execute(asked).fetchone() != (0,))


async def test_a_handler_that_is_given_up_holds_nothing_in_the_server(pg: PostgresEngine) -> None:
    with pg.session() as session:
        session.connection.execute(MADE)
    go = threading.Event()

    def hangs(job: Job) -> None:
        with job.transaction() as connection:
            connection.execute("INSERT INTO fencerow.effect VALUES (1, 's')")
            go.wait(60)

    async with working(pg, hangs, config=quick(cancel_kill_s=0.2)) as stage:
        await stage.run("hangs", timeout_s=0.1, attempts_max=1)
        await until(lambda: not pg_open(pg), what="the end of its transaction")
        with pg.session() as session:
            session.connection.execute("INSERT INTO fencerow.effect VALUES (1, 'another')")
        go.set()


def test_a_frozen_handlers_transaction_ends_with_its_deadline(pg: PostgresEngine) -> None:
    submit(pg, new_job(timeout_s=0.001))
    (job,) = claim(pg, register(pg), margin_s=1.0)

    with pytest.raises((Unavailable, OutcomeUnknown)), pg.session() as session:
        session.run(store.bound_idle(job.id))
        # Asked, not read off the connection: behind a pooler that has the pooler's own number.
        (backend,) = session.connection.execute("SELECT pg_backend_pid()").fetchall()[0]
        with psycopg.connect(pg.conninfo, autocommit=True) as other:
            while other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (backend,)).fetchone():
                other.execute("SELECT pg_sleep(0.05)")
        session.connection.execute("SELECT 1")


def test_a_fence_on_ones_own_connection_lasts_no_longer_than_the_attempt_may(pg: PostgresEngine) -> None:
    holder = register(pg)
    job = running(pg, holder, timeout_s=100.0)

    with pg.session() as session:
        assert session.run(store.hold_fence(job.id, holder=holder, attempt=job.attempt)) is False
        (shown,) = session.connection.execute(IDLE).fetchall()
    with pg.session() as session:
        session.connection.execute("SET LOCAL idle_in_transaction_session_timeout = '7s'")
        session.run(store.hold_fence(job.id, holder=holder, attempt=job.attempt))
        (kept,) = session.connection.execute(IDLE).fetchall()
        after = pg.run(store.check_fence(job.id, holder=holder, attempt=job.attempt))

    assert shown not in [("0",), kept] and kept == ("7s",) and after is False


async def test_a_cancel_that_meets_a_locked_row_answers_soon(pg: PostgresEngine) -> None:
    job = running(pg, holder := register(pg), timeout_s=100.0)

    with pg.session() as session:
        session.run(store.hold_fence(job.id, holder=holder, attempt=job.attempt))
        with pytest.raises(Busy):
            await asyncio.wait_for(pg.arun(store.cancel(job.id, actor=None)), 20)

    assert (await pg.arun(store.cancel(job.id, actor=None))).holder == holder
