"""A handler that blocks the event loop: it is named, its time limit holds, and its neighbours pay for nothing."""

from __future__ import annotations

import asyncio
import math
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import pytest
from msgspec import structs

from fencerow.batches.item import BatchItem
from fencerow.core.model.wanted import Blocked
from fencerow.core.telemetry import Fact, Telemetry
from fencerow.core.worker import blocked
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.blocked import LoopWatch
from fencerow.core.worker.on_loop import OnLoop
from fencerow.db.loop_frames import waits_for_events
from fencerow.db.recent import Recent
from tests.batches.test_batches import batch
from tests.core.worker.stage import Stage, handler, quick, working
from tests.core.worker.test_parts import claimed
from tests.db.test_service import until
from tests.kit.jobs import AnyEngine

BOUND_S = 60.0
LIMIT_S = 4.0  # of a job that itself needs a moment
Quiet = Sequence[BatchItem[int, None]]
STAGES: list[Stage] = []


def block_until_told() -> None:
    """Keep the loop until the watch has said so."""
    stage, deadline = STAGES[-1], time.monotonic() + BOUND_S
    while not stage.heard.all(Fact.LOOP_BLOCKED):
        assert time.monotonic() < deadline, "nobody noticed"
        time.sleep(0.01)


async def blocks() -> None:
    block_until_told()


async def blocks_in_a_task() -> None:
    async def inner() -> None:
        block_until_told()

    await asyncio.create_task(inner())


async def blocks_in_a_callback() -> None:
    done = asyncio.get_running_loop().create_future()

    def call() -> None:
        block_until_told()
        done.set_result(None)

    asyncio.get_running_loop().call_soon(call)
    await done


@pytest.mark.parametrize("function", [blocks, blocks_in_a_task, blocks_in_a_callback])
async def test_who_blocks_the_loop_is_named_with_the_stack(
    lite: AnyEngine, function: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    async with working(lite, function) as stage:
        STAGES.append(stage)
        job = await stage.run(function.__name__)
        (told,) = stage.heard.all(Fact.LOOP_BLOCKED)
        while not (stated := stage.worker._parts.block.told()) or not stated.is_over:
            await asyncio.sleep(0.01)
        assert '"is_over":true' in stage.worker._parts.control.stated()

    assert (told["job_id"], told["job"]) == (job.id, function.__name__)
    assert "in block_until_told" in told["where"]
    assert (stated.job_id, stated.seconds >= told["seconds"]) == (job.id, True)
    assert "block_until_told()" in caplog.text, "the stack is in the log"
    assert stage.counters.get("loop_blocked") == 1


async def test_what_returns_beyond_its_time_limit_is_no_success(engine: AnyEngine) -> None:
    """It never waits, so nothing could interrupt it."""

    async def never_waits() -> int:
        time.sleep(0.6)
        return 1

    async def waits_before() -> int:
        await asyncio.sleep(0)
        time.sleep(0.6)
        return 1

    async with working(engine, never_waits, waits_before) as stage:
        for name in ("never_waits", "waits_before"):
            job = await stage.run(name, timeout_s=0.3, attempts_max=1)
            assert (job.state, job.failures) == ("failed", 1)
            assert "FR-403" in str(job.error)


async def test_a_worker_that_was_told_not_to_ends_no_process(lite: AnyEngine) -> None:
    """The process is this one: it would be gone by then, with all its tests."""

    async def never_waits() -> None:
        time.sleep(2.5)

    async with working(lite, never_waits, config=quick(cancel_kill_s=0.2)) as stage:
        job = await stage.run("never_waits", timeout_s=0.1, attempts_max=1)

    assert (job.state, stage.counters.get("loop_blocked")) == ("failed", 1)


async def test_what_it_did_in_its_transaction_is_rolled_back(engine: AnyEngine) -> None:
    async def writes(job: Any) -> int:
        async with job.transaction():
            time.sleep(0.6)
        return 1

    async with working(engine, writes) as stage:
        job = await stage.run("writes", timeout_s=0.3, attempts_max=1)

    assert (job.state, "FR-403" in str(job.error)) == ("failed", True)


async def test_a_neighbour_gets_back_the_time_that_another_kept_the_loop(engine: AnyEngine) -> None:
    began = asyncio.Event()

    async def keeps_the_loop() -> None:
        await began.wait()
        time.sleep(1.5 * LIMIT_S)

    async def patient() -> int:
        began.set()
        await asyncio.sleep(0.1)
        await asyncio.sleep(0.1)
        return 1

    async with working(engine, keeps_the_loop, patient) as stage:
        blocker = await stage.submit("keeps_the_loop")
        job = await stage.run("patient", timeout_s=LIMIT_S, attempts_max=1)
        await stage.ended(blocker)

    assert (job.state, job.failures) == ("succeeded", 0)


async def test_a_time_limit_still_ends_what_waits(engine: AnyEngine) -> None:
    async def hangs() -> None:
        await asyncio.Event().wait()

    async with working(engine, hangs) as stage:
        job = await stage.run("hangs", timeout_s=0.3, attempts_max=1)

    assert (job.state, "FR-403" in str(job.error)) == ("failed", True)


async def test_items_of_a_batch_that_overran_are_no_successes(lite: AnyEngine) -> None:
    async def late(items: Quiet) -> None:
        time.sleep(0.6)

    async with working(lite, batch(late)) as stage:
        job = await stage.run("late", {"value": 1}, timeout_s=0.3, attempts_max=1)

    assert (job.state, "FR-403" in str(job.error)) == ("failed", True)


# --- when it ends the process ------------------------------------------------------------------------------


class Clock:
    """Moves when somebody waits; a wait may take longer than was asked, as for a process that was stopped."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.stands_still_s = 0.0
        self.stopped = False

    def monotonic(self) -> float:
        return self.now

    def wait(self, pause_s: float) -> bool:
        self.now += pause_s + self.stands_still_s
        self.stands_still_s = 0.0
        return self.stopped

    def set(self) -> None:
        self.stopped = True


class Deaf:
    """An event loop that does not answer."""

    def call_soon_threadsafe(self, _call: object) -> None: ...


class Scene:
    """A watch over a loop that is kept by one attempt from its begin on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, timeout_s: float | None) -> None:
        self.clock = Clock()
        self.ends: list[tuple[str, tuple[Attempt, ...]]] = []
        monkeypatch.setattr(blocked, "time", self.clock)
        self.attempt = Attempt(structs.replace(claimed(), timeout_s=timeout_s), "holder", handler(blocks))
        self.attempt.started = self.clock.now
        self.attempt.deadline = math.inf if timeout_s is None else self.clock.now + timeout_s
        on_loop = OnLoop()
        on_loop.attempts, on_loop.since = (self.attempt,), self.clock.now
        held = {self.attempt.key: self.attempt}
        ending: Any = self  # it would end the process
        deaf: Any = Deaf()
        self.watch = LoopWatch(deaf, on_loop, held, Telemetry(), Recent[Blocked](), ending, kill_s=10.0)
        self.watch._stopped = self.clock  # type: ignore[assignment]

    def end(self, reason: str, late: tuple[Attempt, ...]) -> None:
        self.ends.append((reason, late))

    def after(self, seconds: float) -> list[tuple[str, tuple[Attempt, ...]]]:
        until = self.clock.now + seconds
        while self.clock.now < until and not self.clock.stopped:
            self.watch._turn()
        return self.ends


def test_past_the_time_limit_and_what_a_cancel_may_take_the_process_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(monkeypatch, timeout_s=3.0)

    assert scene.after(12.5) == []
    ((reason, late),) = scene.after(2.0)
    assert "ran past its 3 s" in reason
    assert late == (scene.attempt,)


def test_without_a_time_limit_it_is_only_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Scene(monkeypatch, timeout_s=None).after(10_000.0) == []


def test_a_process_that_was_stopped_is_not_judged_by_what_it_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGSTOP, a laptop's lid: the loop could not answer, and perhaps would have."""
    scene = Scene(monkeypatch, timeout_s=3.0)
    scene.after(1.0)
    scene.clock.stands_still_s = 3600.0
    scene.after(0.1)

    assert scene.after(9.0) == []
    assert len(scene.after(3.0)) == 1, "then it is seen to be blocked"


@pytest.mark.parametrize(("share", "by"), [(0.9, "too little processor time"), (0.1, "code of no known job")])
def test_a_loop_that_got_no_processor_is_blocked_by_no_code(
    monkeypatch: pytest.MonkeyPatch, share: float, by: str
) -> None:
    scene = Scene(monkeypatch, timeout_s=None)
    scene.watch._held = {}  # no job is in it
    began = scene.clock.now
    monkeypatch.setattr(scene.watch._processor, "seconds", lambda: share * (scene.clock.now - began))
    scene.after(5.0)

    stated = scene.watch._block.last
    assert stated is not None and stated[0].by == by


def test_a_loop_that_waits_for_events_is_told_from_a_handler_that_waits_for_its_own() -> None:
    loop = asyncio.SelectorEventLoop()  # not uvloop's: of a loop in C nobody can say so
    thread = threading.Thread(target=loop.run_forever)
    here, there = socket.socketpair()

    def waits() -> None:
        with selectors.DefaultSelector() as own:
            own.register(here, selectors.EVENT_READ)
            entered.set()
            own.select()

    def frame() -> FrameType | None:
        return sys._current_frames().get(thread.ident or 0)

    entered = threading.Event()
    thread.start()
    until(lambda: waits_for_events(frame(), loop))
    with here, there:
        loop.call_soon_threadsafe(waits)
        assert entered.wait(BOUND_S)
        until(lambda: (at := frame()) is not None and at.f_code.co_name == "select")
        assert not waits_for_events(frame(), loop), "it would not answer"
        there.send(b"x")
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
    loop.close()


def test_asked_to_end_the_loop_has_its_grace_and_less_in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Scene(monkeypatch, timeout_s=None)
    first.after(100.0)
    first.watch.leave_asked(hurry=False)
    assert first.after(9.0) == []
    ((reason, late),) = first.after(2.0)
    assert ("asked to end" in reason, late) == (True, ())

    second = Scene(monkeypatch, timeout_s=None)
    second.watch.leave_asked(hurry=False)
    assert second.after(3.0) == []
    second.watch.leave_asked(hurry=True)
    second.watch.leave_asked(hurry=True)
    assert len(second.after(2.0)) == 1
