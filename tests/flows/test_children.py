"""A handler that runs a flow of its own: one slot is enough, and no attempt makes a second one."""

from __future__ import annotations

import psycopg
import pytest

from fencerow import Job
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.errors import FlowConflict, InvalidFlow, LeaseLost
from fencerow.flows import waits
from fencerow.flows.waits import wake_waiters
from fencerow.testing import drain
from tests.core.store.stage import rows
from tests.events.conftest import app_on
from tests.flows.stage import Shop, advanced, end
from tests.kit import jobs
from tests.kit.jobs import AnyEngine


def test_a_parent_and_three_children_end_in_one_slot_of_one_queue(shop: Shop, engine: AnyEngine) -> None:
    @shop.app.job(attempts_max=1)
    async def parent(job: Job, words: list[str]) -> str:
        shop.heard.append("parent")
        flow = shop.app.flow("children")
        for word in words:
            flow.add(word, (shop.fail if word == "bad" else shop.say).call(word))
        found = await flow.arun_within(job)
        return " ".join(
            [
                *(await found.aresults(shop.say)).values(),
                *(f"{name} {each.state}" for name, each in found.items() if each.state != "succeeded"),
            ]
        )

    @shop.app.job(attempts_max=1)
    def plain(job: Job) -> str:
        flow = shop.app.flow("child")
        flow.add("a", shop.say.call("a"))
        return flow.run_within(job).result(shop.say, "a")

    asked, other = parent.submit(["a", "bad", "c"]), plain.submit()
    drain(shop.app, slots=1)

    assert asked.result(0) == "a c bad failed"
    assert other.result(0) == "a"
    assert shop.heard.count("parent") == 2
    assert len(rows(engine, "SELECT id FROM {flows}")) == 2
    assert not rows(engine, "SELECT job_id FROM {flow_waits}")
    assert asked.refresh().failures == 0


def test_what_cannot_be_waited_for_fails_the_job(shop: Shop) -> None:
    @shop.app.job(attempts_max=1)
    def inside(job: Job) -> None:
        with job.transaction():
            flow = shop.app.flow("child")
            flow.add("a", shop.say.call("a"))
            flow.run_within(job)

    @shop.app.job(attempts_max=1)
    def changing(job: Job) -> None:
        flow = shop.app.flow("child")
        flow.add("a", shop.say.call(f"attempt {job.attempt}"))
        flow.run_within(job)

    wrong, other = inside.submit(), changing.submit()
    drain(shop.app)

    for handle, kind in ((wrong, InvalidFlow), (other, FlowConflict)):
        with pytest.raises(Exception, match=kind.code):
            handle.result(0)


def test_a_wait_of_an_earlier_attempt_wakes_nobody(shop: Shop, engine: AnyEngine) -> None:
    flow = shop.flow()
    flow.add("a", shop.say.call("a"))
    handle = flow.submit()
    claimed = jobs.running(engine, holder := jobs.register(engine))
    rows(
        engine,
        "INSERT INTO {flow_waits} (job_id, attempt, flow_id) "
        f"VALUES ('{claimed.id}', {claimed.attempt - 1}, '{handle.id}')",
    )
    engine.run(store.suspend([store.SuspendedAttempt(claimed.id, claimed.attempt)], holder=holder))
    shop.run()

    assert engine.run(wake_waiters(actor=None)) == []
    assert jobs.read(engine, claimed.id).state == "waiting"


def test_waiters_that_a_stranger_has_locked_hide_no_other(
    pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "WAITS_MAX", 2)
    with app_on(pg) as app:
        shop = Shop(app)
        flow = shop.flow()
        flow.add("a", shop.say.call("a"))
        handle = flow.submit()
        holder = jobs.register(pg)
        parents = sorted((jobs.running(pg, holder) for _ in range(3)), key=lambda each: each.id)
        for each in parents:
            pg.run(waits.note_flow_wait(each.id, handle.id, holder=holder, attempt=each.attempt))
        pg.run(
            store.suspend([store.SuspendedAttempt(each.id, each.attempt) for each in parents], holder=holder)
        )
        end(pg, handle.job_named("a").id)
        advanced(pg)

        with psycopg.connect(pg.conninfo) as stranger:
            locked = [each.id for each in parents[:2]]
            stranger.execute("SELECT 1 FROM fencerow.jobs WHERE id = ANY(%s::uuid[]) FOR UPDATE", [locked])
            woken = pg.run(waits.wake_waiters(actor=None))

    assert [each.id for each in woken] == [parents[2].id]


def test_a_job_that_is_gone_gets_no_children(shop: Shop, engine: AnyEngine) -> None:
    lost: list[str] = []

    @shop.app.job(attempts_max=1)
    def parent(job: Job) -> None:
        rows(engine, f"DELETE FROM {{jobs}} WHERE id = '{job.id}'")
        flow = shop.app.flow("children")
        flow.add("a", shop.say.call("a"))
        try:
            flow.run_within(job)
        except LeaseLost:
            lost.append(job.id)
            raise

    asked = parent.submit()
    drain(shop.app)

    assert lost == [asked.id]
    assert (shop.heard, rows(engine, "SELECT id FROM {flows}")) == ([], [])


def test_a_parent_that_is_revived_waits_for_a_child_that_was(shop: Shop, engine: AnyEngine) -> None:
    @shop.app.job(attempts_max=1)
    def parent(job: Job) -> str:
        flow = shop.app.flow("child")
        flow.add("a", shop.say.using(delay_s=60).call("a"))
        return flow.run_within(job).result(shop.say, "a")

    asked = parent.submit()
    drain(shop.app)
    (flow,) = shop.app.flows.known()
    child = shop.app.flows.handle(flow.id).job_named("a")
    child.cancel()
    drain(shop.app)
    assert asked.refresh().state == "failed"

    child.revive()
    asked.revive()
    holder = jobs.register(engine)
    (again,) = jobs.claim(engine, holder, queue="default", names=("parent",), limit=9)
    ended = engine.run(waits.note_flow_wait(again.id, flow.id, holder=holder, attempt=again.attempt))

    assert ended is False
