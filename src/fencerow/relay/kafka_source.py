"""Reads a Kafka topic by partitions that we assign, at offsets that we keep. Its consumer groups have no say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as KafkaMessage

from fencerow.db.errors.base import FencerowError
from fencerow.relay.broker import Message, Reading
from fencerow.relay.errors import BrokerAway, PositionGone
from fencerow.relay.kafka_client import CALL_S, error_of, judged, settings

T = TypeVar("T")

WAIT_S: Final = 1.0
LAG_S: Final = 5.0  # how often the end of a partition is asked for where nothing comes
OURS: Final = {"enable.auto.commit": False, "enable.auto.offset.store": False, "auto.offset.reset": "error"}
BEYOND: Final = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})


@dataclass
class _Reader:
    """A client that has one partition, and the thread on which it may wait."""

    client: Consumer
    thread: ThreadPoolExecutor
    at: str = ""  # where it will read on
    looked_at: float = 0.0
    errors: list[KafkaError] = field(default_factory=list)

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.thread, function, *args)


class KafkaSource:
    """One client for each partition that this process reads: a partition that waits holds up no other one."""

    def __init__(
        self, servers: str, topic: str, options: Mapping[str, Any], group: str | None, relay: str
    ) -> None:
        self._settings = settings(servers, options, {**OURS, "group.id": group or f"fencerow-relay-{relay}"})
        self._topic = topic
        self._commits = group is not None
        self._relay = relay
        self._readers: dict[int, _Reader] = {}

    async def parts(self) -> int:
        reader = self._reader(-1)
        try:
            known = await reader.call(lambda: reader.client.list_topics(self._topic, timeout=CALL_S))
        except KafkaException as error:
            raise judged(error_of(error), "read") from error
        topic = known.topics[self._topic]
        if topic.error is not None:
            raise judged(topic.error, "read")
        return len(topic.partitions)

    async def begin(self, part: int, *, at_end: bool) -> str:
        low, high = await self._ends(part, self._reader(part))
        return str(high if at_end else low)

    async def read(self, part: int, position: str, limit: int) -> Reading:
        reader = self._reader(part)
        if reader.at != position:
            await reader.call(reader.client.assign, [TopicPartition(self._topic, part, int(position))])
            reader.at = position
        try:
            found = await reader.call(reader.client.consume, limit, WAIT_S)
        except KafkaException as error:
            raise judged(error_of(error), "read") from error
        messages: list[Message] = []
        after = position
        for each in found:
            if (failed := each.error()) is not None:
                reader.at = ""
                if messages:  # first what came before it
                    break
                raise await self._meant(part, position, failed)
            after = str(_offset(each) + 1)
            messages.append(self._message(part, each, after))
        lag = await self._lag(part, int(after), reader, quiet=not found)
        reader.at = after if reader.at else ""
        return Reading(messages, after, lag)

    async def stored(self, part: int, position: str) -> None:
        if not self._commits or part not in self._readers:
            return
        reader = self._readers[part]
        offsets = [TopicPartition(self._topic, part, int(position))]
        try:
            await reader.call(lambda: reader.client.commit(offsets=offsets, asynchronous=True))
        except KafkaException:
            pass  # nothing hangs on it

    async def close(self) -> None:
        readers, self._readers = list(self._readers.values()), {}
        for each in readers:
            try:
                await asyncio.wait_for(each.call(each.client.close), CALL_S)
            except (TimeoutError, KafkaException, RuntimeError):
                pass  # its threads are daemons of the library
            each.thread.shutdown(wait=False)

    def _reader(self, part: int) -> _Reader:
        if part not in self._readers:
            thread = ThreadPoolExecutor(1, thread_name_prefix=f"fencerow-relay-{part}")
            self._readers[part] = _Reader(Consumer(self._settings), thread)
        return self._readers[part]

    async def _lag(self, part: int, position: int, reader: _Reader, *, quiet: bool) -> int | None:
        """How many messages are behind: the client knows it while they come. Where nothing comes the cluster is asked
        now and then, and so it shows whether it is there."""
        if not quiet:
            reader.looked_at = 0.0
            ends = await reader.call(
                lambda: reader.client.get_watermark_offsets(TopicPartition(self._topic, part), cached=True)
            )
            return max(0, ends[1] - position) if ends[1] >= 0 else None
        if time.monotonic() < reader.looked_at + LAG_S:
            return None
        low, high = await self._ends(part, reader)
        reader.looked_at = time.monotonic()
        if not low <= position <= high:
            raise _gone(self._topic, part, position, low, high)
        return high - position

    async def _ends(self, part: int, reader: _Reader) -> tuple[int, int]:
        where = TopicPartition(self._topic, part)
        try:
            ends = await reader.call(lambda: reader.client.get_watermark_offsets(where, timeout=CALL_S))
        except KafkaException as error:
            raise judged(error_of(error), "read") from error
        if not ends:
            raise BrokerAway(
                "the Kafka cluster cannot be read",
                "it does not say where a partition ends",
                "it is tried again",
            )
        return ends

    async def _meant(self, part: int, position: str, error: KafkaError) -> FencerowError:
        if error.code() not in BEYOND:
            return judged(error, "read")
        low, high = await self._ends(part, self._reader(part))
        if low <= int(position) <= high:
            return judged(error, "read")  # it is there again: an outage of a moment
        return _gone(self._topic, part, int(position), low, high)

    def _message(self, part: int, each: KafkaMessage, after: str) -> Message:
        key, value = each.key(), each.value()
        return Message(
            self._relay,
            self._topic,
            part,
            str(_offset(each)),
            b"" if value is None else _bytes(value),
            None if key is None else _bytes(key).decode("utf-8", "replace"),
            _fields_of(each.headers()),  # type: ignore[arg-type]
            after=after,
        )


def _offset(message: KafkaMessage) -> int:
    offset = message.offset()
    assert offset is not None, "what has no error has its offset"
    return offset


def _bytes(given: str | bytes) -> bytes:
    return given.encode() if isinstance(given, str) else given


def _gone(topic: str, part: int, position: int, low: int, high: int) -> PositionGone:
    if position < low:
        return PositionGone(
            f"{low - position} messages of partition {part} of the topic {topic} were removed before they were read",
            f"its first one is {low}, and {position} is the next to read",
            "let it keep them longer, or run more workers; `fencerow relay list` counts them",
            gone=low - position,
            earliest=str(low),
            latest=str(high),
        )
    return PositionGone(
        f"partition {part} of the topic {topic} is not the one that was read",
        f"it ends at {high}, and {position} is the next to read: it was made anew, or has lost what it had",
        "see to the cluster's replication",
        earliest=str(low),
        latest=str(high),
        anew=True,
    )


def _fields_of(headers: Sequence[tuple[str, bytes | None]] | None) -> dict[str, str]:
    """Headers as texts; of several with one name the last one."""
    return {name: (value or b"").decode("utf-8", "replace") for name, value in headers or ()}
