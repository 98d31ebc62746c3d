"""What attempts become: success, failure, retry, snooze, and stored data that cannot be used."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from fencerow.core.model.backoff import Backoff
from fencerow.core.model.control import Fail, Retry
from fencerow.core.model.retry import RetryRule
from fencerow.core.store import store
from fencerow.core.worker.context import Job
from fencerow.operators import looking
from fencerow.operators.queues import pause_queue, resume_queue
from tests.core.worker.stage import handler, job_of, kinds, working
from tests.kit.jobs import AnyEngine


async def double(number: int) -> int:
    return number * 2


def triple(number: int) -> int:
    return number * 3


async def test_async_and_plain_handlers_succeed_with_their_results(engine: AnyEngine) -> None:
    async with working(engine, double, triple) as stage:
        first = await stage.run("double", {"number": 4})
        second = await stage.run("triple", {"number": 4})

    assert (first.state, first.result, first.attempt, first.failures) == ("succeeded", 8, 1, 0)
    assert (second.state, second.result, second.attempt, second.failures) == ("succeeded", 12, 1, 0)


async def test_a_failure_is_retried_until_the_attempts_are_spent_and_logged_each_time(
    engine: AnyEngine, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken() -> None:
        secret = "do not log locals"
        raise RuntimeError(f"line one\nline two {len(secret)}")

    async with working(engine, broken) as stage:
        job = await stage.run("broken", attempts_max=3)
        logged = [record for record in caplog.records if record.name == "fencerow.job"]

    assert (job.state, job.attempt, job.failures) == ("failed", 3, 3)
    assert job.error["type"] == "RuntimeError"
    assert [record.levelno for record in logged] == [logging.WARNING, logging.WARNING, logging.ERROR]
    assert all(job.id in record.getMessage() and "Traceback" in (record.exc_text or "") for record in logged)
    assert not any(
        "do not log locals" in (record.exc_text or "").replace('"do not log locals"', "") for record in logged
    )
    assert stage.counters.get("attempts_failed") == 3
    assert stage.counters.get("jobs_failed") == 1
    assert (await kinds(engine, job.id)).count("retried") == 2


async def test_a_plain_handler_that_fails_once_succeeds_in_its_second_attempt(engine: AnyEngine) -> None:
    def shaky(job: Job) -> int:
        if job.attempt == 1:
            raise OSError("once")
        return job.failures

    async with working(engine, shaky) as stage:
        job = await stage.run("shaky")

    assert (job.state, job.result, job.attempt) == ("succeeded", 1, 2)


async def test_fail_ends_the_job_whatever_attempts_are_left(engine: AnyEngine) -> None:
    async def refuse() -> None:
        raise Fail("no such customer")

    async with working(engine, refuse) as stage:
        job = await stage.run("refuse", attempts_max=10)

    assert (job.state, job.attempt, job.error["code"]) == ("failed", 1, "failed_by_handler")


async def test_retry_after_is_kept(engine: AnyEngine) -> None:
    async def later() -> None:
        raise Retry(3600)

    async with working(engine, later) as stage:
        job_id = await stage.submit("later")
        (fact,) = await stage.heard.wait("retried", job_id=job_id)

    assert fact["delay_s"] == 3600


async def test_a_snooze_costs_no_failure_and_has_a_cap(engine: AnyEngine) -> None:
    async def sleepy(job: Job) -> None:
        job.snooze(0.001, "not yet")

    async with working(engine, sleepy) as stage:
        job = await stage.run("sleepy", snoozes_max=2)

    assert (job.state, job.snoozes, job.attempt) == ("failed", 2, 3)
    assert job.error["code"] == "snoozes_exhausted"
    assert len(stage.heard.all("snoozed")) == 2


async def test_classification_decides_what_is_retried(engine: AnyEngine) -> None:
    async def wrong() -> None:
        raise ValueError("the same arguments would be refused again")

    async def rescued() -> None:
        raise ValueError("but this one is known to pass")

    rule = RetryRule(backoff=Backoff(base_s=0.0), retry_on=ValueError)
    async with working(engine, wrong, handler(rescued, rule)) as stage:
        first = await stage.run("wrong", attempts_max=2)
        second = await stage.run("rescued", attempts_max=2)

    assert (first.attempt, first.error["code"]) == (1, "permanent_error")
    assert (second.attempt, second.error["code"]) == (2, "attempts_exhausted")


async def test_stored_arguments_that_do_not_fit_fail_that_job_alone(engine: AnyEngine) -> None:
    async with working(engine, double) as stage:
        bad = await stage.submit("double", {"number": "four"})
        good = await stage.submit("double", {"number": 4})
        failed, passed = await stage.ended(bad), await stage.ended(good)

    assert (failed.state, failed.error["type"].rpartition(".")[2]) == ("failed", "MalformedPayload")
    assert passed.result == 8


async def test_large_arguments_are_fetched_at_the_start(engine: AnyEngine) -> None:
    async def length(text: str) -> int:
        return len(text)

    async with working(engine, length) as stage:
        job = await stage.run("length", {"text": "x" * 200_000})

    assert job.result == 200_000


async def test_a_result_that_cannot_be_kept_fails_that_job_alone(engine: AnyEngine) -> None:
    async def large() -> str:
        return "x" * 2_000_000

    def strange() -> Any:
        return object()

    async with working(engine, large, strange, double) as stage:
        ids = [await stage.submit(name) for name in ("large", "strange")]
        good = await stage.submit("double", {"number": 1})
        first, second, third = [await stage.ended(each) for each in (*ids, good)]

    assert (first.state, first.attempt, first.error["code"]) == ("failed", 1, "permanent_error")
    assert (second.state, second.attempt, second.error["code"]) == ("failed", 1, "permanent_error")
    assert third.state == "succeeded"


async def test_options_that_cannot_be_read_do_not_stop_the_retries(engine: AnyEngine) -> None:
    async def broken() -> None:
        raise RuntimeError("again")

    async with working(engine, broken) as stage:
        job = await stage.run("broken", options='{"base_s": "soon"}', attempts_max=2)

    assert (job.state, job.attempt, job.failures) == ("failed", 2, 2)


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError(), StopIteration(), GeneratorExit()])
@pytest.mark.parametrize("plain", [True, False], ids=["plain", "async"])
async def test_odd_errors_of_a_handler_count_as_failures_and_cost_no_slot(
    lite: AnyEngine, error: BaseException, plain: bool
) -> None:
    async def odd() -> None:
        raise error

    def odd_plain() -> None:
        raise error

    odd_plain.__name__ = "odd_plain"
    async with working(lite, odd, odd_plain, double, queues={"mail": 1}) as stage:
        job = await stage.run("odd_plain" if plain else "odd", attempts_max=2)
        after = await stage.run("double", {"number": 1})

    assert (job.state, job.attempt, job.failures) == ("failed", 2, 2)
    assert after.state == "succeeded"


async def test_progress_and_log_are_kept_with_the_job(engine: AnyEngine) -> None:
    async def talk(job: Job) -> None:
        await job.progress(30, "a third")
        await job.log("hello", level="warning")

    def talk_plain(job: Job) -> None:
        _ = job.progress(60)
        _ = job.log("plain")

    async with working(engine, talk, talk_plain) as stage:
        first, second = await stage.run("talk"), await stage.run("talk_plain")

    assert (first.progress, first.progress_note, second.progress) == (30, "a third", 60)
    lines = await engine.arun(looking.logs(first.id))
    assert [(line.level, line.message) for line in lines] == [("warning", "hello")]


async def test_an_unknown_name_waits_and_does_not_stop_the_others(engine: AnyEngine) -> None:
    async with working(engine, double) as stage:
        (unknown,) = [await stage.submit("nobody_knows")]
        done = await stage.run("double", {"number": 2})
        waiting = (await engine.arun(store.read([unknown])))[unknown]

    assert done.state == "succeeded"
    assert (waiting.state, waiting.attempt) == ("queued", 0)


async def test_a_paused_queue_waits_until_it_is_resumed(engine: AnyEngine) -> None:
    await engine.arun(pause_queue("mail", actor="ada", reason="maintenance"))
    async with working(engine, double) as stage:
        job_id = await stage.submit("double", {"number": 2})
        await stage.heard.wait("renewed", 3)
        assert not stage.heard.all("claimed")
        await engine.arun(resume_queue("mail"))
        assert (await stage.ended(job_id)).state == "succeeded"


async def test_a_job_nobody_waits_for_any_more_expires(engine: AnyEngine) -> None:
    job = job_of("nobody_knows", expires_s=0.01)
    await engine.arun(store.submit([job]))
    async with working(engine, double) as stage:
        await stage.heard.wait("expired")
        (found,) = (await engine.arun(store.read([job.id]))).values()

    assert (found.state, found.attempt) == ("failed", 0)
