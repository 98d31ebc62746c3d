"""A step whose effects and memory are one commit: both once, whatever fails before, between and after."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import psycopg
import pytest

from fencerow import Job
from fencerow.core.store import store
from fencerow.steps import memory
from tests.core.worker.stage import working
from tests.kit.jobs import AnyEngine

INSERT = "INSERT INTO effects VALUES ('book')"


@pytest.fixture
def effects(engine: AnyEngine) -> AnyEngine:
    """A user's table beside ours."""
    schema = "fencerow." if engine.dialect == "postgres" else ""
    with engine.session() as session:
        session.connection.execute(f"CREATE TABLE {schema}effects (name text)")
    return engine


def count(engine: AnyEngine) -> int:
    with engine.session() as session:
        ((found,),) = session.connection.execute(
            f"SELECT count(*) FROM {table(session.connection)}"
        ).fetchall()
    return int(found)


def table(connection: Any) -> str:
    return "effects" if isinstance(connection, sqlite3.Connection) else "fencerow.effects"


def insert(connection: Any) -> str:
    return INSERT.replace("effects", table(connection))


async def book(connection: Any, fails: bool) -> str:
    cursor = connection.execute(insert(connection))
    if isinstance(connection, psycopg.AsyncConnection):
        await cursor
    if fails:
        raise RuntimeError("after the effect, before the commit")
    return "booked"


def plain(connection: Any, fails: bool) -> str:
    connection.execute(insert(connection))
    if fails:
        raise RuntimeError("after the effect, before the commit")
    return "booked"


async def order(job: Job) -> str:
    said = await job.step_in_transaction("book", book, job.attempt == 1)
    if job.attempt == 2:
        raise RuntimeError("after the commit")
    return f"{said} in attempt {job.attempt}"


def plain_order(job: Job) -> str:
    said = job.step_in_transaction("book", plain, job.attempt == 1)
    if job.attempt == 2:
        raise RuntimeError("after the commit")
    return f"{said} in attempt {job.attempt}"


@pytest.mark.parametrize("handler", [order, plain_order], ids=["async", "plain"])
async def test_effect_and_memory_are_one_commit(effects: AnyEngine, handler: Any) -> None:
    async with working(effects, handler) as stage:
        job = await stage.run(handler.__name__, attempts_max=3)

    assert (job.state, job.result) == ("succeeded", "booked in attempt 3")
    assert count(effects) == 1
    assert [(step.name, step.attempt) for step in effects.run(memory.steps_of(job.id))] == [("book", 2)]


def test_the_effect_of_a_stale_attempt_is_rolled_back(effects: AnyEngine) -> None:
    """Its worker was taken for dead while the step began: the fence of the transaction tells."""
    told: list[str] = []

    def late(job: Job) -> None:
        back = store.Requeue(id=job.id, attempt=job.attempt, kind="snoozed", delay_s=600.0, snoozes=1)
        effects.run(store.requeue([back], holder=job.holder))
        try:
            job.step_in_transaction("book", plain, False)
        except BaseException as error:
            told.append(type(error).__name__)
            raise

    async def work() -> None:
        async with working(effects, late) as stage:
            job_id = await stage.submit("late")
            await stage.heard.wait("lease_lost", job_id=job_id)

    asyncio.run(work())

    assert (told, count(effects)) == (["LeaseLost"], 0)
