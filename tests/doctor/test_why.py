"""why: each condition of a claim is told by itself, and a claim agrees with the answer."""

from __future__ import annotations

import asyncio
import re

import msgspec
import pytest

from fencerow.client import Client
from fencerow.core.model.ids import new_id
from fencerow.core.model.wanted import SlotGroupNow, Stated
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Procedure
from fencerow.db.sqlite import SqliteEngine
from fencerow.doctor.why import Diagnosis, why
from fencerow.errors import ArgumentsTooNew, JobNotFound, ResultTimeout, Unavailable
from fencerow.operators import changes
from fencerow.operators.job_change import JobChange
from fencerow.operators.queues import pause_queue
from fencerow.testing.clock import DatabaseClock
from fencerow.web.dashboard.cost import Cost
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.kit import jobs

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

AnyEngine = SqliteEngine | PostgresEngine


def worker(
    engine: AnyEngine,
    queues: str = '{"mail":1}',
    names: str = '["send"]',
    slots: int = 1,
    stated: Stated | None = None,
) -> str:
    holder = new_id()
    text = None if stated is None else msgspec.json.encode(stated).decode()
    info = f'{{"queues":{queues},"names":{names},"slots":{slots},"version":"1"}}'
    assert engine.run(
        store.register(holder=holder, name="w1", host="h1", pid=7, info=info, lease_s=30.0, stated=text)
    )
    return holder


def ask(engine: AnyEngine, job_id: str) -> Diagnosis:
    return engine.run(why(job_id))


def false(answer: Diagnosis) -> set[str]:
    """The conditions that do not hold."""
    return {each.name for each in answer.conditions if each.holds is False}


def found(answer: Diagnosis, name: str) -> str:
    return next(each.found for each in answer.conditions if each.name == name)


def test_a_clock_that_went_back_is_told_with_what_is_due_all_the_same(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    before, later = jobs.submit(engine, jobs.new_job(), jobs.new_job(delay_s=7200))
    clock.advance(-3600)
    (since,) = jobs.submit(engine, jobs.new_job(delay_s=600))
    worker(engine)
    assert "is due" in false(ask(engine, before)), "nobody carries the time on"
    worker(engine, stated=Stated(0, (SlotGroupNow(("mail",), 2),), clock_behind_s=3600.0))

    assert "is due" not in false(ask(engine, before))
    assert "went back by 1 h: it was due before" in found(ask(engine, before), "is due")
    assert "is due" in false(ask(engine, later))
    assert "is due" in false(ask(engine, since))


def test_when_every_condition_holds_the_job_is_claimed(engine: AnyEngine) -> None:
    holder = worker(engine)
    (job_id,) = jobs.submit(engine)

    answer = ask(engine, job_id)

    assert false(answer) == set()
    assert "every condition holds" in answer.summary
    assert "50 ×" in answer.summary, "the bound of the sweep is told"
    assert [job.id for job in jobs.claim(engine, holder)] == [job_id]


def test_a_job_for_later_is_not_due(engine: AnyEngine) -> None:
    worker(engine)
    (job_id,) = jobs.submit(engine, jobs.new_job(delay_s=3600.0))

    assert false(ask(engine, job_id)) == {"is due"}
    assert found(ask(engine, job_id), "is due").startswith(("due in 1 h", "due in 59 min"))


def test_a_paused_queue_is_told_with_who_and_why(engine: AnyEngine) -> None:
    worker(engine)
    (job_id,) = jobs.submit(engine)
    engine.run(pause_queue("mail", actor="ada", reason="moving"))

    answer = ask(engine, job_id)

    assert false(answer) == {"queue is open"}
    assert answer.summary.startswith("queue mail was paused"), "said straight, in no double negation"
    assert found(answer, "queue is open").endswith("by ada: moving")


def test_a_job_that_waits_for_its_turn_names_the_gate(engine: AnyEngine) -> None:
    worker(engine)
    (job_id,) = jobs.submit(engine, jobs.new_job(exclusive="shelf-7"))

    answer = ask(engine, job_id)

    assert false(answer) == {"its key and limits let it start"}
    assert answer.summary.startswith("the exclusive key shelf-7 has room; it is the next")


def test_a_paused_worker_is_told_with_the_way_out(engine: AnyEngine) -> None:
    serving = Stated(3, (SlotGroupNow(("mail",), 2),), paused=True)
    worker(engine, stated=serving)
    (job_id,) = jobs.submit(engine)

    answer = ask(engine, job_id)
    assert false(answer) == {"one of those workers claims"}
    assert found(answer, "one of those workers claims").endswith("`fencerow workers resume w1`")

    worker(engine, stated=Stated(0, (SlotGroupNow(("mail",), 2),)))
    assert false(ask(engine, job_id)) == set()


def test_what_a_worker_serves_now_counts_not_what_it_registered(engine: AnyEngine) -> None:
    worker(engine, queues='{"mail":1}', stated=Stated(1, (SlotGroupNow(("docs",), 2),)))
    (job_id,) = jobs.submit(engine)

    assert false(ask(engine, job_id)) == {"a living worker serves the queue"}


def test_without_a_worker_nothing_runs(engine: AnyEngine) -> None:
    (job_id,) = jobs.submit(engine)

    answer = ask(engine, job_id)

    assert false(answer) == {"a living worker knows the job", "a living worker serves the queue"}
    assert "fencerow worker" in answer.summary


def test_a_name_nobody_knows_and_a_queue_nobody_serves_are_told_apart(engine: AnyEngine) -> None:
    worker(engine)
    (unknown,) = jobs.submit(engine, jobs.new_job(name="other"))
    (unserved,) = jobs.submit(engine, jobs.new_job(queue="other"))

    assert false(ask(engine, unknown)) == {"a living worker knows the job"}
    assert false(ask(engine, unserved)) == {"a living worker serves the queue"}


def test_the_closest_names_are_told(engine: AnyEngine) -> None:
    worker(engine, queues='{"mail":1}', names='["send"]')
    (unknown,) = jobs.submit(engine, jobs.new_job(name="sendd"))
    (unserved,) = jobs.submit(engine, jobs.new_job(queue="mial"))

    assert "the closest that they have: send" in ask(engine, unknown).summary
    assert "the closest that they have: mail" in ask(engine, unserved).summary


def test_workers_that_know_it_and_workers_that_serve_it_are_not_enough(engine: AnyEngine) -> None:
    worker(engine, queues='{"mail":1}', names='["other"]')
    worker(engine, queues='{"docs":1}', names='["send"]')
    (job_id,) = jobs.submit(engine)

    answer = ask(engine, job_id)

    assert false(answer) == {"one worker does both"}
    assert "those that know send do not serve queue mail" in answer.summary


def test_arguments_that_are_too_new_are_told(engine: AnyEngine) -> None:
    holder = worker(engine)
    claimed = jobs.running(engine, holder)
    detail = msgspec.json.encode({"reason": f"{ArgumentsTooNew.code}: they are of version 2"}).decode()
    given_up = store.Requeue(
        id=claimed.id, attempt=claimed.attempt, kind="released", delay_s=60.0, detail=detail
    )
    engine.run(store.requeue([given_up], holder=holder))

    answer = ask(engine, claimed.id)

    assert false(answer) == {"is due", "workers can read its arguments"}
    assert "Finish the deploy" in found(answer, "workers can read its arguments")


def why_late(engine: AnyEngine, job_id: str) -> str:
    """What a caller is told who waited for the job's result in vain."""
    client = Client(engine)
    try:
        with pytest.raises(ResultTimeout) as late:
            client.handle(job_id).result(0.05)
    finally:
        client.close()
    return late.value.why


def test_who_waits_in_vain_learns_that_no_worker_lives(engine: AnyEngine) -> None:
    (job_id,) = jobs.submit(engine)

    assert "no worker is alive" in why_late(engine, job_id)


def test_and_what_else_keeps_the_job(engine: AnyEngine) -> None:
    holder = worker(engine)
    due, later = jobs.submit(engine, jobs.new_job(), jobs.new_job(delay_s=7200))
    (unserved,) = jobs.submit(engine, jobs.new_job(queue="other"))

    assert why_late(engine, due) == "it waits in queue mail for a slot of a worker"
    assert why_late(engine, later) in ("due in 2 h", "due in 1 h 59 min")
    assert "living workers that serve queue other: 0 of 1" in why_late(engine, unserved)
    assert why_late(engine, jobs.running(engine, holder).id).startswith("attempt 1, claimed 0.")
    engine.run(pause_queue("mail", actor="ada", reason="too many bounces"))
    assert "was paused" in why_late(engine, due) and "too many bounces" in why_late(engine, due)


async def test_so_does_who_waits_in_async_code(engine: AnyEngine) -> None:
    (job_id,) = jobs.submit(engine)
    client = Client(engine)

    with pytest.raises(ResultTimeout, match="no worker is alive"):
        await client.handle(job_id).aresult(0.05)

    await client.aclose()


class Broken(Client):
    """A client that cannot say why."""

    def why_waiting(self, job_id: str) -> Procedure[str]:
        raise Unavailable("gone")


async def test_a_question_that_fails_hides_no_timeout(engine: AnyEngine) -> None:
    (job_id,) = jobs.submit(engine)
    client = Broken(engine)

    with pytest.raises(ResultTimeout, match="it is still queued or running"):
        await client.handle(job_id).aresult(0.05)
    with pytest.raises(ResultTimeout, match="it is still queued or running"):
        await asyncio.to_thread(client.handle(job_id).result, 0.05)

    await client.aclose()


def test_full_slots_and_the_place_in_the_lane_are_told(engine: AnyEngine) -> None:
    holder = worker(engine, slots=1)
    jobs.running(engine, holder)
    _, (last,) = jobs.submit(engine), jobs.submit(engine)

    answer = ask(engine, last)

    assert false(answer) == {"a slot is free", "is next in its queue"}
    assert found(answer, "a slot is free").startswith(
        "0 of 1 slot free in the workers that would take it: they run send (1), the longest since "
    )
    assert found(answer, "is next in its queue").startswith("due jobs of queue mail that come before it: 1;")


def test_an_expired_job_is_told(engine: AnyEngine, clock: DatabaseClock) -> None:
    worker(engine)
    (job_id,) = jobs.submit(engine, jobs.new_job(expires_s=5.0))
    clock.advance(6.0)

    assert "is still in time" in false(ask(engine, job_id))


def test_it_asks_no_more_however_many_workers_live_and_queues_are_paused(engine: AnyEngine) -> None:
    job_id = jobs.submit(engine)[0]
    asked: list[int] = []
    for number in (1, 20):
        for each in range(number):
            worker(engine)
            engine.run(pause_queue(f"other-{number}-{each}", actor="ada"))
        cost = Cost(statements_max=100, rows_max=100)
        engine.run(cost.counting(why(job_id)))
        asked += [cost.statements]

    assert asked[0] == asked[1]


def test_a_suspect_waits_for_a_worker_that_runs_none(engine: AnyEngine) -> None:
    first = worker(engine, slots=9)
    (one,) = [jobs.running(engine, first).id]
    (two,) = [jobs.running(engine, first).id]
    engine.run(store.retire(holder=first))
    engine.run(store.reclaim([first], limit=10, actor=None))
    second = worker(engine, slots=9)

    (claimed,) = engine.run(store.claim_suspect("mail", holder=second, names=["send"], margin_s=1.0))
    left = two if claimed.id == one else one
    answer = ask(engine, left)

    assert false(answer) == {"may run beside others"}
    assert "workers that run none now: 0 of 1" in found(answer, "may run beside others")


def test_a_running_job_is_told_with_its_holder(engine: AnyEngine) -> None:
    holder = worker(engine)
    job = jobs.running(engine, holder)

    answer = ask(engine, job.id)

    assert re.fullmatch(r"attempt 1, claimed \d\.\d s ago by w1 on h1, pid 7", answer.summary)
    assert "w1 on h1, pid 7" in found(answer, "holder is alive")


def test_a_running_job_of_the_dead_and_a_cancel_that_was_asked_are_told(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    job = jobs.running(engine, worker(engine), timeout_s=1.0)
    engine.run(store.cancel(job.id, actor="ada"))
    clock.advance(3600.0)

    answer = ask(engine, job.id)

    assert false(answer) == {"holder is alive", "deadline is ahead", "is still wanted"}
    assert "worker is gone" in answer.summary
    assert "by ada" in found(answer, "is still wanted")


def test_a_finished_job_is_told_with_its_end(engine: AnyEngine) -> None:
    (job_id,) = jobs.submit(engine)
    engine.run(store.cancel(job_id, actor=None))
    failed = jobs.running(engine, holder := jobs.register(engine))
    engine.run(store.fail([store.Failure(failed.id, 1, '{"message":"no such street"}')], holder=holder))

    cancelled, broken = ask(engine, job_id), ask(engine, failed.id)

    assert re.fullmatch(r"it ended \d\.\d s ago, in attempt 0", cancelled.summary) and not false(cancelled)
    assert re.fullmatch(r"it ended \d\.\d s ago, in attempt 1: no such street", broken.summary)
    assert "failed: it ended" in found(broken, "has ended")


def test_a_job_that_is_nowhere_is_an_error(engine: AnyEngine) -> None:
    with pytest.raises(JobNotFound):
        ask(engine, new_id())


def test_the_command_prints_the_answer(cli: Cli, url: str, engine: AnyEngine) -> None:
    (job_id,) = jobs.submit(engine)

    document, table = cli("why", job_id, "--json").json, cli("why", job_id)

    assert document["id"] == job_id
    assert {"name", "holds", "found", "facts"} == document["conditions"][0].keys()
    assert table.code == 0
    condition, first, *_, summary = table.out.splitlines()
    assert condition.startswith("condition") and " no " in first, "what keeps it comes first"
    assert summary == f"{job_id} is queued: {document['summary']}", "and the answer last"


def test_who_changed_a_job_is_told(engine: AnyEngine) -> None:
    (job_id,) = jobs.submit(engine)
    assert all(each.name != "is as it was submitted" for each in ask(engine, job_id).conditions)

    engine.run(changes.change(job_id, JobChange(delay_s=600.0, priority=3), actor="ada"))
    engine.run(changes.change(job_id, JobChange(queue="bulk"), actor="bob"))

    answer = ask(engine, job_id)
    told = found(answer, "is as it was submitted")
    assert told.startswith("changed 2 times, the last time ") and told.endswith(" by bob: queue")
    assert "is as it was submitted" not in false(answer)
    assert {"is due"} <= false(answer)
