"""An exception is raised in a handler's thread at every bytecode of what is ours: all stays whole, and it arrives."""

from __future__ import annotations

import asyncio
import inspect
import io
import logging
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, suppress
from types import CodeType
from typing import Any

import pytest

from fencerow.core.client import base
from fencerow.core.client.base import ClientBase, waited
from fencerow.core.errors import ResultTimeout
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import Claimed
from fencerow.core.model.state import State
from fencerow.core.model.wakeup import encode_ended
from fencerow.core.store import store
from fencerow.core.store.attempts import Success
from fencerow.core.worker.attempt import AskedToStop, Attempt, OutOfTime
from fencerow.core.worker.lines import mirror, said_log
from fencerow.db.borrow import borrowed
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.db.strikes import Doorway, Striker
from fencerow.events.transaction import EventTransaction
from fencerow.guards.mutex import Mutex, mutexes
from fencerow.guards.once import once
from fencerow.guards.once.window import DedupeWindow
from fencerow.handovers.bell import Bell
from fencerow.handovers.client import Receiver
from tests.core.worker.stage import handler
from tests.core.worker.striking import Hand, count, struck
from tests.guards.places import At
from tests.kit.jobs import AnyEngine, new_job, register, running
from tests.kit.pace import PATIENCE_S

STRIDE = 997  # in the code of others, which is in a shelter as a whole or the user's own
SHORT = 4  # one landing of so many in the gate; all of them with `--all`
Path = Callable[[], object]


def nothing() -> None:
    """A handler."""


class Paths:
    """What a plain handler may be in when it is struck."""

    def __init__(self, engine: AnyEngine) -> None:
        self.engine, self.at = engine, At(engine)
        self.desk = ClientBase(engine, actor=None, ready=None)
        holder = register(engine)
        done = running(engine, holder)
        engine.run(store.succeed([Success(done.id, done.attempt, "1")], holder=holder))
        self.done = done.id
        self.own_mutex = Mutex(self.at, "key", wait_s=0, stale_s=2)
        self.attempt = Attempt(done, holder, handler(nothing))
        self.log = logging.StreamHandler(io.StringIO())
        said_log.addHandler(self.log)
        self.bell = Bell(engine)

    def close(self) -> None:
        said_log.removeHandler(self.log)
        self.desk.stop_waiting()

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
        with self.own_mutex:
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
        self.engine.flush(PATIENCE_S)

    def take(self) -> None:
        Receiver(self.desk).take(wait_s=0.001)

    def rung(self) -> None:
        with Doorway(self.bell):
            self.bell.wait(0.001)

    def logs(self) -> None:
        said_log.error("x")  # as a user's own code does, in no shelter

    def said(self) -> None:
        mirror(self.attempt, "error", "x")


@pytest.fixture
def stride(request: pytest.FixtureRequest) -> int:
    return 1 if request.config.getoption("--all") else SHORT


@pytest.fixture
def paths(engine: AnyEngine) -> Iterator[Paths]:
    with closing(Paths(engine)) as made:
        yield made


# A set that forgets what has died: what is raised in a callback of a weak reference the interpreter drops.
COLLECTED = "_weakrefset.py"
BELOW = {"logs": logging.Logger.error, "said": mirror, "rung": Bell.wait}  # what takes the locks of others
NAMES = [
    "submit",
    "session",
    "borrowed",
    "event",
    "mutex",
    "once",
    "window",
    "result",
    "wake",
    "take",
    "rung",
    "said",
    "logs",
]


@pytest.mark.parametrize("name", NAMES)
async def test_wherever_it_strikes_locks_pools_and_transactions_are_whole(
    paths: Paths, name: str, stride: int
) -> None:
    path: Path = getattr(paths, name)
    await asyncio.to_thread(path)
    landings = await landings_of(path, BELOW.get(name))

    for landing, below in landings[::stride]:
        ended = await struck(path, landing, below)

        missed = not ended.where and ended.error is None
        assert missed or isinstance(ended.error, AskedToStop) or COLLECTED in ended.where, (landing, ended)
        await asyncio.to_thread(all_is_whole, paths, f"{ended.where}, landing {landing}, {ended.error!r}")

    assert len(landings) > 10


async def landings_of(path: Path, below: Any) -> list[tuple[int, CodeType | None]]:
    """Where to strike: everywhere in our code, here and there in the code of others, and everywhere below `below`."""
    walk = await count(path)
    found: list[tuple[int, CodeType | None]] = []
    found += [(at, None) for at in sorted({*walk.ours.values(), *range(1, walk.landings, STRIDE)})]
    if below is not None:
        code = inspect.unwrap(below).__code__
        found += [(at, code) for at in (await count(path, code)).each.values()]
    return found


def all_is_whole(paths: Paths, where: str) -> None:
    """Every lock is open, every connection back, and the next one gets on."""
    engine = paths.engine
    if isinstance(engine, SqliteEngine):
        assert engine._write_lock.acquire(timeout=PATIENCE_S), f"the write lock is lost: struck at {where}"
        engine._write_lock.release()
        assert not engine._wakes._local._listeners, f"somebody still listens: struck at {where}"
    else:
        settled(lambda: all_back(engine), f"a connection is lost: struck at {where}")
    settled(lambda: not is_held(paths), f"the mutex is still held: struck at {where}")
    engine.flush(PATIENCE_S)
    poller = paths.desk._poller
    assert poller._changed.acquire(timeout=PATIENCE_S), f"the poller's lock is lost: struck at {where}"
    poller._changed.release()
    assert not poller._watched
    assert paths.own_mutex._using.acquire(blocking=False), f"the mutex stays in use: struck at {where}"
    paths.own_mutex._using.release()
    bell: Any = paths.bell._rung
    is_open = bell._cond.acquire(timeout=PATIENCE_S)
    assert is_open, f"the bell's lock is lost: struck at {where}"
    bell._cond.release()
    assert paths.log.lock is not None
    assert paths.log.lock.acquire(timeout=PATIENCE_S), f"a log's lock is lost: struck at {where}"
    paths.log.lock.release()


def all_back(engine: PostgresEngine) -> bool:
    every = [pool.get_stats() for pool in engine._pools._pools.values()]
    return all(stats["pool_size"] == stats["pool_available"] for stats in every)


def is_held(paths: Paths) -> bool:
    found = paths.engine.run(mutexes.look("key"))
    return found is not None and found.is_held


def settled(holds: Callable[[], bool], what: str) -> None:
    """What threads of service use for a moment is given back soon."""
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until, what
        time.sleep(0.005)


class Waiting:
    """A plain handler that waits for the result of a job which ends `before`, `meanwhile` or `never`."""

    def __init__(self, engine: AnyEngine, desk: ClientBase, when: str) -> None:
        self.engine, self.desk, self.when = engine, desk, when
        self.holder = register(engine)
        self._watch = desk._poller.watch
        self.future: Future[Any] = Future()  # the last one that it waited for

    def watch(self, job_id: str) -> Future[Any]:
        self.future = self._watch(job_id)
        return self.future

    def __call__(self) -> None:
        job, is_over = running(self.engine, self.holder), threading.Event()
        if self.when == "before":
            self.end(job)
        mine = threading.get_ident()
        ends = threading.Thread(target=self.end_while_waited_for, args=(job, mine, is_over))
        ends.start()
        try:
            with suppress(ResultTimeout):
                self.desk.outcome(job.id, 0.05 if self.when == "never" else PATIENCE_S)
        finally:
            is_over.set()
            ends.join()

    def end_while_waited_for(self, job: Claimed, ident: int, is_over: threading.Event) -> None:
        while self.when == "meanwhile" and not is_over.is_set():
            if waits(ident):
                self.end(job)
                return
            time.sleep(0.0005)

    def end(self, job: Claimed) -> None:
        self.engine.run(store.succeed([Success(job.id, job.attempt, "1")], holder=self.holder))
        self.engine.wake(encode_ended([job.id]))

    def is_open(self) -> bool:
        """Whether the future can be locked: who brings the result does so, and who only shows it."""
        is_open = self.future._condition.acquire(timeout=PATIENCE_S)
        if is_open:
            self.future._condition.release()
        return is_open


def waits(ident: int) -> bool:
    """Whether this thread is just in a wait for a result."""
    frame = sys._current_frames().get(ident)
    if frame is None or frame.f_code is not threading.Condition.wait.__code__:
        return False
    while frame is not None and frame.f_code is not waited.__code__:
        frame = frame.f_back
    return frame is not None


@pytest.mark.parametrize("when", ["before", "meanwhile", "never"])
async def test_wherever_it_strikes_a_wait_for_a_result_the_next_one_gets_its_own(
    lite: SqliteEngine, when: str, stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if when == "never":
        monkeypatch.setattr(base, "WAIT_SLICE_S", 0.02)  # several turns
    desk = ClientBase(lite, actor=None, ready=None)
    path = Waiting(lite, desk, when)
    monkeypatch.setattr(desk._poller, "watch", path.watch)
    done = running(lite, path.holder)
    path.end(done)
    walk = await count(path, waited.__code__)
    hits = 0

    for landing in list(walk.each.values())[::stride]:
        ended = await struck(path, landing, waited.__code__)

        assert not ended.where or isinstance(ended.error, AskedToStop), (landing, ended)
        is_open = await asyncio.to_thread(path.is_open)
        assert is_open, f"the future stays locked: struck at {ended.where}"
        found = await asyncio.to_thread(desk.outcome, done.id, PATIENCE_S)
        assert found and found.state is State.SUCCEEDED, f"nobody gets a result: struck at {ended.where}"
        hits += bool(ended.where)

    desk.stop_waiting()
    assert hits > 50 / stride


def test_a_handler_whose_own_time_is_up_while_it_waits_for_another_job_is_told_that(
    lite: SqliteEngine,
) -> None:
    desk, striker = ClientBase(lite, actor=None, ready=None), Striker()
    never, ends = running(lite, register(lite)).id, list[BaseException | None]()
    thread = threading.Thread(target=lambda: ends.append(striker.run(lambda: desk.outcome(never))[1]))
    thread.start()
    settled(lambda: waits(thread.ident or 0), "it does not wait")

    striker.strike(OutOfTime)
    thread.join(PATIENCE_S)

    assert [type(each) for each in ends] == [OutOfTime]
    desk.stop_waiting()


def test_a_strike_before_the_call_has_begun_is_not_forgotten() -> None:
    striker, ran = Striker(), list[int]()

    assert striker.strike(AskedToStop)
    returned, error = striker.run(lambda: ran.append(1))

    assert isinstance(error, AskedToStop) and not returned and not ran


def test_one_that_lands_in_a_callback_of_the_interpreter_is_sent_again() -> None:
    striker, ends = Striker(), list[BaseException | None]()
    hand, kept = Hand(striker), [At.__new__(At)]
    watched = weakref.ref(kept[0], lambda _: hand.strike())

    def path() -> None:
        kept.clear()  # the interpreter calls back, and drops what is raised there
        hand.wait()

    thread = threading.Thread(target=lambda: ends.append(striker.run(path)[1]))
    thread.start()
    thread.join()
    hand.close()

    assert watched() is None and [type(each) for each in ends] == [AskedToStop]


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
    begun.wait(PATIENCE_S)
    assert striker.strike(AskedToStop)
    met.wait(PATIENCE_S)
    assert not striker.strike(AskedToStop)
    assert striker.strike(AskedToStop, again=True)
    thread.join(PATIENCE_S)

    assert not thread.is_alive() and len(caught) == 2
