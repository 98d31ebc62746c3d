"""Keys between a user's open transaction and everybody else, and isolation levels above READ COMMITTED."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from fencerow.client import Client
from fencerow.core.model.ids import new_id
from fencerow.core.model.submission import Submission, SubmitResult
from fencerow.core.store import store
from fencerow.core.store.attempts import Success
from fencerow.db.adapters.frame import Lent
from fencerow.db.adapters.lent_postgres import LentPostgres
from fencerow.db.borrow import borrowed
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import Busy, OutcomeUnknown, RetryTransaction, Unavailable, UnusableConnection
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.servers.pgbouncer import PgBouncer
from tests.conftest import postgres_engine
from tests.db.lenders import Lender, Loan
from tests.db.test_borrow_refusals import on_postgres, on_sqlite
from tests.db.work import claimed, keyed, seen
from tests.kit.asked import submit_keyed
from tests.kit.jobs import claim, new_job, register

LEVELS = ["REPEATABLE READ"]


async def until_somebody_waits(server: PostgresServer, database: str) -> None:
    """Return when a session of the database waits for another's transaction."""
    query = "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'"
    with server.connect() as watching:
        async with asyncio.timeout(60):
            while not watching.execute(query, [database]).fetchone():
                await asyncio.sleep(0.005)


def database_of(engine: PostgresEngine) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(engine.conninfo)["dbname"])


@on_postgres
@pytest.mark.parametrize("verb", ["COMMIT", "ROLLBACK"])
async def test_the_second_submit_of_a_key_waits_for_the_first_ones_transaction(
    loan: Loan, lent_engine: PostgresEngine, server: PostgresServer, verb: str
) -> None:
    first, first_key = keyed()
    second, second_key = keyed()
    await loan.begin()
    await loan.run(submit_keyed(first, first_key))

    waiting = asyncio.create_task(lent_engine.arun(submit_keyed(second, second_key)))
    await until_somebody_waits(server, database_of(lent_engine))
    assert not waiting.done()
    await loan.end(verb)
    (answer,) = await waiting
    await lent_engine.aclose()

    winner = first[0].id if verb == "COMMIT" else second[0].id
    assert answer == SubmitResult(winner, replay=verb == "COMMIT")
    assert claimed(lent_engine) == [winner]


@on_postgres
async def test_a_lent_keyed_submit_waits_for_another_transaction_and_takes_its_job(
    loan: Loan, lent_engine: PostgresEngine, server: PostgresServer
) -> None:
    first, first_key = keyed()
    second, second_key = keyed()
    with psycopg.connect(lent_engine.conninfo) as other:
        borrowed(other, lent_engine).run(submit_keyed(first, first_key))
        if loan.asynchronous:
            waiting: asyncio.Future[Any] = asyncio.ensure_future(loan.run(submit_keyed(second, second_key)))
        else:
            lent = borrowed(loan.connection, lent_engine)
            waiting = asyncio.ensure_future(asyncio.to_thread(lent.run, submit_keyed(second, second_key)))
        await until_somebody_waits(server, database_of(lent_engine))
        other.commit()
        (answer,) = await waiting
        await loan.accept()

    assert answer == SubmitResult(first[0].id, replay=True)
    assert claimed(lent_engine) == [first[0].id]


@on_sqlite
async def test_on_sqlite_the_second_submit_of_a_key_waits_for_the_only_writer(
    loan: Loan, lent_engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, first_key = keyed()
    second, second_key = keyed()
    await loan.begin()
    await loan.run(submit_keyed(first, first_key))

    monkeypatch.setattr(lent_engine, "_jobs_timeout_s", 0.2)  # it waits in vain
    with pytest.raises(Busy):
        lent_engine.run(submit_keyed(second, second_key))
    await loan.end("ROLLBACK")

    assert lent_engine.run(submit_keyed(second, second_key)) == [SubmitResult(second[0].id)]


@on_postgres
@pytest.mark.parametrize("level", LEVELS)
async def test_a_key_taken_after_the_snapshot_means_run_it_again(
    loan: Loan, lent_engine: PostgresEngine, level: str
) -> None:
    first, first_key = keyed()
    second, second_key = keyed()
    await loan.snapshot(level)
    lent_engine.run(submit_keyed(first, first_key))

    with pytest.raises(RetryTransaction):
        await loan.run(submit_keyed(second, second_key))
    assert await loan.sql("SELECT 1") == [(1,)]  # only our part was lost
    await loan.end("ROLLBACK")
    await loan.snapshot(level)
    answer = await loan.run(submit_keyed(second, second_key))
    await loan.end("COMMIT")

    assert answer == [SubmitResult(first[0].id, replay=True)]


@on_postgres
@pytest.mark.parametrize("level", LEVELS)
async def test_a_repeated_keyed_submit_under_an_old_snapshot_does_not_run_a_finished_job_again(
    loan: Loan, lent_engine: PostgresEngine, level: str
) -> None:
    jobs, keys = keyed()
    lent_engine.run(submit_keyed(jobs, keys))
    await loan.snapshot(level)
    holder = register(lent_engine)
    (attempt,) = claim(lent_engine, holder)
    lent_engine.run(store.succeed([Success(attempt.id, attempt.attempt, "null")], holder=holder))

    with pytest.raises(RetryTransaction):
        await loan.run(submit_keyed(jobs, keys))
    await loan.end("COMMIT")

    assert claimed(lent_engine) == []


@on_postgres
@pytest.mark.parametrize("level", LEVELS)
async def test_a_repeated_submit_under_a_snapshot_is_refused(
    loan: Loan, lent_engine: PostgresEngine, level: str
) -> None:
    job = new_job()
    await loan.snapshot(level)

    with pytest.raises(UnusableConnection, match="isolation level"):
        await loan.run(store.resubmit([job]))
    assert await loan.run(store.submit([job])) == [job.id]
    await loan.end("COMMIT")

    assert seen(lent_engine, job.id)


@on_postgres
async def test_a_cancelled_submit_leaves_the_transaction_usable(
    loan: Loan, lender: Lender, lent_engine: PostgresEngine, server: PostgresServer
) -> None:
    if not loan.asynchronous:
        pytest.skip("a sync call cannot be cancelled")
    job = new_job()
    with psycopg.connect(lent_engine.conninfo) as other:
        borrowed(other, lent_engine).run(submit_keyed(*keyed()))
        await loan.begin()
        waiting = asyncio.create_task(loan.run(submit_keyed(*keyed())))
        await until_somebody_waits(server, database_of(lent_engine))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        other.rollback()

    if "session" in lender.name or "connection" in lender.name:
        # SQLAlchemy closes the driver's connection under any statement that is cancelled.
        with pytest.raises(UnusableConnection):
            await loan.run(store.submit([job]))
    else:
        await loan.run(store.submit([job]))
        await loan.end("COMMIT")
        assert claimed(lent_engine) == [job.id]


def beside_a_key(id_of_its_own: str, *, key: bool = False) -> list[Submission]:
    """A keyed job, and one under an id of the caller's own, which may have a key as well."""
    (first,), (claim_of_first,) = keyed()
    (other,), (claim_of_other,) = keyed(key="other", job_id=id_of_its_own)
    if not key:
        return [Submission(first, claim_of_first), Submission(new_job(id=id_of_its_own), own_id=True)]
    return [Submission(first, claim_of_first), Submission(other, claim_of_other, own_id=True)]


@pytest.mark.parametrize("key", [False, True], ids=["no key", "a key"])
@pytest.mark.parametrize("level", LEVELS)
def test_an_id_of_the_callers_own_is_refused_under_a_snapshot_in_whatever_company(
    postgres_url: str, level: str, key: bool
) -> None:
    """It may have run since the snapshot, which does not show that it has."""
    engine = postgres_engine(postgres_url)
    job_id = new_id()
    client = Client(engine)
    with psycopg.connect(postgres_url) as connection:
        connection.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
        connection.execute("SELECT count(*) FROM fencerow.jobs")
        client.submit([Submission(new_job(id=job_id), own_id=True)])
        holder = register(engine)
        (attempt,) = claim(engine, holder)
        engine.run(store.succeed([Success(job_id, attempt.attempt, "null")], holder=holder))

        with pytest.raises(UnusableConnection, match="isolation level"):
            client.submit(beside_a_key(job_id, key=key), connection=connection)
        connection.commit()

    assert claimed(engine) == [], "it would run again, or its keyed neighbour was stored without it"
    engine.close()


@pytest.mark.parametrize("level", LEVELS)
def test_new_jobs_beside_keyed_ones_need_no_look_and_are_taken_under_a_snapshot(
    postgres_url: str, level: str
) -> None:
    engine = postgres_engine(postgres_url)
    (job,), (key,) = keyed()
    with psycopg.connect(postgres_url) as connection:
        connection.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
        connection.execute("SELECT count(*) FROM fencerow.jobs")
        wanted = [Submission(job, key), Submission(new_job())]
        answers = Client(engine).submit(wanted, connection=connection)
        connection.commit()

    assert sorted(claimed(engine)) == sorted(answer.id for answer in answers)
    engine.close()


async def test_without_the_refusal_a_repeated_submit_would_run_a_finished_job_again(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LentPostgres, "statement", Lent.statement)
    engine = postgres_engine(postgres_url)
    job = new_job()
    with psycopg.connect(postgres_url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        engine.run(store.submit([job]))
        connection.execute("SELECT count(*) FROM fencerow.jobs")
        holder = register(engine)
        (attempt,) = claim(engine, holder)
        engine.run(store.succeed([Success(attempt.id, attempt.attempt, "null")], holder=holder))

        assert borrowed(connection, engine).run(store.resubmit([job])) == [job.id]

    assert claimed(engine) == [job.id]
    engine.close()


@on_postgres
@pytest.mark.parametrize("inside", [True, False])
async def test_a_connection_that_breaks_says_what_became_of_the_submit(
    loan: Loan, lent_engine: PostgresEngine, server: PostgresServer, pooler: PgBouncer | None, inside: bool
) -> None:
    jobs, _ = keyed()
    if inside:
        await loan.begin()
    else:
        await loan.sql("SELECT 1")
    server.kill_backends(database_of(lent_engine))
    if pooler and not inside and loan.autocommit:
        # No transaction held a server connection, so none of the user's has broken.
        assert await loan.run(store.submit(jobs)) == [jobs[0].id]
        return

    with pytest.raises((Unavailable, OutcomeUnknown, UnusableConnection)) as broken:
        await loan.run(store.submit(jobs))
    with suppress(Exception):  # the driver's own complaint about its broken connection
        await loan.end("ROLLBACK")

    if inside:
        assert not isinstance(broken.value, OutcomeUnknown)
    lent_engine.close()
    again = postgres_engine(lent_engine.conninfo)
    assert not seen(again, jobs[0].id)
    again.close()
