"""The first job of a key of which no job is live has its turn from its submit on; all else is left to a hand-over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from psycopg.errors import UniqueViolation

from fencerow.core.model.job import NewJob
from fencerow.core.store import store
from fencerow.core.store.attempts import Success
from fencerow.db.postgres import PostgresEngine
from fencerow.limits import Limit, limits
from fencerow.operators import queues as queue_rows
from fencerow.testing.clock import DatabaseClock
from fencerow.turns import handing
from tests.kit.jobs import AnyEngine, claim, new_job, read, register
from tests.turns.test_turns import gated, hand_over, states


def submitted(engine: AnyEngine, *jobs: NewJob, by_copy: bool = False) -> list[str]:
    """In a transaction of their own; which of them were told to have their turns."""
    told: list[Sequence[NewJob]] = []
    way = store.submit_by_copy if by_copy and engine.dialect == "postgres" else store.submit_gated
    engine.run(way(jobs, told=told.append))
    return [job.id for job in told[0] if job.has_turn]


def submitted_in_one(engine: AnyEngine, job: NewJob) -> bool:
    """In one statement; whether it was told to have its turn."""
    told: list[Sequence[NewJob]] = []
    engine.run(store.submit_with_turn(job, told=told.append))
    return told[0][0].has_turn


def of_key(key: str = "k", **changes: Any) -> NewJob:
    return new_job(exclusive=key, **changes)


@pytest.mark.parametrize("by_copy", [False, True])
def test_the_first_of_each_key_is_queued_and_the_others_follow(engine: AnyEngine, by_copy: bool) -> None:
    low, first, late, other = of_key(priority=-5), of_key(), of_key(priority=-5), of_key("other")
    apart = new_job()

    turned = submitted(engine, low, first, late, other, apart, by_copy=by_copy)

    assert sorted(turned) == sorted([first.id, other.id])
    ids = [job.id for job in (low, first, late, other, apart)]
    assert states(engine, ids) == ["waiting", "queued", "waiting", "queued", "queued"]
    assert hand_over(engine) == []
    assert submitted(engine, of_key("other"), by_copy=by_copy) == []
    holder = register(engine)
    assert {job.id for job in claim(engine, holder, limit=9)} == {first.id, other.id, apart.id}
    assert engine.run(store.succeed([Success(first.id, 1, "1")], holder=holder))
    assert hand_over(engine) == [low.id]


@pytest.mark.parametrize(
    "changes",
    [{"limits": ("free",)}, {"exclusive_at_once": 2}, {"delay_s": 60.0}, {"queue": "paused"}],
)
def test_who_is_less_plain_waits(engine: AnyEngine, changes: dict[str, Any]) -> None:
    engine.run(limits.define(Limit("free", at_once=9), actor=None, reason=None))
    engine.run(queue_rows.pause_queue("paused", actor=None, reason=None))
    assert submitted(engine, of_key(**changes)) == []


@pytest.mark.parametrize("by_copy", [False, True])
def test_who_needs_a_limit_too_waits_there_where_nobody_is_at_the_key(
    engine: AnyEngine, by_copy: bool
) -> None:
    engine.run(limits.define(Limit("a", at_once=1), actor=None, reason=None))
    first, second, other = (of_key(key, limits=("a",)) for key in ("k", "k", "other"))

    assert submitted(engine, first, second, other, by_copy=by_copy) == []
    behind = of_key(limits=("a",))
    assert submitted(engine, behind, by_copy=by_copy) == []

    ids = [first.id, second.id, other.id, behind.id]
    assert [read(engine, each).gate for each in ids] == ["limit:a", "key:k", "limit:a", "key:k"]
    holder = register(engine)
    for job_id in ids:  # whoever is first among all, wherever it waits
        assert hand_over(engine) == [job_id]
        assert hand_over(engine) == []
        assert [job.id for job in claim(engine, holder, limit=9)] == [job_id]
        assert engine.run(store.succeed([Success(job_id, 1, "1")], holder=holder))


@pytest.mark.parametrize("there", [{}, {"delay_s": 60.0}, {"exclusive_at_once": 2}])
def test_nobody_goes_past_those_who_are_there(engine: AnyEngine, there: dict[str, Any]) -> None:
    gated(engine, 1, **there)
    assert submitted(engine, of_key(priority=9)) == []
    hand_over(engine)
    assert submitted(engine, of_key(priority=9)) == []


def test_a_turn_that_nobody_claims_goes_on(engine: AnyEngine, clock: DatabaseClock) -> None:
    first, second = of_key(queue="lost"), of_key()
    assert submitted(engine, first) == [first.id]
    assert submitted(engine, second) == []
    clock.advance(31.0)
    engine.run(handing.take_turns_back(["key:k"], unclaimed_s=30.0))
    assert hand_over(engine) == [second.id]


def test_one_statement_stores_one_with_its_turn_or_where_it_waits(pg: PostgresEngine) -> None:
    first, second, shared = of_key(), of_key(), of_key("other", share="a")
    assert [submitted_in_one(pg, job) for job in (first, second, shared)] == [True, False, True]
    assert states(pg, [first.id, second.id, shared.id]) == ["queued", "waiting", "queued"]
    assert hand_over(pg) == []
    holder = register(pg)
    assert [job.id for job in claim(pg, holder)] == [first.id]
    assert pg.run(store.succeed([Success(first.id, 1, "1")], holder=holder))
    assert hand_over(pg) == [second.id]
    with pytest.raises(UniqueViolation):
        pg.run(store.submit_with_turn(shared, told=len))
