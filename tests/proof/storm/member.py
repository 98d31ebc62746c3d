"""The processes of a storm: what a worker and a client do from their start to their end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection

from fencerow import Config
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.db.trouble import is_trouble
from fencerow.errors import OutOfResources
from fencerow_proof.history.engine import recording
from tests.proof.storm import orders
from tests.proof.storm.bugs import beneath, spoil
from tests.proof.storm.client import Client
from tests.proof.storm.plan import QUEUES, WORKER_SETTINGS
from tests.proof.storm.post import HISTORY, Post, take_up
from tests.proof.storm.work import Work

log = logging.getLogger("storm")


def serve(post: Post, control: Connection) -> None:
    """A worker, until SIGTERM. A start in an outage, or without descriptors, is tried again, as by a supervisor."""
    take_up(post)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message).300s")
    asyncio.run(_serve(post, control))


def call(post: Post, control: Connection) -> None:
    """A client, until SIGTERM."""
    take_up(post)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message).300s")
    asyncio.run(_call(post, control))


async def _serve(post: Post, control: Connection) -> None:
    sink = os.open(post.folder / f"{post.name}.sink", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def mark(job_id: str, attempt: int) -> None:
        os.write(sink, f"{job_id} {attempt}\n".encode())

    work = Work(
        post.url, Config(**WORKER_SETTINGS), mark, post.inside, outside=post.store, blocks=not post.spared
    )
    engine = _prepared(post, work, control)
    spoil(engine, post.bug)
    await _run(post, work)
    await work.app.aclose()


async def _run(post: Post, work: Work) -> None:
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, told.set)
    while not told.is_set():
        try:
            worker = await asyncio.to_thread(work.app.worker, dict(QUEUES), name=post.name)
            loop.add_signal_handler(signal.SIGTERM, _both(told.set, worker.request_stop))
            if not told.is_set():  # while it was made: nobody would tell it
                await worker.run()
        except Exception as error:
            if not is_trouble(error) and not isinstance(error, OutOfResources):
                raise
            log.warning("the worker could not start: %s", error)
            await asyncio.sleep(0.2)


def _both(first: Callable[[], None], second: Callable[[], None]) -> Callable[[], None]:
    def call_both() -> None:
        first()
        second()

    return call_both


async def _call(post: Post, control: Connection) -> None:
    client = Client(post)
    _prepared(post, client.work, control)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, client.stop)
    await client.run()


def _prepared(post: Post, work: Work, control: Connection) -> PostgresEngine | SqliteEngine:
    """Record what this process asks the database, go by the clock of the day, and listen to orders."""
    recording(work.app, post.folder / HISTORY)
    engine = beneath(work.app.engine)
    if isinstance(engine, SqliteEngine):
        engine.clock.offset_us = post.clock_us
    orders.obey(engine, control)
    return engine
