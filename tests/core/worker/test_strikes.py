"""An exception is raised in a handler's thread at every bytecode of what is ours: all stays whole, and it arrives."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from fencerow.core.client.base import ClientBase
from fencerow.core.db.borrow import borrowed
from fencerow.core.db.postgres import PostgresEngine
from fencerow.core.db.sqlite import SqliteEngine
from fencerow.core.db.strikes import Striker
from fencerow.core.model.ids import new_id
from fencerow.core.store import store
from fencerow.core.store.attempts import Success
from fencerow.core.worker.attempt import AskedToStop
from fencerow.events.transaction import EventTransaction
from fencerow.guards.mutex import Mutex, mutexes
from fencerow.guards.once import once
from fencerow.guards.once.window import DedupeWindow
from tests.core.worker.striking import count, struck
from tests.guards.places import At
from tests.kit.jobs import AnyEngine, new_job, register, running

STRIDE = 997  # in the code of others, which is in a shelter as a whole or the user's own
Path = Callable[[], object]


class Paths:
    """What a plain handler may be in when it is struck."""

    def __init__(self, engine: AnyEngine) -> None:
        self.engine, self.at = engine, At(engine)
        self.desk = ClientBase(engine, actor=None, ready=None)
        holder = register(engine)
        done = running(engine, holder)
        engine.run(store.succeed([Success(done.id, done.attempt, "1")], holder=holder))
        self.done = done.id

    def submit(self) -> None:
        self.engine.run(store.submit([new_job()]))

    def session(self) -> None:
        with self.engine.session() as session:
            session.connection.execute("SELECT 1").fetchall()

    def borrowed(self) -> None:
        with self.engine.session() as session:
            borrowed(session.connection, self.engine).run(store.submit([new_job()]))

    def event(self) -> None:
        acknowledge: Any = store.submit([new_job()])
        event: EventTransaction[Any] = EventTransaction(self.engine, acknowledge, is_async=False, idle_s=60.0)
        with event as connection:
            connection.execute("SELECT 1").fetchall()

    def mutex(self) -> None:
        with Mutex(self.at, "key", wait_s=0, stale_s=2):
            pass

    def once(self) -> None:
        once(self.at, new_id()).call(lambda: 1)

    def window(self) -> None:
        with DedupeWindow(self.at, "w", 60).admitting(new_id(), "x"):
            pass

    def result(self) -> None:
        self.desk.outcome(self.done, 60)

    def wake(self) -> None:
        self.engine.wake(["x"])
        self.engine.flush(5)


# Run at whichever bytecode memory is collected: what is raised in a callback of a weak reference the interpreter drops.
COLLECTED = "_weakrefset.py"
NAMES = ["submit", "session", "borrowed", "event", "mutex", "once", "window", "result", "wake"]


@pytest.mark.parametrize("name", NAMES)
async def test_wherever_it_strikes_locks_pools_and_transactions_are_whole(
    engine: AnyEngine, name: str
) -> None:
    paths = Paths(engine)
    path: Path = getattr(paths, name)
    await asyncio.to_thread(path)
    walk = await count(path)
    landings = sorted({*walk.ours.values(), *range(1, walk.landings, STRIDE)})

    for landing in landings:
        ended = await struck(path, landing)

        missed = not ended.where and ended.error is None
        assert missed or isinstance(ended.error, AskedToStop) or COLLECTED in ended.where, (landing, ended)
        await asyncio.to_thread(all_is_whole, paths, ended.where)

    paths.desk.stop_waiting()
    assert len(landings) > 10


def all_is_whole(paths: Paths, where: str) -> None:
    """Every lock is open, every connection back, and the next one gets on."""
    engine = paths.engine
    if isinstance(engine, SqliteEngine):
        assert engine._write_lock.acquire(timeout=1), f"the write lock is lost: struck at {where}"
        engine._write_lock.release()
    else:
        settled(lambda: all_back(engine), f"a connection is lost: struck at {where}")
    settled(lambda: not is_held(paths), f"the mutex is still held: struck at {where}")
    engine.flush(5)
    poller = paths.desk._poller
    assert poller._changed.acquire(timeout=1), f"the poller's lock is lost: struck at {where}"
    poller._changed.release()
    assert not poller._watched


def all_back(engine: PostgresEngine) -> bool:
    every = [pool.get_stats() for pool in engine._pools._pools.values()]
    return all(stats["pool_size"] == stats["pool_available"] for stats in every)


def is_held(paths: Paths) -> bool:
    found = paths.engine.run(mutexes.look("key"))
    return found is not None and found.is_held


def settled(holds: Callable[[], bool], what: str) -> None:
    """What threads of service use for a moment is given back soon."""
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until, what
        time.sleep(0.005)


def test_a_strike_before_the_call_has_begun_is_not_forgotten() -> None:
    striker, ran = Striker(), list[int]()

    assert striker.strike(AskedToStop)
    returned, error = striker.run(lambda: ran.append(1))

    assert isinstance(error, AskedToStop) and not returned and not ran


def test_one_that_was_swallowed_is_repeated_when_asked() -> None:
    striker, caught = Striker(), list[BaseException]()
    begun, met = threading.Event(), threading.Event()

    def stubborn() -> None:
        for each in (begun, met):
            try:
                each.set()
                while True:
                    threading.Event().wait(0.001)
            except AskedToStop as error:
                caught.append(error)

    thread = threading.Thread(target=lambda: striker.run(stubborn))
    thread.start()
    begun.wait(60)
    assert striker.strike(AskedToStop)
    met.wait(60)
    assert not striker.strike(AskedToStop)
    assert striker.strike(AskedToStop, again=True)
    thread.join(60)

    assert not thread.is_alive() and len(caught) == 2
