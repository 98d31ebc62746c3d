"""Events published in the user's transaction, read by groups in order.

The guide: docs/guide/events.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.events.bus import EventBus
    from fencerow.events.declare import consumer
    from fencerow.events.event import Event
    from fencerow.events.holding import HoldPartition
    from fencerow.events.outbox import NewEvent, apublish, apublish_many, publish, publish_many
else:
    __getattr__ = lazily(
        __name__,
        {
            "consumer": "fencerow.events.declare",
            "Event": "fencerow.events.event",
            "EventBus": "fencerow.events.bus",
            "HoldPartition": "fencerow.events.holding",
            "NewEvent": "fencerow.events.outbox",
            "publish": "fencerow.events.outbox",
            "apublish": "fencerow.events.outbox",
            "publish_many": "fencerow.events.outbox",
            "apublish_many": "fencerow.events.outbox",
        },
    )

__all__ = [
    "consumer",
    "Event",
    "EventBus",
    "HoldPartition",
    "NewEvent",
    "publish",
    "apublish",
    "publish_many",
    "apublish_many",
]
