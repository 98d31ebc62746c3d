"""Claims that a hint sends: what may go so, and what waits for the answer."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from fencerow.core.model.job import Claimed
from fencerow.core.model.wakeup import Queued, encode
from fencerow.core.store import store
from fencerow.core.telemetry import Fact
from fencerow.core.worker.hinted import HintedClaims
from fencerow.core.worker.marks import QueueView
from fencerow.db.begun import Over
from fencerow.db.postgres import PostgresEngine
from fencerow.errors import Unavailable
from tests.core.worker.faulty import Faulty
from tests.core.worker.stage import Stage, quick, read, until, worker_of, working
from tests.kit.jobs import QUEUE

SELDOM = quick(poll_max_s=300.0)


@pytest.fixture
def straight(pg: PostgresEngine, request: pytest.FixtureRequest) -> PostgresEngine:
    """Not through a pooler: nothing is prepared there, so no hint sends a claim; who waits for one waits for ever."""
    if request.config.getoption("--through"):
        pytest.skip("no hint sends a claim through a pooler")
    return pg


class Begun:
    """An engine that answers when it is told to."""

    def begin(self, _operation: Any, over: Over) -> bool:
        self.over = over
        return True


async def hinted_start(stage: Stage) -> str:
    """Submit to a worker that has nothing to do, so that the hint alone can start the job."""
    await until(stage.worker._parts.claims.are_idle)
    job_id = await stage.submit("work")
    stage.engine.wake([encode(Queued(QUEUE, 0, None))])
    return job_id


async def work() -> None: ...


async def test_a_hint_sends_the_claim_itself(straight: PostgresEngine) -> None:
    faulty = Faulty(straight)
    async with working(faulty, work, config=SELDOM) as stage:  # type: ignore[arg-type]
        while "claim" not in faulty.begun:  # one that finds no connection at hand is the loop's
            await stage.ended(await hinted_start(stage))

        assert stage.heard.all(Fact.CLAIMED)


async def test_a_refused_claim_is_made_again_by_the_loop(pg: PostgresEngine) -> None:
    faulty = Faulty(pg)
    async with working(faulty, work, config=SELDOM) as stage:  # type: ignore[arg-type]
        await stage.ended(await hinted_start(stage))
        faulty.lose_reply("claim")
        await stage.ended(await hinted_start(stage))

    assert "claim" in faulty.struck


async def test_what_a_hinted_claim_brings_while_the_worker_leaves_is_given_back(
    straight: PostgresEngine,
) -> None:
    faulty = Faulty(straight)
    worker = worker_of(faulty, work, config=SELDOM)  # type: ignore[arg-type]
    async with worker:
        stage = Stage(straight, worker)
        faulty.held_back, job_id = asyncio.Event(), ""
        while "claim" not in faulty.begun:  # one that finds no connection at hand is the loop's
            job_id = await hinted_start(stage)
            ended = partial(stage.heard.all, Fact.SUCCEEDED, job_id=job_id)
            await until(lambda ended=ended: "claim" in faulty.begun or bool(ended()))  # type: ignore[misc]
        leaving = asyncio.create_task(worker.stop())
        await until(lambda: worker._parts.life.leaving)
        asyncio.get_running_loop().call_later(0.2, faulty.held_back.set)
        await leaving

    assert (await read(straight, job_id)).state == "queued"


async def test_the_loop_claims_nothing_before_the_answer_and_meets_what_was_wrong_behind_it() -> None:
    engine, woken, order = Begun(), asyncio.Event(), list[str]()
    hinted = HintedClaims(engine, woken)  # type: ignore[arg-type]

    def brought(_jobs: list[Claimed]) -> None:
        order.append("brought")
        asyncio.get_running_loop().call_soon(order.append, "slot")

    def noted(_jobs: list[Claimed]) -> float:
        order.append("noted")
        raise ValueError("ours")

    assert hinted.begin(
        store.claim(QUEUE, [], holder="", names=[], limit=1, margin_s=0.0), brought, noted, print
    )
    tick = asyncio.create_task(hinted.answered())
    await asyncio.sleep(0)
    assert (hinted.is_free, tick.done()) == (False, False)
    engine.over([], None)
    with pytest.raises(ValueError, match="ours"):
        await tick

    assert order == ["brought", "slot", "noted"], "slots do not wait for what is noted"
    assert woken.is_set() and hinted.is_free
    await hinted.answered()  # it is raised once


async def test_what_fails_wakes_the_loop() -> None:
    engine, woken, met = Begun(), asyncio.Event(), list[BaseException]()
    hinted = HintedClaims(engine, woken)  # type: ignore[arg-type]

    hinted.begin(store.claim(QUEUE, [], holder="", names=[], limit=1, margin_s=0.0), print, len, met.append)
    engine.over(None, error := Unavailable("gone", "", ""))

    assert met == [error] and woken.is_set() and hinted.is_free


def test_a_look_that_is_owed_goes_before_a_hinted_claim() -> None:
    view = QueueView(QUEUE, 1.0)
    view.swept([], 1, 0.0)
    assert view.is_plain()

    view.look_again()

    assert not view.is_plain()
