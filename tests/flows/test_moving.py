"""A whole flow is cancelled, and run again from where it failed."""

from __future__ import annotations

from hashlib import sha512

import psycopg
import pytest
from msgspec.structs import replace

from fencerow import Job
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Operation
from fencerow.errors import Busy, FlowEnded, FlowNotFound, RevivedTooSoon
from fencerow.flows import FlowHandle, moving
from fencerow.flows.moving import BEFORE_ALL, RevivedPortion, ask_flow_cancel, revive_portion
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.events.conftest import app_on, url_of
from tests.flows.stage import Shop, advanced, end
from tests.kit import jobs
from tests.kit.jobs import AnyEngine

cli = command_line.cli  # a fixture


def states(handle: FlowHandle) -> dict[str, str]:
    return {each.name: each.state.value for each in handle.jobs()}


def test_a_cancel_ends_what_nobody_runs_and_asks_those_that_run(shop: Shop, engine: AnyEngine) -> None:
    flow = shop.flow()
    runs = flow.add("runs", shop.say.call("runs"))
    flow.add("queued", shop.say.using(priority=-1).call("queued"))
    flow.chain(("behind", shop.say.call("behind")), ("last", shop.say.call("last")))
    flow.add("tidy", shop.say.call("tidy"), after=[runs])
    handle = flow.submit()
    holder = jobs.register(engine)
    (claimed,) = jobs.claim(engine, holder, queue="default", names=("say",), limit=1)
    assert claimed.id == handle.job(runs).id

    answer = handle.cancel(reason="it is wrong")
    engine.run(
        store.succeed([store.Success(claimed.id, claimed.attempt, "1")], holder=holder)
    )  # it did not listen
    advanced(engine)

    assert (answer.cancelled, answer.asked) == (4, 1)
    assert states(handle) == {
        "runs": "succeeded",
        **dict.fromkeys(("queued", "behind", "last", "tidy"), "cancelled"),
    }
    assert handle.refresh().state == "cancelled"
    with pytest.raises(FlowEnded):
        handle.cancel()
    with pytest.raises(FlowNotFound):
        shop.app.flows.handle(claimed.id).cancel()


def test_what_would_be_woken_after_a_cancel_is_cancelled(shop: Shop, engine: AnyEngine) -> None:
    flow = shop.flow()
    first = flow.add("first", shop.say.call("first"))
    flow.add("behind", shop.say.call("behind"), after=[first])
    handle = flow.submit()
    end(engine, handle.job(first).id)

    assert engine.run(ask_flow_cancel(handle.id, actor=None))  # and whoever cancels was interrupted here
    advanced(engine)

    assert states(handle) == {"first": "succeeded", "behind": "cancelled"}


def test_a_revive_runs_what_failed_and_those_behind_it_in_their_order(shop: Shop, engine: AnyEngine) -> None:
    flow = shop.flow()
    good, bad = flow.add("good", shop.say.call("good")), flow.add("bad", shop.say.call("bad"))
    flow.add("join", shop.join.call(), needs=[good, bad])
    flow.add("last", shop.say.call("last"), needs=["join"])
    flow.on_done(shop.say.call("done"))
    handle = flow.submit()
    with pytest.raises(FlowEnded, match="nothing to run again"):
        handle.revive()
    end(engine, handle.job(good).id)
    end(engine, handle.job(bad).id, fail=True)
    shop.run()
    assert states(handle) == {"good": "succeeded", "bad": "failed", "join": "cancelled", "last": "cancelled"}

    answer = handle.revive(reason="mended")

    assert (answer.queued, answer.waiting, answer.left) == (1, 2, 0)
    assert states(handle) == {"good": "succeeded", "bad": "queued", "join": "waiting", "last": "waiting"}
    assert set(shop.run(handle).values()) == {"succeeded"}
    assert shop.heard == ["done", "bad", "join", "last"]  # nothing twice, the callback neither
    assert handle.refresh().state == "succeeded"


def test_a_flow_is_not_run_again_while_a_job_of_it_is_undone(shop: Shop, engine: AnyEngine) -> None:
    """Those behind that job would wait for its end, which nobody tells twice."""

    def pay() -> int:
        return 5

    def refund(_: int) -> None: ...

    @shop.app.job(attempts_max=1)
    def order(job: Job) -> None:
        job.step("pay", pay, undo=refund)
        job.sleep(3600)

    shop.app.saga(order, undo=[refund])
    flow = shop.flow()
    flow.add("behind", shop.say.call("behind"), needs=[flow.add("order", order.call())])
    handle = flow.submit()
    shop.run()
    handle.job_named("order").cancel()
    advanced(engine)
    ended = handle.refresh()
    assert ended.state == "cancelled"

    with pytest.raises(RevivedTooSoon):
        handle.revive()

    assert states(handle) == {"order": "cancelled", "behind": "cancelled"}
    assert handle.refresh().ended_at_us == ended.ended_at_us
    shop.run()
    assert handle.revive().queued == 1


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A portion has one job."""
    monkeypatch.setattr(moving, "BATCH", 1)


def cancelled_chain(shop: Shop, engine: AnyEngine) -> FlowHandle:
    """a, b and c, one behind the other."""
    flow = shop.flow()
    flow.chain(*((name, shop.say.call(name)) for name in "abc"))
    handle = flow.submit()
    handle.cancel()
    advanced(engine)
    return handle


def portion_of(handle: FlowHandle, after: int = BEFORE_ALL, *, limit: int = 1) -> Operation[RevivedPortion]:
    begun = after is not BEFORE_ALL
    return revive_portion(handle.id, after=after, limit=limit, begun=begun, actor=None, reason=None)


def test_a_flow_whose_revive_was_interrupted_ends_and_the_next_revive_goes_on(
    shop: Shop, engine: AnyEngine
) -> None:
    handle = cancelled_chain(shop, engine)

    engine.run(portion_of(handle))  # and whoever revives was killed here

    assert shop.run(handle) == {"a": "succeeded", "b": "cancelled", "c": "cancelled"}
    assert handle.refresh().state == "cancelled"
    assert handle.revive().queued == 1
    assert set(shop.run(handle).values()) == {"succeeded"}


@pytest.mark.parametrize("again", ["failed", "succeeded"])
def test_a_portion_is_behind_one_that_has_ended_again(shop: Shop, engine: AnyEngine, again: str) -> None:
    handle = cancelled_chain(shop, engine)
    done = engine.run(portion_of(handle))
    end(engine, handle.job_named("a").id, fail=again == "failed")
    advanced(engine)

    engine.run(portion_of(handle, done.after, limit=9))

    ends = {"failed": "cancelled", "succeeded": "succeeded"}
    assert shop.run(handle) == {"a": again, "b": ends[again], "c": ends[again]}
    assert handle.refresh().ended_at_us is not None


def test_a_cancel_between_two_portions_ends_the_revive(shop: Shop, engine: AnyEngine) -> None:
    handle = cancelled_chain(shop, engine)
    done = engine.run(portion_of(handle))
    handle.cancel()

    with pytest.raises(FlowEnded, match="was cancelled"):
        engine.run(portion_of(handle, done.after))

    assert set(shop.run(handle).values()) == {"cancelled"}
    assert handle.revive().queued == 1


def test_what_is_undone_or_gone_behind_the_first_portion_is_left(shop: Shop, engine: AnyEngine) -> None:
    handle = cancelled_chain(shop, engine)
    done = engine.run(portion_of(handle))
    engine.run(store.delete([handle.job_named("c").id]))

    engine.run(portion_of(handle, done.after))
    with pytest.raises(FlowEnded, match="is gone"):
        engine.run(portion_of(handle, done.after + 1))

    assert shop.run(handle) == {"a": "succeeded", "b": "succeeded", "c": "cancelled"}


def test_a_job_that_a_stranger_has_locked_is_waited_for_and_those_behind_it_are_left(
    pg: PostgresEngine, few: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with app_on(pg) as app:
        shop = Shop(app)
        handle = cancelled_chain(shop, pg)
        with psycopg.connect(pg.conninfo) as stranger:
            row = "SELECT 1 FROM fencerow.finished_jobs WHERE id = %s FOR UPDATE"
            stranger.execute(row, [handle.job_named("a").id])
            with monkeypatch.context() as impatient, pytest.raises(Busy):
                impatient.setattr(
                    moving,
                    "revive_portion",
                    lambda *given, **more: replace(revive_portion(*given, **more), patience_s=0.2),
                )
                handle.revive()
            assert set(states(handle).values()) == {"cancelled"}
            stranger.rollback()
            stranger.execute(row, [handle.job_named("b").id])

            answer = handle.revive()

        assert (answer.queued, answer.waiting, answer.left) == (1, 0, 2)
        assert states(handle) == {"a": "queued", "b": "cancelled", "c": "cancelled"}
        assert handle.revive().waiting == 2


def test_many_portions_are_one_revive(shop: Shop, engine: AnyEngine, few: None) -> None:
    handle = cancelled_chain(shop, engine)

    answer = handle.revive()

    assert (answer.queued, answer.waiting, answer.left) == (1, 2, 0)
    assert set(shop.run(handle).values()) == {"succeeded"}


def test_a_flow_of_which_a_job_is_gone_is_not_run_again(shop: Shop, engine: AnyEngine) -> None:
    flow = shop.flow()
    bad = flow.add("bad", shop.say.call("bad"))
    flow.add("behind", shop.say.call("behind"), needs=[bad])
    handle = flow.submit()
    end(engine, handle.job(bad).id, fail=True)
    advanced(engine)
    engine.run(store.delete([handle.job(bad).id]))

    with pytest.raises(FlowEnded, match="is gone"):
        handle.revive()

    assert states(handle) == {"bad": "failed", "behind": "cancelled"}


def test_people_cancel_and_revive_by_commands(shop: Shop, engine: AnyEngine, cli: Cli) -> None:
    flow = shop.flow()
    flow.chain(("a", shop.say.call("a")), ("b", shop.say.call("b")))
    handle = flow.submit()

    assert "2 jobs cancelled, 0 asked" in cli("flows", "cancel", handle.id, "--url", url_of(engine)).out
    advanced(engine)
    assert "1 job queued again, 1 behind" in cli("flows", "revive", handle.id, "--url", url_of(engine)).out


def test_a_flow_of_many_queues_with_long_names_is_submitted_and_listed(shop: Shop) -> None:
    """One entry of an index on PostgreSQL holds 2,704 bytes."""
    queues = [f"{number} {sha512(bytes([number])).hexdigest()}"[:100] for number in range(40)]
    many, few = shop.flow(), shop.flow()
    for number, queue in enumerate(queues):
        many.add(str(number), shop.say.using(queue=queue).call("x"))
    few.add("a", shop.say.using(queue=queues[0]).call("x"))
    stored, listed = many.submit(), few.submit()

    assert {each.id for each in shop.app.flows.known(queues=queues)} == {stored.id, listed.id}
    assert [each.id for each in shop.app.flows.known(queues=queues[:-1])] == [listed.id]
