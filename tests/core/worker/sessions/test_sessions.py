"""`job.transaction(session=…)`: what the user's session did and the job's success are one commit, over every driver."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from fencerow.core.model.retry import RetryRule
from fencerow.core.store import store
from fencerow.core.worker.context import Job
from fencerow.errors import TransactionMisuse
from tests.core.worker.sessions.users import Effect, Users, adds, stale
from tests.core.worker.stage import RULE, handler, working

MISUSE = "fencerow.errors.TransactionMisuse"


async def test_effects_and_success_are_one_commit(users: Users) -> None:
    seen: list[list[str]] = []

    def look(job: Job) -> Any:
        if users.kind.dialect == "postgres":  # on a file it would wait for the transaction
            seen.append(users.names())
        return job.progress(50)

    pay = users.handler("pay", adds(1, "paid"), after=look)
    async with working(users.jobs, pay) as stage:
        job = await stage.run("pay")

    assert (job.state, job.result, job.attempt) == ("succeeded", "pay", 1)
    assert users.names() == ["paid"]
    assert seen in ([], [[]])


async def test_a_handler_that_raises_leaves_nothing(users: Users) -> None:
    def fails(session: Session) -> None:
        adds(1, "inside")(session)
        session.flush()
        raise RuntimeError("inside the block")

    def raises(job: Job) -> None:
        raise RuntimeError("after the block")

    inside = users.handler("inside", fails)
    after = users.handler("after", adds(2, "after"), after=raises)
    async with working(users.jobs, inside, after) as stage:
        jobs = [await stage.run(name, attempts_max=2) for name in ("inside", "after")]

    assert [(job.state, job.attempt) for job in jobs] == [("failed", 2)] * 2
    assert users.names() == []


async def test_a_flush_that_fails_ends_the_attempt_by_the_jobs_own_rule(users: Users) -> None:
    users.keep("there")
    once_more = users.handler("once_more", adds(1, "mine"))
    at_once = handler(
        users.handler("at_once", adds(1, "mine")), RetryRule(backoff=RULE.backoff, fail_on=(IntegrityError,))
    )
    is_stale = users.handler("is_stale", stale)

    async with working(users.jobs, once_more, at_once, is_stale) as stage:
        jobs = [await stage.run(name, attempts_max=2) for name in ("once_more", "at_once", "is_stale")]

    assert [(job.state, job.attempt) for job in jobs] == [("failed", 2), ("failed", 1), ("failed", 2)]
    types = [job.error["type"].rpartition(".")[2] for job in jobs]
    assert types == ["IntegrityError", "IntegrityError", "StaleDataError"]
    assert users.names() == ["there"]


async def test_a_flush_that_fails_may_be_caught_around_the_block(users: Users) -> None:
    users.keep("there")

    async def on_loop(job: Job) -> str:
        try:
            async with job.transaction(session=users.maker) as session:
                session.add(Effect(id=1, name="mine"))
        except IntegrityError:
            return "there already"
        return "new"

    def plain(job: Job) -> str:
        try:
            with job.transaction(session=users.maker) as session:
                session.add(Effect(id=1, name="mine"))
        except IntegrityError:
            return "there already"
        return "new"

    function: Any = on_loop if users.kind.awaits else plain
    async with working(users.jobs, function) as stage:
        job = await stage.run(function.__name__)

    assert (job.state, job.result) == ("succeeded", "there already")
    assert users.names() == ["there"]


async def test_a_flush_that_failed_unheard_commits_nothing(users: Users) -> None:
    users.keep("there")

    def swallows(session: Session) -> None:
        adds(1, "mine")(session)
        try:
            session.flush()
        except IntegrityError:
            pass

    async with working(users.jobs, users.handler("swallows", swallows)) as stage:
        job = await stage.run("swallows", attempts_max=1)

    assert (job.state, job.error["type"]) == ("failed", "sqlalchemy.exc.PendingRollbackError")
    assert users.names() == ["there"]


async def test_what_is_changed_after_the_block_is_committed_too(users: Users) -> None:
    kept: list[Session] = []

    def later(job: Job) -> None:
        adds(2, "late")(kept[0])

    def body(session: Session) -> None:
        kept.append(session)
        adds(1, "early")(session)

    async with working(users.jobs, users.handler("pay", body, after=later)) as stage:
        job = await stage.run("pay")

    assert job.state == "succeeded"
    assert users.names() == ["early", "late"]


async def test_a_part_that_fails_in_a_savepoint_costs_only_itself(users: Users) -> None:
    users.keep("there")

    def body(session: Session) -> None:
        adds(2, "before")(session)
        with pytest.raises(IntegrityError), session.begin_nested():
            adds(1, "refused")(session)
        with session.begin_nested() as part:
            adds(3, "undone")(session)
            part.rollback()
        with session.begin_nested():
            adds(4, "nested")(session)

    async with working(users.jobs, users.handler("pay", body)) as stage:
        job = await stage.run("pay")

    assert (job.state, job.attempt) == ("succeeded", 1)
    assert users.names() == ["before", "nested", "there"]


ENDS = {
    "commit": lambda session: session.commit(),
    "below": lambda session: session.connection().commit(),
    "root": lambda session: session.get_transaction().commit(),
    "nested": lambda session: (session.begin_nested(), session.commit()),
    "rollback": lambda session: session.rollback(),
    "close": lambda session: session.close(),
    "again": lambda session: (session.rollback(), adds(2, "beside")(session), session.flush()),
    "quiet": lambda session: (session.rollback(), adds(2, "beside")(session)),
    "text": lambda session: session.connection().exec_driver_sql("ROLLBACK"),
}


async def test_a_handler_must_not_end_the_transaction_itself(users: Users) -> None:
    def body(end: Any) -> Any:
        def run(session: Session) -> None:
            adds(1, "mine")(session)
            session.flush()
            end(session)

        return run

    handlers = [users.handler(name, body(end)) for name, end in ENDS.items()]
    async with working(users.jobs, *handlers) as stage:
        jobs = {name: await stage.run(name, attempts_max=1) for name in ENDS}

    assert {name: (job.state, job.error["type"]) for name, job in jobs.items()} == dict.fromkeys(
        ENDS, ("failed", MISUSE)
    )
    assert users.names() == []


async def test_a_refused_commit_leaves_the_transaction_as_it_was(users: Users) -> None:
    def body(session: Session) -> None:
        adds(1, "before")(session)
        with pytest.raises(TransactionMisuse):
            session.commit()
        adds(2, "after")(session)

    def fails(session: Session) -> None:
        body(session)
        session.flush()
        raise RuntimeError("after all")

    async with working(users.jobs, users.handler("fails", fails), users.handler("pay", body)) as stage:
        failed = await stage.run("fails", attempts_max=1)
        left = users.names()
        paid = await stage.run("pay")

    assert (failed.state, left) == ("failed", [])
    assert (paid.state, users.names()) == ("succeeded", ["after", "before"])


async def test_an_attempt_that_lost_its_job_commits_nothing(users: Users) -> None:
    async def lose(job: Job) -> None:
        await users.jobs.arun(store.retire(holder=job.holder))
        await users.jobs.arun(store.reclaim([job.holder], limit=10, actor="test"))

    async def first(job: Job) -> str:
        if job.attempt > 1:
            return "second"
        await lose(job)
        async with job.transaction(session=users.maker) as session:
            session.add(Effect(id=1, name="zombie"))
        return "first"

    def first_plain(job: Job) -> str:
        if job.attempt > 1:
            return "second"
        users.jobs.run(store.retire(holder=job.holder))
        users.jobs.run(store.reclaim([job.holder], limit=10, actor="test"))
        with job.transaction(session=users.maker) as session:
            session.add(Effect(id=1, name="zombie"))
        return "first"

    function: Any = first if users.kind.awaits else first_plain
    async with working(users.jobs, function) as stage:
        job = await stage.run(function.__name__)

    assert (job.result, job.attempt) == ("second", 2)
    assert stage.heard.all("lease_lost", job_id=job.id, attempt=1)
    assert users.names() == []


async def test_an_error_after_the_commit_is_settled_by_reading(users: Users) -> None:
    """A listener of the user's may raise when all is committed, and a reply may be lost: both look alike."""

    class Loud(Session):
        def commit(self) -> None:
            super().commit()
            raise RuntimeError("after the commit")

    options = {"sync_session_class": Loud} if users.kind.awaits else {"class_": Loud}
    maker = users.sessions(users.engine, **options)
    async with working(users.jobs, users.handler("pay", adds(1, "paid"), given=lambda: maker)) as stage:
        job = await stage.run("pay", attempts_max=1)

    assert (job.state, job.attempt) == ("succeeded", 1)
    assert users.names() == ["paid"]


async def test_a_session_that_only_seems_to_commit_is_found_out(users: Users) -> None:
    class Mute(Session):
        def commit(self) -> None:
            self.flush()

    options = {"sync_session_class": Mute} if users.kind.awaits else {"class_": Mute}
    maker = users.sessions(users.engine, **options)
    async with working(users.jobs, users.handler("pay", adds(1, "paid"), given=lambda: maker)) as stage:
        job = await stage.run("pay", attempts_max=1)

    assert (job.state, job.error["type"]) == ("failed", MISUSE)
    assert users.names() == []


async def test_a_session_that_was_passed_in_is_left_to_its_owner(users: Users) -> None:
    made: list[Any] = []

    def given() -> Any:
        made.append(users.maker())
        return made[0]

    async with working(users.jobs, users.handler("pay", adds(1, "paid"), given=given)) as stage:
        job = await stage.run("pay")
    session: Any = made[0]

    assert job.state == "succeeded"
    if users.kind.awaits:
        assert (await session.get(Effect, 1)).name == "paid"
        await session.commit()
        await session.close()
    else:
        assert session.get(Effect, 1).name == "paid"
        session.commit()
        session.close()
