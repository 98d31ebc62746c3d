"""A worker as the main thing of a process: signals, ends, exit codes."""

from __future__ import annotations

import asyncio
import signal

from fencerow.app import App
from fencerow.cli import exits
from fencerow.errors import FencerowError, TooManyHung
from fencerow.store import store
from fencerow.worker.worker import Worker, WorkerDied

SIGNALS = (signal.SIGTERM, signal.SIGINT)
LOOK_S = 0.5


def run_worker(app: App, worker: Worker, *, once: bool = False, drain: bool = False) -> int:
    """Run it to its end and return the exit code.

    Raises:
        FencerowError: it could not start, or a loop of it died; a supervisor should start it again.
    """
    try:
        asyncio.run(_run(app, worker, once, drain))
    except WorkerDied as died:
        if isinstance(died.__cause__, TooManyHung):
            raise died.__cause__ from None
        raise FencerowError(
            str(died),
            "one of its loops ended by an error; the log above has it",
            "start it again, and report it",
        ) from died
    return exits.OK


async def _run(app: App, worker: Worker, once: bool, drain: bool) -> None:
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        # Asked a second time, it stops at once: see Worker.request_stop.
        loop.add_signal_handler(number, worker.request_stop)
    watch = asyncio.create_task(_watch(app, worker)) if drain else None
    try:
        await worker.run(until_idle=once)
    finally:
        if watch:
            watch.cancel()
        for number in SIGNALS:
            loop.remove_signal_handler(number)
        await app.aclose()


async def _watch(app: App, worker: Worker) -> None:
    """Stop the worker when no job that it could run is left, due or not."""
    names = set(app.handlers)
    # The event is in the database, and others may bring it about.
    while any(count.name in names for count in await app.engine.arun(store.counts())):  # noqa: ASYNC110
        await asyncio.sleep(LOOK_S)
    worker.request_stop()
