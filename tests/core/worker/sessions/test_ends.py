"""How the transaction of a user's session ends when its handler is ended, and what is done inside it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from fencerow.core.store import store
from fencerow.core.worker.context import Job
from fencerow.db.borrow import borrowed
from fencerow.db.postgres import PostgresEngine
from fencerow.guards.once import once
from tests.core.worker.sessions.users import Users, adds
from tests.core.worker.stage import quick, until, working
from tests.guards.places import At
from tests.guards.test_job_transaction import is_free
from tests.kit.jobs import new_job

SLOW = text("SELECT pg_sleep(60)")
IDLE = text("SELECT current_setting('idle_in_transaction_session_timeout')")


async def test_a_handler_that_is_ended_in_the_middle_leaves_nothing(users: Users) -> None:
    def body(session: Session) -> None:
        adds(1, "mine")(session)
        session.flush()
        if users.kind.awaits and users.kind.dialect == "postgres":
            session.execute(SLOW)

    def wait(job: Job) -> Any:
        if users.kind.awaits:
            return asyncio.sleep(60)
        while True:  # an exception lands between two of its steps
            job.wait_cancelled(0.01)

    async with working(
        users.jobs, users.handler("pay", body, after=wait), config=quick(cancel_kill_s=30.0)
    ) as stage:
        job = await stage.run("pay", timeout_s=0.3, attempts_max=1)

    assert (job.state, job.error["type"]) == ("failed", "fencerow.errors.AttemptTimeout")
    assert users.names() == []


async def test_a_handler_that_is_given_up_holds_nothing_in_the_server(users: Users) -> None:
    if users.kind.dialect == "sqlite":
        pytest.skip("only its own thread gives a file back")
    go = threading.Event()

    async def hangs(job: Job) -> None:
        async with job.transaction(session=users.maker) as session:
            adds(1, "mine")(session.sync_session)
            await session.flush()
            while not go.is_set():
                try:
                    await asyncio.sleep(0.02)
                except asyncio.CancelledError:
                    pass

    def hangs_plain(job: Job) -> None:
        with job.transaction(session=users.maker) as session:
            adds(1, "mine")(session)
            session.flush()
            go.wait(60)

    function: Any = hangs if users.kind.awaits else hangs_plain
    async with working(users.jobs, function, config=quick(cancel_kill_s=0.2)) as stage:
        await stage.run(function.__name__, timeout_s=0.1, attempts_max=1)
        await until(lambda: not is_locked(users), what="the end of its transaction")
        go.set()
        await until(lambda: users.checked_out == 0, what="the end of its handler")

    assert users.names() == []


def is_locked(users: Users) -> bool:
    """Whether somebody has written to the user's table and not ended."""
    with users.jobs.session() as session:
        rows = session.connection.execute(
            "SELECT 1 FROM pg_locks WHERE relation = CAST('fencerow.effect' AS regclass)"
            " AND mode = 'RowExclusiveLock'"
        ).fetchall()
    return bool(rows)


async def test_guards_and_submits_are_part_of_it(users: Users) -> None:
    """The fence of a guard is only looked at, so nobody waits: the commit of this very session is the job's success."""
    other = new_job(name="other", queue="elsewhere")
    running: list[str] = []
    looks: list[tuple[str, bool]] = []

    def body(session: Session) -> None:
        once(At(users.jobs), "charge", connection=session).call(lambda: adds(1, "charged")(session))
        once(At(users.jobs), "charge", connection=session).call(lambda: adds(2, "twice")(session))
        borrowed(session, users.jobs).run(store.submit([other]))
        if isinstance(users.jobs, PostgresEngine):
            looks.append((str(session.execute(IDLE).scalar_one()), is_free(users.jobs, running[0])))

    pay = users.handler("pay", body)
    async with working(users.jobs, pay) as stage:
        running.append(await stage.submit("pay", timeout_s=300.0))
        job = await stage.ended(running[0])

    assert (job.state, users.names()) == ("succeeded", ["charged"])
    assert users.jobs.run(store.existing([other.id])) == {other.id}
    if users.kind.dialect == "postgres":
        ((idle, others_pass),) = looks
        assert idle.endswith(("ms", "s", "min")) and others_pass
