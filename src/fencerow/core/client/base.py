"""What all of a client stands on: who runs its procedures and waits for the ends of jobs, and the handle of one job."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import math
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec

from fencerow.core.client.moving import cancelling, reviving
from fencerow.core.client.refs import CancelAnswer, reading
from fencerow.core.client.waiting import Answer, Poller, check_wait
from fencerow.core.db.blocking import refuse_in_loop
from fencerow.core.db.borrow import borrowed
from fencerow.core.db.engine import Engine
from fencerow.core.db.run import Procedure, Request, Runner, WakeUp, arun, ask, run
from fencerow.core.db.strikes import SHELTER
from fencerow.core.db.verb import averb, verb
from fencerow.core.errors import JobCancelled, JobFailed, JobGone, JobNotFound, NotReady, ResultTimeout
from fencerow.core.model.describe import ErrorRecord
from fencerow.core.model.job import Ended, JobRecord
from fencerow.core.model.seconds import Seconds
from fencerow.core.model.state import State
from fencerow.core.store import store

T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)

log = logging.getLogger("fencerow.client")

WAIT_SLICE_S = 0.5
MESSAGE_SHOWN = 300


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

    def arun(self, procedure: Procedure[T], connection: object | None = None) -> Coroutine[Any, Any, T]:
        """`run` in this event loop."""
        if self._ready is not None:
            return self._arun_when_ready(procedure, connection)
        return arun(procedure, partial(self._aanswer, self._runner(connection)))

    async def _arun_when_ready(self, procedure: Procedure[T], connection: object | None) -> T:
        await asyncio.to_thread(self.make_ready)
        return await arun(procedure, partial(self._aanswer, self._runner(connection)))

    _run, _arun = run, arun  # by which its verbs run

    def outcome(self, job_id: str, timeout_s: Seconds | None = None) -> Ended | None:
        """Wait for the end of a job: how it ended, or None when it is nowhere.

        With no time to wait it looks once.

        Raises:
            ResultTimeout: it has not ended within `timeout_s` seconds. NotReady: it was only looked at once.
        """
        refuse_in_loop()
        timeout_s = check_wait(timeout_s)
        if timeout_s is not None and timeout_s <= 0:
            return self.run(looking(job_id))
        self.make_ready()
        future: concurrent.futures.Future[Answer] | None = None
        try:
            with SHELTER:
                future = self._poller.watch(job_id)
            return waited(future, timeout_s)
        except BaseException as error:
            if future is not None:
                self._poller.forget(
                    job_id, future
                )  # the poller has forgotten it by itself when it was answered
            if isinstance(error, concurrent.futures.TimeoutError):
                raise self._timed_out(job_id, timeout_s) from None
            raise

    async def aoutcome(self, job_id: str, timeout_s: Seconds | None = None) -> Ended | None:
        """`outcome` in this event loop."""
        timeout_s = check_wait(timeout_s)
        if timeout_s is not None and timeout_s <= 0:
            return await self.arun(looking(job_id))
        if self._ready is not None:
            await asyncio.to_thread(self.make_ready)
        future: concurrent.futures.Future[Answer] = self._poller.watch(job_id)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), timeout_s)
        except BaseException as error:
            self._poller.forget(job_id, future)
            if isinstance(error, TimeoutError):
                raise (await self._atimed_out(job_id, timeout_s)) from None
            raise

    def stop_waiting(self) -> None:
        """End the thread that waits for results; those who wait get `Unavailable`."""
        self._poller.close()

    def _runner(self, connection: object | None) -> Runner:
        return self.engine if connection is None else borrowed(connection, self.engine)

    def _answer(self, runner: Runner, request: Request) -> Any:
        return self.engine.wake(request.messages) if isinstance(request, WakeUp) else runner.run(request)

    def _aanswer(self, runner: Runner, request: Request) -> Awaitable[Any]:
        return self._awake(request) if isinstance(request, WakeUp) else runner.arun(request)

    async def _awake(self, request: WakeUp) -> None:
        self.engine.wake(request.messages)

    def make_ready(self) -> None:
        """Look at the tables if nobody did; by itself before each procedure, but not inside one's own transaction."""
        if self._ready is None:
            return
        with self._first_use:
            if self._ready is not None:
                self._ready()
                self._ready = None

    def why_waiting(self, job_id: str) -> Procedure[str]:  # noqa: ARG002
        """Why a job has not ended, in a few words, for who waited in vain."""
        yield from ()
        return "it is still queued or running"

    def _timed_out(self, job_id: str, timeout_s: float | None) -> ResultTimeout:
        try:
            found = "" if self._poller.trouble else self.run(self.why_waiting(job_id))
        except Exception as error:  # who waited gets the answer to what was asked: it has not ended
            log.debug("nobody could say why job %s has not ended: %s", job_id, error)
            found = "it is still queued or running"
        return self._late(job_id, timeout_s, found)

    async def _atimed_out(self, job_id: str, timeout_s: float | None) -> ResultTimeout:
        try:
            found = "" if self._poller.trouble else await self.arun(self.why_waiting(job_id))
        except Exception as error:
            log.debug("nobody could say why job %s has not ended: %s", job_id, error)
            found = "it is still queued or running"
        return self._late(job_id, timeout_s, found)

    def _late(self, job_id: str, timeout_s: float | None, found: str) -> ResultTimeout:
        return ResultTimeout(
            f"job {job_id} had not ended within {timeout_s:g} s",
            found or f"the database could not be asked: {self._poller.trouble}",
            "the job goes on; ask again, or look with `fencerow why`",
        )


class Verbs:
    """Verbs of a feature that run as those of a client do. Each has an async twin with an `a` in front."""

    def __init__(self, client: ClientBase) -> None:
        self._client = client

    def _run(self, procedure: Procedure[T], connection: object | None = None) -> T:
        return self._client.run(procedure, connection)

    async def _arun(self, procedure: Procedure[T], connection: object | None = None) -> T:
        return await self._client.arun(procedure, connection)


class Handle(msgspec.Struct, Generic[R_co], frozen=True, eq=False, gc=False):
    """One job, by its id. It has nothing else in it, so it stays valid across retries, restarts and revivals.

    `replay` is true if an earlier submit with the same key or id had made the job.
    """

    _client: ClientBase
    id: str
    _decode: Callable[[bytes], R_co]
    replay: bool = False
    _existed: bool = True

    def __repr__(self) -> str:
        return f"<Handle {self.id}{' (replay)' if self.replay else ''}>"

    def result(self, timeout_s: Seconds | None = None) -> R_co:
        """Wait for the job's end and return what its handler returned.

        Raises:
            JobFailed: it ended `failed`; `error` is what the last attempt reported.
            JobCancelled: it ended `cancelled`.
            JobGone: it was removed by retention or by hand, or it is ephemeral and succeeded before anybody waited.
            JobNotFound: there is no such job. The transaction that submits it may not have committed yet.
            ResultTimeout: it has not ended within `timeout_s` seconds. It goes on; ask again. With
                `timeout_s=0` the job is read only once, and the error is the subclass `NotReady`.
            MalformedPayload: the stored result does not fit the type this code declares.
        """
        return self._unpacked(self._client.outcome(self.id, timeout_s))

    async def aresult(self, timeout_s: Seconds | None = None) -> R_co:
        """`result` for async code. A caller that is cancelled stops waiting; the job goes on."""
        return self._unpacked(await self._client.aoutcome(self.id, timeout_s))

    @verb
    def refresh(self) -> Procedure[JobRecord]:
        """The job as it stands now.

        Raises:
            JobNotFound: it is not there. `JobGone` if it was removed.
        """
        return (yield from reading(self.id))

    arefresh = averb(refresh)

    @verb
    def status(self) -> Procedure[State]:
        """The state the job is in now.

        Raises:
            JobNotFound: it is not there.
        """
        return (yield from reading(self.id)).state

    astatus = averb(status)

    @verb
    def cancel(self, *, reason: str | None = None, only_queued: bool = False) -> Procedure[CancelAnswer]:
        """Cancel the job: see `Client.cancel`."""
        return (yield from cancelling(self.id, self._client.actor, reason, only_queued))

    acancel = averb(cancel)

    @verb
    def revive(self, *, reason: str | None = None) -> Procedure[None]:
        """Queue the finished job again: see `Client.revive`."""
        return (yield from reviving(self.id, self._client.actor, reason))

    arevive = averb(revive)

    def _run(self, procedure: Procedure[T], connection: object | None = None) -> T:
        return self._client.run(procedure, connection)

    async def _arun(self, procedure: Procedure[T], connection: object | None = None) -> T:
        return await self._client.arun(procedure, connection)

    def _unpacked(self, ended: Ended | None) -> R_co:
        if ended is None:
            raise self._missing()
        if ended.state is State.SUCCEEDED:
            return self._decode((ended.result or "null").encode())
        if ended.state is State.CANCELLED:
            raise JobCancelled(
                f"job {self.id} was cancelled", "it has no result", "submit the work again if needed"
            )
        raise failed(ended)

    def _missing(self) -> JobNotFound:
        if self._existed:
            return JobGone(
                f"job {self.id} is gone",
                "it was removed after its end, by retention or by hand, or it is ephemeral and succeeded",
                "wait for an ephemeral job before it ends, or keep results (retention_s), or store them elsewhere",
            )
        return JobNotFound(
            f"there is no job {self.id}",
            "neither live nor finished",
            "commit the transaction that submits it before you wait for it, or check the id",
        )


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
    raise NotReady(
        f"job {job_id} has not ended", "it is still queued or running", "wait for it, or ask later"
    )


def failed(ended: Ended) -> JobFailed:
    """The error to raise for a job that ended failed."""
    record = stored_error(ended.error)
    shown = f"{record.type}: {record.message}"[:MESSAGE_SHOWN] if record.type else record.message
    return JobFailed(
        f"job {ended.id} failed: {shown}",
        record.code,
        "see its timeline, and revive it when the cause is gone",
        job_id=ended.id,
        error=record,
    )


def stored_error(text: str | None) -> ErrorRecord:
    """What was stored of an error; ends that the database decided have no traceback of their own."""
    try:
        plain = msgspec.json.decode(text or "null")
    except ValueError:
        plain = None
    if not isinstance(plain, dict):
        return ErrorRecord(type="", message="no error was recorded", traceback="", code="")
    return ErrorRecord(
        **{name: str(plain.get(name) or "") for name in ("type", "message", "traceback", "code")}
    )
