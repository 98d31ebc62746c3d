"""Follow-ups are stored with the success that they follow: under its fence, once, and with it or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.core.model import rules
from fencerow.core.model.job import KeyClaim, NewJob
from fencerow.core.model.state import State
from fencerow.core.model.submission import Submission
from fencerow.core.store import store
from fencerow.errors import KeyConflict, OlderWorkers
from tests.kit.asked import submit_keyed
from tests.kit.jobs import AnyEngine, bury, claim, new_job, read, register, running, submit


def followed(job: Any, *submissions: Submission) -> store.FollowedSuccess:
    return store.FollowedSuccess(store.Success(job.id, job.attempt, "1"), submissions)


def follow_up(**changes: Any) -> Submission:
    return Submission(new_job(**changes))


def key_of(job: NewJob, fingerprint: str) -> KeyClaim:
    return KeyClaim(scope="s", key="k", job_id=job.id, fingerprint=fingerprint, lifetime_s=60.0)


def existing(engine: AnyEngine, *submissions: Submission) -> list[bool]:
    ids = [each.job.id for each in submissions]
    found = engine.run(store.existing(ids))
    return [each in found for each in ids]


def test_only_what_moved_is_followed_and_only_once(engine: AnyEngine) -> None:
    holder, other = register(engine), register(engine)
    submit(engine, new_job(), new_job())
    mine, lost = claim(engine, holder, limit=2)
    good, stale = follow_up(), follow_up()
    outcomes = [
        followed(mine, good),
        store.FollowedSuccess(store.Success(lost.id, lost.attempt + 1, "1"), [stale]),
    ]

    stranger = engine.run(store.succeed_with_follow_ups(outcomes, holder=other))
    done = engine.run(store.succeed_with_follow_ups(outcomes, holder=holder))
    again = engine.run(store.succeed_with_follow_ups(outcomes, holder=holder))

    assert ([job.id for job in done.moved], [job.id for job in done.made]) == ([mine.id], [good.job.id])
    assert (stranger.moved, stranger.made, again.moved, again.made) == ([], [], [], [])
    assert existing(engine, good, stale) == [True, False]


def test_a_worker_that_was_buried_is_followed_by_nothing(engine: AnyEngine, clock: Any) -> None:
    holder = register(engine)
    job = running(engine, holder)
    clock.advance(31)
    assert bury(engine) == [holder]
    engine.run(store.reclaim([holder], limit=10, actor="reaper"))
    late = follow_up()

    assert engine.run(store.succeed_with_follow_ups([followed(job, late)], holder=holder)).moved == []
    assert existing(engine, late) == [False]


def test_a_refused_follow_up_leaves_the_job_running(engine: AnyEngine) -> None:
    holder = register(engine)
    first = new_job(scope="s", key="k")
    engine.run(submit_keyed([first], [key_of(first, "one")]))
    job = running(engine, holder, queue="other")
    other, good = new_job(scope="s", key="k"), follow_up()
    conflict = Submission(other, key_of(other, "another"))

    with pytest.raises(KeyConflict):
        engine.run(store.succeed_with_follow_ups([followed(job, good, conflict)], holder=holder))

    assert read(engine, job.id).state is State.RUNNING
    assert existing(engine, good, conflict) == [False, False]


def test_a_follow_up_that_older_workers_would_not_keep_is_not_stored_beside_them(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "KNOWN", ("exclusive",))
    holder = register(engine)
    job = running(engine, holder)
    turned = follow_up(exclusive="k")

    with pytest.raises(OlderWorkers):
        engine.run(store.succeed_with_follow_ups([followed(job, turned)], holder=holder))

    assert read(engine, job.id).state is State.RUNNING
    assert existing(engine, turned) == [False]


def test_wake_ups_name_the_lane_and_when_it_is_due(engine: AnyEngine) -> None:
    holder = register(engine)
    job = running(engine, holder)
    plain, late = follow_up(queue="q", priority=3), follow_up(delay_s=60.0)
    done = engine.run(store.succeed_with_follow_ups([followed(job, plain, late)], holder=holder))

    (now, then) = done.made
    assert (now.queue, now.priority, now.waits) == ("q", 3, False)
    assert 60e6 <= then.run_at_us - now.run_at_us < 90e6
