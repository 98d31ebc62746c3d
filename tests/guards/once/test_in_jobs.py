"""Inside a job the job is the owner: its rerun goes on where it crashed, and a stale attempt takes nothing."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path

import pytest

from fencerow import App, Config, Job
from fencerow.errors import OnceRunning
from fencerow.guards.once import DedupeWindow, once
from fencerow.guards.replace import replace_for
from fencerow.guards.replace.deciding import Found
from fencerow.retention import maintenance
from fencerow.testing.clock import DatabaseClock
from tests.core.worker.stage import quick, working
from tests.guards.places import At
from tests.kit.jobs import AnyEngine
from tests.kit.plainly import plainly

SEEN: list[object] = []


async def test_a_rerun_is_no_duplicate_of_the_run_that_failed(engine: AnyEngine) -> None:
    """The key is not given back, as after a crash: the next attempt of the job takes it up all the same."""
    SEEN.clear()
    at = At(engine)

    async def charge(job: Job) -> str:
        turn = await once(at, "order-1").__aenter__()
        SEEN.append((job.attempt, turn.needed, turn.owner == f"job:{job.id}"))
        if job.attempt == 1:
            raise RuntimeError("crashed in the middle")
        await turn.adone("paid")
        return "paid"

    async with working(engine, charge) as stage:
        await stage.run("charge", attempts_max=3)

    assert SEEN == [(1, True, True), (2, True, True)]
    assert plainly(once(at, "order-1").call, lambda: "twice") == "paid"


async def test_side_by_side_in_one_attempt_it_is_done_once(engine: AnyEngine) -> None:
    """Two tasks of one handler ask for one key: the second waits for the first, or is told that it is at work."""
    SEEN.clear()
    at, asked = At(engine), asyncio.Event()

    async def effect() -> str:
        SEEN.append("charged")
        await asked.wait()
        return "paid"

    async def impatient() -> str:
        while not SEEN:
            await asyncio.sleep(0)
        try:
            return await once(at, "order-1").acall(effect)
        except OnceRunning:
            return "told so"
        finally:
            asked.set()

    async def charge(job: Job) -> None:
        patient = once(at, "order-1", wait_s=60).acall
        SEEN.append(await asyncio.gather(patient(effect), patient(effect), impatient()))

    async with working(engine, charge) as stage:
        await stage.run("charge")

    assert SEEN == ["charged", ["paid", "paid", "told so"]]


async def test_threads_of_one_attempt_do_it_once(engine: AnyEngine) -> None:
    SEEN.clear()
    at = At(engine)

    def charge(job: Job) -> None:
        def effect() -> str:
            SEEN.append("charged")
            return "paid"

        def ask() -> str:
            return once(at, "order-1", wait_s=60).call(effect)

        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(copy_context().run, ask) for _ in range(8)]
            SEEN.append({each.result() for each in asked})

    async with working(engine, charge) as stage:
        await stage.run("charge")

    assert ["charged", {"paid"}] == SEEN


async def test_plain_handlers_and_replacements_know_their_job(engine: AnyEngine) -> None:
    SEEN.clear()
    with engine.session() as session:
        table = "fencerow.parts" if engine.dialect == "postgres" else "parts"
        session.connection.execute(f"CREATE TABLE {table} (source text, n integer)")

    def embed(job: Job) -> None:
        with replace_for(
            At(engine), table=table, source_column="source", source="faq", content_hash="a", wait_s=0
        ) as replacing:
            SEEN.append((job.attempt, replacing.found))
            if job.attempt == 1:
                replacing._reservation = None  # a crash: nothing is given back
                raise RuntimeError("crashed in the middle")
            replacing.insert([{"n": 1}, {"n": 2}])

    async with working(engine, embed) as stage:
        await stage.run("embed", attempts_max=3)

    assert SEEN == [(1, Found.NEEDED), (2, Found.NEEDED)]


async def test_a_worker_forgets_what_is_over(
    engine: AnyEngine, clock: DatabaseClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "EVERY_S", 0.05)
    monkeypatch.setattr(maintenance, "BATCH_ROWS", 2)
    at = At(engine)
    for number in range(5):
        plainly(once(at, f"k{number}", lifetime_s=60).call, lambda: 1)
        plainly(DedupeWindow(at, "w", 60).admit, f"k{number}", "v")
    clock.advance(61)
    plainly(once(at, "young", lifetime_s=60).call, lambda: 1)

    async with working(engine, config=quick(lease_s=1e3)):
        async with asyncio.timeout(20):
            while await asyncio.to_thread(left, engine) > 1:
                await asyncio.sleep(0.01)

    assert left(engine) == 1


def left(engine: AnyEngine) -> int:
    dot = "." if engine.dialect == "postgres" else "_"
    with engine.session() as session:
        rows = session.connection.execute(
            f"SELECT (SELECT count(*) FROM fencerow{dot}once_keys)"
            f" + (SELECT count(*) FROM fencerow{dot}dedupe_windows)"
        ).fetchall()
        return int(rows[0][0])


def test_an_app_is_a_place_that_makes_its_tables(sqlite_path: Path) -> None:
    app = App(f"sqlite:///{sqlite_path}", config=Config(lease_s=30))

    assert once(app, "k").call(lambda: 1) == once(app, "k").call(lambda: 2) == 1
    app.close()
