"""How fast a relay sends events: `python bench/relay_out.py redis|kafka [EVENTS]`, in the tree that is imported.

A worker of an app on SQLite sends them, published before, to a Redis server or to the mock cluster of Kafka. To compare
two trees, play it with the PYTHONPATH of each, in turns.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from fencerow.events import NewEvent, apublish_many
from fencerow.events.lag import lags
from fencerow.relay import KafkaTopic, RedisStream, relay_out
from fencerow.relay.broker import Place
from tests.relay.stage import Cluster, app_at, auntil, redis_server

KEYS = 100


async def measured(url: str, place: Place, count: int) -> float:
    """Events in a second, from the start of the worker until the group has come to the end of the log."""
    app = app_at(url)
    relay_out(app, "out", topics=["t"], to=place, start="beginning")
    await asyncio.to_thread(app.check_or_create)
    await apublish_many(app, [NewEvent("t", {"n": n}, f"k{n % KEYS}") for n in range(count)])
    began = time.perf_counter()
    async with app.worker(slots=1):
        await auntil(app, lags, lambda found: found and not found[0].events)
        took_s = time.perf_counter() - began
    await app.aclose()
    return count / took_s


def main() -> None:
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fencerow-relay-")))
        place: Place
        if sys.argv[1] == "redis":
            place = RedisStream(stack.enter_context(redis_server(folder)).url, "out")
        else:
            cluster = Cluster()  # it lives as long as this name
            place = KafkaTopic(cluster.servers, "out")
        print(
            f"{asyncio.run(measured(f'sqlite:///{folder}/jobs.db', place, count)):.0f} events/s", flush=True
        )


if __name__ == "__main__":
    main()
