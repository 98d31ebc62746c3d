"""What fails because of its size is tried again smaller, down to one at a time, and told: claims, outcomes, what a dead
worker held, purges, submits that go together."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence

import psycopg
import pytest

from fencerow.core.client.submit_group import SubmitGroup
from fencerow.core.model.ids import new_id
from fencerow.core.model.submission import Submission
from fencerow.core.store import store
from fencerow.core.store.claims import Mark
from fencerow.db import portion
from fencerow.db.portion import Portion, is_beyond_limits, is_too_much
from fencerow.db.postgres import PostgresEngine
from fencerow.db.removal import removed
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import StorageFull, Unavailable
from fencerow.retention.purging import purge_spent
from tests.core.worker.stage import job_of, until, working
from tests.kit.jobs import QUEUE, AnyEngine

FULL = StorageFull("no space", "", "")
NARROW = """
CREATE FUNCTION fencerow.narrow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(*) FROM changed) > 3 THEN
        RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER narrow_update AFTER UPDATE ON fencerow.jobs REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION fencerow.narrow();
CREATE TRIGGER narrow_delete AFTER DELETE ON fencerow.jobs REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION fencerow.narrow();
"""


async def held_by_nobody(engine: AnyEngine, jobs: int) -> None:
    """Jobs that a worker ran that is gone."""
    gone = new_id()
    await engine.arun(store.submit([job_of("brief") for _ in range(jobs)]))
    await engine.arun(store.register(holder=gone, name="gone", host="h", pid=1, info="{}", lease_s=60.0))
    found = await engine.arun(
        store.claim(QUEUE, [Mark(0)], holder=gone, names=["brief"], limit=jobs, margin_s=9.0)
    )
    assert len(found) == jobs
    await engine.arun(store.retire(holder=gone))


async def brief() -> None:
    pass


async def test_a_server_with_room_for_three_rows_gets_all_done(
    pg: PostgresEngine, caplog: pytest.LogCaptureFixture
) -> None:
    await held_by_nobody(pg, 8)
    await pg.arun(store.submit([job_of("work") for _ in range(16)]))
    with psycopg.connect(pg.conninfo) as connection:
        connection.execute(NARROW)
    ends, running = asyncio.Event(), set()

    async def work() -> None:
        running.add(asyncio.current_task())
        await ends.wait()

    async with working(pg, work, brief, queues={QUEUE: 24}) as stage:
        await until(lambda: len(running) == 16)
        ends.set()
        await stage.heard.wait("succeeded", 24)
        told = stage.worker._parts.loops.too_large()

    assert told is not None and "at once were too many: StorageFull" in told
    said = [each.getMessage() for each in caplog.records if "fewer are tried" in each.getMessage()]
    assert {each.split(":")[0] for each in said} == {"reaper", "claims from mail", "outcomes"}


async def test_a_file_with_little_room_gets_all_done(lite: SqliteEngine) -> None:
    """The outcomes of 400 jobs at once need more pages than it may have."""
    await lite.arun(store.submit([job_of("work") for _ in range(400)]))
    ends, running = asyncio.Event(), set()

    async def work() -> None:
        running.add(asyncio.current_task())
        await ends.wait()

    connection = lite._connected_to_jobs().connection

    async with working(lite, work, queues={QUEUE: 400}) as stage:
        await until(lambda: len(running) == 400)
        ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
        connection.execute(f"PRAGMA max_page_count = {pages + 20}")
        ends.set()
        await stage.heard.wait("succeeded", 400)

        assert stage.worker._parts.loops.too_large() is not None


async def test_less_is_tried_until_it_fits_and_more_again_after_a_while() -> None:
    room, asked = 5, []
    portion_ = Portion("claims", 64)

    async def do(count: int) -> int:
        asked.append(count)
        if count > room:
            raise FULL
        return count

    assert await portion_.fit(64, do) == 4
    assert asked == [64, 32, 16, 8, 4]
    room = 100
    for _ in range(4 * portion.CALM):
        await portion_.fit(64, do)
    assert portion_.rows == 64
    room = 0
    with pytest.raises(StorageFull):
        await portion_.fit(64, do)
    assert portion_.rows == 1, "one alone that does not fit is the caller's trouble"


async def test_what_takes_nearly_as_long_as_what_was_given_up_is_no_reason_for_more() -> None:
    slow = Portion("outcomes", 64)
    slow.halve(FULL, 64, took_s=30.0)

    for _ in range(2 * portion.CALM):
        slow.fitted(32, took_s=20.0)

    assert slow.rows == 32


def state(code: str, text: str = "") -> psycopg.Error:
    return psycopg.errors.lookup(code)(text)


@pytest.mark.parametrize(
    ("error", "too_much", "beyond"),
    [
        (FULL, True, False),
        (MemoryError(), True, False),
        (state("53200"), True, False),
        (state("53400"), True, False),
        (state("54000"), True, True),
        (state("XX000", "invalid memory alloc request size 1073741824"), True, True),
        (state("XX000", "cache lookup failed"), False, False),
        (state("23505"), False, False),
        (Unavailable("gone", "", ""), False, False),
        (sqlite3.OperationalError("disk I/O error"), False, False),
    ],
)
def test_which_errors_speak_of_the_size(error: Exception, too_much: bool, beyond: bool) -> None:
    assert (is_too_much(error), is_beyond_limits(error)) == (too_much, beyond)


def test_a_text_too_big_for_sqlite_speaks_of_the_size() -> None:
    with sqlite3.connect(":memory:") as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 100)
        with pytest.raises(sqlite3.Error) as caught:
            connection.execute("SELECT ?", ("x" * 200,))

    assert is_beyond_limits(caught.value)


async def test_a_purge_removes_fewer_at_once_where_more_do_not_fit(pg: PostgresEngine) -> None:
    with psycopg.connect(pg.conninfo) as connection:
        connection.execute(
            "INSERT INTO fencerow.spent_ids (id, attempt, ended_at) "
            "SELECT gen_random_uuid(), 1, fencerow.now() - INTERVAL '9 days' FROM generate_series(1, 9)"
        )
        connection.execute(NARROW.replace("fencerow.jobs", "fencerow.spent_ids"))

    assert await removed(pg, purge_spent(age_s=60.0, limit=500), limit=500) == 9


async def test_submits_that_find_no_room_together_are_stored_in_halves() -> None:
    sent: list[int] = []

    async def send(submissions: Sequence[Submission]) -> None:
        sent.append(len(submissions))
        if len(submissions) > 2:
            raise FULL

    loop = asyncio.get_running_loop()
    group = SubmitGroup(send, loop)
    futures = (loop.create_future() for _ in range(8))
    await asyncio.gather(*(group.submit(Submission(job_of("brief")), future) for future in futures))

    assert sent == [8, 4, 2, 2, 4, 2, 2]
