"""`process=True`: the handler runs in a process of its own, and is a job like any other."""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencerow import Config
from fencerow.errors import ConfigError, DeclarationError, NotImportable
from fencerow.operators import looking
from fencerow.processes import starting
from tests.core.worker.stage import Stage, read, until, worker_of, working
from tests.kit.jobs import AnyEngine
from tests.processes import shop
from tests.processes.conftest import settings

HANDLERS = [job.handler for job in shop.app.jobs.values()]


def gone(pid: int) -> bool:
    """Whether nothing of a process or of its group is left, not even a zombie."""
    for look in (os.kill, os.killpg):
        try:
            look(pid, 0)
        except ProcessLookupError:
            continue
        return False
    return True


def crew(engine: AnyEngine, config: Config, **options: Any) -> Any:
    return working(engine, *HANDLERS, config=config, **options)


async def test_it_runs_elsewhere_with_its_middleware_and_stays_warm(lite: AnyEngine) -> None:
    async with crew(lite, settings(lite)) as stage:
        first = (await stage.run("where")).result
        second = (await stage.run("awhere", {"text": "é"}, metadata='{"a":1}')).result

    assert first["parent"] != os.getpid() != first["pid"]
    assert first["attempt"] == 1
    assert first["tone"] == f"middleware of {first['pid']}"
    assert second == {**second, "pid": first["pid"], "text": "é", "metadata": {"a": 1}}


async def test_a_handler_apart_from_its_contract_runs_there_too(lite: AnyEngine) -> None:
    async with crew(lite, settings(lite)) as stage:
        text, pid = (await stage.run("agreed", {"text": "a"})).result

    assert text == "a" and pid != os.getpid()


async def test_what_it_says_is_kept_and_its_log_is_the_workers(
    engine: AnyEngine, config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with crew(engine, config) as stage:
        job = await stage.run("says")

    (line,) = await engine.arun(looking.logs(job.id))
    assert (job.state, job.progress, job.progress_note) == ("succeeded", 40.0, "less than half")
    assert (line.message, line.attempt) == ("from the child", 1)
    heard = {record.getMessage(): record for record in caplog.records if record.name == "shop"}
    assert vars(heard["a line of the child"])["color"] == "red"
    fields = [vars(heard["a line of the child"])[name] for name in ("job_id", "job", "attempt", "queue")]
    assert fields == [job.id, "says", 1, "mail"]
    said = [each for each in caplog.records if each.getMessage() == "from the child"]
    assert [vars(each)["job_id"] for each in said] == [job.id]
    assert "ValueError: seen" in (heard["with a trace"].exc_text or "")


async def test_only_levels_that_are_wanted_travel(lite: AnyEngine, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "shop")

    async with crew(lite, settings(lite)) as stage:
        await stage.run("says")

    assert [record.getMessage() for record in caplog.records if record.name == "shop"] == ["with a trace"]


@pytest.mark.parametrize(("what", "attempts"), [("value", 1), ("os", 2)])
async def test_its_errors_are_judged_as_anywhere(lite: AnyEngine, what: str, attempts: int) -> None:
    async with crew(lite, settings(lite)) as stage:
        job = await stage.run("raises", {"what": what}, attempts_max=2)

    assert (job.state, job.attempt, job.crashes, job.suspect) == ("failed", attempts, 0, False)
    assert job.error["type"] in ("ValueError", "OSError")
    assert "tests/processes/shop.py" in job.error["traceback"]


@pytest.mark.parametrize("name", ["effect", "aeffect"])
async def test_its_transaction_commits_with_the_success(engine: AnyEngine, config: Config, name: str) -> None:
    table = "fencerow.effect" if engine.dialect == "postgres" else "effect"
    with engine.session() as session:
        session.connection.execute(f"CREATE TABLE {table} (n integer)")
    async with crew(engine, config) as stage:
        job = await stage.run(name, {"sql": f"INSERT INTO {table} VALUES (1)"})

    assert (job.state, job.result) == ("succeeded", "booked")
    assert count(engine, table) == 1


@pytest.mark.parametrize("inside", [False, True])
async def test_what_follows_it_is_stored_with_its_success(
    engine: AnyEngine, config: Config, inside: bool
) -> None:
    async with crew(engine, config) as stage:
        first = await stage.run("follows", {"inside": inside})
        second = await stage.ended(first.result)

    assert (second.name, second.key, second.exclusive, second.state) == ("awhere", "k", "e", "succeeded")


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
        (row,) = session.connection.execute(f"SELECT count(*) FROM {table}").fetchall()
        return int(row[0])


async def test_a_large_argument_travels_whole(lite: AnyEngine) -> None:
    text = "x" * 300_000
    async with crew(lite, settings(lite)) as stage:
        job = await stage.run("awhere", {"text": text})

    assert job.result["text"] == text


async def test_it_is_replaced_when_it_has_run_enough(lite: AnyEngine) -> None:
    async with crew(lite, settings(lite, child_jobs_max=2)) as stage:
        pids = [await pid(stage) for _ in range(5)]

    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]
    assert len(set(pids)) == 3


async def test_it_is_replaced_when_it_has_grown_fat(lite: AnyEngine) -> None:
    async with crew(lite, settings(lite, child_resident_bytes_max=1024**2)) as stage:
        assert await pid(stage) != await pid(stage)


@pytest.mark.parametrize("changes", [{"child_idle_max": 0}, {"child_idle_s": 0.0}])
async def test_none_is_kept_when_none_shall_be(lite: AnyEngine, changes: dict[str, Any]) -> None:
    async with crew(lite, settings(lite, **changes)) as stage:
        first = await pid(stage)
        await until(lambda: gone(first), what="its end")


async def test_none_is_started_before_it_is_wanted(lite: AnyEngine) -> None:
    async with crew(lite, settings(lite)) as stage:
        await stage.run("healthy")
        assert [each.name for each in threading.enumerate() if "child" in each.name] == []
        await pid(stage)
        assert len([each.name for each in threading.enumerate() if "fencerow-child" in each.name]) == 1


async def test_a_child_that_cannot_start_hands_its_job_back(
    lite: AnyEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "boot.py"
    broken.write_text("raise SystemExit(9)")
    monkeypatch.setattr(starting, "BOOT", broken)
    async with crew(lite, settings(lite)) as stage:
        job_id = await stage.submit("where")
        (facts,) = await stage.heard.wait("released")
    job = await read(lite, job_id)

    assert "exited with code 9" in facts["reason"]
    assert (job.state, job.attempt, job.failures, job.crashes) == ("queued", 1, 0, 0)


# --- what cannot run in a child ------------------------------------------------------------------------


def test_a_job_declared_in_a_function_is_refused() -> None:
    with pytest.raises(NotImportable, match=r"(?s)FR-106.*inside a function"):

        @shop.app.job(process=True)
        def inner() -> None: ...


def test_a_job_that_is_no_global_of_its_module_is_refused_by_the_worker(lite: AnyEngine) -> None:
    handler = replace(shop.where.handler, name="another")
    with pytest.raises(NotImportable, match="no global that is this job"):
        worker_of(lite, handler, config=settings(lite))


def test_a_worker_that_names_no_database_runs_no_children(lite: AnyEngine) -> None:
    with pytest.raises(ConfigError, match="name no database"):
        worker_of(lite, shop.where.handler)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"process": "yes"}, "True, False or nothing"),
        ({"memory_bytes_max": 2**30}, "without process=True"),
        ({"process": True, "memory_bytes_max": 2**20}, "memory_bytes_max"),
    ],
)
def test_an_option_that_cannot_be_kept_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(DeclarationError, match=told):
        shop.app.job(**options)


def test_a_batch_runs_in_the_worker() -> None:
    with pytest.raises(DeclarationError, match="one job at a time"):
        shop.app.batch_job(process=True)


async def pid(stage: Stage) -> int:
    return int((await stage.run("where")).result["pid"])
