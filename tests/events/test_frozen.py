"""A process that is stopped with the locks of one of our transactions in its hands holds nobody up for long."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from fencerow.db.postgres import PostgresEngine
from fencerow.events import EventBus, apublish, consumers
from fencerow.events.groups import GroupStart, make_group
from fencerow.events.outbox import NewEvent, append
from fencerow.events.sequencer import sequence
from tests.events.conftest import app_on
from tests.events.freezing import FROZEN
from tests.events.freezing_consumer import TABLE, reading
from tests.kit.pace import PATIENCE_S
from tests.kit.stopping import is_stopped

pytestmark = pytest.mark.timed

OTHER = "22222222-2222-7222-8222-222222222222"


def last_word(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.read()


@contextmanager
def running(*commands: str) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """These modules of ours, each with its arguments, as processes of their own."""
    made = {
        command.split()[-1]: subprocess.Popen(
            [sys.executable, "-m", *command.split()], stdout=subprocess.PIPE, text=True
        )
        for command in commands
    }
    try:
        yield made
    finally:
        for process in made.values():
            process.kill()
            with process:  # waits for it, and closes what it wrote to
                pass


async def stopped(processes: Iterable[subprocess.Popen[str]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not all(is_stopped(process.pid) for process in processes):
            await asyncio.sleep(0.02)


async def until(engine: PostgresEngine, look: Callable[[], Any], is_enough: Callable[[Any], bool]) -> Any:
    async with asyncio.timeout(PATIENCE_S):
        while not is_enough(found := await engine.arun(look())):
            await asyncio.sleep(0.05)
    return found


async def test_locks_of_a_stopped_process_are_taken_from_it(pg: PostgresEngine) -> None:
    for group in ("taken", "read"):
        await pg.arun(make_group(group, ["t"], partitions=1, start=GroupStart("beginning")))
    await pg.arun(append([NewEvent("t")]))
    await pg.arun(sequence(None))
    held = await pg.arun(consumers.hold_partitions("read", holder=FROZEN, name="x", lease_s=1.0))
    assert held.leases[0].fence == 1
    await pg.arun(append([NewEvent("t")]))

    module = f"tests.events.freezing {pg.conninfo}"
    with running(f"{module} sequencer", f"{module} taking", f"{module} acknowledging") as processes:
        await stopped(processes.values())
        assert (await pg.arun(sequence(None, wait=False))).has_more, "the lock is held"

        def take(group: str) -> Any:
            return consumers.hold_partitions(group, holder=OTHER, name="y", lease_s=60.0)

        placed = await until(pg, lambda: sequence(None, wait=False), lambda one: one.count)
        taken = await until(pg, lambda: take("taken"), lambda found: found.leases)
        read = await until(pg, lambda: take("read"), lambda found: found.leases)

        assert placed.count == 1
        assert (taken.leases[0].fence, read.leases[0].fence) == (1, 2)
        assert read.leases[0].cursor == 0, "what the stopped one acknowledged was rolled back"

        for process in processes.values():
            os.kill(process.pid, signal.SIGCONT)
        told = {name: await asyncio.to_thread(last_word, process) for name, process in processes.items()}
    assert told == {
        "sequencer": "done",  # it begins anew
        "taking": "done",
        "acknowledging": "Unavailable",  # and not "perhaps": its COMMIT was never seen
    }


@pytest.mark.prove
async def test_rows_of_a_consumer_that_is_stopped_in_its_transaction_are_taken_from_it(
    pg: PostgresEngine,
) -> None:
    with psycopg.connect(pg.conninfo, autocommit=True) as connection:
        connection.execute(TABLE)
    app = reading(app_on(pg), stops=False)
    await apublish(app, "t", 1)
    with running(f"tests.events.freezing_consumer {pg.conninfo}") as processes:
        await stopped(processes.values())
        async with app.worker(), asyncio.timeout(PATIENCE_S):
            while (lag := (await EventBus(app).alag())[0]).events or lag.waiting:
                await asyncio.sleep(0.05)
    await app.aclose()

    with psycopg.connect(pg.conninfo) as connection:
        assert connection.execute("SELECT number FROM fencerow.letters").fetchall() == [(1,)]
