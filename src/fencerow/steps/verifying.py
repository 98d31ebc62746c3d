"""A handler beside a recorded history: it runs, its steps answer from the record, and what departs is told.

No step is done and nothing is stored: the run ends where the code asks for what the record has not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, NoReturn, cast

import msgspec

from fencerow.core.app.unknown import unknown_job
from fencerow.core.errors import InvalidInput
from fencerow.core.model.backoff import Backoff
from fencerow.core.model.job import Claimed
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.context import Done
from fencerow.db.text import shown
from fencerow.steps.errors import HistoryMismatch
from fencerow.steps.history import History
from fencerow.steps.job_verbs import STEP_BACKOFF, StepVerbs
from fencerow.steps.model import Kind, Step

if TYPE_CHECKING:
    from fencerow.core.app import JobsApp
    from fencerow.core.model.handler import Handler
    from fencerow.db.engine import Engine


class RecordedJob(msgspec.Struct, frozen=True):
    """The job of a record."""

    id: str
    name: str
    attempt: int
    args: msgspec.Raw
    args_version: int = 1


class RecordedStep(msgspec.Struct, frozen=True):
    """One step of a record."""

    name: str
    kind: Kind
    seq: int
    result: msgspec.Raw
    beside: bool = False


class Record(msgspec.Struct, frozen=True):
    """What `fencerow steps show JOB --json` prints, as far as it is needed."""

    job: RecordedJob
    steps: list[RecordedStep]


class Verified(msgspec.Struct, frozen=True):
    """Whether the code agrees with a record, and in words how far, or where it departs."""

    agrees: bool
    line: str


class Beyond(BaseException):
    """The run has come to what its record has not: it goes no further."""


def recorded(text: bytes, file: str) -> Record:
    """The record in a file.

    Raises:
        InvalidInput: it holds none.
    """
    try:
        return msgspec.json.decode(text, type=Record)
    except msgspec.DecodeError as error:
        raise InvalidInput(
            f"{file} holds no history: {error}",
            "what `fencerow steps show JOB --json` prints is expected",
            "record a job with that",
        ) from None


def verified(app: JobsApp, record: Record) -> Verified:
    """Run the handler of the recorded job.

    Raises:
        UnknownJob: the application declares none of that name. MalformedPayload: its arguments do not fit.
        SealKeyUnknown, PayloadAltered: they are sealed or signed, and the application has no such key.
    """
    declared = app.jobs.get(record.job.name)
    if declared is None:
        raise unknown_job(record.job.name, list(app.jobs))
    handler = declared.handler
    history = History(
        [
            Step(
                name=each.name,
                kind=each.kind,
                seq=each.seq,
                result=_compact(each.result).decode(),
                beside=each.beside,
            )
            for each in record.steps
        ]
    )
    try:
        _run(handler, record, history)
    except HistoryMismatch as error:
        return Verified(False, f"it departs: {error.what}")
    except Beyond as end:
        return Verified(True, f"it agrees with all {len(record.steps)} steps; then {end}")
    except Exception as error:
        return _ended(history, f"raises {type(error).__name__}: {shown(str(error))}")
    return _ended(history, "returns")


def _compact(printed: msgspec.Raw) -> bytes:
    """A payload as it was stored, from how it was printed: a signature is of those bytes."""
    return msgspec.json.encode(msgspec.json.decode(printed))


def _ended(history: History, how: str) -> Verified:
    if history.is_ahead():
        return Verified(
            False, f"it departs: the code {how} and asks no more, and the history has {history.following()}"
        )
    return Verified(True, f"it agrees: after all steps of the history the code {how}")


def _run(handler: Handler, record: Record, history: History) -> None:
    positional, named = handler.called_with(record.job.id, _compact(record.job.args), record.job.args_version)
    loop = asyncio.new_event_loop()
    try:
        given = named
        if handler.job_parameter is not None:
            given = {**named, handler.job_parameter: Rehearsal(_attempt(handler, record), loop, history)}
        if handler.is_async:
            loop.run_until_complete(_awaited(handler.function, positional, given))
        else:
            handler.function(*positional, **given)
    finally:
        loop.close()


async def _awaited(function: Callable[..., Any], positional: tuple[Any, ...], named: dict[str, Any]) -> None:
    await function(*positional, **named)


def _attempt(handler: Handler, record: Record) -> Attempt:
    job, nothing = record.job, msgspec.Raw(b"null")
    claimed = Claimed(
        job.id, job.name, "rehearsal", job.attempt, 0, 0, False, 0, 0, 0, 1, 1, None, 0, job.args, nothing, None,
        None, None,
    )  # fmt: skip
    return Attempt(claimed, "rehearsal", handler)


class Rehearsal(StepVerbs):
    """A running job that has a history and no database."""

    __slots__ = ()

    def __init__(self, attempt: Attempt, loop: asyncio.AbstractEventLoop, history: History) -> None:
        super().__init__(attempt, cast("Engine", None), loop)
        self.kept = {"history": history}

    def progress(self, percent: float, note: str | None = None) -> Awaitable[None]:  # noqa: ARG002
        return Done()

    def log(self, message: str, level: str = "info") -> Awaitable[None]:  # noqa: ARG002
        return Done()

    def emit(self, chunk: object) -> Awaitable[None]:  # noqa: ARG002
        return Done()

    def step(  # type: ignore[override]
        self,
        name: str,
        fn: Callable[..., Any],
        *args: Any,
        retries: int = 0,
        backoff: Backoff = STEP_BACKOFF,
        **_of_wings: object,
    ) -> Any:
        """What wings write beside a step is not written here."""
        return self._step(name, fn, args, retries, backoff)

    def transaction(self, **_: object) -> NoReturn:
        raise Beyond("it opens job.transaction()")

    def _perform(self, script: Callable[[History], Generator[Any, Any, Any]]) -> Any:
        history: History = (self.kept or {})["history"]
        try:
            next(script(history))
        except StopIteration as done:
            return done.value
        raise Beyond(f"it asks for {shown(history.last)}, which is not remembered")

    async def _aperform(self, script: Callable[[History], Generator[Any, Any, Any]]) -> Any:
        return self._perform(script)
