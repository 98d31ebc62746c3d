"""A process opens as many connections as it states and no more, with everything at work at once."""

from __future__ import annotations

import asyncio
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fencerow import App, Config, Job
from fencerow.cli import main
from fencerow.core.store import store
from fencerow.core.telemetry import Fact
from fencerow.db.connections import of_client, of_worker, shares, told
from fencerow.db.postgres import PostgresEngine
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.servers.pgbouncer import PgBouncer
from tests.core.worker.stage import until, working
from tests.house.tree import ROOT
from tests.kit.jobs import QUEUE
from tests.kit.pace import PATIENCE_S
from tests.whole.connections.counting import counted

POOL_MAX = 6
USERS = shares(POOL_MAX)[1]
# Hundreds of calls wait for these few connections; how long that takes is not what is asked here.
PATIENT = Config(pool_max=POOL_MAX, connect_timeout_s=60.0)


def database(url: str) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])


@pytest.mark.parametrize("plain", [False, True])
async def test_a_worker_opens_what_it_states(
    postgres_url: str,
    server: PostgresServer,
    pooler: PgBouncer | None,
    caplog: pytest.LogCaptureFixture,
    plain: bool,
) -> None:
    engine = PostgresEngine(postgres_url, store.postgres_queries(), pool_max=POOL_MAX)
    go, inside = threading.Event(), []

    async def hold(job: Job) -> None:
        async with job.transaction() as session:
            await session.execute("SELECT 1")
            inside.append(job.id)
            await job.log("inside")
            await asyncio.to_thread(go.wait, PATIENCE_S)

    def hold_plainly(job: Job) -> None:
        with job.transaction() as session:
            session.execute("SELECT 1")
            inside.append(job.id)
            for number in range(10):
                job.progress(number)
                job.log("inside")
            go.wait(PATIENCE_S)

    def chat(job: Job) -> None:
        for number in range(10):
            job.progress(number)

    functions: list[Any] = [hold, hold_plainly, chat] if plain else [hold]
    stated = of_worker(POOL_MAX, plain=plain)
    caplog.set_level("INFO", logger="fencerow.worker")
    with counted(server, database(postgres_url), pooler) as count:
        async with working(engine, *functions, queues={QUEUE: 40}) as stage:
            for _ in range(8):
                for each in functions:
                    await stage.submit(each.__name__)
            await until(
                lambda: len(inside) == USERS * (1 + plain), what="every connection of the users is taken"
            )
            if not plain:
                # Its own statements follow one another, so not every one of theirs has to be opened.
                await until(lambda: count.most >= USERS + 4, what="and those of its own statements")
            (registered,) = await engine.arun(store.list_workers(limit=2))
            go.set()
            await stage.heard.wait(Fact.SUCCEEDED, 8 * len(functions))
    await engine.aclose()

    assert count.most <= sum(stated.values()), stated
    assert f"opens at most {told(stated)}" in caplog.text
    assert registered.connections == sum(stated.values()), "doctor adds these up"


def test_a_client_in_threads_opens_what_it_states(
    postgres_url: str, server: PostgresServer, pooler: PgBouncer | None
) -> None:
    app = App(postgres_url, config=PATIENT)

    @app.job(queue="other")
    def quick(n: int) -> int:
        return n

    def submit(number: int) -> None:
        quick.using(key=f"key {number}").submit(number)

    with counted(server, database(postgres_url), pooler) as count, ThreadPoolExecutor(30) as threads:
        list(threads.map(submit, range(300)))
    app.close()
    stated = sum(of_client(POOL_MAX, plain=True).values())
    assert 1 < count.most <= stated


async def test_a_client_in_an_event_loop_opens_what_it_states(
    postgres_url: str, server: PostgresServer, pooler: PgBouncer | None
) -> None:
    app = App(postgres_url, config=PATIENT)

    @app.job(queue="other")
    async def quick(n: int) -> int:
        return n

    with counted(server, database(postgres_url), pooler) as count:
        handles = await asyncio.gather(*(quick.using(key=f"{n}").asubmit(n) for n in range(200)))
        waiting = [asyncio.create_task(handle.aresult(60)) for handle in handles]
        async with app.worker(["other"]):
            assert await asyncio.gather(*waiting) == list(range(200))
    await app.aclose()
    # The worker beside it, for the answers, has the same pools.
    stated = sum(of_client(POOL_MAX, plain=False).values()) + 1 + USERS + 1
    assert 1 < count.most <= stated


@pytest.mark.parametrize(
    "words", [("jobs", "list"), ("queues", "list"), ("workers",), ("doctor",), ("migrate",)], ids=" ".join
)
def test_a_command_opens_what_the_page_says(
    postgres_url: str,
    server: PostgresServer,
    pooler: PgBouncer | None,
    words: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FENCEROW_URL", postgres_url)
    with counted(server, database(postgres_url), pooler) as count:
        for _ in range(1 if words == ("doctor",) else 5):
            assert main.run(list(words)) == 0
    assert count.most <= stated_of_commands()


def stated_of_commands() -> int:
    page = (ROOT / "docs" / "postgresql.md").read_text("utf-8")
    found = re.search(r"^\| a command .*\| (\d+) \|", page, re.MULTILINE)
    assert found
    return int(found[1])


def test_the_page_has_the_sums() -> None:
    page = (ROOT / "docs" / "postgresql.md").read_text("utf-8")
    for connections in (
        of_worker(10, plain=False),
        of_worker(10, plain=True),
        of_client(10, plain=True),
        of_client(10, plain=False),
    ):
        assert f"| {sum(connections.values())} |" in page, connections
