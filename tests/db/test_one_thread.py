"""The threads of SQLite that make the calls of event loops: when the system gives none, when two loops come at once."""

from __future__ import annotations

import asyncio

import pytest

from fencerow.core.client.client import JobsClient
from fencerow.core.model.submission import Submission
from fencerow.core.store import store
from fencerow.db import sqlite
from fencerow.db.one_thread import OneThread
from fencerow.db.sqlite import SqliteEngine
from fencerow.operators import looking
from tests.kit.jobs import new_job
from tests.kit.pace import PATIENCE_S
from tests.kit.shortage import no_thread


async def test_nothing_is_begun_without_a_thread_and_who_submits_is_told(lite: SqliteEngine) -> None:
    """What a hint would claim in its own turn is claimed by the claimer's loop then."""
    client = JobsClient(lite)
    with no_thread("fencerow-sqlite"):
        begun = lite.begin(store.clock(), lambda *_: None)
        submits = (client.asubmit([Submission(new_job())]) for _ in range(3))
        told = await asyncio.wait_for(asyncio.gather(*submits, return_exceptions=True), PATIENCE_S)

    assert not begun
    assert [type(each) for each in told] == [RuntimeError] * 3
    await client.asubmit([Submission(new_job())])
    stored = await lite.arun(looking.list_jobs())
    assert len(stored) == 1


def test_two_event_loops_that_begin_at_once_share_the_thread_that_is_closed(
    lite: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    between: list[OneThread] = []

    def made(name: str) -> OneThread:
        if not between:
            between.append(OneThread(name))
            between[0] = lite._thread_of(store.clock())  # the other loop, in between
        return OneThread(name)

    monkeypatch.setattr(sqlite, "OneThread", made)

    assert lite._thread_of(store.clock()) is between[0]
