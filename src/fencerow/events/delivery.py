"""One call of a consumer's function, with its time limit, and what comes of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Context, copy_context
from functools import partial
from typing import Any

from fencerow.core.log_fields import handled
from fencerow.core.model.value import run_whole
from fencerow.db.strikes import Striker, arrived
from fencerow.db.threads import Threads
from fencerow.events.declared import Consumer, PartitionPage
from fencerow.events.errors import DeliveryTimeout
from fencerow.events.event import Event

log = logging.getLogger("fencerow.events")

GRACE_S = 5.0  # for a function that was told to end


class Struck(Exception):
    """Raised inside a plain function whose time is over."""

    def __init__(self) -> None:
        arrived()
        super().__init__()


class ConsumerCalls:
    """Calls a consumer's function: an async one on the event loop, a plain one on a thread."""

    def __init__(self, consumer: Consumer, threads: Threads) -> None:
        self._consumer = consumer
        self._threads = threads
        self._left: set[asyncio.Future[Any]] = set()  # given up, and still running

    async def hand(self, event: Event, page: PartitionPage | None = None) -> BaseException | None:
        """Hand over an event, to its page if it is of one; returns what the function raised, be it what it may (see
        `worker/calling.py`).

        One that takes too long is told to end, and left behind when it does not: a DeliveryTimeout. What it still
        writes in the event's transaction is refused.
        """
        function = self._consumer.function if page is None else page.hand
        error = await (self._on_loop(event, function) if self._consumer.is_async else self._on_thread(event))
        if isinstance(error, asyncio.CancelledError):
            return RuntimeError("the handler was cancelled by its own code")
        return error

    async def _on_loop(self, event: Event, function: Callable[..., Any]) -> BaseException | None:
        task = asyncio.create_task(_raised(function, event), context=_context(event))
        try:
            await _done(task, self._consumer.timeout_s)
        except asyncio.CancelledError:  # the reader is being ended, and its handler with it
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE_S)
            raise
        if task.done():
            return task.result()
        task.cancel()
        return await self._after_strike(event, task, asyncio.CancelledError)

    async def _on_thread(self, event: Event) -> BaseException | None:
        striker, context = Striker(), _context(event)

        def call() -> None:
            run_whole(context.run(self._consumer.function, event))

        future = self._threads.submit(call, striker)
        await asyncio.wait({future}, timeout=self._consumer.timeout_s)
        if future.done():
            return future.exception()
        striker.strike(Struck)
        error = await self._after_strike(event, future, Struck)
        if not future.done():
            striker.strike(Struck, again=True)  # left behind: whatever swallowed the first one
        return error

    async def _after_strike(
        self, event: Event, running: asyncio.Future[Any], struck: type[BaseException]
    ) -> BaseException | None:
        """What comes of a handler whose time is over and that was told so by raising this in it."""
        await asyncio.wait({running}, timeout=GRACE_S)
        if not running.done():
            self._left.add(running)
            running.add_done_callback(self._left.discard)
            log.error(
                "the handler of %r does not end and is left behind, in delivery %d", event, event.delivery
            )
            return self._too_long(event)
        error = running.exception()
        if error is None:
            error = running.result()
        return self._too_long(event) if isinstance(error, struck) else error

    def _too_long(self, event: Event) -> DeliveryTimeout:
        return DeliveryTimeout(
            f"the delivery of event {event.id} ({event.topic}) to {self._consumer.group} took longer than "
            f"{self._consumer.timeout_s:g} s",
            "the handler did not return",
            "make it faster, raise timeout_s, or let it submit a job for the long part",
        )


def _context(event: Event) -> Context:
    """Of its own for each delivery: what the handler sets in it ends with it, and the log knows what it handles."""
    context = copy_context()
    context.run(handled.set, partial(_log_fields, event))
    return context


def _log_fields(event: Event) -> Mapping[str, object]:
    return {
        "group": event.group,
        "topic": event.topic,
        "event_id": event.id,
        "delivery": event.delivery,
    }


async def _done(task: asyncio.Task[Any], within_s: float) -> None:
    """Wait until a task is done, or for so long: `asyncio.wait`, at half its price, which each event pays."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()

    def end(_: object = None) -> None:
        if not over.done():
            over.set_result(None)

    task.add_done_callback(end)
    timer = loop.call_later(within_s, end)
    try:
        await over
    finally:
        timer.cancel()


async def _raised(function: Callable[[Event], Awaitable[object]], event: Event) -> BaseException | None:
    """What a handler raises, as a value: a task that ends by `sys.exit` would end the whole event loop."""
    try:
        run_whole(await function(event))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return error
    return None
