"""A trigger of the user's may leave a row out, and say nothing: RAISE(IGNORE) on SQLite, RETURN NULL on PostgreSQL."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import aclosing, closing
from typing import Any

import psycopg
import pytest

from fencerow.client import Client
from fencerow.core.model.job import KeyClaim, NewJob
from fencerow.core.model.submission import Submission
from fencerow.core.store import store
from fencerow.core.store.attempts import Success
from fencerow.db.postgres import PostgresEngine
from fencerow.errors import RowRefused
from fencerow.operators.at_once import revive_many
from tests.kit.jobs import AnyEngine, claim, new_job, register

LEAVES_OUT = {
    "sqlite": """
CREATE TRIGGER leaves_out BEFORE INSERT ON fencerow_jobs WHEN NEW.args LIKE '%bad%' BEGIN SELECT RAISE(IGNORE); END
""",
    "postgres": """
CREATE FUNCTION fencerow.leave_out() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER leaves_out BEFORE INSERT ON fencerow.jobs FOR EACH ROW
    WHEN (CAST(NEW.args AS text) LIKE '%bad%') EXECUTE FUNCTION fencerow.leave_out()
""",
}
BAD = '{"to":"bad"}'


def leave_out(engine: Any) -> None:
    with engine.session() as session:
        session.connection.execute(LEAVES_OUT[engine.dialect])


@pytest.fixture(params=["lite", "pg"])
def engine(request: pytest.FixtureRequest) -> Any:
    """Not a database that others take after it: the trigger stays."""
    made = request.getfixturevalue(request.param)
    leave_out(made)
    return made


def good(**changes: Any) -> Submission:
    return Submission(new_job(**changes))


def bad(*, key: str | None = None, own_id: bool = False, **changes: Any) -> Submission:
    job = new_job(BAD, **changes, **({} if key is None else {"scope": "s", "key": key}))
    claim = KeyClaim(scope="s", key=key, job_id=job.id, fingerprint="f", lifetime_s=1) if key else None
    return Submission(job, claim, own_id=own_id)


def alike() -> list[Submission]:
    """Some of one template, one of them bad."""
    one = new_job()
    return [
        Submission(NewJob(each.id, each.args, each.args_bytes, one.template))
        for each in (one, bad().job, new_job())
    ]


def of_many_templates(**changes: Any) -> list[Submission]:
    return [*(good(**changes) for _ in range(500)), bad(**changes)]


MIXED = (lambda: [good(), bad(), good()], lambda: [bad()], alike, lambda: [bad(exclusive="k")])


@pytest.mark.parametrize("given", MIXED, ids=["others", "alone", "alike", "turn"])
async def test_who_submits_it_with_others_is_told_alone(
    engine: AnyEngine, given: Callable[[], list[Submission]]
) -> None:
    client = Client(engine)
    stored = 0
    for _ in range(3):  # in a task, and sent at once
        asked = given()
        told = await asyncio.gather(*(client.asubmit([each]) for each in asked), return_exceptions=True)

        assert [isinstance(answer, RowRefused) for answer in told] == [each.job.args == BAD for each in asked]
        stored += sum(each.job.args != BAD for each in asked)
    assert len(await client.alist_jobs()) == stored


KINDS: dict[str, Callable[[], list[Submission]]] = {
    "one": lambda: [bad()],
    "one at a gate": lambda: [bad(exclusive="k")],
    "plain": lambda: [good(), bad()],
    "alike": alike,
    "gated": lambda: [good(exclusive="k"), bad(exclusive="k")],
    "key": lambda: [good(), bad(key="k")],
    "id": lambda: [good(), bad(own_id=True)],
    "copy": of_many_templates,
    "copy gated": lambda: of_many_templates(share="s"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lent", [False, True])
def test_nothing_of_what_is_submitted_at_once_is_stored(engine: AnyEngine, kind: str, lent: bool) -> None:
    client = Client(engine)
    with closing(opened(engine)) as connection:
        connection.execute("BEGIN")
        with pytest.raises(RowRefused, match="a trigger"):
            client.submit(KINDS[kind](), connection=connection if lent else None)
        connection.commit()

    assert client.list_jobs() == []
    with engine.session() as session:
        for table in ("keys", "gate_arrivals"):
            asked = f"SELECT * FROM {engine.queries.name_of(table)}"
            assert session.connection.execute(asked).fetchall() == []


def opened(engine: AnyEngine) -> Any:
    return (
        psycopg.connect(engine.conninfo)
        if isinstance(engine, PostgresEngine)
        else sqlite3.connect(engine.path)
    )


@pytest.mark.parametrize("kind", ["one", "copy"])
async def test_nothing_is_where_no_statement_is_prepared(postgres_url: str, kind: str) -> None:
    async with aclosing(PostgresEngine(postgres_url, store.postgres_queries(), prepares=False)) as engine:
        leave_out(engine)
        with pytest.raises(RowRefused, match="a trigger"):
            await Client(engine).asubmit(KINDS[kind]())
        assert await Client(engine).alist_jobs() == []


def test_what_is_there_already_is_no_row_that_was_left_out(engine: AnyEngine) -> None:
    client, again = Client(engine), Submission(new_job(ephemeral=True), own_id=True)

    client.submit([again])
    assert client.submit([again, good()])[0].replay

    holder = register(engine)
    for job in claim(engine, holder, limit=2):
        engine.run(store.succeed([Success(job.id, job.attempt, "1")], holder=holder))
    assert client.submit([again, good()])[0].replay


def test_a_job_that_cannot_be_revived_stays_among_the_finished_ones(pg: PostgresEngine) -> None:
    client, each = Client(pg), [bad(), good()]
    client.submit(each)
    ids = [one.job.id for one in each]
    for job_id in ids:
        client.cancel(job_id)
    leave_out(pg)

    with pytest.raises(RowRefused, match="a trigger"):
        pg.run(store.revive(ids[0], actor=None))
    with pytest.raises(RowRefused, match="a trigger"):
        pg.run(revive_many(ids, actor=None))

    assert sorted(job.id for job in client.list_jobs()) == sorted(ids)
