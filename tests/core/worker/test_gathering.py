"""How jobs of a batch handler wait in their pool for more, and what ends that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from fencerow.core.model.ids import new_id
from fencerow.core.model.job import Claimed
from fencerow.core.worker import gathering
from fencerow.core.worker.attempt import Attempt, Interrupt
from fencerow.core.worker.pool import Pool
from tests.core.worker.stage import handler, pool_of

WAIT_S = 30.0


class Timers:
    """The timers of the event loop, which a test lets run out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.set: list[tuple[float, Callable[[], None], asyncio.TimerHandle]] = []
        loop = asyncio.get_running_loop()
        later = loop.call_later

        def call_later(delay_s: float, call: Callable[..., None], *given: object) -> asyncio.TimerHandle:
            timer = later(3600, lambda: None)
            self.set.append((delay_s, lambda: call(*given), timer))
            return timer

        monkeypatch.setattr(loop, "call_later", call_later)

    def run_out(self) -> list[float]:
        """Run what was not cancelled; returns how long each was to wait."""
        due = [(delay_s, call) for delay_s, call, timer in self.set if not timer.cancelled()]
        for _, _, timer in self.set:
            timer.cancel()
        self.set.clear()
        for _, call in due:
            call()
        return [delay_s for delay_s, _ in due]


@pytest.fixture
async def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    return Timers(monkeypatch)


async def send() -> None: ...


async def single() -> None: ...


def attempt(
    *,
    name: str = "send",
    priority: int = 0,
    queue: str = "mail",
    suspect: bool = False,
    wait_s: float = WAIT_S,
) -> Attempt:
    null = msgspec.Raw(b"null")
    fixed = (1, priority, 0, suspect, 0, 0, 0, 3, 3, None, 0)
    claimed = Claimed(new_id(), name, queue, *fixed, null, null, None, None, None)
    made = handler(send if name == "send" else single)
    batch_max = 3 if name == "send" else None
    return Attempt(claimed, "holder", replace(made, batch_max=batch_max, batch_wait_s=wait_s))


async def taken(pool: Pool) -> list[list[Attempt]]:
    """The calls that free slots would make now."""
    calls: list[list[Attempt]] = []
    while True:
        slot = asyncio.create_task(pool.get())
        await asyncio.sleep(0)
        if not slot.done():
            slot.cancel()
            await asyncio.gather(slot, return_exceptions=True)
            return calls
        first = slot.result()
        assert first is not None
        calls.append(pool.joined(first))


async def test_a_call_waits_for_more_until_its_time_is_over(timers: Timers) -> None:
    pool = pool_of(4)
    first, second = attempt(), attempt()
    pool.put(first)
    pool.put(second)
    before = await taken(pool)

    waited = timers.run_out()
    after = await taken(pool)

    assert (before, waited, after) == ([], [WAIT_S], [[first, second]])


async def test_a_full_call_waits_for_nothing(timers: Timers) -> None:
    pool = pool_of(4)
    given = [attempt() for _ in range(4)]
    for each in given:
        pool.put(each)

    calls = await taken(pool)

    assert (calls, pool.waiting) == ([given[:3]], 1)  # the fourth begins a wait of its own


async def test_the_wait_takes_no_slot_from_other_jobs(timers: Timers) -> None:
    pool = pool_of(1)
    other = attempt(name="single", wait_s=0.0)
    pool.put(attempt())
    pool.put(other)

    assert await taken(pool) == [[other]]
    assert pool.waiting == 1


async def test_a_call_that_starts_takes_along_those_that_wait_for_the_next(timers: Timers) -> None:
    pool = pool_of(1)
    first, late = attempt(), attempt(priority=5)
    pool.put(first)
    timers.run_out()
    pool.put(late)

    assert await taken(pool) == [[first, late]]
    assert (pool.waiting, timers.run_out()) == (0, [])


async def test_jobs_of_another_time_limit_or_name_gather_apart(timers: Timers) -> None:
    pool = pool_of(4)
    slow = attempt()
    slow.claimed = msgspec.structs.replace(slow.claimed, timeout_s=60.0)
    quick = attempt()
    pool.put(slow)
    pool.put(quick)

    timers.run_out()

    assert await taken(pool) == [[slow], [quick]]


async def test_a_suspect_waits_for_nobody(timers: Timers) -> None:
    pool = pool_of(1)
    suspect = attempt(suspect=True)
    pool.put(suspect)

    assert await taken(pool) == [[suspect]]


async def test_the_claimer_is_asked_for_what_would_fill_the_call(timers: Timers) -> None:
    pool = pool_of(1)
    before = pool.wanted()
    pool.put(attempt())
    gathering_one = pool.wanted()
    pool.put(attempt(name="single", wait_s=0.0))
    (busy,) = await taken(pool)

    assert (before, gathering_one, pool.wanted(), len(busy)) == (1, 2, 0, 1)  # with no slot free: nothing


async def test_whoever_empties_the_pool_gets_those_that_gather_too(timers: Timers) -> None:
    pool = pool_of(1)
    given = [attempt(), attempt(priority=9)]
    for each in given:
        pool.put(each)

    released = pool.take_all()

    assert (released, pool.waiting, timers.run_out()) == ([given[1], given[0]], 0, [])


async def test_jobs_of_a_queue_that_is_served_no_more_do_not_wait_on(timers: Timers) -> None:
    pool = pool_of(2, "mail", "sms")
    stays, goes = attempt(), attempt(queue="sms")
    pool.put(stays)
    pool.put(goes)

    returned = pool.change(["mail"], 2)
    timers.run_out()

    assert returned == [goes]
    assert await taken(pool) == [[stays]]


async def test_one_that_was_asked_to_end_waits_no_longer_and_the_others_do(timers: Timers) -> None:
    pool = pool_of(2)
    cancelled, waits = attempt(), attempt()
    pool.put(cancelled)
    pool.put(waits)
    cancelled.end(Interrupt.CANCEL)

    pool.let_go_asked()

    assert await taken(pool) == [[cancelled]]
    assert pool.waiting == 1


async def test_a_worker_that_holds_too_many_lets_all_of_them_go_on(
    timers: Timers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "GATHERED_MAX", 2)
    pool = pool_of(4)
    first, second = attempt(), attempt()
    second.claimed = msgspec.structs.replace(second.claimed, timeout_s=60.0)
    pool.put(first)
    pool.put(second)

    assert await taken(pool) == [[first], [second]]
    assert timers.run_out() == []


async def test_a_job_that_has_waited_for_others_is_given_back_no_earlier_for_that(
    timers: Timers, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = pool_of(1)
    pool.put(attempt(name="single", wait_s=0.0))
    await taken(pool)
    waits = attempt()
    pool.put(waits)
    timers.run_out()

    waits.taken -= WAIT_S + 1.0
    before = pool.take_stale()
    waits.taken -= 3.0
    after = pool.take_stale()

    assert (before, after) == ([], [waits])
