"""A process that reads for both groups until it is killed, or told to stop."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from typing import Any

from fencerow import App, Config
from fencerow.events import Event, consumer
from tests.events.bus.plan import GROUPS, Ground, Plan


def app_of(plan: Plan) -> App:
    """Its two consumers: one writes in the event's transaction, one beyond it."""
    config = Config(
        lease_s=plan.lease_s, renew_s=plan.lease_s / 6, poll_max_s=0.5, busy_timeout_s=60.0, pool_max=20
    )
    app, ground = App(plan.url, config=config), Ground(plan)
    sink = os.open(ground.sink(os.getpid()), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    exactly, least = GROUPS

    @consumer(app, group=exactly, topics=["bus.*"], start="beginning")
    async def book(event: Event) -> None:
        async with event.transaction() as connection:
            await written(connection, ground, event)

    @consumer(app, group=least, topics=["bus.moved"], start="beginning", partitions=4)
    async def send(event: Event) -> None:
        line = [event.id, event.key, *event.data, time.time()]
        os.write(sink, (json.dumps(line) + "\n").encode())

    return app


async def written(connection: Any, ground: Ground, event: Event) -> None:
    """The effect: a row without any key, so that a second one would be seen."""
    columns = "(event_id, name, version, number, aborted, at)"
    marks = ", ".join([ground.mark] * 6)
    _, version, number, aborted = event.data
    found = connection.execute(
        f"INSERT INTO {ground.table('effects')} {columns} VALUES ({marks})",
        (event.id, event.key, version, number, aborted, time.time()),
    )
    if asyncio.iscoroutine(found):
        await found


async def main(plan: Plan) -> None:
    worker = app_of(plan).worker()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.request_stop)
    await worker.run()


if __name__ == "__main__":
    asyncio.run(main(Plan.of(sys.argv[1])))
