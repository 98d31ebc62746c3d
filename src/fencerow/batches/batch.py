"""One call of a batch handler: its items, and the attempt that stands for the call itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencerow.batches.item import BatchItem, Said
from fencerow.core.worker.attempt import Attempt, Interrupt

Item = BatchItem[Any, Any]
IDS_MAX = 10  # in a line of the log
WHOLE = (Interrupt.TIMEOUT, Interrupt.SHUTDOWN, Interrupt.LOST)  # what means every item of a call


class BatchCall:
    """One call: the items whose outcome is open, and the attempt that stands for the call itself."""

    def __init__(self, call: Attempt) -> None:
        self.call = call
        self.items: list[Item] = []
        self.open: dict[Item, Attempt] = {}

    def add(self, item: Item, attempt: Attempt) -> None:
        self.items.append(item)
        self.open[item] = attempt

    def take(self, item: Item) -> Said | None:
        """The item's outcome is decided now; returns what was said of it."""
        self.open.pop(item).finish()
        return item.close()

    def asked(self, why: Interrupt) -> None:
        """An item should meet an exception: the call does, once, if it means all that is open."""
        if why is self.call.interrupt:
            return
        if why in WHOLE or all(attempt.asked_to_end for attempt in self.open.values()):
            self.call.end(why)

    def log_fields(self) -> Mapping[str, object]:
        """What a line of the handler is about: the one job, or how many, and the first of them."""
        claimed, items = self.call.claimed, self.items
        fields: dict[str, object] = {"job": claimed.name, "queue": claimed.queue}
        if len(items) == 1:
            return {**fields, "job_id": items[0].id, "attempt": items[0].attempt}
        return {**fields, "jobs": len(items), "job_ids": [each.id for each in items[:IDS_MAX]]}

    def over(self) -> None:
        """The handler is over: what it was asked holds for every item, and nothing may interrupt what follows."""
        self.call.finish()
        for attempt in self.open.values():
            attempt.finish()
        self.tell_all()

    def tell_all(self) -> None:
        """What the call was asked reaches the items that were not asked themselves."""
        why = self.call.interrupt
        if why is not None and why in WHOLE:
            for attempt in self.open.values():
                attempt.end(why)
