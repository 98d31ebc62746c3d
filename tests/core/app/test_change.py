"""A job is changed through its handle: the app checks the arguments, and the caller's transaction carries it."""

from __future__ import annotations

import sqlite3
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest

from fencerow import App, Client, Job
from fencerow.core.model.state import State
from fencerow.errors import InvalidArguments, InvalidPayload, UnknownJob


def extracting(app: App) -> Any:
    @app.job(args_version=2)
    async def extract(job: Job, path: str, on: date, pages: int = 1) -> None: ...

    return extract


async def test_a_handle_changes_its_job_and_the_app_checks_the_arguments(app: App) -> None:
    handle = await extracting(app).using(delay_s=3600).asubmit("a.pdf", date(2026, 11, 23))
    at = datetime.now(UTC) + timedelta(days=1)

    done = await handle.achange(run_at=at, priority=3, args={"path": "b.pdf", "on": date(2026, 12, 24)})

    assert done.changes.keys() == {"run_at_us", "priority", "args_bytes"}
    found = await handle.arefresh()
    assert (found.args, found.options) == ({"path": "b.pdf", "on": "2026-12-24"}, {"args_version": 2})
    wrong: Any
    for wrong in ({"path": "b"}, {"path": 1, "on": "2026-12-24"}, {"path": "b", "on": "soon"}, ["b"]):
        with pytest.raises(InvalidArguments):
            await handle.achange(args=wrong)
    assert (await handle.arun_now()).changes.keys() == {"run_at_us"}
    assert [each.actor for each in await app.client.atimeline(handle.id)] == ["ada", "ada", "ada"]


async def test_arguments_of_a_job_that_the_app_does_not_declare_are_refused(app: App) -> None:
    handle = await extracting(app).using(delay_s=3600).asubmit("a.pdf", date(2026, 11, 23))
    async with App(app.config.url) as other:
        with pytest.raises(UnknownJob):
            await other.client.achange(handle.id, args={"to": "eve"})
        assert (await other.client.achange(handle.id, priority=1)).changes
        unaware = Client(other.engine)
        assert (await unaware.achange(handle.id, args={"to": "eve"})).changes
        with pytest.raises(InvalidPayload):
            await unaware.achange(handle.id, args={"to": float("nan")})


@pytest.mark.parametrize("ends", ["commit", "rollback"])
async def test_a_change_is_part_of_the_callers_transaction(app: App, url: str, ends: str) -> None:
    handle = await extracting(app).using(delay_s=3600).asubmit("a.pdf", date(2026, 11, 23))
    if url.startswith("sqlite"):
        mine: Any = sqlite3.connect(url.removeprefix("sqlite:///"))
        mine.execute("BEGIN IMMEDIATE")
        client = app.client
        client.change(handle.id, priority=5, connection=mine)
        client.run_now(handle.id, connection=mine)
        getattr(mine, ends)()
        mine.close()
    else:
        async with await psycopg.AsyncConnection.connect(url) as theirs:
            await app.client.achange(handle.id, priority=5, connection=theirs)
            await handle.arun_now(connection=theirs)
            assert (await handle.arefresh()).priority == 0
            await getattr(theirs, ends)()

    found = await handle.arefresh()
    assert found.state is State.QUEUED
    assert found.priority == (5 if ends == "commit" else 0)
    assert (found.run_at_us < found.submitted_at_us + 3_000_000_000) == (ends == "commit")
