"""Submits inside the caller's own transaction: commit is accepted, rollback is never was."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fencerow import App, JobNotFound
from fencerow.errors import InvalidInput, JobGone, UnusableConnection


def declared(app: App) -> Any:
    @app.job
    def extract(path: str) -> int:
        return len(path)

    return extract


@pytest.fixture
def mine(sqlite_path: Path, lite_app: App) -> Any:
    lite_app.check_or_create()
    connection = sqlite3.connect(sqlite_path)
    yield connection
    connection.close()
    lite_app.close()


def test_a_submit_is_accepted_when_the_caller_commits(lite_app: App, mine: sqlite3.Connection) -> None:
    extract = declared(lite_app)
    mine.execute("CREATE TABLE invoice (path)")
    mine.execute("INSERT INTO invoice VALUES ('a')")

    handle = extract.using(connection=mine, key="k").submit("a")
    assert lite_app.client.list_jobs() == []
    mine.commit()

    assert lite_app.client.get(handle.id).key == "k"


def test_a_rollback_leaves_nothing(lite_app: App, mine: sqlite3.Connection) -> None:
    extract = declared(lite_app)
    mine.execute("BEGIN")
    extract.using(connection=mine).submit("a")
    extract.using(connection=mine, key="k").submit("a")

    mine.rollback()

    assert lite_app.client.list_jobs() == []
    assert not extract.using(key="k").submit("a").replay


def test_waiting_before_the_commit_says_so_instead_of_for_ever(
    lite_app: App, mine: sqlite3.Connection
) -> None:
    extract = declared(lite_app)
    mine.execute("BEGIN")
    handle = extract.using(connection=mine).submit("a")
    other = lite_app.client.handle(handle.id)
    mine.rollback()

    with pytest.raises(JobNotFound, match="commit the transaction") as raised:
        handle.result()
    assert not isinstance(raised.value, JobGone)
    with pytest.raises(JobNotFound):
        other.result()


def test_nobody_is_woken_for_what_is_not_committed(lite_app: App, mine: sqlite3.Connection) -> None:
    extract = declared(lite_app)
    heard: list[str | None] = []
    stop = lite_app.engine.listen(heard.append)
    mine.execute("BEGIN")

    extract.using(connection=mine).submit("a")
    extract.submit_many([extract.using(connection=mine).call("b")])
    mine.commit()

    assert heard == []
    extract.submit("c")
    assert len(heard) == 1
    stop()


def test_many_ride_in_one_transaction(lite_app: App, mine: sqlite3.Connection) -> None:
    extract = declared(lite_app)
    mine.execute("BEGIN")

    extract.submit_many(extract.using(connection=mine).call(str(n)) for n in range(3))
    mine.rollback()

    assert lite_app.client.list_jobs() == []


def test_calls_of_different_connections_do_not_mix(lite_app: App, mine: sqlite3.Connection) -> None:
    extract = declared(lite_app)

    with pytest.raises(InvalidInput, match="different connections"):
        extract.submit_many([extract.using(connection=mine).call("a"), extract.call("b")])


def test_a_stranger_to_the_database_is_refused(lite_app: App, mine: sqlite3.Connection) -> None:
    extract = declared(lite_app)

    with pytest.raises(UnusableConnection):
        extract.using(connection=object()).submit("a")


async def test_an_async_submit_rides_in_a_psycopg_transaction(postgres_url: str) -> None:
    async with App(postgres_url) as app:
        extract = declared(app)
        async with await psycopg.AsyncConnection.connect(postgres_url) as mine:
            async with mine.transaction():
                kept = await extract.using(connection=mine).asubmit("a")
                assert await app.client.alist_jobs() == []
            async with mine.transaction(force_rollback=True):
                await extract.using(connection=mine, key="k").asubmit("a")

        assert [job.id for job in await app.client.alist_jobs()] == [kept.id]
        async with app.worker():
            assert await kept.aresult(60) == 1
