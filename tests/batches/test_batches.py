"""Batches: one call for many jobs, and each ends by itself."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from msgspec import json, structs

from fencerow.batches.batch import BatchCall
from fencerow.batches.declare import batch_handler_of
from fencerow.batches.item import BatchItem
from fencerow.core.model.backoff import Backoff
from fencerow.core.model.defaults import Defaults
from fencerow.core.model.handler import Handler
from fencerow.core.model.job import JobRecord
from fencerow.core.store import store
from fencerow.core.worker.attempt import Attempt, Interrupt
from fencerow.core.worker.context import Job
from fencerow.errors import CancelRequested, DecidedTwice, LeaseLost
from fencerow.operators import looking
from tests.core.worker.stage import Stage, job_of, kinds, pool_of, quick, read, submit, until, working
from tests.kit.jobs import AnyEngine, claim, register
from tests.kit.pace import PATIENCE_S

Numbers = Sequence[BatchItem[int, str]]
Quiet = Sequence[BatchItem[int, None]]
ONE_SLOT = {"mail": 1}


def batch(function: Callable[..., Any], batch_max: int = 100) -> Handler:
    """What `@app.batch_job` makes of a function, with a backoff of nothing."""
    limits = Defaults(attempts_max=3, backoff=Backoff(base_s=0.0, jitter=0.0))
    return batch_handler_of(
        batch_max, function.__name__, function, limits, retry_on=(), fail_on=(), payload_bytes_max=1_000_000
    )


class Gate:
    """What the handlers of a test tell it; threading events, so that plain handlers can use them."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.started = threading.Event()
        self.go = threading.Event()

    def note(self, items: Sequence[BatchItem[int, Any]]) -> None:
        self.calls.append([item.value for item in items])


async def run_together(
    stage: Stage, handler: Handler, values: Sequence[Any], **fields: Any
) -> list[JobRecord]:
    """Submit jobs that are claimed at once, and wait for their ends. The slot must be free."""
    return await ends(stage, await put_together(stage, handler, values, **fields))


async def put_together(stage: Stage, handler: Handler, values: Sequence[Any], **fields: Any) -> list[str]:
    """Submit jobs in one transaction; the claimer asks for all of them, as it does after a first batch."""
    for pool in stage.worker._parts.roster.pools:
        pool._reach = 100
    jobs = [job_of(handler.name, {"value": value}, **fields) for value in values]
    await stage.engine.arun(store.submit(jobs))
    return [job.id for job in jobs]


async def ends(stage: Stage, ids: Sequence[str]) -> list[JobRecord]:
    return [await stage.ended(each) for each in ids]


async def bury(engine: AnyEngine, holder: str) -> None:
    """Declare one worker dead and take its jobs back."""
    assert await engine.arun(store.retire(holder=holder))
    await engine.arun(store.reclaim([holder], limit=100, actor="test"))


def states(jobs: Sequence[JobRecord]) -> list[str]:
    return [str(job.state) for job in jobs]


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "async"])
async def test_each_job_of_a_batch_gets_its_own_outcome(
    engine: AnyEngine, caplog: pytest.LogCaptureFixture, plain: bool
) -> None:
    gate = Gate()

    def decide(items: Numbers) -> None:
        gate.note(items)
        for item in items:
            if item.value == 1:
                item.fail("no such customer")
            elif item.value == 2 and not item.failures:
                item.retry(0, "once more")
            elif item.value == 3 and item.attempt == 1:
                item.snooze(0.001)
            elif item.value == 4:
                item.fail(ValueError("the same again would not help"))
            elif item.value == 5 and not item.failures:
                item.fail(OSError("this passes"))
            else:
                item.succeed(f"sent {item.value}")

    async def adecide(items: Numbers) -> None:
        decide(items)

    handler = replace(batch(decide if plain else adecide), name="send")
    async with working(engine, handler, queues=ONE_SLOT) as stage:
        jobs = await run_together(stage, handler, range(6))
        logged = [record for record in caplog.records if record.name == "fencerow.job"]

    assert gate.calls[0] == [0, 1, 2, 3, 4, 5]
    assert sorted(value for call in gate.calls[1:] for value in call) == [2, 3, 5]
    assert states(jobs) == ["succeeded", "failed", "succeeded", "succeeded", "failed", "succeeded"]
    assert [job.attempt for job in jobs] == [1, 1, 2, 2, 1, 2]
    assert [job.failures for job in jobs] == [0, 1, 1, 0, 1, 1]
    assert [jobs[n].result for n in (0, 2, 3, 5)] == ["sent 0", "sent 2", "sent 3", "sent 5"]
    assert (jobs[1].error["code"], jobs[4].error["code"]) == ("failed_by_handler", "permanent_error")
    assert sorted(record.job_id for record in logged) == sorted(jobs[n].id for n in (1, 2, 4, 5))  # type: ignore[attr-defined]
    assert logging.ERROR in {record.levelno for record in logged}


async def test_silence_is_success_with_none_where_none_is_a_result(engine: AnyEngine) -> None:
    async def quiet(items: Quiet) -> None: ...

    async def mute(items: Numbers) -> None:
        items[0].succeed("said")

    first, second = batch(quiet), batch(mute)
    async with working(engine, first, second, queues=ONE_SLOT) as stage:
        fine = await run_together(stage, first, [1, 2])
        mixed = await run_together(stage, second, [1, 2])

    assert [(job.state, job.result) for job in fine] == [("succeeded", None)] * 2
    assert states(mixed) == ["succeeded", "failed"]
    assert "without an outcome for this item" in mixed[1].error["message"]


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "async"])
async def test_an_error_of_the_handler_judges_those_that_were_not_decided(
    engine: AnyEngine, plain: bool
) -> None:
    gate = Gate()

    def breaks(items: Numbers) -> None:
        gate.note(items)
        for item in items:
            if item.value == 1:
                raise RuntimeError("in the middle")
            item.succeed("good")

    async def abreaks(items: Numbers) -> None:
        breaks(items)

    handler = replace(batch(breaks if plain else abreaks), name="send")
    async with working(engine, handler, queues=ONE_SLOT) as stage:
        for pool in stage.worker._parts.roster.pools:
            pool._reach = 100
        made = [
            job_of("send", {"value": 0}),
            job_of("send", {"value": 1}, attempts_max=1),
            job_of("send", {"value": 2}, attempts_max=2),
        ]
        await engine.arun(store.submit(made))
        jobs = await ends(stage, [job.id for job in made])

    assert gate.calls == [[0, 1, 2], [2]]
    assert states(jobs) == ["succeeded", "failed", "succeeded"]
    assert [job.failures for job in jobs] == [0, 1, 1]
    assert jobs[1].error["code"] == "attempts_exhausted"


async def test_a_stored_payload_that_does_not_fit_never_reaches_the_handler(engine: AnyEngine) -> None:
    gate = Gate()

    async def send(items: Numbers) -> None:
        gate.note(items)
        for item in items:
            item.succeed("good")

    handler = batch(send)
    async with working(engine, handler, queues=ONE_SLOT) as stage:
        jobs = await run_together(stage, handler, [0, "poison", 2])

    assert gate.calls == [[0, 2]]
    assert states(jobs) == ["succeeded", "failed", "succeeded"]
    assert jobs[1].error["type"].endswith("MalformedPayload")


async def test_large_values_are_fetched_at_the_start(engine: AnyEngine) -> None:
    def send(items: Sequence[BatchItem[str, int]]) -> None:
        for item in items:
            item.succeed(len(item.value))

    handler = batch(send)
    async with working(engine, handler, queues=ONE_SLOT) as stage:
        jobs = await run_together(stage, handler, ["x" * 200_000, "y"])

    assert [job.result for job in jobs] == [200_000, 1]


async def test_a_result_that_cannot_be_kept_fails_that_job_alone(engine: AnyEngine) -> None:
    def send(items: Numbers) -> None:
        for item in items:
            item.succeed(item.value if item.value == 1 else "good")  # type: ignore[arg-type]

    handler = batch(send)
    async with working(engine, handler, queues=ONE_SLOT) as stage:
        jobs = await run_together(stage, handler, range(3))

    assert states(jobs) == ["succeeded", "failed", "succeeded"]
    assert jobs[1].error["type"].endswith("InvalidPayload")


async def test_an_item_is_decided_once(engine: AnyEngine) -> None:
    met: list[BaseException] = []

    async def send(items: Numbers) -> None:
        for item in items:
            item.succeed("first")
            try:
                item.fail("second")
            except DecidedTwice as error:
                met.append(error)

    handler = batch(send)
    async with working(engine, handler, queues=ONE_SLOT) as stage:
        jobs = await run_together(stage, handler, [0, 1])

    assert states(jobs) == ["succeeded", "succeeded"]
    assert [jobs[n].id in str(met[n]) for n in (0, 1)] == [True, True]


async def test_what_was_said_is_written_before_the_handler_returns(engine: AnyEngine) -> None:
    gate = Gate()

    def send(items: Numbers) -> None:
        items[0].succeed("early")
        assert gate.go.wait(PATIENCE_S)
        items[1].succeed("late")

    handler = batch(send)
    async with working(engine, handler, queues=ONE_SLOT) as stage:
        first, second = await put_together(stage, handler, [0, 1])
        early = await stage.ended(first)
        running = await read(engine, second)
        gate.go.set()
        late = await stage.ended(second)

    assert (early.result, running.state, late.result) == ("early", "running", "late")


async def test_a_batch_takes_what_waits_up_to_its_size_and_nothing_of_other_names(lite: AnyEngine) -> None:
    gate = Gate()

    async def send(items: Quiet) -> None:
        gate.note(items)

    async def other(items: Quiet) -> None:
        gate.note(items)

    handler, stranger = batch(send, batch_max=3), batch(other)
    async with working(lite, handler, stranger, queues=ONE_SLOT) as stage:
        for pool in stage.worker._parts.roster.pools:
            pool._reach = 100
        made = [job_of("send", {"value": n}) for n in range(4)]
        made += [job_of("other", {"value": n}) for n in range(10, 12)]
        made += [job_of("send", {"value": n}, timeout_s=60) for n in range(20, 22)]  # a limit of their own
        await lite.arun(store.submit(made))
        await ends(stage, [job.id for job in made])

    assert gate.calls == [[0, 1, 2], [3], [10, 11], [20, 21]]


async def test_a_free_slot_is_filled_with_a_whole_batch_without_being_told(engine: AnyEngine) -> None:
    gate = Gate()

    async def send(items: Quiet) -> None:
        gate.note(items)

    made = [job_of("send", {"value": n}) for n in range(300)]
    await engine.arun(store.submit(made))
    async with working(engine, batch(send), queues={"mail": 2}) as stage:
        await stage.heard.until(lambda: len(stage.heard.all("succeeded")) == 300)

    assert len(gate.calls) < 12  # one or two small ones, then whole ones
    assert max(map(len, gate.calls)) == 100


async def test_the_wish_of_a_pool_is_bounded(lite: AnyEngine) -> None:
    async def send(items: Quiet) -> None: ...

    async with working(lite, batch(send, batch_max=1000), queues={"mail": 50}) as stage:
        (pool,) = stage.worker._parts.roster.pools
        before = pool.wanted()
        await run_together(stage, batch(send), [1])
        await until(lambda: pool.running == 0)
        after = pool.wanted()

    assert (before, after) == (50, 1000)


async def test_a_timeout_ends_the_call_and_times_out_what_was_not_decided(engine: AnyEngine) -> None:
    met: list[BaseException] = []

    async def asleep(items: Numbers) -> None:
        items[0].succeed("in time")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError as error:
            met.append(error)  # swallowed: those that were not decided time out all the same

    def busy(items: Numbers) -> None:
        items[0].succeed("in time")
        while True:
            time.sleep(0.001)

    for handler in (batch(asleep), batch(busy)):
        async with working(engine, handler, queues=ONE_SLOT) as stage:
            jobs = await run_together(stage, handler, range(3), timeout_s=0.2, attempts_max=1)
        assert states(jobs) == ["succeeded", "failed", "failed"]
        assert {job.error["type"] for job in jobs[1:]} == {"fencerow.errors.AttemptTimeout"}
    assert len(met) == 1


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "async"])
async def test_a_cancel_is_seen_on_its_item_and_not_raised_in_the_batch(
    engine: AnyEngine, plain: bool
) -> None:
    gate = Gate()

    def send(items: Numbers) -> None:
        gate.started.set()
        while not items[0].cancelled:
            time.sleep(0.005)
        for item in items:
            if not item.cancelled:
                item.succeed("went on")

    async def asend(items: Numbers) -> None:
        gate.started.set()
        while not items[0].cancelled:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.3)  # longer than a cancel waits before it is raised elsewhere
        for item in items:
            if not item.cancelled:
                item.succeed("went on")

    handler = replace(batch(send if plain else asend), name="send")
    config = quick(cancel_raise_s=0.1, cancel_kill_s=5.0)
    async with working(engine, handler, queues=ONE_SLOT, config=config) as stage:
        ids = await put_together(stage, handler, range(3))
        await until(gate.started.is_set)
        await engine.arun(store.cancel(ids[0], actor="ada"))
        jobs = await ends(stage, ids)

    assert states(jobs) == ["cancelled", "succeeded", "succeeded"]


async def test_a_cancelled_item_that_is_finished_all_the_same_succeeds_and_one_that_fails_is_cancelled(
    engine: AnyEngine,
) -> None:
    gate = Gate()

    async def send(items: Numbers) -> None:
        gate.started.set()
        while not (items[0].cancelled and items[1].cancelled):
            await asyncio.sleep(0.005)
        items[0].succeed("was done already")
        items[1].fail("half done")
        items[2].succeed("good")

    handler = batch(send)
    async with working(engine, handler, queues=ONE_SLOT, config=quick(cancel_raise_s=5.0)) as stage:
        ids = await put_together(stage, handler, range(3))
        await until(gate.started.is_set)
        for job_id in ids[:2]:
            await engine.arun(store.cancel(job_id, actor="ada"))
        jobs = await ends(stage, ids)

    assert states(jobs) == ["succeeded", "cancelled", "succeeded"]


async def test_a_cancel_that_is_not_heeded_gives_that_item_up_and_leaves_the_others(
    engine: AnyEngine,
) -> None:
    gate = Gate()

    def send(items: Numbers) -> None:
        gate.started.set()
        assert gate.go.wait(PATIENCE_S)
        for item in items:
            item.succeed("late")  # dropped for the one that is over: no error

    handler = batch(send)
    async with working(engine, handler, queues=ONE_SLOT) as stage:
        ids = await put_together(stage, handler, range(3))
        await until(gate.started.is_set)
        await engine.arun(store.cancel(ids[1], actor="ada"))
        cancelled = await stage.ended(ids[1])
        gate.go.set()
        jobs = await ends(stage, ids)

    assert cancelled.state == "cancelled"
    assert states(jobs) == ["succeeded", "cancelled", "succeeded"]
    assert stage.counters.get("handlers_given_up") == 0


async def test_when_every_open_item_is_cancelled_the_call_is_too(engine: AnyEngine) -> None:
    gate = Gate()

    def busy(items: Numbers) -> None:
        items[0].succeed("before")
        gate.started.set()
        while True:
            time.sleep(0.001)

    handler = batch(busy)
    async with working(engine, handler, queues=ONE_SLOT, config=quick(cancel_kill_s=30.0)) as stage:
        ids = await put_together(stage, handler, range(3))
        await until(gate.started.is_set)
        for job_id in ids[1:]:
            await engine.arun(store.cancel(job_id, actor="ada"))
        jobs = await ends(stage, ids)
        await until(lambda: stage.worker._parts.roster.pools[0].running == 0)

    assert states(jobs) == ["succeeded", "cancelled", "cancelled"]
    assert stage.counters.get("handlers_given_up") == 0


async def test_a_handler_that_ignores_its_end_is_given_up_with_what_was_not_decided(
    engine: AnyEngine,
) -> None:
    gate = Gate()

    def hung(items: Numbers) -> None:
        items[0].succeed("before")
        gate.go.wait(PATIENCE_S)  # in C: no exception reaches it

    async def after(items: Quiet) -> None: ...

    handler, next_one = batch(hung), batch(after)
    async with working(engine, handler, next_one, queues=ONE_SLOT) as stage:
        jobs = await run_together(stage, handler, range(3), timeout_s=0.2, attempts_max=1)
        assert stage.counters.get("handlers_given_up") == 1
        (later,) = await run_together(stage, next_one, [1])
        gate.go.set()

    assert states(jobs) == ["succeeded", "failed", "failed"]
    assert later.state == "succeeded"


async def test_a_lost_lease_cancels_the_call_and_drops_its_items(engine: AnyEngine) -> None:
    gate = Gate()
    met: list[BaseException] = []

    async def send(items: Numbers) -> None:
        if items[0].attempt > 1:
            for item in items:
                item.succeed("second attempt")
            return
        items[0].succeed("before")
        gate.started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError as error:
            met.append(error)
            items[1].succeed("by a stale attempt")
            raise

    handler = batch(send)
    async with working(engine, handler, queues=ONE_SLOT) as stage:
        ids = await put_together(stage, handler, range(3))
        await until(gate.started.is_set)
        first = await stage.ended(ids[0])
        holder = stage.worker.holder
        assert holder is not None
        await bury(engine, holder)
        jobs = await ends(stage, ids)

    assert first.result == "before"
    assert len(met) == 1
    assert [(job.result, job.attempt) for job in jobs[1:]] == [("second attempt", 2)] * 2
    assert stage.counters.get("leases_lost") == 2


async def test_a_lease_that_is_not_lost_is_no_way_out(engine: AnyEngine) -> None:
    """A handler may raise LeaseLost of its own accord; only the database knows whether it is true."""

    async def send(items: Numbers) -> None:
        if items[0].attempt == 1:
            items[0].fail(LeaseLost("so it seems"))
            raise LeaseLost("for all")
        for item in items:
            item.succeed("second")

    handler = batch(send)
    async with working(engine, handler, queues=ONE_SLOT) as stage:
        jobs = await run_together(stage, handler, [0, 1])

    assert [(job.result, job.attempt, job.failures) for job in jobs] == [("second", 2, 1)] * 2


@pytest.mark.parametrize("swallows", [True, False])
async def test_a_shutdown_hands_back_what_was_not_decided(engine: AnyEngine, swallows: bool) -> None:
    gate = Gate()

    def send(items: Quiet) -> None:
        items[0].succeed(None)
        gate.started.set()
        try:
            while not items[1].cancelled:
                time.sleep(0.001)
        except CancelRequested:
            if not swallows:
                raise

    handler = batch(send)
    async with working(engine, handler, queues=ONE_SLOT) as stage:
        ids = await put_together(stage, handler, range(3))
        await until(gate.started.is_set)
        await stage.worker.stop(now=True)
    jobs = [await read(engine, each) for each in ids]

    assert states(jobs) == ["succeeded", "queued", "queued"]
    assert [job.failures for job in jobs] == [0, 0, 0]
    assert "released" in await kinds(engine, ids[1])


async def test_a_shutdown_gives_up_a_handler_that_does_not_listen(engine: AnyEngine) -> None:
    gate = Gate()

    def hung(items: Quiet) -> None:
        gate.started.set()
        gate.go.wait(PATIENCE_S)

    handler = batch(hung)
    async with working(engine, handler, queues=ONE_SLOT) as stage:
        ids = await put_together(stage, handler, range(2))
        await until(gate.started.is_set)
        await stage.worker.stop(now=True)
        gate.go.set()
    assert stage.counters.get("handlers_given_up") == 1
    assert states([await read(engine, each) for each in ids]) == ["queued", "queued"]


async def test_a_suspect_shares_its_call_with_nobody(engine: AnyEngine) -> None:
    gate = Gate()

    async def send(items: Quiet) -> None:
        gate.note(items)

    ids = [await submit(engine, "send", {"value": n}) for n in range(2)]
    dead = register(engine)
    assert sorted(job.id for job in claim(engine, dead)) == sorted(ids)
    await bury(engine, dead)
    ids += [await submit(engine, "send", {"value": n}) for n in range(2, 5)]
    async with working(engine, batch(send), queues=ONE_SLOT) as stage:
        for pool in stage.worker._parts.roster.pools:
            pool._reach = 100
        await ends(stage, ids)

    assert [call for call in gate.calls if {0, 1} & set(call)] == [[0], [1]]
    assert sorted(value for call in gate.calls for value in call) == [0, 1, 2, 3, 4]


async def test_the_suspects_after_a_death_do_not_meet_in_the_pool(lite: AnyEngine) -> None:
    """A batch of a suspect is of one even when others wait beside it."""

    async def send(items: Quiet) -> None: ...

    made = [await submit(lite, "send", {"value": n}) for n in range(3)]
    claimed = claim(lite, register(lite))
    assert len(claimed) == len(made)
    pool = pool_of(1)
    attempts = [
        Attempt(structs.replace(job, suspect=n == 1), "h", batch(send)) for n, job in enumerate(claimed)
    ]
    for attempt in attempts:
        pool.put(attempt)

    assert pool.joined(attempts[1]) == [attempts[1]]
    first = await pool.get()
    assert first is not None
    assert pool.joined(first) == [attempts[0], attempts[2]]
    assert pool.waiting == 1


async def test_progress_and_lines_are_kept_with_their_job(engine: AnyEngine) -> None:
    async def send(items: Quiet) -> None:
        for item in items:
            await item.progress(10 * item.value, "going")
            await item.log(f"line {item.value}")

    def plain(items: Quiet) -> None:
        for item in items:
            item.progress(10 * item.value, "going")
            item.log(f"line {item.value}")

    for handler in (batch(send), batch(plain)):
        async with working(engine, handler, queues=ONE_SLOT) as stage:
            jobs = await run_together(stage, handler, [1, 2])
        assert [job.progress for job in jobs] == [10, 20]
        lines = await engine.arun(looking.logs(jobs[1].id))
        assert [line.message for line in lines] == ["line 2"]


async def test_a_job_cancelled_while_it_waited_does_not_start(lite: AnyEngine) -> None:
    gate = Gate()

    async def send(items: Quiet) -> None:
        gate.note(items)

    handler = batch(send)
    async with working(lite, handler, queues=ONE_SLOT) as stage:
        (pool,) = stage.worker._parts.roster.pools
        put = pool.put

        def put_cancelled(attempt: Any) -> None:
            if json.decode(attempt.claimed.args) == {"value": 1}:
                attempt.end(Interrupt.CANCEL)
                lite.run(store.cancel(attempt.claimed.id, actor="ada"))
            put(attempt)

        pool.put = put_cancelled  # type: ignore[method-assign]
        jobs = await run_together(stage, handler, range(3))

    assert gate.calls == [[0, 2]]
    assert states(jobs) == ["succeeded", "cancelled", "succeeded"]


async def test_a_job_cancelled_while_values_are_fetched_does_not_start(
    lite: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths: list[int] = []

    async def send(items: Sequence[BatchItem[str, None]]) -> None:
        lengths.extend(len(item.value) for item in items)

    handler = batch(send)
    async with working(lite, handler, queues=ONE_SLOT) as stage:
        executor = stage.worker._parts.dispatch._executor
        fetched = executor._fetched_args

        async def cancelled_meanwhile(attempt: Attempt) -> bytes:
            for other in stage.worker._parts.roster.held.values():
                if other is not attempt:
                    await lite.arun(store.cancel(other.claimed.id, actor="ada"))
                    other.end(Interrupt.CANCEL)
            return await fetched(attempt)

        monkeypatch.setattr(executor, "_fetched_args", cancelled_meanwhile)
        jobs = await run_together(stage, handler, ["small", "x" * 200_000])

    assert lengths == [200_000]
    assert states(jobs) == ["cancelled", "succeeded"]


async def test_the_cancel_of_one_call_is_not_left_to_the_next(lite: AnyEngine) -> None:
    async def asleep(items: Quiet) -> None:
        await asyncio.sleep(60)

    async def odd(items: Quiet) -> None:
        raise asyncio.CancelledError  # of its own accord: a failure, and the slot lives on

    first, second = batch(asleep), batch(odd)
    async with working(lite, first, second, queues=ONE_SLOT) as stage:
        late = await run_together(stage, first, [1], timeout_s=0.1, attempts_max=1)
        failed = await run_together(stage, second, [1, 2], attempts_max=1)

    assert states(late + failed) == ["failed"] * 3


async def test_what_the_call_was_asked_holds_for_every_open_item(lite: AnyEngine) -> None:
    """The time limits of the items may strike a moment later than that of the call."""

    async def send(items: Quiet) -> None: ...

    for n in range(2):
        await submit(lite, "send", {"value": n})
    first, second = (Attempt(job, "h", batch(send)) for job in claim(lite, register(lite)))
    call = BatchCall(Attempt(first.claimed, "h", batch(send)))
    for attempt in (first, second):
        call.add(
            BatchItem(0, Job(attempt, lite, asyncio.get_running_loop()), bytes, lambda _item: None), attempt
        )
    second.end(Interrupt.CANCEL)
    call.call.end(Interrupt.TIMEOUT)
    call.over()

    assert (first.interrupt, second.interrupt) == (Interrupt.TIMEOUT, Interrupt.CANCEL)
