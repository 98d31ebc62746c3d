"""Events that go on to Redis Streams and Kafka, and what comes from there: stored here once, with its position.

The guide: docs/guide/relay.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.relay.broker import Message
    from fencerow.relay.inward import relay_in
    from fencerow.relay.outward import relay_out
    from fencerow.relay.places import KafkaTopic, RedisStream
    from fencerow.relay.verbs import Relays
else:
    __getattr__ = lazily(
        __name__,
        {
            "relay_in": "fencerow.relay.inward",
            "relay_out": "fencerow.relay.outward",
            "KafkaTopic": "fencerow.relay.places",
            "Message": "fencerow.relay.broker",
            "RedisStream": "fencerow.relay.places",
            "Relays": "fencerow.relay.verbs",
        },
    )

__all__ = ["relay_in", "relay_out", "RedisStream", "KafkaTopic", "Message", "Relays"]
