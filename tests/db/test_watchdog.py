"""A server that takes a statement and never answers: nobody waits for it for ever, and nobody is told a lie."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from psycopg.pq.abc import PGresult

from fencerow.core.store import store
from fencerow.db import cancelling, thread_pools, watchdog, wire
from fencerow.db.postgres import PostgresEngine
from fencerow.db.prepared import _Answered
from fencerow.db.run import Operation
from fencerow.db.watchdog import Watched
from fencerow.errors import OutcomeUnknown, Unavailable
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.network.faults import Fault, Phase
from fencerow_proof.network.proxy import FaultProxy
from tests.core.worker.stage import quick, until, working
from tests.db.silence import LIMIT_S, Silence, engine_to
from tests.db.test_postgres import plain
from tests.kit.jobs import new_job
from tests.kit.pace import PATIENCE_S

SOON_S = PATIENCE_S  # without the watchdog it is for ever

Runner = Callable[[PostgresEngine, Operation[Any]], Coroutine[Any, Any, Any]]


async def in_a_thread(engine: PostgresEngine, operation: Operation[Any]) -> Any:
    return await asyncio.to_thread(engine.run, operation)


async def in_the_loop(engine: PostgresEngine, operation: Operation[Any]) -> Any:
    return await engine.arun(operation)


both = pytest.mark.parametrize("run", [in_a_thread, in_the_loop])


def exists(engine: PostgresEngine, job_id: str) -> bool:
    return bool(engine.run(store.read([job_id])))


@both
@pytest.mark.parametrize("deaf", [False, True], ids=["done, never answered", "never heard"])
async def test_a_statement_without_an_answer_is_an_unknown_outcome(
    far: PostgresEngine, near: PostgresEngine, silence: Silence, run: Runner, deaf: bool
) -> None:
    await run(far, store.submit([new_job()]))  # prepared there: the next one is a single message
    silence.fall(deaf=deaf)
    began = time.monotonic()
    with pytest.raises(OutcomeUnknown):
        await run(far, store.submit([job := new_job()]))

    assert LIMIT_S <= time.monotonic() - began < SOON_S
    assert exists(near, job.id) is not deaf, "unknown: it may have happened or not"
    # The next one goes by a new connection and tells.
    assert await run(far, store.resubmit([job])) == ([job.id] if deaf else [])


async def test_what_is_at_hand_when_its_engine_is_closed_is_watched_still(
    far: PostgresEngine, silence: Silence
) -> None:
    await in_the_loop(far, store.submit([new_job()]))
    await asyncio.to_thread(far.close)
    silence.fall()
    async with asyncio.timeout(SOON_S):
        with pytest.raises(OutcomeUnknown):
            await in_the_loop(far, store.submit([new_job()]))


@both
async def test_what_may_be_repeated_comes_through_by_itself(
    far: PostgresEngine, silence: Silence, run: Runner
) -> None:
    silence.fall()
    assert await run(far, store.clock()) > 0


@both
async def test_a_server_that_is_silent_for_new_connections_too_is_unavailable(
    far: PostgresEngine, silence: Silence, run: Runner
) -> None:
    silence.fall(deaf=True, also_new=True)
    began = time.monotonic()
    with pytest.raises(Unavailable):
        await run(far, store.clock())
    assert time.monotonic() - began < SOON_S


@both
async def test_without_the_watchdog_they_wait_on(
    far: PostgresEngine, silence: Silence, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Watched, "lose_patience", lambda self: None)
        silence.fall()
        waiting = asyncio.create_task(run(far, store.clock()))
        done, _ = await asyncio.wait([waiting], timeout=LIMIT_S + 2)
        assert not done
    assert await waiting > 0


@both
async def test_a_statement_that_is_only_slow_is_cancelled_and_leaves_no_backend(
    near: PostgresEngine, tcp_server: PostgresServer, silence: Silence, run: Runner
) -> None:
    slow = engine_to(tcp_server, silence)
    clock = slow.queries["clock"].statements[0]
    slow.queries = slow.queries.altered("clock", clock, "SELECT pg_sleep(60), 'slow one'")
    with pytest.raises(Unavailable, match="cancelled by a timeout"):
        await run(slow, plain("clock"))
    with tcp_server.connect("app") as connection:
        query = (
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%slow one%' AND pid <> pg_backend_pid()"
        )
        await until(lambda: connection.execute(f"{query} AND state = 'active'").fetchall() == [(0,)])
    await slow.aclose()


@both
async def test_a_cancel_that_comes_late_strikes_nobody_else(
    tcp_server: PostgresServer, silence: Silence, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(cancelling, "cancel", asked.append)
    monkeypatch.setattr(cancelling, "acancel", lambda connection, _loop: asked.append(connection))
    engine = engine_to(tcp_server, silence)
    clock = engine.queries["clock"].statements[0]
    plainly, slowly = (
        engine.queries,
        engine.queries.altered("clock", clock, "SELECT 1 FROM pg_advisory_xact_lock(1)"),
    )
    engine.queries = slowly
    monkeypatch.setattr(watchdog, "CANCEL_S", PATIENCE_S)  # it is not given up before it ends
    with tcp_server.connect("app") as holder:
        holder.execute("SELECT pg_advisory_lock(1)")
        slow = asyncio.create_task(run(engine, plain("clock")))
        await until(lambda: bool(asked))
    await slow
    assert len(asked) == 1, "it was asked to stop, and came to its end by itself"

    engine.queries = plainly.altered("clock", clock, "SELECT pg_sleep(0.3), 'next one'")
    following = asyncio.create_task(run(engine, plain("clock")))
    with tcp_server.connect("app") as connection:
        query = (
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%next one%' AND pid <> pg_backend_pid()"
        )
        await until(lambda: connection.execute(query).fetchall() == [(1,)])
    with suppress(psycopg.Error):
        result = asked[0].cancel_safe()
        if result is not None:
            await result
    await following
    await engine.aclose()


async def test_an_answer_that_nobody_comes_to_read_is_no_silence(far: PostgresEngine) -> None:
    """A handler blocks the event loop for longer than the limit; the answer lies in the socket."""
    asked = asyncio.create_task(far.arun(store.submit([job := new_job()])))
    while not far._pools._watchdog._watched:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    time.sleep(LIMIT_S + 2.5)

    assert await asked == [job.id]


async def test_an_answer_that_was_read_is_no_silence_though_nobody_goes_on(
    far: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handler blocks the event loop right behind the answer to the first of two messages."""
    plainly, blocks = _Answered.__call__, [True]

    def read(answered: _Answered, results: list[PGresult], error: BaseException | None) -> None:
        plainly(answered, results, error)
        if blocks:
            blocks.pop()
            time.sleep(LIMIT_S + 2.5)

    monkeypatch.setattr(_Answered, "__call__", read)
    assert await far.arun(store.submit([job := new_job()])) == [job.id]
    assert not blocks


async def test_a_handler_may_think_inside_its_transaction(far: PostgresEngine, near: PostgresEngine) -> None:
    with far.session() as session:
        session.run(store.submit([job := new_job()]))
        await asyncio.sleep(LIMIT_S + 1.5)
    async with far.asession() as other:
        await other.arun(store.submit([another := new_job()]))
        await asyncio.sleep(LIMIT_S + 1.5)

    assert exists(near, job.id) and exists(near, another.id)


@both
async def test_an_idle_connection_costs_no_question_before_it_is_used(
    far: PostgresEngine, silence: Silence, run: Runner
) -> None:
    before = len(silence.sent)
    await run(far, store.clock())
    once = len(silence.sent) - before
    await run(far, store.clock())

    assert once < 200, "one statement and nothing else"
    assert len(silence.sent) - before == 2 * once


@both
async def test_a_closed_connection_is_not_handed_out(
    far: PostgresEngine, near: PostgresEngine, tcp_server: PostgresServer, run: Runner
) -> None:
    terminate(tcp_server)
    assert await run(far, store.submit([job := new_job()])) == [job.id]


@both
async def test_it_is_without_the_look(
    far: PostgresEngine, tcp_server: PostgresServer, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_pools, "is_readable", lambda fd: False)
    terminate(tcp_server)
    with pytest.raises(OutcomeUnknown):
        await run(far, store.submit([new_job()]))


async def test_a_last_word_is_no_answer_in_a_loop_that_reads_a_broken_socket_once(
    far: PostgresEngine, tcp_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uvloop does: what it reads is why the server ends the session, and nothing tells it that this was the end."""
    await ended_and_read_once(far, tcp_server, monkeypatch)


async def test_who_does_not_look_again_waits_two_limits_at_most(
    far: PostgresEngine, tcp_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is something to read each time: that it broke."""
    monkeypatch.setattr(wire, "is_broken", lambda fd: False)
    await ended_and_read_once(far, tcp_server, monkeypatch)


async def ended_and_read_once(
    far: PostgresEngine, tcp_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    add_reader, remove_reader = loop.add_reader, loop.remove_reader

    def once(fd: int, callback: Callable[..., object], *given: Any) -> None:
        add_reader(fd, lambda: (remove_reader(fd), callback(*given)))

    monkeypatch.setattr(thread_pools, "is_readable", lambda fd: False)
    terminate(tcp_server)
    monkeypatch.setattr(loop, "add_reader", once)
    async with asyncio.timeout(SOON_S):
        with pytest.raises(OutcomeUnknown):
            await in_the_loop(far, store.submit([new_job()]))


def terminate(server: PostgresServer) -> None:
    """End the backends as an administrator does, and wait until they are gone."""
    ours = "FROM pg_stat_activity WHERE datname = 'app' AND usename = 'app'"
    with server.connect() as connection:
        connection.execute(f"SELECT pg_terminate_backend(pid, 5000) {ours}")


@both
async def test_a_connection_that_was_idle_for_long_is_asked(
    far: PostgresEngine, silence: Silence, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A firewall has forgotten it: nobody closed it, and a submit must not be the first to find out."""
    monkeypatch.setattr(thread_pools, "IDLE_S", -1.0)
    silence.fall(deaf=True)
    assert await run(far, store.submit([job := new_job()])) == [job.id]


async def test_a_keeper_in_the_silence_comes_back_and_renews(
    tcp_server: PostgresServer, near: PostgresEngine, silence: Silence
) -> None:
    def one() -> int:
        return 1

    engine = engine_to(tcp_server, silence, limit_s=30.0)
    async with working(engine, one, config=quick(lease_s=9.0, renew_s=0.2)) as stage:
        holder = stage.worker.holder
        (before,) = [each for each in near.run(store.list_workers()) if each.id == holder]
        silence.fall(deaf=True)
        await until(lambda: renewed(near, holder) > before.renewed_at_us + 2_000_000)

        assert stage.worker.holder == holder, "it lost its registration"
        assert (await stage.run("one")).result == 1
    await engine.aclose()


async def test_a_listener_that_is_not_answered_comes_back(tcp_server: PostgresServer) -> None:
    """Nothing else would end it: it waits in LISTEN, and the other end's kernel acknowledges."""
    heard: list[str | None] = []
    with FaultProxy(tcp_server.port) as proxy:
        proxy.inject(Fault(Phase.MUTE, "LISTEN"))
        url = f"postgresql://app:{tcp_server.password}@127.0.0.1:{proxy.port}/app"
        engine = PostgresEngine(url, store.postgres_queries(), statement_timeout_s=LIMIT_S)
        stop = engine.listen(heard.append)
        await until(lambda: heard == [None], within_s=SOON_S)
        await asyncio.to_thread(stop)
        await engine.aclose()
        assert proxy.count() == {Phase.MUTE: 1}


def renewed(engine: PostgresEngine, holder: str | None) -> int:
    return max(each.renewed_at_us for each in engine.run(store.list_workers()) if each.id == holder)
