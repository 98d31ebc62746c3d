"""The small parts, each alone: loop, threads, pool, marks, stepping."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from contextvars import ContextVar
from typing import Any

import msgspec
import pytest
from msgspec import structs

from fencerow.core.background.loop import Fatal, Loop, Loops
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import Claimed, QueueLane
from fencerow.core.store.claims import NIL
from fencerow.core.telemetry import Telemetry
from fencerow.core.worker import marks as marks_module
from fencerow.core.worker.attempt import AskedToStop, Attempt
from fencerow.core.worker.marks import QueueView
from fencerow.core.worker.on_loop import OnLoop
from fencerow.core.worker.pool import STALE_S
from fencerow.db.driven import noticed
from fencerow.db.strikes import Striker
from fencerow.db.threads import Threads
from fencerow.errors import Busy, SchemaMissing, Unavailable
from tests.core.worker.stage import handler, pool_of, until
from tests.kit.pace import PATIENCE_S


async def noop() -> None: ...


def claimed(priority: int = 0, run_at_us: int = 0, suspect: bool = False) -> Claimed:
    raw = msgspec.Raw(b"null")
    return Claimed(
        new_id(),
        "noop",
        "mail",
        1,
        priority,
        run_at_us,
        suspect,
        0,
        0,
        0,
        3,
        3,
        None,
        0,
        raw,
        raw,
        None,
        None,
        None,
    )


def attempt(priority: int = 0, queue: str = "mail") -> Attempt:
    return Attempt(structs.replace(claimed(priority), queue=queue), "holder", handler(noop))


# --- loop ------------------------------------------------------------------------------------------


async def test_a_loop_waits_out_trouble_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[float] = []
    telemetry = Telemetry()

    async def tick() -> float:
        calls.append(time.monotonic())
        if len(calls) <= 2:
            raise Unavailable("away")
        loop.stop()
        return 60.0

    loop = Loop("x", tick, telemetry)
    with caplog.at_level(logging.INFO):
        await asyncio.wait_for(loop.run(), PATIENCE_S)

    assert len(calls) == 3
    assert telemetry.counters.get("loop_errors") == 2
    assert "goes on after 2 failed tries" in caplog.text


async def test_of_the_trouble_that_all_loops_meet_only_the_first_tells(
    caplog: pytest.LogCaptureFixture,
) -> None:
    left = {"a": 2, "b": 3, "c": 1}
    loops = Loops(Fatal("w", asyncio.get_running_loop()))

    def ticking(name: str) -> Loop:
        async def tick() -> float:
            left[name] -= 1
            if left[name] >= 0:
                raise Busy("locked") if name == "c" else Unavailable("away")
            loop.stop()
            return 60.0

        loop = Loop(name, tick, Telemetry())
        return loop

    with caplog.at_level(logging.INFO):
        loops.add(*(ticking(name) for name in left))
        loops.start()
        await asyncio.wait_for(asyncio.gather(*loops.tasks.values()), PATIENCE_S)

    told = sorted(record.getMessage() for record in caplog.records)
    assert [line.split(" FR-")[0] for line in told] == [
        "loop a goes on after 2 failed tries",
        "loop a met trouble (try 1):",
        "loop c goes on after 1 failed try",
        "loop c met trouble (try 1):",
    ]


@pytest.mark.parametrize("error", [KeyError("a bug"), SchemaMissing("gone")])
async def test_a_loop_ends_by_what_waiting_cannot_mend(error: Exception) -> None:
    async def tick() -> float:
        raise error

    with pytest.raises(type(error)):
        await Loop("x", tick, Telemetry()).run()


async def test_a_wake_up_during_a_tick_is_not_lost() -> None:
    calls = 0

    async def tick() -> float:
        nonlocal calls
        calls += 1
        if calls == 1:
            loop.wake()
        else:
            loop.stop()
        return 60.0

    loop = Loop("x", tick, Telemetry())
    await asyncio.wait_for(loop.run(), PATIENCE_S)
    assert calls == 2


# --- threads ---------------------------------------------------------------------------------------


async def test_threads_are_reused_and_end_at_the_close() -> None:
    threads = Threads("fencerow-t")
    first = await threads.submit(threading.get_ident, Striker())
    await asyncio.sleep(0)
    await until(lambda: bool(threads._idle))
    second = await threads.submit(threading.get_ident, Striker())
    assert first == second
    gate = threading.Event()
    busy = threads.submit(lambda: gate.wait(PATIENCE_S), Striker())
    threads.close()
    gate.set()
    assert await busy
    await until(lambda: not any(t.name.startswith("fencerow-t-") for t in threading.enumerate()))


async def test_a_strike_ends_the_call_and_never_the_thread() -> None:
    threads, striker, running = Threads("fencerow-t"), Striker(), threading.Event()

    def spin() -> None:
        running.set()
        while True:
            time.sleep(0.0001)

    future = threads.submit(spin, striker)
    await until(running.is_set)
    assert striker.strike(AskedToStop)
    with pytest.raises(AskedToStop, match="asked to stop"):
        await future
    assert not striker.strike(AskedToStop)
    assert await threads.submit(lambda: 7, Striker()) == 7
    threads.close()


async def test_a_strike_that_comes_too_late_is_taken_back() -> None:
    """The call returns from C just as the strike is set: it must not surface in the next call."""
    threads = Threads("fencerow-t")
    for _ in range(300):
        striker = Striker()
        done = threading.Event()
        future = threads.submit(done.wait, striker)
        done.set()
        striker.strike(AskedToStop)
        try:
            await future
        except AskedToStop:
            pass
        assert await threads.submit(lambda: sum(range(200)), Striker()) == 19900
    threads.close()


# --- stepping ----------------------------------------------------------------------------------------


async def test_each_coroutine_steps_in_its_own_context() -> None:
    variable: ContextVar[str] = ContextVar("variable", default="clean")

    async def sets() -> str:
        before = variable.get()
        variable.set("dirty")
        await asyncio.sleep(0)
        assert variable.get() == "dirty"
        return before

    assert [await OnLoop().run((attempt(),), sets()) for _ in range(3)] == ["clean"] * 3
    assert variable.get() == "clean"


@pytest.mark.parametrize(("waits", "told"), [(0, 0), (1, 1), (3, 1)])
async def test_it_is_told_once_when_the_coroutine_waits_for_the_first_time(waits: int, told: int) -> None:
    async def wait() -> None:
        for _ in range(waits):
            await asyncio.sleep(0)

    calls: list[str] = []

    class Limited(Attempt):
        """One whose limit is watched from then on."""

        def __init__(self) -> None:
            super().__init__(claimed(), "holder", handler(noop))

        def limit_time(self) -> None:
            calls.append("in")

    async def inner() -> None:
        await OnLoop().run((Limited(),), wait())

    await noticed(inner(), lambda: calls.append("out"))
    assert calls == ["in", "out"] * told


# --- pool --------------------------------------------------------------------------------------------


async def test_the_more_urgent_of_the_waiting_jobs_runs_first() -> None:
    pool = pool_of(2)
    for priority in (0, 0, 10, -5, 10):
        pool.put(attempt(priority))
    taken = [await pool.get() for _ in range(5)]
    order = [each.claimed.priority for each in taken if each]
    assert order == [10, 10, 0, 0, -5]


async def test_one_arrival_wakes_one_idle_slot() -> None:
    pool = pool_of(3)
    slots = [asyncio.create_task(pool.get()) for _ in range(3)]
    await asyncio.sleep(0)

    pool.put(attempt())
    await asyncio.sleep(0)

    assert [slot.done() for slot in slots] == [True, False, False]
    for _ in range(2):
        pool.put(attempt())
    await asyncio.sleep(0)
    assert [slot.done() for slot in slots] == [True, True, False], "one that waits for nothing takes both"

    pool.stir()  # it waits for something
    await asyncio.wait_for(asyncio.gather(*slots), PATIENCE_S)


async def test_a_slot_that_is_cancelled_as_it_is_woken_passes_the_job_on() -> None:
    pool = pool_of(2)
    first, second = (asyncio.create_task(pool.get()) for _ in range(2))
    await asyncio.sleep(0)

    pool.put(attempt())
    first.cancel()

    await asyncio.wait_for(second, PATIENCE_S)
    assert first.cancelled()


async def test_a_slot_that_ends_as_it_is_woken_leaves_the_job_to_another() -> None:
    pool = pool_of(2)
    pool.open = 2
    slots = [asyncio.create_task(pool.get()) for _ in range(2)]
    await asyncio.sleep(0)

    pool.put(attempt())
    pool.slots = 1

    first, second = await asyncio.wait_for(asyncio.gather(*slots), PATIENCE_S)
    assert first is None
    assert second is not None


async def test_jobs_that_wait_for_nothing_leave_the_event_loop_its_turn() -> None:
    pool = pool_of(1)
    for _ in range(1_000):
        pool.put(attempt())
    taken = 0

    async def slot() -> None:
        nonlocal taken
        while taken < 1_000:
            await pool.get()
            pool.done()
            taken += 1

    running = asyncio.create_task(slot())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert 0 < taken < 200
    await asyncio.wait_for(running, PATIENCE_S)


def test_nothing_is_prefetched_before_a_pace_was_measured_or_while_it_is_slow() -> None:
    pool = pool_of(4)
    assert pool.wanted() == 4
    pool.running = 4
    assert pool.wanted() == 0


async def test_what_waits_too_long_for_a_slot_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = pool_of(1)
    pool.put(attempt())
    await pool.get()
    late, fresh = attempt(), attempt()
    late.taken -= STALE_S + 1
    pool.put(late)
    pool.put(fresh)
    assert pool.take_stale() == [late]
    assert pool.take_all() == [fresh]


def test_a_pool_that_becomes_smaller_keeps_what_its_free_slots_will_take() -> None:
    pool = pool_of(9)
    pool.running = 2
    waiting = [attempt(priority) for priority in (0, 5, 0, 9)]
    for each in waiting:
        pool.put(each)

    returned = pool.change(["mail"], 4)

    assert returned == [waiting[0], waiting[2]], "the less urgent go, in the order in which they came"
    assert pool.take_all() == [waiting[3], waiting[1]]
    assert pool.change(["mail"], 8) == []


def test_a_pool_hands_back_only_what_it_does_not_serve_any_more() -> None:
    pool = pool_of(3, "mail", "docs")
    mail, docs = attempt(), attempt(queue="docs")
    for each in (mail, docs):
        pool.put(each)

    assert pool.change(["mail"], 3) == [docs]
    assert pool.take_all() == [mail]


# --- marks -------------------------------------------------------------------------------------------


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [100.0]
    fake: Any = type("Time", (), {"monotonic": staticmethod(lambda: clock[0])})
    monkeypatch.setattr(marks_module, "time", fake)
    monkeypatch.setattr(marks_module, "by_beat", lambda now, pause_s: now + pause_s)
    return clock


def at_us(seconds: float) -> int:
    """The database's clock is 1,000 s ahead of the host's."""
    return int((seconds + 1000) * 1e6)


def test_lanes_are_claimed_from_the_most_urgent_and_marks_move_on(now: list[float]) -> None:
    view = QueueView("mail", 1.0)
    view.swept(
        [QueueLane(0, at_us(90)), QueueLane(5, at_us(95)), QueueLane(9, at_us(130))], at_us(100), began=100.0
    )
    assert [mark.priority for mark in view.marks()] == [5, 0]
    job = claimed(5, at_us(95))
    view.claimed([job], asked=1)
    assert (view.marks()[0].run_at_us, view.marks()[0].id) == (at_us(95), job.id)
    view.claimed([], asked=5)
    assert view.marks() == []


def test_a_start_that_is_announced_is_waited_for_exactly(now: list[float]) -> None:
    view = QueueView("mail", 60.0)
    view.swept([QueueLane(0, at_us(500))], at_us(100), began=100.0)
    view.hint(0, at_us(100.0005))  # half a millisecond ahead: too early to ask, too near to forget
    assert view.marks() == []
    assert view.pause_s(100.0) == pytest.approx(0.0005, abs=1e-4)
    now[0] = 100.001
    assert view.wants_sweep(100.001)


def test_without_the_databases_clock_an_announcement_leads_to_a_look(now: list[float]) -> None:
    view = QueueView("mail", 60.0)
    view.swept([], 0, began=100.0)
    view.hint(0, at_us(100.5))
    assert view.wants_sweep(100.0)


def test_a_hint_behind_the_mark_lowers_it(now: list[float]) -> None:
    view = QueueView("mail", 60.0)
    view.swept([QueueLane(0, at_us(50))], at_us(100), began=100.0)
    view.claimed([claimed(0, at_us(80))], asked=1)
    view.hint(0, at_us(60))
    assert (view.marks()[0].run_at_us, view.marks()[0].id) == (at_us(60) - 1, NIL)


def test_one_slow_look_does_not_put_the_next_one_off(now: list[float]) -> None:
    view = QueueView("mail", 1.0)
    view.swept([], at_us(100), began=100.0)
    view.swept([], at_us(100), began=99.0)  # it waited a second for a lock
    assert view.pause_s(100.0) == 1.0
    view.swept([], at_us(100), began=99.0)
    assert view.pause_s(100.0) == marks_module.SWEEP_S_MAX
