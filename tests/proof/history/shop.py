"""A small program that records what it does: run by a test, or as a process of its own that is killed.

Arguments as a process: the database's URL, the history's folder, the process id of the test.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
from pathlib import Path
from typing import Any

from fencerow import App, Backoff, Config, Defaults, Job
from fencerow_proof.history.engine import recording

SETTINGS: dict[str, Any] = {
    "lease_s": 2.0,
    "renew_s": 0.2,
    "sweep_s": 0.3,
    "poll_max_s": 0.1,
    "cancel_raise_s": 0.2,
    "cancel_kill_s": 0.3,
    "shutdown_s": 3.0,
}


def shop(url: str, folder: Path) -> App:
    """An app with a job of every ending, recorded."""
    app = App(
        url,
        config=Config(**SETTINGS),
        defaults=Defaults(attempts_max=5, backoff=Backoff(base_s=0.0, jitter=0.0)),
    )
    recorder = recording(app, folder)
    table = "fencerow.effect" if url.startswith("postgresql:") else "fencerow_effect"

    @app.job
    async def pay(job: Job) -> int:
        async with job.transaction() as connection:
            done = connection.execute(
                f"INSERT INTO {table} (job, attempt) VALUES ('{job.id}', {job.attempt})"
            )
            if inspect.isawaitable(done):
                await done
        return job.attempt

    @app.job
    def pay_plain(job: Job) -> int:
        with job.transaction() as connection:
            connection.execute(f"INSERT INTO {table} (job, attempt) VALUES ('{job.id}', {job.attempt})")
        return job.attempt

    @app.job
    async def shaky(job: Job) -> int:
        recorder.effect(job.id, job.attempt, job.holder)
        await job.progress(10.0)
        if job.failures < 2:
            raise RuntimeError("again")
        return job.attempt

    @app.job
    async def doze(job: Job) -> int:
        if job.attempt == 1:
            job.snooze(0.01)
        return job.attempt

    @app.job(attempts_max=1)
    async def broken() -> None:
        raise RuntimeError("for good")

    @app.job
    async def still(job: Job) -> None:
        await asyncio.sleep(600)

    return app


async def main() -> None:
    app = shop(sys.argv[1], Path(sys.argv[2]))
    async with app.worker(slots=8):
        while os.getppid() == int(sys.argv[3]):
            await asyncio.sleep(0.2)


if __name__ == "__main__":
    asyncio.run(main())
