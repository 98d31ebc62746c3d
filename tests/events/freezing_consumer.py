"""A consumer that writes in `event.transaction()`. Its process is stopped (SIGSTOP) in the middle of it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from fencerow import App, Backoff
from fencerow.events import Event, consumer
from tests.events.conftest import app_at

TABLE = "CREATE TABLE fencerow.letters (number integer PRIMARY KEY)"


def reading(app: App, *, stops: bool) -> App:
    """The consumer, as both processes declare it."""

    @consumer(
        app,
        group="g",
        topics=["t"],
        start="beginning",
        partitions=1,
        timeout_s=2.0,
        deliveries_max=1000,
        backoff=Backoff(base_s=0.1, cap_s=0.1, jitter=0.0),
    )
    async def write(event: Event) -> None:
        async with event.transaction() as connection:
            await connection.execute("INSERT INTO fencerow.letters (number) VALUES (%s)", (event.data,))
            if stops:
                os.kill(os.getpid(), signal.SIGSTOP)

    return app


if __name__ == "__main__":
    asyncio.run(reading(app_at(sys.argv[1]), stops=True).worker().run())
