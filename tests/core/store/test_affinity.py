"""Affinity: a job waits for a worker that carries its label, and for nobody else until its wait is over."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.store.attempts import Failure, Requeue, Success
from fencerow.core.store.claims import Mark
from fencerow.core.store.reap import Crash
from fencerow.operators import changes
from fencerow.operators.job_change import job_change
from fencerow.operators.queues import pause_queue
from fencerow.testing.clock import DatabaseClock
from fencerow.turns import affinity, handing
from fencerow.unique.rules import UniqueClaim, UniqueRule
from tests.core.store.stage import rows
from tests.kit.asked import as_unique
from tests.kit.jobs import (
    NAME,
    QUEUE,
    AnyEngine,
    bury,
    claim,
    claim_labelled,
    new_job,
    overdue,
    read,
    register,
    submit,
)

GPU = "gpu"


def labelled(engine: AnyEngine, count: int = 1, **changes: Any) -> list[str]:
    return submit(engine, *(new_job(**{"affinity": GPU, **changes}) for _ in range(count)))


def fallen_back(engine: AnyEngine) -> list[str]:
    return [job.id for job in engine.run(affinity.fall_back(actor="worker w"))]


def lanes(engine: AnyEngine, *labels: str) -> list[str]:
    """The names of the lanes that a worker with these labels sees."""
    return [lane.name for lane in engine.run(store.lanes(QUEUE, labels))[0]]


def suspects(label: str) -> list[Mark]:
    return [Mark(0, lane=f"suspect:label:{label}"), Mark(0, lane="suspect:")]


def taken(engine: AnyEngine, **changes: Any) -> tuple[str, str]:
    """A job with affinity in the hands of a worker that carries the label: its id and the worker."""
    (job_id,), holder = labelled(engine, **changes), register(engine)
    assert claim_labelled(engine, holder, GPU) == [job_id]
    return job_id, holder


def waits_for_its_label(engine: AnyEngine, job_id: str) -> bool:
    """It waits: others find nothing, and who carries the label gets it."""
    job = read(engine, job_id)
    assert (job.state, job.lane) == (State.QUEUED, f"label:{GPU}")
    assert claim(engine, register(engine)) == []
    return claim_labelled(engine, register(engine), GPU) == [job_id]


@pytest.mark.parametrize("count", [1, 3, 600])
def test_only_a_worker_with_the_label_claims_it(engine: AnyEngine, count: int) -> None:
    jobs = [new_job(affinity=GPU, affinity_wait_s=5.0) for _ in range(count)]
    may_copy = engine.traits.takes_copy and count == 600
    engine.run((store.submit_by_copy if may_copy else store.submit_gated)(jobs))
    ids = sorted(job.id for job in jobs)
    found = engine.run(store.read(ids))
    assert len(found) == count and {each.affinity_wait_s for each in found.values()} == {5.0}
    assert not engine.run(store.any_due([QUEUE], [NAME]))

    assert claim(engine, register(engine), limit=1000) == []
    assert claim_labelled(engine, register(engine), "other", limit=1000) == []
    assert engine.run(store.any_due([QUEUE], [NAME], [GPU]))
    assert sorted(claim_labelled(engine, register(engine), "other", GPU, limit=1000)) == ids
    assert not engine.run(store.any_due([QUEUE], [NAME], [GPU]))


def test_a_worker_with_labels_takes_its_own_first_among_those_of_one_priority(engine: AnyEngine) -> None:
    low_own = labelled(engine)
    plain = submit(engine, new_job(), new_job())
    second, first = labelled(engine, affinity="big"), labelled(engine)
    high = submit(engine, new_job(priority=5))
    holder = register(engine)

    marks = [Mark(5), Mark(0)]
    order = [claim_labelled(engine, holder, GPU, "big", limit=1, marks=marks) for _ in range(6)]

    assert order == [high, low_own, first, second, plain[:1], plain[1:]]


def test_of_the_jobs_of_one_label_the_higher_priority_goes_first_then_the_earlier(engine: AnyEngine) -> None:
    later, earlier = labelled(engine, delay_s=0.0, run_at_us=2), labelled(engine, run_at_us=1)
    high = labelled(engine, priority=3)
    marks = [Mark(3), Mark(0)]
    holder = register(engine)
    assert [claim_labelled(engine, holder, GPU, limit=1, marks=marks) for _ in range(3)] == [
        high,
        earlier,
        later,
    ]


def test_a_claim_by_label_takes_no_more_than_was_asked_for(engine: AnyEngine) -> None:
    labelled(engine, 3)
    submit(engine, *(new_job() for _ in range(3)))
    holder = register(engine)
    assert [len(claim_labelled(engine, holder, GPU, limit=4)) for _ in range(3)] == [4, 2, 0]


def test_without_those_beside_it_takes_what_waits_for_the_label_only(engine: AnyEngine) -> None:
    own, _ = labelled(engine, 2), submit(engine)
    assert claim_labelled(engine, register(engine), GPU, beside=False) == own


def test_it_is_not_claimed_before_it_is_due_nor_in_a_paused_queue_nor_by_the_dead(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    dead = register(engine)
    (job_id,) = labelled(engine, delay_s=10.0)
    assert claim_labelled(engine, register(engine), GPU) == []

    clock.advance(40)
    bury(engine)
    assert claim_labelled(engine, dead, GPU) == []
    holder = register(engine)
    engine.run(pause_queue(QUEUE, actor="ada"))
    assert claim_labelled(engine, holder, GPU) == []
    assert not engine.run(store.any_due([QUEUE], [NAME], [GPU]))
    assert read(engine, job_id).state is State.QUEUED


def test_after_its_wait_anybody_takes_it_and_never_before(engine: AnyEngine, clock: DatabaseClock) -> None:
    ever = labelled(engine)
    (job_id,) = labelled(engine, affinity_wait_s=3_000.0, delay_s=10.0)
    for seconds in (0, 10, 2_900):
        clock.advance(seconds)
        assert fallen_back(engine) == []
    assert claim(engine, register(engine)) == []

    clock.advance(101)
    over_us = engine.run(affinity.next_fall_back())
    assert over_us is not None and over_us <= 0
    assert fallen_back(engine) == [job_id]
    assert fallen_back(engine) == []
    assert engine.run(affinity.next_fall_back()) is None
    assert [job.id for job in claim(engine, register(engine))] == [job_id]
    clock.advance(1e6)
    assert fallen_back(engine) == []
    assert claim(engine, register(engine)) == []
    assert claim_labelled(engine, register(engine), GPU) == ever
    kinds = rows(engine, "SELECT kind FROM {job_events} ORDER BY id")
    assert [row["kind"] for row in kinds] == ["fell_back"]


def test_who_carries_the_label_takes_it_after_its_wait_as_well(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    ids = labelled(engine, affinity_wait_s=1.0)
    clock.advance(1.1)
    assert fallen_back(engine) == ids
    assert claim_labelled(engine, register(engine), GPU) == ids


@pytest.mark.parametrize("kind", ["retried", "snoozed", "released"])
def test_after_an_attempt_it_waits_for_its_label_again_counted_from_when_it_is_due(
    engine: AnyEngine, clock: DatabaseClock, kind: str
) -> None:
    (job_id,), holder = labelled(engine, affinity_wait_s=3_000.0), register(engine, lease_s=1e6)
    clock.advance(3_001)
    assert fallen_back(engine) == [job_id]
    assert [job.id for job in claim(engine, holder)] == [job_id]
    delay_s = None if kind == "released" else 100.0
    again = Requeue(id=job_id, attempt=1, kind=kind, delay_s=delay_s)
    (back,) = engine.run(store.requeue([again], holder=holder))
    assert (back.waits, back.lane) == (False, f"label:{GPU}")

    if delay_s is None:  # it keeps its place, so its wait is over already
        assert fallen_back(engine) == [job_id]
        return
    clock.advance(3_000)
    assert fallen_back(engine) == []
    clock.advance(101)
    assert fallen_back(engine) == [job_id]


def test_a_retry_goes_to_who_carries_the_label(engine: AnyEngine) -> None:
    job_id, holder = taken(engine)
    again = Requeue(id=job_id, attempt=1, kind="retried", delay_s=0.0, failures=1)
    assert engine.run(store.requeue([again], holder=holder))
    assert waits_for_its_label(engine, job_id)


def test_what_a_dead_worker_held_goes_to_the_next_that_carries_the_label(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    (first, second), dead = labelled(engine, 2), register(engine)
    assert claim_labelled(engine, dead, GPU) == [first, second]
    clock.advance(40)
    bury(engine)
    back, _ = engine.run(store.reclaim([dead], limit=10, actor="reaper"))
    assert {one.state for one in back} == {State.QUEUED}
    assert lanes(engine, "other") == []
    assert lanes(engine, GPU) == [f"suspect:label:{GPU}"]

    holder = register(engine)
    arguments: dict[str, Any] = {"holder": holder, "names": [NAME], "margin_s": 60.0}
    assert engine.run(store.claim_suspect(QUEUE, **arguments, at_most=9)) == []
    assert engine.run(store.claim_suspect(QUEUE, suspects("other"), **arguments, at_most=9)) == []
    one = engine.run(store.claim_suspect(QUEUE, suspects(GPU), **arguments, at_most=1))
    assert [job.id for job in one] == [first]
    assert engine.run(store.claim_suspect(QUEUE, suspects(GPU), **arguments, at_most=1)) == []
    two = engine.run(store.claim_suspect(QUEUE, suspects(GPU), **arguments, at_most=2))
    assert [job.id for job in two] == [second]


def test_a_suspect_whose_wait_is_over_is_anybodys_suspect(engine: AnyEngine, clock: DatabaseClock) -> None:
    job_id, holder = taken(engine, affinity_wait_s=50.0)
    clock.advance(40)
    bury(engine)
    engine.run(store.reclaim([holder], limit=10, actor="reaper"))
    assert fallen_back(engine) == []
    clock.advance(10.1)
    assert fallen_back(engine) == [job_id]
    arguments: dict[str, Any] = {"holder": register(engine), "names": [NAME], "margin_s": 60.0}
    assert [job.id for job in engine.run(store.claim_suspect(QUEUE, **arguments))] == [job_id]


def test_a_crashed_or_overdue_attempt_goes_back_to_its_label(engine: AnyEngine, clock: DatabaseClock) -> None:
    crashed, holder = taken(engine)
    engine.run(store.crash([Crash(crashed, 1, 0.0, "killed")], holder=holder))
    late, other = taken(engine)
    engine.run(store.renew(holder=other, stated=overdue((late, 1, True))))
    engine.run(store.time_out(limit=10, delay_s=0.0, actor="reaper"))
    assert [read(engine, each).state for each in (crashed, late)] == [State.QUEUED] * 2
    assert waits_for_its_label(engine, late)
    assert fallen_back(engine) == []


def test_its_end_keeps_what_it_was_and_a_revived_job_waits_for_its_label_again(engine: AnyEngine) -> None:
    job_id, holder = taken(engine, affinity_wait_s=7.0)
    assert engine.run(store.succeed([Success(job_id, 1, "1")], holder=holder))
    other, holder = taken(engine, affinity_wait_s=7.0)
    assert engine.run(store.fail([Failure(other, 1, '{"type":"X"}')], holder=holder))
    for each in (job_id, other):
        ended = read(engine, each)
        assert (ended.affinity, ended.affinity_wait_s) == (GPU, 7.0)
        back = engine.run(store.revive(each, actor="ada"))
        assert (back.waits, back.lane) == (False, f"label:{GPU}")
    assert sorted(claim_labelled(engine, register(engine), GPU)) == sorted([job_id, other])


def test_a_change_lets_it_wait_again_from_when_it_is_due_now(engine: AnyEngine, clock: DatabaseClock) -> None:
    (job_id,) = labelled(engine, affinity_wait_s=3_000.0)
    clock.advance(3_001)
    assert fallen_back(engine) == [job_id]
    engine.run(changes.change(job_id, job_change(delay_s=100.0), actor="ada"))
    clock.advance(3_000)
    assert fallen_back(engine) == []
    assert claim(engine, register(engine)) == []
    clock.advance(101)
    assert fallen_back(engine) == [job_id]


def test_it_is_cancelled_and_expires_while_it_waits(engine: AnyEngine, clock: DatabaseClock) -> None:
    (cancelled,), (expired,) = labelled(engine), labelled(engine, expires_s=10.0)
    engine.run(store.cancel(cancelled, actor="ada"))
    clock.advance(11)
    assert claim_labelled(engine, register(engine), GPU) == []
    engine.run(store.expire(limit=10, actor="reaper"))
    assert [read(engine, each).state for each in (cancelled, expired)] == [State.CANCELLED, State.FAILED]


def test_the_lanes_of_a_label_are_told_with_their_first_job(engine: AnyEngine) -> None:
    labelled(engine, 2, priority=5)
    labelled(engine, run_at_us=7_000_000)
    labelled(engine, affinity="other", priority=9)
    found, now_us = engine.run(store.lanes(QUEUE, [GPU]))
    assert [(lane.priority, lane.name) for lane in found] == [(5, f"label:{GPU}"), (0, f"label:{GPU}")]
    assert found[1].first_us == 7_000_000 < found[0].first_us <= now_us
    assert sorted(lanes(engine, GPU, "other")) == [f"label:{GPU}"] * 2 + ["label:other"]
    assert lanes(engine) == []


def test_of_a_job_with_a_share_turns_count_once_anybody_may_take_it(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    (job_id,) = labelled(engine, affinity_wait_s=1.0, share="a")
    assert lanes(engine) == []
    clock.advance(1.1)
    (back,) = engine.run(affinity.fall_back(actor="worker w"))
    assert (back.id, back.lane, lanes(engine)) == (job_id, "share:a", ["share:"])
    (job,) = claim(engine, register(engine), marks=[Mark(0, lane="share:a")])
    assert (job.lane, read(engine, job_id).lane) == ("share:a", f"label:{GPU}")


def test_who_gets_a_turn_is_queued_for_its_label(engine: AnyEngine) -> None:
    first, second = labelled(engine, 2, exclusive="k")
    engine.run(handing.hand_over())
    assert claim(engine, register(engine)) == []
    holder = register(engine)
    assert claim_labelled(engine, holder, GPU) == [first]
    engine.run(store.succeed([Success(first, 1, "1")], holder=holder))
    (handed,) = engine.run(handing.hand_over()).queued
    assert (handed.id, handed.lane) == (second, f"label:{GPU}")
    assert claim_labelled(engine, holder, GPU) == [second]


def test_a_submit_that_replaces_it_says_its_label_anew(engine: AnyEngine) -> None:
    rule = UniqueRule(replaces=True)

    def put(**changes: Any) -> str:
        claim_of_key = UniqueClaim(scope="send", key="k", rule=rule)
        asked = as_unique(new_job(**changes), claim_of_key)
        (answer,) = engine.run(store.submit_asked([asked]))
        return answer.id

    job_id = put()
    assert put(affinity=GPU, affinity_wait_s=9.0) == job_id
    assert waits_for_its_label(engine, job_id)
    assert read(engine, job_id).affinity_wait_s == 9.0
