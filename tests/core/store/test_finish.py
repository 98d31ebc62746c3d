"""Ending attempts in groups, what the timeline tells of it, and what a running attempt may write about itself."""

from __future__ import annotations

import pytest

from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.store.attempts import Failure, MovedJob, Requeue, Stop, Success
from fencerow.operators import looking
from fencerow.testing.clock import DatabaseClock
from tests.core.store import stage
from tests.core.store.stage import bring, changed, dump
from tests.kit.jobs import AnyEngine, claim, new_job, read, register, running, submit

RESULTS = ['{"n":1e22}', "null", '"š😀"', "-0.0", '[{"b":1,"a":2}]']


def test_a_group_moves_those_that_are_held_and_names_them(engine: AnyEngine) -> None:
    holder = register(engine)
    jobs = [running(engine, holder) for _ in range(3)]
    lost = running(engine)
    engine.run(store.mark_awaited([jobs[1].id]))

    moved = engine.run(
        store.succeed([Success(job.id, 1, str(n)) for n, job in enumerate([*jobs, lost])], holder=holder)
    )
    assert {one.id: one.awaited for one in moved} == {job.id: job is jobs[1] for job in jobs}
    assert [read(engine, job.id).result for job in jobs] == [0, 1, 2]
    assert read(engine, lost.id).state is State.RUNNING


@pytest.mark.parametrize("result", RESULTS)
def test_a_result_is_kept_byte_for_byte(engine: AnyEngine, result: str) -> None:
    job = running(engine, holder := register(engine))
    engine.run(store.succeed([Success(job.id, 1, result)], holder=holder))
    ended = engine.run(store.outcomes([job.id]))[job.id]
    assert (ended.state, ended.result, ended.error) == (State.SUCCEEDED, result, None)


def test_repeating_a_success_moves_nothing_more(engine: AnyEngine) -> None:
    job = bring(engine, State.RUNNING)
    assert stage.succeed(engine, job)
    before = dump(engine)
    assert not stage.succeed(engine, job)
    assert changed(before, dump(engine)) == set()
    fence = engine.run(store.read_fences([job.id, register(engine)]))
    assert set(fence) == {job.id}
    assert (fence[job.id].state, fence[job.id].holder) == (State.SUCCEEDED, job.holder)


def test_a_failure_is_counted_and_told(engine: AnyEngine) -> None:
    job = running(engine, holder := register(engine))
    moved = engine.run(store.fail([Failure(job.id, 1, stage.ERROR)], holder=holder))
    assert moved == [MovedJob(job.id, False)]

    found = read(engine, job.id)
    assert (found.state, found.failures, found.error) == (State.FAILED, 1, {"type": "Boom"})
    (event,) = engine.run(looking.events(job.id))
    assert (event.kind, event.attempt, event.actor) == ("failed", 1, holder)
    assert event.detail["error"] == {"type": "Boom"}
    assert event.detail["claimed_at_us"] == found.claimed_at_us


@pytest.mark.parametrize(
    ("kind", "failures", "snoozes"), [("retried", 1, 0), ("snoozed", 0, 1), ("released", 0, 0)]
)
def test_a_job_goes_back_and_spends_what_it_should(
    engine: AnyEngine, clock: DatabaseClock, kind: str, failures: int, snoozes: int
) -> None:
    job = running(engine, holder := register(engine))
    back = Requeue(
        id=job.id, attempt=1, kind=kind, delay_s=7.5, failures=failures, snoozes=snoozes, detail=stage.ERROR
    )
    (moved,) = engine.run(store.requeue([back], holder=holder))

    found = read(engine, job.id)
    assert (found.state, found.failures, found.snoozes, found.attempt) == (State.QUEUED, failures, snoozes, 1)
    assert (found.holder, found.deadline_at_us) == (None, None)
    assert (moved.id, moved.queue, moved.priority, moved.run_at_us) == (job.id, "mail", 0, found.run_at_us)
    (event,) = engine.run(looking.events(job.id))
    assert (event.kind, event.detail["detail"]) == (kind, {"type": "Boom"})
    assert event.detail["run_at_us"] == found.run_at_us
    assert found.run_at_us - event.at_us == 7_500_000
    assert claim(engine, holder) == []
    clock.advance(8)
    (again,) = claim(engine, holder)
    assert again.attempt == 2


def test_without_a_delay_a_job_keeps_its_place(engine: AnyEngine) -> None:
    job = running(engine, holder := register(engine))
    submit(engine, new_job())
    engine.run(store.requeue([Requeue(id=job.id, attempt=1, kind="released")], holder=holder))
    assert read(engine, job.id).run_at_us == job.run_at_us
    assert claim(engine, holder, limit=1)[0].id == job.id


@pytest.mark.parametrize(("kind", "suspect"), [("retried", False), ("snoozed", False), ("released", True)])
def test_only_an_attempt_that_ran_to_an_end_clears_a_suspect(
    engine: AnyEngine, clock: DatabaseClock, kind: str, suspect: bool
) -> None:
    job = bring(engine, State.RUNNING)
    assert stage.reclaim(engine, job, clock)
    holder = register(engine)
    (again,) = engine.run(store.claim_suspect("mail", holder=holder, names=["send"], margin_s=60))
    assert again.suspect
    engine.run(store.requeue([Requeue(id=job.id, attempt=2, kind=kind)], holder=holder))
    assert read(engine, job.id).suspect is suspect


def test_a_stop_tells_who_asked(engine: AnyEngine) -> None:
    job = running(engine, holder := register(engine))
    engine.run(store.cancel(job.id, actor="ada", reason="typo"))
    engine.run(store.cancel(job.id, actor="bob"))
    assert [one.cancel_requested_by for one in engine.run(store.holdings(holder=holder))] == ["ada"]
    assert engine.run(store.check_fence(job.id, holder=holder, attempt=1)) is True

    engine.run(store.stop([Stop(job.id, 1, '{"cleaned":true}')], holder=holder))
    found = read(engine, job.id)
    assert (found.state, found.cancel_requested_by, found.error) == (
        State.CANCELLED,
        "ada",
        {"cleaned": True},
    )
    kinds = [(event.kind, event.actor) for event in engine.run(looking.events(job.id))]
    assert kinds == [("cancel_requested", "ada"), ("cancel_requested", "bob"), ("stopped", holder)]


def test_progress_is_the_last_word_and_logs_are_all_words(engine: AnyEngine) -> None:
    job = running(engine, holder := register(engine))
    fence = {"holder": holder, "attempt": 1}
    for percent, note in ((10.0, "begun"), (55.5, None)):
        assert engine.run(store.progress(job.id, **fence, percent=percent, note=note))  # type: ignore[arg-type]
        assert engine.run(store.log(job.id, **fence, level="info", message=f"at {percent}"))  # type: ignore[arg-type]

    found = read(engine, job.id)
    assert (found.progress, found.progress_note) == (55.5, None)
    assert [line.message for line in engine.run(looking.logs(job.id))] == ["at 10.0", "at 55.5"]
    assert engine.run(store.check_fence(job.id, holder=holder, attempt=1)) is False


def test_a_group_of_nothing_changes_nothing(engine: AnyEngine) -> None:
    bring(engine, State.RUNNING)
    before = dump(engine)
    holder = register(engine)
    assert engine.run(store.succeed([], holder=holder)) == []
    assert engine.run(store.fail([], holder=holder)) == []
    assert engine.run(store.stop([], holder=holder)) == []
    assert engine.run(store.requeue([], holder=holder)) == []
    assert engine.run(store.submit([])) == [] and engine.run(store.delete([])) == []
    assert changed(before, dump(engine)) == set()
