"""Submits calls through the middleware: what an app and each of its declared jobs use."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any, TypeVar

from fencerow.core.app.chunks import achunks_of, chunks_of
from fencerow.core.app.submission import (
    Call,
    Draft,
    Layers,
    SubmitMiddleware,
    checked,
    submission_of,
    with_labels,
)
from fencerow.core.client.client import JobsClient
from fencerow.core.client.handle import Handle
from fencerow.core.client.submission import Submission
from fencerow.core.errors import InvalidInput
from fencerow.core.model.ids import new_id, new_ids
from fencerow.core.store.submit import Submitted
from fencerow.core.telemetry import Event

R = TypeVar("R")


class Submitter:
    """Turns calls into stored jobs and handles. `client` is asked for at each submit: it may be opened anew."""

    def __init__(self, client: Callable[[], JobsClient], layers: Layers) -> None:
        self.middleware: list[SubmitMiddleware] = []
        self.layers = layers
        self._client = client

    def submit(self, call: Call[R]) -> Handle[R]:
        """Submit one call."""
        client, connection = self._client(), checked(call).recipe.options.connection
        if self.middleware:
            with self._in_middleware(client, [call]) as submissions:
                (answer,) = client.submit(submissions, connection=connection)
        else:
            (answer,) = client.submit([self._submission(client, call, new_id())], connection=connection)
        return _handle(client, call, answer)

    async def asubmit(self, call: Call[R]) -> Handle[R]:
        """`submit` for async code."""
        client, connection = self._client(), checked(call).recipe.options.connection
        if self.middleware:
            with self._in_middleware(client, [call]) as submissions:
                (answer,) = await client.asubmit(submissions, connection=connection)
        else:
            submission = self._submission(client, call, new_id())
            (answer,) = await client.asubmit([submission], connection=connection)
        return _handle(client, call, answer)

    def submit_many(self, calls: Iterable[Call[R]]) -> list[Handle[R]]:
        """Submit calls chunk by chunk; each chunk is atomic."""
        client = self._client()
        handles: list[Handle[R]] = []
        for chunk in chunks_of(calls):
            with self._drafted(client, chunk) as submissions:
                answers = client.submit(submissions, connection=_connection(chunk))
            handles += map(partial(_handle, client), chunk, answers)
        return handles

    async def asubmit_many(self, calls: Iterable[Call[R]] | AsyncIterable[Call[R]]) -> list[Handle[R]]:
        """`submit_many` for async code; takes an async iterable too."""
        client = self._client()
        handles: list[Handle[R]] = []
        async for chunk in achunks_of(calls):
            with self._drafted(client, chunk) as submissions:
                answers = await client.asubmit(submissions, connection=_connection(chunk))
            handles += map(partial(_handle, client), chunk, answers)
        return handles

    def _drafted(
        self, client: JobsClient, calls: Sequence[Call[Any]]
    ) -> AbstractContextManager[list[Submission]]:
        """The rows of the calls, inside the middleware around their submit."""
        if self.middleware:
            return self._in_middleware(client, calls)
        ids = new_ids(len(calls))
        return nullcontext(list(map(partial(self._submission, client), calls, ids)))

    def _submission(self, client: JobsClient, call: Call[Any], new: str) -> Submission:
        """The row of a call, under this id if the caller has none of their own."""
        try:
            return submission_of(call, call.recipe.options.id or new, self.layers, client.actor)
        except InvalidInput as error:
            client.telemetry.emit(Event.REFUSED, code=error.code)
            raise

    @contextmanager
    def _in_middleware(self, client: JobsClient, calls: Sequence[Call[Any]]) -> Iterator[list[Submission]]:
        drafts = [call.draft() for call in calls]
        with ExitStack() as around:
            for draft in drafts:
                for middleware in self.middleware:
                    around.enter_context(middleware(draft))
            yield [self._of_draft(client, call, draft) for call, draft in zip(calls, drafts, strict=True)]

    def _of_draft(self, client: JobsClient, call: Call[Any], draft: Draft) -> Submission:
        try:
            return with_labels(self._submission(client, call, draft.id), draft)
        except InvalidInput as error:
            client.telemetry.emit(Event.REFUSED, code=error.code)
            raise


def _handle(client: JobsClient, call: Call[R], answer: Submitted) -> Handle[R]:
    recipe = call.recipe
    existed = recipe.options.connection is None
    return Handle(client, answer.id, recipe.declaration.handler.result.decode, answer.replay, existed)


def _connection(calls: Sequence[Call[Any]]) -> Any:
    """The one connection that all calls name, or none of them."""
    first = calls[0].recipe.options.connection
    if any(call.recipe.options.connection is not first for call in calls):
        raise InvalidInput(
            "the calls name different connections",
            "a chunk is submitted in one transaction",
            "submit those of each connection by themselves",
        )
    return first
