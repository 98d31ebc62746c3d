"""Many plain jobs at once: by COPY on a connection of ours to PostgreSQL, in one statement everywhere else."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.client import Client
from fencerow.core.client.forms import COPY_ROWS_MIN
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import JobRecord, KeyClaim, NewJob
from fencerow.core.model.submission import Submission
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.operators import looking
from tests.core.client.flaky import Flaky
from tests.kit.jobs import AnyEngine, new_job

ODD = '{"to":"a\\\\b\\"c\\tä\u2028 \\\\. \\\\N"}'


def many(*extra: NewJob) -> list[Submission]:
    return [Submission(job) for job in (*extra, *(new_job() for _ in range(COPY_ROWS_MIN)))]


def told(record: JobRecord) -> dict[str, Any]:
    """All that a submit decides, instants relative to it."""
    columns = (
        "queue name state priority attempts_max crashes_max snoozes_max timeout_s retention_s scope key "
        "submitted_by args_bytes args options tags metadata headers"
    )
    since = record.submitted_at_us
    instants = {
        "due_us": record.run_at_us if record.run_at_us == DUE_US else record.run_at_us - since,
        "expires_us": None if record.expires_at_us is None else record.expires_at_us - since,
    }
    return {name: getattr(record, name) for name in columns.split()} | instants


DUE_US = 4_000_000_000_123_456
FULL: dict[str, Any] = {
    "priority": -7,
    "attempts_max": 9,
    "timeout_s": 0.25,
    "retention_s": 60.5,
    "expires_s": 7200.000001,
    "delay_s": 3600.5,
    "submitted_by": "a\tb\\N\n",
    "options": '{"base_s":1.5}',
    "tags": '["x\\\\y"]',
    "metadata": '{"tenant":5}',
    "headers": '{"a":"b"}',
    "ephemeral": True,
}


@pytest.mark.parametrize("fields", [{}, FULL, {"run_at_us": DUE_US}], ids=["plain", "full", "due"])
def test_a_row_is_the_same_by_whatever_way_it_came(engine: AnyEngine, fields: dict[str, Any]) -> None:
    jobs = [new_job(ODD, **fields) for _ in range(7)]
    engine.run(store.submit(jobs[:1]))
    engine.run(store.submit(jobs[1:3]))
    engine.run(store.resubmit(jobs[3:4]))
    if engine.dialect == "postgres":
        engine.run(store.submit_alike(jobs[5:]))
    else:
        engine.run(store.submit(jobs[5:]))
    engine.run(store.submit_by_copy(jobs[4:5]) if engine.dialect == "postgres" else store.submit(jobs[4:5]))

    found = engine.run(store.read([job.id for job in jobs]))

    first, *others = [told(found[job.id]) for job in jobs]
    assert others == [first] * 6
    with engine.session() as session:
        rows = session.connection.execute(
            "SELECT CAST(args AS text), ephemeral FROM "
            + ("fencerow.jobs" if engine.dialect == "postgres" else "fencerow_jobs")
        ).fetchall()
    assert rows == [(ODD, fields.get("ephemeral", False))] * 7


async def test_many_go_by_copy_on_our_own_connection_alone(engine: AnyEngine) -> None:
    flaky = Flaky(engine)
    client = Client(flaky)
    by_copy = "submit_by_copy" if engine.dialect == "postgres" else "submit"

    await client.asubmit(many())
    await client.asubmit(many())
    await client.asubmit(many()[1:])
    await client.asubmit([*many(), Submission(new_job(id=new_id()), own_id=True)])
    with engine.session() as session:
        client.submit(many(), connection=session.connection)

    assert flaky.ran == [by_copy, by_copy, "submit", "resubmit_asked", *flaky.ran[4:]]
    assert by_copy not in flaky.ran[4:] or by_copy == "submit"
    assert sum(each.jobs for each in engine.run(looking.counts())) == 5 * COPY_ROWS_MIN


@pytest.mark.parametrize("how", ["lost before", "lost after"])
def test_a_lost_answer_to_a_copy_is_asked_for_again(pg: PostgresEngine, how: str) -> None:
    submissions = many()
    flaky = Flaky(pg, how)

    answers = Client(flaky).submit(submissions)

    assert flaky.ran == ["submit_by_copy", "resubmit"]
    assert [(each.id, each.replay) for each in answers] == [(each.job.id, False) for each in submissions]
    assert sum(each.jobs for each in pg.run(looking.counts())) == COPY_ROWS_MIN


def test_one_bad_row_stores_none(pg: PostgresEngine) -> None:
    with pytest.raises(Exception, match="invalid input syntax for type json"):
        Client(pg).submit(many(new_job('{"broken"')))

    assert pg.run(looking.counts()) == []


def test_a_bad_key_beside_many_stores_none(pg: PostgresEngine) -> None:
    """Keyed jobs never go by COPY: their keys are reserved first, in the same transaction."""
    job = new_job(scope="s", key="k")
    keyed = Submission(job, KeyClaim(scope="s", key="k", job_id=job.id, fingerprint="f", lifetime_s=60.0))
    flaky = Flaky(pg)

    Client(flaky).submit([*many(), keyed])

    assert flaky.ran == ["resubmit_asked"]


def test_the_groups_that_there_are_decide_whether_ends_are_events(pg: PostgresEngine) -> None:
    def subscribed() -> set[bool]:
        with pg.session() as session:
            rows = session.connection.execute("SELECT DISTINCT subscribed FROM fencerow.jobs").fetchall()
            session.connection.execute("DELETE FROM fencerow.jobs")
            return {row[0] for row in rows}

    Client(pg).submit(many())
    assert subscribed() == {False}
    with pg.session() as session:
        session.connection.execute(
            "INSERT INTO fencerow.event_groups (name, topics, partitions, outcomes, created_at) "
            "VALUES ('g', '[]', 1, true, now())"
        )
    Client(pg).submit(many())
    assert subscribed() == {True}
