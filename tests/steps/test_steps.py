"""What a job remembers: across failures, in plain and async handlers, typed, under the fence, and within bounds."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from fencerow import Backoff, Job
from fencerow.core.store import store
from fencerow.operators import changes
from fencerow.operators.job_change import JobChange
from fencerow.steps import memory
from fencerow.steps.memory import Fencing, Remembering
from fencerow.steps.model import Kind
from tests.core.store.stage import rows
from tests.core.worker.stage import quick, working
from tests.kit.jobs import AnyEngine, claim, register, running

NOW = Backoff(base_s=0.0, jitter=0.0)


@dataclass
class Receipt:
    number: int
    at: datetime


class Calls:
    """Counts how often each step's function ran."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()

    def plain(self, name: str) -> Receipt:
        self.count[name] += 1
        return Receipt(self.count[name], datetime(2026, 1, 2, tzinfo=UTC))

    async def of(self, name: str) -> Receipt:
        await asyncio.sleep(0)
        return self.plain(name)


async def test_steps_that_are_done_answer_from_memory_in_the_next_attempt(engine: AnyEngine) -> None:
    calls, seen = Calls(), []

    async def order(job: Job) -> int:
        paid = await job.step("charge", calls.of, "charge")
        seen.append(paid)
        if job.attempt == 1:
            raise RuntimeError("it fails between two steps")
        sent = await job.step("ship", calls.of, "ship")
        return paid.number + sent.number

    async with working(engine, order) as stage:
        job = await stage.run("order", attempts_max=3)

    assert (job.state, job.result, job.attempt, job.failures) == ("succeeded", 2, 2, 1)
    assert calls.count == {"charge": 1, "ship": 1}
    assert seen == [Receipt(1, datetime(2026, 1, 2, tzinfo=UTC))] * 2
    found = engine.run(memory.steps_of(job.id))
    assert [(step.name, step.seq, step.attempt) for step in found] == [("charge", 1, 1), ("ship", 2, 2)]


async def test_a_plain_handler_remembers_as_an_async_one_does(engine: AnyEngine) -> None:
    calls = Calls()

    def order(job: Job) -> int:
        paid = job.step("charge", calls.plain, "charge")
        if job.attempt < 3:
            raise RuntimeError("again")
        return paid.number

    async with working(engine, order) as stage:
        job = await stage.run("order", attempts_max=3)

    assert (job.state, job.result, job.attempt) == ("succeeded", 1, 3)
    assert calls.count == {"charge": 1}


async def test_steps_beside_one_another_are_remembered_each_by_its_name(engine: AnyEngine) -> None:
    calls = Calls()

    async def pages(job: Job) -> int:
        done = await asyncio.gather(*(job.step(f"page {n}", calls.of, f"page {n}") for n in range(5)))
        if job.attempt == 1:
            raise RuntimeError("again")
        return sum(each.number for each in done)

    async with working(engine, pages) as stage:
        job = await stage.run("pages", attempts_max=2)

    assert (job.state, job.result) == ("succeeded", 5)
    assert set(calls.count.values()) == {1}


async def test_a_step_has_retries_of_its_own_and_its_errors_are_not_remembered(engine: AnyEngine) -> None:
    counts: Counter[str] = Counter()

    async def shaky() -> int:
        counts["shaky"] += 1
        if counts["shaky"] < 3:
            raise ConnectionError("away")
        return counts["shaky"]

    async def wrong() -> int:
        counts["wrong"] += 1
        raise ValueError("for good")

    async def order(job: Job) -> int:
        got = await job.step("shaky", shaky, retries=2, backoff=NOW)
        with pytest.raises(ValueError, match="for good"):
            await job.step("wrong", wrong, retries=5, backoff=NOW)
        return got

    async with working(engine, order) as stage:
        job = await stage.run("order")

    assert (job.state, job.result, job.failures) == ("succeeded", 3, 0)
    assert counts == {"shaky": 3, "wrong": 1}
    assert [step.name for step in engine.run(memory.steps_of(job.id))] == ["shaky"]


async def twice(job: Job, calls: Calls) -> None:
    await job.step("a", calls.of, "a")
    await job.step("a", calls.of, "a")


async def in_transaction(job: Job, calls: Calls) -> None:
    async with job.transaction():
        pass  # it stays open until the handler returns
    await job.step("a", calls.of, "a")


async def plain_function(job: Job, calls: Calls) -> None:
    await job.step("a", calls.plain, "a")  # type: ignore[misc]


async def nameless(job: Job, calls: Calls) -> None:
    await job.step("", calls.of, "a")


async def not_json(job: Job, calls: Calls) -> None:
    async def of_no_json() -> Any:
        return float("nan")

    await job.step("a", of_no_json)


@pytest.mark.parametrize(
    ("handler", "code", "ran"),
    [
        (twice, "FR-960", 1), (in_transaction, "FR-961", 0), (plain_function, "FR-961", 0), (nameless, "FR-201", 0),
        (not_json, "FR-205", 0),
    ],
    ids=lambda each: getattr(each, "__name__", str(each)),
)  # fmt: skip
async def test_what_cannot_be_remembered_is_refused_and_not_stored(
    engine: AnyEngine, handler: Any, code: str, ran: int
) -> None:
    calls = Calls()

    async def order(job: Job) -> None:
        await handler(job, calls)

    async with working(engine, order) as stage:
        job = await stage.run("order", attempts_max=1)

    assert job.state == "failed"
    assert job.error["message"].startswith(code), job.error["message"]
    assert calls.count["a"] == ran == len(engine.run(memory.steps_of(job.id)))


async def test_an_ephemeral_job_remembers_nothing(engine: AnyEngine) -> None:
    calls = Calls()

    async def order(job: Job) -> None:
        await job.step("a", calls.of, "a")

    async with working(engine, order) as stage:
        job = await stage.run("order", ephemeral=True, attempts_max=1)

    assert job.error["message"].startswith("FR-961")
    assert not calls.count


async def test_a_job_remembers_no_more_than_it_may(engine: AnyEngine) -> None:
    calls = Calls()

    async def order(job: Job) -> None:
        for number in range(5):
            await job.step(f"page {number}", calls.of, "page")

    async with working(engine, order, config=quick(steps_max=3)) as stage:
        job = await stage.run("order", attempts_max=3)

    assert (job.state, job.attempt) == ("failed", 1), "another attempt would end at the same place"
    assert "FR-962" in job.error["message"] and "'page 3'" in job.error["message"]
    assert calls.count["page"] == 3 == len(engine.run(memory.steps_of(job.id)))


async def test_the_results_of_a_job_have_no_more_bytes_than_they_may(engine: AnyEngine) -> None:

    async def long() -> str:
        return "x" * 600

    async def order(job: Job) -> None:
        await job.step("one", long)
        await job.step("two", long)

    async with working(engine, order, config=quick(steps_bytes_max=1_024)) as stage:
        job = await stage.run("order", attempts_max=1)

    assert job.error["message"].startswith("FR-962")
    assert [step.name for step in engine.run(memory.steps_of(job.id))] == ["one"]


def test_the_memory_of_a_stale_attempt_is_refused(engine: AnyEngine) -> None:
    """Red without the fence: see below."""
    stale, step = gone(engine)

    assert engine.run(memory.remember(stale, step)) is False
    assert engine.run(memory.steps_of(stale.id)) == []


def test_a_stale_attempt_would_be_believed_without_the_fence(engine: AnyEngine) -> None:
    stale, step = gone(engine)
    held = (
        "job.attempt = CAST(:attempt AS bigint)" if engine.dialect == "postgres" else "job.attempt = :attempt"
    )
    holder = "job.holder = CAST(:holder AS uuid)" if engine.dialect == "postgres" else "job.holder = :holder"
    whole = engine.queries
    engine.queries = whole.altered("remember_step", held, "true").altered("remember_step", holder, "true")

    engine.run(memory.remember(stale, step))

    engine.queries = whole
    assert engine.run(memory.steps_of(stale.id)) != []


def gone(engine: AnyEngine) -> tuple[Fencing, Remembering]:
    """An attempt whose job a newer one runs, and what it would remember."""
    job = running(engine, first := register(engine))
    back = store.Requeue(id=job.id, attempt=job.attempt, kind="released")
    assert engine.run(store.requeue([back], holder=first))
    assert claim(engine, register(engine))
    step = Remembering(name="a", kind=Kind.STEP, seq=1, beside=False, result="1")
    return Fencing(job.id, first, job.attempt), step


async def test_an_attempt_that_lost_its_job_is_told_by_its_step(engine: AnyEngine) -> None:
    told: list[BaseException] = []

    async def order(job: Job) -> None:
        async def lose() -> None:
            back = store.Requeue(id=job.id, attempt=job.attempt, kind="snoozed", delay_s=600.0, snoozes=1)
            await engine.arun(store.requeue([back], holder=job.holder))

        try:
            await job.step("a", lose)
        except BaseException as error:
            told.append(error)
            raise

    async with working(engine, order) as stage:
        job_id = await stage.submit("order")
        await stage.heard.wait("lease_lost", job_id=job_id)

    assert [type(error).__name__ for error in told] == ["LeaseLost"]
    assert engine.run(memory.steps_of(job_id)) == []


def test_what_was_remembered_before_stands(engine: AnyEngine) -> None:
    """The answer was lost, and it is remembered again."""
    job = running(engine, holder := register(engine))
    fencing = Fencing(job.id, holder, job.attempt)
    step = Remembering(name="a", kind=Kind.STEP, seq=1, beside=False, result="1")

    said = [engine.run(memory.remember(fencing, each)) for each in (step, step)]

    assert said == [True, True]
    assert [each.result for each in engine.run(memory.steps_of(job.id))] == ["1"]


@pytest.mark.parametrize(
    ("before", "steps"),
    [((), ["charge", "two signatures", "sign", "ship"]), (("charge", "ship"), ["charge", "ship"])],
    ids=["a job that begins", "a job that was further"],
)
async def test_a_patch_is_taken_by_those_that_have_not_come_so_far(
    engine: AnyEngine, before: tuple[str, ...], steps: list[str]
) -> None:
    calls = Calls()

    async def order(job: Job) -> bool:
        if job.attempt == 1:
            raise RuntimeError("the code is changed between the attempts")
        await job.step("charge", calls.of, "charge")
        patched = await job.patched("two signatures")
        if patched:
            await job.step("sign", calls.of, "sign")
        await job.step("ship", calls.of, "ship")
        return bool(patched)

    async with working(engine, order) as stage:
        job_id = await stage.submit("order", delay_s=3600.0)
        for seq, name in enumerate(before, 1):
            kept = {"number": 1, "at": "2026-01-02T00:00:00Z"}
            rows(
                engine,
                remembered_row(
                    engine, job_id, name, seq, json.dumps(kept).replace("{", "{{").replace("}", "}}")
                ),
            )
        await engine.arun(changes.change(job_id, JobChange(at_once=True), actor="ada"))
        job = await stage.ended(job_id)

    assert (job.state, job.result) == ("succeeded", not before)
    assert [step.name for step in engine.run(memory.steps_of(job_id))] == steps


def remembered_row(engine: AnyEngine, job_id: str, name: str, seq: int, result: str) -> str:
    """What the code of before has left."""
    table, now = (
        ("fencerow.job_steps", "now()") if engine.dialect == "postgres" else ("fencerow_job_steps", "0")
    )
    columns = "(job_id, name, kind, seq, result, attempt, at)"
    return f"INSERT INTO {table} {columns} VALUES ('{job_id}', '{name}', 'step', {seq}, '{result}', 0, {now})"
