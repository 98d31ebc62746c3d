"""Brokers for the tests: a real Redis server with a file of its own, and the mock cluster that librdkafka has in it."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis
from confluent_kafka import Consumer, Producer, TopicPartition

from fencerow import App, Config
from fencerow.db.run import Operation
from tests.kit.pace import PATIENCE_S

QUICK = {"lease_s": 3.0, "renew_s": 0.5, "poll_max_s": 0.2, "poll_min_s": 0.01}


class RedisServer:
    """`redis-server` on a socket of its own. What it has answered lies in its file, and is there after a kill."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self._folder}/redis.sock"

    def start(self) -> None:
        files = ("--port", "0", "--unixsocket", f"{self._folder}/redis.sock", "--dir", str(self._folder))
        kept = ("--save", "", "--appendonly", "yes", "--appendfsync", "always")
        command = ["redis-server", *files, *kept, "--logfile", f"{self._folder}/log"]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        with self.client() as client:
            while True:
                try:
                    client.ping()
                    return
                except (redis.ConnectionError, redis.BusyLoadingError):
                    assert self._process.poll() is None, (self._folder / "log").read_text()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url)


@contextmanager
def redis_server(folder: Path) -> Iterator[RedisServer]:
    server = RedisServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()


class Cluster:
    """The mock cluster of librdkafka: it speaks Kafka's protocol over sockets and keeps what it has in memory."""

    def __init__(self) -> None:
        self._mock = Producer({"test.mock.num.brokers": 1, "log_level": 0})
        brokers = self._mock.list_topics(timeout=PATIENCE_S).brokers.values()
        self.servers = ",".join(f"{each.host}:{each.port}" for each in brokers)

    def send(self, topic: str, *values: bytes, part: int = 0, **more: Any) -> None:
        producer = Producer({"bootstrap.servers": self.servers, "log_level": 0})
        for value in values:
            producer.produce(topic, value, partition=part, **more)
        assert producer.flush(PATIENCE_S) == 0

    def received(self, topic: str) -> list[Any]:
        """All messages of a topic, partition after partition."""
        client = Consumer({"bootstrap.servers": self.servers, "group.id": "tests", "log_level": 0})
        parts = client.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
        ends = {part: client.get_watermark_offsets(TopicPartition(topic, part))[1] for part in parts}
        client.assign([TopicPartition(topic, part, 0) for part in parts])
        found: list[Any] = []
        while len(found) < sum(ends.values()):
            found += client.consume(100, 1.0)
        client.close()
        return sorted(found, key=lambda each: (each.partition(), each.offset()))


def app_at(url: str) -> App:
    return App(url, config=Config(**QUICK))  # type: ignore[arg-type]


def books_of(app: App) -> tuple[Any, list[int]]:
    """A job, and the numbers for which it ran, in the order of their submits where a worker has one slot."""
    booked: list[int] = []

    @app.job(queue="books")
    async def book(number: int) -> None:
        booked.append(number)

    return book, booked


async def until(found: Callable[[], Any]) -> Any:
    """What a look finds, once it finds something."""
    async with asyncio.timeout(PATIENCE_S):
        while not (seen := found()):
            await asyncio.sleep(0.02)
    return seen


async def auntil(app: App, asked: Callable[[], Operation[Any]], wanted: Callable[[Any], bool]) -> Any:
    """The answer of an operation, once it is as wanted."""
    async with asyncio.timeout(PATIENCE_S):
        while not wanted(seen := await app.engine.arun(asked())):
            await asyncio.sleep(0.02)
    return seen


def texts(fields: dict[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in fields.items()}


def entries(server: RedisServer, stream: str) -> Sequence[dict[str, str]]:
    with server.client() as client:
        return [texts(fields) for _, fields in client.xrange(stream)]
