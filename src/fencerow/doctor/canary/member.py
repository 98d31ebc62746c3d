"""A worker process of a canary: `python -m fencerow.doctor.canary.member`, with its orders as one line on stdin.

It serves the queue of canaries alone, in one slot. It says `ready` once it is registered, and `runs` when the job runs
in it. One that `hangs` never ends the job: it is there to be killed. The end of stdin, also by the death of its parent,
makes it leave in order, so nobody is left behind.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

import msgspec

from fencerow.core.app import JobsApp
from fencerow.core.composed import config_type
from fencerow.db.service import soon

NAME = "fencerow.canary"
QUEUE = "fencerow.canary"


class Orders(msgspec.Struct, frozen=True):
    """What a process is told. `config`: the fields of the configuration."""

    config: dict[str, Any]
    hangs: bool


def made(orders: Orders) -> JobsApp:
    """The app of the process, with its one job."""
    app = JobsApp(config=config_type()(**orders.config))

    async def canary() -> None:
        _say("runs")
        if orders.hangs:
            await asyncio.Event().wait()

    app.job(name=NAME, queue=QUEUE)(canary)
    return app


async def serve(orders: Orders) -> None:
    """Work until stdin ends."""
    app = made(orders)
    role = "hangs" if orders.hangs else "takes over"
    worker = app.worker(queues=[QUEUE], slots=1, name=f"canary that {role}")
    over = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait_for_end() -> None:
        sys.stdin.buffer.read()
        soon(loop, over.set)

    threading.Thread(target=wait_for_end, daemon=True).start()
    try:
        async with worker:
            _say("ready")
            await over.wait()
            await worker.stop(now=True)
    finally:
        await app.aclose()


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(serve(msgspec.json.decode(sys.stdin.buffer.readline(), type=Orders)))
