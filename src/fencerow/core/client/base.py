"""What all of a client stands on: who runs its procedures and waits for the ends of jobs."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import math
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from fencerow.core.client.refs import Ref
from fencerow.core.client.waiting import Answer, Poller, check_wait
from fencerow.core.errors import FencerowError, NotReady, ResultTimeout
from fencerow.core.errors.bare import bare
from fencerow.core.log_fields import current
from fencerow.core.model.change import ArgumentsEncoder, AskedChange, JobChanged, plain_arguments
from fencerow.core.model.job import EndOfJob, JobRecord
from fencerow.core.model.packed import Bound
from fencerow.core.model.packing import PLAIN, Packing
from fencerow.core.model.seconds import Seconds
from fencerow.core.model.state import LIVE
from fencerow.core.store import store
from fencerow.db.blocking import refuse_in_loop
from fencerow.db.borrow import borrowed
from fencerow.db.engine import Engine
from fencerow.db.run import Procedure, Request, Runner, WakeUp, arun, ask, run
from fencerow.db.strikes import SHELTER, sheltered

T = TypeVar("T")

log = logging.getLogger("fencerow.client")

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
        # How new arguments are made for the job of a name. A client of an app checks them by its declarations.
        self.encode_arguments: ArgumentsEncoder = plain_arguments
        self.packing: Packing = (
            PLAIN  # how results are read; a client of an app reads them as its workers store them
        )
        self._ready = ready
        self._told_of_waits: set[str] = set()  # the jobs of which was said that they wait for others
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
        try:
            return run(procedure, partial(self._answer, self._runner(connection)))
        except FencerowError as error:
            raise bare(error)  # noqa: B904 - it is the same error

    async def arun(self, procedure: Procedure[T], connection: object | None = None) -> T:
        """`run` in this event loop."""
        if self._ready is not None:
            await asyncio.to_thread(self.make_ready)
        try:
            return await arun(procedure, partial(self._aanswer, self._runner(connection)))
        except FencerowError as error:
            raise bare(error)  # noqa: B904 - it is the same error

    _run, _arun = run, arun  # by which its verbs run

    def outcome(self, job_id: str, timeout_s: Seconds | None = None) -> EndOfJob | None:
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
        if (waiting := self._waiting_job()) is not None:
            self._tell_of_wait(waiting, job_id, self.run(looked_for(job_id)))
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
            # Only what the wait itself raised: a handler that is told that its own time is up gets a TimeoutError too.
            if type(error) is concurrent.futures.TimeoutError:
                raise self.run(self._late(job_id, timeout_s)) from None
            raise

    async def aoutcome(self, job_id: str, timeout_s: Seconds | None = None) -> EndOfJob | None:
        """`outcome` in this event loop."""
        timeout_s = check_wait(timeout_s)
        if timeout_s is not None and timeout_s <= 0:
            return await self.arun(looking(job_id))
        if self._ready is not None:
            await asyncio.to_thread(self.make_ready)
        if (waiting := self._waiting_job()) is not None:
            self._tell_of_wait(waiting, job_id, await self.arun(looked_for(job_id)))
        future: concurrent.futures.Future[Answer] = self._poller.watch(job_id)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), timeout_s)
        except BaseException as error:
            self._poller.forget(job_id, future)
            if isinstance(error, TimeoutError):
                raise (await self.arun(self._late(job_id, timeout_s))) from None
            raise

    def _waiting_job(self) -> str | None:
        """The name of the job in whose handler this is called, as long as nobody was told that it waits for jobs."""
        name = current().get("job")
        return name if isinstance(name, str) and name not in self._told_of_waits else None

    @sheltered  # a handler of the log has a lock
    def _tell_of_wait(self, waiting: str, job_id: str, live: JobRecord | None) -> None:
        """Say once for each job that it waits for another: where all slots are taken by such jobs, nothing moves."""
        if live is not None and waiting not in self._told_of_waits:
            self._told_of_waits.add(waiting)
            log.warning(
                "job %s waits for job %s (%s), and keeps its slot meanwhile: when all slots have such jobs, nothing "
                "moves until timeout_s is over. Submit what comes after it with job.submit_next(...) and return "
                "(docs/guide/never-wait.md)",
                waiting, live.name, job_id,
            )  # fmt: skip

    @property
    def packs(self) -> bool:
        """Whether payloads are stored otherwise than they are: a record shows them as they are stored."""
        return self.packing is not PLAIN

    def plain_result(self, job_id: str, stored: bytes) -> bytes:
        """A stored result of that job as it was encoded.

        Raises:
            SealKeyUnknown: it is sealed or signed, and this client has no such key.
            PayloadAltered: it is not what the job returned.
        """
        return self.packing.unpack(stored, Bound.result(job_id))

    async def aplain_result(self, job_id: str, stored: bytes) -> bytes:
        """`plain_result` for async code."""
        return await self.packing.aunpack(stored, Bound.result(job_id))

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

    def changing(
        self,
        ref: Ref,  # noqa: ARG002
        asked: AskedChange,  # noqa: ARG002
        reason: str | None = None,  # noqa: ARG002
        connection: object | None = None,  # noqa: ARG002
    ) -> Procedure[JobChanged]:
        """Change a job that nobody runs: what handles do by the verb that operators give `Client`."""
        yield from ()
        raise NotImplementedError("a client of the core alone changes no jobs")

    def why_waiting(self, job_id: str) -> Procedure[str]:  # noqa: ARG002
        """Why a job has not ended, in a few words, for who waited in vain."""
        yield from ()
        return "it is still queued or running"

    def _late(self, job_id: str, timeout_s: float | None) -> Procedure[ResultTimeout]:
        try:
            found = "" if self._poller.trouble else (yield from self.why_waiting(job_id))
        except Exception as error:  # who waited gets the answer to what was asked: it has not ended
            found = _unexplained(job_id, error)
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


def waited(future: concurrent.futures.Future[T], timeout_s: float | None) -> T:
    """The future's result. In slices: a handler that must end is not kept from it by what it waits for.

    Raises:
        TimeoutError: it did not come in time.
    """
    until = math.inf if timeout_s is None else time.monotonic() + timeout_s
    while True:
        # Each touch of the future takes its lock, `done()` too. Struck there, it would stay locked, and the one thread
        # that brings everybody's results would wait for it for ever. Between two slices what came meanwhile strikes.
        with SHELTER:
            concurrent.futures.wait([future], max(0.0, min(WAIT_SLICE_S, until - time.monotonic())))
            if future.done() or time.monotonic() >= until:
                return future.result(0)


@sheltered  # a handler of the log has a lock
def _unexplained(job_id: str, error: Exception) -> str:
    log.debug("nobody could say why job %s has not ended: %s", job_id, error)
    return "it is still queued or running"


def looked_for(job_id: str) -> Procedure[JobRecord | None]:
    """The job, None when it is not live."""
    found = (yield from ask(store.read([job_id]))).get(job_id)
    return found if found is not None and found.state in LIVE else None


def looking(job_id: str) -> Procedure[EndOfJob | None]:
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
