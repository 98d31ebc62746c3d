"""One worker process of a crew. Arguments: the database, the lease in seconds, the process id of the test."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import sys
import time

from fencerow import Config
from fencerow.core.worker.context import Job
from fencerow.core.worker.plain import Worker
from tests.core.worker.stage import handler
from tests.whole.deaths.crew import engine_of

PR_SET_PDEATHSIG = 1
TARGET = sys.argv[1]


async def quick(job: Job) -> int:
    await asyncio.sleep(0.002)
    return job.attempt


async def killer(job: Job) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def sleeper(job: Job, seconds: float) -> str:
    """The first attempt takes long; those after it end at once."""
    if job.attempt == 1:
        time.sleep(seconds)
    return f"attempt {job.attempt}"


async def main() -> None:
    lease_s = float(sys.argv[2])
    config = Config(
        lease_s=lease_s,
        renew_s=lease_s / 8,
        sweep_s=0.3,
        poll_max_s=0.1,
        cancel_raise_s=0.2,
        cancel_kill_s=0.5,
        shutdown_s=3.0,
    )
    functions = (quick, killer, sleeper)
    engine = engine_of(TARGET)
    worker = Worker(engine, {each.__name__: handler(each) for each in functions}, {"mail": 8}, config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.request_stop)
    await worker.run()
    await engine.aclose()


if __name__ == "__main__":
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != int(sys.argv[3]):
            sys.exit("the test that wanted this worker is gone")
    logging.basicConfig(level=logging.WARNING, format="%(process)d %(asctime)s %(name)s %(message).300s")
    asyncio.run(main())
