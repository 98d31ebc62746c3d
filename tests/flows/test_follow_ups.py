"""`job.submit_next(flow)`: a whole flow exists from the success of the job on, once, or never."""

from __future__ import annotations

import pytest

from fencerow import Fail, Job
from fencerow.errors import InvalidInput
from fencerow.flows import standing, waker
from tests.core.store.stage import rows
from tests.events.conftest import app_on
from tests.flows.stage import Shop
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S

FOREVER_S = 3600.0


def handing(shop: Shop, *, fails: bool = False) -> str:
    """The id of a flow that a job hands over: two parts, one behind them, a callback."""

    @shop.app.job(attempts_max=1)
    def first(job: Job) -> str:
        flow = shop.flow("next")
        flow.add("join", shop.join.call(), needs=["a", "b"], stage=True)
        flow.add("a", shop.say.call("a"))
        flow.add("b", shop.say.call("b"))
        flow.on_done(shop.say.call("done"))
        made.append(job.submit_next(flow))
        if fails:
            raise Fail("no")
        return made[0]

    made: list[str] = []
    first.submit()
    shop.run()
    return made[0]


def test_a_flow_follows_a_job(shop: Shop) -> None:
    handle = shop.app.flows.handle(handing(shop))

    assert handle.refresh().state == "succeeded"
    assert handle.result() == "a b"
    assert sorted(shop.heard) == ["a", "b", "done", "join"]
    assert shop.heard.index("join") == 2


def test_no_flow_follows_a_job_that_fails(shop: Shop, engine: AnyEngine) -> None:
    handing(shop, fails=True)

    assert shop.heard == []
    assert rows(engine, "SELECT id FROM {flows}") == []


def test_what_cannot_follow_is_refused_where_it_is_written(shop: Shop) -> None:
    told: list[str] = []

    @shop.app.job(attempts_max=1)
    def first(job: Job) -> None:
        flow, keyed, large, ring = (shop.flow(key=key) for key in (None, "k", None, None))
        keyed.add("a", shop.say.call("a"))
        for at in range(1_001):
            large.add(str(at), shop.say.call("a"))
        ring.add("a", shop.say.call("a"), needs=["a"])
        for each in (keyed, large, ring, shop.flow()):
            with pytest.raises(InvalidInput) as error:
                job.submit_next(each)
            told.append(f"{error.value.code} {error.value.what}")
        flow.add("a", shop.say.call("a"))
        job.submit_next(flow)
        for again in (lambda: job.submit_next(flow), flow.submit):
            with pytest.raises(InvalidInput, match="handed over already"):
                again()

    handle = first.submit()
    shop.run()

    assert handle.result(0) is None
    assert shop.heard == ["a"]
    for said, part in zip(
        told, ("has a key", "more than 1000 follow-ups", "wait for one another", "has no job"), strict=True
    ):
        assert part in said


async def test_the_next_of_a_flow_that_followed_is_woken_at_once(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "LOOK_S", FOREVER_S)
    monkeypatch.setattr(waker, "POLL_S", FOREVER_S)

    async with app_on(engine) as app:
        shop = Shop(app)

        @app.job
        async def first(job: Job) -> str:
            flow = shop.flow()
            flow.chain(*((str(at), shop.say.call(str(at))) for at in range(3)))
            return job.submit_next(flow)

        async with app.worker(slots=2):
            made = await (await first.asubmit()).aresult(PATIENCE_S)
            ended = await app.flows.handle(made).await_ended(PATIENCE_S)

    assert ended.succeeded == 3
