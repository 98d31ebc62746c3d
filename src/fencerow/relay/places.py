"""`RedisStream` and `KafkaTopic`: where a relay sends to, or reads from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from urllib.parse import urlsplit

from fencerow.core.errors import DeclarationError, MissingExtra
from fencerow.db.text import check_text
from fencerow.relay.broker import Sender, Source

NAME_LENGTH_MAX = 249  # of a topic, as Kafka has it
SCHEMES = ("redis", "rediss", "unix")
OURS = ("enable.idempotence", "acks", "enable.auto.commit", "enable.auto.offset.store", "auto.offset.reset")


@dataclass(frozen=True, slots=True)
class RedisStream:
    """A stream of a Redis server, 7.0 or later: `RedisStream("redis://host:6379/0", "orders")`.

    `maxlen`: what is sent keeps the stream at about so many entries. `group`: a consumer group of Redis that is told
    how far this relay has come, for those who look there; it is never read by. Both say nothing to the other direction.
    """

    url: str = field(repr=False)
    stream: str
    maxlen: int | None = None
    group: str | None = None

    @property
    def told(self) -> str:
        """The server and the stream, without user, password and options."""
        parts = urlsplit(self.url)
        where = parts.path if parts.scheme == "unix" else f"{_host(parts.netloc)}{parts.path}"
        return f"redis {where} stream {self.stream}"

    def check(self) -> None:
        """Accept the place.

        Raises:
            DeclarationError: the URL is none of a Redis server, the stream's name cannot be one, or `maxlen` is no
                number.
            MissingExtra: redis is not installed.
        """
        parts = urlsplit(self.url)
        if parts.scheme not in SCHEMES or not (parts.netloc or parts.path):
            raise DeclarationError(
                "the URL of a Redis server cannot be used",
                f"one of {', '.join(SCHEMES)} is expected, and a host",
                "write redis://host:6379/0",
            )
        check_text(self.stream, "the name of a stream", NAME_LENGTH_MAX)
        if self.maxlen is not None and (type(self.maxlen) is not int or self.maxlen < 1):
            raise DeclarationError("maxlen is no positive integer", "a number of entries is expected", "")
        _check_extra("redis", "redis")

    def sender(self) -> Sender:
        """What sends here. Nothing is connected yet."""
        from fencerow.relay.redis_stream import RedisSender

        return RedisSender(self.url, self.stream, self.maxlen)

    def source(self, relay: str) -> Source:
        """What reads from here for the relay of that name. Nothing is connected yet."""
        from fencerow.relay.redis_stream import RedisSource

        return RedisSource(self.url, self.stream, self.group, relay)


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """A topic of a Kafka cluster: `KafkaTopic("host1:9092,host2:9092", "orders")`.

    `options`: further ones of librdkafka, such as `security.protocol` and `sasl.password`; what this relay promises
    rests on some, which cannot be given. `group`: a consumer group that is told how far this relay has come, for those
    who look there; partitions are never assigned by it.
    """

    servers: str
    topic: str
    options: Mapping[str, str | int | float | bool] = field(default_factory=dict, repr=False)
    group: str | None = None

    @property
    def told(self) -> str:
        """The servers and the topic."""
        return f"kafka {self.servers} topic {self.topic}"

    def check(self) -> None:
        """Accept the place.

        Raises:
            DeclarationError: the servers are no list of host:port, the topic's name cannot be one, or an option is
                given that a relay's promises rest on.
            MissingExtra: confluent-kafka is not installed.
        """
        check_text(self.servers, "the servers of a Kafka cluster", 2000)
        check_text(self.topic, "the name of a topic", NAME_LENGTH_MAX)
        if "@" in self.servers or "/" in self.servers:
            raise DeclarationError(
                "the servers of a Kafka cluster are given as a URL",
                "host:port is expected, several with commas between them",
                "give user and password by options={'sasl.username': ..., 'sasl.password': ...}",
            )
        if taken := [each for each in OURS if each in self.options]:
            raise DeclarationError(
                f"the option {taken[0]!r} was given", "what a relay promises rests on it", "leave it out"
            )
        _check_extra("confluent_kafka", "kafka")

    def sender(self) -> Sender:
        """What sends here. Nothing is connected yet."""
        from fencerow.relay.kafka_sender import KafkaSender

        return KafkaSender(self.servers, self.topic, self.options)

    def source(self, relay: str) -> Source:
        """What reads from here for the relay of that name. Nothing is connected yet."""
        from fencerow.relay.kafka_source import KafkaSource

        return KafkaSource(self.servers, self.topic, self.options, self.group, relay)


def _host(netloc: str) -> str:
    return netloc.rpartition("@")[2]


def _check_extra(module: str, extra: str) -> None:
    if find_spec(module) is None:
        raise MissingExtra(
            "a relay cannot be used", f"{module} is not installed", f"pip install 'fencerow[{extra}]'"
        )
