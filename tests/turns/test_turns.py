"""Turns: of a key no more jobs run at once than it allows, and those that wait cost nobody anything."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from fencerow.core.model.job import NewJob
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.store.attempts import Failure, Requeue, Success
from fencerow.core.store.claims import Mark
from fencerow.db.due import Due
from fencerow.db.run import Operation
from fencerow.db.sqlite import SqliteEngine
from fencerow.limits import Limit, limits
from fencerow.operators import queues as queue_rows
from fencerow.testing.clock import DatabaseClock
from fencerow.turns import handing, looks
from tests.core.store.stage import rows
from tests.kit.jobs import AnyEngine, claim, new_job, read, register, submit


def gated(engine: AnyEngine, count: int = 1, **changes: Any) -> list[str]:
    """Jobs of the key k, in the order in which they were submitted."""
    return submit(engine, *(new_job(**{"exclusive": "k", **changes}) for _ in range(count)))


def hand_over(engine: AnyEngine) -> list[str]:
    return [job.id for job in engine.run(handing.hand_over()).queued]


def states(engine: AnyEngine, ids: list[str]) -> list[str]:
    return [read(engine, job_id).state.value for job_id in ids]


def succeed(engine: AnyEngine, holder: str, job_id: str, attempt: int = 1) -> None:
    assert engine.run(store.succeed([Success(job_id, attempt, "1")], holder=holder))


def retried(job_id: str, delay_s: float | None = 5.0) -> Requeue:
    return Requeue(id=job_id, attempt=1, kind="retried", delay_s=delay_s, failures=1)


def test_one_of_a_key_runs_at_a_time_in_the_order_of_their_submit(engine: AnyEngine) -> None:
    ids, holder = gated(engine, 3), register(engine)
    assert states(engine, ids) == ["waiting"] * 3
    assert claim(engine, holder, limit=10) == []

    for job_id in ids:
        assert hand_over(engine) == [job_id]
        assert hand_over(engine) == []
        assert [job.id for job in claim(engine, holder, limit=10)] == [job_id]
        assert hand_over(engine) == []
        succeed(engine, holder, job_id)
    assert hand_over(engine) == []


def test_a_key_may_run_several_at_once(engine: AnyEngine) -> None:
    ids = gated(engine, 5, exclusive_at_once=3)
    assert hand_over(engine) == ids[:3]
    holder = register(engine)
    claim(engine, holder, limit=10)
    succeed(engine, holder, ids[1])
    assert hand_over(engine) == [ids[3]]


def test_nobody_runs_beside_more_than_the_least_of_them_allows(engine: AnyEngine) -> None:
    """Two programs, of different releases, say different numbers: no job is beside more than it was promised."""
    wide, narrow = gated(engine, 3, exclusive_at_once=3), gated(engine, 1)
    more = gated(engine, 1, exclusive_at_once=3)
    holder = register(engine)
    assert hand_over(engine) == wide
    claim(engine, holder, limit=10)
    for job_id in wide:
        assert hand_over(engine) == []
        succeed(engine, holder, job_id)
    assert hand_over(engine) == narrow
    claim(engine, holder, limit=10)
    succeed(engine, holder, narrow[0])
    assert hand_over(engine) == more


def test_keys_are_independent_of_each_other(engine: AnyEngine) -> None:
    first, second = gated(engine, 2), gated(engine, 2, exclusive="other", queue="else")
    assert set(hand_over(engine)) == {first[0], second[0]}


def test_a_higher_priority_goes_first_and_a_job_that_is_not_due_blocks_nobody(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    later = gated(engine, 1, priority=9, delay_s=60.0)
    low, high = gated(engine, 1), gated(engine, 1, priority=5)
    holder = register(engine)
    assert hand_over(engine) == high
    claim(engine, holder, marks=[Mark(5)])
    succeed(engine, holder, high[0])
    assert hand_over(engine) == low
    claim(engine, holder)
    succeed(engine, holder, low[0])
    assert hand_over(engine) == []

    arrived, due_us = engine.run(looks.turns_wanted())
    assert not arrived and due_us is not None and 0 < due_us <= 60e6
    clock.advance(61)
    assert hand_over(engine) == later
    assert engine.run(looks.turns_wanted()) == (False, None)


def test_who_was_due_before_the_clock_went_back_is_due_at_its_gate(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    now_us = time.time_ns() // 1000
    clock.advance(3600)
    ids = gated(engine, 2)
    clock.advance(-3600)
    later = gated(engine, 1, exclusive="other", delay_s=60.0)
    assert hand_over(engine) == []

    due = Due(until_us=now_us + 3_600_000_000 + 5_000_000, since_us=now_us)
    handed = engine.run(handing.hand_over(["key:k", "key:other"], due=due))
    assert [job.id for job in handed.queued] == ids[:1]
    assert states(engine, later) == ["waiting"], "it was written since, and knows the clock as it is"
    assert [job.id for job in claim(engine, register(engine), limit=10)] == ids[:1], (
        "it is due for everybody now"
    )


def test_a_paused_queue_blocks_nobody(engine: AnyEngine) -> None:
    gated(engine, 1, queue="paused")
    other = gated(engine, 1)
    engine.run(queue_rows.pause_queue("paused", actor="ada"))
    assert hand_over(engine) == other


def test_a_sweep_finds_all_gates_where_jobs_wait(engine: AnyEngine) -> None:
    """Whatever arrival was lost: by an older worker's end, or because the queue was paused then."""
    for key in ("b", "a", "c"):
        gated(engine, 2, exclusive=key)
    rows(engine, f"DELETE FROM {table_of(engine)}")
    assert hand_over(engine) == []

    gates = engine.run(looks.gates_after())
    assert gates == ["key:a", "key:b", "key:c"]
    assert engine.run(looks.gates_after("key:a")) == ["key:b", "key:c"]
    assert engine.run(looks.gates_after("key:c")) == []
    assert len(engine.run(handing.hand_over(gates)).queued) == 3


def test_a_retry_gives_the_turn_up(engine: AnyEngine, clock: DatabaseClock) -> None:
    ids, holder = gated(engine, 2), register(engine)
    hand_over(engine)
    claim(engine, holder)
    (back,) = engine.run(store.requeue([retried(ids[0])], holder=holder))
    assert back.waits
    assert (read(engine, ids[0]).state, read(engine, ids[0]).gate) == (State.WAITING, "key:k")
    assert hand_over(engine) == [ids[1]]
    claim(engine, holder)
    clock.advance(6)
    assert hand_over(engine) == []
    succeed(engine, holder, ids[1])
    assert hand_over(engine) == [ids[0]]


def test_a_strict_job_keeps_its_turn_between_its_attempts(engine: AnyEngine) -> None:
    ids, holder = gated(engine, 2, strict=True), register(engine)
    hand_over(engine)
    claim(engine, holder)
    (back,) = engine.run(store.requeue([retried(ids[0])], holder=holder))
    assert not back.waits
    assert states(engine, ids) == ["queued", "waiting"]
    assert hand_over(engine) == []


def test_a_job_that_is_released_keeps_its_turn(engine: AnyEngine) -> None:
    ids, holder = gated(engine, 2), register(engine)
    hand_over(engine)
    claim(engine, holder)
    engine.run(store.requeue([Requeue(id=ids[0], attempt=1, kind="released")], holder=holder))
    assert states(engine, ids) == ["queued", "waiting"]
    assert hand_over(engine) == []


@pytest.mark.parametrize("end", ["fail", "cancel a queued one", "crash for the last time", "expire"])
def test_whatever_ends_a_job_frees_its_turn(engine: AnyEngine, clock: DatabaseClock, end: str) -> None:
    first = gated(engine, 1, crashes_max=1, expires_s=100.0)
    second, holder = gated(engine, 1), register(engine)
    assert hand_over(engine) == first
    if end not in ("cancel a queued one", "expire"):
        claim(engine, holder)
    match end:
        case "fail":
            engine.run(store.fail([Failure(first[0], 1, "{}")], holder=holder))
        case "cancel a queued one":
            engine.run(store.cancel(first[0], actor="ada"))
        case "expire":
            clock.advance(101)
            engine.run(store.expire(limit=10, actor="reaper"))
        case _:
            engine.run(store.crash([store.Crash(first[0], 1, 5.0, "killed")], holder=holder))
    assert hand_over(engine) == second


def test_a_job_that_is_revived_waits_for_a_turn_again(engine: AnyEngine) -> None:
    ids, holder = gated(engine, 2, exclusive_at_once=1, strict=True), register(engine)
    hand_over(engine)
    claim(engine, holder)
    engine.run(store.fail([Failure(ids[0], 1, "{}")], holder=holder))
    hand_over(engine)
    assert engine.run(store.revive(ids[0], actor="ada")).waits
    found = read(engine, ids[0])
    assert (found.state, found.gate, found.exclusive, found.strict) == (State.WAITING, "key:k", "k", True)
    assert hand_over(engine) == []
    claim(engine, holder)
    succeed(engine, holder, ids[1])
    assert hand_over(engine) == [ids[0]]


def test_whatever_way_it_was_submitted_a_job_waits_at_its_gate(engine: AnyEngine) -> None:
    """COPY, a document, a repeat: the same columns, and an arrival each."""
    wide: dict[str, Any] = {
        "exclusive": 'a"\\b{,}\t',
        "exclusive_at_once": 7,
        "strict": True,
        "limits": ('x/"\\,', "x/y z"),
    }
    plain: dict[str, Any] = {"limits": ("only",)}
    for limit in (Limit("x", at_once=1, per_key=True), Limit("only", at_once=1)):
        engine.run(limits.define(limit, actor=None, reason=None))
    ways: list[Callable[[list[NewJob]], Operation[list[str]]]] = [store.submit_gated, store.resubmit]
    if engine.dialect == "postgres":
        ways.append(store.submit_by_copy)
    for way in ways:
        jobs = [new_job(**wide), new_job(**plain), new_job()]
        engine.run(way(jobs))
        first, limited, free = (read(engine, job.id) for job in jobs)
        assert (first.state, first.gate) == (State.WAITING, 'key:a"\\b{,}\t')
        assert (first.exclusive, first.exclusive_at_once, first.strict) == ('a"\\b{,}\t', 7, True)
        assert first.limits == ['x/"\\,', "x/y z"]
        assert (limited.state, limited.gate, limited.exclusive) == (State.WAITING, "limit:only", None)
        assert (free.state, free.gate, free.exclusive, free.limits) == (State.QUEUED, None, None, None)
        gates = [
            str(row["gate"]) for row in rows(engine, f"SELECT gate FROM {table_of(engine)} ORDER BY gate")
        ]
        assert gates == ['key:a"\\b{,}\t', "limit:only"]
        rows(engine, f"DELETE FROM {table_of(engine)}")


def test_on_sqlite_an_end_tells_of_a_key_only_where_somebody_waits(lite: SqliteEngine) -> None:
    alone, first, _ = submit(lite, *(new_job(exclusive=key) for key in ("alone", "k", "k")))
    hand_over(lite)
    holder = register(lite)
    claim(lite, holder)

    for job_id in (alone, first):
        succeed(lite, holder, job_id)

    assert rows(lite, f"SELECT gate FROM {table_of(lite)}") == [{"gate": "key:k"}]


def table_of(engine: AnyEngine) -> str:
    return "fencerow.gate_arrivals" if engine.dialect == "postgres" else "fencerow_gate_arrivals"


def test_a_repeat_of_a_job_that_has_ended_does_not_make_it_wait_again(engine: AnyEngine) -> None:
    job, holder = new_job(exclusive="k"), register(engine)
    submit(engine, job)
    hand_over(engine)
    claim(engine, holder)
    succeed(engine, holder, job.id)
    assert engine.run(store.resubmit([job])) == []
    assert read(engine, job.id).state is State.SUCCEEDED
