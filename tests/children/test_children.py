"""`process=True`: the handler runs in a process of its own, and is a job like any other."""

from __future__ import annotations

import logging
import os
from typing import Any

import pytest

from fencerow.config import Config
from fencerow.store import store
from tests.children import shop
from tests.children.conftest import settings
from tests.jobs import AnyEngine
from tests.worker.stage import Stage, working

HANDLERS = [job.handler for job in shop.app.jobs.values()]


def crew(engine: AnyEngine, config: Config, **options: Any) -> Any:
    return working(engine, *HANDLERS, config=config, **options)


async def test_it_runs_elsewhere_with_its_middleware_and_stays_warm(
    engine: AnyEngine, config: Config
) -> None:
    async with crew(engine, config) as stage:
        first = (await stage.run("where")).result
        second = (await stage.run("awhere", {"text": "é"}, metadata='{"a":1}')).result

    assert first["parent"] == os.getpid() != first["pid"]
    assert first["attempt"] == 1
    assert first["tone"] == f"middleware of {first['pid']}"
    assert second == {**second, "pid": first["pid"], "text": "é", "metadata": {"a": 1}}


async def test_what_it_says_is_kept_and_its_log_is_the_workers(
    engine: AnyEngine, config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    async with crew(engine, config) as stage:
        job = await stage.run("says")

    (line,) = await engine.arun(store.logs(job.id))
    assert (job.state, job.progress, job.progress_note) == ("succeeded", 40.0, "less than half")
    assert (line.message, line.attempt) == ("from the child", 1)
    heard = {record.getMessage(): record for record in caplog.records if record.name == "shop"}
    assert vars(heard["a line of the child"])["color"] == "red"
    assert "ValueError: seen" in (heard["with a trace"].exc_text or "")


async def test_only_levels_that_are_wanted_travel(lite: AnyEngine, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "shop")

    async with crew(lite, settings(lite)) as stage:
        await stage.run("says")

    assert [record.getMessage() for record in caplog.records if record.name == "shop"] == ["with a trace"]


@pytest.mark.parametrize(("what", "attempts"), [("value", 1), ("os", 2)])
async def test_its_errors_are_judged_as_anywhere(
    engine: AnyEngine, config: Config, what: str, attempts: int
) -> None:
    async with crew(engine, config) as stage:
        job = await stage.run("raises", {"what": what}, attempts_max=2)

    assert (job.state, job.attempt, job.crashes, job.suspect) == ("failed", attempts, 0, False)
    assert job.error["type"] in ("ValueError", "OSError")
    assert "tests/children/shop.py" in job.error["traceback"]


@pytest.mark.parametrize("name", ["effect", "aeffect"])
async def test_its_transaction_commits_with_the_success(engine: AnyEngine, config: Config, name: str) -> None:
    table = "fencerow.effect" if engine.dialect == "postgres" else "effect"
    with engine.session() as session:
        session.connection.execute(f"CREATE TABLE {table} (n integer)")
    async with crew(engine, config) as stage:
        job = await stage.run(name, {"sql": f"INSERT INTO {table} VALUES (1)"})

    assert (job.state, job.result) == ("succeeded", "booked")
    assert count(engine, table) == 1


async def test_a_success_that_it_could_not_tell_of_counts(engine: AnyEngine, config: Config) -> None:
    table = "fencerow.effect" if engine.dialect == "postgres" else "effect"
    with engine.session() as session:
        session.connection.execute(f"CREATE TABLE {table} (n integer)")
    async with crew(engine, config) as stage:
        job = await stage.run("effect_then_dies", {"sql": f"INSERT INTO {table} VALUES (1)"})

    assert (job.state, job.attempt, job.crashes) == ("succeeded", 1, 0)
    assert count(engine, table) == 1


def count(engine: AnyEngine, table: str) -> int:
    with engine.session() as session:
        return int(session.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


async def test_a_large_argument_travels_whole(engine: AnyEngine, config: Config) -> None:
    text = "x" * 300_000
    async with crew(engine, config) as stage:
        job = await stage.run("awhere", {"text": text})

    assert job.result["text"] == text


async def pid(stage: Stage) -> int:
    return int((await stage.run("where")).result["pid"])
