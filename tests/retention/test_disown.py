"""Jobs whose name no code knows end as failed, late, and only they."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.core.model.ids import new_id
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.operators import looking
from fencerow.retention import disown as disowning
from fencerow.testing.clock import DatabaseClock
from tests.kit.jobs import AnyEngine, claim, new_job, read, register, submit

DAY_S = 86_400.0
KNOWING, IGNORANT, SILENT = '{"names": ["send"]}', '{"names": ["other"]}', '{"queues": ["mail"]}'


def worker(engine: AnyEngine, info: str) -> str:
    holder = new_id()
    engine.run(store.register(holder=holder, name="w", host="h", pid=1, info=info, lease_s=30.0))
    return holder


def disown(
    engine: AnyEngine, *, queue: str = "mail", priority: int = 0, lane: str = "", look: int = 10
) -> list[str]:
    moved = engine.run(disowning.disown(queue, priority, lane, age_s=DAY_S, look=look, actor="worker w"))
    return [job.id for job in moved]


def test_a_name_that_nobody_knows_fails_with_its_reason(engine: AnyEngine, clock: DatabaseClock) -> None:
    (job_id,) = submit(engine)
    clock.advance(DAY_S + 1)
    worker(engine, IGNORANT)

    assert disown(engine) == [job_id]

    record = read(engine, job_id)
    assert (record.state, record.attempt, record.error["code"]) == (State.FAILED, 0, "unknown_name")
    assert [(each.kind, each.actor) for each in engine.run(looking.events(job_id))] == [
        ("disowned", "worker w")
    ]
    assert disown(engine) == []


@pytest.mark.parametrize("info", [KNOWING, SILENT], ids=["knowing", "silent"])
def test_a_worker_that_knows_it_or_does_not_say_keeps_it(
    engine: AnyEngine, clock: DatabaseClock, info: str
) -> None:
    submit(engine)
    clock.advance(DAY_S + 1)
    worker(engine, info)
    worker(engine, IGNORANT)
    assert disown(engine) == []


def test_one_that_knew_it_counts_for_as_long_as_the_job_may_wait(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    (job_id,) = submit(engine)
    clock.advance(DAY_S)
    engine.run(store.retire(holder=worker(engine, KNOWING)))
    clock.advance(DAY_S - 10)
    assert disown(engine) == []
    clock.advance(20)
    assert disown(engine) == [job_id]


@pytest.mark.parametrize(
    "changes",
    [{"delay_s": 10.0}, {"queue": "other"}, {"priority": 5}],
    ids=["due for less", "another queue", "another lane"],
)
def test_others_are_left_alone(engine: AnyEngine, clock: DatabaseClock, changes: dict[str, Any]) -> None:
    submit(engine, new_job(**changes))
    clock.advance(DAY_S + 1)
    assert disown(engine) == []


def test_a_running_job_is_left_alone(engine: AnyEngine, clock: DatabaseClock) -> None:
    submit(engine)
    assert len(claim(engine, register(engine))) == 1
    clock.advance(DAY_S + 1)
    assert disown(engine) == []


def test_all_lanes_with_old_jobs_are_known_those_of_suspects_labels_and_shares_too(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    (job_id,) = submit(engine, new_job(priority=7))
    holder = register(engine)
    claim(engine, holder, marks=[store.Mark(7)])
    engine.run(store.retire(holder=holder))
    engine.run(store.reclaim([holder], limit=10, actor=None))
    submit(engine, new_job(share="a"), new_job(share="b"), new_job(share="late", delay_s=DAY_S))
    engine.run(store.submit_gated([new_job(affinity="gpu")]))
    clock.advance(DAY_S + 1)
    found = engine.run(disowning.lanes_since("mail", age_s=DAY_S))
    assert found == [(7, "suspect:"), (0, "label:gpu"), (0, "share:a"), (0, "share:b")]
    assert disown(engine, priority=7) == []
    assert disown(engine, priority=7, lane="suspect:") == [job_id]


def test_only_so_many_of_a_lane_are_looked_at(engine: AnyEngine, clock: DatabaseClock) -> None:
    ids = submit(engine, *(new_job() for _ in range(5)))
    clock.advance(DAY_S + 1)
    assert sorted(disown(engine, look=3) + disown(engine, look=3)) == sorted(ids)
