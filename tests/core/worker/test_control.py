"""Cancels, timeouts and lost leases: seen first, raised then, and at last the handler is given up."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from fencerow.core.model.wakeup import CancelAsked, encode
from fencerow.core.store import store
from fencerow.core.worker.context import Job
from fencerow.errors import CancelRequested, LeaseLost
from tests.core.worker.stage import Stage, kinds, quick, read, until, working
from tests.kit.jobs import AnyEngine


class Flags:
    """What the handlers of a test tell it; threading events, so that plain handlers can use them."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.seen = threading.Event()
        self.go = threading.Event()

    async def wait_started(self) -> None:
        await until(self.started.is_set, what="the start of the handler")
        self.started.clear()


@pytest.fixture
def flags() -> Flags:
    return Flags()


async def cancel(stage: Stage, job_id: str) -> None:
    await stage.engine.arun(store.cancel(job_id, actor="ada"))


async def test_a_queued_job_is_cancelled_at_once(engine: AnyEngine) -> None:
    async def known() -> None: ...

    async with working(engine, known) as stage:
        job_id = await stage.submit("known", delay_s=3600)
        await cancel(stage, job_id)
        assert (await read(engine, job_id)).state == "cancelled"


async def test_a_running_handler_sees_the_cancel_and_stops(engine: AnyEngine, flags: Flags) -> None:
    async def looking(job: Job) -> None:
        flags.started.set()
        while not job.cancelled:
            await asyncio.sleep(0.005)
        flags.seen.set()
        job.raise_if_cancelled()

    def waiting(job: Job) -> None:
        flags.started.set()
        assert job.wait_cancelled(60)
        flags.seen.set()
        job.raise_if_cancelled()

    async with working(engine, looking, waiting, config=quick(cancel_raise_s=60.0)) as stage:
        for name in ("looking", "waiting"):
            flags.seen.clear()
            job_id = await stage.submit(name)
            await flags.wait_started()
            await cancel(stage, job_id)
            job = await stage.ended(job_id)
            assert (job.state, flags.seen.is_set(), job.cancel_requested_by) == ("cancelled", True, "ada")


async def test_a_handler_that_does_not_look_meets_an_exception(engine: AnyEngine, flags: Flags) -> None:
    met: list[BaseException] = []

    async def asleep() -> None:
        flags.started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError as error:
            met.append(error)
            raise

    def busy() -> None:
        flags.started.set()
        try:
            while True:
                time.sleep(0.001)
        except CancelRequested as error:
            met.append(error)
            raise

    async with working(engine, asleep, busy) as stage:
        for name in ("asleep", "busy"):
            job_id = await stage.submit(name)
            await flags.wait_started()
            asked = time.monotonic()
            await cancel(stage, job_id)
            job = await stage.ended(job_id)
            # renewed within 0.2 s, raised 0.2 s later; the rest is a busy machine
            assert time.monotonic() - asked < 20
            assert job.state == "cancelled"

    assert len(met) == 2


async def test_a_handler_that_ignores_the_exception_is_given_up_and_its_slot_replaced(
    engine: AnyEngine, flags: Flags
) -> None:
    async def stubborn() -> None:
        flags.started.set()
        while not flags.go.is_set():
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                pass

    def hung() -> None:
        flags.started.set()
        flags.go.wait(30)  # in C: no exception reaches it

    async def quickly() -> int:
        return 1

    async with working(engine, stubborn, hung, quickly, queues={"mail": 1}) as stage:
        for number, name in enumerate(("stubborn", "hung"), 1):
            job_id = await stage.submit(name)
            await flags.wait_started()
            await cancel(stage, job_id)
            job = await stage.ended(job_id)
            assert job.state == "cancelled"
            assert stage.counters.get("handlers_given_up") == number
            assert (await stage.run("quickly")).state == "succeeded"
        flags.go.set()


async def test_a_cancel_is_seen_at_the_renewal_without_any_wake_up(engine: AnyEngine, flags: Flags) -> None:
    def deaf(_callback: object, **_: object) -> object:
        return lambda: None

    engine.listen = deaf  # type: ignore[method-assign,assignment]

    def waiting(job: Job) -> None:
        flags.started.set()
        job.wait_cancelled(60)
        job.raise_if_cancelled()

    async with working(engine, waiting) as stage:
        job_id = await stage.submit("waiting")
        await flags.wait_started()
        asked = time.monotonic()
        await cancel(stage, job_id)
        await stage.ended(job_id)

    assert time.monotonic() - asked < 20


async def test_a_wake_up_brings_the_cancel_before_the_next_renewal(engine: AnyEngine, flags: Flags) -> None:
    def waiting(job: Job) -> None:
        flags.started.set()
        job.wait_cancelled(60)
        job.raise_if_cancelled()

    async with working(engine, waiting, config=quick(lease_s=240.0, renew_s=80.0)) as stage:
        job_id = await stage.submit("waiting")
        await flags.wait_started()
        await cancel(stage, job_id)
        assert stage.worker.holder is not None
        engine.wake([encode(CancelAsked(stage.worker.holder, job_id))])
        assert (await stage.ended(job_id)).state == "cancelled"


async def test_a_handler_may_finish_although_it_was_asked_to_stop(engine: AnyEngine, flags: Flags) -> None:
    def finishing(job: Job) -> int:
        flags.started.set()
        job.wait_cancelled(60)
        return 7

    async with working(engine, finishing, config=quick(cancel_raise_s=60.0)) as stage:
        job_id = await stage.submit("finishing")
        await flags.wait_started()
        await cancel(stage, job_id)
        job = await stage.ended(job_id)

    assert (job.state, job.result) == ("succeeded", 7)


async def test_a_failure_after_a_cancel_ends_the_job_as_cancelled(engine: AnyEngine, flags: Flags) -> None:
    def failing(job: Job) -> None:
        flags.started.set()
        job.wait_cancelled(60)
        raise RuntimeError("it broke while it stopped")

    async with working(engine, failing, config=quick(cancel_raise_s=60.0)) as stage:
        job_id = await stage.submit("failing")
        await flags.wait_started()
        await cancel(stage, job_id)
        job = await stage.ended(job_id)

    assert (job.state, job.attempt) == ("cancelled", 1)


async def test_an_attempt_that_runs_too_long_counts_as_a_failure(engine: AnyEngine) -> None:
    async def slow() -> None:
        await asyncio.sleep(60)

    def slow_plain() -> None:
        while True:
            time.sleep(0.001)

    async with working(engine, slow, slow_plain, config=quick(cancel_kill_s=30.0)) as stage:
        for name in ("slow", "slow_plain"):
            job = await stage.run(name, timeout_s=0.1, attempts_max=2)
            assert (job.state, job.attempt, job.failures) == ("failed", 2, 2)
            assert job.error["type"].endswith("AttemptTimeout")
    assert stage.counters.get("handlers_given_up") == 0


async def test_a_hung_plain_handler_is_given_up_at_its_timeout(engine: AnyEngine, flags: Flags) -> None:
    def hung() -> None:
        flags.go.wait(30)

    async with working(engine, hung, queues={"mail": 1}) as stage:
        job = await stage.run("hung", timeout_s=0.1, attempts_max=1)
        flags.go.set()

    assert job.error["type"].endswith("AttemptTimeout")
    assert stage.counters.get("handlers_given_up") == 1


async def test_a_late_exception_never_strikes_the_next_job_on_the_thread(lite: AnyEngine) -> None:
    """The timeout falls on the very end of the handler, again and again."""

    def brief(seconds: float) -> None:
        until_s = time.perf_counter() + seconds
        while time.perf_counter() < until_s:
            pass

    def victim() -> int:
        total = 0
        for number in range(2_000):
            total += number
        return total

    async with working(lite, brief, victim, queues={"mail": 1}) as stage:
        ids = []
        for number in range(40):
            await stage.submit("brief", {"seconds": 0.01}, timeout_s=0.01 + number * 1e-5, attempts_max=1)
            ids.append(await stage.submit("victim", timeout_s=30.0, attempts_max=1))
        states = [(await stage.ended(each)).state for each in ids]

    assert states == ["succeeded"] * 40


async def test_a_worker_declared_dead_ends_its_attempts_and_registers_anew(
    engine: AnyEngine, flags: Flags
) -> None:
    met: list[BaseException] = []

    async def asleep(job: Job) -> None:
        flags.started.set()
        try:
            await asyncio.sleep(60 if job.attempt == 1 else 0)
        except asyncio.CancelledError as error:
            met.append(error)
            raise

    async def writing(job: Job) -> str:
        flags.started.set()
        if job.attempt > 1:
            return "second"
        try:  # whichever is first: its own write, or its worker's next look
            await until(flags.go.is_set)
            await job.progress(50)
        except (LeaseLost, asyncio.CancelledError) as error:
            met.append(error)
        return "first"

    async with working(engine, asleep, writing, config=quick(lease_s=60.0, renew_s=1.0)) as stage:
        first = await stage.submit("asleep")
        await flags.wait_started()
        second = await stage.submit("writing")
        await flags.wait_started()
        before = stage.worker.holder
        assert before is not None
        # As another worker's reaper would, after the lease: by the statements alone.
        await bury(engine, before)
        flags.go.set()
        jobs = [await stage.ended(each) for each in (first, second)]

    assert stage.worker.holder is None
    assert [(job.state, job.attempt) for job in jobs] == [("succeeded", 2)] * 2
    assert jobs[1].result == "second"
    assert all(job.holder != before for job in jobs)
    assert len(met) == 2
    assert (await kinds(engine, first)).count("reclaimed") == 1


async def bury(engine: AnyEngine, holder: str) -> None:
    """Declare one worker dead and take its jobs back."""
    assert await engine.arun(store.retire(holder=holder))
    await engine.arun(store.reclaim([holder], limit=100, actor="test"))


async def test_a_handler_knows_how_long_it_may_go_on(engine: AnyEngine) -> None:
    async def left(job: Job) -> float | None:
        return job.remaining_s

    async with working(engine, left) as stage:
        bounded, unbounded = await stage.run("left", timeout_s=60.0), await stage.run("left")

    assert 50 < bounded.result <= 60
    assert unbounded.result is None
