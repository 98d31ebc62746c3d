"""Relays both ways while workers and brokers are killed: `python -m tests.relay.campaign --evidence FILE`.

Events are published at a steady pace, sent to a broker by three workers, and taken back from there by the same ones.
Workers are killed, or stopped for longer than their lease (not on SQLite, where one that is stopped in a transaction
holds the file); a Redis server is killed and started again on its file, the mock cluster of Kafka is stopped for some
seconds. At the end nothing is missing, each key is in its order, doubles on the
broker have the id of what they double, and every message on the broker was taken once.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from fencerow import App
from fencerow.core.model.ids import new_id
from fencerow.events import NewEvent, asides, consumers, publish_many
from fencerow.events.consumers import PartitionLease
from fencerow.events.sequencer import sequence
from tests.proof.storm.evidence import surroundings
from tests.relay.member import EVERY, TOPIC, campaign_app
from tests.relay.stage import Cluster, RedisServer, redis_server

KEYS, WORKERS = 10, 3
PROGRESS, PROGRESS_S = 3, 20.0  # so many messages between two faults, or so long a wait for them
LAST_S = 400.0  # at the end: for so long nothing more came
LEASE_S = 3.0


@dataclass(frozen=True)
class Entry:
    """A message as the broker has it."""

    position: str
    id: str
    key: str
    number: int


@dataclass
class Faults:
    """How often each struck."""

    struck: Counter[str] = field(default_factory=Counter)


class Fleet:
    """The workers: killed ones are replaced."""

    def __init__(self, url: str, broker: str) -> None:
        self.other_fault = "worker killed" if url.startswith("sqlite") else "worker stopped for two leases"
        self._command = [sys.executable, "-m", "tests.relay.member", url, broker]
        self._members = [self._start() for _ in range(WORKERS)]
        self._stopped: dict[int, float] = {}

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, stdin=subprocess.DEVNULL)

    def kill(self, at: int) -> None:
        self._members[at].kill()
        self._members[at].wait()
        self._stopped.pop(at, None)
        self._members[at] = self._start()

    def stop(self, at: int) -> None:
        self._members[at].send_signal(signal.SIGSTOP)
        self._stopped[at] = time.monotonic() + 2 * LEASE_S

    def go_on(self, *, all_of_them: bool = False) -> None:
        for at, until in list(self._stopped.items()):
            if all_of_them or time.monotonic() > until:
                self._members[at].send_signal(signal.SIGCONT)
                del self._stopped[at]

    def end(self) -> None:
        self.go_on(all_of_them=True)
        for each in self._members:
            each.kill()
            each.wait()


class RedisBroker:
    """Killed, and started again on its file a little later."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self.name = server.url
        self.fault = "redis-server killed and started again"

    def strike(self) -> None:
        self._server.kill()
        time.sleep(random.uniform(0.1, 1.0))
        self._server.start()

    def entries(self) -> list[Entry]:
        with self._server.client() as client:
            found: Any = client.xrange(TOPIC)
        return [
            Entry(
                f"0/{entry.decode()}",
                fields[b"fencerow-id"].decode(),
                fields[b"fencerow-key"].decode(),
                int(fields[b"data"]),
            )
            for entry, fields in found
        ]


class KafkaBroker:
    """Stopped as a whole for some seconds: the mock cluster has no disk from which it could come back."""

    def __init__(self, process: subprocess.Popen[str], servers: str) -> None:
        self._process = process
        self._servers = servers
        self.name = f"kafka:{servers}"
        self.fault = "mock cluster stopped for some seconds"

    def strike(self) -> None:
        self._process.send_signal(signal.SIGSTOP)
        time.sleep(random.uniform(0.5, 4.0))
        self._process.send_signal(signal.SIGCONT)

    def entries(self) -> list[Entry]:
        cluster = Cluster.__new__(Cluster)
        cluster.servers = self._servers
        return [
            Entry(
                f"{each.partition()}/{each.offset()}",
                dict(each.headers())["fencerow-id"].decode(),
                each.key().decode(),
                int(each.value()),
            )
            for each in cluster.received(TOPIC)
        ]


@contextmanager
def kafka() -> Iterator[KafkaBroker]:
    command = [sys.executable, "-m", "tests.relay.cluster"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield KafkaBroker(process, process.stdout.readline().strip())
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


Broker = RedisBroker | KafkaBroker


def played(url: str, broker: Broker, events: int, count: int, seed: int) -> dict[str, Any]:
    """One campaign on one engine and one broker, with what was found."""
    chance, faults, began = random.Random(seed), Faults(), time.monotonic()
    app = campaign_app(url, broker.name)
    app.check_or_create()
    fleet = Fleet(url, broker.name)
    published: dict[str, int] = {}
    try:
        for n in range(count):
            numbers = range(n * events // count, (n + 1) * events // count)
            ids = publish_many(app, [NewEvent("t", n, f"k{n % KEYS}") for n in numbers])
            published |= dict(zip(map(str, ids), numbers, strict=True))
            progressed(fleet, broker)
            strike(chance, fleet, broker, faults)
        fleet.go_on(all_of_them=True)
        entries, told = settled(app, broker, len(published))
        given_up = [f"parked: {each.error}"[:300] for each in app.engine.run(asides.parked(None))]
    finally:
        fleet.end()
        app.close()
    return {
        "engine": url.partition(":")[0],
        "broker": broker.name.partition(":")[0],
        "seed": seed,
        "events": len(published),
        "faults": dict(sorted(faults.struck.items())),
        "messages_on_the_broker": len(entries),
        "doubles_by_id": len(entries) - len({each.id for each in entries}),
        "taken": len(told["took"]),
        "jobs_run": len(told["ran"]),
        "wrong": [*wrong(published, entries, told), *given_up],
        "seconds": round(time.monotonic() - began),
    }


def progressed(fleet: Fleet, broker: Broker) -> None:
    """A fault strikes who is at work: wait until some messages went out since the one before."""
    deadline, before = time.monotonic() + PROGRESS_S, len(broker.entries())
    while len(broker.entries()) < before + PROGRESS and time.monotonic() < deadline:
        fleet.go_on()
        time.sleep(0.05)


def strike(chance: random.Random, fleet: Fleet, broker: Broker, faults: Faults) -> None:
    kind = chance.choice(["worker killed", "worker killed", fleet.other_fault, broker.fault])
    if kind == "worker killed":
        fleet.kill(chance.randrange(WORKERS))
    elif kind == broker.fault:
        broker.strike()
    else:
        fleet.stop(chance.randrange(WORKERS))
    faults.struck[kind] += 1


Told = dict[str, list[dict[str, Any]]]


def settled(app: App, broker: Broker, count: int) -> tuple[list[Entry], Told]:
    """What the broker and the log have, once nothing is missing, or nothing has come for long."""
    deadline, before = time.monotonic() + LAST_S, 0
    while True:
        entries, told = broker.entries(), told_by(app)
        if (came := len(entries) + len(told["took"]) + len(told["ran"])) > before:
            deadline, before = time.monotonic() + LAST_S, came
        whole = len({each.id for each in entries}) >= count and len(told["took"]) >= len(entries)
        jobs = sum(each.number % EVERY == 0 for each in entries)
        if (whole and len(told["ran"]) >= jobs) or time.monotonic() > deadline:
            return entries, told
        time.sleep(1.0)


def told_by(app: App) -> Told:
    """The events `took` and `ran`, in the order of the log."""
    lease, after, found = PartitionLease("none", 0, new_id(), 0, 0), 0, Told(took=[], ran=[])
    app.engine.run(sequence(None))
    while True:
        page = app.engine.run(consumers.read_events(lease, ["took", "ran"], after=after, partitions=1))
        for each in page.events:
            found[each.topic].append(msgspec.json.decode(each.data))
        after = page.seen
        if page.is_last:
            return found


def wrong(published: dict[str, int], entries: Sequence[Entry], told: Told) -> list[str]:
    """What does not hold; nothing when all does."""
    found = []
    if missing := published.keys() - {each.id for each in entries}:
        found.append(f"{len(missing)} events are not on the broker")
    if strange := [each for each in entries if published.get(each.id) != each.number]:
        found.append(f"{len(strange)} messages have an id that is not theirs")
    for key in sorted({each.key for each in entries}):
        firsts = list(dict.fromkeys(each.number for each in entries if each.key == key))
        if firsts != sorted(firsts):
            found.append(f"events of {key} came out of order")
    positions = [each.position for each in entries]
    took = [each["position"] for each in told["took"]]
    if sorted(took) != sorted(positions):
        found.append(
            f"{len(positions)} messages were taken as {len(took)}, {len(set(took))} of them different"
        )
    for part in {each.partition("/")[0] for each in positions}:
        mine = [each for each in took if each.partition("/")[0] == part]
        if mine != [each for each in positions if each.partition("/")[0] == part]:
            found.append(f"part {part} was taken out of order")
    ran = Counter(each["position"] for each in told["ran"])
    if ran != Counter(each.position for each in entries if each.number % EVERY == 0):
        found.append(f"jobs ran for {len(ran)} messages, {sum(ran.values())} times")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evidence", type=Path, required=True)
    parser.add_argument("--events", type=int, default=3000)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append")
    parser.add_argument("--broker", choices=["redis", "kafka"], action="append")
    given = parser.parse_args()
    rounds = []
    for kind in given.broker or ["redis", "kafka"]:
        for engine in given.engine or ["sqlite", "postgres"]:
            with ExitStack() as stack:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fencerow-relay-")))
                broker: Broker = (
                    RedisBroker(stack.enter_context(redis_server(folder)))
                    if kind == "redis"
                    else stack.enter_context(kafka())
                )
                rounds.append(
                    played(database(engine, folder, stack), broker, given.events, given.faults, given.seed)
                )
                sys.stdout.write(json.dumps(rounds[-1]) + "\n")
                sys.stdout.flush()
    told = {**surroundings(given.engine or ["sqlite", "postgres"]), "rounds": rounds}
    given.evidence.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    return 1 if any(each["wrong"] for each in rounds) else 0


def database(engine: str, folder: Path, stack: ExitStack) -> str:
    if engine == "sqlite":
        return f"sqlite:///{folder}/jobs.db"
    from fencerow.core.store import store
    from fencerow.db.postgres import PostgresEngine
    from fencerow.testing.postgres import PostgresServer

    server = stack.enter_context(PostgresServer(fast=True))
    url = server.create_role_and_schema()
    migrated = PostgresEngine(url, store.postgres_queries())
    store.migrate(migrated)
    migrated.close()
    return url


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
