"""How the slots of a pool share the work: alone while nothing waits, all of them when jobs do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
import pytest

from fencerow.core.model.ids import new_id
from fencerow.core.model.job import Claimed
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.pool import IN_A_ROW_MAX, Pool
from fencerow.db.driven import noticed
from tests.core.worker.stage import handler, pool_of, until

Open = Callable[..., Awaitable[list[str]]]


async def noop() -> None: ...


def attempt() -> Attempt:
    null = msgspec.Raw(b"null")
    fixed = (1, 0, 0, False, 0, 0, 0, 3, 3, None, 0)
    claimed = Claimed(new_id(), "noop", "mail", *fixed, null, null, None, None, None)
    return Attempt(claimed, "holder", handler(noop))


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    """Opens so many slots that have found nothing yet; the list that is returned grows with each job they take."""
    slots: list[asyncio.Task[None]] = []

    async def open_slots(pool: Pool, count: int, wait_for: asyncio.Event | None = None) -> list[str]:
        taken: list[str] = []

        async def run() -> None:
            if wait_for is not None:
                await wait_for.wait()

        async def slot() -> None:
            while (got := await pool.get()) is not None:
                taken.append(got.claimed.id)
                await noticed(run(), pool.stir)
                pool.done()

        slots.extend(asyncio.create_task(slot()) for _ in range(count))
        await asyncio.sleep(0)
        return taken

    yield open_slots
    for each in slots:
        each.cancel()
    await asyncio.gather(*slots, return_exceptions=True)


async def test_one_slot_works_off_alone_what_waits_for_nothing(opened: Open) -> None:
    """And so the event loop gets its turn after some jobs, not after as many of each slot."""
    pool = pool_of(20)
    taken = await opened(pool, 20)
    for _ in range(1_000):
        pool.put(attempt())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert 0 < len(taken) <= 200
    await until(lambda: len(taken) == 1_000)


async def test_jobs_that_wait_run_in_all_slots_at_once(opened: Open) -> None:
    pool = pool_of(20)
    go = asyncio.Event()
    taken = await opened(pool, 20, go)
    for _ in range(30):
        pool.put(attempt())
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(taken) == 20
    go.set()
    await until(lambda: len(taken) == 30)


async def test_what_comes_while_all_that_runs_waits_wakes_another_slot(opened: Open) -> None:
    pool = pool_of(3)
    taken = await opened(pool, 3, asyncio.Event())
    for count in (1, 2, 3):
        pool.put(attempt())
        await asyncio.sleep(0)
        assert len(taken) == count


async def test_a_claimer_that_waits_for_room_is_woken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[str] = []
    pool = pool_of(4)
    monkeypatch.setattr(pool.look.woken, "set", lambda: woken.append("mail"))
    pool.await_room()
    for _ in range(3):
        pool.put(attempt())
    for _ in range(3):
        await pool.get()
        pool.done()
    assert woken == ["mail"]
    pool.await_room()
    pool.put(attempt())
    await pool.get()
    assert woken == ["mail"] * 2


async def test_a_claimer_that_knows_of_nothing_due_is_not_woken_for_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    woken: list[str] = []
    pool = pool_of(4)
    monkeypatch.setattr(pool.look.woken, "set", lambda: woken.append("mail"))
    pool.put(attempt())
    await pool.get()
    pool.done()
    assert pool.wanted() == 4
    assert not woken


def test_what_is_at_hand_leaves_turns_to_the_event_loop_and_ends_slots_that_are_too_many() -> None:
    pool = pool_of(1)
    for _ in range(IN_A_ROW_MAX + 2):
        pool.put(attempt())

    taken = [pool.at_hand() for _ in range(IN_A_ROW_MAX + 1)]

    assert taken[-1] is None and None not in taken[:-1]

    pool = pool_of(1)
    pool.put(attempt())
    pool.open = 2
    assert pool.at_hand() is None
