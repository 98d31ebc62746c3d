"""Prepared statements past the driver's cursor, and the wake-up that goes in the same message as a submit."""

from __future__ import annotations

import asyncio
import queue
import subprocess
import sys
import time
from typing import Any

import msgspec
import psycopg
import pytest

from fencerow.core.client.client import JobsClient
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import NewJob
from fencerow.core.model.submission import Submission
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.prepared import PreparedMessage, PreparedStatements, values
from fencerow.db.queries import Query
from fencerow.db.run import AlikeParameters, CommonParameters, Operation, Tells
from fencerow.db.wakeup_channel import WakeupChannel
from fencerow.errors import OutcomeUnknown
from fencerow.operators import looking
from fencerow.testing.postgres import PostgresServer
from fencerow.turns.handing import hand_over
from fencerow_proof.network.proxy import FaultProxy
from fencerow_proof.servers.pgbouncer import is_pooled
from tests.db.work import seen
from tests.kit.jobs import new_job
from tests.kit.pace import PATIENCE_S

ALL_KINDS = Query(
    "all_kinds",
    (
        """
        SELECT CAST(:texts AS text[]) = ARRAY['a"b', 'c\\d', 'e,f', '{', '', 'NULL', 'ä'],
               CAST(:numbers AS bigint[]) = CAST(ARRAY[1, NULL, -3] AS bigint[]),
               CAST(:truth AS boolean), CAST(:none AS integer) IS NULL,
               CAST(:large AS double precision) = CAST('infinity' AS double precision), CAST(:us AS bigint)
        """,
    ),
    ("texts", "numbers", "truth", "none", "large", "us"),
)
SIZE = Query("size", ("SELECT length(CAST(:text AS text)), repeat('x', 9000000)",), ("text",))
END = Query("end", ("SELECT pg_terminate_backend(pg_backend_pid())",), ())
REFUSED = "x" * 9000  # more than the server takes in one notification


@pytest.fixture(autouse=True)
def direct(pg: PostgresEngine) -> None:
    if is_pooled(pg.conninfo):
        pytest.skip("nothing is prepared through a pooler")


def message(query: Query, params: dict[str, Any]) -> PreparedMessage:
    return PreparedMessage(query, values(query, params))


def telling(operation: Operation[Any], *messages: str) -> Operation[Any]:
    return msgspec.structs.replace(operation, tells=Tells(list(messages)))


def are_told(operation: Operation[Any]) -> bool:
    assert operation.tells is not None
    return operation.tells.are_told


async def test_values_of_all_kinds_arrive_as_they_are(pg: PostgresEngine) -> None:
    texts = ['a"b', "c\\d", "e,f", "{", "", "NULL", "ä"]
    given = {
        "texts": texts,
        "numbers": [1, None, -3],
        "truth": True,
        "none": None,
        "large": float("inf"),
        "us": 2**62,
    }
    async with pg._pools.aheld() as held:
        prepared = PreparedStatements(1)
        assert await prepared.execute(held.wire, message(ALL_KINDS, given)) == [
            (True, True, True, True, True, 2**62)
        ]
        ((size, answer),) = await prepared.execute(held.wire, message(SIZE, {"text": "y" * 9_000_000}))
    assert (size, len(str(answer))) == (9_000_000, 9_000_000)  # either way more than a socket takes at once


def test_a_text_is_never_cut_off_at_a_null_character() -> None:
    with pytest.raises(psycopg.DataError, match="NUL"):
        values(SIZE, {"text": "a\0b"})


def test_what_statements_have_in_common_is_written_once_and_the_rest_for_each() -> None:
    query = Query("shared", ("SELECT :name, :number, :own, :other",), ("name", "number", "own", "other"))
    common = CommonParameters({"name": "a", "number": 1}, {})

    def sent(own: str, other: int | None) -> list[bytes | None]:
        params = AlikeParameters(common.params, own=own, other=other)
        params.common = common
        return values(query, params)

    assert sent("x", 2) == [b"a", b"1", b"x", b"2"]
    assert sent("y", None) == [b"a", b"1", b"y", None]
    common.params = {**common.params, "name": "never looked at again"}
    assert sent("z", 3) == [b"a", b"1", b"z", b"3"]
    assert "b'x'" not in repr(common.as_sent), "what may be large, or secret, is not kept"


async def test_jobs_of_one_template_go_one_by_one_with_what_is_their_own(pg: PostgresEngine) -> None:
    common = new_job().template
    jobs = [NewJob(new_id(), "{}", 2, common, share=f"of {number}") for number in range(3)]
    for job in jobs:
        await pg.arun(store.submit([job]))
    stored = await pg.arun(store.read([job.id for job in jobs]))
    assert [stored[job.id].share for job in jobs] == [job.share for job in jobs]


async def test_a_wake_up_is_heard_that_went_with_the_submit(pg: PostgresEngine) -> None:
    told: queue.Queue[str | None] = queue.Queue()
    stop = pg.listen(told.put)
    assert await asyncio.to_thread(told.get) is None
    await pg.arun(telling(store.submit([new_job()]), "unused"))  # from now on all of it is prepared
    submit = telling(store.submit([job := new_job()]), "mail")
    assert await pg.arun(submit) == [job.id]
    assert are_told(submit)
    assert await asyncio.to_thread(told.get) == "mail"
    pg._wakeups._sender._rests_until = time.monotonic() + PATIENCE_S
    gathers = telling(store.submit([new_job()]), "mail")
    await pg.arun(gathers)
    stop()
    assert not are_told(gathers), "for a moment after another was sent"


async def test_a_wake_up_that_fails_leaves_the_submit_stored_and_is_sent_again(
    pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pg.arun(telling(store.submit([new_job()]), "unused"))
    posted: list[list[str]] = []
    monkeypatch.setattr(WakeupChannel, "post", lambda _, messages: posted.append(messages))
    submit = telling(store.submit([job := new_job()]), REFUSED)
    assert await pg.arun(submit) == [job.id]
    await pg._pools.aanswered(PATIENCE_S)
    assert posted == [[REFUSED]], "it is sent once more, by the thread"
    assert seen(pg, job.id)
    assert await pg.arun(store.submit([other := new_job()])) == [other.id]


async def test_a_submit_that_fails_says_why_and_its_connection_goes_on(pg: PostgresEngine) -> None:
    await pg.arun(store.submit([job := new_job()]))
    again = telling(store.submit([job]), "mail")
    with pytest.raises(psycopg.errors.UniqueViolation):
        await pg.arun(again)
    assert not are_told(again)
    async with pg._pools.aconnection() as connection:
        assert await (await connection.execute("SELECT 1")).fetchone() == (1,)


async def test_a_transaction_keeps_plans_and_is_run_again_where_they_are_gone(pg: PostgresEngine) -> None:
    for _ in range(2):
        assert (await pg.arun(hand_over())).queued == []
    async with pg._pools.aheld() as held:
        held.wire.let_go()
        found = await held.connection.execute(
            "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%DELETE FROM%gate_arrivals%'"
        )
        assert await found.fetchone() == (1,)
        await held.connection.execute("DEALLOCATE ALL")
    await pg.arun(store.submit_gated([job := new_job(exclusive="k")]))

    assert [each.id for each in (await pg.arun(hand_over())).queued] == [job.id]
    assert not pg._pools.preparing.wanted


async def test_what_goes_ahead_is_answered_with_the_next(pg: PostgresEngine) -> None:
    async with pg._pools.aheld() as held:
        prepared = PreparedStatements(1)
        found: list[Any] = []
        ahead = [(message(Query("first", ("SELECT 1",), ()), {}), found)]
        last = message(Query("last", ("SELECT 2",), ()), {})
        assert await prepared.execute(held.wire, last, ahead=ahead) == [(2,)]
        assert found == [(1,)]
        broken = [(message(Query("broken", ("SELECT 1 / length('')",), ()), {}), found), *ahead]
        with pytest.raises(psycopg.errors.DivisionByZero):
            await prepared.execute(held.wire, last, ahead=broken)
        assert found == [(1,)], "nothing behind it was run"
        assert await prepared.execute(held.wire, last) == [(2,)]


@pytest.mark.parametrize("how", ["ended", "cancelled"])
async def test_what_breaks_off_leaves_a_closed_connection(pg: PostgresEngine, how: str) -> None:
    async with pg._pools.aheld() as held:
        if how == "ended":
            with pytest.raises(psycopg.Error):
                await PreparedStatements(1).execute(held.wire, message(END, {}))
        else:
            running = asyncio.create_task(
                PreparedStatements(1).execute(held.wire, message(SIZE, {"text": ""}))
            )
            await asyncio.sleep(0)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        assert held.connection.closed


@pytest.mark.parametrize("cut", ["cut_before", "cut_after_reply_to"])
@pytest.mark.parametrize("of", ["INSERT INTO", "pg_notify"])
@pytest.mark.parametrize("at_once", [False, True])
async def test_wherever_the_message_of_a_submit_breaks_there_is_one_job(
    tcp_server: PostgresServer, proxy: FaultProxy, cut: str, of: str, at_once: bool
) -> None:
    """Both statements are prepared, so the proxy knows them by their names."""
    through = PostgresEngine(
        f"postgresql://app:{tcp_server.password}@127.0.0.1:{proxy.port}/app", store.postgres_queries()
    )
    whole = PostgresEngine(tcp_server.conninfo("app", "app"), store.postgres_queries())
    client = JobsClient(through)
    try:
        await through.arun(telling(store.submit([new_job()]), "mail"))
        for _ in range(at_once):  # the next is sent without a task
            await client.asubmit([Submission(new_job())])
        await asyncio.to_thread(through.flush, 10)
        getattr(proxy, cut)(of)
        try:
            await client.asubmit([Submission(job := new_job())])
        except OutcomeUnknown:
            pytest.fail("it is asked again")
        async with asyncio.timeout(PATIENCE_S):
            while not proxy.cuts:  # nobody waits for the answer to a wake-up
                await asyncio.sleep(0.01)
        assert proxy.cuts == 1
        found = [each.id for each in await whole.arun(looking.list_jobs())]
        assert found.count(job.id) == 1
    finally:
        await through.aclose()
        await whole.aclose()


WATCHED = """
import asyncio, sys
from types import SimpleNamespace
from fencerow import App
from fencerow_proof.check.drivers import on_psycopg
seen = []
on_psycopg.watch(SimpleNamespace(session=lambda: 0, asked=lambda text, *more: seen.append(text)))
app = App(sys.argv[1])
@app.job
async def noop() -> None: ...
async def main():
    async with app:
        await noop.asubmit()
asyncio.run(main())
print(sum("INSERT INTO" in text for text in seen))
"""


def test_a_check_of_handlers_sees_what_is_submitted_in_an_event_loop(pg: PostgresEngine) -> None:
    told = subprocess.run(
        [sys.executable, "-c", WATCHED, pg.conninfo], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "1"
