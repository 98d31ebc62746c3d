"""On SQLite a trigger may leave a row out, and say nothing: RAISE(IGNORE)."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest

from fencerow.client import Client
from fencerow.core.model.job import KeyClaim
from fencerow.core.model.submission import Submission
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import RowRefused
from tests.kit.jobs import new_job

LEAVES_OUT = """
CREATE TRIGGER leaves_out BEFORE INSERT ON fencerow_jobs WHEN NEW.priority = 7
BEGIN SELECT RAISE(IGNORE); END
"""


@pytest.fixture
def engine(lite: SqliteEngine) -> SqliteEngine:
    with lite.session() as session:
        session.connection.execute(LEAVES_OUT)
    return lite


def good() -> Submission:
    return Submission(new_job())


def bad(*, key: str | None = None, own_id: bool = False) -> Submission:
    job = new_job(priority=7, **({} if key is None else {"scope": "s", "key": key}))
    claim = KeyClaim(scope="s", key=key, job_id=job.id, fingerprint="f", lifetime_s=1) if key else None
    return Submission(job, claim, own_id=own_id)


async def test_who_submits_it_with_others_is_told_alone(engine: SqliteEngine) -> None:
    client = Client(engine)
    for alone in (False, True):
        given = [bad()] if alone else [good(), bad(), good()]

        told = await asyncio.gather(*(client.asubmit([each]) for each in given), return_exceptions=True)

        for each, answer in zip(given, told, strict=True):
            assert isinstance(answer, RowRefused) == (each.job.template.priority == 7)
            assert not isinstance(answer, RowRefused) or each.job.id in answer.what
    assert len(await client.alist_jobs()) == 2


@pytest.mark.parametrize("each", [bad(), bad(key="k"), bad(own_id=True)], ids=["plain", "key", "id"])
@pytest.mark.parametrize("lent", [False, True])
def test_nothing_of_what_is_submitted_at_once_is_stored(
    engine: SqliteEngine, each: Submission, lent: bool
) -> None:
    client = Client(engine)
    connection = sqlite3.connect(engine.path) if lent else None
    if connection is not None:
        connection.execute("BEGIN")

    with pytest.raises(RowRefused, match="left the row of"):
        client.submit([good(), each], connection=connection)
    if connection is not None:
        connection.commit()
        connection.close()

    assert client.list_jobs() == []
    with engine.session() as session:
        assert session.connection.execute("SELECT * FROM fencerow_keys").fetchall() == []


def test_what_is_there_already_is_no_row_that_was_left_out(engine: SqliteEngine) -> None:
    client, again = Client(engine), Submission(new_job(), own_id=True)

    client.submit([again])

    assert client.submit([again, good()])[0].replay
