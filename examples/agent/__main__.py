"""Runs the agent in workers that are killed at random, allows what it asks for, and shows what came of it."""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

from fencerow import App, Config

from examples.agent.agent import declare
from examples.agent.tools import SHOP, shop

TASK = "The lamp of order 17 came broken."
CONFIG = Config(lease_s=1.0, renew_s=0.2, sweep_s=0.2, poll_max_s=0.1, output_write_s=0.02)


def app_at(folder: Path) -> App:
    """The app on a file in this folder."""
    os.environ[SHOP] = str(folder / "shop.db")
    app = App(f"sqlite:///{folder / 'jobs.db'}", config=CONFIG)
    declare(app)
    return app


def killing(
    app: App, job_id: str, folder: Path, kills: int, draw: random.Random, over: threading.Event
) -> None:
    """One worker after the other: each is killed a moment after it has said or done something, but the last."""
    for left in range(kills, -1, -1):
        before = moved(app, job_id)
        worker = subprocess.Popen([sys.executable, "-m", "examples.agent", "--work", str(folder)])
        while not over.wait(0.02) and (not left or moved(app, job_id) == before):
            pass
        over.wait(draw.uniform(0.0, 0.3))
        worker.kill()
        worker.wait()
        if over.is_set():
            return
        print("(killed)", end=" ", flush=True)


def moved(app: App, job_id: str) -> int:
    """How far the agent has come: how often it has said or done something."""
    return sum(1 for _ in app.client.output(job_id, follow=False)) + len(app.client.steps(job_id))


def allowing(app: App, job_id: str, over: threading.Event) -> None:
    """A person who allows whatever the agent waits for."""
    while not over.wait(0.1):
        for wait in app.client.waits(job_id):
            if wait.signal is not None:
                app.client.signal(job_id, wait.signal, {"yes": True, "by": "ada"})


def main(kills: int, seed: int) -> int:
    over, draw = threading.Event(), random.Random(seed)  # noqa: S311
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with app_at(folder) as app:
            job = app.submit_by_name("agent", {"task": TASK})
            helpers = [
                threading.Thread(target=killing, args=(app, job.id, folder, kills, draw, over)),
                threading.Thread(target=allowing, args=(app, job.id, over)),
            ]
            for each in helpers:
                each.start()
            try:
                attempt = 0
                for chunk in app.client.output(job.id, timeout_s=600):
                    if chunk.attempt != attempt:
                        attempt = chunk.attempt
                        print(f"\n(attempt {attempt})", end=" ")
                    print(chunk.data, end="", flush=True)
                print(f"\nanswer: {job.result(60)}")
            finally:
                over.set()
                for each in helpers:
                    each.join()
            with closing(shop()) as connection:
                ((payments,),) = connection.execute("SELECT count(*) FROM payments")
            print(f"steps: {', '.join(step.name for step in app.client.steps(job.id))}")
            print(f"paid back: {payments} time{'s' * (payments != 1)}")
    return 0 if payments == 1 else 1


async def work(folder: Path) -> None:
    """What each worker process does, until it is killed."""
    async with app_at(folder) as app, app.worker():
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="examples.agent")
    parser.add_argument("--work", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--kills", type=int, default=4, help="How many workers are killed.")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="Draws when they are killed.")
    asked = parser.parse_args()
    sys.exit(asyncio.run(work(asked.work)) if asked.work else main(asked.kills, asked.seed))
