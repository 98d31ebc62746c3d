"""One call of a consumer's function, with its time limit, and what comes of it."""

from __future__ import annotations

import asyncio
from contextvars import copy_context

from fencerow.db.strikes import Striker, arrived
from fencerow.errors import DeliveryTimeout
from fencerow.worker.events.consumer import Consumer
from fencerow.worker.events.event import Event
from fencerow.worker.threads import Threads

GRACE_S = 5.0  # for a plain function that was told to end


class Struck(Exception):
    """Raised inside a plain function whose time is over."""

    def __init__(self) -> None:
        arrived()
        super().__init__()


class Delivery:
    """Calls a consumer's function: an async one on the event loop, a plain one on a thread."""

    def __init__(self, consumer: Consumer, threads: Threads) -> None:
        self._consumer = consumer
        self._threads = threads

    async def hand(self, event: Event) -> None:
        """Hand over an event; raises what the function raises.

        Raises:
            DeliveryTimeout: it took too long. A plain function that cannot be ended is left behind; what it
                still writes in the event's transaction is refused.
        """
        if self._consumer.is_async:
            await self._on_loop(event)
        else:
            await self._on_thread(event)

    async def _on_loop(self, event: Event) -> None:
        limit = asyncio.timeout(self._consumer.timeout_s)
        try:
            async with limit:
                # A task of its own has a context of its own: what the handler sets in it ends with it.
                await asyncio.create_task(self._consumer.function(event))
        except TimeoutError:
            if limit.expired():
                raise self._too_long(event) from None
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise  # the reader is being ended
            raise RuntimeError("the handler was cancelled by its own code") from None

    async def _on_thread(self, event: Event) -> None:
        striker, context = Striker(), copy_context()
        future = self._threads.submit(lambda: context.run(self._consumer.function, event), striker)
        await asyncio.wait({future}, timeout=self._consumer.timeout_s)
        if not future.done():
            striker.strike(Struck)
            await asyncio.wait({future}, timeout=GRACE_S)
            if not future.done():
                striker.strike(Struck, again=True)  # left behind: whatever swallowed the first one
                future.cancel()
                raise self._too_long(event)
        try:
            future.result()
        except Struck:
            raise self._too_long(event) from None

    def _too_long(self, event: Event) -> DeliveryTimeout:
        return DeliveryTimeout(
            f"the delivery of event {event.id} ({event.topic}) to {self._consumer.group} took longer than "
            f"{self._consumer.timeout_s:g} s",
            "the handler did not return",
            "make it quicker, raise timeout_s, or let it submit a job for the long part",
        )
