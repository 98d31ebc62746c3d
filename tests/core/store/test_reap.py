"""What the dead held goes back, what is past its time ends, and what the readers see of it all."""

from __future__ import annotations

import pytest

from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.operators import looking
from fencerow.testing.clock import DatabaseClock
from tests.core.store import stage
from tests.core.store.stage import Placed, bring, rows
from tests.kit.jobs import AnyEngine, bury, claim, new_job, overdue, read, register, running, submit


def test_reclaiming_keeps_the_place_and_tells_the_story(engine: AnyEngine, clock: DatabaseClock) -> None:
    job = running(engine, holder := register(engine), priority=0)
    clock.advance(31)
    bury(engine)
    ((taken,), moved) = engine.run(store.reclaim([holder], limit=10, actor="reaper"))

    assert (taken.id, taken.state, taken.queue, taken.attempt) == (job.id, State.QUEUED, "mail", 1)
    assert (taken.run_at_us, taken.holder, moved) == (job.run_at_us, holder, [])
    (event,) = engine.run(looking.events(job.id))
    assert (event.kind, event.actor, event.attempt) == ("reclaimed", "reaper", 1)
    assert (event.detail["holder"], event.detail["became"]) == (holder, "queued")


def test_reclaim_is_bounded_and_a_second_call_takes_the_rest(engine: AnyEngine, clock: DatabaseClock) -> None:
    holder = register(engine)
    jobs = {running(engine, holder).id for _ in range(5)}
    clock.advance(31)
    bury(engine)
    first, _ = engine.run(store.reclaim([holder], limit=3, actor=None))
    assert engine.run(store.dead_holders()) == [holder]
    rest, _ = engine.run(store.reclaim([holder], limit=3, actor=None))

    assert (len(first), len(rest)) == (3, 2)
    assert {job.id for job in [*first, *rest]} == jobs
    assert engine.run(store.dead_holders()) == []


def test_a_retired_worker_leaves_nothing_behind(engine: AnyEngine) -> None:
    job = bring(engine, State.RUNNING)
    assert engine.run(store.retire(holder=job.holder))
    assert engine.run(store.dead_holders()) == [job.holder]
    assert claim(engine, job.holder) == []


def test_a_holder_without_a_row_is_adopted(engine: AnyEngine) -> None:
    """After a restore or a lost file; its jobs would otherwise run for ever."""
    job = bring(engine, State.RUNNING)
    workers = "fencerow.workers" if engine.dialect == "postgres" else "fencerow_file.fencerow_workers"
    rows(engine, f"DELETE FROM {workers}")

    assert engine.run(store.dead_holders()) == []
    assert engine.run(store.lost_holders()) == [job.holder]
    assert engine.run(store.adopt([job.holder])) == [job.holder]
    assert engine.run(store.lost_holders()) == engine.run(store.adopt([job.holder])) == []
    assert engine.run(store.dead_holders()) == [job.holder]
    found, _ = engine.run(store.reclaim([job.holder], limit=10, actor=None))
    assert [one.id for one in found] == [job.id]
    assert not engine.run(store.renew(holder=job.holder))


def test_a_hung_attempt_is_ended_when_its_living_worker_says_so(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    job = running(engine, holder := register(engine, lease_s=1e6), timeout_s=10, attempts_max=2)
    other = running(engine, holder, timeout_s=10)
    engine.run(store.renew(holder=holder, stated=overdue((job.id, job.attempt, True))))
    ((taken,), moved) = engine.run(store.time_out(limit=10, delay_s=3, actor="reaper"))

    found = read(engine, job.id)
    assert (taken.state, taken.begun, found.failures, found.suspect, moved) == (
        State.QUEUED,
        True,
        1,
        False,
        [],
    )
    assert found.error["code"] == "FR-403"
    (event,) = engine.run(looking.events(job.id))
    assert (event.kind, found.run_at_us - event.at_us) == ("timed_out", 3_000_000)
    assert not stage.succeed(engine, Placed(job.id, holder, 1))
    assert read(engine, other.id).state is State.RUNNING
    assert engine.run(store.time_out(limit=10, delay_s=3, actor="reaper")) == ([], [])


def test_no_clock_of_the_database_ends_an_attempt(engine: AnyEngine, clock: DatabaseClock) -> None:
    """After an outage, or a jump by an hour, every deadline is past, and nobody has run for too long."""
    job = running(engine, holder := register(engine), timeout_s=10, attempts_max=1)
    clock.advance(3600)
    engine.run(store.renew(holder=holder, stated=overdue()))

    assert engine.run(store.time_out(limit=10, delay_s=3, actor=None)) == ([], [])
    assert stage.succeed(engine, Placed(job.id, holder, 1))


def test_what_never_began_goes_back_to_its_place_and_counts_nothing(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    job = running(engine, holder := register(engine), timeout_s=10, attempts_max=1)
    engine.run(store.renew(holder=holder, stated=overdue((job.id, job.attempt, False))))
    ((taken,), moved) = engine.run(store.time_out(limit=10, delay_s=3, actor="reaper"))

    found = read(engine, job.id)
    assert (taken.state, taken.begun, moved) == (State.QUEUED, False, [])
    assert (found.failures, found.suspect, found.error, found.run_at_us) == (0, False, None, job.run_at_us)
    (event,) = engine.run(looking.events(job.id))
    assert (event.kind, event.detail["reason"]) == ("released", "its worker did not begin it in time")
    assert [each.attempt for each in claim(engine, register(engine))] == [2]


@pytest.mark.parametrize(
    "wrong", ["another worker says so", "of an older attempt", "it was said by the dead"]
)
def test_only_the_living_holder_of_the_attempt_can_call_it_overdue(
    engine: AnyEngine, clock: DatabaseClock, wrong: str
) -> None:
    first = running(engine, holder := register(engine), timeout_s=10, attempts_max=1)
    stage.release(engine, Placed(first.id, holder, 1))
    (job,) = claim(engine, holder)
    teller = register(engine) if wrong == "another worker says so" else holder
    attempt = 1 if wrong == "of an older attempt" else job.attempt
    engine.run(store.renew(holder=teller, stated=overdue((job.id, attempt, True))))
    if wrong == "it was said by the dead":
        engine.run(store.retire(holder=holder))

    assert engine.run(store.time_out(limit=10, delay_s=3, actor=None)) == ([], [])
    assert read(engine, job.id).state is State.RUNNING


def test_a_job_for_which_nobody_waits_any_more_ends(engine: AnyEngine, clock: DatabaseClock) -> None:
    (old,) = submit(engine, new_job(expires_s=60))
    submit(engine, new_job(expires_s=6000), new_job())
    engine.run(store.mark_awaited([old]))
    clock.advance(61)
    (moved,) = engine.run(store.expire(limit=10, actor="reaper"))

    assert (moved.id, moved.awaited) == (old, True)
    found = read(engine, old)
    assert (found.state, found.error["code"], found.failures) == (State.FAILED, "expired", 0)
    assert [event.kind for event in engine.run(looking.events(old))] == ["expired"]
    assert engine.run(store.expire(limit=10, actor=None)) == []


def test_counts_by_queue_name_and_state(engine: AnyEngine, clock: DatabaseClock) -> None:
    now = engine.run(store.clock())
    submit(engine, new_job(run_at_us=now + 9), new_job(run_at_us=now + 5), new_job(queue="a", name="x"))
    bring(engine, State.FAILED)
    bring(engine, State.SUCCEEDED)
    running(engine, queue="mail")

    live = engine.run(looking.counts())
    assert [(c.queue, c.name, c.state, c.jobs) for c in live] == [
        ("a", "x", State.QUEUED, 1),
        ("mail", "send", State.QUEUED, 2),
        ("mail", "send", State.RUNNING, 1),
    ]
    assert live[1].first_us in (now + 5, now + 9)
    assert engine.run(looking.finished_counts()) == [("mail", State.FAILED, 1), ("mail", State.SUCCEEDED, 1)]


def test_how_many_are_ahead(engine: AnyEngine, clock: DatabaseClock) -> None:
    now = engine.run(store.clock())
    first, urgent, mine = (
        new_job(run_at_us=now),
        new_job(run_at_us=now + 2, priority=9),
        new_job(run_at_us=now + 1),
    )
    submit(engine, first, urgent, mine, new_job(run_at_us=now + 3), new_job(delay_s=60, priority=9))
    clock.advance(1)
    assert [engine.run(looking.ahead(job.id)) for job in (urgent, first, mine)] == [0, 1, 2]


def test_pages_of_the_list_and_its_filters(engine: AnyEngine) -> None:
    jobs = [new_job(tags='["even"]' if n % 2 == 0 else '["odd","x"]', queue=f"q{n % 3}") for n in range(7)]
    submit(engine, *jobs)
    newest = [job.id for job in reversed(jobs)]

    page = engine.run(looking.list_jobs(limit=3))
    rest = engine.run(looking.list_jobs(limit=10, before_id=page[-1].id))
    assert [job.id for job in [*page, *rest]] == newest
    assert len(engine.run(looking.search(tags='["even"]')).jobs) == 4
    assert [job.id for job in engine.run(looking.search(queue="q1", tags='["x","odd"]')).jobs] == [jobs[1].id]
    assert engine.run(looking.list_jobs(states=[State.FAILED])) == []
    assert len(engine.run(looking.list_jobs(states=[State.FAILED, State.QUEUED], name="send"))) == 7


def test_who_is_awaited_is_noted_once(engine: AnyEngine) -> None:
    (live,) = submit(engine)
    done = bring(engine, State.SUCCEEDED)
    assert engine.run(store.mark_awaited([live, done.id])) == [live]
    assert engine.run(store.mark_awaited([live])) == []
    assert engine.run(store.existing([live, done.id, register(engine)])) == {live, done.id}
