"""Submits calls through the middleware: what an app and each of its declared jobs use."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, TypeVar

from fencerow.app.chunks import achunks_of, chunks_of
from fencerow.app.submission import Call, Draft, Layers, SubmitMiddleware, submission_of
from fencerow.client.client import Client
from fencerow.client.handle import Handle
from fencerow.client.submitting import Submission
from fencerow.errors import InvalidInput
from fencerow.store.submit import Submitted
from fencerow.telemetry import Event

R = TypeVar("R")


class Submitter:
    """Turns calls into stored jobs and handles. `client` is asked for at each submit: it may be opened anew."""

    def __init__(self, client: Callable[[], Client], layers: Layers) -> None:
        self.middleware: list[SubmitMiddleware] = []
        self.layers = layers
        self._client = client

    def submit(self, call: Call[R]) -> Handle[R]:
        """Submit one call."""
        client = self._client()
        with self._drafted(client, [call]) as submissions:
            (answer,) = client.submit(submissions, connection=call.options.connection)
        return _handle(client, call, answer)

    async def asubmit(self, call: Call[R]) -> Handle[R]:
        """`submit` for async code."""
        client = self._client()
        with self._drafted(client, [call]) as submissions:
            (answer,) = await client.asubmit(submissions, connection=call.options.connection)
        return _handle(client, call, answer)

    def submit_many(self, calls: Iterable[Call[R]]) -> list[Handle[R]]:
        """Submit calls chunk by chunk; each chunk is atomic."""
        client = self._client()
        handles: list[Handle[R]] = []
        for chunk in chunks_of(calls):
            with self._drafted(client, chunk) as submissions:
                answers = client.submit(submissions, connection=_connection(chunk))
            handles += [_handle(client, call, answer) for call, answer in zip(chunk, answers, strict=True)]
        return handles

    async def asubmit_many(self, calls: Iterable[Call[R]] | AsyncIterable[Call[R]]) -> list[Handle[R]]:
        """`submit_many` for async code; takes an async iterable too."""
        client = self._client()
        handles: list[Handle[R]] = []
        async for chunk in achunks_of(calls):
            with self._drafted(client, chunk) as submissions:
                answers = await client.asubmit(submissions, connection=_connection(chunk))
            handles += [_handle(client, call, answer) for call, answer in zip(chunk, answers, strict=True)]
        return handles

    def _drafted(
        self, client: Client, calls: Sequence[Call[Any]]
    ) -> AbstractContextManager[list[Submission]]:
        """The rows of the calls, inside the middleware around their submit."""
        for call in calls:
            _check(call)
        drafts = [call.draft() for call in calls]
        if self.middleware:
            return self._in_middleware(client, calls, drafts)
        return nullcontext(self._submissions(client, calls, drafts))

    @contextmanager
    def _in_middleware(
        self, client: Client, calls: Sequence[Call[Any]], drafts: Sequence[Draft]
    ) -> Iterator[list[Submission]]:
        with ExitStack() as around:
            for draft in drafts:
                for middleware in self.middleware:
                    around.enter_context(middleware(draft))
            yield self._submissions(client, calls, drafts)

    def _submissions(
        self, client: Client, calls: Sequence[Call[Any]], drafts: Sequence[Draft]
    ) -> list[Submission]:
        return [self._submission(client, call, draft) for call, draft in zip(calls, drafts, strict=True)]

    def _submission(self, client: Client, call: Call[Any], draft: Draft) -> Submission:
        try:
            return submission_of(call, draft, self.layers, client.actor)
        except InvalidInput as error:
            client.telemetry.emit(Event.REFUSED, code=error.code)
            raise


def _check(call: object) -> None:
    """A declared job that is called runs at once and returns its result; that is not what can be submitted."""
    if isinstance(call, Call):
        return
    if isinstance(call, Coroutine):
        call.close()
    raise InvalidInput(
        f"a value of type {type(call).__name__} was given to be submitted",
        "`job(...)` runs the handler here; what is submitted is made by `job.call(...)`",
        "write job.call(...) here, or job.submit(...)",
    )


def _handle(client: Client, call: Call[R], answer: Submitted) -> Handle[R]:
    return Handle(
        client,
        answer.id,
        call.declaration.handler.result.decode,
        replay=answer.replay,
        existed=call.options.connection is None,
    )


def _connection(calls: Sequence[Call[Any]]) -> Any:
    """The one connection that all calls name, or none of them."""
    first = calls[0].options.connection
    if any(call.options.connection is not first for call in calls):
        raise InvalidInput(
            "the calls name different connections",
            "a chunk is submitted in one transaction",
            "submit those of each connection by themselves",
        )
    return first
