"""A worker as the main thing of a process: signals, ends, exit codes."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping

from fencerow.cli import banner, logs
from fencerow.cli.signals import Signals
from fencerow.core.app import JobsApp
from fencerow.core.background.loop import WorkerDied
from fencerow.core.errors import FencerowError, TooManyHung
from fencerow.core.worker.plain import Worker
from fencerow.db.errors import exits
from fencerow.db.main_loop import run_main
from fencerow.db.trouble import is_trouble
from fencerow.operators import looking

SIGNALS = (signal.SIGTERM, signal.SIGINT)
LOOK_S = 0.5


def run_worker(
    app: JobsApp,
    worker: Worker,
    *,
    once: bool = False,
    drain: bool = False,
    signalled: Callable[[str], None] | None = None,
    more: Mapping[str, str] | None = None,
) -> int:
    """Run it to its end and return the exit code. A signal calls `signalled`, or else asks the worker to leave.
    `more` is said at the start, by its names.

    Raises:
        FencerowError: it could not start, or a loop of it died; a supervisor should start it again.
    """
    logs.flow()
    banner.show(app, worker, more=more)
    try:
        run_main(_run(app, worker, once, drain, signalled or worker.signalled))
    except WorkerDied as died:
        if isinstance(died.__cause__, TooManyHung):
            raise died.__cause__ from None
        raise FencerowError(
            str(died),
            "one of its loops ended with an error; the log above shows it",
            "start it again, and report it",
        ) from died
    return exits.OK


async def _run(
    app: JobsApp, worker: Worker, once: bool, drain: bool, signalled: Callable[[str], None]
) -> None:
    watch = asyncio.create_task(_watch(app, worker)) if drain else None
    try:
        # Asked a second time, it stops at once.
        with Signals(SIGNALS, signalled):
            await worker.run(until_idle=once)
    finally:
        if watch:
            watch.cancel()
        await app.aclose()


async def _watch(app: JobsApp, worker: Worker) -> None:
    """Stop the worker when no job that it could run is left, due or not, and it has told of all its ends."""
    names = set(app.handlers)

    async def is_any_there() -> bool:
        counts = await app.engine.arun(looking.counts())
        return worker.running > 0 or any(count.name in names for count in counts)

    async def is_any_left() -> bool:
        try:
            # Again: what was soon to be queued at the first look may be queued by the second.
            return await is_any_there() or await worker.queues_soon() or await is_any_there()
        except Exception as error:
            if not is_trouble(error):
                raise
            return True  # there may be, as far as the database tells

    # The event is in the database, and others may bring it about.
    while await is_any_left():  # noqa: ASYNC110
        await asyncio.sleep(LOOK_S)
    worker.request_stop()
