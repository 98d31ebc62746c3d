"""The lease of a row that an attempt took passes to the next attempt of its job, and to nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest

from fencerow import Job
from fencerow.core.store import store
from fencerow.core.store.running import Running, running
from fencerow.guards.transitions import Refusal, Transitions
from fencerow.guards.transitions.handing import KEPT_S, purge_row_leases
from fencerow.testing.clock import DatabaseClock
from tests.core.worker.stage import working
from tests.db.lenders import Loan
from tests.guards.transitions.tables import LEASE_S, MARGIN_S, AtEngine, create, extractions, insert, sql
from tests.kit.jobs import AnyEngine

MINE, OTHERS = str(uuid4()), str(uuid4())


@contextmanager
def in_attempt(number: int, job_id: str = MINE) -> Iterator[None]:
    """What runs in here runs in that attempt of a job."""
    token = running.set(Running(job_id, "extract", "mail", str(uuid4()), number, 0, store.hold_fence))
    try:
        yield
    finally:
        running.reset(token)


def fence(documents: Transitions, number: int, job_id: str = MINE) -> int | None:
    """The fence under which that attempt has claimed row "a" now, if it got it."""
    with in_attempt(number, job_id):
        row = documents.move("claim", "a")
        return None if row is None else row["attempts"]


async def test_a_retry_goes_on_with_the_row_of_the_attempt_that_failed(engine: AnyEngine, table: str) -> None:
    insert(engine, table, "a")
    documents = extractions(AtEngine(engine), table)
    seen: list[tuple[int, int | None]] = []

    async def extract(job: Job) -> str:
        row = await documents.amove("claim", "a")
        seen.append((job.attempt, None if row is None else row["attempts"]))
        if row is None:
            job.snooze(0.01)
        if job.attempt == 1:
            raise ConnectionError("the provider is away")
        assert row is not None
        return str(await documents.amove("succeed", "a", fence=row["attempts"]) is not None)

    async with working(engine, extract) as stage:
        await stage.run("extract", attempts_max=3)

    assert seen == [(1, 1), (2, 2)]
    assert sql(engine, f"SELECT status, attempts FROM {table}") == [("succeeded", 2)]


def test_only_a_later_attempt_of_the_same_job_gets_it(
    engine: AnyEngine, documents: Transitions, table: str
) -> None:
    insert(engine, table, "a")

    assert fence(documents, 1) == 1
    assert fence(documents, 1) is None, "the same attempt may be at work on it in another coroutine"
    assert fence(documents, 2, OTHERS) is None
    assert documents.move("claim", "a") is None, "nobody outside of a job either"
    assert fence(documents, 3) == 2
    assert fence(documents, 2) is None, "an older attempt takes nothing back"
    assert documents.move("succeed", "a", fence=1) is None
    assert documents.move("succeed", "a", fence=2) is not None


def test_what_was_claimed_by_others_since_is_theirs(
    engine: AnyEngine, documents: Transitions, table: str
) -> None:
    insert(engine, table, "a")
    assert fence(documents, 1) == 1
    documents.move("requeue", "a", fence=1)
    claimed = documents.move("claim", "a")
    assert claimed is not None and claimed["attempts"] == 2

    with in_attempt(2):
        refused = documents.move_or_why("claim", "a")

    assert isinstance(refused, Refusal) and refused.reason == "leased"


def test_what_is_over_stays_over(engine: AnyEngine, documents: Transitions, table: str) -> None:
    insert(engine, table, "a")
    assert fence(documents, 1) == 1
    documents.move("succeed", "a", fence=1)

    assert fence(documents, 2) is None


def test_taking_many_begins_with_what_the_last_attempt_has_left(
    engine: AnyEngine, documents: Transitions, table: str
) -> None:
    insert(engine, table, "a", "b", "c", "d")
    with in_attempt(1):
        assert {row["id"] for row in documents.take("claim", 2)} == {"a", "b"}
    with in_attempt(1, OTHERS):
        assert {row["id"] for row in documents.take("claim", 1)} == {"c"}

    with in_attempt(2):
        taken = documents.take("claim", 10)

    assert [(row["id"], row["attempts"]) for row in taken] == [("a", 2), ("b", 2), ("d", 1)]


def test_sub_states_have_leases_of_their_own_and_attempts_stay_counted(
    engine: AnyEngine, documents: Transitions, table: str
) -> None:
    insert(engine, table, "a", status="succeeded", boxes_status="pending")
    boxes = documents.sub("boxes")
    for number in (1, 2, 3):
        with in_attempt(number):
            row = boxes.move("claim", "a")
            assert row is not None and row["boxes_fence"] == number

    with in_attempt(4):
        refused = boxes.move_or_why("claim", "a")
    assert isinstance(refused, Refusal) and refused.reason == "spent"


def test_a_claim_that_was_rolled_back_leaves_nothing_to_anybody(
    engine: AnyEngine, documents: Transitions, table: str
) -> None:
    insert(engine, table, "a")
    with pytest.raises(ConnectionError), engine.session() as session, in_attempt(1):
        assert documents.move("claim", "a", connection=session.connection) is not None
        raise ConnectionError

    assert documents.move("claim", "a") is not None
    assert fence(documents, 2) is None


async def test_on_lent_connections_too(loan: Loan, lent_engine: AnyEngine) -> None:
    table = create(lent_engine)
    insert(lent_engine, table, "a")
    documents = extractions(AtEngine(lent_engine), table)

    async def claim() -> Any:
        if loan.asynchronous:
            return await documents.amove("claim", "a", connection=loan.connection)
        return documents.move("claim", "a", connection=loan.connection)

    for number in (1, 2):
        with in_attempt(number):
            await loan.begin()
            row = await claim()
            assert row is not None and row["attempts"] == number
            await loan.sql(f"DELETE FROM {loan.table}")
            await loan.end("COMMIT")


def test_a_database_without_our_tables_needs_none(sqlite_path: Any) -> None:
    """A job of one database may move rows of another: then they wait for their leases."""
    from fencerow.db.sqlite import SqliteEngine

    engine = SqliteEngine(sqlite_path, store.sqlite_queries())
    table = create(engine)
    insert(engine, table, "a")
    documents = extractions(AtEngine(engine), table)

    assert fence(documents, 1) == 1
    assert fence(documents, 2) is None
    engine.close()


def test_lines_about_leases_go_when_they_are_over(
    engine: AnyEngine, documents: Transitions, table: str, clock: DatabaseClock
) -> None:
    insert(engine, table, "a")
    assert fence(documents, 1) == 1

    clock.advance(LEASE_S + KEPT_S - MARGIN_S)
    assert engine.run(purge_row_leases(limit=10)) == 0
    clock.advance(2 * MARGIN_S)
    assert engine.run(purge_row_leases(limit=10)) == 1
