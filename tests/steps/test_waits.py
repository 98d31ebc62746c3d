"""Sleeping and waiting for signals: without a slot, across crashes, with the time and the signal that come first."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from fencerow import Client, Job, Retry
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.errors import JobNotFound, SignalRefused, SignalTimeout
from fencerow.operators import looking
from fencerow.steps import memory
from fencerow.steps.memory import Fencing, Waiting
from fencerow.steps.waker import LEFT_S, wake_due
from fencerow.testing.clock import DatabaseClock, clock_of
from fencerow.turns import handing
from tests.core.worker.stage import kinds, read, working
from tests.kit.jobs import AnyEngine, claim, new_job, register, running, submit
from tests.kit.jobs import read as job_of


def client(engine: AnyEngine) -> Client:
    return Client(engine, actor="ada")


async def test_a_job_sleeps_without_a_slot_and_goes_on_where_it_was(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    ran: list[str] = []

    async def once(name: str) -> str:
        ran.append(name)
        return name

    async def order(job: Job) -> int:
        await job.step("before", once, "before")
        await job.sleep(3600)
        await job.sleep(timedelta(hours=1))
        await job.step("after", once, "after")
        return job.attempt

    async def other(job: Job) -> str:
        return "done"

    async with working(engine, order, other, queues={"mail": 1}) as stage:
        job_id = await stage.submit("order")
        await stage.heard.wait("suspended", job_id=job_id)
        asleep = await read(engine, job_id)
        beside = await stage.run("other")  # the one slot is free
        (wait,) = await client(engine).awaits(job_id)
        clock.advance(3601)
        await stage.heard.wait("suspended", 2, job_id=job_id)
        clock.advance(3601)
        job = await stage.ended(job_id)

    assert (asleep.state, asleep.holder, asleep.gate, asleep.snoozes) == (State.WAITING, None, None, 0)
    assert beside.state == State.SUCCEEDED
    assert (wait.wait, wait.signal, wait.queue) == (
        "sleep",
        None,
        "mail",
    )
    assert (job.state, job.result, job.failures, job.snoozes) == (State.SUCCEEDED, 3, 0, 0)
    assert ran == ["before", "after"]
    told = await kinds(engine, job_id)
    assert (told.count("suspended"), told.count("woken")) == (2, 2)


def test_a_plain_handler_sleeps_too_and_its_time_runs_on_across_a_crash(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    """The second attempt comes an hour later: what it waits for is over at once."""
    first = running(engine, holder := register(engine))
    sleep = Waiting(name="sleep", seq=1, beside=False, delay_s=3600.0)
    assert (got := engine.run(memory.wait(Fencing(first.id, holder, 1), sleep))) is not None
    assert got.result is None
    back = store.Requeue(id=first.id, attempt=1, kind="released")
    engine.run(store.requeue([back], holder=holder))
    clock.advance(3601)
    (again,) = claim(engine, later := register(engine))

    got = engine.run(memory.wait(Fencing(first.id, later, again.attempt), sleep))

    assert got is not None and got.result == "null"
    assert [step.name for step in engine.run(memory.steps_of(first.id))] == ["sleep"]
    assert engine.run(memory.waiting_for()) == []


async def approval(job: Job) -> Any:
    return await job.wait_for("approved", 60)


async def test_a_signal_wakes_the_job_that_waits_for_it_and_no_other(engine: AnyEngine) -> None:
    ada = client(engine)
    async with working(engine, approval) as stage:
        first, second = [await stage.submit("approval") for _ in range(2)]
        await stage.heard.wait("suspended", 2)
        other = await ada.asignal(first, "another", 1)
        said = await ada.asignal(first, "approved", {"by": "ada"})
        job = await stage.ended(first)
        still = await read(engine, second)

    assert (other.woken, said.woken) == (False, True)
    assert (job.state, job.result, job.attempt) == (State.SUCCEEDED, {"by": "ada"}, 2)
    assert still.state == State.WAITING


async def test_signals_that_come_before_the_wait_are_kept_and_taken_in_order(engine: AnyEngine) -> None:
    async def two(job: Job) -> Any:
        pages = [await job.wait_for("page"), await job.wait_for("page")]
        if job.attempt == 1:
            raise Retry(after_s=0)
        return pages

    (job_id,) = submit(engine, new_job("{}", name="two"))
    for page in ({"by": "ada"}, "2", 3):
        await client(engine).asignal(job_id, "page", page)
    async with working(engine, two) as stage:
        job = await stage.ended(job_id)

    assert (job.result, job.attempt) == ([{"by": "ada"}, "2"], 2), "nothing had to be waited for"
    assert [each.taken_as for each in await client(engine).asignals(job_id)] == [
        "signal page",
        "signal page 2",
        None,
    ]


async def test_a_wait_that_is_in_vain_ends_with_an_error_that_is_remembered(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    def careful(job: Job) -> str:
        try:
            job.wait_for("approved", timeout_s=60)
        except SignalTimeout:
            return f"went on in attempt {job.attempt}"
        return "approved"

    async with working(engine, careful) as stage:
        job_id = await stage.submit("careful")
        await stage.heard.wait("suspended", job_id=job_id)
        clock.advance(61)
        job = await stage.ended(job_id)

    assert job.result == "went on in attempt 2"
    assert [step.result for step in engine.run(memory.steps_of(job_id))] == ['{"timed_out":true}']


def test_a_signal_for_a_job_that_ended_or_is_not_there_is_refused(engine: AnyEngine) -> None:
    (job_id,) = submit(engine)
    engine.run(store.cancel(job_id, actor=None))
    with pytest.raises(SignalRefused, match=f"FR-965.*{job_id}, which is cancelled"):
        client(engine).signal(job_id, "approved")
    with pytest.raises(JobNotFound):
        client(engine).signal("00000000-0000-4000-8000-000000000000", "approved")
    assert client(engine).signals(job_id) == []


def test_signals_are_bounded_and_one_that_is_sent_again_is_kept_once(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencerow.steps.signals.SIGNALS_MAX", 2)
    job_id, other_id = submit(engine, new_job(), new_job())
    ada = client(engine)
    first = ada.signal(job_id, "page", 1)
    with pytest.raises(SignalRefused, match="another job"):
        ada.signal(other_id, "page", 1, signal_id=first.id)
    assert ada.signal(job_id, "page", 1, signal_id=first.id).replay
    ada.signal(job_id, "page", 2)

    with pytest.raises(SignalRefused, match="2 signals that it has not taken"):
        ada.signal(job_id, "page", 3)

    assert [each.data for each in ada.signals(job_id)] == [1, 2]
    engine.run(store.cancel(job_id, actor=None))
    assert ada.signal(job_id, "page", 1, signal_id=first.id).replay, "kept, and its job has ended since"


def test_a_signal_is_part_of_the_callers_transaction(engine: AnyEngine) -> None:
    job_id = asleep(engine, signal="approved")
    ada = client(engine)

    with pytest.raises(RuntimeError), engine.session() as session:
        assert ada.signal(job_id, "approved", connection=session.connection).woken
        raise RuntimeError("the caller changes its mind")
    assert (ada.signals(job_id), job_of(engine, job_id).state) == ([], State.WAITING)

    with engine.session() as session:
        ada.signal(job_id, "approved", connection=session.connection)
    assert job_of(engine, job_id).state == State.QUEUED


def asleep(
    engine: AnyEngine,
    holder: str | None = None,
    *,
    signal: str | None = None,
    delay_s: float | None = 60.0,
    reason: str = "a test",
    **fields: Any,
) -> str:
    """A job that waits, suspended."""
    holder = holder or register(engine)
    job = running(engine, holder, **fields)
    waiting = Waiting(name="wait", seq=1, beside=False, signal=signal, delay_s=delay_s)
    engine.run(memory.wait(Fencing(job.id, holder, job.attempt), waiting))
    suspend = store.SuspendedAttempt(job.id, job.attempt, json.dumps({"reason": reason}))
    assert engine.run(store.suspend([suspend], holder=holder)).ids == [job.id]
    return job.id


def test_what_has_come_before_the_job_is_suspended_wakes_it_at_once(engine: AnyEngine) -> None:
    job = running(engine, holder := register(engine))
    waiting = Waiting(name="wait", seq=1, beside=False, signal="approved")
    engine.run(memory.wait(Fencing(job.id, holder, job.attempt), waiting))
    client(engine).signal(job.id, "approved")

    done = engine.run(store.suspend([store.SuspendedAttempt(job.id, job.attempt)], holder=holder))

    assert [each.id for each in done.woken] == [job.id]
    assert job_of(engine, job.id).state == State.QUEUED


def test_the_due_are_woken_by_one_look_and_the_others_sleep_on(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    soon, later = asleep(engine, delay_s=10.0), asleep(engine, delay_s=100.0)
    cancelled = asleep(engine, delay_s=10.0)
    engine.run(store.cancel(cancelled, actor=None))
    clock.advance(11)

    woken = engine.run(wake_due(limit=10, actor="w"))
    again = engine.run(wake_due(limit=10, actor="w"))

    assert [job.id for job in woken.jobs] == [soon]
    assert again.jobs == [] and 80 < (again.next_s or 0) < 100, "what was looked at is looked at no more"
    assert job_of(engine, later).state == State.WAITING


def test_a_job_that_a_stranger_has_locked_is_looked_for_again_without_haste(pg: PostgresEngine) -> None:
    locked, free = asleep(pg, delay_s=10.0), asleep(pg, delay_s=10.0)
    clock_of(pg).advance(11)
    with psycopg.connect(pg.conninfo) as stranger:
        stranger.execute("SELECT 1 FROM fencerow.jobs WHERE id = %s FOR UPDATE", [locked])

        first, second = (pg.run(wake_due(limit=10, actor="w")) for _ in range(2))

    assert [job.id for job in first.jobs] == [free]
    assert (second.jobs, second.pause_s) == ([], LEFT_S)
    assert [job.id for job in pg.run(wake_due(limit=10, actor="w")).jobs] == [locked]


def test_a_stranger_who_has_locked_all_of_a_look_hides_no_other(pg: PostgresEngine) -> None:
    locked = [asleep(pg, delay_s=float(second)) for second in range(1, 3)]
    free = [asleep(pg, delay_s=float(second)) for second in range(3, 6)]
    clock_of(pg).advance(11)
    with psycopg.connect(pg.conninfo) as stranger:
        stranger.execute("SELECT 1 FROM fencerow.jobs WHERE id = ANY(%s) FOR UPDATE", [locked])

        first, second = (pg.run(wake_due(limit=2, actor="w")) for _ in range(2))

    assert [[job.id for job in look.jobs] for look in (first, second)] == [free[:2], free[2:]]
    assert {job.id for job in pg.run(wake_due(limit=2, actor="w")).jobs} == set(locked)


def test_a_suspended_job_gives_its_turn_up_and_waits_for_it_again(engine: AnyEngine) -> None:
    """Also one that is strict: it holds its turn between attempts, and none while it sleeps."""
    first, second = new_job(exclusive="k", strict=True), new_job(exclusive="k", strict=True)
    submit(engine, first, second)
    engine.run(handing.hand_over())
    (job,) = claim(engine, holder := register(engine))
    engine.run(store.suspend([store.SuspendedAttempt(job.id, 1)], holder=holder))
    engine.run(handing.hand_over())
    assert job_of(engine, second.id).state == State.QUEUED

    (woken,) = engine.run(store.wake([job.id], actor="ada"))

    assert woken.waits
    assert (job_of(engine, job.id).state, job_of(engine, job.id).gate) == (State.WAITING, "key:k")


def test_a_change_lets_a_suspended_job_sleep_on(engine: AnyEngine) -> None:
    job_id = asleep(engine)
    client(engine).change(job_id, priority=7, delay_s=0)
    assert (job_of(engine, job_id).state, job_of(engine, job_id).priority) == (State.WAITING, 7)


async def test_a_cancel_ends_a_sleeping_job_at_once(engine: AnyEngine) -> None:
    job_id = asleep(engine)
    await asyncio.to_thread(client(engine).cancel, job_id)
    assert job_of(engine, job_id).state == State.CANCELLED
    assert "cancelled" in [each.kind for each in engine.run(looking.events(job_id))]


def test_a_revived_job_waits_anew_and_remembers_what_it_did(engine: AnyEngine, clock: DatabaseClock) -> None:
    job_id = asleep(engine, delay_s=10.0)
    engine.run(store.cancel(job_id, actor=None))
    client(engine).revive(job_id)
    clock.advance(11)

    assert engine.run(wake_due(limit=10, actor="w")).jobs == [], "it is queued, and nobody wakes it twice"
    (again,) = claim(engine, register(engine))
    assert (again.id, again.attempt) == (job_id, 2)


def test_what_a_removed_job_remembered_is_purged(engine: AnyEngine) -> None:
    gone, kept = asleep(engine, signal="approved"), asleep(engine)
    client(engine).signal(gone, "another", 1)
    engine.run(store.cancel(gone, actor=None))
    engine.run(store.delete([gone]))

    looked = engine.run(memory.purge(memory.NOWHERE, limit=10))

    assert (looked.rows, looked.gone) == (2, 1)
    assert client(engine).signals(gone) == []
    assert [wait.job_id for wait in client(engine).waits()] == [kept]


@pytest.mark.parametrize("data", [{"by": "ada"}, None, ["yes"], {"data": 1}, {"timed_out": True}, 1e22])
async def test_what_a_signal_brought_is_the_same_in_all_later_attempts(engine: AnyEngine, data: Any) -> None:
    seen: list[Any] = []

    async def order(job: Job) -> None:
        seen.append(await job.wait_for("approved"))
        if job.failures == 0:
            raise RuntimeError("it fails behind the wait")

    async with working(engine, order) as stage:
        job_id = await stage.submit("order", attempts_max=2)
        await Client(engine).asignal(job_id, "approved", data)
        job = await stage.ended(job_id)

    assert (job.state, job.failures) == ("succeeded", 1), job.error
    assert seen == [data, data]


def test_a_wait_whose_answer_was_lost_is_answered_alike_when_it_is_asked_again(engine: AnyEngine) -> None:
    """A runner repeats it after a commit of which it knows nothing. Without the look the job would sleep for ever."""
    claimed = running(engine, holder := register(engine))
    fencing = Fencing(claimed.id, holder, claimed.attempt)
    client(engine).signal(claimed.id, "approved", {"by": "ada"})
    signalled = Waiting(name="signal approved", seq=1, beside=False, signal="approved", over="null")
    slept = Waiting(name="sleep", seq=2, beside=False, until_us=1)

    for waiting in (signalled, slept):
        first = engine.run(memory.wait(fencing, waiting))
        assert first is not None and first.result is not None
        assert engine.run(memory.wait(fencing, waiting)) == first
    assert client(engine).waits(claimed.id) == []
