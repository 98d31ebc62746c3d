"""What both directions of Kafka have in common: how clients are made, and what an error of librdkafka means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from fencerow.db.errors.base import FencerowError
from fencerow.relay.errors import BrokerAway, BrokerRefused

CALL_S: Final = 10.0
REFUSED: Final = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_MSG_SIZE,
    }
)


def settings(servers: str, options: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a client: ours stand before those of the application where a promise rests on them."""
    return {
        "client.id": "fencerow",
        "log_level": 3,  # what is lost and found again is told by the relay
        **options,
        "bootstrap.servers": servers,
        **ours,
    }


def error_of(raised: KafkaException | KafkaError) -> KafkaError:
    return raised.args[0] if isinstance(raised, KafkaException) else raised


def judged(error: KafkaError, doing: str) -> FencerowError:
    """Whether the broker refuses one message, or cannot be used at all just now."""
    said = f"{error.name()}: {error.str()}"[:300]
    if error.code() in REFUSED:
        return BrokerRefused("the Kafka broker refuses the message", said, "the event is parked")
    return BrokerAway(f"the Kafka cluster cannot be {doing}", said, "it is tried again; see to the cluster")
