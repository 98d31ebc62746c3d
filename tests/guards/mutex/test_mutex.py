"""Mutexes outside of jobs: one holder, a token that only grows, a lease that is renewed, and what is refused."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest

from fencerow import Config, Database
from fencerow.core.model.ids import new_id
from fencerow.db.forks import EMPTY
from fencerow.db.postgres import PostgresEngine
from fencerow.errors import InvalidInput, MutexBusy, MutexLost, MutexMisuse, StaleToken, UnusableConnection
from fencerow.guards.mutex import Mutex, mutexes
from fencerow.guards.mutex.renewing import THREAD, renewer
from fencerow.testing.clock import DatabaseClock
from tests.kit.plainly import plainly

T = TypeVar("T")

SOON_S = 30.0  # on a busy machine; only who fails waits so long
LONG_S = 600.0  # until a lease is stale: no test waits so long


def elsewhere(call: Callable[[], T]) -> T:
    """Run it as other code of this process would, in a thread: it does not hold what this code holds."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(contextvars.Context().run, call).result()


def holding(database: Database, key: str = "k", **options: Any) -> Mutex:
    mutex = Mutex(database, key, **options)
    elsewhere(mutex.acquire)
    return mutex


def refused(database: Database, key: str = "k") -> MutexBusy:
    with pytest.raises(MutexBusy) as caught:
        elsewhere(Mutex(database, key, wait_s=0).acquire)
    return caught.value


# --- taking and giving back --------------------------------------------------------------------------------


def test_one_holds_it_and_the_other_is_told_who(database: Database) -> None:
    before = datetime.now(UTC)
    with Mutex(database, "k", purpose="deal with sp-1") as held:
        error = refused(database)

        assert (held.token, held.held, held.lost) == (1, True, False)
        assert error.code == "FR-711" and error.repeat == "yes"
        assert (error.key, error.purpose, error.job_id) == ("k", "deal with sp-1", None)
        assert error.host and error.host in str(error) and "deal with sp-1" in str(error)
        assert error.since and error.until
        assert 29.9 < (error.until - error.since).total_seconds() < 90, "a lease, renewed every 10 s"
        assert abs((error.since - before).total_seconds()) < 60
    assert not held.held
    with Mutex(database, "k") as held:
        assert held.token == 2


async def test_async_code_does_the_same(database: Database) -> None:
    async with Mutex(database, "k") as held:
        assert held.token == 1
        with pytest.raises(MutexBusy):
            await asyncio.create_task(
                Mutex(database, "k", wait_s=0).aacquire(), context=contextvars.Context()
            )
        async with Mutex(database, "other") as other:
            assert other.token == 1
    async with Mutex(database, "k") as held:
        assert held.token == 2


def test_only_the_holder_gives_it_back(database: Database) -> None:
    mine = holding(database)
    stranger = Mutex(database, "k")

    assert stranger.release() is False
    refused(database)
    assert mine.release() is True
    assert mine.release() is False
    assert holding(database).release() is True


def test_who_waits_gets_it_when_it_is_given_back(database: Database) -> None:
    mine = holding(database)
    taken = threading.Event()
    tried = threading.Event()

    def wait() -> None:
        other = Mutex(database, "k", wait_s=SOON_S)
        tried.set()
        with other:
            taken.set()

    thread = threading.Thread(target=wait)
    thread.start()
    assert tried.wait(SOON_S) and not taken.is_set()
    mine.release()
    assert taken.wait(SOON_S)
    thread.join()


async def test_a_wait_ends_at_its_deadline(database: Database) -> None:
    holder = Mutex(database, "k")
    await holder.aacquire()
    began = asyncio.get_running_loop().time()

    with pytest.raises(MutexBusy):
        await asyncio.create_task(Mutex(database, "k", wait_s=0.2).aacquire(), context=contextvars.Context())

    assert 0.15 < asyncio.get_running_loop().time() - began < SOON_S
    assert await holder.arelease()


# --- the lease ---------------------------------------------------------------------------------------------


def test_a_stale_one_is_taken_over_and_the_old_holder_is_powerless(
    database: Database, moved: DatabaseClock
) -> None:
    old = holding(database)
    moved.advance(31)
    new = holding(database)

    assert new.token == 2
    assert old.release() is False
    refused(database)
    assert new.release() is True


def test_it_is_not_taken_over_a_moment_early(database: Database, moved: DatabaseClock) -> None:
    old = holding(database, stale_s=60)
    moved.advance(58)
    refused(database)
    assert old.release() is True


def test_a_late_release_tells_that_nobody_had_it_in_between(database: Database, moved: DatabaseClock) -> None:
    old = holding(database)
    moved.advance(3600)
    assert old.release() is True


def test_the_holder_hears_that_another_took_it(database: Database, moved: DatabaseClock) -> None:
    mine = holding(database, stale_s=2.0)
    moved.advance(3)
    other = holding(database)

    assert mine.wait_lost(SOON_S)
    assert mine.lost and not mine.held
    with pytest.raises(MutexLost, match="token 1"):
        mine.check()
    assert mine.release() is False
    assert other.release() is True


def test_past_its_own_deadline_the_holder_stops_whatever_the_database_says(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencerow.guards.mutex.renewing.Renewer.keep", lambda self, hold: None)
    mine = holding(database, stale_s=1.0)

    assert mine.wait_lost(SOON_S)
    with pytest.raises(MutexLost, match="not renewed in time"):
        mine.check()
    refused(database)  # the holder stops before others may start
    assert mine.release() is True


def test_a_mutex_that_cannot_be_renewed_is_lost_in_time_and_nobody_had_it(database: Database) -> None:
    """The database takes no renewal for longer than the lease: here its row, or its file, stays locked."""
    mine = holding(database, stale_s=1.0)
    with database.engine.session() as session:
        if database.engine.dialect == "postgres":
            session.connection.execute("SELECT 1 FROM fencerow.mutexes FOR UPDATE")
        assert mine.wait_lost(SOON_S)
        with pytest.raises(MutexLost, match="not renewed in time"):
            mine.check()
    assert mine.release() is True


def test_leaving_the_block_tells_that_another_had_it(database: Database, moved: DatabaseClock) -> None:
    with pytest.raises(MutexLost), Mutex(database, "k"):
        moved.advance(31)
        holding(database).release()
    with pytest.raises(ZeroDivisionError), Mutex(database, "k"):
        moved.advance(31)
        holding(database).release()
        raise ZeroDivisionError


async def test_async_code_may_be_cancelled_when_it_is_lost(database: Database, moved: DatabaseClock) -> None:
    ended: list[str] = []
    with pytest.raises(MutexLost):
        async with Mutex(database, "k", stale_s=1.0, cancel_on_loss=True):
            moved.advance(5)
            other = holding(database)
            try:
                await asyncio.sleep(SOON_S)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise
    assert ended == ["cancelled"]
    current = asyncio.current_task()
    assert current is not None and current.cancelling() == 0
    assert plainly(other.release)


async def test_a_cancel_of_somebody_else_stays_a_cancel(database: Database) -> None:
    inside = asyncio.Event()

    async def work() -> None:
        async with Mutex(database, "k", cancel_on_loss=True):
            inside.set()
            await asyncio.sleep(SOON_S)

    working = asyncio.create_task(work())
    await inside.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert plainly(holding(database).release)


def test_one_that_was_forgotten_is_given_back(database: Database) -> None:
    lost = holding(database)
    del lost
    gc.collect()
    with Mutex(database, "k", wait_s=SOON_S) as held:
        assert held.token == 2


def test_a_database_that_is_away_holds_up_no_mutex_in_another(database: Database) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/nothing"
        away = Database(config=Config(url=url, connect_timeout_s=2.0))
        renewer(away.engine).release_later(away.engine, mutexes.release("k", holder=new_id(), token=1), 1.0)
        connecting = silent.accept()[0]  # it waits for an answer now
        lost = holding(database)
        del lost
        with Mutex(database, "k", wait_s=1.0) as held:
            assert held.token == 2
        connecting.close()
        away.close()


# --- guarded writes ----------------------------------------------------------------------------------------


def test_a_guard_refuses_an_old_token_and_spares_the_transaction(
    database: Database, moved: DatabaseClock
) -> None:
    old = holding(database)
    moved.advance(31)
    new = holding(database)

    with database.engine.session() as session:
        new.guard(session.connection)
        with pytest.raises(StaleToken, match="token 1"):
            old.guard(session.connection)
        session.connection.execute("SELECT 1")
    new.release()
    with database.engine.session() as session, pytest.raises(StaleToken):
        Mutex(database, "k").guard(session.connection, token=2)


def test_the_next_holder_waits_for_guarded_writes_and_the_release_does_not(database: Database) -> None:
    if not isinstance(database.engine, PostgresEngine):
        pytest.skip("on SQLite everybody waits for a transaction that writes")
    with database.engine.session() as session:
        with Mutex(database, "k") as held:
            held.guard(session.connection)
        error = refused(database)
        assert error.host is None and "guarded transaction" in str(error)
    with Mutex(database, "k", wait_s=SOON_S) as held:
        assert held.token == 2


def test_a_block_inside_an_open_transaction_of_the_same_code_is_left_at_once(database: Database) -> None:
    """A file has one writer: giving back waits in the background, until the transaction is over."""
    with Mutex(database, "k") as held:
        session = database.engine.session()
        opened = session.__enter__()
        held.guard(opened.connection)
    session.__exit__(None, None, None)
    with Mutex(database, "k", wait_s=SOON_S) as held:
        assert held.token == 2


SNIPPET = """
INSERT INTO fencerow.job_logs (job_id, attempt, at, level, message)
SELECT '00000000-0000-4000-8000-000000000001', mutex.token, now(), 'info', ''
FROM fencerow.mutexes AS mutex
WHERE mutex.key = %s AND mutex.token = %s AND mutex.holder IS NOT NULL
FOR KEY SHARE
"""


def test_the_guard_within_a_statement_as_the_guide_has_it(database: Database) -> None:
    if not isinstance(database.engine, PostgresEngine):
        pytest.skip("on SQLite the guard is a statement of its own")
    with Mutex(database, "k") as held, database.engine.session() as session:
        assert session.connection.execute(SNIPPET, ["k", held.token]).rowcount == 1
        assert session.connection.execute(SNIPPET, ["k", held.token - 1]).rowcount == 0


def test_a_guard_needs_a_transaction(database: Database) -> None:
    with Mutex(database, "k") as held:
        with pytest.raises(InvalidInput):
            held.guard(None)
        if isinstance(database.engine, PostgresEngine):
            import psycopg

            with (
                psycopg.connect(database.engine.conninfo, autocommit=True) as connection,
                pytest.raises(UnusableConnection, match="no transaction"),
            ):
                held.guard(connection)


# --- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("", {}),
        ("x" * 501, {}),
        ("a\0b", {}),
        (7, {}),
        ("k", {"stale_s": 0.5}),
        ("k", {"stale_s": float("nan")}),
        ("k", {"stale_s": True}),
        ("k", {"wait_s": -1}),
        ("k", {"purpose": ""}),
        ("k", {"busy": "wait"}),
        ("k", {"deferrals_max": -1}),
    ],
    ids=repr,
)
def test_what_cannot_be_is_refused_at_once(database: Database, key: Any, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Mutex(database, key, **options)


def test_the_same_code_cannot_wait_for_itself(database: Database) -> None:
    with Mutex(database, "k") as held:
        with pytest.raises(MutexMisuse, match="in use"):
            held.acquire()
        with pytest.raises(MutexMisuse, match="wait for itself"):
            Mutex(database, "k").acquire()
        held.check()
    with Mutex(database, "k"):
        pass
    with pytest.raises(MutexMisuse):
        _ = held.token


async def test_nor_can_what_it_starts_while_it_holds_it(database: Database) -> None:
    async with Mutex(database, "k"):
        with pytest.raises(MutexMisuse):
            await asyncio.create_task(Mutex(database, "k").aacquire())

    async def one() -> int:
        async with Mutex(database, "k") as held:
            await asyncio.sleep(0)
            return held.token

    tokens = await asyncio.gather(one(), one(), one())
    assert sorted(tokens) == [2, 3, 4], "those that only work beside each other take turns"


def test_a_forked_child_has_only_a_copy(database: Database) -> None:
    mine = holding(database)
    hold = mine._hold
    assert hold is not None
    hold._pid = os.getpid() + 1

    with pytest.raises(MutexMisuse, match="forked"):
        mine.release()
    hold._pid = os.getpid()
    assert mine.release()


def test_a_process_that_was_forked_makes_a_renewer_of_its_own(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nobody told Python of the fork: the thread of the other one did not come along."""
    mine = renewer(database.engine)
    assert renewer(database.engine) is mine
    monkeypatch.setattr("fencerow.db.forks._page", EMPTY)
    monkeypatch.setattr("fencerow.db.forks.process", lambda: (0, 0))
    assert renewer(database.engine) is not mine


def test_the_default_is_a_setting(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCEROW_MUTEX_STALE_S", "77")
    with Database(url) as database:
        with Mutex(database, "k"):
            record = database.engine.run(mutexes.look("k"))
        assert record is not None and record.stale_s == 77
    assert Config().mutex_stale_s == 30


def test_an_operator_takes_it_from_its_holder(database: Database) -> None:
    mine = holding(database, stale_s=2.0)

    assert not database.engine.run(mutexes.free("k", token=7, actor="ann", reason="stuck"))
    assert database.engine.run(mutexes.free("k", token=1, actor="ann", reason="stuck"))

    assert mine.wait_lost(SOON_S)
    record = database.engine.run(mutexes.look("k"))
    assert record is not None and not record.is_held
    assert (record.freed_by, record.freed_reason) == ("ann", "stuck")
    assert mine.release() is False


# --- answers that were lost --------------------------------------------------------------------------------


def test_the_same_take_told_twice_is_one_take(database: Database) -> None:
    taker = mutexes.MutexTaker("k", "00000000-0000-4000-8000-000000000001", 30.0, "h", 1)
    run = database.engine.run

    assert run(mutexes.make(taker)) == 1
    assert run(mutexes.make(taker)) is None
    assert run(mutexes.take(taker)) == 1
    assert run(mutexes.renew("k", holder=taker.holder, token=1))
    assert run(mutexes.abandon("k", holder=taker.holder))
    assert run(mutexes.take(taker)) == 2


async def test_a_cancelled_take_blocks_nobody(database: Database) -> None:
    for _ in range(2):  # what is cancelled finds no row the first time, and takes it the second
        taking = asyncio.create_task(Mutex(database, "k", stale_s=LONG_S).aacquire())
        await asyncio.sleep(0)
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking
        async with Mutex(database, "k", wait_s=SOON_S) as held:
            held.check()
    # The steps go on. Broken off by the end of this loop, they would be watched for until the mutex is stale.
    while any(thread.name == THREAD for thread in threading.enumerate()):
        await asyncio.sleep(0.01)


def test_a_take_that_failed_on_a_file_is_not_watched_for(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no server that could go on with it: what the renewer finds at its first look is all there is."""
    if database.engine.dialect != "sqlite":
        pytest.skip("a server may end a step whose connection was lost")
    with monkeypatch.context() as broken:
        broken.setattr(database.engine, "run", failing)
        with pytest.raises(sqlite3.OperationalError):
            Mutex(database, "k", stale_s=LONG_S).acquire()

    deadline = time.monotonic() + SOON_S
    while any(thread.name == THREAD for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def failing(_step: object) -> None:
    raise sqlite3.OperationalError("disk I/O error")


async def test_a_cancelled_take_that_comes_late_is_given_back(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Mutex(database, "k"):
        pass
    sent, on_its_way, looked = asyncio.Event(), asyncio.Event(), threading.Event()
    engine: Any = database.engine
    arun, keeper = engine.arun, engine.keeper

    async def late(step: Any) -> Any:
        sent.set()
        await on_its_way.wait()
        return await arun(step)

    def looking(**options: Any) -> Any:
        line = keeper(**options)
        run = line.run

        def noted(step: Any) -> Any:
            answer = run(step)
            looked.set()
            return answer

        line.run = noted
        return line

    monkeypatch.setattr(engine, "keeper", looking)
    with monkeypatch.context() as delayed:
        delayed.setattr(engine, "arun", late)
        taking = asyncio.create_task(Mutex(database, "k", stale_s=LONG_S).aacquire())
        await sent.wait()
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking
    assert await asyncio.to_thread(looked.wait, SOON_S), "there is nothing to give back yet"
    on_its_way.set()
    async with asyncio.timeout(SOON_S):
        while (found := await arun(mutexes.look("k"))) is None or found.token < 2 or found.is_held:
            await asyncio.sleep(0.01)


def test_what_nobody_uses_is_forgotten_and_no_token_goes_back(
    database: Database, moved: DatabaseClock
) -> None:
    for number in range(5):
        with Mutex(database, "often") as busy:
            assert busy.token == number + 1
    for number in range(5):
        with Mutex(database, f"once-{number}"):
            pass
    moved.advance(1000)
    with Mutex(database, "young") as young:
        youngs = young.token

    after, rounds = "", 0
    while after or not rounds:
        after = database.engine.run(mutexes.purge(after, age_s=999.0, limit=3)).after
        rounds += 1

    assert rounds == 3
    assert database.engine.run(mutexes.look("often")) is None
    assert database.engine.run(mutexes.look("young")) is not None
    with Mutex(database, "often") as again, Mutex(database, "never before") as other:
        assert (again.token, other.token) == (6, 6)
    with Mutex(database, "young") as same:
        assert same.token == youngs + 1
