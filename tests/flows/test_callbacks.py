"""Callbacks are jobs that are made once it is known how the flow ends, each exactly once."""

from __future__ import annotations

import pytest

from fencerow.flows import Flow
from fencerow.flows.checks import flow_troubles
from fencerow.flows.looking import read_flow_callbacks
from fencerow.flows.removal import purge
from tests.core.client.test_left_out import leave_out
from tests.core.store.stage import rows
from tests.flows.stage import Shop, advanced, end
from tests.kit.jobs import AnyEngine

HOUR_S = 3600.0


def with_callbacks(shop: Shop, *bad: str) -> Flow:
    flow = shop.flow()
    for name in ("a", "b"):
        flow.add(name, (shop.fail if name in bad else shop.say).call(name))
    flow.on_done(shop.say.call("all done"))
    flow.on_succeeded(shop.say.call("all succeeded"))
    flow.on_failed(shop.join.call())
    return flow


@pytest.mark.parametrize(
    ("bad", "expected"),
    [((), ["all done", "all succeeded"]), (("a",), ["all done", "join"]), (("a", "b"), ["all done", "join"])],
    ids=["all succeeded", "one failed", "all failed"],
)
def test_each_is_made_once_when_its_time_has_come(
    shop: Shop, bad: tuple[str, ...], expected: list[str]
) -> None:
    handle = with_callbacks(shop, *bad).submit()

    shop.run()
    shop.run()

    assert sorted(shop.heard[2:]) == expected
    made = {
        each.outcome: each.made_at_us is not None
        for each in shop.app.engine.run(read_flow_callbacks(handle.id))
    }
    assert made == {"done": True, "succeeded": not bad, "failed": bool(bad)}


def test_a_failure_is_told_while_the_others_run_and_all_are_read_there(shop: Shop, engine: AnyEngine) -> None:
    handle = with_callbacks(shop).submit()
    end(engine, handle.job_named("a").id, fail=True)

    (told, *_) = advanced(engine)

    (callback,) = told.made
    assert told.ended == []
    inputs = shop.app.flows.inputs(callback.id)
    assert {name: each.state.value for name, each in inputs.items()} == {"a": "failed", "b": "queued"}
    assert (inputs.error("a") or pytest.fail("no error")).message == "m"
    end(engine, handle.job_named("b").id, fail=True)
    assert sum(len(each.made) for each in advanced(engine)) == 1  # the one of all done


def test_a_callback_that_is_refused_keeps_no_flow_from_going_on(shop: Shop, engine: AnyEngine) -> None:
    flow = shop.flow()
    flow.add("a", shop.say.call("a"))
    flow.add("b", shop.say.call("b"), needs=["a"])
    flow.on_done(shop.say.using(limits=["gone"]).call("c"))
    handle = flow.submit()

    assert shop.run(handle) == {"a": "succeeded", "b": "succeeded"}
    (callback,) = engine.run(read_flow_callbacks(handle.id))
    assert "gone" in str(callback.trouble)
    assert len(rows(engine, "SELECT id FROM {finished_jobs}")) == 2


@pytest.mark.usefixtures("postgres_url")  # whose database is new: the trigger stays
def test_neither_does_one_that_a_trigger_leaves_out(shop: Shop, engine: AnyEngine) -> None:
    leave_out(engine)
    flow = shop.flow()
    flow.add("a", shop.say.call("a"))
    flow.on_done(shop.say.call("bad"))
    handle = flow.submit()

    assert shop.run(handle) == {"a": "succeeded"}
    (callback,) = engine.run(read_flow_callbacks(handle.id))
    assert "left the row of" in str(callback.trouble)


def test_a_flow_whose_jobs_are_revived_alone_has_not_ended(shop: Shop, engine: AnyEngine) -> None:
    flow = shop.flow()
    both = [flow.add(name, shop.say.call(name)) for name in "ab"]
    flow.on_succeeded(shop.say.call("all"))
    handle = flow.submit()
    first, second = (handle.job(each) for each in both)
    end(engine, first.id, second.id, fail=True)
    advanced(engine)
    first.revive()
    second.revive()
    end(engine, first.id)

    made = [job for each in advanced(engine) for job in each.made]
    removed = engine.run(purge(age_s=-HOUR_S, limit=9))

    assert (made, removed) == ([], 0)
    for queues in (None, ["default"]):
        assert [each.id for each in shop.app.flows.known(live=True, queues=queues)] == [handle.id]
    assert engine.run(flow_troubles(age_s=HOUR_S, limit=9)).live == 1
    assert handle.cancel().cancelled == 1
    assert shop.app.flows.known(live=True) == []
    assert engine.run(purge(age_s=-HOUR_S, limit=9)) == 1


def test_a_callback_is_made_once_the_last_job_that_was_revived_alone_has_succeeded(
    shop: Shop, engine: AnyEngine
) -> None:
    flow = shop.flow()
    both = [flow.add(name, shop.say.call(name)) for name in "ab"]
    flow.on_succeeded(shop.say.call("all"))
    handle = flow.submit()
    first, second = (handle.job(each) for each in both)
    end(engine, first.id, second.id, fail=True)
    advanced(engine)
    first.revive()
    second.revive()

    shop.run()

    assert shop.heard[-1] == "all"
