"""Closing while the server is silent: it ends in time, and so does everything that still waits there."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool

from fencerow import Config
from fencerow.core.store import store
from fencerow.core.worker import claims, shutdown
from fencerow.db.postgres import PostgresEngine
from fencerow.db.watchdog import OVERRUN_S, Watched
from fencerow.errors import DatabaseError
from fencerow.testing.postgres import PostgresServer
from tests.core.worker.stage import job_of, quick, until, working
from tests.db.silence import LIMIT_S, Silence, engine_to
from tests.kit.leftovers import no_threads_left
from tests.kit.pace import slower

CONNECT_S = 2.0  # libpq knows no shorter limit
SOON_S = slower(30.0)  # without what ends it, it is for ever


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Until it is set, the watchdog gives nothing up."""
    ends, lose = threading.Event(), Watched.lose_patience
    monkeypatch.setattr(Watched, "lose_patience", lambda self: lose(self) if ends.is_set() else None)
    return ends


@pytest.fixture
async def busy(far: PostgresEngine, silence: Silence) -> AsyncIterator[asyncio.Task[int]]:
    """A statement that is under way when the server falls silent, in the event loop."""
    silence.fall(deaf=True, also_new=True)
    task = asyncio.create_task(far.arun(store.clock()))
    await until(lambda: bool(far._pools._watchdog._watched))
    yield task
    await asyncio.wait([task])


async def test_what_waits_for_a_statement_ends_in_time_after_a_close(
    patience: threading.Event, far: PostgresEngine, busy: asyncio.Task[int]
) -> None:
    waiting = asyncio.create_task(asyncio.to_thread(far.run, store.clock()))
    await until(lambda: len(far._pools._watchdog._watched) == 2)
    patience.set()
    began = time.monotonic()
    await asyncio.to_thread(far.close)
    assert time.monotonic() - began < SOON_S
    done, _ = await asyncio.wait([waiting, busy], timeout=2 * (LIMIT_S + CONNECT_S) + SOON_S)

    assert done == {waiting, busy}
    assert all(isinstance(each.exception(), DatabaseError) for each in done)


async def test_an_async_close_leaves_nothing_waiting(far: PostgresEngine, busy: asyncio.Task[int]) -> None:
    with no_threads_left():
        began = time.monotonic()
        await far.aclose()
        assert time.monotonic() - began < LIMIT_S + OVERRUN_S + SOON_S
        # Its own: engines of a whole session have theirs.
        await until(lambda: not far._pools._watchdog._service.is_running)


async def test_a_watchdog_stays_until_nothing_is_watched(
    far: PostgresEngine, busy: asyncio.Task[int]
) -> None:
    watchdog = far._pools._watchdog
    watchdog.close()
    assert watchdog._service.is_running
    await asyncio.wait([busy])
    await until(lambda: not watchdog._service.is_running)


def test_an_event_loop_ends_that_waits_for_a_connection(tcp_server: PostgresServer, silence: Silence) -> None:
    """The server takes the connection and says nothing, as one does that hangs."""
    engine = engine_to(tcp_server, silence)
    silence.fall(deaf=True, also_new=True)

    async def ask_and_close() -> None:
        asked = asyncio.create_task(engine.arun(store.clock()))
        await until(lambda: bool(silence._links))
        await engine.aclose()
        assert isinstance((await asyncio.gather(asked, return_exceptions=True))[0], Exception)

    began = time.monotonic()
    asyncio.run(ask_and_close())
    assert time.monotonic() - began < 2 * CONNECT_S + OVERRUN_S + SOON_S


def test_an_event_loop_ends_that_nobody_closed_a_pool_of(
    tcp_server: PostgresServer, silence: Silence, monkeypatch: pytest.MonkeyPatch
) -> None:
    """psycopg may take the cancel of the end for an answer to the connect that is under way."""
    connecting = threading.Event()

    async def never(_pool: object, _timeout_s: float | None = None) -> None:
        connecting.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise psycopg.OperationalError from None

    monkeypatch.setattr(AsyncConnectionPool, "_connect", never)
    engine = engine_to(tcp_server, silence)

    async def ask() -> None:
        asked = asyncio.create_task(engine.arun(store.clock()))
        await until(connecting.is_set)
        asked.cancel()

    thread = threading.Thread(target=asyncio.run, args=[ask()], daemon=True)
    thread.start()
    thread.join(CONNECT_S + SOON_S)
    assert not thread.is_alive()
    engine.close()


def test_a_thread_that_waits_for_a_connection_holds_up_no_close(
    tcp_server: PostgresServer, silence: Silence
) -> None:
    engine = engine_to(tcp_server, silence)
    silence.fall(deaf=True, also_new=True)
    met: list[Exception] = []

    def ask() -> None:
        try:
            engine.run(store.clock())
        except Exception as error:
            met.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    while not silence._links:
        time.sleep(0.01)
    began = time.monotonic()
    engine.close()
    assert time.monotonic() - began < CONNECT_S + SOON_S
    thread.join(CONNECT_S + SOON_S)
    assert not thread.is_alive() and len(met) == 1


async def test_an_old_libpq_holds_up_no_event_loop(
    far: PostgresEngine, busy: asyncio.Task[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below version 17 its cancel waits for an answer, and the server is silent about that too."""
    asked_in: list[str] = []
    monkeypatch.setattr(type(psycopg.capabilities), "has_cancel_safe", lambda *_, **__: False)

    def note(_connection: psycopg.BaseConnection[object]) -> None:
        asked_in.append(threading.current_thread().name)  # the real one would not come back

    monkeypatch.setattr(psycopg.BaseConnection, "cancel", note)
    await asyncio.wait([busy])

    assert asked_in[0] == "fencerow-cancel"


def bound_s(config: Config) -> float:
    """How long a shutdown may take when nothing of the database answers; see `Worker.stop`."""
    handing_back = claims.ANSWER_S + shutdown.FLUSH_S + shutdown.TASKS_S + 1.0 + shutdown.KILLED_S
    keeper = config.renew_s + 5.0 + 2 * CONNECT_S
    return (config.shutdown_s or 0.0) + handing_back + keeper + 3.0 + 1.0


@pytest.mark.parametrize("running", [True, False], ids=["with a job", "idle"])
async def test_a_worker_shuts_down_in_time_when_the_database_is_a_black_hole(
    far: PostgresEngine,
    near: PostgresEngine,
    silence: Silence,
    monkeypatch: pytest.MonkeyPatch,
    running: bool,
) -> None:
    monkeypatch.setattr(claims, "ANSWER_S", 0.5)
    monkeypatch.setattr(shutdown, "FLUSH_S", 0.5)
    started = asyncio.Event()

    async def endless() -> None:
        started.set()
        await asyncio.Event().wait()

    config = quick(shutdown_s=0.5)
    async with working(far, endless, config=config) as stage:
        if running:
            await stage.submit("endless")
            await started.wait()
        silence.fall(deaf=True, also_new=True)
        began = time.monotonic()
    took_s = time.monotonic() - began

    assert took_s < bound_s(config)
    assert stage.worker.running == (1 if running else 0), "nobody could be told"


async def test_a_keeper_in_a_black_holed_connect_comes_back_and_renews(
    tcp_server: PostgresServer, near: PostgresEngine, silence: Silence
) -> None:
    """Its connection is dead and the next one is never answered; then the network heals."""

    def one() -> int:
        return 1

    engine = engine_to(tcp_server, silence)
    async with working(engine, one) as stage:
        holder = stage.worker.holder
        await fallen_through(silence)
        silence.rise()
        healed_us = near.run(store.clock())
        await until(lambda: renewed_us(near, holder) > healed_us)

        assert stage.worker.holder == holder, "it lost its registration"
        near.run(store.submit([job := job_of("one")]))
        await stage.heard.wait("succeeded", job_id=job.id)
    await engine.aclose()


async def test_a_keeper_that_was_away_for_too_long_registers_anew(
    tcp_server: PostgresServer, near: PostgresEngine, silence: Silence
) -> None:
    def one() -> int:
        return 1

    engine = engine_to(tcp_server, silence)
    async with working(engine, one) as stage:
        holder = stage.worker.holder
        assert holder is not None
        await fallen_through(silence)
        assert near.run(store.retire(holder=holder)), "as others do when its lease has run out"
        silence.rise()
        await until(lambda: stage.worker.holder not in (None, holder))

        near.run(store.submit([job := job_of("one")]))
        await stage.heard.wait("succeeded", job_id=job.id)
    await engine.aclose()


async def fallen_through(silence: Silence) -> None:
    """Silent, until the keeper has tried to connect anew."""
    before = len(silence._links)
    silence.fall(deaf=True, also_new=True)
    await until(lambda: len(silence._links) > before + 1)


def renewed_us(engine: PostgresEngine, holder: str | None) -> int:
    return max(each.renewed_at_us for each in engine.run(store.list_workers()) if each.id == holder)
