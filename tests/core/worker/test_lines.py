"""The log of a worker: a line for each start and end, and the job's fields on every line that its handler writes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest

from fencerow.batches.declare import batch_handler_of
from fencerow.batches.item import BatchItem
from fencerow.core.model.control import Fail, Retry
from fencerow.core.model.defaults import Defaults
from fencerow.core.worker.context import Job
from fencerow.core.worker.deciding import Decider
from fencerow.logs import LogFields
from tests.core.worker.stage import quick, working
from tests.kit.jobs import AnyEngine

user_log = logging.getLogger("shop")
Record = logging.LogRecord


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """The log from INFO on, as `fencerow worker` has it."""
    caplog.set_level(logging.INFO)
    fields = LogFields()
    caplog.handler.addFilter(fields)
    yield caplog
    caplog.handler.removeFilter(fields)


def lines(heard: pytest.LogCaptureFixture, name: str) -> list[Record]:
    return [each for each in heard.records if each.name == name]


def about(record: Record) -> tuple[Any, ...]:
    found = vars(record)
    return found["job"], found["job_id"], found["attempt"], found["queue"]


async def test_a_job_has_a_line_for_its_start_and_one_for_its_end(
    engine: AnyEngine, heard: pytest.LogCaptureFixture
) -> None:
    async def send() -> int:
        return 1

    async with working(engine, send) as stage:
        job = await stage.run("send")

    start, end = lines(heard, "fencerow.job")
    assert start.getMessage() == f"job {job.id} (send) attempt 1 started, queue mail"
    assert end.getMessage().startswith(f"job {job.id} (send) attempt 1 succeeded after 0.")
    assert end.getMessage().endswith(" s, queue mail")
    assert about(start) == about(end) == ("send", job.id, 1, "mail")
    assert (vars(end)["outcome"], 0 <= vars(end)["duration_s"] < 60) == ("succeeded", True)


@pytest.mark.parametrize(("setting", "level"), [("info", "WARNING"), ("debug", "INFO")])
async def test_nobody_who_does_not_want_them_gets_them(
    lite: AnyEngine, caplog: pytest.LogCaptureFixture, setting: str, level: str
) -> None:
    async def send() -> None: ...

    caplog.set_level(level)
    async with working(lite, send, config=quick(log_job_level=setting)) as stage:
        await stage.run("send")

    assert not lines(caplog, "fencerow.job")


async def test_what_a_handler_chooses_is_one_line_and_other_errors_show_its_frames_alone(
    lite: AnyEngine, heard: pytest.LogCaptureFixture
) -> None:
    def deep() -> None:
        raise KeyError("lost")

    def broken() -> None:
        try:
            deep()
        except KeyError as error:
            raise ValueError("bad page") from error

    async def chosen(job: Job) -> None:
        if job.failures:
            raise Fail("no such invoice")
        raise Retry(0.0, "busy")

    async def middle(job: Job, call_next: Callable[[], Awaitable[Any]]) -> Any:
        return await call_next()

    async with working(lite, broken, chosen, middleware=[middle]) as stage:
        failed = await stage.run("broken", attempts_max=1)
        await stage.run("chosen")

    told = [each for each in lines(heard, "fencerow.job") if each.levelno > logging.INFO]
    error, busy, gone = told
    assert error.getMessage().endswith(": ValueError: bad page [permanent_error]")
    assert (vars(error)["code"], vars(error)["error"]) == ("permanent_error", "ValueError")
    trace = error.exc_text or ""
    assert [
        word for word in ("KeyError: 'lost'", "in deep", "in broken", "in middle") if word not in trace
    ] == []
    assert "/src/fencerow/" not in trace + failed.error["traceback"]
    assert "(failure 1 of 3), next attempt in 0.0 s: fencerow.Retry: busy [error]" in busy.getMessage()
    assert (
        "failed for good" in gone.getMessage() and "no such invoice [failed_by_handler]" in gone.getMessage()
    )
    assert [(each.levelname, each.exc_text) for each in (busy, gone)] == [("WARNING", None), ("ERROR", None)]


async def test_a_fault_of_the_worker_is_told_with_one_traceback(
    lite: AnyEngine, heard: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise AssertionError("a fault of ours")

    async def wrong() -> None:
        raise ValueError("bad page")

    monkeypatch.setattr(Decider, "decide", broken)
    async with working(lite, wrong) as stage:
        await stage.run("wrong")

    (ours,), (end,) = (
        [each for each in lines(heard, name) if each.levelno == logging.ERROR]
        for name in ("fencerow.worker", "fencerow.job")
    )
    assert "met a fault of the worker" in ours.getMessage() and ours.exc_info
    assert end.getMessage().endswith("AssertionError: a fault of ours [worker_fault]")
    assert (end.exc_text, end.exc_info) == (None, None)


async def test_an_error_of_ours_in_a_handler_shows_where_it_was_called(lite: AnyEngine) -> None:
    async def wrong(job: Job) -> None:
        await job.progress(1_000)

    async with working(lite, wrong) as stage:
        job = await stage.run("wrong", attempts_max=1)

    assert "in wrong" in job.error["traceback"] and "in percent_of" in job.error["traceback"]
    assert "calling.py" not in job.error["traceback"]


async def test_arguments_that_do_not_fit_have_no_frames(lite: AnyEngine) -> None:
    async def send(n: int) -> None: ...

    async with working(lite, send) as stage:
        job = await stage.run("send", {"n": "x"}, attempts_max=1)

    assert any(
        line.startswith("fencerow.errors.MalformedPayload") for line in job.error["traceback"].splitlines()
    )
    assert "calling.py" not in job.error["traceback"] and "executor.py" not in job.error["traceback"]


async def test_lines_of_handlers_carry_their_job(engine: AnyEngine, heard: pytest.LogCaptureFixture) -> None:
    async def in_loop(job: Job) -> None:
        user_log.info("in_loop")
        await asyncio.gather(asyncio.to_thread(user_log.info, "in_loop"), job.log("said"))

    def in_thread() -> None:
        user_log.info("in_thread")

    async with working(engine, in_loop, in_thread) as stage:
        first = await stage.run("in_loop", headers='{"correlation-id":"c-1"}')
        second = await stage.run("in_thread")
        user_log.info("outside")

    assert [(each.getMessage(), *about(each)) for each in lines(heard, "shop")] == [
        ("in_loop", "in_loop", first.id, 1, "mail"),
        ("in_loop", "in_loop", first.id, 1, "mail"),
        ("in_thread", "in_thread", second.id, 1, "mail"),
        ("outside", None, None, None, None),
    ]
    assert [vars(each)["correlation_id"] for each in lines(heard, "shop")] == ["c-1", "c-1", None, None]
    (said,) = lines(heard, "fencerow.job.log")
    assert (said.getMessage(), *about(said)) == ("said", "in_loop", first.id, 1, "mail")


@pytest.mark.parametrize("is_async", [True, False])
async def test_lines_of_a_batch_say_how_many_jobs_it_has_and_which(
    lite: AnyEngine, heard: pytest.LogCaptureFixture, is_async: bool
) -> None:
    async def on_loop(items: Sequence[BatchItem[int, None]]) -> None:
        user_log.info("a batch")

    def on_thread(items: Sequence[BatchItem[int, None]]) -> None:
        user_log.info("a batch")

    function = on_loop if is_async else on_thread
    handler = batch_handler_of(
        2, "pile", function, Defaults(attempts_max=1), retry_on=(), fail_on=(), payload_bytes_max=1000
    )
    async with working(lite, handler, queues={"mail": 1}) as stage:
        ids = [await stage.submit("pile", raw_args='{"value":1}') for _ in range(3)]
        for each in ids:
            await stage.ended(each)

    named = [vars(each).get("job_ids") or [vars(each)["job_id"]] for each in lines(heard, "shop")]
    assert sorted(each for group in named for each in group) == sorted(ids)
    assert {vars(each)["job"] for each in lines(heard, "shop")} == {"pile"}


async def test_an_error_that_says_nothing_leaves_no_colon(
    engine: AnyEngine, heard: pytest.LogCaptureFixture
) -> None:
    async def send() -> None:
        raise RuntimeError

    async with working(engine, send) as stage:
        await stage.run("send", attempts_max=1)

    (end,) = [each for each in lines(heard, "fencerow.job") if each.levelno == logging.ERROR]
    assert "queue mail: RuntimeError [" in end.getMessage()
