"""A consumer that takes an event and dies holding it: told the database, it hangs in its handler."""

from __future__ import annotations

import asyncio
import sys

from fencerow import App, Config
from fencerow.events import Event, consumer


async def main(url: str) -> None:
    app = App(url, config=Config(lease_s=1.5, renew_s=0.3, poll_max_s=0.1))

    @consumer(app, group="senders", topics=["message.*"], start="beginning", partitions=2)
    async def hold(event: Event) -> None:
        sys.stdout.write(f"{event.id}\n")
        sys.stdout.flush()
        await asyncio.sleep(3600)

    await app.worker().run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
