"""A consumer whose process ends at a certain event, as by a fault in native code."""

from __future__ import annotations

import asyncio
import os
import sys

from fencerow import App, Config
from fencerow.events import Event, consumer


def app_of(url: str) -> App:
    app = App(url, config=Config(lease_s=1.0, renew_s=0.2, poll_max_s=0.1))

    @consumer(app, group="g", topics=["t"], start="beginning", partitions=1)
    async def handle(event: Event) -> None:
        if event.data == "deadly":
            os._exit(9)
        sys.stdout.write(f"{event.data}\n")
        sys.stdout.flush()

    return app


if __name__ == "__main__":
    asyncio.run(app_of(sys.argv[1]).worker().run())
