"""Jobs of a flow run once all they wait for have ended, or are cancelled with a reason; results outlive them."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Operation
from fencerow.errors import FlowConflict, FlowNotFound, NoFlowResult, OutcomeUnknown, ResultTimeout
from fencerow.flows import waking
from fencerow.flows.waking import NIL, advance, mend
from tests.core.store.stage import rows
from tests.events.conftest import app_on
from tests.flows.stage import Shop, advanced, end
from tests.kit.jobs import AnyEngine


def test_a_job_runs_behind_those_that_it_needs_and_reads_their_results(shop: Shop) -> None:
    flow = shop.flow()
    first = flow.add("first", shop.say.call("first"))
    parts = [flow.add(f"part {at}", shop.say.call(f"part {at}"), needs=[first]) for at in range(3)]
    join = flow.add("join", shop.join.call(), needs=parts)
    handle = flow.submit()
    assert handle.counts().waiting == 4
    with pytest.raises(ResultTimeout, match="5 of 5 jobs have not ended"):
        handle.wait_ended(timeout_s=0)

    shop.run()

    assert shop.heard[0] == "first"
    assert shop.heard[-1] == "join"
    assert handle.job(join).result(0) == "part 0 part 1 part 2"
    assert handle.wait_ended(0).succeeded == handle.counts().total == 5
    assert handle.refresh().state == "succeeded"


def test_what_a_failure_means_is_said_by_each_edge(shop: Shop, engine: AnyEngine) -> None:
    flow = shop.flow()
    bad = flow.add("bad", shop.fail.call("bad"))
    good = flow.add("good", shop.say.call("good"))
    flow.add("needs it", shop.join.call(), needs=[bad, good])
    flow.add("behind that", shop.say.call("never"), needs=["needs it"])
    tidy = flow.add("tidy", shop.join.call(), after=["behind that", good])
    handle = flow.submit()

    found = shop.run(handle)

    assert found == {
        "bad": "failed", "good": "succeeded", "needs it": "cancelled", "behind that": "cancelled", "tidy": "succeeded",
    }  # fmt: skip
    assert handle.job(tidy).result(0) == "good behind that cancelled"
    (reason,) = {
        str(each["detail"])
        for each in rows(engine, "SELECT detail FROM {job_events} WHERE kind = 'cancelled'")
        if "'bad'" in str(each["detail"])
    }
    assert handle.job(bad).id in reason
    assert handle.refresh().state == "failed"


def test_a_flow_is_stored_whole_with_the_callers_transaction_or_not_at_all(
    shop: Shop, engine: AnyEngine
) -> None:
    flow = shop.flow()
    flow.add("a", shop.say.call("a"))
    flow.add("b", shop.say.using(limits=["nobody defined it"]).call("b"), needs=["a"])

    with pytest.raises(Exception, match="nobody defined it"):
        flow.submit()

    assert not rows(engine, "SELECT id FROM {jobs}")
    assert not rows(engine, "SELECT id FROM {flows}")


def test_after_a_lost_answer_a_flow_that_was_there_is_not_called_new(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, lost = shop.app.engine.run, [True, False]

    def losing(operation: Operation[Any]) -> Any:
        done = run(operation)
        if lost.pop(0):
            raise OutcomeUnknown("the answer is lost")
        return done

    flow, keyed = shop.flow(), shop.flow("pages", key="job 7")
    for each in (flow, keyed):
        each.add("a", shop.say.call("a"))
    keyed.submit()
    monkeypatch.setattr(shop.app.engine, "run", losing)

    assert flow.submit().replay is False
    lost[:] = [True, False]
    assert keyed.submit().replay is True
    lost[:] = [True, False]
    assert flow.submit().replay is True


def test_after_a_lost_answer_a_flow_with_a_key_is_its_submitters_own(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, lost = shop.app.engine.run, [True, False]

    def losing(operation: Operation[Any]) -> Any:
        done = run(operation)
        if lost.pop(0):
            raise OutcomeUnknown("the answer is lost")
        return done

    first, own, others = shop.flow(), shop.flow("pages", key="job 7"), shop.flow("pages", key="job 7")
    for each in (first, own, others):
        each.add("a", shop.say.call("a"))
    first.submit()
    monkeypatch.setattr(shop.app.engine, "run", losing)

    assert own.submit().replay is False
    lost[:] = [True, False]
    assert others.submit().replay is True


def test_a_flow_with_a_key_is_made_once(shop: Shop, engine: AnyEngine) -> None:
    def submitted(word: str = "a") -> tuple[str, bool]:
        flow = shop.flow("pages", key="job 7")
        flow.add("a", shop.say.call(word))
        flow.add("b", shop.say.call("b"), needs=["a"])
        handle = flow.submit()
        assert handle.job_named("b").refresh().name == "say"
        return handle.id, handle.replay

    (first, is_replay), (second, is_second_replay) = submitted(), submitted()

    assert (first, is_replay, is_second_replay) == (second, False, True)
    with pytest.raises(FlowConflict):
        submitted("other")
    assert len(rows(engine, "SELECT id FROM {jobs}")) == 2
    assert shop.app.flows.of(shop.app.flows.handle(first).job_named("a").id).id == first


def test_a_fan_out_of_thousands_is_one_submit(shop: Shop, engine: AnyEngine) -> None:
    flow = shop.flow()
    parts = [flow.add(f"part {at}", shop.say.call(str(at))) for at in range(1_200)]
    flow.add("join", shop.join.call(), needs=parts)
    handle = flow.submit()

    assert handle.counts().queued == 1_200
    assert handle.counts().waiting == 1
    assert len(rows(engine, "SELECT before_id FROM {flow_edges}")) == 1_200


def test_results_outlive_the_jobs(shop: Shop, engine: AnyEngine) -> None:
    flow = shop.flow()
    one = flow.add("one", shop.say.call("one"))
    join = flow.add("join", shop.join.call(), needs=[one])
    handle = flow.submit()
    end(engine, handle.job(one).id)
    advanced(engine)
    engine.run(store.delete([handle.job(one).id]))

    inputs = shop.app.flows.inputs(handle.job(join).id)

    assert inputs.result(shop.say, "one") == "done"
    with pytest.raises(NoFlowResult, match="waited for"):
        inputs.result(shop.say, "two")
    with pytest.raises(FlowNotFound):
        shop.app.flows.of(shop.say.submit("alone").id)


def test_an_end_that_nobody_wrote_is_found(shop: Shop, engine: AnyEngine) -> None:
    flow = shop.flow()
    lost = flow.add("lost", shop.say.call("lost"))
    flow.add("behind", shop.say.call("behind"), after=[lost])
    handle = flow.submit()
    rows(engine, f"DELETE FROM {{jobs}} WHERE id = '{handle.job(lost).id}'")

    (missed,) = engine.run(mend(NIL, limit=100)).ids
    advanced(engine)

    assert missed == handle.job(lost).id
    assert handle.job_named("behind").status() == "queued"


def test_a_flow_that_somebody_has_locked_keeps_no_other_from_going_on(
    pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waking, "LOOKED_AT", 2)
    with app_on(pg) as app:
        shop = Shop(app)
        handles = []
        for _ in range(2):
            flow = shop.flow()
            parts = [flow.add(name, shop.say.call(name)) for name in ("a", "b", "c")]
            flow.add("join", shop.join.call(), needs=parts)
            handles.append(flow.submit())
        first, second = sorted(handles, key=lambda each: each.id)
        end(pg, *[each.id for handle in (first, second) for each in handle.jobs() if each.name != "join"])

        with psycopg.connect(pg.conninfo) as stranger:
            stranger.execute("SELECT 1 FROM fencerow.flows WHERE id = %s FOR UPDATE", [first.id])
            told = pg.run(advance(actor=None))

        assert [each.id for each in told.queued] == [each.id for each in second.jobs() if each.name == "join"]
