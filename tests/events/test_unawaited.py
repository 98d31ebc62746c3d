"""An async handler behind a decorator of plain functions: nothing of it runs, and nobody counts that as done."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from fencerow import App
from fencerow.batches import BatchItem
from fencerow.events import Event, EventBus, apublish, consumer
from fencerow.testing import adrain
from tests.events.test_failing import parked

COROUTINE = "returned a coroutine that was not awaited"


def timed(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(*args: Any) -> Any:
        return function(*args)

    return inner


async def test_a_job_fails_and_says_why(app: App) -> None:
    @app.job
    @timed
    async def send() -> None: ...

    @app.batch_job
    @timed
    async def send_many(items: Sequence[BatchItem[int, None]]) -> None: ...

    await send.asubmit()
    await send_many.asubmit(1)

    for attempt in await adrain(app):
        assert attempt.error is not None
        assert COROUTINE in attempt.error.message


async def test_an_event_is_not_delivered(app: App) -> None:
    for group, inner in (("plain", timed), ("async", _forgetful)):

        @consumer(app, group=group, topics=["t"], start="beginning", deliveries_max=1)
        @inner
        async def take(event: Event) -> None: ...

    await apublish(app, "t", 1)
    async with app.worker():
        assert await parked(app, 2) == [("1", "InvalidPayload")] * 2
    assert {each.group for each in await EventBus(app).aparked()} == {"plain", "async"}


def _forgetful(function: Callable[..., Any]) -> Callable[..., Any]:
    """Async, and does not await."""

    @functools.wraps(function)
    async def inner(*args: Any) -> Any:
        return function(*args)

    return inner
