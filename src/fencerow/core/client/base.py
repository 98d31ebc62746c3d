"""What every procedure of a client needs: the engine, whether it is ready, and the one who waits for results."""

from __future__ import annotations

import asyncio
import concurrent.futures
import math
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from fencerow.core.client.waiting import Answer, Poller
from fencerow.core.db.blocking import refuse_in_loop
from fencerow.core.db.borrow import borrowed
from fencerow.core.db.engine import Engine
from fencerow.core.db.run import Procedure, Request, Runner, WakeUp, arun, ask, run
from fencerow.core.db.strikes import SHELTER
from fencerow.core.errors import NotReady, ResultTimeout
from fencerow.core.model.job import Ended
from fencerow.core.store import store

T = TypeVar("T")

WAIT_SLICE_S = 0.5


class ClientBase:
    """Runs procedures on one engine, for threads and event loops together.

    `ready` is called once, before the database is first used; until it succeeds it is called again each time.
    """

    def __init__(
        self, engine: Engine, *, actor: str | None = None, ready: Callable[[], None] | None = None
    ) -> None:
        self.engine = engine
        self.actor = actor
        self._ready = ready
        self._first_use = threading.Lock()
        self._poller = Poller(engine)

    def run(self, procedure: Procedure[T], connection: object | None = None) -> T:
        """Run a procedure in this thread, on our engine or on the caller's connection.

        Raises:
            BlockingCall: on our engine, inside a running event loop.
        """
        if connection is None:
            refuse_in_loop()
        if self._ready is not None:
            self.make_ready()
        return run(procedure, partial(self._answer, self._runner(connection)))

    async def arun(self, procedure: Procedure[T], connection: object | None = None) -> T:
        """`run` in this event loop."""
        if self._ready is not None:
            await asyncio.to_thread(self.make_ready)
        return await arun(procedure, partial(self._aanswer, self._runner(connection)))

    _run, _arun = run, arun  # by which its verbs run

    def outcome(self, job_id: str, timeout_s: float | None = None) -> Ended | None:
        """Wait for the end of a job: how it ended, or None when it is nowhere.

        With no time to wait it looks once.

        Raises:
            ResultTimeout: it has not ended within `timeout_s` seconds. NotReady: it was only looked at once.
        """
        refuse_in_loop()
        if timeout_s is not None and timeout_s <= 0:
            return self.run(looking(job_id))
        self.make_ready()
        future: concurrent.futures.Future[Answer] | None = None
        try:
            with SHELTER:
                future = self._poller.watch(job_id)
            return waited(future, timeout_s)
        except concurrent.futures.TimeoutError:
            raise self._timed_out(job_id, timeout_s) from None
        finally:
            if future is not None:
                self._poller.forget(job_id, future)

    async def aoutcome(self, job_id: str, timeout_s: float | None = None) -> Ended | None:
        """`outcome` in this event loop."""
        if timeout_s is not None and timeout_s <= 0:
            return await self.arun(looking(job_id))
        if self._ready is not None:
            await asyncio.to_thread(self.make_ready)
        future: concurrent.futures.Future[Answer] = self._poller.watch(job_id)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), timeout_s)
        except TimeoutError:
            raise self._timed_out(job_id, timeout_s) from None
        finally:
            self._poller.forget(job_id, future)

    def stop_waiting(self) -> None:
        """End the thread that waits for results; those who wait get `Unavailable`."""
        self._poller.close()

    def _runner(self, connection: object | None) -> Runner:
        return self.engine if connection is None else borrowed(connection, self.engine)

    def _answer(self, runner: Runner, request: Request) -> Any:
        return self.engine.wake(request.messages) if isinstance(request, WakeUp) else runner.run(request)

    async def _aanswer(self, runner: Runner, request: Request) -> Any:
        if isinstance(request, WakeUp):
            return self.engine.wake(request.messages)
        return await runner.arun(request)

    def make_ready(self) -> None:
        """Look at the tables if nobody did; by itself before each procedure, but not inside one's own transaction."""
        if self._ready is None:
            return
        with self._first_use:
            if self._ready is not None:
                self._ready()
                self._ready = None

    def _timed_out(self, job_id: str, timeout_s: float | None) -> ResultTimeout:
        trouble = self._poller.trouble
        return ResultTimeout(
            f"job {job_id} had not ended within {timeout_s} s",
            f"the database could not be asked: {trouble}" if trouble else "it is queued or runs still",
            "it goes on; ask again",
        )


class Verbs:
    """Verbs of a feature that run as those of a client do. Each has an async twin with an `a` in front."""

    def __init__(self, client: ClientBase) -> None:
        self._client = client

    def _run(self, procedure: Procedure[T], connection: object | None = None) -> T:
        return self._client.run(procedure, connection)

    async def _arun(self, procedure: Procedure[T], connection: object | None = None) -> T:
        return await self._client.arun(procedure, connection)


def waited(future: concurrent.futures.Future[T], timeout_s: float | None) -> T:
    """The future's result. In slices: a handler that must end is not kept from it by what it waits for.

    Raises:
        TimeoutError: it did not come in time.
    """
    until = math.inf if timeout_s is None else time.monotonic() + timeout_s
    while not future.done() and (left_s := until - time.monotonic()) > 0:
        with SHELTER:  # whoever brings the result must find the future unlocked
            concurrent.futures.wait([future], min(WAIT_SLICE_S, left_s))
    with SHELTER:
        return future.result(0)


def looking(job_id: str) -> Procedure[Ended | None]:
    """How the job ended, None when it is nowhere, without waiting.

    Raises:
        NotReady: it has not ended.
    """
    ended = yield from ask(store.outcomes([job_id]))
    if job_id in ended:
        return ended[job_id]
    if not (yield from ask(store.existing([job_id]))):
        return None
    raise NotReady(f"job {job_id} has not ended", "it is queued or runs still", "wait for it, or ask later")
