"""A worker process of the shop. Arguments: the database, the lease in seconds, the process id of the test."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import sys

from fencerow import Config
from fencerow.core.worker.plain import Worker
from tests.processes import shop
from tests.whole.deaths.crew import engine_of

PR_SET_PDEATHSIG = 1


async def main(target: str, lease_s: float) -> None:
    config = Config(
        url=target if target.startswith("postgresql:") else f"sqlite:///{target}",
        lease_s=lease_s,
        renew_s=lease_s / 8,
        sweep_s=0.3,
        poll_max_s=0.1,
        cancel_raise_s=0.2,
        cancel_kill_s=0.5,
        shutdown_s=3.0,
        child_start_s=60.0,
    )
    engine = engine_of(target)
    worker = Worker(engine, shop.app.handlers, {"mail": 8}, config)
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
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
