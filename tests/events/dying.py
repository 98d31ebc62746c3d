"""A consumer whose process ends at a certain event, as by a fault in native code."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from fencerow import App, Config
from fencerow.events import Event, consumer


def consume(url: str, told: Path) -> None:
    """In a process of its own: write down each event that was handled."""
    app = App(url, config=Config(lease_s=1.0, renew_s=0.2, poll_max_s=0.1))

    @consumer(app, group="g", topics=["t"], start="beginning", partitions=1)
    async def handle(event: Event) -> None:
        if event.data == "deadly":
            os._exit(9)
        with told.open("a") as file:
            file.write(f"{event.data}\n")

    asyncio.run(app.worker().run())
