"""Each way in which a document of two stages is left alone, made by hand: it goes on. A fresh one is untouched."""

from __future__ import annotations

from fencerow.core.model.job import Claimed
from fencerow.core.store import store
from fencerow.core.store.attempts import Success
from fencerow.flows import FlowHandle
from fencerow.flows.waking import NIL, mend
from fencerow.testing.clock import DatabaseClock
from tests.core.store.stage import rows
from tests.flows.stage import Shop, advanced
from tests.kit import jobs
from tests.kit.jobs import AnyEngine

LEASE_S, LATER_S, RETRY_S = 30.0, 1_000.0, 100.0


def submitted(shop: Shop, name: str) -> FlowHandle:
    flow = shop.flow(name)
    text = flow.add("text", shop.say.call(f"text of {name}"), stage=True)
    flow.add("boxes", shop.say.call(f"boxes of {name}"), needs=[text], stage=True)
    return flow.submit()


def taken(engine: AnyEngine, holder: str) -> Claimed:
    (claimed,) = jobs.claim(engine, holder, queue="default", names=("say",))
    return claimed


def ended(engine: AnyEngine, holder: str) -> str:
    """The one job that is queued succeeds; nobody tells it."""
    job = taken(engine, holder)
    engine.run(store.succeed([Success(job.id, job.attempt, '"done"')], holder=holder))
    return job.id


def test_what_was_left_alone_goes_on_and_a_fresh_one_is_left(
    shop: Shop, engine: AnyEngine, clock: DatabaseClock
) -> None:
    dying, living = jobs.register(engine, lease_s=LEASE_S), jobs.register(engine, lease_s=1e6)
    made: dict[str, FlowHandle] = {}
    # Their second stage runs: of one in a worker that dies, of the other in one that lives.
    for name, holder in (("refining", dying), ("fresh", living)):
        made[name] = submitted(shop, name)
        ended(engine, holder)
        advanced(engine)
        taken(engine, holder)
    # Their first stage runs, waits for its retry, or has ended; then their worker dies.
    made["running"] = submitted(shop, "running")
    taken(engine, dying)
    made["retried"] = submitted(shop, "retried")
    retried = taken(engine, dying)
    again = store.Requeue(id=retried.id, attempt=1, kind="retried", delay_s=RETRY_S, failures=1)
    engine.run(store.requeue([again], holder=dying))
    made["pending"] = submitted(shop, "pending")
    ended(engine, dying)
    made["unwritten"] = submitted(shop, "unwritten")
    lost = ended(engine, dying)
    rows(
        engine,
        "UPDATE {flow_jobs} SET state = NULL, ended_at = NULL, attempt = NULL, result = NULL, told = false "
        f"WHERE job_id = '{lost}'",
    )
    made["unheard"] = submitted(shop, "unheard")

    clock.advance(LATER_S)
    buried = jobs.bury(engine)
    engine.run(store.reclaim(buried, limit=100, actor="reaper"))
    advanced(engine)
    assert engine.run(mend(NIL, limit=100)).ids == [lost]
    advanced(engine)

    assert buried == [dying]
    found = {name: {each.name: str(each.state) for each in handle.jobs()} for name, handle in made.items()}
    first_again = {"text": "queued", "boxes": "waiting"}
    second_again = {"text": "succeeded", "boxes": "queued"}
    assert found == {
        **dict.fromkeys(("running", "retried", "unheard"), first_again),
        **dict.fromkeys(("refining", "pending", "unwritten"), second_again),
        "fresh": {"text": "succeeded", "boxes": "running"},
    }
    fresh = jobs.read(engine, made["fresh"].job_named("boxes").id)
    assert (fresh.holder, fresh.attempt) == (living, 1)
    due = jobs.claim(engine, living, queue="default", names=("say",), limit=100)
    assert {each.id for each in due} >= {made[name].job_named("text").id for name in ("retried", "unheard")}
