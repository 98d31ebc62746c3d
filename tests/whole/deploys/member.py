"""A worker or a client of some release: `worker`, `client COUNT` or `migrate`, and the database's URL.

Only what every release understands is used here. BRINGS names what makes the code of today a next release.
"""

from __future__ import annotations

import asyncio
import ctypes
import importlib
import inspect
import logging
import os
import signal
import sys
from typing import Any

from fencerow import App, Config, Job
from fencerow.errors import Busy

if brings := os.environ.get("BRINGS"):
    importlib.import_module(brings).bring()

ROLE, URL = sys.argv[1:3]
PR_SET_PDEATHSIG = 1
EFFECT = (
    "INSERT INTO fencerow.effect VALUES ('{}')"
    if URL.startswith("postgresql:")
    else "INSERT INTO fencerow_effect VALUES ('{}')"
)
app = App(
    config=Config(url=URL, lease_s=60.0, renew_s=0.5, sweep_s=0.5, poll_max_s=0.2, busy_timeout_s=30.0),
    actor=ROLE,
)


@app.job
async def effect(job: Job, number: int) -> int:
    async with job.transaction() as connection:
        done = connection.execute(EFFECT.format(job.id))
        if inspect.isawaitable(done):
            await done
    return number


@app.job(attempts_max=3)
def shaky(job: Job, number: int) -> int:
    if job.failures == 0:
        raise TimeoutError("once")
    return number


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def work() -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with app, app.worker(slots=8):
        say("working")
        await stopped.wait()


async def submit(count: int) -> None:
    """Submit until told to stop, and tell how many were accepted."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    accepted = 0
    while accepted < count and not stopped.is_set():
        job: Any = (effect, shaky)[accepted % 2]
        key = f"{os.getpid()}-{accepted}" if accepted % 5 == 0 else None
        try:
            await job.using(key=key).asubmit(accepted)
        except Busy:  # nothing was stored: a file has one writer, and here are six processes
            continue
        accepted += 1
        if accepted == 10:
            say("submitting")
        await asyncio.sleep(0.002)
    say(f"accepted {accepted}")
    await app.aclose()


def main() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
    if ROLE == "worker":
        asyncio.run(work())
    elif ROLE == "client":
        asyncio.run(submit(int(sys.argv[3])))
    else:
        app.migrate()
        app.close()


if __name__ == "__main__":
    main()
