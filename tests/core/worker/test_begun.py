"""No more jobs begin than the worker's row says may have begun."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from fencerow.core.errors import Busy, OutcomeUnknown
from fencerow.core.model.handler import Handler
from fencerow.core.store import store
from fencerow.core.worker import roster as module
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.lease import WorkerLease
from fencerow.core.worker.pool import Pool
from fencerow.core.worker.roster import StartLimit
from fencerow.db.clock import CarriedClock
from tests.core.worker.stage import Stage, handler, job_of, pool_of, until, working
from tests.core.worker.test_parts import attempt, noop
from tests.kit.jobs import AnyEngine

LOST = OutcomeUnknown("it broke", "it may be stored", "look")


def _batch() -> Handler:
    return replace(handler(noop), batch_max=10)


def _hold(stage: Stage, gate: asyncio.Event) -> None:
    """Let no outcome be written before the gate opens."""
    acker = stage.worker._parts.acker
    write = acker._write_all

    async def held() -> None:
        await gate.wait()
        await write()

    acker._write_all = held  # type: ignore[method-assign]


class Scene:
    """A pool with waiting jobs before a bound."""

    def __init__(self, least: int, waiting: int) -> None:
        attempts = [attempt() for _ in range(waiting)]
        self.held = {each.key: each for each in attempts}
        self.pools: list[Pool] = []
        self.lease, self.clock = WorkerLease(30.0, 1.0), CarriedClock()
        self.begun = StartLimit(least, self.held, self.pools, self.clock, self.lease)
        self.pool = pool_of(100, limit=self.begun)
        self.pools.append(self.pool)
        for each in attempts:
            self.pool.put(each)

    @property
    def asked(self) -> bool:
        """Whether a renewal was asked for."""
        return self.lease.hurried.is_set()

    def put(self, one: Attempt) -> None:
        self.held[one.key] = one
        self.pool.put(one)

    async def begin(self, count: int) -> int:
        """So many slots want a job each; returns how many have got one."""
        slots = [asyncio.create_task(self.pool.get()) for _ in range(count)]
        await asyncio.sleep(0)
        return sum(each.done() for each in slots)


async def test_no_more_begin_than_may() -> None:
    scene = Scene(least=3, waiting=10)

    assert await scene.begin(5) == 3
    assert (scene.begun.count(), scene.begun.met, scene.asked) == (3, True, True)


async def test_whoever_was_refused_goes_on_when_one_is_confirmed() -> None:
    scene = Scene(least=3, waiting=10)
    await scene.begin(5)
    scene.held.popitem()
    scene.begun.go_on()
    await asyncio.sleep(0)

    assert scene.begun.count() == 3


async def test_a_higher_bound_holds_once_the_row_has_it() -> None:
    scene = Scene(least=3, waiting=10)
    await scene.begin(9)
    asked = scene.begun.stated()
    assert (asked, scene.begun.count()) == (6, 3)
    scene.begun.confirmed(asked)
    await asyncio.sleep(0)

    assert scene.begun.count() == 6


async def test_a_lower_one_holds_before_the_row_has_it() -> None:
    scene = Scene(least=3, waiting=10)
    await scene.begin(9)
    before = scene.begun.stated()
    scene.begun.confirmed(before)
    scene.held.clear()
    scene.pool.take_all()
    scene.begun.confirmed(before)

    assert (scene.begun.stated(), scene.begun.room()) == (3, 3)
    scene.begun.confirmed(before)  # it was on its way
    assert scene.begun.room() == 3


async def test_after_a_lost_reply_nothing_is_said_until_all_is_known() -> None:
    begun = Scene(least=3, waiting=0).begun
    said = []
    begun.doubt(LOST)
    for unknown in (True, False, False):
        said.append(begun.stated())
        begun.confirmed(said[-1])
        begun.compared(any_unknown=unknown)

    assert [*said, begun.stated()] == [None, None, None, 3]


@pytest.mark.parametrize(
    "error", [Busy("a claim met a lock", "it waited for too long", "try again"), MemoryError()]
)
async def test_a_claim_of_which_nothing_was_stored_leaves_no_doubt(error: BaseException) -> None:
    begun = Scene(least=3, waiting=0).begun
    begun.doubt(error)

    assert (begun.stated(), begun.room()) == (3, 3)


async def test_after_a_lost_reply_nothing_begins_until_the_row_says_that_all_may_have() -> None:
    scene = Scene(least=3, waiting=10)
    before = scene.begun.stated()
    scene.begun.doubt(LOST)

    assert (await scene.begin(1), scene.asked) == (0, True)
    scene.begun.confirmed(before)  # a renewal that was on its way
    assert scene.begun.room() == 0
    scene.begun.confirmed(scene.begun.stated())
    await asyncio.sleep(0)
    assert scene.begun.count() == 1


async def test_after_the_clock_went_back_nothing_begins_until_the_row_says_that_all_may_have() -> None:
    scene = Scene(least=3, waiting=3)
    scene.clock.turns += 1
    assert await scene.begin(1) == 0
    scene.begun.confirmed(scene.begun.stated())
    await asyncio.sleep(0)
    assert scene.begun.count() == 1
    scene.begun.compared(any_unknown=False)
    assert scene.begun.stated() is None, "as long as what was claimed before is held"
    scene.held.clear()
    other = attempt()
    scene.held[other.key] = other
    scene.begun.waiting = 0
    scene.begun.compared(any_unknown=False)

    assert scene.begun.stated() == 3


async def test_a_clock_that_goes_back_while_nothing_is_held_keeps_nothing_from_beginning() -> None:
    scene = Scene(least=3, waiting=0)
    scene.clock.turns += 1

    assert (scene.begun.room(), scene.begun.stated(), scene.asked) == (3, 3, False)


async def test_a_call_of_a_batch_takes_no_more_than_may_begin() -> None:
    scene = Scene(least=3, waiting=0)
    items = [Attempt(each.claimed, "holder", _batch()) for each in (attempt() for _ in range(8))]
    for each in items:
        scene.put(each)
    first = await scene.pool.get()
    assert first is not None

    assert len(scene.pool.joined(first)) == 3


@pytest.mark.parametrize("ahead", [0, 50])
async def test_a_worker_begins_no_more_while_outcomes_are_not_written(
    lite: AnyEngine, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    monkeypatch.setattr(module, "STARTED_MAX", 4 + ahead)
    monkeypatch.setattr("fencerow.core.worker.assembly.AHEAD", ahead)
    ran: list[int] = []

    async def count(number: int) -> None:
        ran.append(number)

    gate = asyncio.Event()
    async with working(lite, count, queues={"mail": 4}) as stage:
        _hold(stage, gate)
        jobs = [job_of("count", {"number": number}) for number in range(40)]
        await lite.arun(store.submit(jobs))
        stage.worker._parts.wakeups.look_again()
        await until(lambda: len(ran) >= min(40, 4 + ahead), what="as many as may begin")
        await until(lambda: ahead > 0 or stage.worker._parts.roster.started.met, what="the bound is met")
        most = len(ran)
        gate.set()
        await until(lambda: len(ran) == 40, what="all ran")

    assert most == min(40, 4 + ahead)
