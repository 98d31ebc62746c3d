"""Sends to a Kafka topic: idempotent, acknowledged by all replicas, each message until its delivery report."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as KafkaMessage

from fencerow.relay.broker import Outgoing
from fencerow.relay.errors import BrokerAway, BrokerRefused
from fencerow.relay.kafka_client import error_of, judged, settings

log = logging.getLogger("fencerow.relay")

POLL_S: Final = 0.5
OURS: Final = {"enable.idempotence": True, "acks": "all"}
# A message that is not taken within this time comes again with the event: so nothing waits longer for a stop.
USUAL: Final = {"message.timeout.ms": 20_000, "linger.ms": 0, "partitioner": "murmur2_random"}


class KafkaSender:
    """One producer, and a thread that hears its delivery reports."""

    takes_as_a_whole = False  # a message may run out of time while one behind it is taken

    def __init__(self, servers: str, topic: str, options: Mapping[str, Any]) -> None:
        self._settings = settings(servers, {**USUAL, **options}, OURS)
        self._topic = topic
        self._producer: Producer | None = None
        self._ended = threading.Event()

    async def send(self, messages: Sequence[Outgoing]) -> Sequence[Exception | None]:
        """Produce all of them, and wait for the report of each. Reports of one message tell what the broker makes of it
        alone; a batch of several may be too large where none of them is."""
        reports = [self._produced(each) for each in messages]
        told = [each if isinstance(each, Exception) else self._meant_of(await each) for each in reports]
        if len(messages) == 1:
            return told
        return [KafkaException(str(each)) if isinstance(each, BrokerRefused) else each for each in told]

    def _produced(self, message: Outgoing) -> asyncio.Future[KafkaError | None] | Exception:
        """The report to come; or why there will be none."""
        loop = asyncio.get_running_loop()
        reported: asyncio.Future[KafkaError | None] = loop.create_future()

        def tell(error: KafkaError | None) -> None:
            if not reported.done():
                reported.set_result(error)

        def report(error: KafkaError | None, _message: KafkaMessage) -> None:
            try:
                loop.call_soon_threadsafe(tell, error)
            except RuntimeError:  # the loop is closed: nobody waits any more
                pass

        try:
            self._started().produce(
                self._topic,
                message.data,
                None if message.key is None else message.key.encode(),
                headers=[(name, value.encode()) for name, value in message.headers.items()],
                on_delivery=report,
            )
        except BufferError as error:
            return BrokerAway(
                "the Kafka cluster takes too slowly what is sent", str(error), "it is tried again"
            )
        except KafkaException as error:
            return self._meant(error_of(error))
        return reported

    def _meant_of(self, error: KafkaError | None) -> Exception | None:
        return None if error is None else self._meant(error)

    async def close(self) -> None:
        self._ended.set()
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()
            await asyncio.to_thread(producer.flush, POLL_S)

    def _started(self) -> Producer:
        if self._producer is None:
            self._producer = Producer(self._settings)
            threading.Thread(
                target=_hear, args=(self._producer, self._ended), name="fencerow-relay-kafka", daemon=True
            ).start()
        return self._producer

    def _meant(self, error: KafkaError) -> Exception:
        if error.fatal() or error.code() == KafkaError._FATAL:
            # The broker no longer knows where this producer was. A new one begins anew; its event comes again.
            self._ended.set()
            self._producer, self._ended = None, threading.Event()
        return judged(error, "written to")


def _hear(producer: Producer, ended: threading.Event) -> None:
    """Serve delivery reports until its sender is closed."""
    while not ended.is_set():
        producer.poll(POLL_S)
    producer.poll(0)
