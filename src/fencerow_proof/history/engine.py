"""An engine that records every operation it runs, and the one line that gives it to an app."""

from __future__ import annotations

import asyncio
import math
from asyncio import AbstractEventLoop
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from fencerow.app import App
from fencerow.core.errors import FencerowError
from fencerow.core.worker.context import Job
from fencerow.db.borrow import Borrowed
from fencerow.db.engine import AsyncSession, Engine, Session
from fencerow.db.run import Operation
from fencerow_proof.history.line import Kind
from fencerow_proof.history.recorder import Fact, Recorder
from fencerow_proof.history.witness import Witness

T = TypeVar("T")

LENT = "the caller's own transaction"


def recording(app: App, folder: str | Path) -> Recorder:
    """Record what this app and its workers do to the jobs, in a file of this process below `folder`.

    Call it before the app is used, in every process that submits, works or moves jobs: the checker takes
    what no file tells of for a fault. Keep the folder off the database's disk. Costs two small writes an operation.
    """
    recorder = Recorder(folder, sweep_s=app.config.sweep_s)
    app.wrap_engine(lambda engine: RecordingEngine(engine, recorder))

    @app.on_run
    async def run(job: Job, call_next: Callable[[], Awaitable[Any]]) -> Any:
        with _run(recorder, job):
            return await call_next()

    return recorder


@contextmanager
def _run(recorder: Recorder, job: Job) -> Iterator[None]:
    """One run of a handler: when it began and ended, and whether it raised. It changes nothing by itself."""
    fence: Fact = {"job": job.id, "attempt": job.attempt, "holder": job.holder}
    op = recorder.begin()
    recorder.write([recorder.line(Kind.INVOKE, op, 1, "run", **fence)])
    raised: Fact = {}
    try:
        yield
    except BaseException as error:
        raised = {"code": type(error).__name__}
        raise
    finally:
        recorder.write_end([recorder.line(Kind.OK, op, 1, "run", **fence, **raised)])


class RecordingEngine:
    """Stands before another engine: what goes through is the same, and leaves a line."""

    def __init__(self, inner: Engine, recorder: Recorder) -> None:
        self.inner = inner
        self.recorder = recorder
        self.dialect = inner.dialect
        self.traits = inner.traits
        self.queries = inner.queries
        self._background: set[asyncio.Task[Any]] = set()

    def run(self, operation: Operation[T]) -> T:
        witness = _witness(self.recorder)
        try:
            answer = self.inner.run(witness.watching(operation))
        except BaseException as error:
            witness.failed(error)
            raise
        witness.committed()
        return answer

    async def arun(self, operation: Operation[T]) -> T:
        """In a task of its own, so that the end is recorded although the caller was cancelled."""
        task = asyncio.create_task(self._arun(operation))
        self._background.add(task)
        task.add_done_callback(self._over)
        return await asyncio.shield(task)

    async def _arun(self, operation: Operation[T]) -> T:
        witness = _witness(self.recorder)
        try:
            answer = await self.inner.arun(witness.watching(operation))
        except BaseException as error:
            witness.failed(error)
            raise
        witness.committed()
        return answer

    @contextmanager
    def session(self, *, idle_s: float | None = None) -> Iterator[Session]:
        watched: list[Witness] = []
        with _together(watched), self.inner.session(idle_s=idle_s) as session:
            yield RecordingSession(session, self.recorder, watched)

    @asynccontextmanager
    async def asession(self, *, idle_s: float | None = None) -> AsyncIterator[AsyncSession]:
        watched: list[Witness] = []
        with _together(watched):
            async with self.inner.asession(idle_s=idle_s) as session:
                yield AsyncRecordingSession(session, self.recorder, watched)

    def lending(self, borrowed: Borrowed) -> Borrowed:
        """What runs on a lent connection is recorded too; its commit is the caller's, so its end is unknown."""
        return RecordingBorrowed(borrowed, self.recorder)

    def wake(self, messages: list[str]) -> None:
        self.inner.wake(messages)

    def listen(
        self, callback: Callable[[str | None], None], *, loop: AbstractEventLoop | None = None
    ) -> Callable[[], None]:
        return self.inner.listen(callback, loop=loop)

    def imprint(self) -> object | None:
        return self.inner.imprint()

    def flush(self, timeout_s: float) -> None:
        self.inner.flush(timeout_s)

    def keeper(self, *, patience_s: float = math.inf) -> Engine:
        return RecordingEngine(self.inner.keeper(patience_s=patience_s), self.recorder)

    def close(self) -> None:
        self.inner.close()

    async def aclose(self) -> None:
        await self.inner.aclose()
        pending = [task for task in self._background if task.get_loop() is asyncio.get_running_loop()]
        if pending:
            await asyncio.wait(pending)

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled():
            task.exception()  # a caller who still waits gets it; for one who was cancelled it is no news


class RecordingSession:
    """An open transaction whose operations get their end with its commit."""

    def __init__(self, inner: Session, recorder: Recorder, watched: list[Witness]) -> None:
        self._inner = inner
        self._recorder = recorder
        self._watched = watched

    @property
    def connection(self) -> Any:
        return self._inner.connection

    @property
    def is_open(self) -> bool:
        return self._inner.is_open

    def flush(self) -> None:
        self._inner.flush()

    def run(self, operation: Operation[T]) -> T:
        self._watched.append(witness := _witness(self._recorder))
        return self._inner.run(witness.watching(operation))

    def abandon(self) -> None:
        self._inner.abandon()


class AsyncRecordingSession:
    """The same for async drivers."""

    def __init__(self, inner: AsyncSession, recorder: Recorder, watched: list[Witness]) -> None:
        self._inner = inner
        self._recorder = recorder
        self._watched = watched

    @property
    def connection(self) -> Any:
        return self._inner.connection

    @property
    def is_open(self) -> bool:
        return self._inner.is_open

    async def aflush(self) -> None:
        await self._inner.aflush()

    async def arun(self, operation: Operation[T]) -> T:
        self._watched.append(witness := _witness(self._recorder))
        return await self._inner.arun(witness.watching(operation))

    def abandon(self) -> None:
        self._inner.abandon()


class RecordingBorrowed:
    """A lent connection: what succeeds on it stays undecided, what fails left no effect."""

    def __init__(self, inner: Borrowed, recorder: Recorder) -> None:
        self._inner = inner
        self._recorder = recorder

    @property
    def is_async(self) -> bool:
        return self._inner.is_async

    def run(self, operation: Operation[T]) -> T:
        witness = _witness(self._recorder)
        try:
            answer = self._inner.run(witness.watching(operation))
        except BaseException as error:
            witness.failed(error)
            raise
        witness.undecided(LENT)
        return answer

    async def arun(self, operation: Operation[T]) -> T:
        witness = _witness(self._recorder)
        try:
            answer = await self._inner.arun(witness.watching(operation))
        except BaseException as error:
            witness.failed(error)
            raise
        witness.undecided(LENT)
        return answer

    def is_open(self) -> bool:
        return self._inner.is_open()


def _witness(recorder: Recorder) -> Witness:
    return Witness(recorder, recorder.begin())


@contextmanager
def _together(watched: list[Witness]) -> Iterator[None]:
    """All operations of one transaction end alike, with its commit or its rollback."""
    try:
        yield
    except BaseException as error:
        for witness in watched:
            if isinstance(error, FencerowError) or not isinstance(error, Exception):
                witness.failed(error)
            else:
                witness.rolled_back(type(error).__name__)
        raise
    for witness in watched:
        witness.committed()
