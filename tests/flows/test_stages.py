"""Stages: an early result that is read while the later stage, with an error of its own, is still to come."""

from __future__ import annotations

import pytest

from fencerow.errors import NoFlowResult, NotReady
from fencerow.flows import FlowHandle
from tests.flows.stage import Shop, advanced, end
from tests.kit.jobs import AnyEngine


def document(shop: Shop, *, refined: bool = True) -> FlowHandle:
    flow = shop.flow("document")
    first = flow.add("extract", shop.say.call("boxes"), stage=True)
    flow.add("refine", (shop.say if refined else shop.fail).call("refined"), needs=[first], stage=True)
    return flow.submit()


def test_the_result_is_that_of_the_newest_stage(shop: Shop, engine: AnyEngine) -> None:
    handle = document(shop)
    with pytest.raises(NotReady):
        handle.result()

    end(engine, handle.job_named("extract").id)
    advanced(engine)
    assert handle.result() == "done"
    assert handle.result(wait_for="refine") == "done"  # it has not ended: what there is
    assert handle.refresh().state == "running"

    shop.run()
    assert handle.result(wait_for="refine", timeout_s=5) == "refined"


def test_a_later_stage_that_fails_leaves_the_result_before_it(shop: Shop) -> None:
    handle = document(shop, refined=False)

    states = shop.run(handle)

    assert states == {"extract": "succeeded", "refine": "failed"}
    assert handle.result(wait_for="refine", timeout_s=5) == "boxes"
    assert handle.job_named("extract").result(0) == "boxes"


def test_a_flow_of_which_no_stage_succeeds_has_no_result(shop: Shop) -> None:
    flow = shop.flow()
    flow.add("extract", shop.fail.call("x"), stage=True)
    handle = flow.submit()
    shop.run()

    with pytest.raises(NoFlowResult):
        handle.result()


async def test_the_twins_for_async_code_say_the_same(shop: Shop) -> None:
    flow = shop.flow("document")
    first = flow.add("extract", shop.say.call("boxes"), stage=True)
    handle = await flow.asubmit()
    assert (await handle.acounts()).queued == 1
    await handle.acancel()

    assert (await handle.ajob(first)).id == (await handle.ajobs())[0].id
    assert (await shop.app.flows.aof((await handle.ajob(first)).id)).id == handle.id
    assert [each.id for each in await shop.app.flows.aknown(live=True)] == [handle.id]
    await shop.app.aclose()


def test_a_cancel_keeps_the_stage_that_has_ended_and_a_revive_goes_on_behind_it(
    shop: Shop, engine: AnyEngine
) -> None:
    handle = document(shop)
    end(engine, handle.job_named("extract").id)
    advanced(engine)

    handle.cancel(reason="enough")
    advanced(engine)
    assert shop.run(handle) == {"extract": "succeeded", "refine": "cancelled"}
    assert handle.result() == handle.result(wait_for="refine", timeout_s=5) == "done"
    assert handle.refresh().state == "cancelled"

    assert (handle.revive().queued, handle.result()) == (1, "done")
    assert shop.run(handle) == {"extract": "succeeded", "refine": "succeeded"}
    assert shop.heard == ["refined"], "the first stage was repeated"
    assert handle.result() == handle.result(wait_for="refine", timeout_s=5) == "refined"


def test_a_flow_that_is_cancelled_before_its_first_stage_has_a_result_once_it_is_revived(
    shop: Shop, engine: AnyEngine
) -> None:
    handle = document(shop)
    handle.cancel()
    advanced(engine)
    with pytest.raises(NoFlowResult):
        handle.result(wait_for="refine", timeout_s=5)

    answer = handle.revive()

    assert (answer.queued, answer.waiting) == (1, 1)
    with pytest.raises(NotReady):
        handle.result()
    shop.run()
    assert (shop.heard, handle.result()) == (["boxes", "refined"], "refined")
