"""A worker of the campaign, in a process of its own: it sends events to a broker and takes them back from there.

`python -m tests.relay.member DATABASE BROKER`; a broker is `kafka:HOST:PORT`, or the URL of a Redis server.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from fencerow import App, Job
from fencerow.events import NewEvent, publish
from fencerow.relay import KafkaTopic, Message, RedisStream, relay_in, relay_out
from fencerow.relay.broker import Place
from tests.relay.stage import app_at

TOPIC = "out"
EVERY = 5  # so many events bring one job


def place_of(broker: str) -> Place:
    kind, _, rest = broker.partition(":")
    return KafkaTopic(rest, TOPIC) if kind == "kafka" else RedisStream(broker, TOPIC)


def campaign_app(url: str, broker: str) -> App:
    """Out and in again: each message is an event `took` of its key, and now and then a job, whose effect is `ran`."""
    app = app_at(url)
    place = place_of(broker)
    relay_out(app, "out", topics=["t"], to=place, start="beginning", partitions=4)

    @app.job(queue="q")
    def note(job: Job, number: int, position: str) -> None:
        with job.transaction() as connection:
            publish(app, "ran", {"number": number, "position": position}, connection=connection)

    @relay_in(app, "in", of=place, start="beginning")
    def take(message: Message) -> Any:
        position, number = f"{message.part}/{message.position}", message.json()
        took = NewEvent("took", {"number": number, "position": position}, message.key)
        return [took, note.call(number=number, position=position)] if number % EVERY == 0 else took

    return app


if __name__ == "__main__":
    asyncio.run(campaign_app(sys.argv[1], sys.argv[2]).worker().run())
